"""What a candidate's product consists of, whatever its width: known without building the format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyg_sparse.formats import Coo, Csr, FormatSpec, Hyb
from pyg_sparse.formats.csr import default_split, sums_in_teams
from pyg_sparse.formats.hyb import default_exponent
from pyg_sparse.formats.tiles import LARGEST_RUN, longest_whole, tiles_pay
from pyg_sparse.planner.lengths import Lengths
from pyg_sparse.planner.profile import OrderProfile


@dataclass(frozen=True)
class Work:
    """
    Attributes:
        format: its name.
        num_rows, num_cols, nnz: of the matrix.
        positions: stored ones, padding included.
        items: runs of entries that a worker sums; entries, for coo.
        partials: items whose sum is a part of a row's.
        cut_rows: rows of several items.
        longest: entries of the longest row that is one item.
        longest_part: entries of the longest part.
        by_length: rows are worked on by descending length.
        in_sequence: about by ascending id.
        tiles: products with one feature run over tiles, on CUDA.
        teams: a block of threads sums a cut row, on CUDA.
        profile: of the order of rows.
    """

    format: str
    num_rows: int
    num_cols: int
    nnz: int
    positions: int
    items: int
    partials: int
    cut_rows: int
    longest: int
    longest_part: int
    by_length: bool
    in_sequence: bool
    tiles: bool
    teams: bool
    profile: OrderProfile


def work_of(spec: FormatSpec, num_cols: int, lengths: Lengths, profile: OrderProfile, order: str) -> Work | None:
    """``order``: the name of the rows' order, of which ``profile`` is.

    None for a format whose sizes do not follow from the lengths of rows: hyb of several partitions.
    """
    num_rows = int(lengths.count.sum())
    nnz = int((lengths.value * lengths.count).sum())
    common: dict[str, Any] = {
        "num_rows": num_rows, "num_cols": num_cols, "nnz": nnz, "profile": profile, "format": spec.name,
        "in_sequence": order == "given",
    }  # fmt: skip
    if isinstance(spec, Csr):
        return _csr(spec, lengths, order == "degree", common)
    if isinstance(spec, Hyb) and spec.c == 1:
        return _hyb(spec, lengths, common)
    if isinstance(spec, Coo):
        chunks = -(-nnz // spec.chunk)
        return Work(**common, positions=nnz, items=nnz, partials=chunks, cut_rows=chunks, longest=spec.chunk,
                    longest_part=spec.chunk, by_length=True, tiles=False, teams=False)  # fmt: skip
    return None


def _csr(spec: Csr, lengths: Lengths, by_length: bool, common: dict[str, Any]) -> Work:
    num_rows, nnz = common["num_rows"], common["nnz"]
    split = spec.split or default_split(nnz, num_rows)
    bounds = lengths.shortest, lengths.longest
    tiles = tiles_pay(nnz, num_rows, common["num_cols"], bounds, lengths.skew(), split)
    cut, parts = lengths.longer_than(split), lengths.parts(split)
    alone = lengths.parts(LARGEST_RUN) if tiles and lengths.longer_than(longest_whole(nnz)) else 0
    return Work(
        **common,
        positions=nnz,
        items=num_rows - cut + parts,
        partials=max(parts, alone),
        cut_rows=cut,
        longest=lengths.longest_up_to(split),
        longest_part=min(split, lengths.longest) if cut else 0,
        by_length=by_length,
        tiles=tiles,
        teams=cut > 0 and sums_in_teams(nnz, num_rows, lengths.longest),
    )


def _hyb(spec: Hyb, lengths: Lengths, common: dict[str, Any]) -> Work:
    k = default_exponent(common["nnz"], common["num_rows"]) if spec.k is None else spec.k
    value, count = lengths.value, lengths.count
    pieces = -(-value // (1 << k))
    rest = value - ((pieces - 1).clip(min=0) << k)
    width = np.where(rest > 0, 1 << np.ceil(np.log2(rest.clip(min=1))).astype(np.int64), 0)
    positions = int((((pieces - 1).clip(min=0) << k) + width) @ count)
    several = pieces > 1
    return Work(
        **common,
        positions=positions,
        items=int(pieces @ count),
        partials=int((pieces * count)[several].sum()),
        cut_rows=int(count[several].sum()),
        longest=min(1 << k, lengths.longest),
        longest_part=1 << k if bool(several.any()) else 0,
        by_length=True,  # widest bucket first
        tiles=False,
        teams=False,
    )
