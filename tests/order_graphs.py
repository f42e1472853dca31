"""Graphs with and without communities, and what else the tests of orders share."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from pyg_sparse.formats import Rows
from tests.conftest import Graph
from tests.formats.test_formats import rows_of


def both_sides(graph: Graph, device: str = "cpu") -> tuple[Rows, Rows]:
    return rows_of(graph, device), rows_of(Graph(graph.edge_index.flip(0), graph.num_dst, graph.num_src), device)


def planted(count: int, size: int, degree: int, outside: float, seed: int = 0) -> tuple[Graph, Tensor]:
    """Directed edges into each node from its own community, but for a share that comes from anywhere; ids shuffled."""
    generator = torch.Generator().manual_seed(seed)
    nodes = count * size
    dst = torch.arange(nodes).repeat_interleave(degree)
    inside = dst // size * size + torch.randint(size, dst.shape, generator=generator)
    anywhere = torch.randint(nodes, dst.shape, generator=generator)
    src = torch.where(torch.rand(dst.shape, generator=generator) < outside, anywhere, inside)
    shuffled = torch.randperm(nodes, generator=generator)
    community = torch.empty(nodes, dtype=torch.long)
    community[shuffled] = torch.arange(nodes) // size
    return Graph(shuffled[torch.stack([src, dst])], nodes, nodes), community


def uniform(nodes: int, edges: int) -> Graph:
    return Graph(torch.randint(nodes, (2, edges), generator=torch.Generator().manual_seed(5)), nodes, nodes)


def integers(*size: int, device: str, seed: int) -> Tensor:
    """Whole numbers: their sums are exact in any order."""
    return torch.randint(-9, 10, size, generator=torch.Generator().manual_seed(seed)).double().to(device)


def needs_cuda(test: Callable[..., None]) -> Callable[..., None]:
    return pytest.mark.cuda(pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")(test))
