"""Graphs of many kinds, on which the planner's cost model is fitted and tested.

A graph's `group` is its family: cross-validation leaves whole families out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from benchmarks import graphs, suite_graphs
from benchmarks.graphs import Graph
from benchmarks.suite_stats import read


@dataclass(frozen=True)
class Member:
    """A graph that is made when it is asked for."""

    name: str
    group: str
    make: Callable[[], Graph]


def corpus(root: Path | None, seed: int, device: torch.device, largest: int) -> list[Member]:
    """Shaped graphs, the suite of 60, further real matrices and generated families, of at most ``largest`` entries."""
    members = [*_shaped(seed, device, largest), *_generated(seed, device, largest)]
    members += _suite(root, seed, device, largest)
    return members + (_real(root, device) if root else [])


def _shaped(seed: int, device: torch.device, largest: int) -> Iterator[Member]:
    from pyg_sparse.datasets.shaped import SHAPES

    for shape, about in SHAPES.items():
        for scale in (1.0, 0.25, 0.05, 0.01):
            if about.entries * scale <= largest:
                load = partial(graphs.load, shape, scale, seed, device)
                yield Member(f"{shape}-shaped {scale:g}", f"{shape}-shaped", load)


def _suite(root: Path | None, seed: int, device: torch.device, largest: int) -> Iterator[Member]:
    files = suite_graphs._files(root) if root else {}
    for stats in read(suite_graphs.LISTED):
        if stats.nnz <= largest:
            load = partial(suite_graphs.load, stats, files.get(stats.name), seed, device)
            # Versions of one matrix have numbers behind their names.
            yield Member(stats.name, stats.name.rstrip("0123456789").rstrip("_"), load)


def _real(root: Path, device: torch.device) -> list[Member]:
    """The other matrices of the data folder with at least 10,000 entries, each a group of its own."""
    listed = {stats.name for stats in read(suite_graphs.LISTED)}
    members = []
    for name, file in suite_graphs._files(root).items():
        if name not in listed and file.stat().st_size > 20_000:
            kind = "npz" if file.suffix == ".npz" else "mtx"
            load = partial(graphs.load, f"{kind}:{file}", 1.0, 0, device)
            members.append(Member(name, name.rstrip("0123456789").rstrip("_"), load))
    return members


def _generated(seed: int, device: torch.device, largest: int) -> Iterator[Member]:
    """Families with a few sizes each; `shuffled` ones have their nodes numbered at random."""
    for name, group, entries, draw in _FAMILIES:
        if entries <= largest:
            yield Member(name, group, partial(_make, name, draw, seed, device))


def _make(name: str, draw: Callable[..., tuple[Tensor, Tensor, int, int]], seed: int, device: torch.device) -> Graph:
    generator = torch.Generator().manual_seed(seed)
    src, dst, num_src, num_dst = draw(generator)
    return Graph(name, "generated", torch.stack([src, dst]).to(device), num_src, num_dst)


def uniform(g: torch.Generator, nodes: int, degree: int, cols: int | None = None) -> tuple[Tensor, Tensor, int, int]:
    """Every edge between two random nodes (Erdos and Renyi 1959)."""
    cols = cols or nodes
    return (
        torch.randint(cols, (nodes * degree,), generator=g),
        torch.randint(nodes, (nodes * degree,), generator=g),
        cols,
        nodes,
    )


def rmat(g: torch.Generator, scale: int, degree: int) -> tuple[Tensor, Tensor, int, int]:
    """R-MAT with the parameters of Graph500 (Chakrabarti et al. 2004), ids shuffled."""
    count = degree << scale
    src, dst = torch.zeros(count, dtype=torch.long), torch.zeros(count, dtype=torch.long)
    for _ in range(scale):
        draw = torch.rand(count, generator=g)
        src = 2 * src + (draw >= 0.76)
        dst = 2 * dst + (((draw >= 0.57) & (draw < 0.76)) | (draw >= 0.95))
    number = torch.randperm(1 << scale, generator=g)
    return number[src], number[dst], 1 << scale, 1 << scale


def band(g: torch.Generator, nodes: int, degree: int, reach: int, shuffled: bool) -> tuple[Tensor, Tensor, int, int]:
    """Neighbours within ``reach`` of a node's own id."""
    dst = torch.arange(nodes).repeat_interleave(degree)
    src = (dst + torch.randint(-reach, reach + 1, dst.shape, generator=g)).clamp_(0, nodes - 1)
    number = torch.randperm(nodes, generator=g) if shuffled else torch.arange(nodes)
    return number[src], number[dst], nodes, nodes


def grid(g: torch.Generator, shape: tuple[int, ...], shuffled: bool) -> tuple[Tensor, Tensor, int, int]:
    """A grid with an edge to every neighbour along each axis, in both directions."""
    index = torch.arange(int(torch.tensor(shape).prod())).view(shape)
    parts = []
    for axis, size in enumerate(shape):
        low, high = index.narrow(axis, 0, size - 1).flatten(), index.narrow(axis, 1, size - 1).flatten()
        parts += [torch.stack([low, high]), torch.stack([high, low])]
    src, dst = torch.cat(parts, 1)
    number = torch.randperm(index.numel(), generator=g) if shuffled else torch.arange(index.numel())
    return number[src], number[dst], index.numel(), index.numel()


def bimodal(g: torch.Generator, nodes: int, degree: int, hubs: int, hub_degree: int) -> tuple[Tensor, Tensor, int, int]:
    """Rows of two lengths; columns anywhere."""
    length = torch.full((nodes,), degree)
    length[torch.randperm(nodes, generator=g)[:hubs]] = hub_degree
    dst = torch.arange(nodes).repeat_interleave(length)
    return torch.randint(nodes, dst.shape, generator=g), dst, nodes, nodes


def power_law(
    g: torch.Generator, nodes: int, degree: int, exponent: float, communities: int
) -> tuple[Tensor, Tensor, int, int]:
    """Rows of Pareto length; half of their columns in their own community, the rest by popularity; ids shuffled."""
    weight = torch.arange(1, nodes + 1, dtype=torch.double).pow(-exponent)
    length = (weight * (nodes * degree / weight.sum())).clamp(1, nodes // 4).round().long()
    length = length[torch.randperm(nodes, generator=g)]
    dst = torch.arange(nodes).repeat_interleave(length)
    popular = torch.searchsorted(weight.cumsum(0) / weight.sum(), torch.rand(dst.shape, generator=g).double())
    size = max(nodes // communities, 1)
    near = (dst // size * size + torch.randint(size, dst.shape, generator=g)).clamp_(max=nodes - 1)
    inside = torch.rand(dst.shape, generator=g) < 0.5
    number = torch.randperm(nodes, generator=g)
    src = torch.where(inside, near, popular.clamp_(max=nodes - 1))
    return number[src], number[dst], nodes, nodes


def blocks(g: torch.Generator, nodes: int, size: int, shuffled: bool) -> tuple[Tensor, Tensor, int, int]:
    """Cliques of ``size`` nodes."""
    dst = torch.arange(nodes).repeat_interleave(size)
    src = (dst // size * size + torch.arange(size).repeat(nodes)).clamp_(max=nodes - 1)
    number = torch.randperm(nodes, generator=g) if shuffled else torch.arange(nodes)
    return number[src], number[dst], nodes, nodes


_FAMILIES: list[tuple[str, str, int, Callable[..., tuple[Tensor, Tensor, int, int]]]] = [
    *((f"uniform {n}x{d}", f"uniform {d}", n * d, partial(uniform, nodes=n, degree=d))
      for n, d in ((2_000, 4), (20_000, 4), (300_000, 4), (20_000, 20), (200_000, 20), (1_000_000, 20),
                   (10_000, 100), (60_000, 100), (250_000, 100), (4_000, 400), (40_000, 400))),
    *((f"uniform {n}x{c}x{d}", f"rectangular {d}", n * d, partial(uniform, nodes=n, cols=c, degree=d))
      for n, c, d in ((200_000, 5_000, 10), (5_000, 200_000, 200), (1_000_000, 50_000, 3), (50_000, 1_000_000, 50))),
    *((f"rmat {s}x{d}", f"rmat {d}", d << s, partial(rmat, scale=s, degree=d))
      for s, d in ((12, 8), (15, 8), (18, 8), (20, 8), (12, 32), (16, 32), (19, 32), (14, 128), (17, 128))),
    *((f"band {n}x{d} {r}{' shuffled' * m}", f"band {d}", n * d,
       partial(band, nodes=n, degree=d, reach=r, shuffled=m))
      for n, d, r in ((20_000, 8, 30), (500_000, 8, 30), (50_000, 40, 200), (300_000, 40, 2_000), (20_000, 150, 500))
      for m in (False, True)),
    *((f"grid {'x'.join(map(str, s))}{' shuffled' * m}", f"grid {len(s)}", 2 * len(s) * n,
       partial(grid, shape=s, shuffled=m))
      for s, n in (((100, 100), 10_000), ((1000, 1000), 1_000_000), ((3000, 2000), 6_000_000),
                   ((30, 30, 30), 27_000), ((100, 100, 100), 1_000_000))
      for m in (False, True)),
    *((f"bimodal {n} {d}/{hd}", f"bimodal {d}", n * d + h * hd,
       partial(bimodal, nodes=n, degree=d, hubs=h, hub_degree=hd))
      for n, d, h, hd in ((20_000, 4, 20, 2_000), (200_000, 4, 2_000, 300), (100_000, 16, 100, 20_000),
                          (50_000, 60, 500, 5_000), (1_000_000, 8, 100, 50_000))),
    *((f"power law {n}x{d} {e:g}", f"power law {e:g} {d}", n * d,
       partial(power_law, nodes=n, degree=d, exponent=e, communities=c))
      for n, d, e, c in ((10_000, 10, 0.6, 100), (200_000, 10, 0.6, 2_000), (1_000_000, 10, 0.9, 5_000),
                         (30_000, 50, 0.5, 100), (500_000, 50, 0.5, 1_000), (50_000, 200, 0.4, 50),
                         (250_000, 200, 0.4, 250), (100_000, 30, 1.0, 1_000))),
    *((f"cliques {n}x{s}{' shuffled' * m}", f"cliques {s}", n * s, partial(blocks, nodes=n, size=s, shuffled=m))
      for n, s in ((50_000, 12), (100_000, 64), (60_000, 200)) for m in (False, True)),
]  # fmt: skip
