"""Occupied 4x4, 8x8 and 16x16 blocks, counted in bands of 16 rows: in all of them, or in a sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from pyg_sparse.formats.rows import Rows
from pyg_sparse.planner.sampling import distinct, entries, sample, sorted_keys, stored

BAND = 16  # rows, and columns of a tile
DENSE = 32  # entries from which on a tile of 256 positions is dense
BUDGET = 1 << 20  # entries that are looked at


@dataclass(frozen=True)
class Blocks:
    """What was counted.

    Attributes:
        entries: looked at.
        occupied: blocks that hold one of them, by the blocks' width: 4, 8 and 16.
        in_dense: entries in tiles (16x16) of at least 32.
        exact: whether all entries were looked at.
    """

    entries: int
    occupied: dict[int, int]
    in_dense: int
    exact: bool

    def expansion(self, width: int) -> float:
        """Positions of the occupied blocks per entry."""
        return self.occupied[width] * width**2 / self.entries if self.entries else 0.0


def count_blocks(rows: Rows, rng: np.random.Generator, budget: int = BUDGET) -> Blocks:
    """Bands are drawn with equal probability, as many as hold ``budget`` entries on average.

    What is made of them are ratios to the entries of the same bands: consistent, with a bias that falls as one over
    the number of bands.
    """
    num_bands = -(-rows.num_rows // BAND)
    wanted = num_bands if rows.nnz <= budget else max(num_bands * budget // rows.nnz, 1)
    band = sample(num_bands, wanted, rng)
    row = (band[:, None] * BAND + torch.arange(BAND, device=band.device)).flatten()
    row = row[row < rows.num_rows].to(rows.row.device)
    position, owner = entries(rows.rowptr, stored(rows.row)[row])
    r, c = owner % BAND, rows.col[position].long()  # only the last band can have fewer rows
    # A tile's blocks of 8, and their blocks of 4, are numbered inside it: one sort serves all three widths.
    eight = (r >> 3) * 2 + ((c >> 3) & 1)
    four = ((r >> 2) & 1) * 2 + ((c >> 2) & 1)
    key = (c >> 4 << 4) | eight << 2 | four
    ordered = sorted_keys(owner // BAND, key, len(band), -(-rows.num_cols // BAND) * BAND)
    in_tile = torch.unique_consecutive(ordered >> 4, return_counts=True)[1]
    occupied = {4: distinct(ordered), 8: distinct(ordered >> 2), 16: in_tile.numel()}
    in_dense = int(in_tile[in_tile >= DENSE].sum())
    return Blocks(position.numel(), occupied, in_dense, exact=wanted >= num_bands)
