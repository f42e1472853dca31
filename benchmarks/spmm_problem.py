"""SpMM problems for the benchmarks: their inputs, and the fields of a row that say what was multiplied."""

from __future__ import annotations

from typing import Any

import torch

from benchmarks import measure
from benchmarks.contenders import Problem
from benchmarks.graphs import Graph
from benchmarks.results import Row


def make(graph: Graph, direction: str, values: str, k: int, dtype: torch.dtype, seed: int) -> Problem:
    device = graph.edge_index.device
    generator = torch.Generator(device).manual_seed(seed)
    num_cols = graph.num_src if direction == "fwd" else graph.num_dst
    x = torch.randn(num_cols, k, device=device, generator=generator).to(dtype)
    weight = None
    if values != "implicit":
        weight = torch.randn(graph.num_edges, device=device, generator=generator).to(dtype)
    return Problem(graph, direction, x, weight, constant=values == "constant")


def describe(problem: Problem, speeds: dict[str, Any]) -> Row:
    """All fields of a row that do not depend on the contender, but for `bench`."""
    graph, matrix, x = problem.graph, problem.matrix, problem.x
    value_bytes = problem.weight.nbytes if problem.weight is not None else 0
    out_bytes = matrix.num_rows * x.size(1) * x.itemsize
    bytes_min = x.nbytes + out_bytes + matrix.rowptr.nbytes + matrix.col.nbytes + value_bytes
    gather_bytes = graph.num_edges * x.size(1) * x.itemsize
    return {
        **measure.describe(graph),
        "op": "spmm",
        "k": x.size(1),
        "dtype": str(x.dtype).removeprefix("torch."),
        "direction": problem.direction,
        "values": "implicit" if problem.weight is None else "constant" if problem.constant else "explicit",
        **measure.limits(bytes_min, gather_bytes, speeds),
    }
