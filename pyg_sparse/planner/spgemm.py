"""What a product with a second sparse matrix would take: 10 numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pyg_sparse.formats.rows import Rows, true_indices
from pyg_sparse.planner.sampling import distinct, entries, sample, sorted_keys, stored
from pyg_sparse.planner.statistics import largest, quantiles, ratio, variation

BUDGET = 1 << 20  # products that are looked at
FEWEST_ROWS = 1024


@dataclass(frozen=True)
class SpGemm:
    """C = A B, with B = A where A is square, else B = A^T (Gustavson's row by row); docs/features.md.

    ``u(i)``, the sum of the lengths of B's rows that row i's columns name, is how many products row i takes and the
    most entries that it can have. Exact but for the compression, which may be an estimate.

    Attributes:
        u_total, u_mean, u_median, u_p95, u_max: of ``u`` over the rows, in products.
        u_cv: its coefficient of variation.
        fit_512, fit_4k, fit_32k: share of rows whose bound, the lesser of ``u(i)`` and C's columns, is at most so
            many: their sums surely fit an accumulator of that size.
        compression: products per distinct entry of C.
    """

    u_total: int
    u_mean: float
    u_median: float
    u_p95: float
    u_max: int
    u_cv: float
    fit_512: float
    fit_4k: float
    fit_32k: float
    compression: float


@dataclass(frozen=True, eq=False)
class Factors:
    """A, B and B's transpose."""

    a: Rows
    b: Rows
    t_b: Rows

    @classmethod
    def of(cls, rows: Rows, t_rows: Rows) -> Factors:
        return cls(rows, rows, t_rows) if rows.num_rows == rows.num_cols else cls(rows, t_rows, rows)


def spgemm(factors: Factors, u: Tensor, rng: np.random.Generator, budget: int = BUDGET) -> tuple[SpGemm, bool]:
    """The numbers, and whether the compression is exact.

    Args:
        u: int64 ``[num_rows]``, by row id.
        budget: about how many products are looked at for the compression.
    """
    num_rows, total = u.numel(), int(u.sum())
    median, p95 = quantiles(u, (0.5, 0.95))
    bound = u.clamp(max=factors.b.num_cols)
    fits = [ratio(int((bound <= size).sum()), num_rows) for size in (512, 4096, 32768)]
    exact = total <= budget
    rows = sample(num_rows, num_rows if exact else max(num_rows * budget // total, FEWEST_ROWS), rng)
    return SpGemm(
        u_total=total,
        u_mean=ratio(total, num_rows),
        u_median=median,
        u_p95=p95,
        u_max=largest(u),
        u_cv=variation(u),
        fit_512=fits[0],
        fit_4k=fits[1],
        fit_32k=fits[2],
        compression=_compression(factors, u, rows.to(u.device), rng, budget),
    ), exact


def _compression(factors: Factors, u: Tensor, row: Tensor, rng: np.random.Generator, budget: int) -> float:
    """Of some rows: their products, which are known, per distinct entry.

    Where these are too many to look at, those in sampled columns stand for all. A column has at most one entry a row,
    so these vary little where there are few; products would vary as much as degrees do.
    """
    a, b = factors.a, factors.b
    products = int(u[row].sum())
    share = 1.0
    if products > 2 * budget:  # not by chance
        b, share = _sample_columns(factors, budget / products, rng)
    named, of_row = entries(a.rowptr, stored(a.row)[row])
    position, of_named = entries(b.rowptr, stored(b.row)[a.col[named].long()])
    ordered = sorted_keys(of_row[of_named], b.col[position].long(), len(row), b.num_cols)
    return max(ratio(products, distinct(ordered) / share), 1.0) if products else 0.0


def _sample_columns(factors: Factors, share: float, rng: np.random.Generator) -> tuple[Rows, float]:
    """B with about this share of its occupied columns and without slots, and what share it is."""
    b, t_b = factors.b, factors.t_b
    occupied = torch.sort(t_b.row[t_b.lengths() > 0]).values
    column = sample(len(occupied), max(int(len(occupied) * share), 1), rng)
    kept = torch.zeros(b.num_cols, dtype=torch.bool, device=b.col.device)
    kept[occupied[column.to(occupied.device)].long()] = True
    position = true_indices(lambda part: kept.index_select(0, b.col[part]), b.nnz)
    rowptr = torch.searchsorted(position, b.rowptr)
    return Rows(rowptr, b.row, b.col[position], b.slot[:0], b.num_rows, b.num_cols), len(column) / len(occupied)
