"""Edges sorted by target: the structure from which every format is built."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

INT32_MAX = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Rows:
    """Compressed rows in processing order, columns ascending inside a row, duplicates kept.

    Attributes:
        rowptr: int64 ``[num_rows + 1]``, start of each stored row.
        row: int32 ``[num_rows]``, id of each stored row.
        col: int32 ``[nnz]``.
        slot: int32 or int64 ``[nnz]``, the caller's edge at each position; empty when not kept.
        num_rows, num_cols: shape of the matrix.
    """

    rowptr: Tensor
    row: Tensor
    col: Tensor
    slot: Tensor
    num_rows: int
    num_cols: int

    @property
    def nnz(self) -> int:
        return self.col.numel()

    def lengths(self) -> Tensor:
        return self.rowptr.diff()

    def stored_row_of_entries(self) -> Tensor:
        """int64 ``[nnz]``: index into ``row`` of every entry."""
        index = torch.arange(self.num_rows, device=self.rowptr.device)
        return torch.repeat_interleave(index, self.lengths(), output_size=self.nnz)


def sort_by_key(key: Tensor, num_keys: int) -> tuple[Tensor, Tensor]:
    """Stable sort of integer keys in ``[0, num_keys)``: where each key starts, and the order of positions."""
    if key.is_cuda:
        order = torch.sort(key, stable=True).indices
        count = torch.bincount(key, minlength=num_keys)
        return torch.nn.functional.pad(count.cumsum(0), (1, 0)), order
    return torch.ops.pyg_sparse.sort_by_key(key, num_keys)


def rows_from_edges(row: Tensor, col: Tensor, num_rows: int, num_cols: int, *, keep_slots: bool) -> Rows:
    """Sorts edges into rows, rows by descending length, so that neighbours in processing order are alike.

    Args:
        row, col: int32 or int64 ``[E]`` on one device, in range.
    """
    length = torch.bincount(row, minlength=num_rows)
    by_length = torch.sort(length, descending=True, stable=True).indices
    rank = torch.empty(num_rows, dtype=torch.int32, device=row.device)
    rank[by_length] = torch.arange(num_rows, dtype=torch.int32, device=row.device)
    if row.is_cuda:
        key = rank[row].long().mul_(num_cols).add_(col)
        order = torch.sort(key, stable=True).indices
    else:
        _, by_col = sort_by_key(col, num_cols)
        _, by_row = sort_by_key(rank[row.index_select(0, by_col)], num_rows)
        order = by_col.index_select(0, by_row)
    slot_dtype = torch.int32 if row.numel() <= INT32_MAX else torch.int64
    return Rows(
        rowptr=torch.nn.functional.pad(length[by_length].cumsum(0), (1, 0)),
        row=by_length.int(),
        col=col.index_select(0, order).int(),
        slot=order.to(slot_dtype) if keep_slots else torch.empty(0, dtype=slot_dtype, device=row.device),
        num_rows=num_rows,
        num_cols=num_cols,
    )
