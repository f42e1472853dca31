"""Plans: validation and its messages, symmetry, description, devices, copies, files."""

from __future__ import annotations

import copy
import gc
import json
import pickle
import re
import struct
import weakref
from pathlib import Path

import pytest
import safetensors.torch
import torch

import pyg_sparse
from pyg_sparse._extension import build_info
from pyg_sparse.formats import FormatSpec
from tests import reference
from tests.conftest import FAMILIES, Graph

EDGES = torch.tensor([[0, 1, 2, 3, 3], [1, 0, 3, 2, 3]])


def test_facts(graph: Graph, spec: FormatSpec, device: str) -> None:
    edge_index = graph.edge_index.to(device)
    plan = pyg_sparse.plan(edge_index, (graph.num_src, graph.num_dst), format=spec)
    src, dst = graph.edge_index
    assert (plan.num_src, plan.num_dst, plan.num_edges) == (graph.num_src, graph.num_dst, edge_index.size(1))
    assert torch.equal(plan.edge_index(), edge_index)
    assert torch.equal(plan.t().edge_index(), edge_index.flip(0))
    assert torch.equal(plan.in_degree.cpu(), torch.bincount(dst, minlength=graph.num_dst).int())
    assert torch.equal(plan.t().in_degree.cpu(), torch.bincount(src, minlength=graph.num_src).int())
    assert torch.equal(plan.t().out_degree.cpu(), plan.in_degree.cpu())
    if graph.num_src == graph.num_dst:
        assert torch.equal(plan.self_loops.cpu(), (src == dst).nonzero().flatten())
        assert torch.equal(plan.loop_nodes.cpu(), src[src == dst])
        key, reverse = (torch.sort(a * graph.num_src + b).values for a, b in ((src, dst), (dst, src)))
        assert plan.symmetric == torch.equal(key, reverse)
    plan.check()


def by(edge_index: torch.Tensor, side: int) -> torch.Tensor:
    """The edges sorted by source (0) or target (1)."""
    return edge_index[:, torch.argsort(edge_index[side], stable=True)]


def test_a_plan_knows_how_its_edges_are_sorted(tmp_path: Path, device: str) -> None:
    given = FAMILIES["power_law"].edge_index.to(device)
    for edge_index, edges, reversed_edges in (
        (by(given, 0), "by source", "by target"),
        (by(given, 1), "by target", "by source"),
        (given[:, torch.randperm(given.size(1), device=device)], "otherwise", "otherwise"),
    ):
        plan = pyg_sparse.plan(edge_index)
        assert (plan.edges, plan.t().edges, plan.t().t().edges) == (edges, reversed_edges, edges)
        assert pyg_sparse.plan(edge_index.flip(0)).edges == reversed_edges
        assert plan.describe()["edges"] == edges
        assert plan.to("cpu").edges == edges
        plan.save(tmp_path / "plan")
        assert pyg_sparse.Plan.load(tmp_path / "plan", device).edges == edges


def test_a_deleted_plan_gives_its_memory_back_at_once() -> None:
    plan = pyg_sparse.plan(FAMILIES["power_law"].edge_index)
    x = torch.randn(plan.num_src, 3, requires_grad=True)
    weight = torch.randn(plan.num_edges, requires_grad=True)
    held = [weakref.ref(tensor) for m in (plan.forward, plan.backward) for tensor in m.tensors().values()]
    gc.disable()
    try:
        outputs = [
            pyg_sparse.spmm(plan, x, weight, relu=True),
            pyg_sparse.sddmm(plan.t(), x, x),
            pyg_sparse.spmm(plan, x, weight, reduce="max"),
        ]
        sum(out.sum() for out in outputs).backward()  # what is held now are the outputs and how they came about
        del plan
        assert all(tensor() is None for tensor in held)
    finally:
        gc.enable()


def test_a_symmetric_structure_is_stored_once() -> None:
    edge_index = FAMILIES["symmetric"].edge_index
    implicit = pyg_sparse.plan(edge_index, 80, edge_values=False)
    assert implicit.symmetric
    assert implicit.backward is implicit.forward
    explicit = pyg_sparse.plan(edge_index, 80)
    assert explicit.backward.col is explicit.forward.col
    assert not torch.equal(explicit.backward.slot, explicit.forward.slot)
    assert explicit.num_bytes() == implicit.num_bytes() + 2 * 4 * 800


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_index_dtypes_and_strides(dtype: torch.dtype, device: str) -> None:
    edge_index = EDGES.to(device, dtype)
    x = torch.randn(4, 3, device=device)
    expected = reference.spmm(EDGES.to(device), 4, x)
    for variant in (edge_index, edge_index.t().contiguous().t(), edge_index.repeat_interleave(2, 1)[:, ::2]):
        torch.testing.assert_close(pyg_sparse.spmm(pyg_sparse.plan(variant), x), expected)


def test_num_nodes() -> None:
    assert pyg_sparse.plan(EDGES).num_src == 4
    assert pyg_sparse.plan(EDGES, 9).num_dst == 9
    bipartite = pyg_sparse.plan(EDGES, (5, 7))
    assert (bipartite.num_src, bipartite.num_dst) == (5, 7)
    assert pyg_sparse.plan(torch.empty(2, 0, dtype=torch.long)).num_src == 0


@pytest.mark.parametrize(
    ("edge_index", "num_nodes", "options", "error", "message"),
    [
        ([[0], [1]], None, {}, TypeError, "edge_index must be a torch.Tensor, not list"),
        (EDGES.float(), None, {}, TypeError, "edge_index must be int64 or int32, not torch.float32"),
        (EDGES[0], None, {}, ValueError, r"edge_index must have shape \[2, E\], not \[5\]"),
        (EDGES.t(), None, {}, ValueError, r"edge_index must have shape \[2, E\], not \[5, 2\]"),
        (EDGES.float().to_sparse(), None, {}, TypeError, r"edge_index must be a dense \[2, E\] tensor"),
        (EDGES - 1, None, {}, ValueError, r"edge_index\[0\] holds the negative source -1; indices start at 0"),
        (EDGES - 9, None, {}, ValueError, r"edge_index\[0\] holds the negative source -9"),
        (EDGES + 2**40, None, {}, ValueError, r"edge_index\[0\] holds the source 1099511627779; indices end at"),
        (EDGES, 0, {}, ValueError, "num_nodes=0 allows none"),
        (EDGES, 3, {}, ValueError, r"edge_index\[0\] holds the source 3, but num_nodes=3 allows 0 to 2"),
        (EDGES, (4, 3), {}, ValueError, r"edge_index\[1\] holds the target 3, but num_nodes=\(4, 3\) allows 0 to 2"),
        (EDGES, 4.0, {}, TypeError, r"num_nodes=4.0 must be an int, a pair"),
        (EDGES, (4,), {}, TypeError, r"num_nodes=\(4,\) must be an int, a pair"),
        (EDGES, -1, {}, ValueError, r"num_nodes=-1 must lie between 0 and 2147483647"),
        (EDGES, 2**31, {}, ValueError, r"num_nodes=2147483648 must lie between"),
        (EDGES, None, {"format": "ell"}, ValueError, r"format='ell' must be \"auto\" or one of Csr\(...\), Coo\(...\)"),
    ],
)
def test_bad_graphs(edge_index: object, num_nodes: object, options: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        pyg_sparse.plan(edge_index, num_nodes, **options)


def test_a_device_without_kernels() -> None:
    with pytest.raises(ValueError, match="device meta is not supported"):
        pyg_sparse.plan(torch.empty(2, 5, dtype=torch.long, device="meta"), 3)
    if not build_info()["cuda"]:
        with pytest.raises(
            RuntimeError, match="pyg_sparse was built for the CPU only; rebuild it with PYG_SPARSE_CUDA=1"
        ):
            pyg_sparse.plan(EDGES).to("cuda")


X = torch.randn(4, 3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda p: pyg_sparse.spmm(p, [1.0]), TypeError, "x must be a torch.Tensor, not list"),
        (lambda p: pyg_sparse.spmm(EDGES, X), TypeError, "plan must be a pyg_sparse.Plan, not Tensor"),
        (lambda p: pyg_sparse.sddmm(EDGES, X, X), TypeError, "plan must be a pyg_sparse.Plan, not Tensor"),
        (lambda p: pyg_sparse.spmm(p, X.to_sparse()), TypeError, "x must be a dense tensor"),
        (lambda p: pyg_sparse.spmm(p, X.int()), TypeError, "x has dtype torch.int32; allowed are float64, float32"),
        (lambda p: pyg_sparse.spmm(p, X[0]), ValueError, r"x must have shape \[..., 4, K\], not \[3\]"),
        (lambda p: pyg_sparse.spmm(p, X[:3]), ValueError, "x has 3 rows, but the plan has 4 sources"),
        (lambda p: pyg_sparse.spmm(p, X.to("meta")), ValueError, "x is on meta, but the plan is on cpu"),
        (
            lambda p: pyg_sparse.spmm(p, X, X[0]),
            ValueError,
            r"edge_weight must have shape \[5\], one value per edge, not \[3\]",
        ),
        (
            lambda p: pyg_sparse.spmm(p, X, torch.ones(5, 1)),
            ValueError,
            r"x must have shape \[4, H, K\], not \[4, 3\]",
        ),
        (
            lambda p: pyg_sparse.spmm(p, X[:, None], torch.ones(5, 2)),
            ValueError,
            r"edge_weight must have shape \[5\] or, .*\[5, 1\], not \[5, 2\]",
        ),
        (
            lambda p: pyg_sparse.spmm(p, X, torch.ones(5).double()),
            TypeError,
            "edge_weight has dtype torch.float64, but here",
        ),
        (lambda p: pyg_sparse.spmm(p, X, torch.ones(5, device="meta")), ValueError, "edge_weight is on meta"),
        (
            lambda p: pyg_sparse.spmm(p, X, reduce="median"),
            ValueError,
            "reduce='median' must be one of sum, mean, max, min",
        ),
        (lambda p: pyg_sparse.spmm(p, X, row_scale=torch.ones(3)), ValueError, r"row_scale must have shape \[4\]"),
        (
            lambda p: pyg_sparse.spmm(p, X.half(), col_scale=torch.ones(4).half()),
            TypeError,
            "col_scale has dtype torch.float16",
        ),
        (lambda p: pyg_sparse.sddmm(p, X, X[:2]), ValueError, "k has 2 rows, but the plan has 4 sources"),
        (lambda p: pyg_sparse.sddmm(p, X, X[:, :2]), ValueError, "q has width 3 and k 2"),
        (lambda p: pyg_sparse.sddmm(p, X, X.double()), TypeError, "q has dtype torch.float32 and k torch.float64"),
        (lambda p: pyg_sparse.sddmm(p, X[None], X), ValueError, "q has 1 rows, but the plan has 4 targets"),
        (lambda p: pyg_sparse.sddmm(p, X[:, None], X), ValueError, r"k must have shape \[4, H, K\], not \[4, 3\]"),
    ],
)
def test_bad_operands(call: object, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        call(pyg_sparse.plan(EDGES))


def test_operands_that_this_plan_does_not_take() -> None:
    plain = pyg_sparse.plan(EDGES, edge_values=False)
    with pytest.raises(ValueError, match="edge_weight needs a plan made with edge_values=True"):
        pyg_sparse.spmm(plain, X, torch.ones(5))
    with pytest.raises(ValueError, match="sddmm needs a plan made with edge_values=True"):
        pyg_sparse.sddmm(plain, X, X)
    with pytest.raises(ValueError, match="self_scale needs as many sources as targets; the plan has 4 and 5"):
        pyg_sparse.spmm(pyg_sparse.plan(EDGES, (4, 5)), X, self_scale=torch.ones(5))


def test_prints_itself() -> None:
    text = repr(pyg_sparse.plan(EDGES, format=pyg_sparse.Hyb(1, 1)))
    assert "Plan(4 sources -> 4 targets, 5 edges, mean in-degree 1.2, cpu, " in text
    assert re.search(r"forward: +hyb, \d+ B, padding 0.0%, 0 partials, c=1, k=1, rows by width \{2: 1, 1: 3\}", text)
    assert "structure shared with forward (symmetric)" in text


def same(a: pyg_sparse.Plan, b: pyg_sparse.Plan) -> bool:
    x, weight = torch.randn(a.num_src, 5), torch.randn(a.num_edges)
    directions = ((a, b, x), (a.t(), b.t(), torch.randn(a.num_dst, 5)))
    return all(
        torch.equal(pyg_sparse.spmm(p, x, w), pyg_sparse.spmm(q, x, w))
        for p, q, x in directions
        for w in ((None, weight) if a.has_edge_values else (None,))
    )


@pytest.mark.parametrize("edge_values", [True, False])
def test_copies_and_files(graph: Graph, spec: FormatSpec, edge_values: bool, tmp_path: Path) -> None:
    plan = pyg_sparse.plan(graph.edge_index, (graph.num_src, graph.num_dst), format=spec, edge_values=edge_values)
    plan.save(tmp_path / "plan.safetensors")
    loaded = pyg_sparse.Plan.load(tmp_path / "plan.safetensors")
    for other in (copy.deepcopy(plan), pickle.loads(pickle.dumps(plan)), loaded):
        assert same(plan, other)
        assert other.describe() == plan.describe()
    assert [path.name for path in tmp_path.iterdir()] == ["plan.safetensors"]
    assert plan.to("cpu") is plan


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "plan.safetensors"
    pyg_sparse.plan(FAMILIES["wide"].edge_index, (500, 7)).save(path)
    return path


def test_a_truncated_file_raises_at_every_length(saved: Path) -> None:
    whole = saved.read_bytes()
    for length in {0, 1, 7, 8, 9, 100, len(whole) // 2, len(whole) - 1}:
        saved.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="is not a readable pyg_sparse plan"):
            pyg_sparse.Plan.load(saved)


def test_a_missing_file_and_a_foreign_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no such plan file"):
        pyg_sparse.Plan.load(tmp_path / "none")
    safetensors.torch.save_file({"a": torch.ones(2)}, tmp_path / "other")
    with pytest.raises(ValueError, match="is not a readable pyg_sparse plan"):
        pyg_sparse.Plan.load(tmp_path / "other")


def rewritten(path: Path, change: object) -> None:
    with safetensors.safe_open(path, "pt") as file:
        about = json.loads(file.metadata()["pyg_sparse_plan"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    change(about, tensors)
    safetensors.torch.save_file(tensors, path, metadata={"pyg_sparse_plan": json.dumps(about)})


@pytest.mark.parametrize("spec", [pyg_sparse.Csr(4), pyg_sparse.Coo(4), pyg_sparse.Hyb(2, 2)], ids=repr)
def test_a_file_whose_indices_would_leave_the_tensors_raises(spec: FormatSpec, tmp_path: Path) -> None:
    plan = pyg_sparse.plan(FAMILIES["wide"].edge_index, (500, 7), format=spec)
    names = [f"matrix.0.{name}" for name, tensor in plan.forward.tensors().items() if tensor.numel()]
    for name in [*names, "in_degree", "out_degree"]:
        for how in ("large", "negative", "shorter", "dtype"):
            path = tmp_path / "plan"
            plan.save(path)

            def spoil(about: dict, tensors: dict, name: str = name, how: str = how) -> None:
                tensor = tensors[name].clone()
                if how == "shorter":
                    tensor = tensor[:-1].clone()
                elif how == "dtype":
                    tensor = tensor.float()
                else:
                    tensor.view(-1)[-1] = 10**6 if how == "large" else -7
                tensors[name] = tensor

            rewritten(path, spoil)
            if name.endswith("_degree") and how in ("large", "negative"):
                continue  # a wrong degree is a wrong number, not a wrong address
            if name.endswith("team_ptr") and how == "shorter":
                continue  # without teams, as here, a plan is as good
            with pytest.raises(ValueError, match="is not a readable pyg_sparse plan"):
                pyg_sparse.Plan.load(path)


def test_a_file_with_padding_inside_a_row_raises(tmp_path: Path) -> None:
    plan = pyg_sparse.plan(torch.tensor([[0, 1, 2], [0, 0, 0]]), (3, 1), format=pyg_sparse.Hyb(1, 2))
    assert plan.forward.col.tolist() == [0, 1, 2, -1]
    plan.save(tmp_path / "plan")
    rewritten(tmp_path / "plan", lambda about, tensors: tensors["matrix.0.col"].copy_(torch.tensor([0, -1, 1, 2])))
    with pytest.raises(ValueError, match="col's padding is wrong"):
        pyg_sparse.Plan.load(tmp_path / "plan")


def test_a_plan_made_for_inference_can_train(tmp_path: Path) -> None:
    with torch.inference_mode():
        made = pyg_sparse.plan(EDGES)
        made.save(tmp_path / "plan")
        loaded = pyg_sparse.Plan.load(tmp_path / "plan")
    for plan in (made, loaded):
        x, weight = X.clone().requires_grad_(), torch.rand(5, requires_grad=True)
        pyg_sparse.spmm(plan, x, weight).sum().backward()
        assert x.grad is not None


def test_a_saved_file_has_the_usual_permissions(saved: Path) -> None:
    plain = saved.with_name("plain")
    plain.write_text("")
    assert saved.stat().st_mode == plain.stat().st_mode


def test_a_file_of_another_version_or_with_other_sizes_raises(saved: Path) -> None:
    original = saved.read_bytes()
    for key, value in (("version", 99), ("num_src", 3), ("num_edges", 10**9), ("num_dst", "7")):
        saved.write_bytes(original)
        rewritten(saved, lambda about, tensors, key=key, value=value: about.update({key: value}))
        with pytest.raises(ValueError, match="is not a readable pyg_sparse plan"):
            pyg_sparse.Plan.load(saved)


def test_a_file_of_the_previous_version_says_so(saved: Path) -> None:
    def downgrade(about: dict, tensors: dict) -> None:
        about["version"] = 5

    rewritten(saved, downgrade)
    with pytest.raises(ValueError, match=r"is not a readable pyg_sparse plan: .*has version 5, this library reads 6"):
        pyg_sparse.Plan.load(saved)


@pytest.mark.parametrize("lie", ["by target", "by source"])
def test_a_file_that_lies_about_its_edges_raises(lie: str, saved: Path) -> None:
    def rename(about: dict, tensors: dict) -> None:
        assert about["edges"] == "otherwise"
        about["edges"] = lie

    rewritten(saved, rename)
    with pytest.raises(ValueError, match=r"is not a readable pyg_sparse plan: .*edges is wrong"):
        pyg_sparse.Plan.load(saved)


def test_a_file_whose_orders_are_not_two_names_raises(saved: Path) -> None:
    original = saved.read_bytes()
    for value in ("no", ["degree"], ["degree"] * 3, [1, 2], None):
        saved.write_bytes(original)
        rewritten(saved, lambda about, tensors, value=value: about["pairs"][0].update(orders=value))
        with pytest.raises(ValueError, match="is not a readable pyg_sparse plan"):
            pyg_sparse.Plan.load(saved)


def test_a_file_whose_edges_are_sorted_in_no_known_way_raises(saved: Path) -> None:
    original = saved.read_bytes()
    for value in ("by weight", "", None, ["by target"]):
        saved.write_bytes(original)
        rewritten(saved, lambda about, tensors, value=value: about.update(edges=value))
        with pytest.raises(ValueError, match="is not a readable pyg_sparse plan"):
            pyg_sparse.Plan.load(saved)


def test_a_header_that_lies_about_its_length_raises(saved: Path) -> None:
    whole = saved.read_bytes()
    saved.write_bytes(struct.pack("<Q", 2**62) + whole[8:])
    with pytest.raises(ValueError, match="is not a readable pyg_sparse plan"):
        pyg_sparse.Plan.load(saved)


def test_a_failed_save_leaves_the_old_file(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()

    def fail(*args: object, **kwargs: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("safetensors.torch.save_file", fail)
    with pytest.raises(OSError, match="disk full"):
        pyg_sparse.plan(EDGES).save(saved)
    assert saved.read_bytes() == before
    assert len(list(saved.parent.iterdir())) == 1


def test_edges_that_are_sorted_in_several_steps(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = FAMILIES["power_law"]
    edge_index = graph.edge_index.to(device)
    expected = pyg_sparse.plan(edge_index, graph.num_src)
    monkeypatch.setattr("pyg_sparse.formats.rows._SORTED_AT_ONCE", 37)
    plan = pyg_sparse.plan(edge_index, graph.num_src)
    for mine, other in ((plan.forward, expected.forward), (plan.backward, expected.backward)):
        for name, tensor in mine.tensors().items():
            assert torch.equal(tensor, other.tensors()[name]), name
    assert torch.equal(plan.self_loops, expected.self_loops)
