"""spmm with reduce="max" and "min": results and winners, exactly, and their gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import pyg_sparse
from pyg_sparse.formats import FormatSpec
from pyg_sparse.validate import DTYPES
from tests import reference
from tests.conftest import FAMILIES, Graph
from tests.test_autograd import leaf
from tests.test_ops import accumulator, make_plan, strided

REDUCTIONS = ("max", "min")
# fp32 takes every width, the others share them out: the code of a width hardly depends on the dtype.
WIDTHS_OF = {
    torch.float32: (0, 1, 3, 8, 33, 128, 143),
    torch.float64: (0, 3, 33, 128),
    torch.bfloat16: (1, 8, 33, 143),
    torch.float16: (1, 3, 8, 128),
}
INF, NAN = float("inf"), float("nan")
REPEATED = torch.tensor([-2.0, -1.0, -0.0, 0.0, 1.0, 2.0])


def arguments(plan: pyg_sparse.Plan, x: Tensor, value: Tensor | None, reduce: str) -> tuple:
    a = plan.forward
    return a.name, a.layout, a.num_partials, a.num_rows, a.num_cols, x, value, reduce == "max"


def run(plan: pyg_sparse.Plan, x: Tensor, value: Tensor | None, reduce: str) -> tuple[Tensor, Tensor]:
    """The result, and the position of the winner of each of its elements."""
    return torch.ops.pyg_sparse.spmm_extremum(*arguments(plan, x, value, reduce))


def expected_winners(plan: pyg_sparse.Plan, x: Tensor, value: Tensor | None, reduce: str) -> Tensor:
    """Of every row's best messages, as the accumulator holds them, the one with the lowest position."""
    row, col, position = plan.forward.stored_entries()
    acc = accumulator(x.dtype)
    message = x[col].to(acc)
    if value is not None:
        message = message * value[plan.forward.slot[position].long()].to(acc)[:, None]
    index = row[:, None].expand_as(message)
    best = reference.extremum(row, plan.num_dst, message, reduce)[row]
    wins = (message == best) | (message.isnan() & best.isnan())
    none = plan.forward.col.numel()
    candidate = torch.where(wins, position[:, None], none)
    first = torch.full((plan.num_dst, x.size(1)), none, device=x.device).scatter_reduce(0, index, candidate, "amin")
    return torch.where(first == none, -1, first)


def check(plan: pyg_sparse.Plan, edge_index: Tensor, x: Tensor, value: Tensor | None, reduce: str) -> None:
    """Products of fp32 and narrower are exact in fp64, and rounding keeps their order: nothing may differ."""
    out, arg = run(plan, x, value, reduce)
    message = x[edge_index[0]].double()
    if value is not None:
        message = message * value[:, None].double()
    exact = reference.extremum(edge_index[1], plan.num_dst, message, reduce)
    torch.testing.assert_close(out, exact.to(x.dtype), rtol=0, atol=0, equal_nan=True)
    assert torch.equal(arg, expected_winners(plan, x, value, reduce))
    torch.testing.assert_close(pyg_sparse.spmm(plan, x, value, reduce=reduce), out, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_extremum(graph: Graph, spec: FormatSpec, dtype: torch.dtype, device: str, poisoned: None) -> None:
    plan = make_plan(graph, spec, device)
    edge_index = graph.edge_index.to(device)
    generator = torch.Generator(device).manual_seed(0)
    for i, width in enumerate(WIDTHS_OF[dtype]):
        x = torch.randn(graph.num_src, width, generator=generator, device=device).to(dtype)
        value = torch.randn(plan.num_edges, generator=generator, device=device).to(dtype)
        check(plan, edge_index, x, (value, None)[i % 2], REDUCTIONS[i // 2 % 2])
        check(plan, edge_index, x, (None, value)[i % 2], REDUCTIONS[(i // 2 + 1) % 2])


@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("family", ["duplicates", "hub", "power_law", "wide", "sparse_tall"])
def test_ties_nan_and_inf(family: str, spec: FormatSpec, reduce: str, device: str, poisoned: None) -> None:
    graph = FAMILIES[family]
    plan = make_plan(graph, spec, device)
    edge_index = graph.edge_index.to(device)
    generator = torch.Generator().manual_seed(0)

    def draw(of: Tensor, *shape: int) -> Tensor:
        return of[torch.randint(len(of), shape, generator=generator)].to(device)

    special = torch.cat([REPEATED.repeat(4), torch.tensor([INF, -INF, NAN])])
    for width in (1, 8, 33):
        for choice in (REPEATED, special):
            x, value = draw(choice, graph.num_src, width), draw(choice, plan.num_edges)
            check(plan, edge_index, x, None, reduce)
            check(plan, edge_index, x, value, reduce)
    for constant in (INF, -INF, NAN, 0.0):
        x = torch.full((graph.num_src, 9), constant, device=device)
        check(plan, edge_index, x, None, reduce)


def test_padding_and_other_rows_never_touch_a_nan(spec: FormatSpec, device: str) -> None:
    # Source 0 is what a padded position would read; it has no edges, and neither has source 5.
    src, dst = torch.randint(6, 60, (300,)), torch.randint(60, (300,))
    plan = pyg_sparse.plan(torch.stack([src, dst]).to(device), 60, format=spec)
    x = torch.randn(60, 17, device=device)
    x[:6] = NAN
    for value in (None, torch.randn(300, device=device)):
        assert pyg_sparse.spmm(plan, x, value, reduce="max").isfinite().all()


@pytest.mark.parametrize("how", ["column_major", "wide_rows", "every_second", "misaligned", "expanded"])
@pytest.mark.parametrize("width", [1, 8, 36])
def test_strides(spec: FormatSpec, how: str, width: int, device: str, poisoned: None) -> None:
    graph = FAMILIES["power_law"]
    plan = make_plan(graph, spec, device)
    value = torch.randn(2 * plan.num_edges, device=device)[::2]
    check(plan, graph.edge_index.to(device), strided(torch.randn(200, width, device=device), how), value, "min")


def test_batches(spec: FormatSpec, device: str) -> None:
    plan = make_plan(FAMILIES["wide"], spec, device)
    x = torch.randn(2, 3, 500, 5, device=device)
    result = pyg_sparse.spmm(plan, x, reduce="max")
    assert result.shape == (2, 3, 7, 5)
    for i in range(2):
        for j in range(3):
            assert torch.equal(result[i, j], pyg_sparse.spmm(plan, x[i, j], reduce="max"))


def test_repeats_bit_for_bit(spec: FormatSpec, device: str) -> None:
    plan = make_plan(FAMILIES["hub"], spec, device)
    x = torch.randint(-3, 3, (150, 33), device=device).float()
    out, arg = run(plan, x, None, "min")
    for _ in range(5):
        again = run(plan, x, None, "min")
        assert torch.equal(out, again[0])
        assert torch.equal(arg, again[1])


@pytest.mark.parametrize("threads", [2, 7])
@pytest.mark.parametrize("family", ["hub", "wide", "tall"])
def test_threads(family: str, spec: FormatSpec, threads: int, poisoned: None) -> None:
    graph = FAMILIES[family]
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        x = torch.randint(-9, 9, (graph.num_src, 200)).float()
        check(make_plan(graph, spec, "cpu"), graph.edge_index, x, None, "max")
    finally:
        torch.set_num_threads(before)


def test_a_plan_without_edge_values(spec: FormatSpec, device: str) -> None:
    graph = FAMILIES["power_law"]
    plan, full = (make_plan(graph, spec, device, edge_values=keep) for keep in (False, True))
    x = torch.randn(200, 9, device=device, requires_grad=True)
    results = [pyg_sparse.spmm(p, x, reduce="max") for p in (plan, full)]
    assert torch.equal(*results)
    assert torch.equal(*(torch.autograd.grad(result.square().sum(), x)[0] for result in results))
    with pytest.raises(ValueError, match="edge_weight needs a plan made with edge_values=True"):
        pyg_sparse.spmm(plan, x, torch.ones(3000, device=device), reduce="max")


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_what_does_not_go_with_an_extremum(reduce: str) -> None:
    plan = pyg_sparse.plan(torch.tensor([[0, 1, 2], [1, 2, 0]]), 3)
    x = torch.randn(3, 4)
    for name in ("row_scale", "col_scale", "self_scale"):
        with pytest.raises(ValueError, match=f"{name} cannot be used with reduce='{reduce}'; it needs reduce='sum'"):
            pyg_sparse.spmm(plan, x, reduce=reduce, **{name: torch.ones(3)})
    with pytest.raises(ValueError, match="bias cannot be used"):
        pyg_sparse.spmm(plan, x, reduce=reduce, bias=torch.ones(4))
    with pytest.raises(ValueError, match="relu cannot be used"):
        pyg_sparse.spmm(plan, x, reduce=reduce, relu=True)
    with pytest.raises(ValueError, match=r"edge_weight of shape \[3, 2\] cannot be used .* one weight per edge"):
        pyg_sparse.spmm(plan, torch.randn(3, 2, 4), torch.ones(3, 2), reduce=reduce)
    with pytest.raises(ValueError, match=r"edge_weight must have shape \[3\]"):
        pyg_sparse.spmm(plan, x, torch.ones(4), reduce=reduce)


def distinct(shapes: list[tuple[int, ...]], device: str) -> list[Tensor]:
    """Tensors whose elements, and products of elements of two, all differ by more than a difference quotient's step."""
    generator = torch.Generator().manual_seed(0)
    tensors, step = [], 1e-4
    for shape in shapes:
        size = torch.Size(shape).numel()
        sign = torch.randint(2, (size,), generator=generator) * 2 - 1
        magnitude = (torch.randperm(size, generator=generator).double() * step).exp()
        tensors.append((sign * magnitude).view(shape).to(device).requires_grad_())
        step *= size
    return tensors


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_gradients(small: Graph, spec: FormatSpec, reduce: str, device: str) -> None:
    plan = pyg_sparse.plan(small.edge_index.to(device), (small.num_src, small.num_dst), format=spec)
    x, value = distinct([(small.num_src, 3), (plan.num_edges,)], device)

    def aggregate(x: Tensor, value: Tensor | None = None) -> Tensor:
        return pyg_sparse.spmm(plan, x, value, reduce=reduce)

    # Torch's atomics add in any order. Fast mode checks a projection; the next test checks every element.
    options = {"nondet_tol": 1e-12, "fast_mode": True}
    assert torch.autograd.gradcheck(aggregate, (x,), **options)
    assert torch.autograd.gradcheck(aggregate, (x, value), **options)
    assert torch.autograd.gradgradcheck(aggregate, (x, value), **options)


@pytest.mark.parametrize("family", list(FAMILIES))
def test_gradients_select_the_winners(family: str, spec: FormatSpec, device: str, poisoned: None) -> None:
    graph = FAMILIES[family]
    plan = make_plan(graph, spec, device)
    generator = torch.Generator().manual_seed(0)
    x = REPEATED[torch.randint(6, (graph.num_src, 7), generator=generator)].to(device).requires_grad_()
    value = REPEATED[torch.randint(6, (plan.num_edges,), generator=generator)].to(device).requires_grad_()
    weight = torch.randint(-4, 5, (graph.num_dst, 7), generator=generator).float().to(device)
    result = pyg_sparse.spmm(plan, x, value, reduce="max")
    grads = torch.autograd.grad((result * weight).sum(), (x, value), create_graph=True)

    edge, column = torch.full((graph.num_dst, 7), -1), torch.arange(7).expand(graph.num_dst, 7)
    arg = expected_winners(plan, x, value, "max").cpu()
    there = arg >= 0
    edge[there] = plan.forward.slot.cpu()[arg[there]].long()
    src = graph.edge_index[0][edge[there]]
    selected = x.cpu()[src, column[there]] * value.cpu()[edge[there]]
    expected = torch.autograd.grad((selected * weight.cpu()[there]).sum(), (x, value), create_graph=True)
    for grad, exact in zip(grads, expected, strict=True):  # small integers: their sums are exact
        assert torch.equal(grad, exact.to(device))

    second = torch.autograd.grad(sum(grad.square().sum() for grad in grads), (x, value))
    second_expected = torch.autograd.grad(sum(grad.square().sum() for grad in expected), (x, value))
    for grad, exact in zip(second, second_expected, strict=True):
        assert torch.equal(grad, exact.to(device))


def test_the_gradient_of_an_empty_row_stays_away_from_a_nan(spec: FormatSpec, device: str) -> None:
    plan = pyg_sparse.plan(torch.tensor([[0, 1], [0, 1]], device=device), (2, 4), format=spec)
    x = torch.tensor([[NAN], [NAN]], device=device, requires_grad=True)
    value = torch.tensor([NAN, NAN], device=device, requires_grad=True)
    result = pyg_sparse.spmm(plan, x, value, reduce="max")
    assert result[2:].eq(0).all()
    grads = torch.autograd.grad(result, (x, value), torch.tensor([[0.0], [0.0], [NAN], [INF]], device=device))
    assert all(grad.isnan().all() for grad in grads)  # 0 * NaN, each of its own row
    x, value = (torch.ones_like(t, requires_grad=True) for t in (x, value))
    result = pyg_sparse.spmm(plan, x, value, reduce="max")
    grads = torch.autograd.grad(result, (x, value), torch.tensor([[2.0], [3.0], [NAN], [INF]], device=device))
    assert all(grad.flatten().tolist() == [2.0, 3.0] for grad in grads)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_gradients_keep_the_dtype(dtype: torch.dtype, device: str) -> None:
    # A hub's gradient has 3000 terms of 1: a sum kept in 16 bits would stop growing at 256 or 2048.
    plan = pyg_sparse.plan(torch.stack([torch.zeros(3000, dtype=torch.long), torch.arange(3000)]).to(device), 3000)
    x = torch.ones(3000, 2, device=device, dtype=dtype, requires_grad=True)
    value = torch.ones(3000, device=device, dtype=dtype, requires_grad=True)
    result = pyg_sparse.spmm(plan, x, value, reduce="max")
    assert result.dtype == dtype
    grad_x, grad_value = torch.autograd.grad(result.sum(), (x, value))
    assert grad_x.dtype == grad_value.dtype == dtype
    assert torch.equal(grad_x[0], torch.full((2,), 3000.0, device=device).to(dtype))
    assert grad_value.eq(2).all()


def test_autocast_takes_weights_of_another_dtype(device: str) -> None:
    plan = make_plan(FAMILIES["uniform"], pyg_sparse.Csr(), device)
    x = torch.randn(120, 8, device=device, dtype=torch.bfloat16)
    weight = torch.rand(plan.num_edges, device=device)
    with torch.autocast(device, dtype=torch.bfloat16):
        result = pyg_sparse.spmm(plan, x, weight, reduce="max")
    assert torch.equal(result, pyg_sparse.spmm(plan, x, weight.bfloat16(), reduce="max"))


def test_opcheck(spec: FormatSpec, device: str) -> None:
    plan = make_plan(FAMILIES["symmetric"], spec, device)
    x, value = leaf(80, 6, device=device), leaf(plan.num_edges, device=device)
    operator = torch.ops.pyg_sparse.spmm_extremum.default
    torch.library.opcheck(operator, arguments(plan, x, value, "max"))
    torch.library.opcheck(operator, arguments(plan, x, None, "min"))
    torch.library.opcheck(operator, arguments(plan, x.detach(), value, "min"))


def test_compiles_to_one_graph(device: str) -> None:
    plan = make_plan(FAMILIES["symmetric"], pyg_sparse.Csr(), device)
    x, value = leaf(80, 6, device=device), leaf(plan.num_edges, device=device)

    def model(x: Tensor, value: Tensor) -> Tensor:
        hidden = pyg_sparse.spmm(plan, x, value, reduce="max").relu()
        return pyg_sparse.spmm(plan, hidden, reduce="min").square().sum()

    reference.assert_compiles_the_same(model, x, value)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
class TestCuda:
    def test_deterministic_gradients_repeat(self, spec: FormatSpec, poisoned: None) -> None:
        plan = make_plan(FAMILIES["hub"], spec, "cuda")
        x, value = torch.randn(150, 33, device="cuda"), torch.randn(plan.num_edges, device="cuda")
        operands = x.requires_grad_(), value.requires_grad_()

        def gradients() -> tuple[Tensor, ...]:
            return torch.autograd.grad(pyg_sparse.spmm(plan, *operands, reduce="max").square().sum(), operands)

        first = gradients()
        for _ in range(5):
            assert all(torch.equal(a, b) for a, b in zip(first, gradients(), strict=True))

    def test_does_not_synchronise(self, spec: FormatSpec) -> None:
        plan = make_plan(FAMILIES["hub"], spec, "cuda")
        x = torch.randn(150, 36, device="cuda", requires_grad=True)
        value = torch.rand(plan.num_edges, device="cuda", requires_grad=True)
        torch.cuda.set_sync_debug_mode("error")
        try:
            pyg_sparse.spmm(plan, x, value, reduce="max").sum().backward()
        finally:
            torch.cuda.set_sync_debug_mode("default")

    def test_replays_in_a_cuda_graph(self, spec: FormatSpec) -> None:
        plan = make_plan(FAMILIES["hub"], spec, "cuda")
        static = torch.randn(150, 36, device="cuda")
        pyg_sparse.spmm(plan, static, reduce="max")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = pyg_sparse.spmm(plan, static, reduce="max")
        for _ in range(2):
            static.normal_()
            graph.replay()
            assert torch.equal(result, pyg_sparse.spmm(plan, static, reduce="max"))

    @pytest.mark.parametrize("dtype", DTYPES, ids=str)
    def test_enough_short_rows_to_share_warps(self, spec: FormatSpec, dtype: torch.dtype) -> None:
        generator = torch.Generator("cuda").manual_seed(0)
        edge_index = torch.randint(80_000, (2, 500_000), device="cuda", generator=generator)
        plan = pyg_sparse.plan(edge_index, 80_000, format=spec)
        weight = torch.randn(500_000, device="cuda", generator=generator).to(dtype)
        for i, width in enumerate((1, 3, 8, 32, 40, 64)):
            x = torch.randn(80_000, width, device="cuda", generator=generator).to(dtype)
            check(plan, edge_index, x, (weight, None)[i % 2], REDUCTIONS[i // 2 % 2])
