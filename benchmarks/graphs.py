"""The graphs that benchmarks run on, and their adjacency as the sorted int32 CSR that rivals take."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import pyg_sparse
from pyg_sparse import Plan
from pyg_sparse.datasets import shaped_graph
from pyg_sparse.formats import FormatSpec


@dataclass(frozen=True)
class Matrix:
    """CSR with int32 indices, columns ascending in each row; `order` is the edge each entry came from."""

    rowptr: Tensor
    col: Tensor
    order: Tensor
    num_cols: int

    @property
    def num_rows(self) -> int:
        return self.rowptr.numel() - 1


@dataclass(eq=False)
class Graph:
    name: str
    source: str
    edge_index: Tensor
    num_src: int
    num_dst: int
    scale: float | None = None
    ordered: bool = False
    plans: dict[tuple[str | FormatSpec, bool], tuple[Plan, float]] = field(default_factory=dict)
    matrices: dict[str, Matrix] = field(default_factory=dict)

    @property
    def num_edges(self) -> int:
        return self.edge_index.size(1)

    def matrix(self, direction: str) -> Matrix:
        """The adjacency (`fwd`: a row per target) or its transpose (`bwd`), made on first use."""
        if direction not in self.matrices:
            self.matrices[direction] = self._sorted(direction)
        return self.matrices[direction]

    def _sorted(self, direction: str) -> Matrix:
        src, dst = self.edge_index
        row, col, num_rows, num_cols = (
            (dst, src, self.num_dst, self.num_src) if direction == "fwd" else (src, dst, self.num_src, self.num_dst)
        )
        order = (row * num_cols + col).sort().indices
        rowptr = torch.zeros(num_rows + 1, dtype=torch.int64, device=row.device)
        torch.cumsum(row.bincount(minlength=num_rows), 0, out=rowptr[1:])
        return Matrix(rowptr.int(), col[order].int(), order, num_cols)


def load(spec: str, scale: float, seed: int, device: torch.device) -> Graph:
    """A synthetic shape (`reddit` and its like) or a real matrix without its values (`mtx:PATH`, `npz:PATH`).

    An npz file holds a SciPy sparse matrix, an `edge_index` or a heterophilous graph of PyG's. `ordered:` before any of
    them numbers its nodes as our plan orders its rows, so that rivals run in our order.
    """
    kind, _, path = spec.partition(":")
    if kind == "ordered":
        return _in_our_order(load(path, scale, seed, device))
    if not path:
        shaped = shaped_graph(spec, scale=scale, seed=seed, device=device)
        # The graph is symmetric: reversed, its edges are the same, but sorted by target, as rivals keep their values.
        edge_index = shaped.edge_index.flip(0)
        return Graph(f"{spec}-shaped", "shaped", edge_index, shaped.num_nodes, shaped.num_nodes, scale)
    edge_index, num_src, num_dst = _read(kind, Path(path))
    name = Path(path).name.split(".")[0]
    return Graph(name, "real", torch.from_numpy(edge_index).to(device), num_src, num_dst)


def _in_our_order(graph: Graph) -> Graph:
    if graph.num_src != graph.num_dst:
        raise ValueError(f"{graph.name} cannot be ordered: it has {graph.num_src} sources and {graph.num_dst} targets")
    row = pyg_sparse.plan(graph.edge_index, graph.num_src, edge_values=False).forward.row.long()
    number = torch.empty_like(row)
    number[row] = torch.arange(row.numel(), device=row.device)
    return replace(graph, edge_index=number[graph.edge_index], ordered=True, plans={}, matrices={})


def _read(kind: str, path: Path) -> tuple[np.ndarray, int, int]:
    import scipy.io
    import scipy.sparse

    if kind == "npz":
        with np.load(path) as archive:
            if "edge_index" in archive:
                edge_index = archive["edge_index"].astype(np.int64)
                num_nodes = int(edge_index.max()) + 1
                return edge_index, num_nodes, num_nodes
            if "edges" in archive:  # of HeterophilousGraphDataset: each once
                edges, num_nodes = archive["edges"].astype(np.int64).T, len(archive["node_labels"])
                return np.concatenate([edges, edges[::-1]], 1), num_nodes, num_nodes
        matrix = scipy.sparse.load_npz(path).tocoo()
    elif kind == "mtx":
        matrix = scipy.io.mmread(path).tocoo()
    else:
        raise ValueError(f"unknown graph {kind}:{path}: expected a shape's name, mtx:PATH or npz:PATH")
    num_dst, num_src = matrix.shape  # a row sums its columns' messages
    return np.stack([matrix.col, matrix.row]).astype(np.int64), num_src, num_dst
