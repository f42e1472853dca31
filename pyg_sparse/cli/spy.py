"""Where a format keeps which entries: for a picture, every entry's place, and the kind of work that sums it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pyg_sparse.formats import CooMatrix, CsrMatrix, HybMatrix, SparseMatrix
from pyg_sparse.planner.blocks import BAND, DENSE

MAX_ENTRIES = 1 << 24  # drawn; of more, an evenly spread part


@dataclass(frozen=True, eq=False)
class Spy:
    """
    Attributes:
        height, width: stored rows (with hyb: ELL rows, of which a long row has several), and columns.
        row, col, kind: int64, of each entry drawn; rows in the order in which they are worked on.
        kinds: the names of the kinds.
        in_tile: bool, the entries in dense 16x16 tiles.
        tiles: how many of these there are; None where not all entries are drawn.
    """

    height: int
    width: int
    row: np.ndarray
    col: np.ndarray
    kind: np.ndarray
    kinds: list[str]
    in_tile: np.ndarray
    tiles: int | None


def spy(matrix: SparseMatrix) -> Spy:
    row, col, kind, kinds, height = _placed(matrix)
    tiles: int | None = None
    in_tile = torch.zeros(col.shape, dtype=torch.bool, device=col.device)
    if col.numel() <= MAX_ENTRIES:
        in_tile, tiles = dense_tiles(row, col, matrix.num_cols)
    step = -(-col.numel() // MAX_ENTRIES) or 1
    drawn_row, drawn_col, drawn_kind, drawn_in = (t[::step].cpu().numpy() for t in (row, col, kind, in_tile))
    return Spy(height, matrix.num_cols, drawn_row, drawn_col, drawn_kind, kinds, drawn_in, tiles)


def _placed(matrix: SparseMatrix) -> tuple[Tensor, Tensor, Tensor, list[str], int]:
    """Row, column and kind of every entry, the kinds' names, and how many rows there are."""
    row_id, col, position = matrix.stored_entries()
    if isinstance(matrix, HybMatrix):
        first = matrix.bucket[:, 0]
        count = torch.nn.functional.pad(first, (0, 1), value=matrix.row.numel()).diff()
        width = torch.repeat_interleave(matrix.bucket[:, 2], count)
        ell_row = torch.repeat_interleave(torch.arange(matrix.row.numel(), device=col.device), width)[position]
        bucket = torch.repeat_interleave(torch.arange(len(first), device=col.device), count)[ell_row]
        names = [f"width {w}: {n:,} rows" for w, n in zip(matrix.bucket[:, 2].tolist(), count.tolist(), strict=True)]
        return ell_row, col, bucket, names, matrix.row.numel()
    if isinstance(matrix, CsrMatrix):
        place = torch.repeat_interleave(torch.arange(matrix.num_rows, device=col.device), matrix.rowptr.diff())
        cut = matrix.shared_ptr.numel() - 1  # rows stored first
        names = [f"whole rows: {matrix.num_rows - cut:,}", f"long rows, cut: {cut:,}"]
        return place, col, (place < cut).long(), names if cut else names[:1], matrix.num_rows
    assert isinstance(matrix, CooMatrix)
    place = torch.unique_consecutive(row_id, return_inverse=True)[1]
    chunk = torch.repeat_interleave(
        torch.arange(matrix.chunk_ptr.numel() - 1, device=col.device), matrix.chunk_ptr.diff()
    )
    height = int(place[-1]) + 1 if place.numel() else 0
    return place, col, chunk % 2, ["even chunks", "odd chunks"], height


def dense_tiles(row: Tensor, col: Tensor, num_cols: int) -> tuple[Tensor, int]:
    """Which entries are in tiles of 16 stored rows by 16 columns with at least 32 of them, and how many those are."""
    across = -(-num_cols // BAND) or 1
    _, tile, count = torch.unique(row // BAND * across + col // BAND, return_inverse=True, return_counts=True)
    dense = count >= DENSE
    return dense[tile], int(dense.sum())
