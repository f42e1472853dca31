"""Edge weights stored in a plan's order: the same products and gradients as with the weights themselves."""

from __future__ import annotations

import copy

import pytest
import torch

import pyg_sparse
from pyg_sparse import Csr, StoredWeight
from pyg_sparse.formats import FormatSpec
from tests.conftest import FAMILIES, Graph

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def _plan(graph: Graph, device: str, format: str | FormatSpec = "auto") -> pyg_sparse.Plan:
    return pyg_sparse.plan(graph.edge_index.to(device), (graph.num_src, graph.num_dst), format=format)


@pytest.mark.parametrize("graph", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_products_and_gradients_are_the_same(graph: Graph, spec: FormatSpec, dtype: torch.dtype, device: str) -> None:
    plan = _plan(graph, device, spec)
    weight = torch.randn(plan.num_edges, device=device).to(dtype)
    stored = plan.store_weight(weight)
    for width in (1, 4, 33):
        x = torch.randn(graph.num_src, width, device=device).to(dtype).requires_grad_()
        for reduce in ("sum", "mean"):
            expected, result = (pyg_sparse.spmm(plan, x, w, reduce=reduce) for w in (weight, stored))
            assert torch.equal(result, expected)
            grad = torch.randn_like(expected)
            of_expected, of_result = (torch.autograd.grad(y, x, grad)[0] for y in (expected, result))
            assert torch.equal(of_result, of_expected)


def test_the_reversed_plan_takes_them(device: str) -> None:
    graph = FAMILIES["tall"]
    plan = _plan(graph, device)
    weight, x = torch.randn(plan.num_edges, device=device), torch.randn(graph.num_dst, 5, device=device)
    expected = pyg_sparse.spmm(plan.t(), x, weight)
    assert torch.equal(pyg_sparse.spmm(plan.t(), x, plan.store_weight(weight)), expected)
    assert torch.equal(pyg_sparse.spmm(plan.t(), x, plan.t().store_weight(weight)), expected)


def test_second_derivatives_and_those_of_scales(device: str) -> None:
    graph = FAMILIES["symmetric"]
    plan = _plan(graph, device)
    n, double = graph.num_src, {"device": device, "dtype": torch.float64}
    weight = torch.randn(plan.num_edges, **double)
    x, scale = (torch.randn(shape, **double, requires_grad=True) for shape in ((n, 3), (n,)))
    bias = torch.randn(3, **double, requires_grad=True)
    results = []
    for w in (weight, plan.store_weight(weight)):
        out = pyg_sparse.spmm(plan, x, w, row_scale=scale, self_scale=scale, bias=bias, relu=True)
        out = pyg_sparse.spmm(plan, out, w, col_scale=scale.detach(), bias=bias).square().sum()
        first = torch.autograd.grad(out, (x, scale, bias), create_graph=True)
        second = torch.autograd.grad(sum(g.square().sum() for g in first), (x, scale, bias))
        results.append((out, *first, *second))
    torch.testing.assert_close(results[0], results[1], rtol=1e-12, atol=1e-12)


def test_batches_and_autocast(device: str) -> None:
    plan = _plan(FAMILIES["power_law"], device)
    weight = torch.randn(plan.num_edges, device=device)
    stored = plan.store_weight(weight)
    x = torch.randn(2, plan.num_src, 5, device=device)
    assert torch.equal(pyg_sparse.spmm(plan, x, stored), pyg_sparse.spmm(plan, x, weight))
    lowered = x[0].bfloat16()
    with torch.autocast(device, dtype=torch.bfloat16):
        assert torch.equal(pyg_sparse.spmm(plan, lowered, stored), pyg_sparse.spmm(plan, lowered, weight))
    assert stored.to(torch.float32) is stored
    assert stored.to(torch.float64).dtype == torch.float64


def test_compiles_to_one_graph(device: str) -> None:
    plan = _plan(FAMILIES["power_law"], device)
    stored = plan.store_weight(torch.randn(plan.num_edges, device=device))
    x = torch.randn(plan.num_src, 4, device=device, requires_grad=True)

    def layer(x: torch.Tensor) -> torch.Tensor:
        return pyg_sparse.spmm(plan, x, stored).relu()

    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    expected, result = (torch.autograd.grad(f(x).square().sum(), x)[0] for f in (layer, compiled))
    torch.testing.assert_close(result, expected)


def test_weights_stored_for_inference_serve_training(device: str) -> None:
    plan = _plan(FAMILIES["power_law"], device)
    weight = torch.randn(plan.num_edges, device=device)
    with torch.inference_mode():
        stored = plan.store_weight(weight).to(torch.float64)
    x = torch.randn(plan.num_src, 3, device=device, dtype=torch.float64, requires_grad=True)
    results = [torch.autograd.grad(pyg_sparse.spmm(plan, x, w).sum(), x)[0] for w in (stored, weight.double())]
    assert torch.equal(*results)


def test_opcheck(spec: FormatSpec, device: str) -> None:
    plan = _plan(FAMILIES["symmetric"], device, spec)
    stored = plan.store_weight(torch.randn(plan.num_edges, device=device))
    x = torch.randn(80, 6, device=device, requires_grad=True)
    rest = (*stored.of(plan), None, None, None, None, False, plan.edges)
    torch.library.opcheck(torch.ops.pyg_sparse.spmm.default, (*plan.side.operands, x, *rest))


def test_copies_with_their_plan() -> None:
    plan = _plan(FAMILIES["power_law"], "cpu")
    weight = torch.randn(plan.num_edges)
    other, stored = copy.deepcopy((plan, plan.store_weight(weight)))
    x = torch.randn(plan.num_src, 3)
    assert torch.equal(pyg_sparse.spmm(other, x, stored), pyg_sparse.spmm(plan, x, weight))


def test_wrong_weights_raise(device: str) -> None:
    graph = FAMILIES["power_law"]
    plan = _plan(graph, device)
    weight, x = torch.randn(plan.num_edges, device=device), torch.randn(graph.num_src, 3, device=device)
    stored = plan.store_weight(weight)
    without = pyg_sparse.plan(graph.edge_index.to(device), graph.num_src, edge_values=False)
    with pytest.raises(ValueError, match="store_weight needs a plan made with edge_values=True"):
        without.store_weight(weight)
    with pytest.raises(ValueError, match="edge_weight requires a gradient"):
        plan.store_weight(weight.clone().requires_grad_())
    with pytest.raises(ValueError, match=rf"edge_weight must have shape \[{plan.num_edges}\]"):
        plan.store_weight(weight[1:])
    with pytest.raises(TypeError, match=r"edge_weight has dtype torch.int64; it must be a floating-point"):
        plan.store_weight(weight.long())
    with pytest.raises(TypeError, match=r"edge_weight must be a torch.Tensor, not list"):
        plan.store_weight([1.0])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="edge_weight was stored for another plan"):
        pyg_sparse.spmm(_plan(graph, device, Csr(7)), x, stored)
    with pytest.raises(TypeError, match=r"edge_weight has dtype torch.float32, but here it must be torch.float64"):
        pyg_sparse.spmm(plan, x.double(), stored)
    with pytest.raises(ValueError, match="a stored edge_weight cannot be used with reduce='max'"):
        pyg_sparse.spmm(plan, x, stored, reduce="max")


def test_the_operator_refuses_wrong_lengths_and_gradients() -> None:
    plan = _plan(FAMILIES["power_law"], "cpu")
    stored: StoredWeight = plan.store_weight(torch.randn(plan.num_edges))
    x, rest = torch.randn(plan.num_src, 3, requires_grad=True), (None, None, None, None, False, plan.edges)
    spmm = torch.ops.pyg_sparse.spmm
    forward, backward = stored.of(plan)
    with pytest.raises(RuntimeError, match="with t_value, value must have shape"):
        spmm(*plan.side.operands, x, forward[1:], backward, *rest)
    with pytest.raises(RuntimeError, match="t_value must have shape"):
        spmm(*plan.side.operands, x, forward, backward[1:], *rest)
    value = forward.clone().requires_grad_()
    out = spmm(*plan.side.operands, x, value, backward, *rest)
    with pytest.raises(RuntimeError, match="constant: they have no gradient"):
        torch.autograd.grad(out.sum(), value)
