"""Compressed sparse rows with long rows split (SparseDitto, RoDe)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyg_sparse.formats.base import FormatSpec, SparseMatrix
from pyg_sparse.formats.checks import each_once, in_range, is_index, is_pointer, positive, require
from pyg_sparse.formats.rows import Rows, permute

_LONGEST_RUN = 1 << 30  # entries that a worker counts in 32 bits
_SHORT = 32  # rows of fewer entries on average have a kernel of their own: as in csrc/cuda/launch_short.cuh
_TEAM = 8  # parts that the warps of a block take at once
# Rows and entries of a tile. The kernel has room for the entries of two of the largest (csrc/include/pyg_sparse/csr.h).
_LARGEST_TILE, _SMALLEST_TILE = 1 << 10, 1 << 7
_TILES = 1 << 8  # and half of that at least, unless tiles would be too small: a device is busy then


@dataclass(frozen=True)
class Csr(FormatSpec):
    """CSR: one worker sums a row; a row of more than ``split`` entries is cut into equal parts.

    Args:
        split: longest run of entries that one worker sums, at most 2^30. None: the next power of two of 8 mean row
            lengths, from 64 to 4096, so that no worker is far behind the others; below 2^18 entries from 32, below 2^14
            of 2 mean lengths from 16.
    """

    name: ClassVar[str] = "csr"
    split: int | None = None

    def __post_init__(self) -> None:
        if self.split is not None:
            positive("split", self.split)
            if self.split > _LONGEST_RUN:
                raise ValueError(f"split={self.split!r} must be at most {_LONGEST_RUN}")

    def build(self, rows: Rows) -> CsrMatrix:
        return CsrMatrix.from_csr(rows, self)


@dataclass(frozen=True, eq=False)
class CsrMatrix(SparseMatrix):
    """Rows in processing order; those longer than the split come first.

    Attributes:
        rowptr: int64 ``[num_rows + 1]``.
        row: int32 ``[num_rows]``, row ids.
        col, slot: ``[nnz]``.
        part_ptr: int64 ``[parts + 1]``, where the parts of the long rows start.
        shared_ptr: int64 ``[long rows + 1]``, the parts of each long row.
        team_ptr: int64 ``[long rows + 1]``, the bounds of the long rows, if there are few entries, rows are short on
            average and none has more parts than a block of threads can sum at once; else ``[1]``. On CUDA no partials
            are left then.
        tile_ptr: int64 ``[tiles + 1]``, tiles of rows for products with one feature: of 128 to 1024 rows and entries
            together, at most 2048 entries if there are several rows. ``[1]`` where such products take the same kernels
            as others.
    """

    name: ClassVar[str] = "csr"
    layout_names: ClassVar[tuple[str, ...]] = (
        "rowptr", "row", "col", "slot", "part_ptr", "shared_ptr", "team_ptr", "tile_ptr",
    )  # fmt: skip
    rowptr: Tensor
    row: Tensor
    part_ptr: Tensor
    shared_ptr: Tensor
    team_ptr: Tensor
    tile_ptr: Tensor

    @classmethod
    def from_csr(cls, rows: Rows, spec: Csr) -> CsrMatrix:
        split = _default_split(rows) if spec.split is None else spec.split
        lengths = rows.lengths()
        if bool((lengths[1:] > lengths[:-1]).any()):
            long_first = torch.sort(lengths <= split, stable=True).indices
            rows = permute(rows, long_first)
            lengths = rows.lengths()
        long = lengths[lengths > split]
        parts = (long + split - 1) // split
        shared_ptr = pad(parts.cumsum(0), (1, 0))
        few_and_short = rows.nnz < min(_SHORT * rows.num_rows, 1 << 20)  # where a second launch counts
        teams = len(long) if few_and_short and not bool((parts > _TEAM).any()) else 0
        num_parts = int(shared_ptr[-1])
        owner = torch.repeat_interleave(torch.arange(len(long), device=long.device), parts, output_size=num_parts)
        nth = torch.arange(num_parts, device=long.device) - shared_ptr[owner]
        start = rows.rowptr[owner] + long[owner] * nth // parts[owner]
        return cls(
            num_rows=rows.num_rows,
            num_cols=rows.num_cols,
            nnz=rows.nnz,
            num_partials=num_parts,
            col=rows.col,
            slot=rows.slot,
            rowptr=rows.rowptr,
            row=rows.row,
            part_ptr=torch.cat([start, rows.rowptr[len(long) : len(long) + 1]]),
            shared_ptr=shared_ptr,
            team_ptr=rows.rowptr[: teams + 1].clone(),
            tile_ptr=_tiles(rows, split),
        )

    def check_structure(self) -> None:
        require(is_pointer(self.rowptr, self.nnz) and self.rowptr.numel() == self.num_rows + 1, "rowptr")
        require(self.row.dtype == torch.int32 and each_once(self.row, self.num_rows), "row")
        require(is_index(self.col, self.nnz, 0, self.num_cols), "col")
        require(is_pointer(self.shared_ptr, self.num_partials), "shared_ptr")
        long_rows = self.shared_ptr.numel() - 1
        require(long_rows <= self.num_rows, "shared_ptr's length")
        require(is_pointer(self.part_ptr, int(self.rowptr[long_rows])), "part_ptr")
        require(self.part_ptr.numel() == self.num_partials + 1, "part_ptr's length")
        require(not bool((self.shared_ptr.diff() < 1).any()), "shared_ptr: a long row without parts")
        runs = torch.cat([self.part_ptr.diff(), self.rowptr[long_rows:].diff()])
        require(in_range(runs, 0, _LONGEST_RUN + 1), "the length of a part or row")
        teams = self.team_ptr.numel() - 1
        require(teams in (0, long_rows) and self.team_ptr.dtype == torch.int64, "team_ptr's length or dtype")
        require(torch.equal(self.team_ptr, self.rowptr[: teams + 1]), "team_ptr")
        require(is_pointer(self.tile_ptr, self.num_rows if self.tile_ptr.numel() > 1 else 0), "tile_ptr")
        in_tile, entries = self.tile_ptr.diff(), self.rowptr[self.tile_ptr].diff()
        most = torch.where(in_tile > 1, 2 * _LARGEST_TILE, _LONGEST_RUN)
        require(not bool(((in_tile == 0) | (entries > most)).any()), "tile_ptr's tiles")

    def stored_entries(self) -> tuple[Tensor, Tensor, Tensor]:
        row = torch.repeat_interleave(self.row.long(), self.rowptr.diff(), output_size=self.nnz)
        return row, self.col.long(), torch.arange(self.nnz, device=self.device)


def _tiles(rows: Rows, split: int) -> Tensor:
    """Where tiles of rows start; none where a warp or a group of lanes a row is faster."""
    length = rows.lengths()
    if not _worth_tiles(rows, length, split):
        return rows.rowptr.new_zeros(1)
    index = torch.arange(rows.num_rows, device=length.device)
    cost = rows.rowptr[:-1] + index  # of all rows before
    total = rows.nnz + rows.num_rows
    tile = min(max(1 << (total // _TILES).bit_length(), _SMALLEST_TILE), _LARGEST_TILE)
    steps = torch.arange(0, total, tile, device=length.device)
    alone = (length > tile).nonzero().flatten()
    ends = index.new_tensor([0, rows.num_rows])
    return torch.unique(torch.cat([torch.searchsorted(cost, steps), alone, alone + 1, ends]))


def _worth_tiles(rows: Rows, length: Tensor, split: int) -> bool:
    """After measurements of both ways on an H200 (docs/kernel-notes.md)."""
    if rows.nnz == 0 or rows.nnz >= 1 << 25:
        return False
    longest, mean = int(length.max()), rows.nnz / rows.num_rows
    if longest > 4096 + rows.nnz // 256:  # all would wait for the block of such a row
        return False
    if mean >= 256 and rows.num_cols > 1 << 15:  # x would not fit the nearest cache beside the products
        return False
    if mean < 8 and rows.nnz >= 1 << 23:
        return False
    # The length of an entry's row, on average, in mean lengths: 1 if all are equal.
    skew = float(length.double().square().sum()) / (rows.nnz * mean)
    return longest > split or skew >= 1.5 or mean >= 128


def _default_split(rows: Rows) -> int:
    """8 mean lengths; less where there are so few entries that a long part takes longer than all the others."""
    few, fewer = rows.nnz < 1 << 18, rows.nnz < 1 << 14
    wanted = (2 if fewer else 8) * rows.nnz // max(rows.num_rows, 1)
    return min(max(1 << max(wanted - 1, 0).bit_length(), 16 if fewer else 32 if few else 64), 4096)
