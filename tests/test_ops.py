"""spmm and sddmm against fp64 PyTorch, over formats, graphs, dtypes and widths."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import pyg_sparse
from pyg_sparse.formats import FormatSpec
from pyg_sparse.validate import DTYPES
from tests import reference
from tests.conftest import FAMILIES, Graph, variants

Cast = Callable[[torch.Tensor], torch.Tensor]
WIDTHS = (0, 1, 2, 3, 4, 7, 8, 16, 17, 32, 33, 40, 41, 48, 128, 143, 256, 602)
# fp32 takes every width, the others share them out: the code of a width hardly depends on the dtype.
WIDTHS_OF = {
    torch.float32: WIDTHS,
    torch.float64: (1, 8, 17, 33, 256),
    torch.bfloat16: (0, 3, 8, 32, 143),
    torch.float16: (1, 7, 8, 33, 128),
}


def accumulator(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32


def make_plan(graph: Graph, spec: FormatSpec, device: str, **options: bool) -> pyg_sparse.Plan:
    return pyg_sparse.plan(graph.edge_index.to(device), (graph.num_src, graph.num_dst), format=spec, **options)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_spmm(graph: Graph, spec: FormatSpec, dtype: torch.dtype, device: str, poisoned: None) -> None:
    plan = make_plan(graph, spec, device)
    edge_index = graph.edge_index.to(device)
    generator = torch.Generator(device).manual_seed(0)

    def random(*shape: int, dtype: torch.dtype) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, device=device, dtype=torch.float64).to(dtype)

    acc = accumulator(dtype)
    value = random(plan.num_edges, dtype=dtype)
    row_scale, col_scale = random(graph.num_dst, dtype=acc), random(graph.num_src, dtype=acc)
    self_scale = random(graph.num_dst, dtype=acc) if graph.num_src == graph.num_dst else None
    operands = [
        (None, None, None, None),
        (value, None, None, None),
        (None, row_scale, col_scale, self_scale),
        (value, row_scale, col_scale, self_scale),
        (None, None, None, self_scale),
    ]
    for i, width in enumerate(WIDTHS_OF[dtype]):
        x = random(graph.num_src, width, dtype=dtype)
        for value_, *scales in (operands[i % 5], operands[(i + 3) % 5]):
            result = pyg_sparse.spmm(plan, x, value_, row_scale=scales[0], col_scale=scales[1], self_scale=scales[2])

            def compute(cast: Cast, operands: tuple = (x, value_, *scales)) -> torch.Tensor:
                x, *optional = (None if t is None else cast(t) for t in operands)
                return reference.spmm(edge_index, graph.num_dst, x, *optional)

            reference.assert_accurate(result, compute, acc)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sddmm(graph: Graph, spec: FormatSpec, dtype: torch.dtype, device: str, poisoned: None) -> None:
    plan = make_plan(graph, spec, device)
    edge_index = graph.edge_index.to(device)
    generator = torch.Generator().manual_seed(0)
    acc = accumulator(dtype)
    for width in WIDTHS_OF[dtype]:
        q = torch.randn(graph.num_dst, width, generator=generator, dtype=torch.float64).to(device, dtype)
        k = torch.randn(graph.num_src, width, generator=generator, dtype=torch.float64).to(device, dtype)
        reference.assert_accurate(
            pyg_sparse.sddmm(plan, q, k),
            lambda cast, q=q, k=k: reference.sddmm(edge_index, cast(q), cast(k)),
            acc,
        )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_heads(graph: Graph, spec: FormatSpec, dtype: torch.dtype, device: str, poisoned: None) -> None:
    plan = make_plan(graph, spec, device)
    edge_index = graph.edge_index.to(device)
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int, dtype: torch.dtype = dtype) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(device, dtype)

    acc = accumulator(dtype)
    for heads, width in ((1, 5), (2, 8), (3, 41), (8, 1), (4, 64)):
        x, q = random(graph.num_src, heads, width), random(graph.num_dst, heads, width)
        value, bias = random(plan.num_edges, heads), random(width, dtype=acc)
        result = pyg_sparse.spmm(plan, x, value, bias=bias)
        assert result.shape == (graph.num_dst, heads, width)
        dots = pyg_sparse.sddmm(plan, q, x)
        assert dots.shape == (plan.num_edges, heads)

        def sums(cast: Cast, x=x, value=value, bias=bias, heads=heads) -> torch.Tensor:
            flat = cast(x).flatten(1)
            return reference.spmm(edge_index, graph.num_dst, flat, cast(value), bias=cast(bias).repeat(heads))

        def products(cast: Cast, q=q, x=x) -> torch.Tensor:
            return (cast(q)[edge_index[1]] * cast(x)[edge_index[0]]).sum(-1)

        reference.assert_accurate(result.flatten(1), sums, acc)
        reference.assert_accurate(dots, products, acc)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_bias_and_relu(graph: Graph, spec: FormatSpec, dtype: torch.dtype, device: str, poisoned: None) -> None:
    plan = make_plan(graph, spec, device, edge_values=False)
    acc = accumulator(dtype)
    scale = torch.rand(graph.num_dst, dtype=acc, device=device)
    for width in (1, 8, 41, 256):
        x = torch.randn(graph.num_src, width, device=device, dtype=torch.float64).to(dtype)
        bias = torch.randn(width, dtype=acc, device=device)

        def plain(cast: Cast, x=x, bias=bias) -> torch.Tensor:
            return reference.spmm(
                graph.edge_index.to(device), graph.num_dst, cast(x), row_scale=cast(scale), bias=cast(bias)
            )

        result = pyg_sparse.spmm(plan, x, row_scale=scale, bias=bias)
        reference.assert_accurate(result, plain, acc)
        assert torch.equal(pyg_sparse.spmm(plan, x, row_scale=scale, bias=bias, relu=True), result.relu())
    x[:] = float("nan")
    assert pyg_sparse.spmm(plan, x, relu=True)[plan.in_degree > 0].isnan().all()


def test_mean(graph: Graph, spec: FormatSpec, device: str, poisoned: None) -> None:
    plan = make_plan(graph, spec, device, edge_values=False)
    x = torch.randn(graph.num_src, 9, dtype=torch.float64, device=device)
    degree = torch.bincount(graph.edge_index[1], minlength=graph.num_dst).clamp(min=1).to(device)
    expected = reference.spmm(graph.edge_index.to(device), graph.num_dst, x) / degree[:, None]
    torch.testing.assert_close(pyg_sparse.spmm(plan, x, reduce="mean"), expected)


def test_repeats_bit_for_bit(spec: FormatSpec, device: str) -> None:
    plan = make_plan(FAMILIES["hub"], spec, device)
    x = torch.randn(150, 33, device=device)
    first = pyg_sparse.spmm(plan, x)
    assert all(torch.equal(first, pyg_sparse.spmm(plan, x)) for _ in range(5))


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("family", ["hub", "power_law", "wide", "tall"])
def test_threads(family: str, spec: FormatSpec, threads: int, poisoned: None) -> None:
    graph = FAMILIES[family]
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        plan = make_plan(graph, spec, "cpu")
        x = torch.randn(graph.num_src, 512, dtype=torch.float64)
        q = torch.randn(graph.num_dst, 512, dtype=torch.float64)
        assert torch.equal(plan.edge_index(), graph.edge_index)
        torch.testing.assert_close(pyg_sparse.spmm(plan, x), reference.spmm(graph.edge_index, graph.num_dst, x))
        torch.testing.assert_close(pyg_sparse.sddmm(plan, q, x), reference.sddmm(graph.edge_index, q, x))
    finally:
        torch.set_num_threads(before)


def strided(x: torch.Tensor, how: str) -> torch.Tensor:
    """A tensor equal to x in an unusual place in memory."""
    rows, width = x.shape
    if how == "column_major":
        return x.t().contiguous().t()
    if how == "wide_rows":  # row stride larger than the width
        return torch.cat([x, x], dim=1)[:, :width]
    if how == "every_second":
        return x.repeat_interleave(2, dim=1)[:, ::2]
    if how == "misaligned":
        return torch.cat([x.new_zeros(1), x.flatten()])[1:].view(rows, width)
    assert how == "expanded"
    return x[:1].expand(rows, width)


@pytest.mark.parametrize("how", ["column_major", "wide_rows", "every_second", "misaligned", "expanded"])
@pytest.mark.parametrize("width", [1, 8, 36, 130])
def test_strides(spec: FormatSpec, how: str, width: int, device: str, poisoned: None) -> None:
    graph = FAMILIES["power_law"]
    plan = make_plan(graph, spec, device)
    x = strided(torch.randn(graph.num_src, width, device=device, dtype=torch.float64), how)
    value = torch.randn(2 * plan.num_edges, device=device, dtype=torch.float64)[::2]
    scale = torch.rand(graph.num_src, device=device, dtype=torch.float64)
    edge_index = graph.edge_index.to(device)
    for scales in ({}, {"row_scale": scale, "col_scale": scale, "self_scale": scale}):
        expected = reference.spmm(edge_index, graph.num_dst, x, value, **scales)
        torch.testing.assert_close(pyg_sparse.spmm(plan, x, value, **scales), expected)
    q = x.flip(0)
    torch.testing.assert_close(
        pyg_sparse.sddmm(plan, strided(q, how), x), reference.sddmm(graph.edge_index.to(device), strided(q, how), x)
    )


def test_batches(spec: FormatSpec, device: str) -> None:
    graph = FAMILIES["wide"]
    plan = make_plan(graph, spec, device)
    x = torch.randn(2, 3, graph.num_src, 5, dtype=torch.float64, device=device)
    result = pyg_sparse.spmm(plan, x)
    assert result.shape == (2, 3, graph.num_dst, 5)
    for i in range(2):
        for j in range(3):
            torch.testing.assert_close(result[i, j], pyg_sparse.spmm(plan, x[i, j]))


def test_padding_and_other_rows_never_touch_a_nan(spec: FormatSpec, device: str) -> None:
    # Source 0 is what a padded position would read; it has no edges, and neither has source 5.
    src, dst = torch.randint(6, 60, (300,)), torch.randint(60, (300,))
    x = torch.randn(60, 17, device=device)
    x[:6] = float("nan")
    for value in (None, torch.randn(300, device=device)):
        plan = pyg_sparse.plan(torch.stack([src, dst]).to(device), 60, format=spec)
        assert pyg_sparse.spmm(plan, x, value).isfinite().all()
        assert pyg_sparse.sddmm(plan, x.nan_to_num(), x).isfinite().all()


def test_nan_and_inf_reach_only_their_targets(spec: FormatSpec, device: str) -> None:
    edge_index = torch.tensor([[0, 1, 2, 3, 4, 5], [9, 9, 8, 8, 7, 7]])
    x = torch.ones(10, 4, device=device)
    x[0], x[2] = float("nan"), float("inf")
    result = pyg_sparse.spmm(pyg_sparse.plan(edge_index.to(device), 10, format=spec), x)
    assert result[9].isnan().all()
    assert (result[8] == float("inf")).all()
    assert (result[7] == 2).all()
    assert (result[:7] == 0).all()


def test_a_weight_that_is_nan_stays_in_its_row(spec: FormatSpec, device: str) -> None:
    graph = FAMILIES["uniform"]
    value = torch.ones(graph.edge_index.size(1), device=device)
    value[40] = float("nan")
    result = pyg_sparse.spmm(make_plan(graph, spec, device), torch.ones(120, 5, device=device), value)
    expected = torch.zeros(120, dtype=torch.bool, device=device)
    expected[graph.edge_index[1, 40]] = True
    assert torch.equal(result.isnan().all(1), expected)
    assert torch.equal(result.isnan().any(1), expected)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_graph(data: st.DataObject) -> None:
    num_src, num_dst = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 40))
    pair = st.tuples(st.integers(0, num_src - 1), st.integers(0, num_dst - 1))
    edges = data.draw(st.lists(pair, max_size=120))
    edge_index = torch.tensor(edges, dtype=torch.long).view(-1, 2).t()
    spec = data.draw(st.sampled_from(variants()))
    width = data.draw(st.integers(0, 20))
    plan = pyg_sparse.plan(edge_index, (num_src, num_dst), format=spec)
    assert torch.equal(plan.edge_index(), edge_index)
    x, value = torch.randn(num_src, width, dtype=torch.float64), torch.randn(len(edges), dtype=torch.float64)
    torch.testing.assert_close(pyg_sparse.spmm(plan, x, value), reference.spmm(edge_index, num_dst, x, value))
    q = torch.randn(num_dst, width, dtype=torch.float64)
    torch.testing.assert_close(pyg_sparse.sddmm(plan, q, x), reference.sddmm(edge_index, q, x))
