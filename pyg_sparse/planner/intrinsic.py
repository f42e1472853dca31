"""What the matrix itself looks like: 18 numbers."""

from __future__ import annotations

from dataclasses import dataclass

from pyg_sparse.formats.rows import Rows
from pyg_sparse.planner.blocks import BAND, Blocks
from pyg_sparse.planner.by_row import ByRow
from pyg_sparse.planner.statistics import largest, quantiles, ratio, variation


@dataclass(frozen=True)
class Intrinsic:
    """Formulas, units and ranges: docs/features.md. Exact but for the last two, which may be estimates.

    Attributes:
        num_rows: rows.
        nnz: entries, duplicates counted.
        density: entries per position of the matrix. ``num_cols`` is ``row_mean / density``.
        row_mean, row_max, row_cv: mean, maximum and coefficient of variation of the row lengths, in entries.
        row_q25, row_median, row_q75: their quartiles.
        row_empty: share of rows without entries.
        col_max, col_cv: maximum and coefficient of variation of the column degrees.
        row_span: mean number of columns from a row's first to its last entry, over the rows that have any.
        span_normalized: the same as a share of the columns.
        mean_gap: mean distance of neighbouring entries of a row, in columns.
        diagonal_fraction: share of the entries whose column is their row.
        tile_coverage: share of the 16x16 tiles that hold an entry.
        dense_tile_share: share of the entries in tiles that hold at least 32.
    """

    num_rows: int
    nnz: int
    density: float
    row_mean: float
    row_max: int
    row_cv: float
    row_q25: float
    row_median: float
    row_q75: float
    row_empty: float
    col_max: int
    col_cv: float
    row_span: float
    span_normalized: float
    mean_gap: float
    diagonal_fraction: float
    tile_coverage: float
    dense_tile_share: float


def intrinsic(rows: Rows, t_rows: Rows, each: ByRow, blocks: Blocks) -> Intrinsic:
    degree = t_rows.lengths()
    quarter, median, three_quarters = quantiles(each.length, (0.25, 0.5, 0.75))
    occupied = int((each.length > 0).sum())
    span = int(each.span().sum())
    # From the first entry to the last there is one distance fewer than entries, and they add up to the span less one.
    row_span = ratio(span, occupied)
    tiles = -(-rows.num_rows // BAND) * -(-rows.num_cols // BAND)
    return Intrinsic(
        num_rows=rows.num_rows,
        nnz=rows.nnz,
        density=ratio(rows.nnz, rows.num_rows * rows.num_cols),
        row_mean=ratio(rows.nnz, rows.num_rows),
        row_max=largest(each.length),
        row_cv=variation(each.length),
        row_q25=quarter,
        row_median=median,
        row_q75=three_quarters,
        row_empty=ratio(rows.num_rows - occupied, rows.num_rows),
        col_max=largest(degree),
        col_cv=variation(degree),
        row_span=row_span,
        span_normalized=ratio(row_span, rows.num_cols),
        mean_gap=ratio(span - occupied, rows.nnz - occupied),
        diagonal_fraction=ratio(int(each.diagonal.sum()), rows.nnz),
        tile_coverage=min(ratio(blocks.occupied[BAND] * rows.nnz, blocks.entries * tiles), 1.0),
        dense_tile_share=ratio(blocks.in_dense, blocks.entries),
    )
