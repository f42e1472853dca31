"""Coordinates sorted by row and chunked by nonzeros (SNACK): perfect balance whatever the row lengths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyg_sparse.formats.base import FormatSpec, SparseMatrix
from pyg_sparse.formats.checks import is_index, is_pointer, positive, require
from pyg_sparse.formats.rows import Rows


@dataclass(frozen=True)
class Coo(FormatSpec):
    """COO: one worker sums ``chunk`` consecutive entries, whichever rows they belong to.

    Args:
        chunk: entries in a chunk.
    """

    name: ClassVar[str] = "coo"
    chunk: int = 256

    def __post_init__(self) -> None:
        positive("chunk", self.chunk)

    def build(self, rows: Rows) -> CooMatrix:
        return CooMatrix.from_csr(rows, self)


@dataclass(frozen=True, eq=False)
class CooMatrix(SparseMatrix):
    """Entries in processing order of their rows.

    Attributes:
        row, col, slot: ``[nnz]``.
        chunk_ptr: int64 ``[chunks + 1]``.
        head, tail: int32 ``[chunks]``, the partial that takes the chunk's first and last row, -1 where the chunk
            holds that row whole; where first and last are the same row, head.
        shared_row, shared_ptr: rows that cross a chunk border with their partials, and rows without entries.
    """

    name: ClassVar[str] = "coo"
    layout_names: ClassVar[tuple[str, ...]] = (
        "row", "col", "slot", "chunk_ptr", "head", "tail", "shared_row", "shared_ptr",
    )  # fmt: skip
    row: Tensor
    chunk_ptr: Tensor
    head: Tensor
    tail: Tensor
    shared_row: Tensor
    shared_ptr: Tensor

    @classmethod
    def from_csr(cls, rows: Rows, spec: Coo) -> CooMatrix:
        device = rows.rowptr.device
        stored = rows.stored_row_of_entries()
        begin = torch.arange(0, rows.nnz, spec.chunk, device=device)
        end = (begin + spec.chunk).clamp_(max=rows.nnz)
        first, last = stored[begin], stored[end - 1]
        border = torch.stack([first, last], dim=1)  # [chunks, 2]
        whole = (rows.rowptr[border] >= begin[:, None]) & (rows.rowptr[border + 1] <= end[:, None])
        needs_partial = ~whole
        needs_partial[:, 1] &= first != last
        # Entry order is row order, so numbering partials along it keeps those of one row together.
        number = needs_partial.flatten().cumsum(0).view(-1, 2) - 1
        number[~needs_partial] = -1
        contributions = torch.bincount(border[needs_partial], minlength=rows.num_rows)
        shared = ((contributions > 0) | (rows.lengths() == 0)).nonzero().flatten()
        return cls(
            num_rows=rows.num_rows,
            num_cols=rows.num_cols,
            nnz=rows.nnz,
            num_partials=int(needs_partial.sum()),
            col=rows.col,
            slot=rows.slot,
            row=rows.row[stored],
            chunk_ptr=torch.cat([begin, end[-1:]]) if len(begin) else torch.zeros(1, dtype=torch.long, device=device),
            head=number[:, 0].int(),
            tail=number[:, 1].int(),
            shared_row=rows.row[shared],
            shared_ptr=pad(contributions[shared].cumsum(0), (1, 0)),
        )

    def check_structure(self) -> None:
        require(is_index(self.row, self.nnz, 0, self.num_rows), "row")
        require(is_index(self.col, self.nnz, 0, self.num_cols), "col")
        require(is_pointer(self.chunk_ptr, self.nnz), "chunk_ptr")
        for name in ("head", "tail"):
            chunks = self.chunk_ptr.numel() - 1
            require(is_index(getattr(self, name), chunks, -1, self.num_partials), name)
        require(is_index(self.shared_row, self.shared_row.numel(), 0, self.num_rows), "shared_row")
        require(is_pointer(self.shared_ptr, self.num_partials), "shared_ptr")
        require(self.shared_ptr.numel() == self.shared_row.numel() + 1, "shared_ptr's length")

    def stored_entries(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.row.long(), self.col.long(), torch.arange(self.nnz, device=self.device)
