"""Which order a plan takes: the prediction, and the choice by it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import pyg_sparse
import pyg_sparse.order as order_module
from pyg_sparse.formats import Rows, rows_from_edges
from pyg_sparse.order import (
    CPU_ROUNDS,
    ROUNDS,
    choose_order,
    communities,
    community_order,
    predicted_cost,
    predicted_cpu_cost,
)
from tests.conftest import FAMILIES, Graph
from tests.formats.test_formats import rows_of
from tests.order_graphs import both_sides, integers, needs_cuda, planted, uniform


@pytest.fixture(scope="module")
def strong() -> tuple[Graph, Tensor]:
    return planted(count=100, size=100, degree=30, outside=0.05)


@pytest.fixture
def eager_auto(monkeypatch: pytest.MonkeyPatch) -> None:
    """ "auto" predicts for every graph, as on CUDA."""
    monkeypatch.setattr(order_module, "_on_cuda", lambda rows: True)
    monkeypatch.setattr(order_module, "_worth_trying", lambda rows: True)
    monkeypatch.setattr(order_module, "_MANY_ROWS", 0)


# The prediction


def degree_order(rows: Rows) -> Tensor:
    return torch.arange(rows.num_rows, device=rows.col.device)


def test_rows_that_share_nothing_cost_two(device: str) -> None:
    # One step an entry, and every entry's column from L2: also where a window ends within a block of rows.
    for nodes in (1, 5, 8, 1025, 7001):
        rows = rows_of(Graph(torch.arange(nodes).expand(2, nodes), nodes, nodes), device)
        # The last warp is short of rows.
        idle = -nodes % 4 / nodes
        assert predicted_cost(rows, degree_order(rows)) == pytest.approx(2 + idle)


def test_a_shared_column_is_counted_once_a_core() -> None:
    # A core has 6 blocks of 8 rows, whose entries name 10 columns of their own and one that all rows have.
    rows = rows_from_edges(
        torch.arange(8000).repeat_interleave(2),
        torch.stack([torch.zeros(8000, dtype=torch.long), 1 + torch.arange(8000) // 800], dim=1).flatten(),
        8000,
        8000,
        keep_slots=False,
    )
    alternating = torch.arange(8000).view(10, 800).t().flatten()
    assert predicted_cost(rows, alternating) == pytest.approx(1 + 11 / 96)
    assert predicted_cost(rows, degree_order(rows)) < 1 + 8.1 / 96  # 6 blocks lie in at most 7 groups of rows


def test_memory_is_counted_where_a_slice_does_not_fit_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(uniform(10_000, 100_000))
    fits = predicted_cost(rows, degree_order(rows))
    monkeypatch.setattr(order_module, "_L2_BYTES", 10_000 * 512)
    assert predicted_cost(rows, degree_order(rows)) == fits
    monkeypatch.setattr(order_module, "_L2_BYTES", 10_000 * 512 - 1)
    # 6144 rows in flight have 61,440 entries or so, which is nearly every column: one load of each.
    from_memory = (predicted_cost(rows, degree_order(rows)) - fits) * 4.1 / 9.3
    assert from_memory == pytest.approx(10_000 / 61_440, rel=0.1)


def test_a_warp_takes_as_long_as_its_longest_row() -> None:
    lengths = [9, 9, 9, 9, 1, 1, 1, 1]
    dst = torch.arange(8).repeat_interleave(torch.tensor(lengths))
    rows = rows_from_edges(dst, torch.arange(40), 8, 40, keep_slots=False)
    together, mixed = degree_order(rows), torch.tensor([0, 4, 1, 5, 2, 6, 3, 7])
    assert predicted_cost(rows, together) == pytest.approx(2)
    assert predicted_cost(rows, mixed) == pytest.approx(1 + 4 * (9 + 9) / 40)
    # Rows of 128 entries and more on average have a warp each.
    long = rows_from_edges(dst.repeat(26), torch.arange(1040), 8, 1040, keep_slots=False)
    assert predicted_cost(long, mixed) == predicted_cost(long, together) == pytest.approx(2)


@pytest.mark.parametrize("fits", [True, False])
def test_the_planted_order_is_cheaper_than_a_random_one(
    strong: tuple[Graph, Tensor], fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, community = strong
    monkeypatch.setattr(order_module, "_L2_BYTES", 1 << 30 if fits else 0)
    rows = rows_of(graph)
    by_community = torch.sort(community[rows.row.long()], stable=True).indices
    shuffled = torch.randperm(rows.num_rows, generator=torch.Generator().manual_seed(0))
    assert predicted_cost(rows, by_community) < 0.8 * predicted_cost(rows, shuffled)


# The choice


@pytest.mark.usefixtures("eager_auto")
def test_auto_groups_a_graph_of_strong_communities(strong: tuple[Graph, Tensor]) -> None:
    choice = choose_order(*both_sides(strong[0]))
    assert set(choice.costs) == {"degree", "given", *(f"community, {rounds} rounds" for rounds in ROUNDS)}
    assert choice.name == min(choice.costs, key=choice.costs.__getitem__) != "degree"
    rows, _ = both_sides(strong[0])
    assert choice.order is not None
    assert predicted_cost(rows, choice.order.row) == choice.costs[choice.name] < 0.8 * choice.costs["degree"]


@pytest.mark.usefixtures("eager_auto")
def test_auto_leaves_a_graph_without_communities_by_degree() -> None:
    choice = choose_order(*both_sides(uniform(10_000, 300_000)))
    assert (choice.order, choice.name) == (None, "degree")
    assert len(choice.costs) == 2 + len(ROUNDS)


@pytest.mark.usefixtures("eager_auto")
@pytest.mark.parametrize("sizes", [(20_000, 30_000), (30_000, 20_000)])
def test_auto_keeps_an_order_that_is_good_already(sizes: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order_module, "_L2_BYTES", 0)
    num_src, num_dst = sizes
    dst = torch.randint(num_dst, (300_000,), generator=torch.Generator().manual_seed(0))
    src = (dst + torch.randint(0, 16, dst.shape, generator=torch.Generator().manual_seed(1))) % num_src
    rows, t_rows = both_sides(Graph(torch.stack([src, dst]), num_src, num_dst))
    choice = choose_order(rows, t_rows)
    assert choice.name == "given"
    assert choice.order is not None
    assert predicted_cost(rows, choice.order.row) == choice.costs["given"] < 0.9 * choice.costs["degree"]


@pytest.mark.usefixtures("eager_auto")
def test_the_given_order_is_for_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    for least, compared in ((1000, True), (1001, False)):
        monkeypatch.setattr(order_module, "_MANY_ROWS", least)
        assert ("given" in choose_order(*both_sides(uniform(1000, 5000))).costs) == compared


@pytest.mark.usefixtures("eager_auto")
def test_a_small_gain_is_enough_for_many_long_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    for entries, many, cost, name in (
        (200, 0, 0.997, "community, 4 rounds"),
        (200, 0, 0.999, "degree"),
        (200, 51, 0.98, "degree"),
        (100, 0, 0.98, "degree"),
    ):
        costs = iter([1.0, 1.0, cost, 1.0, 1.0] if many == 0 else [1.0, cost, 1.0, 1.0])
        monkeypatch.setattr(order_module, "_MANY_ROWS", many)
        monkeypatch.setattr(order_module, "predicted_cost", lambda rows, order, costs=costs: next(costs))
        assert choose_order(*both_sides(uniform(50, 50 * entries))).name == name


@pytest.mark.usefixtures("eager_auto")
def test_auto_needs_more_than_a_small_gain(strong: tuple[Graph, Tensor], monkeypatch: pytest.MonkeyPatch) -> None:
    for given, cost, name in (
        (1.0, 0.98, "degree"),
        (1.0, 0.96, "community, 4 rounds"),
        (0.96, 0.97, "given"),
        (0.96, 0.95, "community, 4 rounds"),
    ):
        costs = iter([1.0, given, cost, 1.0, 1.0])
        monkeypatch.setattr(order_module, "predicted_cost", lambda rows, order, costs=costs: next(costs))
        assert choose_order(*both_sides(FAMILIES["uniform"])).name == name


@pytest.mark.usefixtures("eager_auto")
def test_community_takes_the_cheapest_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = iter([3.0, 2.0, 4.0])
    monkeypatch.setattr(order_module, "predicted_cost", lambda rows, order: next(costs))
    rows, t_rows = both_sides(FAMILIES["power_law"])
    choice = choose_order(rows, t_rows, "community")
    assert choice.name == "community, 8 rounds"
    assert choice.order is not None
    assert torch.equal(choice.order.row, community_order(rows, communities(rows, t_rows, 8)).row)


# On the CPU


def test_a_column_is_counted_once_while_the_cache_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # Rows of 4 entries; 16 of them, side by side or spread, share their columns. The cache holds 64 rows of x.
    monkeypatch.setattr(order_module, "_own_cache_bytes", lambda: 64 * 128)
    col = (torch.arange(1600) // 16)[:, None] * 4 + torch.arange(4)
    rows = rows_from_edges(torch.arange(1600).repeat_interleave(4), col.flatten(), 1600, 400, keep_slots=False)
    side_by_side, spread = torch.arange(1600), torch.arange(1600).view(100, 16).t().flatten()
    assert 1 + 3 * 4 / 64 <= predicted_cpu_cost(rows, side_by_side) <= 1 + 3 * 8 / 64  # windows begin anywhere
    assert predicted_cpu_cost(rows, spread) == pytest.approx(4)


def test_auto_on_the_cpu_finds_strong_communities(
    strong: tuple[Graph, Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, _ = strong
    assert graph.edge_index.size(1) >= order_module._MIN_ENTRIES
    plan = pyg_sparse.plan(graph.edge_index, graph.num_src)
    monkeypatch.setattr(order_module, "_own_cache_bytes", lambda: graph.num_src * 128)
    assert choose_order(*both_sides(graph)).costs == {}  # x is near anyway
    assert pyg_sparse.plan(graph.edge_index, graph.num_src).orders == ("given", "given")
    monkeypatch.setattr(order_module, "_own_cache_bytes", lambda: graph.num_src * 128 // 8)
    choice = choose_order(*both_sides(graph))
    assert set(choice.costs) == {"given", *(f"community, {rounds} rounds" for rounds in CPU_ROUNDS)}
    assert choice.name == min(choice.costs, key=choice.costs.__getitem__) != "given"
    assert choice.costs[choice.name] < 0.85 * choice.costs["given"]
    grouped = pyg_sparse.plan(graph.edge_index, graph.num_src)
    assert all(name.startswith("community, ") for name in grouped.orders)
    x = integers(graph.num_src, 40, device="cpu", seed=6)
    assert torch.equal(pyg_sparse.spmm(grouped, x), pyg_sparse.spmm(plan, x))
    assert torch.equal(pyg_sparse.spmm(grouped.t(), x), pyg_sparse.spmm(plan.t(), x))


def test_auto_on_the_cpu_keeps_the_given_order_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order_module, "_own_cache_bytes", lambda: 10_000 * 16)
    assert choose_order(*both_sides(uniform(10_000, 300_000))).name == "given"
    dst = torch.arange(300_000) // 10  # a band
    src = (dst + torch.randint(0, 16, dst.shape, generator=torch.Generator().manual_seed(1))) % 30_000
    assert choose_order(*both_sides(Graph(torch.stack([src, dst]), 30_000, 30_000))).name == "given"
    rectangular = Graph(torch.stack([src, dst]), 30_001, 30_000)
    assert choose_order(*both_sides(rectangular)).costs == {}


def test_what_communities_must_cost_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order_module, "_worth_trying", lambda rows: True)
    for costs, name in (((1.0, 0.86, 0.86), "given"), ((1.0, 0.84, 0.9), "community, 4 rounds")):
        found = iter(costs)
        monkeypatch.setattr(order_module, "predicted_cpu_cost", lambda rows, order, found=found: next(found))
        assert choose_order(*both_sides(FAMILIES["uniform"])).name == name


@pytest.mark.parametrize("order", ["rows", "", "Degree", None])
def test_a_bad_order_raises(order: object) -> None:
    with pytest.raises(ValueError, match=f"order={order!r} must be one of auto, degree, given, community"):
        pyg_sparse.plan(torch.tensor([[0], [1]]), order=order)


@needs_cuda
def test_auto_on_cuda(strong: tuple[Graph, Tensor]) -> None:
    graph, _ = strong
    edge_index = graph.edge_index.cuda()
    plan = pyg_sparse.plan(edge_index, graph.num_src)
    assert all(name.startswith("community, ") for name in plan.orders)
    x = integers(graph.num_src, 8, device="cuda", seed=6)
    assert torch.equal(pyg_sparse.spmm(plan, x), pyg_sparse.spmm(pyg_sparse.plan(edge_index, order="degree"), x))

    random = uniform(10_000, 300_000).edge_index.cuda()
    assert pyg_sparse.plan(random, 10_000).orders == ("degree", "degree")
    small = planted(count=50, size=100, degree=30, outside=0.05)[0].edge_index.cuda()
    assert small.size(1) < order_module._MIN_ENTRIES
    assert pyg_sparse.plan(small, 5000).orders == ("degree", "degree")
