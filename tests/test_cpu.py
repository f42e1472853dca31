"""What the CPU's kernels do only where x is larger than a core's own cache, and how they round."""

from __future__ import annotations

import pytest
import torch

import pyg_sparse
from benchmarks.check import relative_error
from pyg_sparse._extension import build_info
from pyg_sparse.formats import FormatSpec
from tests.order_graphs import uniform


def shared_cache_bytes() -> int:
    return int(build_info()["l3_bytes"])


DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


@pytest.mark.parametrize("format", ["auto", pyg_sparse.Coo(), pyg_sparse.Hyb(2)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("often", [True, False], ids=["slices of x are copied", "rows of x are asked for early"])
def test_features_larger_than_a_cache(often: bool, dtype: torch.dtype, format: str | FormatSpec) -> None:
    cache = int(build_info()["l2_bytes"])
    nodes, edges = (1200, 40_000) if often else (20_000, 40_000)
    width = max(int(1.3 * cache / (nodes * dtype.itemsize)), 128 // dtype.itemsize) | 1
    generator = torch.Generator().manual_seed(0)
    edge_index = uniform(nodes, edges).edge_index
    edge_index[1, :9000] = 7  # one row in parts
    plan = pyg_sparse.plan(edge_index, nodes, format=format)
    src, dst = edge_index
    sums = torch.promote_types(dtype, torch.float32)
    wide = torch.randn(nodes, width + 3, generator=generator).to(dtype)
    x, bias = wide[:, 1 : width + 1], torch.randn(width, generator=generator).to(sums)
    weight = torch.randn(edges, generator=generator).to(dtype)
    own, scale = torch.rand(2, nodes, generator=generator).to(sums)
    message = x[src].double()
    zeros = torch.zeros(nodes, width, dtype=torch.float64)
    plain = zeros.index_add(0, dst, message)
    weighted = zeros.index_add(0, dst, message * weight[:, None].double())
    everything = (scale[:, None].double() * plain + own[:, None].double() * x.double() + bias.double()).relu()
    most = 16 * torch.finfo(dtype).eps
    assert relative_error(pyg_sparse.spmm(plan, x), plain) < most
    assert relative_error(pyg_sparse.spmm(plan, x, weight), weighted) < most
    assert relative_error(pyg_sparse.spmm(plan, x, plan.store_weight(weight)), weighted) < most
    result = pyg_sparse.spmm(plan, x, row_scale=scale, self_scale=own, bias=bias, relu=True)
    assert relative_error(result, everything) < most


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("width", [1, 4, 8, 16, 32, 64, 77])
def test_every_half_is_read_and_rounded_as_torch_does(width: int, dtype: torch.dtype) -> None:
    nodes = -(-(2**16) // width)
    bits = torch.zeros(nodes * width, dtype=torch.int32)
    bits[: 2**16] = torch.arange(2**16, dtype=torch.int32)
    x = bits.to(torch.int16).view(dtype).view(nodes, width)
    loops = torch.arange(nodes).repeat(2, 1)
    plan = pyg_sparse.plan(loops, nodes)
    torch.testing.assert_close(pyg_sparse.spmm(plan, x), x, rtol=0, atol=0, equal_nan=True)
    generator = torch.Generator().manual_seed(0)
    for magnitude in (1.0, 1e-6, 1e5):  # results that are subnormal, and some that overflow
        scale = torch.randn(nodes, generator=generator) * magnitude
        expected = (x.float() * scale[:, None]).to(dtype)
        torch.testing.assert_close(pyg_sparse.spmm(plan, x, row_scale=scale), expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("format", ["auto", pyg_sparse.Coo(), pyg_sparse.Hyb(2)], ids=str)
def test_results_past_the_caches(dtype: torch.dtype, format: str | FormatSpec) -> None:
    size = shared_cache_bytes()
    width = 96
    nodes = int(0.3 * size / (2 * width * dtype.itemsize))  # x and the result are more than a quarter of it
    if nodes > 1_000_000:
        pytest.skip(f"the shared cache has {size >> 20} MB")
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(nodes, (2, 2 * nodes), generator=generator)
    edge_index[1, : nodes // 4] = 7  # one row in parts
    plan = pyg_sparse.plan(edge_index, nodes, format=format)
    x = torch.randn(nodes, width, generator=generator).to(dtype)
    own, scale = torch.rand(2, nodes, generator=generator)
    src, dst = edge_index
    plain = torch.zeros(nodes, width).index_add(0, dst, x[src].float())
    assert relative_error(pyg_sparse.spmm(plan, x), plain) < 16 * torch.finfo(dtype).eps
    everything = (scale[:, None] * plain + own[:, None] * x.float()).relu()
    result = pyg_sparse.spmm(plan, x, row_scale=scale, self_scale=own, relu=True)
    assert relative_error(result, everything) < 16 * torch.finfo(dtype).eps


@pytest.mark.parametrize(("heads", "width"), [(2, 40), (4, 20), (8, 18), (4, 16), (2, 48)])
def test_heads_past_the_caches(heads: int, width: int) -> None:
    # Rows are whole lines of the cache in all of them, heads in the last two.
    size = shared_cache_bytes()
    nodes = int(0.3 * size / (2 * heads * width * 4))
    if nodes > 1_000_000:
        pytest.skip(f"the shared cache has {size >> 20} MB")
    generator = torch.Generator().manual_seed(0)
    src, dst = edge_index = torch.randint(nodes, (2, nodes), generator=generator)
    x = torch.randn(nodes, heads, width, generator=generator)
    weight = torch.rand(nodes, heads, generator=generator)
    expected = torch.zeros_like(x).index_add(0, dst, x[src] * weight[..., None])
    result = pyg_sparse.spmm(pyg_sparse.plan(edge_index, nodes), x, weight)
    torch.testing.assert_close(result, expected)


@pytest.mark.parametrize("width", range(1, 70))
def test_every_narrow_width(width: int) -> None:
    src, dst = edge_index = torch.randint(60, (2, 400))
    plan, x = pyg_sparse.plan(edge_index, 60), torch.randn(60, width + 2)[:, 1:-1]
    torch.testing.assert_close(pyg_sparse.spmm(plan, x), torch.zeros(60, width).index_add(0, dst, x[src]))
    half = x.bfloat16()
    expected = torch.zeros(60, width).index_add(0, dst, half[src].float())
    torch.testing.assert_close(pyg_sparse.spmm(plan, half).float(), expected, rtol=2**-7, atol=2**-7)
