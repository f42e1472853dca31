"""The lengths of a matrix's rows, counted: all that a format's sizes depend on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from pyg_sparse.formats.rows import Rows


@dataclass(frozen=True, eq=False)
class Lengths:
    """``value``: int64, the lengths that occur, ascending; ``count``: int64, how many rows have each."""

    value: np.ndarray
    count: np.ndarray

    @staticmethod
    def of(rows: Rows) -> Lengths:
        value, count = torch.unique(rows.lengths(), return_counts=True)
        return Lengths(value.cpu().numpy(), count.cpu().numpy())

    @property
    def longest(self) -> int:
        return int(self.value[-1]) if self.value.size else 0

    @property
    def shortest(self) -> int:
        return int(self.value[0]) if self.value.size else 0

    def longest_up_to(self, length: int) -> int:
        """The longest of the rows of at most ``length`` entries; 0 if there are none."""
        found = int(np.searchsorted(self.value, length, side="right"))
        return int(self.value[found - 1]) if found else 0

    def longer_than(self, length: int) -> int:
        """How many rows are."""
        return int(self.count[self.value > length].sum())

    def parts(self, length: int) -> int:
        """Into how many parts of at most ``length`` entries the rows that are longer are cut."""
        long = self.value > length
        return int((-(-self.value[long] // length) * self.count[long]).sum())

    def skew(self) -> float:
        """The length of an entry's row, on average, in mean lengths: 1 if all are equal."""
        value = self.value.astype(np.float64)
        entries = float((value * self.count).sum())
        return float((value * value * self.count).sum()) * float(self.count.sum()) / (entries * entries or 1.0)
