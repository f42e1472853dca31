"""Synthetic graphs with the size, degree skew and community structure of well-known benchmark graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


@dataclass(frozen=True)
class Shape:
    """What a synthetic graph takes from the real one.

    ``nodes``, ``entries`` (edges, both directions counted), ``classes`` and ``features`` are the real data
    set's. ``communities``, ``inside`` and ``tail`` are the generator's: the number of communities at scale 1,
    the share of an ordinary node's edges that stay inside its community, and how heavy-tailed degrees are.
    """

    nodes: int
    entries: int
    classes: int
    features: int
    communities: int
    inside: float
    tail: float


SHAPES: dict[str, Shape] = {
    # Hamilton et al. 2017, as torch_geometric.datasets.Reddit.
    "reddit": Shape(232_965, 114_615_892, 41, 602, communities=123, inside=0.8, tail=0.19),
    # Hu et al. 2020, ogbn-*. arxiv: 1,166,243 citations, each in both directions, repeats removed.
    "arxiv": Shape(169_343, 2_315_598, 40, 128, communities=800, inside=0.7, tail=0.6),
    "products": Shape(2_449_029, 123_718_280, 47, 100, communities=4_700, inside=0.8, tail=0.325),
    # The classes stand for proteins' 112 yes/no tasks, the features for the means of its 8 edge features.
    "proteins": Shape(132_534, 79_122_504, 112, 8, communities=112, inside=0.6, tail=0.01),
}

# Below these a small graph would be so dense that it has no communities.
MAX_MEAN_DEGREE = 1 / 32
MAX_DEGREE = 1 / 4
EDGE_TOLERANCE = 0.005


@dataclass(frozen=True)
class ShapedGraph:
    """A synthetic graph and how it was made.

    ``edge_index`` is int64 ``[2, E]``, sorted by source then target; ``community`` is int64 ``[num_nodes]``.
    """

    name: str
    edge_index: Tensor
    num_nodes: int
    community: Tensor
    seed: int
    scale: float


def shape_of(name: str) -> Shape:
    """The :class:`Shape` called ``name``."""
    if name not in SHAPES:
        raise ValueError(f"name must be one of {', '.join(SHAPES)}, got {name!r}")
    return SHAPES[name]


def shaped_graph(name: str, *, scale: float = 1.0, seed: int = 0, device: torch.device | str = "cpu") -> ShapedGraph:
    """A synthetic graph shaped like ``name``: ``"reddit"``, ``"arxiv"``, ``"products"`` or ``"proteins"``.

    The graph is a degree-corrected stochastic block model: expected degrees follow a shifted Pareto law whose
    tail gives about the real graph's largest degree, communities differ in size, most edges stay inside a
    community, and node ids are a random permutation. Like the real graphs it is symmetric and has no
    self-loops and no repeated edges; unlike them it has a few nodes without edges. ``edge_index.size(1)`` is
    within 0.5 % of the real count.

    Args:
        name: the graph to imitate.
        scale: in (0, 1]. Nodes and communities are multiplied by it (a class keeps at least one community and
            two nodes). The mean degree stays, unless it would exceed 1/32 of the nodes, and a node's expected
            degree is at most 1/4 of them.
        seed: determines communities, expected degrees and node ids. The edges depend on the device type, too:
            torch's CPU and CUDA generators draw different numbers, and CUDA's may differ between GPU models.
        device: where the edges are drawn and the tensors live.
    """
    shape = shape_of(name)
    if not 0 < scale <= 1:
        raise ValueError(f"scale must be in (0, 1], got {scale}")
    device = torch.device(device)
    nodes = max(2 * shape.classes, round(shape.nodes * scale))
    mean_degree = min(shape.entries / shape.nodes, nodes * MAX_MEAN_DEGREE)

    # Per-node quantities are small; drawn on the CPU they are the same for every device.
    host = torch.Generator().manual_seed(seed)
    sizes = _community_sizes(nodes, max(shape.classes, round(shape.communities * scale)))
    degree = _expected_degrees(nodes, mean_degree, shape.tail)[torch.randperm(nodes, generator=host)]
    # A hub does not find its degree in one community, so fewer of its edges stay inside.
    own_size = sizes.repeat_interleave(sizes)
    inside = (own_size / degree).clamp(max=shape.inside)
    node_id = torch.randperm(nodes, generator=host)
    community = torch.empty(nodes, dtype=torch.int64)
    community[node_id] = torch.arange(len(sizes)).repeat_interleave(sizes)

    edge_index = _draw_edges(
        pairs=round(nodes * mean_degree / 2),
        parts=(
            _Part.of(degree * inside, sizes).to(device),
            _Part.of(degree * (1 - inside), torch.tensor([nodes])).to(device),
        ),
        node_id=node_id.to(device),
        generator=torch.Generator(device).manual_seed(seed),
    )
    return ShapedGraph(name, edge_index, nodes, community.to(device), seed, scale)


def _community_sizes(nodes: int, count: int) -> Tensor:
    """Int64 ``[count]`` sizes that sum to ``nodes``, falling as 1 / sqrt(rank)."""
    share = torch.arange(1, count + 1, dtype=torch.float64).rsqrt().cumsum(0)
    border = (share / share[-1] * nodes).round().long()
    return border.diff(prepend=torch.zeros(1, dtype=torch.int64))


def _expected_degrees(nodes: int, mean: float, tail: float) -> Tensor:
    """Float64 ``[nodes]``: the quantiles of one plus a shifted Pareto law, capped, with the given mean."""
    quantile = (torch.arange(nodes, dtype=torch.float64) + 0.5) / nodes
    law = (1 - quantile) ** -tail - 1
    degree = (1 + law * ((mean - 1) / law.mean())).clamp(max=nodes * MAX_DEGREE)
    return degree * (mean / degree.mean())


class _Part(NamedTuple):
    """Edges whose two ends lie in the same block of consecutive nodes, each end drawn by weight.

    ``cdf`` float64 ``[nodes]`` is the running sum of the weights; ``low`` and ``high`` are its values at the
    borders of each node's block.
    """

    cdf: Tensor
    low: Tensor
    high: Tensor

    @staticmethod
    def of(weight: Tensor, sizes: Tensor) -> _Part:
        cdf = weight.cumsum(0)
        high = cdf[sizes.cumsum(0) - 1]
        low = torch.cat([cdf.new_zeros(1), high[:-1]])
        return _Part(cdf, low.repeat_interleave(sizes), high.repeat_interleave(sizes))

    def to(self, device: torch.device) -> _Part:
        return _Part(*(t.to(device) for t in self))

    def draw(self, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Both ends of ``count`` random edges."""

        def end(low: Tensor | float, high: Tensor) -> Tensor:
            point = torch.rand(count, dtype=torch.float64, device=self.cdf.device, generator=generator)
            found = torch.searchsorted(self.cdf, point.mul_(high - low).add_(low), right=True)
            return found.clamp_(max=len(self.cdf) - 1)

        first = end(0.0, self.cdf[-1])
        return first, end(self.low[first], self.high[first])


def _draw_edges(pairs: int, parts: tuple[_Part, _Part], node_id: Tensor, generator: torch.Generator) -> Tensor:
    """About ``pairs`` distinct undirected edges, as int64 ``[2, 2 * pairs]`` with both directions, sorted."""
    nodes = len(node_id)
    inside = float(parts[0].cdf[-1] / (parts[0].cdf[-1] + parts[1].cdf[-1]))
    keys = torch.empty(0, dtype=torch.int64, device=node_id.device)
    # Repeated edges and self-loops are dropped and replaced, until hardly any are missing.
    kept = 1.0
    while (missing := pairs - len(keys)) > pairs * EDGE_TOLERANCE:
        before, draws = len(keys), round(missing / kept)
        from_inside = round(draws * inside)
        for part, count in zip(parts, (from_inside, draws - from_inside), strict=True):
            a, b = (node_id[end] for end in part.draw(count, generator))
            keys = torch.cat([keys, (torch.minimum(a, b) * nodes + torch.maximum(a, b))[a != b]])
        keys = torch.unique(keys)
        kept = (len(keys) - before) / draws
    low, high = keys // nodes, keys % nodes
    keys = torch.cat([keys, high.mul_(nodes).add_(low)]).sort().values
    return torch.stack([keys // nodes, keys % nodes])
