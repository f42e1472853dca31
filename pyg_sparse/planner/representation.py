"""What formats would store: 8 numbers, in positions per entry."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyg_sparse.formats.hyb import Hyb, default_exponent
from pyg_sparse.formats.rows import Rows
from pyg_sparse.planner.blocks import Blocks
from pyg_sparse.planner.statistics import largest, ratio


@dataclass(frozen=True)
class Representation:
    """Positions stored per entry, padding counted; formulas and ranges: docs/features.md.

    Exact but for the three of BSR, which may be estimates.

    Attributes:
        ell: every row as long as the longest.
        sell_8, sell_32, sell_256: every row as long as the longest of so many neighbours by id; a last slice of fewer
            rows is filled up. No sorting: what sorting saves is their distance to 1.
        bsr_4, bsr_8, bsr_16: dense blocks of that width and height wherever there is an entry.
        hyb_padding: the padding alone, of :class:`pyg_sparse.Hyb` with its defaults.
    """

    ell: float
    sell_8: float
    sell_32: float
    sell_256: float
    bsr_4: float
    bsr_8: float
    bsr_16: float
    hyb_padding: float


def representation(rows: Rows, length: Tensor, blocks: Blocks) -> Representation:
    """``length``: int64 ``[num_rows]``, by row id."""
    return Representation(
        ell=ratio(rows.num_rows * largest(length), rows.nnz),
        sell_8=ratio(_sell_positions(length, 8), rows.nnz),
        sell_32=ratio(_sell_positions(length, 32), rows.nnz),
        sell_256=ratio(_sell_positions(length, 256), rows.nnz),
        bsr_4=blocks.expansion(4),
        bsr_8=blocks.expansion(8),
        bsr_16=blocks.expansion(16),
        hyb_padding=hyb_padding(rows, Hyb()),
    )


def _sell_positions(length: Tensor, height: int) -> int:
    slices = pad(length, (0, -length.numel() % height)).view(-1, height)
    return height * int(slices.amax(1).sum())


def hyb_padding(rows: Rows, spec: Hyb) -> float:
    """Padding per entry of hyb(c, k), at least 0 and below 1: exact, but nothing is built.

    With ``c=1`` it follows from the row lengths; with more, a row's entries in each partition are counted in one pass.
    """
    c = min(spec.c, max(rows.num_cols, 1))
    k = default_exponent(rows.nnz, rows.num_rows, c) if spec.k is None else spec.k
    length = rows.lengths() if c == 1 else _segment_lengths(rows, c)
    # A segment's last piece is as wide as its bucket, the others are full.
    rest = length & ((1 << k) - 1)
    width = 1 << torch.arange(k + 1, device=rest.device)
    padded = width[torch.bucketize(rest, width)]
    return ratio(int((padded - rest)[rest > 0].sum()), rows.nnz)


def _segment_lengths(rows: Rows, c: int) -> Tensor:
    width = -(-rows.num_cols // c)
    partition = rows.col.long().div_(width, rounding_mode="floor")
    key = rows.stored_row_of_entries().mul_(c).add_(partition)
    return torch.bincount(key, minlength=rows.num_rows * c)
