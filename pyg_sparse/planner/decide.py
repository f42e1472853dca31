"""Chooses the order of rows and the format of one direction of a graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from pyg_sparse.formats import Csr, FormatSpec, Rows
from pyg_sparse.order import Order
from pyg_sparse.planner.candidates import Candidate, candidate_specs
from pyg_sparse.planner.cases import Case
from pyg_sparse.planner.choice import Choice, Scored, choose
from pyg_sparse.planner.device import Device
from pyg_sparse.planner.lengths import Lengths
from pyg_sparse.planner.model import predict
from pyg_sparse.planner.orders import candidate_orders
from pyg_sparse.planner.profile import order_profile
from pyg_sparse.planner.tune import Progress, tune
from pyg_sparse.planner.work import work_of

MIN_ENTRIES = 1 << 18  # below, no order was measured to be worth its search (docs/planner.md)
MAX_ENTRIES = 1 << 30  # beyond, arranging needs more memory than a plan should


@dataclass(frozen=True)
class Wanted:
    """
    Attributes:
        order: ``"auto"``, or one of :data:`pyg_sparse.order.ORDERS`.
        spec: a format, or None for the best.
        cases: for which products.
        budget_s: seconds for measuring candidates; None: none are measured.
        progress: told of each candidate that is measured.
    """

    order: str
    spec: FormatSpec | None
    cases: tuple[Case, ...]
    budget_s: float | None = None
    progress: Progress | None = None


def possible(wanted: Wanted, *, square: bool) -> Wanted:
    """Rows of a matrix that is not square have neither communities nor an order of Reverse Cuthill-McKee."""
    return wanted if square or wanted.order not in ("community", "rcm") else replace(wanted, order="degree")


def is_decided(wanted: Wanted, nnz: int) -> bool:
    """Whether there is nothing to choose, so that neither the graph nor the device need to be looked at."""
    if nnz == 0:
        return True
    if wanted.order == "community":  # after how many rounds
        return False
    if wanted.order != "auto" and wanted.spec is not None:
        return True
    return nnz > MAX_ENTRIES or (nnz < MIN_ENTRIES and wanted.budget_s is None)


def without_looking(rows: Rows, wanted: Wanted) -> Choice:
    """What is taken where :func:`is_decided`: the plain order of the device, if none is wanted, and csr."""
    name = wanted.order
    if name == "auto":
        name = "degree" if rows.col.is_cuda else "given"
    if rows.nnz == 0:
        name = "degree"
    orders = dict(orders_for(rows, rows, name))
    return Choice(Candidate(name, wanted.spec or Csr()), {}, orders)


def orders_for(rows: Rows, t_rows: Rows, wanted: str) -> Iterator[tuple[str, Order | None]]:
    for name, order in candidate_orders(rows, t_rows, only=wanted):
        yield name, None if name == "degree" else order


def decide(rows: Rows, t_rows: Rows, wanted: Wanted, device: Device) -> Choice:
    """Predicts every candidate's time in every case, and measures the first of them if there is time for that."""
    orders, scored = score(rows, t_rows, wanted, device)
    if wanted.budget_s is not None:
        tune(rows, orders, scored, wanted.cases, wanted.budget_s, wanted.progress)
    base, special = choose(scored, wanted.cases)
    names = {base.order, *(candidate.order for candidate in special.values())}
    return Choice(base, special, {name: orders[name] for name in names}, scored)


def score(rows: Rows, t_rows: Rows, wanted: Wanted, device: Device) -> tuple[dict[str, Order | None], list[Scored]]:
    """All orders, and every candidate with its predicted times."""
    lengths = Lengths.of(rows)
    specs: Sequence[FormatSpec] = [wanted.spec] if wanted.spec else candidate_specs(
        rows.num_rows, rows.nnz, on_cuda=rows.col.is_cuda
    )  # fmt: skip
    orders: dict[str, Order | None] = {}
    scored: list[Scored] = []
    for name, order in orders_for(rows, t_rows, wanted.order):
        orders[name] = order
        profile = order_profile(rows, order or _by_length(rows))
        for spec in specs:
            entry = Scored(Candidate(name, spec))
            # Of a format whose sizes are not known, the orders are compared by what csr would take.
            work = work_of(spec, rows.num_cols, lengths, profile, name)
            work = work or work_of(Csr(), rows.num_cols, lengths, profile, name)
            for case in wanted.cases if work else ():
                prediction = predict(work, case.width, case.itemsize, device)  # type: ignore[arg-type]
                if prediction is not None:
                    entry.predicted[case] = prediction
            scored.append(entry)
    return orders, scored


def _by_length(rows: Rows) -> Order:
    return Order(torch.arange(rows.num_rows, device=rows.col.device), None)
