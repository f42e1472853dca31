"""Edges sorted by target: the structure from which every format is built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

INT32_MAX = 2**31 - 1
_SORTED_AT_ONCE = 2**29


@dataclass(frozen=True, eq=False)
class Rows:
    """Compressed rows in processing order, duplicates kept.

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


def permute(rows: Rows, order: Tensor) -> Rows:
    """The same rows in another processing order; ``order``: int64 ``[num_rows]``, stored rows."""
    lengths = rows.lengths()[order]
    rowptr = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
    shift = torch.repeat_interleave(rows.rowptr[order] - rowptr[:-1], lengths, output_size=rows.nnz)
    position = shift + torch.arange(rows.nnz, device=shift.device)
    slot = rows.slot[position] if rows.slot.numel() else rows.slot
    return Rows(rowptr, rows.row[order], rows.col[position], slot, rows.num_rows, rows.num_cols)


def sort_by_key(key: Tensor, num_keys: int) -> tuple[Tensor, Tensor]:
    """Stable sort of integer keys in ``[0, num_keys)``: where each key starts, and the order of positions."""
    if key.is_cuda:
        order = torch.sort(key, stable=True).indices
        count = torch.bincount(key, minlength=num_keys)
        return torch.nn.functional.pad(count.cumsum(0), (1, 0)), order
    return torch.ops.pyg_sparse.sort_by_key(key, num_keys)


def _sorted(row: Tensor, col: Tensor, length: Tensor, num_cols: int) -> Tensor:
    """int64 ``[E]``: edges on CUDA by row and then by column. ``length``: of each row."""
    if row.numel() <= _SORTED_AT_ONCE:
        return torch.sort(row.long().mul_(num_cols).add_(col), stable=True).indices
    # torch sorts fewer than 2^31 elements; several rows at a time, in the memory of so many edges.
    end = length.cumsum(0)
    order = torch.empty(row.numel(), dtype=torch.long, device=row.device)
    first_row = done = 0
    while done < row.numel():
        last_row = max(int(torch.searchsorted(end, done + _SORTED_AT_ONCE, right=True)), first_row + 1)
        edge = true_indices(lambda part: (row[part] >= first_row) & (row[part] < last_row), row.numel())  # noqa: B023
        key = row[edge].long().mul_(num_cols).add_(col[edge])
        order[done : done + edge.numel()] = edge[torch.sort(key, stable=True).indices]
        done += edge.numel()
        first_row = last_row
    return order


def true_indices(condition: Callable[[slice], Tensor], size: int) -> Tensor:
    """int64: where a condition holds, asked for slices of ``range(size)`` that ``nonzero`` can take."""
    parts = [
        condition(slice(start, start + _SORTED_AT_ONCE)).nonzero().flatten().add_(start)
        for start in range(0, max(size, 1), _SORTED_AT_ONCE)
    ]
    return torch.cat(parts)


def by_degree(index: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Nodes by descending degree, and how often each node occurs in ``index``."""
    degree = torch.bincount(index, minlength=size)
    return torch.sort(degree, descending=True, stable=True).indices, degree


def _by_phase(order: Tensor) -> Tensor:
    """Stable sort by the reversed bits of the id modulo 8."""
    phase = (order & 1) << 2 | (order & 2) | (order & 4) >> 2
    return order[torch.sort(phase, stable=True).indices]


def rank(order: Tensor) -> Tensor:
    """int32: where each index stands in a permutation."""
    rank = torch.empty(order.numel(), dtype=torch.int32, device=order.device)
    rank[order] = torch.arange(order.numel(), dtype=torch.int32, device=order.device)
    return rank


def rows_from_edges(row: Tensor, col: Tensor, num_rows: int, num_cols: int, *, keep_slots: bool) -> Rows:
    """Sorts edges into rows by descending length, and the columns of a row by id or, on CUDA, by phase and degree.

    Neighbours in processing order are then alike. On CUDA, rows worked on at the same time begin with the same columns:
    those that most rows have, whose features are still in the cache (docs/kernel-notes.md). The phase of a column is
    its id modulo 8: where rows of features start anywhere, those of one phase start equally far from an aligned
    address, and phases that agree modulo 4 or 2 lie side by side (csrc/cuda/frame.cuh). In a CPU's cache columns of one
    phase would share an eighth of the sets.

    Args:
        row, col: int32 or int64 ``[E]`` on one device, in range.
    """
    row_order, length = by_degree(row, num_rows)
    row_rank = rank(row_order)[row]
    if row.is_cuda:
        col_rank = rank(_by_phase(by_degree(col, num_cols)[0]))[col]
        order = _sorted(row_rank, col_rank, length[row_order], num_cols)
    else:
        _, by_col = sort_by_key(col, num_cols)
        _, by_row = sort_by_key(row_rank.index_select(0, by_col), num_rows)
        order = by_col.index_select(0, by_row)
    slot_dtype = torch.int32 if row.numel() <= INT32_MAX else torch.int64
    return Rows(
        rowptr=torch.nn.functional.pad(length[row_order].cumsum(0), (1, 0)),
        row=row_order.int(),
        col=col.index_select(0, order).int(),
        slot=order.to(slot_dtype) if keep_slots else torch.empty(0, dtype=slot_dtype, device=row.device),
        num_rows=num_rows,
        num_cols=num_cols,
    )
