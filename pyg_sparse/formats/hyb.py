"""hyb(c, k): column partitions and bucketed ELL (SparseTIR, arXiv:2207.04606, section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyg_sparse.formats.base import FormatSpec, SparseMatrix
from pyg_sparse.formats.checks import in_range, is_index, is_pointer, positive, require
from pyg_sparse.formats.rows import Rows, sort_by_key

MAX_PARTITIONS = 1024  # each has a segment of every row


@dataclass(frozen=True)
class Hyb(FormatSpec):
    """hyb(c, k): in each of ``c`` column partitions, a row goes to the bucket of its length.

    Args:
        c: number of column partitions of equal width, at most 1024; never more than there are columns.
        k: exponent of the widest bucket: bucket b holds rows of up to ``2**b`` entries, b = 0 ... k, and longer
            rows are cut into several of ``2**k``. None: the next power of two of the mean row length in a
            partition.
    """

    name: ClassVar[str] = "hyb"
    c: int = 1
    k: int | None = None

    def __post_init__(self) -> None:
        positive("c", self.c)
        if self.c > MAX_PARTITIONS:
            raise ValueError(f"c={self.c!r} must be at most {MAX_PARTITIONS}")
        if self.k is not None and (type(self.k) is not int or not 0 <= self.k <= 20):
            raise ValueError(f"k={self.k!r} must be None or an int from 0 to 20")

    def build(self, rows: Rows) -> HybMatrix:
        return HybMatrix.from_csr(rows, self)


@dataclass(frozen=True, eq=False)
class HybMatrix(SparseMatrix):
    """ELL rows by partition, widest bucket first, in processing order inside a bucket.

    Attributes:
        c, k: the parameters used.
        bucket: int64 ``[buckets, 3]``: first ELL row, position of its first entry, width; empty ones left out.
        row: int32 ``[ELL rows]``, row ids.
        partial: int32 ``[ELL rows]``, the partial that takes the sum, -1 where the ELL row is the whole row.
        col, slot: ``[positions]``; col is -1 in the padding at an ELL row's end.
        shared_row, shared_ptr: rows of several ELL rows with their partials, and rows without entries.
    """

    name: ClassVar[str] = "hyb"
    layout_names: ClassVar[tuple[str, ...]] = ("bucket", "row", "partial", "col", "slot", "shared_row", "shared_ptr")
    c: int
    k: int
    bucket: Tensor
    row: Tensor
    partial: Tensor
    shared_row: Tensor
    shared_ptr: Tensor

    @classmethod
    def from_csr(cls, rows: Rows, spec: Hyb) -> HybMatrix:
        c = min(spec.c, max(rows.num_cols, 1))
        k = default_exponent(rows.nnz, rows.num_rows, c) if spec.k is None else spec.k
        segments = _Segments(rows, c)
        pieces = _Pieces(segments, k)
        position = pieces.position_of_entries(segments)
        col = torch.full((pieces.num_positions,), -1, dtype=torch.int32, device=rows.col.device)
        col[position] = rows.col
        slot = rows.slot
        if slot.numel():
            slot = torch.zeros(pieces.num_positions, dtype=slot.dtype, device=slot.device)
            slot[position] = rows.slot
        partial, shared, shared_ptr = _number_partials(rows, segments, pieces)
        return cls(
            num_rows=rows.num_rows,
            num_cols=rows.num_cols,
            nnz=rows.nnz,
            num_partials=int(shared_ptr[-1]),
            col=col,
            slot=slot,
            c=c,
            k=k,
            bucket=pieces.bucket_table(),
            row=rows.row[segments.stored_row(pieces.owner)[pieces.order]],
            partial=partial[pieces.order].int(),
            shared_row=rows.row[shared],
            shared_ptr=shared_ptr,
        )

    def check_structure(self) -> None:
        ell_rows = self.row.numel()
        require(self.bucket.dtype == torch.int64 and self.bucket.shape[1:] == (3,), "bucket's shape")
        first_row, first_entry, width = self.bucket.unbind(1)
        rows_in_bucket = pad(first_row, (0, 1), value=ell_rows).diff()
        require(bool((rows_in_bucket > 0).all()) and in_range(first_row[:1], 0, 1), "bucket's rows")
        require(in_range(width, 1, (1 << 20) + 1), "bucket's width")
        end = (rows_in_bucket * width).cumsum(0)
        require(torch.equal(first_entry, end - rows_in_bucket * width), "bucket's entries")
        require(
            (int(end[-1]) if len(end) else 0) == self.col.numel() and bool(len(end)) == bool(ell_rows),
            "bucket",
        )
        require(is_index(self.row, ell_rows, 0, self.num_rows), "row")
        require(is_index(self.partial, ell_rows, -1, self.num_partials), "partial")
        require(is_index(self.col, self.col.numel(), -1, self.num_cols), "col")
        starts = torch.zeros(self.col.numel() + 1, dtype=torch.bool, device=self.device)
        starts[self._ell_start()] = True
        after_pad = (self.col[:-1] < 0) & ~starts[1 : self.col.numel()]
        require(not bool((after_pad & (self.col[1:] >= 0)).any()), "col's padding")
        require(int((self.col >= 0).sum()) == self.nnz, "the number of entries")
        require(is_index(self.shared_row, self.shared_row.numel(), 0, self.num_rows), "shared_row")
        require(is_pointer(self.shared_ptr, self.num_partials), "shared_ptr")
        require(self.shared_ptr.numel() == self.shared_row.numel() + 1, "shared_ptr's length")

    def stored_entries(self) -> tuple[Tensor, Tensor, Tensor]:
        rows_in_bucket = pad(self.bucket[:, 0], (0, 1), value=self.row.numel()).diff()
        width = torch.repeat_interleave(self.bucket[:, 2], rows_in_bucket, output_size=self.row.numel())
        row = torch.repeat_interleave(self.row.long(), width, output_size=self.col.numel())
        position = (self.col >= 0).nonzero().flatten()
        return row[position], self.col[position].long(), position

    def _ell_start(self) -> Tensor:
        """int64 ``[ELL rows]``: position of each ELL row's first entry."""
        rows_in_bucket = pad(self.bucket[:, 0], (0, 1), value=self.row.numel()).diff()
        width = torch.repeat_interleave(self.bucket[:, 2], rows_in_bucket, output_size=self.row.numel())
        return width.cumsum(0) - width

    def stats(self) -> dict[str, Any]:
        rows_in_bucket = pad(self.bucket[:, 0], (0, 1), value=self.row.numel()).diff()
        widths, counts = self.bucket[:, 2].tolist(), rows_in_bucket.tolist()
        buckets = [{"width": w, "rows": n} for w, n in zip(widths, counts, strict=True)]
        return {**super().stats(), "c": self.c, "k": self.k, "buckets": buckets}


def default_exponent(nnz: int, num_rows: int, c: int = 1) -> int:
    """The default k."""
    mean = nnz / max(num_rows * c, 1)
    return max(0, min(20, (max(int(mean + 0.999999), 1) - 1).bit_length()))


class _Segments:
    """The part of a row that lies in one column partition; number ``partition * num_rows + stored row``.

    ``of_entries`` and ``offset`` are int64 ``[nnz]``: an entry's segment and its place in it; ``length`` is
    ``[c * num_rows]``.
    """

    def __init__(self, rows: Rows, c: int) -> None:
        self.num_rows = rows.num_rows
        self.of_entries = rows.stored_row_of_entries()
        place = torch.arange(rows.nnz, device=rows.col.device)
        if c == 1:
            self.length = rows.lengths()
            self.offset = place - rows.rowptr[self.of_entries]
            return
        width = (rows.num_cols + c - 1) // c
        self.of_entries += rows.col.long().div_(width, rounding_mode="floor").mul_(rows.num_rows)
        start, order = sort_by_key(self.of_entries, c * rows.num_rows)
        self.length = start.diff()
        self.offset = torch.empty_like(place)
        self.offset[order] = place - start[self.of_entries[order]]

    def stored_row(self, segment: Tensor) -> Tensor:
        return segment % max(self.num_rows, 1)


class _Pieces:
    """Segments cut into ELL rows of at most ``2**k`` entries, in bucket order through ``order``."""

    def __init__(self, segments: _Segments, k: int) -> None:
        self.k = k
        per_segment = (segments.length + (1 << k) - 1) >> k
        self.first = per_segment.cumsum(0) - per_segment
        num_pieces = int(per_segment.sum())
        device = segments.length.device
        self.owner = torch.repeat_interleave(
            torch.arange(segments.length.numel(), device=device), per_segment, output_size=num_pieces
        )
        nth = torch.arange(num_pieces, device=device) - self.first[self.owner]
        length = (segments.length[self.owner] - (nth << k)).clamp_(max=1 << k)
        exponent = torch.log2(length.double()).ceil_().long()
        bucket = (self.owner // max(segments.num_rows, 1)) * (k + 1) + (k - exponent)
        self.order = torch.sort(bucket, stable=True).indices
        self.exponent = exponent[self.order]
        self.bucket = bucket[self.order]
        width = 1 << self.exponent
        end = width.cumsum(0)
        self.num_positions = int(end[-1]) if num_pieces else 0
        self.start = torch.empty_like(end)
        self.start[self.order] = end - width  # by piece, not by order

    def position_of_entries(self, segments: _Segments) -> Tensor:
        piece = self.first[segments.of_entries] + (segments.offset >> self.k)
        return self.start[piece] + (segments.offset & ((1 << self.k) - 1))

    def bucket_table(self) -> Tensor:
        new = torch.ones_like(self.bucket, dtype=torch.bool)
        new[1:] = self.bucket[1:] != self.bucket[:-1]
        first = new.nonzero().flatten()
        piece = self.order[first]
        return torch.stack([first, self.start[piece], 1 << self.exponent[first]], dim=1).contiguous()


def _number_partials(rows: Rows, segments: _Segments, pieces: _Pieces) -> tuple[Tensor, Tensor, Tensor]:
    """The partial of each piece (-1: none), the stored rows that have several or none, and their partials."""
    row = segments.stored_row(pieces.owner)
    contributions = torch.bincount(row, minlength=rows.num_rows)
    is_shared = contributions != 1
    shared = is_shared.nonzero().flatten()
    member = is_shared[row].nonzero().flatten()
    by_row = member[torch.sort(row[member], stable=True).indices]
    partial = torch.full_like(row, -1)
    partial[by_row] = torch.arange(by_row.numel(), device=row.device)
    return partial, shared, pad(contributions[shared].cumsum(0), (1, 0))
