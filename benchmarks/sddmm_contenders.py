"""Everything that can compute one dot product an edge: ours by format, and its rivals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

import pyg_sparse
from benchmarks import external as libraries
from benchmarks.contenders import SCATTER_LIMIT, Contender, Prepared, planned, specs
from benchmarks.cusparse_sddmm import CusparseSddmm
from benchmarks.external import Library, Rival
from benchmarks.graphs import Graph, Matrix
from benchmarks.results import OURS
from benchmarks.timing import elapsed_ms
from pyg_sparse.formats import FormatSpec

_UNWRITTEN = 1e4  # finite, for libraries that multiply what was there by beta = 0


@dataclass(frozen=True)
class SddmmProblem:
    """`<q[target], key[source]>` for every edge. Expected are the values in the order of `matrix`."""

    graph: Graph
    q: Tensor
    key: Tensor

    @property
    def dtype(self) -> torch.dtype:
        return self.q.dtype

    @property
    def matrix(self) -> Matrix:
        return self.graph.matrix("fwd")

    def new_out(self) -> Tensor:
        """An output that shows what was not written."""
        return self.q.new_full((self.graph.num_edges,), float("nan"))

    def sorted(self, by_edge: Tensor) -> Tensor:
        """Values in the order of the edges, in that of `matrix`."""
        return by_edge[self.matrix.order]


def ours(formats: list[str], hyb: list[int]) -> list[Contender[SddmmProblem]]:
    """The library with each format."""
    return [Contender(OURS, label, partial(_ours, spec)) for label, spec in specs(formats, hyb).items()]


def rivals(names: list[str]) -> list[Contender[SddmmProblem]]:
    found = []
    for name in names:
        if name == "torch":
            found += [
                Contender("torch.sparse.sampled_addmm", f"csr {bits}", partial(_torch_sparse, dtype))
                for bits, dtype in (("int64", torch.int64), ("int32", torch.int32))
            ]
        elif name == "cusparse":
            found.append(Contender("cuSPARSE", "csr", _cusparse))
        elif name == "gather":
            found.append(Contender("torch gather-multiply-sum", "edge_index", _gather))
        else:
            raise ValueError(f"unknown rival {name}: expected torch, cusparse or gather")
    return found


def external(folder: Path) -> list[Contender[SddmmProblem]]:
    """The SDDMM variants of the rivals' shared libraries in a folder."""
    return [
        Contender(library.name, own_name, partial(_external, library, variant))
        for library in libraries.load(folder)
        for own_name, variant in library.variants_of("sddmm").items()
    ]


@contextmanager
def _ours(spec: str | FormatSpec, problem: SddmmProblem) -> Iterator[Prepared]:
    plan, build_ms = planned(problem.graph, spec, edge_values=True)
    run = partial(pyg_sparse.sddmm, plan, problem.q, problem.key)
    yield Prepared(run, build_ms, plan.num_bytes(), arrange=problem.sorted)


@contextmanager
def _cusparse(problem: SddmmProblem) -> Iterator[Prepared]:
    matrix, out = problem.matrix, problem.new_out().fill_(_UNWRITTEN)
    make = partial(CusparseSddmm, matrix.rowptr, matrix.col, problem.q, problem.key, out)
    sddmm, preprocess_ms = elapsed_ms(make, problem.q.device)
    try:
        yield Prepared(sddmm, preprocess_ms, sddmm.nbytes)
    finally:
        sddmm.close()


@contextmanager
def _external(library: Library, variant: str, problem: SddmmProblem) -> Iterator[Prepared]:
    matrix, out, k = problem.matrix, problem.new_out(), problem.q.size(1)
    make = partial(Rival, library, variant, matrix.rowptr, matrix.col, None, matrix.num_cols, k, problem.dtype)
    rival, preprocess_ms = elapsed_ms(make, problem.q.device)
    with rival:
        run = partial(rival.sddmm, problem.q, problem.key, out)
        yield Prepared(run, preprocess_ms, rival.nbytes + out.nbytes)


@contextmanager
def _torch_sparse(index_dtype: torch.dtype, problem: SddmmProblem) -> Iterator[Prepared]:
    matrix, values = problem.matrix, problem.new_out().fill_(_UNWRITTEN)
    rowptr, col = matrix.rowptr.to(index_dtype), matrix.col.to(index_dtype)
    pattern = torch.sparse_csr_tensor(rowptr, col, values, (matrix.num_rows, matrix.num_cols), check_invariants=False)

    def run() -> Tensor:
        return torch.sparse.sampled_addmm(pattern, problem.q, problem.key.t(), beta=0).values()

    yield Prepared(run, None, rowptr.nbytes + col.nbytes + values.nbytes)


@contextmanager
def _gather(problem: SddmmProblem) -> Iterator[Prepared]:
    gathered = 3 * problem.graph.num_edges * problem.q.size(1) * problem.q.itemsize
    if gathered > SCATTER_LIMIT:
        raise ValueError(f"skipped: the gathered rows and their products take {gathered / 1e9:.1f} GB")
    src, dst = problem.graph.edge_index

    def run() -> Tensor:
        return (problem.q.index_select(0, dst) * problem.key.index_select(0, src)).sum(1)

    yield Prepared(run, None, problem.graph.edge_index.nbytes, arrange=problem.sorted)
