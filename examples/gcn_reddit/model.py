"""The model, and the three libraries that can aggregate for it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module, ModuleList
from torch.nn.functional import dropout
from torch_geometric.nn import GCNConv as PygGCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import to_torch_csr_tensor


class GCN(Module):
    """GCNConv, relu, dropout and so on, the last GCNConv giving the logits ``[N, widths[-1]]``."""

    def __init__(self, conv: Callable[[int, int], Module], widths: Sequence[int], dropout: float) -> None:
        super().__init__()
        self.layers = ModuleList(conv(*pair) for pair in pairwise(widths))
        self.dropout = dropout

    def forward(self, x: Tensor, graph: Any) -> Tensor:
        for layer in self.layers[:-1]:
            x = dropout(layer(x, graph).relu(), self.dropout, self.training)
        return self.layers[-1](x, graph)


@dataclass(frozen=True)
class Backend:
    """How one library wants the graph, and its layer: ``conv(in, out)(x, graph)``."""

    graph: Any
    conv: Callable[[int, int], Module]


def pyg_sparse_plan(edge_index: Tensor, num_nodes: int, dtype: torch.dtype) -> Backend:
    """This library's layer on a plan built once."""
    import pyg_sparse
    from pyg_sparse.nn import GCNConv

    # The time this takes is reported: a plan read from the cache would be another.
    return Backend(pyg_sparse.plan(edge_index, num_nodes, edge_values=False, cache=False), GCNConv)


def pyg_edge_index(edge_index: Tensor, num_nodes: int, dtype: torch.dtype) -> Backend:
    """PyG's layer on edge_index, which it normalises in the first epoch and keeps."""
    return Backend(edge_index, partial(PygGCNConv, cached=True))  # type: ignore[abstract]


def torch_sparse_csr(edge_index: Tensor, num_nodes: int, dtype: torch.dtype) -> Backend:
    """PyG's layer on a torch.sparse CSR matrix, transposed and normalised once."""
    edge_index, weight = gcn_norm(edge_index, num_nodes=num_nodes, dtype=dtype)
    with warnings.catch_warnings(action="ignore"):  # "Sparse CSR tensor support is in beta"
        adj_t = to_torch_csr_tensor(edge_index.flip(0), weight, (num_nodes, num_nodes))
    return Backend(adj_t, partial(PygGCNConv, normalize=False))  # type: ignore[abstract]


BACKENDS: dict[str, Callable[[Tensor, int, torch.dtype], Backend]] = {
    "pyg_sparse": pyg_sparse_plan,
    "pyg": pyg_edge_index,
    "torch-sparse": torch_sparse_csr,
}
