"""How a CUDA product is laid out over warps: what csrc/cuda/launch.cuh and launch_short.cuh decide."""

from __future__ import annotations

from dataclasses import dataclass

from pyg_sparse.planner.work import Work

_WARP, _WARPS_TO_FILL = 32, 32
_LONG, _SHORT, _MEDIUM, _NARROW_BYTES = 128, 32, 64, 192
_SLICE_LANES = 16


@dataclass(frozen=True)
class Launch:
    """
    Attributes:
        kernel: ``"tile"``, ``"short"`` or ``"long"``.
        lanes: of a warp, side by side across a slice of the features.
        neighbours: entries of a row that are loaded side by side.
        part_neighbours: the same of a part of a cut row.
        unroll: loads of each lane that are on their way at a time.
        slices: of the features, each of which reads the indices.
        sharing: rows that share a warp.
    """

    kernel: str
    lanes: int
    neighbours: int
    part_neighbours: int
    unroll: int
    slices: int
    sharing: int


def launch_of(work: Work, k: int, itemsize: int, cores: int, cache_bytes: int) -> Launch:
    if work.tiles and k == 1:
        return Launch("tile", 1, 1, 1, 8, 1, 1)
    row_bytes = k * itemsize
    vectors = row_bytes % 16 == 0
    lanes = -(-row_bytes // 16) if vectors else k
    items, filled = max(work.items, 1), cores * _WARPS_TO_FILL
    short = _MEDIUM if row_bytes <= _NARROW_BYTES else _SHORT
    if work.format != "coo" and work.nnz < short * items:
        return _short(lanes, items, work.nnz / items, filled)
    few = work.nnz < _LONG * items

    def share(group: int) -> bool:
        return lanes <= group and few and items >= filled * (_WARP // group)

    group = 8 if share(8) else 16 if lanes > 8 and share(16) else _WARP
    narrow = group == _WARP and not few and work.num_cols * _SLICE_LANES * 16 <= cache_bytes * 5 // 4
    slices = -(-lanes // min(group, _SLICE_LANES if narrow else _WARP))
    lanes = -(-lanes // slices)
    neighbours = max(group // lanes, 1)
    return Launch("long", lanes, neighbours, neighbours, max(min(8, group // neighbours), 1), slices, _WARP // group)


def _short(lanes: int, items: int, mean: float, filled: int) -> Launch:
    slices = -(-lanes // _WARP)
    lanes = min(lanes, _WARP)

    def warps(neighbours: int) -> int:
        return -(-items // (_WARP // (lanes * neighbours))) * slices

    neighbours = part_neighbours = 1
    while 2 * neighbours * lanes <= _WARP and (
        (2 * neighbours * lanes <= 4 and mean > 8 * neighbours)
        or (mean > neighbours and warps(2 * neighbours) <= filled)
    ):
        neighbours *= 2
    while 2 * part_neighbours * lanes <= _WARP:
        part_neighbours *= 2
    deep = mean > (8 if lanes > 16 else 4) * neighbours
    sharing = _WARP // (lanes * neighbours)
    return Launch("short", lanes, neighbours, part_neighbours, 8 if deep else 4, slices, sharing)
