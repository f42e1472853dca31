"""Everything that can compute the product: ours by format, and its rivals.

A contender is prepared for one problem and then called many times. Preparing may raise: that is a result too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

import torch
from torch import Tensor

import pyg_sparse
from benchmarks import cpu_peers, cusparse, cusparse_spmv
from benchmarks.external import Library, Rival
from benchmarks.external import load as load_libraries
from benchmarks.graphs import Graph, Matrix
from benchmarks.results import OURS
from benchmarks.timing import elapsed_ms
from pyg_sparse import Plan
from pyg_sparse.formats import SPECS, FormatSpec, Hyb

P = TypeVar("P")  # the operator's problem

SCATTER_LIMIT = 8 << 30


@dataclass(frozen=True)
class Problem:
    """`A @ x` (`fwd`) or `A.T @ x` (`bwd`, the gradient in x); `weight` is in the graph's edge order."""

    graph: Graph
    direction: str
    x: Tensor
    weight: Tensor | None
    constant: bool = False  # our plan may store the weight in its own order, as rivals do

    @property
    def dtype(self) -> torch.dtype:
        return self.x.dtype

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
    """`structure_bytes` are those of the matrix, of a workspace and of an output made in advance.

    `arrange` brings a result into the order of the reference, for its check; it is not part of the time.
    """

    run: Callable[[], Tensor]
    preprocess_ms: float | None
    structure_bytes: int
    arrange: Callable[[Tensor], Tensor] = lambda out: out


@dataclass(frozen=True)
class Contender(Generic[P]):
    impl: str
    format: str
    prepare: Callable[[P], AbstractContextManager[Prepared]]


def specs(formats: list[str], hyb: list[int]) -> dict[str, str | FormatSpec]:
    """The formats by label; `hyb` gives the partition counts to try."""
    found: dict[str, str | FormatSpec] = {}
    for name in formats:
        if name == "hyb":
            found |= {f"hyb(c={c})": Hyb(c) for c in hyb}
        else:
            found[name] = name if name == "auto" else SPECS[name]()
    return found


def planned(graph: Graph, spec: str | FormatSpec, edge_values: bool) -> tuple[Plan, float]:
    """The graph's plan in a format and the time it took to build, once for all problems on the graph."""
    key = spec, edge_values
    if key not in graph.plans:
        nodes = (graph.num_src, graph.num_dst)
        build = partial(pyg_sparse.plan, graph.edge_index, nodes, format=spec, edge_values=edge_values, cache=False)
        graph.plans[key] = elapsed_ms(build, graph.edge_index.device)
    return graph.plans[key]


def ours(formats: list[str], hyb: list[int]) -> list[Contender[Problem]]:
    """The library with each format."""
    return [Contender(OURS, label, partial(_ours, spec)) for label, spec in specs(formats, hyb).items()]


def rivals(names: list[str], device: str = "cpu") -> list[Contender[Problem]]:
    """By name on a type of device; raises ImportError when a rival's library is not installed."""
    found = []
    for name in names:
        if name == "torch":
            found += [
                Contender("torch.sparse.mm", f"csr {bits}", partial(_torch_sparse, dtype))
                for bits, dtype in (("int64", torch.int64), ("int32", torch.int32))
            ]
            if device == "cpu":  # torch has it nowhere else
                reduce = partial(_torch_sparse, torch.int32, reduce="sum")
                found.append(Contender("torch.sparse.mm", "csr int32 reduce", reduce))
        elif name == "cusparse":
            spmm = cusparse.CusparseSpmm
            found += [Contender("cuSPARSE", a, partial(_cusparse, spmm, a)) for a in spmm.algorithms]
        elif name == "spmv":
            spmv = cusparse_spmv.CusparseSpmv
            found += [Contender("cuSPARSE SpMV", a, partial(_cusparse, spmv, a)) for a in spmv.algorithms]
        elif name == "scipy":
            found.append(Contender("scipy", "csr int32", _scipy))
        elif name == "scatter":
            found.append(Contender("PyG gather-scatter", "edge_index", _scatter))
        elif name in cpu_peers.PEERS:
            peer = cpu_peers.load(name)
            found.append(Contender(name, peer.format, partial(_cpu_peer, peer)))
        else:
            expected = ", ".join(["torch", "cusparse", "spmv", "scipy", "scatter", *cpu_peers.PEERS])
            raise ValueError(f"unknown rival {name}: expected one of {expected}")
    return found


def external(folder: Path) -> list[Contender[Problem]]:
    """The SpMM variants of the rivals' shared libraries in a folder."""
    return [
        Contender(library.name, own_name, partial(_external, library, variant))
        for library in load_libraries(folder)
        for own_name, variant in library.variants_of("spmm").items()
    ]


@contextmanager
def _ours(spec: str | FormatSpec, problem: Problem) -> Iterator[Prepared]:
    plan, build_ms = planned(problem.graph, spec, edge_values=problem.weight is not None)
    directed = plan if problem.direction == "fwd" else plan.t()
    weight = directed.store_weight(problem.weight) if problem.constant else problem.weight
    run = partial(pyg_sparse.spmm, directed, problem.x, weight)
    yield Prepared(run, build_ms, plan.num_bytes())


@contextmanager
def _cusparse(product: type[cusparse.CusparseSpmm], algorithm: str, problem: Problem) -> Iterator[Prepared]:
    matrix, out = problem.matrix, problem.new_out()
    make = partial(product, matrix.rowptr, matrix.col, problem.values(), problem.x, out, algorithm)
    spmm, preprocess_ms = elapsed_ms(make, problem.x.device)
    try:
        yield Prepared(spmm, preprocess_ms, spmm.nbytes)
    finally:
        spmm.close()


@contextmanager
def _external(library: Library, variant: str, problem: Problem) -> Iterator[Prepared]:
    matrix, out, k = problem.matrix, problem.new_out(), problem.x.size(1)
    make = partial(
        Rival, library, variant, matrix.rowptr, matrix.col, problem.values(), matrix.num_cols, k, problem.dtype
    )
    rival, preprocess_ms = elapsed_ms(make, problem.x.device)
    with rival:
        yield Prepared(partial(rival.spmm, problem.x, out), preprocess_ms, rival.nbytes + out.nbytes)


@contextmanager
def _torch_sparse(index_dtype: torch.dtype, problem: Problem, **reduce: str) -> Iterator[Prepared]:
    matrix = problem.matrix
    rowptr, col, values = matrix.rowptr.to(index_dtype), matrix.col.to(index_dtype), problem.values()
    adjacency = torch.sparse_csr_tensor(rowptr, col, values, (matrix.num_rows, matrix.num_cols), check_invariants=False)
    run = partial(torch.sparse.mm, adjacency, problem.x, **reduce)
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
def _cpu_peer(peer: cpu_peers.Peer, problem: Problem) -> Iterator[Prepared]:
    matrix = problem.matrix
    values = None if problem.weight is None else problem.values()
    run = peer.prepare(matrix, values, problem.x)
    yield Prepared(run, None, matrix.rowptr.nbytes + matrix.col.nbytes + (0 if values is None else values.nbytes))


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
