"""Everything that can compute the product: ours by format, and its rivals.

A contender is prepared for one problem and then called many times. Preparing may raise: that is a result too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

import pyg_sparse
from benchmarks import cusparse
from benchmarks.graphs import Graph, Matrix
from benchmarks.results import OURS
from benchmarks.timing import elapsed_ms
from pyg_sparse.formats import SPECS, FormatSpec, Hyb

SCATTER_LIMIT = 8 << 30


@dataclass(frozen=True)
class Problem:
    """`A @ x` (`fwd`) or `A.T @ x` (`bwd`, the gradient in x); `weight` is in the graph's edge order."""

    graph: Graph
    direction: str
    x: Tensor
    weight: Tensor | None

    @property
    def matrix(self) -> Matrix:
        return self.graph.matrix(self.direction)

    def values(self) -> Tensor:
        """One value an entry, as every rival needs even when all are 1."""
        if self.weight is not None:
            return self.weight[self.matrix.order]
        return torch.ones(self.graph.num_edges, dtype=self.x.dtype, device=self.x.device)

    def new_out(self) -> Tensor:
        """An output that shows what was not written."""
        return self.x.new_full((self.matrix.num_rows, self.x.size(1)), float("nan"))


@dataclass(frozen=True)
class Prepared:
    """`structure_bytes` are those of the matrix, of a workspace and of an output made in advance."""

    run: Callable[[], Tensor]
    preprocess_ms: float | None
    structure_bytes: int


@dataclass(frozen=True)
class Contender:
    impl: str
    format: str
    prepare: Callable[[Problem], AbstractContextManager[Prepared]]


def ours(formats: list[str], hyb: list[int]) -> list[Contender]:
    """The library with each format; `hyb` gives the partition counts to try."""
    specs: dict[str, str | FormatSpec] = {}
    for name in formats:
        if name == "hyb":
            specs |= {f"hyb(c={c})": Hyb(c) for c in hyb}
        else:
            specs[name] = name if name == "auto" else SPECS[name]()
    return [Contender(OURS, label, partial(_ours, spec)) for label, spec in specs.items()]


def rivals(names: list[str]) -> list[Contender]:
    found = []
    for name in names:
        if name == "torch":
            found += [
                Contender("torch.sparse.mm", f"csr {bits}", partial(_torch_sparse, dtype))
                for bits, dtype in (("int64", torch.int64), ("int32", torch.int32))
            ]
        elif name == "cusparse":
            found += [Contender("cuSPARSE", a, partial(_cusparse, a)) for a in cusparse.ALGORITHMS]
        elif name == "scipy":
            found.append(Contender("scipy", "csr int32", _scipy))
        elif name == "scatter":
            found.append(Contender("PyG gather-scatter", "edge_index", _scatter))
        else:
            raise ValueError(f"unknown rival {name}: expected torch, cusparse, scipy or scatter")
    return found


@contextmanager
def _ours(spec: str | FormatSpec, problem: Problem) -> Iterator[Prepared]:
    graph, with_values = problem.graph, problem.weight is not None
    if (spec, with_values) not in graph.plans:
        nodes = (graph.num_src, graph.num_dst)
        build = partial(pyg_sparse.plan, graph.edge_index, nodes, format=spec, edge_values=with_values)
        graph.plans[spec, with_values] = elapsed_ms(build, problem.x.device)
    plan, build_ms = graph.plans[spec, with_values]
    directed = plan if problem.direction == "fwd" else plan.t()
    run = partial(pyg_sparse.spmm, directed, problem.x, problem.weight)
    yield Prepared(run, build_ms, plan.num_bytes())


@contextmanager
def _cusparse(algorithm: str, problem: Problem) -> Iterator[Prepared]:
    matrix, out = problem.matrix, problem.new_out()
    make = partial(cusparse.CusparseSpmm, matrix.rowptr, matrix.col, problem.values(), problem.x, out, algorithm)
    spmm, preprocess_ms = elapsed_ms(make, problem.x.device)
    try:
        yield Prepared(spmm, preprocess_ms, spmm.nbytes)
    finally:
        spmm.close()


@contextmanager
def _torch_sparse(index_dtype: torch.dtype, problem: Problem) -> Iterator[Prepared]:
    matrix = problem.matrix
    rowptr, col, values = matrix.rowptr.to(index_dtype), matrix.col.to(index_dtype), problem.values()
    adjacency = torch.sparse_csr_tensor(rowptr, col, values, (matrix.num_rows, matrix.num_cols), check_invariants=False)
    run = partial(torch.sparse.mm, adjacency, problem.x)
    yield Prepared(run, None, rowptr.nbytes + col.nbytes + values.nbytes)


@contextmanager
def _scipy(problem: Problem) -> Iterator[Prepared]:
    from scipy.sparse import csr_array

    matrix, values, x = problem.matrix, problem.values().numpy(), problem.x.numpy()
    shape = (matrix.num_rows, matrix.num_cols)
    adjacency = csr_array((values, matrix.col.numpy(), matrix.rowptr.numpy()), shape)
    structure = matrix.rowptr.nbytes + matrix.col.nbytes + values.nbytes
    yield Prepared(lambda: torch.from_numpy(adjacency @ x), None, structure)


@contextmanager
def _scatter(problem: Problem) -> Iterator[Prepared]:
    from torch_geometric.utils import scatter

    messages = problem.graph.num_edges * problem.x.size(1) * problem.x.itemsize
    if messages > SCATTER_LIMIT:
        raise ValueError(f"skipped: its messages take {messages / 1e9:.1f} GB")
    edge_index = problem.graph.edge_index
    src, dst = edge_index if problem.direction == "fwd" else edge_index.flip(0)

    def run() -> Tensor:
        message = problem.x.index_select(0, src)
        if problem.weight is not None:
            message = message * problem.weight[:, None]
        return scatter(message, dst, dim=0, dim_size=problem.matrix.num_rows, reduce="sum")

    yield Prepared(run, None, edge_index.nbytes)
