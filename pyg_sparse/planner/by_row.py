"""One number a row, by row id: independent of the order in which rows and their columns are stored."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pyg_sparse.formats.rows import Rows


@dataclass(frozen=True, eq=False)
class ByRow:
    """int64 ``[num_rows]`` each.

    Attributes:
        length: entries of the row, duplicates counted.
        low, high: its least and greatest column; 0 and -1 in a row without entries.
        diagonal: entries in the column of the same id.
        products: entries of all rows of the second factor that the row's columns name (``SpGemm``).
    """

    length: Tensor
    low: Tensor
    high: Tensor
    diagonal: Tensor
    products: Tensor

    def span(self) -> Tensor:
        """Columns from the first to the last entry, both counted; 0 in a row without entries."""
        return self.high - self.low + 1


def lengths_by_id(rows: Rows) -> Tensor:
    length = rows.rowptr.new_empty(rows.num_rows)
    length[rows.row.long()] = rows.lengths()
    return length


def by_row(rows: Rows, second: Rows) -> ByRow:
    """One pass over the entries (csrc/include/pyg_sparse/row_features.h).

    Args:
        second: the factor that ``rows`` are multiplied with; it has a row for every column of ``rows``.
    """
    weight = lengths_by_id(second)
    length = weight if second is rows else lengths_by_id(rows)
    found = torch.ops.pyg_sparse.row_features(rows.rowptr, rows.row, rows.col, weight)
    return ByRow(length, *found.unbind(0))
