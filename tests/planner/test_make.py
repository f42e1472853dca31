"""Plans that were chosen: by prediction, by measuring, for some widths apart, and remembered on disk."""

from __future__ import annotations

import json
import pickle
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import pyg_sparse
from pyg_sparse import Csr, Hyb, Plan
from pyg_sparse.planner import decide as decide_module
from pyg_sparse.planner import known, make
from pyg_sparse.planner.candidates import Candidate
from pyg_sparse.planner.cases import Case
from pyg_sparse.planner.choice import Choice, Scored
from pyg_sparse.planner.folder import CacheWarning
from pyg_sparse.planner.store import Store
from pyg_sparse.planner.tune import Step
from tests.conftest import FAMILIES, Graph
from tests.order_graphs import integers, needs_cuda, planted, uniform
from tests.planner.graphs import CPU

EVERY = (1, 8, 32, 128, 256)


@pytest.fixture
def small_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs of any size are worth a choice, and the device is known."""
    monkeypatch.setattr(decide_module, "MIN_ENTRIES", 0)
    monkeypatch.setattr(make, "device_speeds", lambda device, store: CPU)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYG_SPARSE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def strong() -> Graph:
    return planted(count=100, size=100, degree=30, outside=0.05)[0]


def split_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both directions have choices of their own for narrow products."""

    def decide(rows: Any, t_rows: Any, wanted: Any, device: Any) -> Choice:
        orders = dict(decide_module.orders_for(rows, t_rows, "auto"))
        base, narrow = Candidate("given", Csr()), Candidate("degree", Hyb(1, 2))
        return Choice(base, dict.fromkeys([Case(8, 4), Case(8, 8)], narrow), orders, [Scored(base), Scored(narrow)])

    monkeypatch.setattr(make, "decide", decide)


def products(plan: Plan, k: int, edges: int) -> list[Tensor]:
    x = integers(plan.num_src, k, device=str(plan.device), seed=1).requires_grad_()
    weight = integers(edges, device=str(plan.device), seed=2).requires_grad_()
    out = pyg_sparse.spmm(plan, x, weight, reduce="mean")
    loss = (out * integers(plan.num_dst, k, device=str(plan.device), seed=3)).sum()
    stored = pyg_sparse.spmm(plan, x, plan.store_weight(weight.detach()))
    return [out, stored, pyg_sparse.spmm(plan, x), *torch.autograd.grad(loss, (x, weight))]


@pytest.mark.usefixtures("small_counts")
@pytest.mark.parametrize("name", ["power_law", "symmetric", "wide", "duplicates"])
def test_products_of_some_widths_run_on_matrices_of_their_own(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    graph = FAMILIES[name]
    sizes, edges = (graph.num_src, graph.num_dst), graph.edge_index.size(1)
    expected = pyg_sparse.plan(graph.edge_index, sizes, order="degree", format=Csr())
    split_choice(monkeypatch)
    plan = pyg_sparse.plan(graph.edge_index, sizes, widths=EVERY, dtypes=[torch.float32, torch.float64])
    (pair,) = plan.special
    assert pair.cases == {Case(8, 4), Case(8, 8)}
    assert (plan.forward.name, pair.forward.name, pair.backward.name) == ("csr", "hyb", "hyb")
    assert plan.at(8, torch.float64) is pair
    assert plan.at(2, torch.float32) is pair
    assert plan.at(1, torch.float64) is plan.at(9, torch.float64) is plan.at(8, torch.bfloat16) is plan
    assert plan.t().at(8, torch.float64).forward is pair.backward
    assert plan.symmetric == (name == "symmetric")
    if plan.symmetric:
        assert pair.backward.col is pair.forward.col  # type: ignore[attr-defined]
    plan.save(tmp_path / "plan")
    copies = [plan, Plan.load(tmp_path / "plan"), pickle.loads(pickle.dumps(plan)), plan.to("cpu"), plan.t().t()]
    for copy in copies:
        copy.check()
        assert copy.at(8, torch.float64).forward.name == "hyb"
        assert copy.num_bytes() == plan.num_bytes() > expected.num_bytes()
        for k in (1, 5, 8, 9):
            for got, want in zip(products(copy, k, edges), products(expected, k, edges), strict=True):
                torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)
    assert "K = 2 to 8" in repr(plan)
    assert json.dumps(plan.describe())


@pytest.mark.usefixtures("small_counts")
def test_heads_and_batches_count_as_one_product(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = FAMILIES["power_law"]
    split_choice(monkeypatch)
    plan = pyg_sparse.plan(graph.edge_index, (graph.num_src, graph.num_dst), dtypes=[torch.float64])
    asked: list[int] = []
    at = Plan.at
    monkeypatch.setattr(Plan, "at", lambda self, k, dtype: asked.append(k) or at(self, k, dtype))
    x = torch.randn(3, graph.num_src, 2, dtype=torch.float64)
    pyg_sparse.spmm(plan, x)
    pyg_sparse.spmm(plan, x.movedim(0, 1), torch.randn(plan.num_edges, 3, dtype=torch.float64))
    pyg_sparse.spmm(plan, x[0])
    assert asked == [6, 6, 2]


def test_small_graphs_are_planned_without_a_look() -> None:
    plan = pyg_sparse.plan(uniform(100, 500).edge_index, 100)
    assert plan.report == {}
    assert plan.orders == ("given", "given")
    assert plan.explain().startswith("nothing was chosen")
    assert len(repr(plan).splitlines()) == 3


def test_auto_finds_strong_communities_on_a_cpu_with_little_cache(
    strong: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dataclasses

    speeds = dataclasses.replace(CPU, cache_bytes=strong.num_src * 16)
    monkeypatch.setattr(make, "device_speeds", lambda device, store: speeds)
    assert strong.edge_index.size(1) >= decide_module.MIN_ENTRIES
    plan = pyg_sparse.plan(strong.edge_index, strong.num_src, widths=[32, 128])
    assert all(name.startswith("community, ") for name in plan.orders)
    plain = pyg_sparse.plan(strong.edge_index, strong.num_src, order="given", format=Csr())
    x = integers(strong.num_src, 40, device="cpu", seed=6)
    assert torch.equal(pyg_sparse.spmm(plan, x), pyg_sparse.spmm(plain, x))
    assert torch.equal(pyg_sparse.spmm(plan.t(), x), pyg_sparse.spmm(plain.t(), x))
    text = plan.explain()
    assert "next: " in text
    assert "what decided: " in text
    assert "far" in text
    assert "chosen of 24 candidates" in repr(plan)
    plenty = dataclasses.replace(CPU, cache_bytes=1 << 30)
    monkeypatch.setattr(make, "device_speeds", lambda device, store: plenty)
    assert pyg_sparse.plan(strong.edge_index, strong.num_src).orders == ("given", "given")


@pytest.mark.usefixtures("small_counts")
def test_tuning_takes_what_was_measured_to_be_fastest(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyg_sparse.planner import tune

    times = iter([5.0, 3.0, 4.0, *[9.0] * 100])
    monkeypatch.setattr(tune, "time_product", lambda run, device, budget: next(times))
    monkeypatch.setattr(tune, "_HOPELESS", float("inf"))
    steps: list[Step] = []
    graph = uniform(300, 3000)
    plan = pyg_sparse.plan(graph.edge_index, 300, mode="tune", widths=[32], progress=steps.append)
    forward = steps[: steps[0].planned]
    assert [next(iter(step.measured.values())) for step in forward[:3]] == [5.0, 3.0, 4.0]
    best = forward[1].candidate
    assert plan.orders[0] == best.order
    assert plan.report["forward"]["base"] == best.as_dict()
    assert plan.report["forward"]["cases"][0]["candidates"][0]["measured_ms"] == 3.0


@pytest.mark.usefixtures("small_counts")
def test_tuning_keeps_to_its_budget_and_stops_where_the_rest_cannot_win(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyg_sparse.planner import tune

    graph = uniform(300, 3000)
    steps: list[Step] = []
    pyg_sparse.plan(graph.edge_index, 300, mode="tune", budget=1e-9, progress=steps.append)
    assert [step.done for step in steps] == [1, 1]  # one a direction
    monkeypatch.setattr(tune, "_HOPELESS", 0.0)
    steps.clear()
    monkeypatch.setattr(tune, "time_product", lambda run, device, budget: 1e-9)
    pyg_sparse.plan(graph.edge_index, 300, mode="tune", budget=100, progress=steps.append)
    assert [step.done for step in steps] == [1, 1]


def test_tuning_a_small_graph_really_measures() -> None:
    graph = FAMILIES["power_law"]
    plan = pyg_sparse.plan(graph.edge_index, (graph.num_src, graph.num_dst), mode="tune", widths=[8], budget=0.2)
    assert plan.report["forward"]["cases"][0]["candidates"][0]["measured_ms"] > 0
    assert "measured" in repr(plan)


@pytest.mark.usefixtures("small_counts")
@pytest.mark.parametrize("order", ["auto", "degree", "given", "community", "leading", "rcm"])
@pytest.mark.parametrize("sizes", [(60, 500), (500, 60)])
@pytest.mark.parametrize("mode", ["auto", "tune"])
def test_rectangular_graphs_have_every_order(order: str, sizes: tuple[int, int], mode: str) -> None:
    edge_index = torch.stack([torch.randint(n, (3000,)) for n in sizes])
    plan = pyg_sparse.plan(edge_index, sizes, order=order, mode=mode, budget=1e-6, widths=[8])
    plain = pyg_sparse.plan(edge_index, sizes, order="degree", format=Csr())
    expected = order if order in ("given", "leading") else "degree"
    assert order == "auto" or plan.orders == (expected, expected)
    x = integers(sizes[0], 5, device="cpu", seed=1)
    assert torch.equal(pyg_sparse.spmm(plan, x), pyg_sparse.spmm(plain, x))


@pytest.mark.usefixtures("small_counts")
def test_tuning_leaves_the_random_state_and_torchs_defaults(strong: Graph) -> None:
    before = torch.get_rng_state()
    pyg_sparse.plan(strong.edge_index, strong.num_src, mode="tune", budget=0.01, widths=[8])
    assert torch.equal(torch.get_rng_state(), before)


def test_speeds_do_not_depend_on_torchs_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyg_sparse.planner import device as device_module

    made: list[torch.dtype] = []
    monkeypatch.setattr(device_module, "_fastest", lambda run, device: made.append(run().dtype) or 1.0)
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    try:
        device_module.measure(torch.device("cpu"))
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)
    assert set(made) == {torch.float32}


@pytest.mark.usefixtures("small_counts")
def test_cases_too_large_to_measure_are_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyg_sparse.planner import tune

    monkeypatch.setattr(tune, "_MOST_BYTES", 600 * 32 * 4)
    graph = uniform(300, 3000)
    steps: list[Step] = []
    plan = pyg_sparse.plan(graph.edge_index, 300, mode="tune", widths=[32, 128], budget=0.05, progress=steps.append)
    assert all(set(step.measured) == {Case(32, 4)} for step in steps)
    assert [len(plan.report["forward"]["cases"]) for _ in "x"] == [2]


@pytest.mark.usefixtures("small_counts")
def test_rows_of_a_direction_are_freed_before_the_other_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    import weakref

    alive: list[bool] = []
    first: list[weakref.ref] = []
    build_all = make._build_all

    def watched(rows: Any, choice: Any) -> Any:
        alive.extend(ref() is not None for ref in first)
        first.append(weakref.ref(rows))
        return build_all(rows, choice)

    monkeypatch.setattr(make, "_build_all", watched)
    pyg_sparse.plan(uniform(300, 3000).edge_index, 300)
    assert alive == [False]


def test_compiled_products_choose_by_width(small_counts: None, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = FAMILIES["power_law"]
    split_choice(monkeypatch)
    plan = pyg_sparse.plan(graph.edge_index, (graph.num_src, graph.num_dst))
    compiled = torch.compile(lambda x: pyg_sparse.spmm(plan, x), fullgraph=True, backend="aot_eager")
    for k in (8, 40):
        x = torch.randn(graph.num_src, k)
        torch.testing.assert_close(compiled(x), pyg_sparse.spmm(plan, x))


def test_a_file_that_forges_what_others_rely_on_raises(small_counts: None, tmp_path: Path) -> None:
    from pyg_sparse.serialize import MALFORMED, pack, unpack

    graph = uniform(300, 3000)
    about, tensors = pack(pyg_sparse.plan(graph.edge_index, 300))
    about = json.loads(json.dumps(about))
    unpack(about, tensors)
    for forged in ({"symmetric": True}, {"report": {"x": 1}}, {"report": {"forward": {}, "backward": {}}},
                   {"num_edges": 2**60}, {"pairs": []}):  # fmt: skip
        with pytest.raises(MALFORMED):
            unpack(about | forged, tensors)
    large = [matrix | {"nnz": 2**60} for matrix in about["matrices"]]
    with pytest.raises(MALFORMED):
        unpack(about | {"matrices": large, "num_edges": 2**60}, tensors)


# The cache on disk


@pytest.mark.usefixtures("small_counts")
@pytest.mark.parametrize("order", ["auto", "community"])
def test_a_choice_is_remembered(order: str, folder: Path, strong: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    first = pyg_sparse.plan(strong.edge_index, strong.num_src, order=order)
    assert any(entry.header and entry.header.key["kind"] == "choice" for entry in Store.default().entries())

    def forbidden(*args: object, **kwargs: object) -> None:
        raise AssertionError("the choice was in the cache")

    monkeypatch.setattr(make, "decide", forbidden)
    monkeypatch.setattr(make, "device_speeds", forbidden)
    for entry in Store.default().entries():
        if entry.header and entry.header.key["kind"] == "plan":
            entry.path.unlink()
    again = pyg_sparse.plan(strong.edge_index.clone(), strong.num_src, order=order)
    assert again.orders == first.orders
    assert again.report == {name: first.report[name] for name in ("forward", "backward")}
    for a, b in zip(first.matrices(), again.matrices(), strict=True):
        assert all(torch.equal(t, b.tensors()[name]) for name, t in a.tensors().items())


@pytest.mark.usefixtures("small_counts")
def test_arrays_are_kept_where_they_are_sooner_read(
    folder: Path, strong: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyg_sparse.planner import remember

    monkeypatch.setattr(remember, "READ_GBS", 1e9)  # always sooner
    first = pyg_sparse.plan(strong.edge_index, strong.num_src, format=Hyb())
    monkeypatch.setattr(make, "rows_from_edges", None)  # not called again
    again = pyg_sparse.plan(strong.edge_index, strong.num_src, format=Hyb())
    assert again is not first
    x = torch.randn(strong.num_src, 9)
    assert torch.equal(pyg_sparse.spmm(again, x), pyg_sparse.spmm(first, x))
    assert torch.equal(again.edge_index(), strong.edge_index)
    assert again.describe() == first.describe()
    monkeypatch.undo()


@pytest.mark.usefixtures("small_counts")
def test_arrays_are_not_kept_where_they_are_sooner_built(
    folder: Path, strong: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyg_sparse.planner import remember

    monkeypatch.setattr(remember, "READ_GBS", 1e-9)
    pyg_sparse.plan(strong.edge_index, strong.num_src)
    assert {e.header.key["kind"] for e in Store.default().entries() if e.header} == {"choice"}


@pytest.mark.usefixtures("small_counts")
def test_other_wishes_and_other_graphs_are_other_records(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = uniform(500, 3000)
    calls: list[object] = []
    decide = make.decide
    monkeypatch.setattr(make, "decide", lambda *args: calls.append(args) or decide(*args))

    def planned(edge_index: Tensor = graph.edge_index, **options: Any) -> bool:
        calls.clear()
        pyg_sparse.plan(edge_index, options.pop("num_nodes", 500), **options)
        return bool(calls)

    assert planned()
    assert not planned()
    assert not planned(graph.edge_index.int())
    for options in ({"widths": [8]}, {"dtypes": [torch.float64]}, {"order": "community"}, {"format": Hyb()},
                    {"mode": "tune", "budget": 0.01}, {"mode": "tune", "budget": 0.02},
                    {"edge_values": False}, {"num_nodes": 501},
                    {"edge_index": graph.edge_index.flip(1)}, {"edge_index": graph.edge_index.flip(0)}):  # fmt: skip
        assert planned(**options), options
        assert not planned(**options), options
    assert planned(cache=False)


@pytest.mark.usefixtures("small_counts")
def test_another_version_chooses_anew_and_tuned_choices_serve_auto(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = uniform(500, 3000)
    calls: list[object] = []
    decide = make.decide
    monkeypatch.setattr(make, "decide", lambda *args: calls.append(args) or decide(*args))
    tuned = pyg_sparse.plan(graph.edge_index, 500, mode="tune", widths=[8])
    calls.clear()
    again = pyg_sparse.plan(graph.edge_index, 500, widths=[8])
    assert not calls
    assert again.report == tuned.report
    monkeypatch.setattr(pyg_sparse, "__version__", "99")
    pyg_sparse.plan(graph.edge_index, 500, widths=[8])
    assert calls


@pytest.mark.usefixtures("small_counts")
def test_a_record_that_makes_no_sense_is_replaced(folder: Path, strong: Graph) -> None:
    first = pyg_sparse.plan(strong.edge_index, strong.num_src)
    store = Store.default()
    for entry in store.entries():
        assert entry.header is not None
        key = entry.header.key
        record = store.get(key)
        assert record is not None
        tensors = {name: tensor.clone() for name, tensor in record.tensors.items()}
        spoiled: list[tuple[Any, dict[str, Tensor]]] = [({}, tensors), ({"forward": 3, "backward": []}, {})]
        spoiled += [(record.about, {name: t.flatten()[:-1].clone() for name, t in tensors.items()})]
        spoiled += [(record.about, {name: t.fill_(-1) if t.dtype != torch.bool else t for name, t in tensors.items()})]
        for about, wrong in spoiled:
            store.put(key, about, wrong)
            kept = any(e.header and e.header.key["kind"] == "plan" for e in store.entries()) and key["kind"] == "choice"
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                again = pyg_sparse.plan(strong.edge_index, strong.num_src)
            assert kept or any("not used" in str(w.message) for w in caught), (key["kind"], about)
            again.check()
            x = integers(strong.num_src, 3, device="cpu", seed=1)
            assert torch.equal(pyg_sparse.spmm(again, x), pyg_sparse.spmm(first, x))


@pytest.mark.usefixtures("small_counts")
def test_a_cache_that_cannot_be_used_costs_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PYG_SPARSE_CACHE", str(tmp_path / "file" / "cache"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plan = pyg_sparse.plan(uniform(500, 3000).edge_index, 500)
    assert plan.report
    assert any("cache" in str(w.message) for w in caught)


def test_a_device_is_measured_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[torch.device] = []

    def measure(device: torch.device) -> Any:
        import dataclasses

        calls.append(device)
        return dataclasses.replace(CPU, name=known.device_name(device))

    monkeypatch.setattr(known, "measure", measure)
    monkeypatch.setattr(known, "_known", {})
    store, device = Store.default(), torch.device("cpu")
    first = known.device_speeds(device, store)
    assert known.device_speeds(device, store) is first
    monkeypatch.setattr(known, "_known", {})  # another process
    assert known.device_speeds(device, store) == first
    assert len(calls) == 2  # for one measurement
    monkeypatch.setattr(known, "_known", {})
    for i, wrong in enumerate(({"near_gbs": 0}, {"far_gbs": "5"}, {"kind": "tpu"}, {"more": 1}, {"wait_us": None})):
        monkeypatch.setattr(known, "_known", {})
        store.put(known._key(first.name), first.as_dict() | wrong)
        with pytest.warns(CacheWarning, match="are not used"):
            assert known.device_speeds(device, store) == first
        assert len(calls) == 4 + 2 * i


def test_speeds_that_do_not_repeat_are_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import dataclasses

    name, store = known.device_name(torch.device("cpu")), Store.default()
    found = dataclasses.replace(CPU, name=name)
    slow = dataclasses.replace(found, near_gbs=found.near_gbs / 20, launch_ms=8.0)
    for pair, kept in (((slow, found), False), ((found, slow), False), ((found, found), True)):
        results = iter(pair)
        monkeypatch.setattr(known, "measure", lambda device, results=results: next(results))
        monkeypatch.setattr(known, "_known", {})
        assert known.device_speeds(torch.device("cpu"), store) == found  # the faster of both
        assert bool(store.entries()) == kept


def test_measuring_a_device_takes_a_moment(device: str) -> None:
    from pyg_sparse.planner.device import measure

    where = torch.device(device)
    measure(where)
    start = time.perf_counter()
    found = measure(where)
    assert time.perf_counter() - start < 5
    assert found.near_gbs > found.far_gbs > 0
    assert found.copy_gbs > 0
    assert 0 < found.launch_ms < 1
    assert (found.wait_us > 0) == (device == "cuda")


@needs_cuda
def test_plans_on_cuda_are_chosen_and_remembered(strong: Graph, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edge_index = strong.edge_index.cuda()
    plan = pyg_sparse.plan(edge_index, strong.num_src)
    plain = pyg_sparse.plan(edge_index, strong.num_src, order="degree", format=Csr())
    monkeypatch.setattr(make, "decide", None)  # not called again
    again = pyg_sparse.plan(edge_index, strong.num_src)
    assert again.orders == plan.orders
    for k in (1, 8, 40, 200):
        x = integers(strong.num_src, k, device="cuda", seed=6)
        expected = pyg_sparse.spmm(plain, x)
        assert torch.equal(pyg_sparse.spmm(plan, x), expected)
        assert torch.equal(pyg_sparse.spmm(again, x), expected)
    monkeypatch.undo()
    tuned = pyg_sparse.plan(edge_index, strong.num_src, mode="tune", budget=1.0, widths=[32])
    assert tuned.report["forward"]["cases"][0]["candidates"][0]["measured_ms"] > 0
    x = integers(strong.num_src, 32, device="cuda", seed=6)
    assert torch.equal(pyg_sparse.spmm(tuned, x), pyg_sparse.spmm(plain, x))
