"""Measures the candidates that are predicted to be fastest, for as long as there is time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from pyg_sparse.formats import Rows
from pyg_sparse.order import Order, arrange
from pyg_sparse.planner.candidates import Candidate
from pyg_sparse.planner.cases import Case
from pyg_sparse.planner.choice import Scored, choose
from pyg_sparse.planner.device import product
from pyg_sparse.planner.timing import time_product

_HOPELESS = 1.6  # predicted to take so much longer than the fastest measured was: predictions are not that wrong
_MOST = 16  # candidates
_MOST_BYTES = 1 << 33  # of x and a result in fp32
_BUDGET_MS = 20.0  # of a candidate and a case
_DTYPE = {8: torch.float64, 4: torch.float32, 2: torch.bfloat16}


class Step(NamedTuple):
    """A candidate that was measured: how many have been, of how many, and how long it all took so far."""

    candidate: Candidate
    measured: dict[Case, float]
    done: int
    planned: int
    seconds: float


Progress = Callable[[Step], None]


def tune(
    rows: Rows,
    orders: Mapping[str, Order | None],
    scored: Sequence[Scored],
    cases: Sequence[Case],
    budget_s: float,
    progress: Progress | None = None,
) -> None:
    """Adds what it measures to ``scored``.

    What would be chosen without measuring comes first, and is measured in any case, then the candidates that are
    predicted to be first in some case. Stops where the others are predicted to be far behind in every case, or after
    ``budget_s`` seconds. Cases whose dense matrices take more than 8 GiB are not measured. Predictions are compared
    with predictions: all may be wrong by the same factor.
    """
    start = time.perf_counter()
    best: dict[Case, Scored] = {}
    base, _ = choose(scored, cases)
    ranked = sorted(scored, key=lambda entry: (entry.candidate != base, _lead(entry, scored, cases)))[:_MOST]
    for done, entry in enumerate(ranked, 1):
        if done > 1 and (time.perf_counter() - start > budget_s or _is_hopeless(entry, best)):
            continue
        order = orders[entry.candidate.order]
        arranged = rows if order is None else arrange(rows, order)
        matrix = entry.candidate.spec.build(arranged)
        for case in cases:
            if (rows.num_rows + rows.num_cols) * case.width * 4 > _MOST_BYTES:
                continue  # such products are only predicted
            x = _features(rows, case)
            entry.measured[case] = time_product(lambda: product(matrix, x), x.device, _BUDGET_MS)  # noqa: B023
            if case not in best or entry.measured[case] < best[case].measured[case]:
                best[case] = entry
        if progress is not None:
            progress(Step(entry.candidate, entry.measured, done, len(ranked), time.perf_counter() - start))


def _features(rows: Rows, case: Case) -> Tensor:
    generator = torch.Generator(rows.col.device).manual_seed(0)  # torch's own is the caller's
    size = (rows.num_cols, case.width)
    x = torch.randn(size, dtype=torch.float32, device=rows.col.device, generator=generator)
    return x.to(_DTYPE[case.itemsize])


def _lead(entry: Scored, scored: Sequence[Scored], cases: Sequence[Case]) -> float:
    """How far behind the first a candidate is predicted to be, where it is least."""
    return min(entry.cost(case) / min(other.cost(case) for other in scored) for case in cases)


def _is_hopeless(entry: Scored, best: Mapping[Case, Scored]) -> bool:
    """``best``: the fastest measured, in each case."""
    return all(
        case in entry.predicted
        and case in fastest.predicted
        and entry.predicted[case].ms > _HOPELESS * fastest.predicted[case].ms
        for case, fastest in best.items()
    )
