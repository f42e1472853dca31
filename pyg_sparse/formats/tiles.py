"""Tiles of rows: how products with a single feature are divided among blocks of threads (csrc/cuda/spmv.cuh)."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_sparse.formats.rows import Rows

LARGEST_RUN = 1 << 11  # entries that the kernel has room for (csrc/include/pyg_sparse/csr.h): of two of the largest
_LARGEST, _SMALLEST = 1 << 10, 1 << 7  # rows and entries of a tile
_TILES = 1 << 8  # and half of that at least, unless tiles would be too small: a device is busy then


def longest_whole(nnz: int) -> int:
    """Entries of a row from which on its block would hold up all the others, by more than a second launch takes."""
    return max(4096, nnz // 512)


def tile_bounds(rows: Rows, first: int) -> Tensor:
    """int64 ``[tiles + 1]``: where tiles of the rows from ``first`` on start, of about the same cost each."""
    length = rows.lengths()
    index = torch.arange(rows.num_rows, device=length.device)
    cost = rows.rowptr[:-1] + index  # of all rows before
    total = rows.nnz + rows.num_rows
    tile = min(max(1 << (total // _TILES).bit_length(), _SMALLEST), _LARGEST)
    steps = torch.arange(0, total, tile, device=length.device)
    alone = (length > tile).nonzero().flatten()
    ends = index.new_tensor([first, rows.num_rows])
    return torch.unique(torch.cat([torch.searchsorted(cost, steps), alone, alone + 1, ends]).clamp(min=first))


def worth_tiles(rows: Rows, split: int) -> bool:
    """Whether the matrix of these rows gets tiles."""
    if rows.nnz == 0:
        return False
    length = rows.lengths()
    skew = float(length.double().square().sum()) * rows.num_rows / rows.nnz**2
    bounds = int(length.min()), int(length.max())
    return tiles_pay(rows.nnz, rows.num_rows, rows.num_cols, bounds, skew, split)


def tiles_pay(nnz: int, num_rows: int, num_cols: int, bounds: tuple[int, int], skew: float, split: int) -> bool:
    """After measurements of both ways on an H200 (docs/kernel-notes.md).

    ``bounds``: of the rows' lengths. ``skew``: the length of an entry's row, on average, in mean lengths.
    """
    shortest, longest = bounds
    if nnz == 0 or nnz >= 1 << 25 or shortest > longest_whole(nnz):
        return False
    mean = nnz / num_rows
    if mean < 8 and nnz >= 1 << 23:
        return False
    if skew * mean >= 256 and nnz >= 1 << 22 and num_cols > 1 << 15:
        return False  # x would not fit the nearest cache beside the products
    return longest > split or skew >= 1.5 or mean >= 128
