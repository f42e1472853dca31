"""Gradients, double gradients, opcheck and torch.compile."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import pyg_sparse
from pyg_sparse.formats import FormatSpec
from tests import reference
from tests.conftest import FAMILIES, Graph


def leaf(*shape: int, device: str) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, device=device, requires_grad=True)


def test_gradients_of_spmm(small: Graph, spec: FormatSpec, device: str) -> None:
    plan = pyg_sparse.plan(small.edge_index.to(device), (small.num_src, small.num_dst), format=spec)
    x, value = leaf(small.num_src, 3, device=device), leaf(plan.num_edges, device=device)
    row_scale, col_scale = leaf(small.num_dst, device=device), leaf(small.num_src, device=device)
    self_scale = leaf(small.num_dst, device=device) if small.num_src == small.num_dst else None

    def fixed_scales(x: Tensor, value: Tensor) -> Tensor:
        constants = (t if t is None else t.detach() for t in (row_scale, col_scale, self_scale))
        return pyg_sparse.spmm(
            plan, x, value, **dict(zip(("row_scale", "col_scale", "self_scale"), constants, strict=True))
        )

    assert torch.autograd.gradcheck(fixed_scales, (x, value))
    assert torch.autograd.gradgradcheck(fixed_scales, (x, value))
    assert torch.autograd.gradcheck(lambda x: pyg_sparse.spmm(plan, x, reduce="mean"), (x,))

    def all_scales(x: Tensor, value: Tensor, *scales: Tensor) -> Tensor:
        names = ("row_scale", "col_scale", "self_scale")[: len(scales)]
        return pyg_sparse.spmm(plan, x, value, **dict(zip(names, scales, strict=True)))

    scales = tuple(t for t in (row_scale, col_scale, self_scale) if t is not None)
    assert torch.autograd.gradcheck(all_scales, (x, value, *scales))
    assert torch.autograd.gradgradcheck(all_scales, (x, value, *scales))


def test_gradients_of_sddmm(small: Graph, spec: FormatSpec, device: str) -> None:
    plan = pyg_sparse.plan(small.edge_index.to(device), (small.num_src, small.num_dst), format=spec)
    q, k = leaf(small.num_dst, 3, device=device), leaf(small.num_src, 3, device=device)
    assert torch.autograd.gradcheck(lambda q, k: pyg_sparse.sddmm(plan, q, k), (q, k))
    assert torch.autograd.gradgradcheck(lambda q, k: pyg_sparse.sddmm(plan, q, k), (q, k))


def test_gradients_of_heads_bias_and_relu(small: Graph, spec: FormatSpec, device: str) -> None:
    plan = pyg_sparse.plan(small.edge_index.to(device), (small.num_src, small.num_dst), format=spec)
    x, value, bias = (leaf(*shape, device=device) for shape in ((small.num_src, 2, 3), (plan.num_edges, 2), (3,)))
    q = leaf(small.num_dst, 2, 3, device=device)

    def aggregate(x: Tensor, value: Tensor, bias: Tensor) -> Tensor:
        return pyg_sparse.spmm(plan, x, value, bias=bias, relu=True)

    assert torch.autograd.gradcheck(aggregate, (x, value, bias))
    assert torch.autograd.gradgradcheck(aggregate, (x, value, bias), fast_mode=True)
    assert torch.autograd.gradcheck(lambda q, k: pyg_sparse.sddmm(plan, q, k), (q, x))
    assert torch.autograd.gradgradcheck(lambda q, k: pyg_sparse.sddmm(plan, q, k), (q, x), fast_mode=True)


@pytest.mark.parametrize("scale", ["row_scale", "col_scale", "self_scale"])
def test_one_scale_with_a_gradient_among_constant_ones(scale: str, device: str) -> None:
    graph = FAMILIES["uniform"]
    edge_index = graph.edge_index.to(device)
    plan = pyg_sparse.plan(edge_index, 120, edge_values=False)
    x = torch.randn(120, 4, dtype=torch.float64, device=device)
    scales = {
        name: torch.rand(120, dtype=torch.float64, device=device) for name in ("row_scale", "col_scale", "self_scale")
    }
    scales[scale].requires_grad_()
    result = pyg_sparse.spmm(plan, x, **scales)
    expected = reference.spmm(edge_index, 120, x, **scales)
    torch.testing.assert_close(result, expected)
    grad, expected_grad = (torch.autograd.grad(out.square().sum(), scales[scale])[0] for out in (result, expected))
    torch.testing.assert_close(grad, expected_grad)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_gradients_keep_the_dtype(dtype: torch.dtype, device: str) -> None:
    graph = FAMILIES["uniform"]
    plan = pyg_sparse.plan(graph.edge_index.to(device), 120)
    x = torch.randn(120, 16, device=device).to(dtype).requires_grad_()
    value = torch.randn(plan.num_edges, device=device).to(dtype).requires_grad_()
    grad_x, grad_value = torch.autograd.grad(pyg_sparse.spmm(plan, x, value).sum(), (x, value))
    assert grad_x.dtype == grad_value.dtype == dtype
    exact = [t.detach().double().requires_grad_() for t in (x, value)]
    out = reference.spmm(graph.edge_index.to(device), 120, *exact).to(dtype).double()
    for grad, expected in zip((grad_x, grad_value), torch.autograd.grad(out.sum(), exact), strict=True):
        assert (grad.double() - expected).norm() <= 2 * torch.finfo(dtype).eps * expected.norm()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("scale", ["row_scale", "col_scale"])
def test_scales_that_need_a_gradient_lose_no_precision(scale: str, dtype: torch.dtype, device: str) -> None:
    # The sum of a hub's 100,000 ones does not fit fp16; scaled, it is 1.
    edge_index = torch.stack([torch.arange(100_000), torch.zeros(100_000, dtype=torch.long)]).to(device)
    plan = pyg_sparse.plan(edge_index, (100_000, 1), edge_values=False)
    x = torch.ones(100_000, 8, device=device, dtype=dtype, requires_grad=True)
    factor = torch.full((1 if scale == "row_scale" else 100_000,), 1e-5, device=device, requires_grad=True)
    result = pyg_sparse.spmm(plan, x, **{scale: factor})
    assert result.dtype == dtype
    torch.testing.assert_close(result, torch.ones_like(result))
    grad_x, grad_factor = torch.autograd.grad(result.float().sum(), (x, factor))
    assert grad_x.dtype == dtype
    torch.testing.assert_close(grad_factor.sum(), torch.tensor(8e5, device=device))


def test_autocast_takes_weights_of_another_dtype(device: str) -> None:
    graph = FAMILIES["uniform"]
    plan = pyg_sparse.plan(graph.edge_index.to(device), 120)
    x = torch.randn(120, 8, device=device, dtype=torch.bfloat16)
    weight = torch.rand(plan.num_edges, device=device, requires_grad=True)
    with torch.autocast(device, dtype=torch.bfloat16):
        result = pyg_sparse.spmm(plan, x, weight)
    assert result.dtype == torch.bfloat16
    assert torch.equal(result, pyg_sparse.spmm(plan, x, weight.bfloat16()))
    with pytest.raises(TypeError, match="edge_weight has dtype"):
        pyg_sparse.spmm(plan, x, weight)


def test_the_gradient_runs_on_the_stored_transpose(device: str) -> None:
    # Forward and backward may use different formats: the gradient must be the transpose's product, in its format.
    graph = FAMILIES["wide"]
    edge_index = graph.edge_index.to(device)
    csr = pyg_sparse.plan(edge_index, (500, 7), format=pyg_sparse.Csr(2))
    hyb = pyg_sparse.plan(edge_index, (500, 7), format=pyg_sparse.Hyb(2, 1))
    x = leaf(500, 6, device=device)
    import dataclasses

    mixed = dataclasses.replace(csr, backward=hyb.backward)
    weight = torch.randn(7, 6, dtype=torch.float64, device=device)
    grad = torch.autograd.grad((pyg_sparse.spmm(mixed, x) * weight).sum(), x)[0]
    torch.testing.assert_close(grad, pyg_sparse.spmm(hyb.t(), weight))


class _Calls(TorchDispatchMode):
    """Notes by which edges every operator is called, and whether its rows are the targets."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, str, bool]] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == "pyg_sparse":
            self.seen.append((func._opname, args[-1], args[6] == 50))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(("side", "edges", "reverse"), [(0, "by source", "by target"), (1, "by target", "by source")])
def test_gradients_know_how_edges_are_sorted(side: int, edges: str, reverse: str) -> None:
    edge_index = torch.stack([torch.randint(30, (400,)), torch.randint(50, (400,))])
    edge_index = edge_index[:, edge_index[side].argsort(stable=True)]
    plan = pyg_sparse.plan(edge_index, (30, 50))
    x, q, value = leaf(30, 4, device="cpu"), leaf(50, 4, device="cpu"), leaf(400, device="cpu")
    forward, backward = pyg_sparse.spmm(plan, x, value), pyg_sparse.sddmm(plan, q, x)
    with _Calls() as calls:
        torch.autograd.grad(forward.sum(), (x, value))
    assert sorted(calls.seen) == [("sddmm", edges, True), ("spmm", reverse, False)]
    with _Calls() as calls:
        torch.autograd.grad(backward.sum(), (q, x))
    assert sorted(calls.seen) == sorted([("spmm", edges, True), ("spmm", reverse, False)])
    src, dst = edge_index
    torch.testing.assert_close(backward, (q[dst] * x[src]).sum(1))
    torch.testing.assert_close(pyg_sparse.sddmm(plan, q.detach(), x.detach()), backward.detach())


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints(reentrant: bool, device: str) -> None:
    graph = FAMILIES["power_law"]
    plan = pyg_sparse.plan(graph.edge_index.to(device), graph.num_src)
    x, value = leaf(graph.num_src, 4, device=device), leaf(plan.num_edges, device=device)

    def registered(x: Tensor, value: Tensor) -> Tensor:
        side = plan.side
        out = torch.ops.pyg_sparse.spmm(*side.operands, x, value, None, None, None, None, None, True, side.edges)
        dots = torch.ops.pyg_sparse.sddmm(*side.operands, plan.num_edges, 1, out, x, None, None, side.edges)
        return dots.squeeze(1)

    def eager(x: Tensor, value: Tensor) -> Tensor:
        return pyg_sparse.sddmm(plan, pyg_sparse.spmm(plan, x, value, relu=True), x)

    expected = torch.autograd.grad(eager(x, value).square().sum(), (x, value))
    for function in (registered, eager):
        x.grad = value.grad = None
        checkpoint(function, x, value, use_reentrant=reentrant).square().sum().backward()
        torch.testing.assert_close((x.grad, value.grad), expected)


def test_a_trace_holds_the_operators(tmp_path: Path) -> None:
    graph = FAMILIES["power_law"]
    plan = pyg_sparse.plan(graph.edge_index, graph.num_src)
    x = torch.randn(graph.num_src, 4, requires_grad=True)
    traced = torch.jit.trace(lambda x: pyg_sparse.spmm(plan, x), (x,))
    torch.jit.save(traced, str(tmp_path / "traced.pt"))
    assert torch.equal(torch.jit.load(str(tmp_path / "traced.pt"))(x), pyg_sparse.spmm(plan, x))


def test_functional_gradients_are_refused() -> None:
    plan = pyg_sparse.plan(FAMILIES["symmetric"].edge_index, 80)
    with pytest.raises(RuntimeError, match="functorch"):
        torch.func.grad(lambda x: pyg_sparse.spmm(plan, x).sum())(torch.randn(80, 3))


def test_opcheck(spec: FormatSpec, device: str) -> None:
    graph = FAMILIES["symmetric"]
    plan = pyg_sparse.plan(graph.edge_index.to(device), 80, format=spec)
    x, value = leaf(80, 6, device=device), leaf(plan.num_edges, device=device)
    scale = torch.rand(80, dtype=torch.float64, device=device)
    bias = leaf(6, device=device)
    for optional in [(value, None, scale, scale, scale, bias, True), (None,) * 6 + (False,)]:
        torch.library.opcheck(torch.ops.pyg_sparse.spmm.default, (*plan.side.operands, x, *optional, plan.edges))
    sddmm = (*plan.side.operands, plan.num_edges, 2, leaf(80, 6, device=device), x, scale, None, plan.edges)
    torch.library.opcheck(torch.ops.pyg_sparse.sddmm.default, sddmm)


def test_compiles_to_one_graph(device: str) -> None:
    graph = FAMILIES["symmetric"]
    plan = pyg_sparse.plan(graph.edge_index.to(device), 80)
    x, value = leaf(80, 6, device=device), leaf(plan.num_edges, device=device)

    def model(x: Tensor, value: Tensor) -> Tensor:
        hidden = pyg_sparse.spmm(plan, x, value, reduce="mean").relu()
        return hidden.sum() + pyg_sparse.sddmm(plan, hidden, x).square().sum()

    reference.assert_compiles_the_same(model, x, value)


@pytest.mark.parametrize("name", ["x", "edge_weight", "row_scale", "k", "max"])
def test_forward_mode_is_refused(name: str, device: str) -> None:
    plan = pyg_sparse.plan(FAMILIES["uniform"].edge_index.to(device), 120)
    x = torch.randn(120, 4, device=device)
    call = {
        "x": (lambda x: pyg_sparse.spmm(plan, x), x),
        "edge_weight": (lambda w: pyg_sparse.spmm(plan, x, w), torch.rand(plan.num_edges, device=device)),
        "row_scale": (lambda r: pyg_sparse.spmm(plan, x, row_scale=r), torch.rand(120, device=device)),
        "k": (lambda k: pyg_sparse.sddmm(plan, x, k), x),
        "max": (lambda x: pyg_sparse.spmm(plan, x, reduce="max"), x),
    }
    function, primal = call[name]
    with pytest.raises(NotImplementedError, match="no forward-mode derivative"):
        torch.func.jvp(function, (primal,), (torch.ones_like(primal),))
    with torch.autograd.forward_ad.dual_level(), pytest.raises(NotImplementedError, match="no forward-mode derivative"):
        function(torch.autograd.forward_ad.make_dual(primal, torch.ones_like(primal)))


def test_vmap_is_refused(device: str) -> None:
    plan = pyg_sparse.plan(FAMILIES["uniform"].edge_index.to(device), 120)
    x = torch.randn(3, 120, 4, device=device, requires_grad=True)
    with pytest.raises(RuntimeError, match="Batching rule not implemented"):
        torch.vmap(lambda x: pyg_sparse.spmm(plan, x))(x)
