"""What an order means for caches and warps, against counts by hand."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from pyg_sparse.formats import Rows, rows_from_edges
from pyg_sparse.order import Order
from pyg_sparse.planner import profile as module
from pyg_sparse.planner.orders import candidate_orders, leading_order, rcm_order
from pyg_sparse.planner.profile import NEIGHBOURS, WINDOWS, distinct, order_profile, reuse_curves, warp_steps
from tests.order_graphs import both_sides, needs_cuda, planted, uniform
from tests.planner.graphs import rows_of_lengths


def as_stored(rows: Rows) -> Tensor:
    return torch.arange(rows.num_rows, device=rows.col.device)


def columns(rows: Rows, order: Tensor) -> list[int]:
    return [c for r in order.tolist() for c in rows.col[rows.rowptr[r] : rows.rowptr[r + 1]].tolist()]


def by_hand(col: list[int], window: int, first: int = 0) -> float:
    last: dict[int, int] = {}
    near = 0
    for i, c in enumerate(col):
        near += i >= first and c in last and i - last[c] <= window
        last[c] = i
    return 1 - near / (len(col) - first)


@pytest.mark.parametrize("seed", range(3))
def test_reuse_is_counted_exactly_in_small_matrices(seed: int) -> None:
    rows = rows_of_lengths([i % 13 for i in range(900)], 700, seed)
    order = torch.randperm(900, generator=torch.Generator().manual_seed(seed))
    one, eight = reuse_curves(rows, order)
    col = columns(rows, order)
    assert one == pytest.approx([by_hand(col, w) for w in WINDOWS])
    assert eight == pytest.approx([by_hand([c // NEIGHBOURS for c in col], w) for w in WINDOWS])
    assert list(one) == sorted(one, reverse=True)


def test_reuse_of_large_matrices_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = both_sides(planted(count=50, size=100, degree=20, outside=0.2)[0])[0]
    order = as_stored(rows)
    exact = reuse_curves(rows, order)
    monkeypatch.setattr(module, "WINDOWS", (256, 1024, 4096))
    sampled = reuse_curves(rows, order)
    for whole, part in zip(exact, sampled, strict=True):
        assert part == pytest.approx(whole[:3], abs=0.05)
        assert part != pytest.approx(whole[:3], abs=1e-9)


def test_steps_of_rows_that_share_a_warp() -> None:
    rows = rows_of_lengths([9, 9, 9, 9, 1, 1, 1, 1])
    together, mixed = as_stored(rows), torch.tensor([0, 4, 1, 5, 2, 6, 3, 7])
    assert warp_steps(rows, together, 4) == 1
    assert warp_steps(rows, mixed, 4) == pytest.approx(4 * (9 + 9) / 40)
    assert warp_steps(rows, together, 32) == pytest.approx(32 * 9 / 40)  # a last warp that is short of rows


def test_a_shared_column_is_counted_once_a_core() -> None:
    # A core has 6 blocks of 8 rows, whose entries name 10 columns of their own and one that all rows have.
    col = torch.stack([torch.zeros(8000, dtype=torch.long), 8 + torch.arange(8000) // 800 * 8], dim=1).flatten()
    rows = rows_from_edges(torch.arange(8000).repeat_interleave(2), col, 8000, 8000, keep_slots=False)
    alternating = torch.arange(8000).view(10, 800).t().flatten()
    assert distinct(rows, alternating)[0] == pytest.approx(11 / 96)
    assert distinct(rows, as_stored(rows))[0] < 8.1 / 96  # 6 blocks lie in at most 7 groups of rows
    one, eight = distinct(rows, alternating)
    assert eight == one  # columns 8 apart lie in groups of their own


def test_neighbouring_columns_lie_in_a_group() -> None:
    rows = rows_from_edges(torch.arange(800), torch.arange(800), 800, 800, keep_slots=False)
    one, eight = distinct(rows, as_stored(rows))
    assert one == 1
    assert eight == pytest.approx(1 / 8)
    found = order_profile(rows, Order(as_stored(rows), None))
    assert found.at(1)[1] == found.reuse
    assert found.at(8)[1] == found.at(100)[1] == found.reuse_of_8
    between = found.at(2)[1]
    assert all(a >= b >= c for a, b, c in zip(found.reuse, between, found.reuse_of_8, strict=True))


def test_communities_are_reused_sooner() -> None:
    graph, _ = planted(count=100, size=100, degree=30, outside=0.05)
    rows, t_rows = both_sides(graph)
    found = {name: order_profile(rows, order) for name, order in candidate_orders(rows, t_rows)}
    assert set(found) == {"degree", "given", "leading", "rcm", "community, 4 rounds", "community, 8 rounds"}
    middle = len(WINDOWS) // 2
    assert found["community, 8 rounds"].reuse[middle] < 0.5 * found["degree"].reuse[middle]


def test_a_graph_without_edges() -> None:
    rows = rows_of_lengths([0, 0])
    assert set(order_profile(rows, Order(as_stored(rows), None)).reuse) == {1.0}
    assert [name for name, _ in candidate_orders(rows, rows)] == ["degree", "given", "leading"]


def test_every_order_has_every_row_once() -> None:
    rows, t_rows = both_sides(uniform(500, 3000))
    for name, order in candidate_orders(rows, t_rows):
        assert sorted(order.row.tolist()) == list(range(500)), name
    for only in ("degree", "given", "leading", "rcm"):
        assert [name for name, _ in candidate_orders(rows, t_rows, only)] == [only]


def test_leading_order_puts_rows_with_the_same_first_columns_together() -> None:
    rows = rows_of_lengths([i % 5 for i in range(400)], 12)
    order = leading_order(rows).row.tolist()

    def first_two(r: int) -> list[int]:
        col = rows.col[rows.rowptr[r] : rows.rowptr[r + 1]].tolist()[:2]
        return col + [12] * (2 - len(col))

    assert [first_two(r) for r in order] == sorted(first_two(r) for r in order)


def test_rcm_of_a_path_follows_it() -> None:
    number = torch.randperm(200, generator=torch.Generator().manual_seed(0))
    a, b = number[:-1], number[1:]
    dst, src = torch.cat([a, b]), torch.cat([b, a])
    rows = rows_from_edges(dst, src, 200, 200, keep_slots=False)
    found = rows.row[rcm_order(rows).row].tolist()
    assert found in (number.tolist(), number.tolist()[::-1])


def test_rcm_narrows_the_band_of_a_grid() -> None:
    side = 40
    index = torch.arange(side * side).view(side, side)
    pairs = [(index[1:], index[:-1]), (index[:, 1:], index[:, :-1])]
    low, high = (torch.cat([p[i].flatten() for p in pairs]) for i in (0, 1))
    number = torch.randperm(side * side, generator=torch.Generator().manual_seed(1))
    src, dst = number[torch.cat([low, high])], number[torch.cat([high, low])]
    rows = rows_from_edges(dst, src, side * side, side * side, keep_slots=False)
    place = torch.empty(side * side, dtype=torch.long)
    place[rows.row[rcm_order(rows).row].long()] = torch.arange(side * side)
    assert int((place[src] - place[dst]).abs().max()) <= 2 * side


@needs_cuda
def test_profiles_on_cuda_count_what_the_cpu_counts() -> None:
    graph, _ = planted(count=20, size=100, degree=10, outside=0.2)
    rows = both_sides(graph, "cuda")[0]
    on_cpu = Rows(*(v.cpu() if torch.is_tensor(v) else v for v in vars(rows).values()))
    order = torch.randperm(rows.num_rows, generator=torch.Generator().manual_seed(0))
    assert reuse_curves(rows, order.cuda()) == reuse_curves(on_cpu, order)
    assert distinct(rows, order.cuda()) == distinct(on_cpu, order)
    assert warp_steps(rows, order.cuda(), 4) == warp_steps(on_cpu, order, 4)
