"""What a picture shows; pyg_sparse/cli/picture.py draws it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from pyg_sparse.cli.survey import Product, Survey
from pyg_sparse.formats import SparseMatrix
from pyg_sparse.plan import Plan
from pyg_sparse.planner.candidates import Candidate
from pyg_sparse.planner.cases import Case


class Timed(NamedTuple):
    """A candidate's times for a product, in ms; None: not known."""

    product: str
    candidate: Candidate
    predicted: float | None
    measured: float | None
    chosen: bool


@dataclass(frozen=True, eq=False)
class Drawing:
    """
    Attributes:
        in_degree, out_degree: of the targets and of the sources.
        build: makes the chosen matrix, of the forward direction; only a picture needs it.
        chosen: what it is called.
        times: of the candidates.
    """

    title: str
    in_degree: Tensor
    out_degree: Tensor
    build: Callable[[], SparseMatrix]
    chosen: str
    times: Sequence[Timed]


def of_survey(title: str, found: Survey, measured: Mapping[tuple[Candidate, Product], float] | None = None) -> Drawing:
    base = found.choice.base
    return Drawing(
        title=title,
        in_degree=found.rows.lengths(),
        out_degree=found.t_rows.lengths(),
        build=lambda: found.build(base),
        chosen=str(base),
        times=[
            Timed(
                str(product),
                entry.candidate,
                entry.predicted[product.case].ms if product.case in entry.predicted else None,
                (measured or {}).get((entry.candidate, product)),
                entry.candidate == found.auto(product),
            )
            for product in found.products
            for entry in found.scored
        ],
    )


def of_plan(title: str, plan: Plan) -> Drawing:
    times = []
    for about in plan.report["forward"]["cases"] if plan.report else ():
        case = Case(about["width"], about["itemsize"])
        for i, entry in enumerate(about["candidates"]):  # the chosen one first
            candidate = Candidate.from_dict(entry["candidate"])
            times.append(Timed(str(case), candidate, entry.get("predicted_ms"), entry.get("measured_ms"), i == 0))
    chosen = f"{plan.forward.name}, rows by {plan.orders[0]}"
    return Drawing(title, plan.in_degree, plan.out_degree, lambda: plan.forward, chosen, times)
