"""Orders of rows: label propagation, grouping, and that results do not depend on them."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from pathlib import Path

import pytest
import torch
from torch import Tensor

import pyg_sparse
from pyg_sparse.formats import FormatSpec, Rows
from pyg_sparse.order import ROUNDS, Order, arrange, communities, community_order, given_order
from tests.conftest import FAMILIES, Graph
from tests.formats.test_formats import rows_of
from tests.order_graphs import both_sides, integers, needs_cuda, planted, uniform

MASK = 2**32 - 1


def _every_length() -> Graph:
    """Row i has i entries: around 31, samples start to replace them."""
    dst = torch.arange(70).repeat_interleave(torch.arange(70))
    return Graph(torch.stack([torch.randint(70, dst.shape, generator=torch.Generator().manual_seed(4)), dst]), 70, 70)


GRAPHS = {
    name: graph for name, graph in FAMILIES.items() if graph.num_src == graph.num_dst and graph.edge_index.numel()
}
GRAPHS["every_length"] = _every_length()


# Label propagation


def mix(h: int) -> int:
    h = (h ^ h >> 16) * 0x85EBCA6B & MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & MASK
    return h ^ h >> 16


def voted(rows: Rows, label: list[int], seed: int) -> list[int]:
    """The rule of csrc/include/pyg_sparse/vote.h."""
    result = list(label)
    rowptr, row, col = rows.rowptr.tolist(), rows.row.tolist(), rows.col.tolist()
    for r, node in enumerate(row):
        entries = col[rowptr[r] : rowptr[r + 1]]
        if len(entries) > 31:
            start = mix(seed ^ node * 0x9E3779B9 & MASK)
            entries = [entries[mix(start + i & MASK) * len(entries) >> 32] for i in range(31)]
        votes = Counter([*(label[c] for c in entries if c != node), label[node]])
        result[node] = max(votes, key=lambda name: (votes[name], mix(name ^ mix(seed)) >> 6))
    return result


@pytest.mark.parametrize("seed", [0, 7, MASK])
@pytest.mark.parametrize("name", GRAPHS)
def test_a_vote_follows_the_rule(name: str, seed: int, device: str) -> None:
    rows, _ = both_sides(GRAPHS[name], device)
    few = torch.randint(5, (rows.num_rows,), dtype=torch.int32, generator=torch.Generator().manual_seed(seed))
    for label in (torch.arange(rows.num_rows, dtype=torch.int32), few):
        result = torch.ops.pyg_sparse.vote(rows.rowptr, rows.row, rows.col, label.to(device), seed)
        assert result.tolist() == voted(rows, label.tolist(), seed)


def test_rounds_alternate_between_in_and_out_edges(device: str) -> None:
    rows, t_rows = both_sides(FAMILIES["power_law"], device)
    label = list(range(rows.num_rows))
    for i in range(5):
        label = voted(t_rows if i % 2 else rows, label, 40 + i)
    assert communities(rows, t_rows, 5, seed=40).tolist() == label


def test_rounds_can_be_continued() -> None:
    rows, t_rows = both_sides(FAMILIES["uniform"])
    early = communities(rows, t_rows, 4, seed=3)
    assert not torch.equal(early, communities(rows, t_rows, 8, seed=3))
    assert torch.equal(communities(rows, t_rows, 4, early, seed=3 + 4), communities(rows, t_rows, 8, seed=3))


def test_labels_repeat_for_a_seed_and_differ_for_another(device: str) -> None:
    rows, t_rows = both_sides(planted(20, 100, 10, 0.2)[0], device)
    labels = [communities(rows, t_rows, 8, seed=seed) for seed in (1, 1, 2)]
    assert torch.equal(labels[0], labels[1])
    assert not torch.equal(labels[0], labels[2])


@pytest.mark.parametrize("rounds", ROUNDS[1:])
def test_planted_communities_are_found(rounds: int, device: str) -> None:
    graph, community = planted(count=20, size=100, degree=20, outside=0.02)
    label = communities(*both_sides(graph, device), rounds).cpu()
    src, dst = graph.edge_index
    assert (label[src] == label[dst]).double().mean() >= 0.95
    # Nor is everything one community: of each that was found, nearly all nodes were planted together.
    pairs = torch.stack([label.long(), community], dim=1).unique(dim=0, return_counts=True)
    most = Counter()
    for (found, _), nodes in zip(pairs[0].tolist(), pairs[1].tolist(), strict=True):
        most[found] = max(most[found], nodes)
    assert sum(most.values()) >= 0.9 * graph.num_src


def test_self_loops_do_not_keep_every_label_as_it_is(device: str) -> None:
    # At first all labels differ: a node's own has two votes if its self-loop counts, and any other one.
    graph, _ = planted(count=20, size=100, degree=20, outside=0.02)
    loops = torch.arange(graph.num_src).expand(2, -1)
    looped = Graph(torch.cat([graph.edge_index, loops], dim=1), graph.num_src, graph.num_dst)
    label = communities(*both_sides(looped, device), 8).cpu()
    src, dst = graph.edge_index
    assert (label[src] == label[dst]).double().mean() >= 0.95


# Grouping


def community_orders(name: str, device: str = "cpu") -> tuple[Rows, Order]:
    rows, t_rows = both_sides(GRAPHS[name], device)
    return rows, community_order(rows, communities(rows, t_rows, 4))


@pytest.mark.parametrize("name", GRAPHS)
def test_rows_of_a_group_lie_together_by_length(name: str, device: str) -> None:
    rows, order = community_orders(name, device)
    assert order.row.sort().values.tolist() == list(range(rows.num_rows))
    group = order.group[rows.row[order.row].long()]
    runs = torch.unique_consecutive(group)
    assert runs.numel() == group.unique().numel()
    lengths = rows.lengths()[order.row]
    same = group[1:] == group[:-1]
    assert (lengths[1:] <= lengths[:-1])[same].all()


def test_groups_are_those_of_the_labels() -> None:
    rows, t_rows = both_sides(FAMILIES["banded"])
    label = communities(rows, t_rows, 4)
    group = community_order(rows, label).group
    assert 1 < group.unique().numel() < rows.num_rows
    assert torch.equal(label[:, None] == label, group[:, None] == group)


def test_neighbouring_groups_lie_together() -> None:
    # Communities in four parts, which are the groups: their names tell nothing of which belong together.
    graph, community = planted(count=20, size=100, degree=20, outside=0.02)
    rows = rows_of(graph)
    part = torch.randint(4, (2000,), generator=torch.Generator().manual_seed(1))
    label = torch.randperm(80, generator=torch.Generator().manual_seed(2))[4 * community + part].int()
    order = community_order(rows, label)
    assert order.group.unique().numel() == 80
    stored = community[rows.row[order.row].long()]
    assert torch.unique_consecutive(stored).numel() <= 30  # 20 if no part strays; about 77 in no order


def expected_row(rows: Rows, r: int, own: Tensor | None = None) -> list[tuple[int, int]]:
    """(col, slot) of a stored row: own columns first, then, on CUDA, by phase and descending degree; by id and slot."""
    degree = torch.bincount(rows.col.cpu(), minlength=rows.num_cols).tolist()
    begin, end = rows.rowptr[r : r + 2].tolist()
    entries = zip(rows.col[begin:end].tolist(), rows.slot[begin:end].tolist(), strict=True)

    def key(entry: tuple[int, int]) -> tuple[bool, int, int, int, int]:
        col, slot = entry
        phase = int(f"{col % 8:03b}"[::-1], 2)
        by_cache = (phase, -degree[col]) if rows.col.is_cuda else (0, 0)
        return own is not None and not own[col], *by_cache, col, slot

    return sorted(entries, key=key)


def stored_entries(rows: Rows) -> list[list[tuple[int, int]]]:
    pairs = list(zip(rows.col.tolist(), rows.slot.tolist(), strict=True))
    rowptr = rows.rowptr.tolist()
    return [pairs[begin:end] for begin, end in itertools.pairwise(rowptr)]


@pytest.mark.parametrize("name", ["duplicates", "hub", "power_law", "uniform", "symmetric", "wide", "tall"])
def test_columns_of_a_row_are_sorted(name: str, device: str) -> None:
    rows = rows_of(FAMILIES[name], device)
    phases = rows.col % 8
    assert (phases > 3).any() == (rows.num_cols > 4)  # there is something to sort
    assert stored_entries(rows) == [expected_row(rows, r) for r in range(rows.num_rows)]


@pytest.mark.parametrize("keep_slots", [True, False])
@pytest.mark.parametrize("name", GRAPHS)
def test_arranging_moves_rows_and_sorts_own_columns_first(name: str, keep_slots: bool, device: str) -> None:
    rows, order = community_orders(name, device)
    given = rows if keep_slots else dataclasses.replace(rows, slot=rows.slot[:0])
    arranged = arrange(given, order)
    assert torch.equal(arranged.row, rows.row[order.row])
    assert arranged.slot.dtype == rows.slot.dtype
    assert (arranged.num_rows, arranged.num_cols) == (rows.num_rows, rows.num_cols)
    if not keep_slots:
        assert arranged.slot.numel() == 0
        assert torch.equal(arranged.col, arrange(rows, order).col)
        return
    group = order.group.cpu()
    expected = [
        expected_row(rows, r, own=group == group[node])
        for r, node in zip(order.row.tolist(), arranged.row.tolist(), strict=True)
    ]
    assert stored_entries(arranged) == expected


def test_few_samples_are_drawn_from_many_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    # Every isolated node is a group: samples must not take more memory than the graph, whatever the number of groups.
    nodes = 100_000
    drawn: list[int] = []
    rand = torch.rand

    def counting_rand(*size: int, **kwargs: object) -> Tensor:
        drawn.append(torch.Size(size).numel())
        return rand(*size, **kwargs)

    monkeypatch.setattr(torch, "rand", counting_rand)
    rows, t_rows = both_sides(Graph(torch.tensor([[0, 1, 2], [1, 2, 0]]), nodes, nodes))
    community_order(rows, communities(rows, t_rows, 4))
    assert drawn
    assert max(drawn) <= 2 * nodes


def test_the_given_order_is_sorted_by_length_in_windows(device: str) -> None:
    graph = uniform(10_000, 30_000)
    rows = rows_of(graph, device)
    arranged = arrange(rows, given_order(rows))
    size = 256 if device == "cpu" else 4096
    window = arranged.row // size
    assert window.tolist() == sorted(window.tolist())
    for w in range(10_000 // size + 1):
        inside = window == w
        assert sorted(arranged.row[inside].tolist()) == [*range(size * w, min(size * (w + 1), 10_000))]
        lengths = arranged.lengths()[inside]
        assert bool((lengths[1:] <= lengths[:-1]).all())
    # Every row has the entries it had, in the same order.
    assert dict(zip(arranged.row.tolist(), stored_entries(arranged), strict=True)) == dict(
        zip(rows.row.tolist(), stored_entries(rows), strict=True)
    )


# Plans


def plans_by_order(
    graph: Graph,
    spec: FormatSpec | str = "auto",
    device: str = "cpu",
    orders: tuple[str, ...] = ("degree", "community"),
    **options: bool,
) -> list:
    edge_index, sizes = graph.edge_index.to(device), (graph.num_src, graph.num_dst)
    return [pyg_sparse.plan(edge_index, sizes, format=spec, order=order, **options) for order in orders]


def test_results_do_not_depend_on_the_order(graph: Graph, spec: FormatSpec, device: str) -> None:
    plans = plans_by_order(graph, spec, device, ("degree", "community", "given", "leading", "rcm"))
    edges = graph.edge_index.size(1)
    groups = graph.num_src == graph.num_dst and edges > 0
    assert plans[0].orders == ("degree", "degree")
    assert all(name.startswith("community, ") == groups for name in plans[1].orders)
    assert plans[2].orders == (("given", "given") if edges > 0 else ("degree", "degree"))
    assert plans[3].orders == (("leading", "leading") if edges > 0 else ("degree", "degree"))
    assert plans[4].orders == (("rcm", "rcm") if groups else ("degree", "degree"))
    assert len({plan.symmetric for plan in plans}) == 1

    results = []
    for plan in plans:
        plan.check()
        x, q = (integers(n, 5, device=device, seed=n).requires_grad_() for n in (graph.num_src, graph.num_dst))
        weight = integers(edges, device=device, seed=1).requires_grad_()
        out, dots = pyg_sparse.spmm(plan, x, weight), pyg_sparse.sddmm(plan, q, x)
        loss = (out * integers(graph.num_dst, 5, device=device, seed=2)).sum() + (dots * dots).sum()
        gradients = torch.autograd.grad(loss, (x, q, weight))
        implicit = pyg_sparse.spmm(plan, x)
        results.append([plan.edge_index(), plan.t().edge_index(), out, dots, implicit, *gradients])
    for first, *others in zip(*results, strict=True):
        assert all(torch.equal(first, other) for other in others)


def test_results_without_edge_values_do_not_depend_on_the_order(graph: Graph, spec: FormatSpec) -> None:
    plans = plans_by_order(graph, spec, edge_values=False)
    results = []
    for plan in plans:
        x = integers(graph.num_src, 3, device="cpu", seed=3).requires_grad_()
        out = pyg_sparse.spmm(plan, x)
        (gradient,) = torch.autograd.grad((out * integers(graph.num_dst, 3, device="cpu", seed=4)).sum(), x)
        src, dst = plan.edge_index()
        results.append([out, gradient, torch.sort(src * max(graph.num_dst, 1) + dst).values])
    for a, b in zip(*results, strict=True):
        assert torch.equal(a, b)


def test_a_symmetric_plan_by_communities_is_stored_once() -> None:
    _, plan = plans_by_order(FAMILIES["symmetric"])
    assert plan.backward.row is plan.forward.row
    assert plan.orders[0] == plan.orders[1]
    _, implicit = plans_by_order(FAMILIES["symmetric"], edge_values=False)
    assert implicit.backward is implicit.forward


def test_a_plan_stores_rows_of_a_community_together() -> None:
    graph, community = planted(count=20, size=100, degree=20, outside=0.0)
    by_degree, by_community = plans_by_order(graph, pyg_sparse.Csr())
    for matrix in (by_community.forward, by_community.backward):
        assert torch.unique_consecutive(community[matrix.row.long()]).numel() <= 40  # 20 if each has one label
    assert torch.unique_consecutive(community[by_degree.forward.row.long()]).numel() > 500


def test_a_plan_repeats_and_leaves_the_random_state(device: str) -> None:
    graph, _ = planted(count=20, size=100, degree=10, outside=0.2)
    before = torch.get_rng_state()
    first, second = (pyg_sparse.plan(graph.edge_index.to(device), 2000, order="community") for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert first.orders == second.orders
    for a, b in ((first.forward, second.forward), (first.backward, second.backward)):
        for name, tensor in a.tensors().items():
            assert torch.equal(tensor, b.tensors()[name]), name


def test_orders_follow_the_plan(tmp_path: Path, device: str) -> None:
    _, plan = plans_by_order(FAMILIES["power_law"])
    plan = dataclasses.replace(plan, orders=("degree", plan.orders[1]))  # so that the two differ
    assert plan.orders[1].startswith("community, ")
    assert plan.t().orders == plan.orders[::-1]
    assert plan.t().t().orders == plan.orders
    assert plan.to(device).orders == plan.orders
    assert plan.describe()["orders"] == plan.orders
    plan.save(tmp_path / "plan")
    assert pyg_sparse.Plan.load(tmp_path / "plan", device).orders == plan.orders
    forward, backward = repr(plan).splitlines()[1:3]
    assert forward.endswith(", rows by degree")
    assert backward.endswith(f", rows by {plan.orders[1]}")


# CUDA


@needs_cuda
@pytest.mark.parametrize("name", GRAPHS)
def test_labels_are_those_of_the_cpu(name: str) -> None:
    for rounds in ROUNDS:
        rows = both_sides(GRAPHS[name], "cuda")
        moved = [Rows(*(v.cpu() if torch.is_tensor(v) else v for v in vars(side).values())) for side in rows]
        on_cpu, on_cuda = (communities(*sides, rounds) for sides in (moved, rows))
        assert torch.equal(on_cuda.cpu(), on_cpu)
