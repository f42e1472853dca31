"""All candidates for the forward product of a graph: predicted, and on request built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from pyg_sparse.cli.graph import LoadedGraph
from pyg_sparse.formats import Rows, SparseMatrix, rows_from_edges
from pyg_sparse.order import Order, arrange
from pyg_sparse.planner.candidates import Candidate
from pyg_sparse.planner.cases import Case, case_of, cases_for
from pyg_sparse.planner.choice import Choice, Scored, choose
from pyg_sparse.planner.decide import Wanted, is_decided, score, without_looking
from pyg_sparse.planner.known import device_speeds
from pyg_sparse.planner.store import Store


class Product(NamedTuple):
    """A kind of product that the user asks about."""

    k: int
    dtype: torch.dtype

    @property
    def case(self) -> Case:
        """What it is predicted as: its own width, not that of a group of widths."""
        return Case(self.k, self.dtype.itemsize)

    def as_dict(self) -> dict[str, Any]:
        return {"k": self.k, "dtype": str(self.dtype).removeprefix("torch.")}

    def __str__(self) -> str:
        return f"K={self.k} {str(self.dtype).removeprefix('torch.')}"


def products(widths: Sequence[int], dtypes: Sequence[torch.dtype]) -> list[Product]:
    return [Product(k, dtype) for dtype in dtypes for k in widths]


@dataclass(frozen=True, eq=False)
class Survey:
    """
    Attributes:
        rows, t_rows: the adjacency, a row per target, and its transpose.
        products: what was asked about.
        orders, scored: the candidates, with times predicted for the cases of ``products``.
        choice: what ``plan(mode="auto")`` takes.
        by_model: whether the cost model made that choice; it is not asked about small graphs.
    """

    rows: Rows
    t_rows: Rows
    products: list[Product]
    orders: dict[str, Order | None]
    scored: list[Scored]
    choice: Choice
    by_model: bool

    def auto(self, product: Product) -> Candidate:
        return self.choice.of(case_of(product.k, product.dtype.itemsize))

    def build(self, candidate: Candidate) -> SparseMatrix:
        order = self.orders[candidate.order]
        return candidate.spec.build(self.rows if order is None else arrange(self.rows, order))


def survey(graph: LoadedGraph, wanted: list[Product], device: torch.device) -> Survey:
    src, dst = graph.edge_index.to(device)
    rows = rows_from_edges(dst, src, graph.num_dst, graph.num_src, keep_slots=True)
    t_rows = rows_from_edges(src, dst, graph.num_src, graph.num_dst, keep_slots=False)
    cases = cases_for((p.k for p in wanted), (p.dtype for p in wanted))
    own = {product.case for product in wanted}
    speeds = device_speeds(device, Store.default())
    orders, scored = score(rows, t_rows, Wanted("auto", None, tuple(sorted({*cases, *own}))), speeds)
    auto = Wanted("auto", None, cases)
    by_model = not is_decided(auto, rows.nnz)
    choice = Choice(*choose(scored, cases), orders) if by_model else without_looking(rows, auto)
    return Survey(rows, t_rows, wanted, orders, scored, choice, by_model)
