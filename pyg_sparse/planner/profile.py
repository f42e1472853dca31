"""What an order of rows means for caches and warps, counted without running a product."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyg_sparse.formats.rows import Rows, sort_by_key
from pyg_sparse.order import Order

ROWS_IN_FLIGHT = 48  # of one multiprocessor
CORES = 128  # that take blocks of rows in turn
SHARING = (2, 4, 8, 16, 32)  # rows that share a warp
WINDOWS = tuple(1 << i for i in range(8, 20, 2))  # entries
NEIGHBOURS = 8  # columns whose narrow rows of x lie in one sector
_STRETCHES, _CPU_STRETCHES = 4, 1
_SAMPLES = 48
_LONGEST = 4096  # entries that a warp sums, whatever the row


@dataclass(frozen=True)
class OrderProfile:
    """Numbers of an order of a matrix's rows, all of them between 0 and 1 but for ``steps``.

    Attributes:
        core: distinct columns per entry among the rows that one multiprocessor has in flight; 1 on the CPU.
        core_of_8: the same for groups of 8 neighbouring columns.
        reuse: for each of ``WINDOWS``, the share of entries whose column does not occur among so many entries before.
        reuse_of_8: the same for groups of 8 neighbouring columns.
        steps: for each of ``SHARING``, steps of a warp per step of work, where so many rows share one; at least 1.
    """

    core: float
    core_of_8: float
    reuse: tuple[float, ...]
    reuse_of_8: tuple[float, ...]
    steps: tuple[float, ...]

    def steps_of(self, sharing: int) -> float:
        """Steps of a warp per step of work, where about ``sharing`` rows share one; 1 where rows have their own."""
        return 1.0 if sharing < SHARING[0] else self.steps[bisect_right(SHARING, sharing) - 1]

    def at(self, together: float) -> tuple[float, tuple[float, ...]]:
        """``core`` and ``reuse`` where ``together`` neighbouring columns are loaded at once, 1 to 8."""
        share = math.log(min(max(together, 1.0), NEIGHBOURS), NEIGHBOURS)

        def between(one: float, eight: float) -> float:
            return one + (eight - one) * share

        reuse = tuple(between(one, eight) for one, eight in zip(self.reuse, self.reuse_of_8, strict=True))
        return between(self.core, self.core_of_8), reuse


def order_profile(rows: Rows, order: Order) -> OrderProfile:
    if rows.nnz == 0:
        ones = (1.0,) * len(WINDOWS)
        return OrderProfile(1.0, 1.0, ones, ones, (1.0,) * len(SHARING))
    core = core_of_8 = 1.0
    if rows.col.is_cuda:
        core, core_of_8 = distinct(rows, order.row)
    reuse, reuse_of_8 = reuse_curves(rows, order.row)
    steps = tuple(warp_steps(rows, order.row, sharing) for sharing in SHARING)
    return OrderProfile(core, core_of_8, reuse, reuse_of_8, steps)


def warp_steps(rows: Rows, order: Tensor, sharing: int) -> float:
    """Steps that warps take per step of work, where so many consecutive rows share one: as long as its longest."""
    lengths = pad(rows.lengths()[order], (0, -rows.num_rows % sharing)).view(-1, sharing)
    return float(lengths.amax(1).sum()) * sharing / rows.nnz


def reuse_curves(rows: Rows, order: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The shares of entries whose column, and whose group of 8 columns, does not occur among the ``w`` entries before.

    For each ``w`` of ``WINDOWS``. Counted over the second half of a few stretches of twice the largest window, evenly
    spaced over the order; exact for a matrix of one stretch.
    """
    end = rows.lengths()[order].cumsum(0)
    size = min(2 * WINDOWS[-1], rows.nnz)
    stretches = 1 if size == rows.nnz else _STRETCHES if rows.col.is_cuda else _CPU_STRETCHES
    seen = 0
    near = [[0] * len(WINDOWS), [0] * len(WINDOWS)]
    for i in range(stretches):
        start = (rows.nnz - size) * (2 * i + 1) // (2 * stretches)
        col = _columns_in_order(rows, order, end, start, size)
        half = 0 if size == rows.nnz else size // 2
        seen += col.numel() - half
        for group, counts in zip((1, NEIGHBOURS), near, strict=True):
            gap = _gaps(col // group if group > 1 else col, rows.num_cols // group + 1, half)
            for j, window in enumerate(WINDOWS):
                counts[j] += int((gap <= window).sum())
    return tuple(1.0 - c / seen for c in near[0]), tuple(1.0 - c / seen for c in near[1])


def _columns_in_order(rows: Rows, order: Tensor, end: Tensor, start: int, size: int) -> Tensor:
    """Columns of the ``size`` entries from ``start`` on, in the order of the rows; ``end``: where each row ends."""
    place = torch.arange(start, start + size, device=end.device)
    row = torch.searchsorted(end, place, right=True)
    stored = order[row]
    return rows.col[rows.rowptr[stored + 1] - end[row] + place]


def _gaps(key: Tensor, num_keys: int, first: int) -> Tensor:
    """How far before each position from ``first`` on its key stood last, where it did."""
    _, by_key = sort_by_key(key, num_keys)
    sorted_key = key[by_key]
    again = (sorted_key[1:] == sorted_key[:-1]) & (by_key[1:] >= first)
    return (by_key[1:] - by_key[:-1])[again]


def distinct(rows: Rows, order: Tensor) -> tuple[float, float]:
    """Distinct columns, and groups of 8, per entry among the rows in flight on one multiprocessor.

    These are every ``CORES``-th block of 8 rows of a window. Counted in windows evenly spaced over the order.
    """
    device = rows.col.device
    block, window = 8, ROWS_IN_FLIGHT * CORES
    span = min(window, rows.num_rows)
    start = torch.linspace(0, rows.num_rows - span, _SAMPLES, device=device).long()
    offset = torch.arange(0, span, block * CORES, device=device)
    place = (start[:, None, None] + offset[:, None] + torch.arange(block, device=device)).flatten(1)
    stored = order[place.clamp(max=rows.num_rows - 1)]
    lengths = rows.lengths()[stored].clamp_(max=_LONGEST).masked_fill_(place >= rows.num_rows, 0).flatten()
    count = int(lengths.sum())
    if count == 0:
        return 1.0, 1.0
    owner = torch.repeat_interleave(torch.arange(lengths.numel(), device=device), lengths, output_size=count)
    begin = rows.rowptr[stored].flatten() - (lengths.cumsum(0) - lengths)
    col = rows.col[begin[owner] + torch.arange(count, device=device)].long()
    stride = -(-rows.num_cols // NEIGHBOURS) * NEIGHBOURS  # groups of two windows never share a key
    key = torch.unique(owner // stored.size(1) * stride + col)
    return key.numel() / count, torch.unique_consecutive(key // NEIGHBOURS).numel() / count
