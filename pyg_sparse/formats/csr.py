"""Compressed sparse rows with long rows split (SparseDitto, RoDe)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyg_sparse.formats.base import FormatSpec, SparseMatrix
from pyg_sparse.formats.checks import each_once, in_range, is_index, is_pointer, positive, require
from pyg_sparse.formats.rows import Rows, permute
from pyg_sparse.formats.tiles import LARGEST_RUN, longest_whole, tile_bounds, worth_tiles

_LONGEST_RUN = 1 << 30  # entries that a worker counts in 32 bits
_SHORT = 32  # rows of fewer entries on average have a kernel of their own: as in csrc/cuda/launch_short.cuh
_TEAM = 1 << 10  # entries that the warps of a block sum sooner than a second launch would add up their parts
# Up to how many entries a matrix has that split, in mean lengths, and at least that one.
_SPLITS = ((1 << 14, 2, 16), (1 << 15, 2, 32), (1 << 18, 4, 32), (math.inf, 8, 64))


@dataclass(frozen=True)
class Csr(FormatSpec):
    """CSR: one worker sums a row; a row of more than ``split`` entries is cut into equal parts.

    Args:
        split: longest run of entries that one worker sums, at most 2^30. None: the next power of two of 8 mean row
            lengths, from 64 to 4096, so that no worker is far behind the others; below 2^18 entries of 4 mean lengths,
            from 32; below 2^15 of 2; below 2^14 from 16.
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
    """Rows in processing order; those longer than the split come first, the longest of all before the others.

    Attributes:
        rowptr: int64 ``[num_rows + 1]``.
        row: int32 ``[num_rows]``, row ids.
        col, slot: ``[nnz]``.
        part_ptr: int64 ``[parts + 1]``, where the parts of the long rows start.
        shared_ptr: int64 ``[long rows + 1]``, the parts of each long row.
        team_ptr: int64 ``[long rows + 1]``, the bounds of the long rows, if there are few entries, rows are short on
            average and none has more than 1024 entries; else ``[1]``. On CUDA a block of threads sums each of them
            then, and no partials are left.
        tile_ptr: int64 ``[tiles + 1]``, tiles of rows for products with one feature: of 128 to 1024 rows and entries
            together, at most 2048 entries if there are several rows. ``[1]`` where such products take the same kernels
            as others.
        tile_part_ptr, tile_shared_ptr: as part_ptr and shared_ptr, for the first rows, which are in no tile since a
            block of threads would hold up all the others; ``[1]`` without any.
    """

    name: ClassVar[str] = "csr"
    layout_names: ClassVar[tuple[str, ...]] = (
        "rowptr", "row", "col", "slot", "part_ptr", "shared_ptr", "team_ptr", "tile_ptr", "tile_part_ptr",
        "tile_shared_ptr",
    )  # fmt: skip
    rowptr: Tensor
    row: Tensor
    part_ptr: Tensor
    shared_ptr: Tensor
    team_ptr: Tensor
    tile_ptr: Tensor
    tile_part_ptr: Tensor
    tile_shared_ptr: Tensor

    @classmethod
    def from_csr(cls, rows: Rows, spec: Csr) -> CsrMatrix:
        split = default_split(rows.nnz, rows.num_rows) if spec.split is None else spec.split
        lengths = rows.lengths()
        tiled = worth_tiles(rows, split)
        whole = longest_whole(rows.nnz) if tiled else _LONGEST_RUN
        if bool((lengths[1:] > lengths[:-1]).any()):
            rows = permute(rows, torch.sort((lengths <= split).int() + (lengths <= whole), stable=True).indices)
            lengths = rows.lengths()
        long, alone = int((lengths > split).sum()), int((lengths > whole).sum()) if tiled else 0
        part_ptr, shared_ptr = _parts(rows, long, split)
        tile_part_ptr, tile_shared_ptr = _parts(rows, alone, LARGEST_RUN)
        longest = int(lengths.max()) if lengths.numel() else 0
        teams = long if sums_in_teams(rows.nnz, rows.num_rows, longest) else 0
        return cls(
            num_rows=rows.num_rows,
            num_cols=rows.num_cols,
            nnz=rows.nnz,
            num_partials=max(part_ptr.numel(), tile_part_ptr.numel()) - 1,
            col=rows.col,
            slot=rows.slot,
            rowptr=rows.rowptr,
            row=rows.row,
            part_ptr=part_ptr,
            shared_ptr=shared_ptr,
            team_ptr=rows.rowptr[: teams + 1].clone(),
            tile_ptr=tile_bounds(rows, alone) if tiled else rows.rowptr.new_zeros(1),
            tile_part_ptr=tile_part_ptr,
            tile_shared_ptr=tile_shared_ptr,
        )

    def check_structure(self) -> None:
        require(is_pointer(self.rowptr, self.nnz) and self.rowptr.numel() == self.num_rows + 1, "rowptr")
        require(self.row.dtype == torch.int32 and each_once(self.row, self.num_rows), "row")
        require(is_index(self.col, self.nnz, 0, self.num_cols), "col")
        long_rows = self._check_parts("part_ptr", "shared_ptr")
        alone = self._check_parts("tile_part_ptr", "tile_shared_ptr")
        partials = max(self.part_ptr.numel(), self.tile_part_ptr.numel()) - 1
        require(partials == self.num_partials, "the number of partials")
        require(in_range(self.rowptr[long_rows:].diff(), 0, _LONGEST_RUN + 1), "the length of a row")
        teams = self.team_ptr.numel() - 1
        require(teams in (0, long_rows) and self.team_ptr.dtype == torch.int64, "team_ptr's length or dtype")
        require(torch.equal(self.team_ptr, self.rowptr[: teams + 1]), "team_ptr")
        tiles = self.tile_ptr.numel() - 1
        require(tiles > 0 or alone == 0, "tile_part_ptr without tiles")
        require(is_pointer(self.tile_ptr - alone, self.num_rows - alone if tiles > 0 else 0), "tile_ptr")
        in_tile, entries = self.tile_ptr.diff(), self.rowptr[self.tile_ptr].diff()
        most = torch.where(in_tile > 1, LARGEST_RUN, _LONGEST_RUN)
        require(not bool(((in_tile == 0) | (entries > most)).any()), "tile_ptr's tiles")

    def _check_parts(self, part: str, shared: str) -> int:
        """How many rows are cut into those parts."""
        part_ptr, shared_ptr = getattr(self, part), getattr(self, shared)
        require(is_pointer(shared_ptr, part_ptr.numel() - 1), shared)
        rows = shared_ptr.numel() - 1
        require(rows <= self.num_rows, f"{shared}'s length")
        require(not bool((shared_ptr.diff() < 1).any()), f"{shared}: a long row without parts")
        require(is_pointer(part_ptr, int(self.rowptr[rows])), part)
        require(torch.equal(part_ptr[shared_ptr], self.rowptr[: rows + 1]), f"{part}'s rows")
        require(in_range(part_ptr.diff(), 0, _LONGEST_RUN + 1), f"{part}: the length of a part")
        return rows

    def stored_entries(self) -> tuple[Tensor, Tensor, Tensor]:
        row = torch.repeat_interleave(self.row.long(), self.rowptr.diff(), output_size=self.nnz)
        return row, self.col.long(), torch.arange(self.nnz, device=self.device)


def _parts(rows: Rows, count: int, most: int) -> tuple[Tensor, Tensor]:
    """Equal parts of at most ``most`` entries of the first ``count`` rows: where each starts, and each row's first."""
    length = rows.lengths()[:count]
    parts = (length + most - 1) // most
    shared_ptr = pad(parts.cumsum(0), (1, 0))
    index = torch.arange(count, device=length.device)
    owner = torch.repeat_interleave(index, parts, output_size=int(shared_ptr[-1]))
    nth = torch.arange(len(owner), device=length.device) - shared_ptr[owner]
    start = rows.rowptr[owner] + length[owner] * nth // parts[owner]
    return torch.cat([start, rows.rowptr[count : count + 1]]), shared_ptr


def default_split(nnz: int, num_rows: int) -> int:
    """8 mean lengths; less where there are so few entries that a long part takes longer than all the others."""
    factor, least = next((f, least) for limit, f, least in _SPLITS if nnz < limit)
    wanted = factor * nnz // max(num_rows, 1)
    return min(max(1 << max(wanted - 1, 0).bit_length(), least), 4096)


def sums_in_teams(nnz: int, num_rows: int, longest: int) -> bool:
    """Whether a block of threads sums each long row: a second launch, for their parts, would count."""
    return nnz < min(_SHORT * num_rows, 1 << 20) and longest <= _TEAM
