"""What is particular to CUDA: streams, graphs, synchronisation, a second device."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable

import pytest
import torch

import pyg_sparse
from pyg_sparse.formats import FormatSpec, Rows, rows_from_edges
from tests.conftest import FAMILIES

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
GRAPH = FAMILIES["power_law"]


def make(spec: FormatSpec, device: str = "cuda") -> tuple[pyg_sparse.Plan, torch.Tensor]:
    plan = pyg_sparse.plan(GRAPH.edge_index.to(device), GRAPH.num_src, format=spec)
    return plan, torch.randn(GRAPH.num_src, 36, device=device, dtype=torch.float64)


def relative_error(result: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    return (result.double() - expected).norm() / expected.norm()


def tolerance(dtype: torch.dtype) -> float:
    """The reference is fp64: it adds long rows one entry after the other, in any order, and is no better than ours."""
    return (100 if dtype == torch.float64 else 8) * torch.finfo(dtype).eps


def test_same_as_the_cpu(spec: FormatSpec) -> None:
    plan, x = make(spec)
    on_cpu = plan.to("cpu")
    torch.testing.assert_close(pyg_sparse.spmm(plan, x).cpu(), pyg_sparse.spmm(on_cpu, x.cpu()))
    back = on_cpu.to("cuda")
    assert torch.equal(pyg_sparse.spmm(back, x), pyg_sparse.spmm(plan, x))


def test_builders_agree_across_devices(spec: FormatSpec) -> None:
    src, dst = GRAPH.edge_index.cuda()
    rows = rows_from_edges(dst, src, GRAPH.num_src, GRAPH.num_src, keep_slots=True)
    moved = Rows(*(v.cpu() if isinstance(v, torch.Tensor) else v for v in vars(rows).values()))
    on_cuda, on_cpu = (spec.build(r).tensors() for r in (rows, moved))
    for name, tensor in on_cuda.items():
        assert torch.equal(tensor.cpu(), on_cpu[name]), name
    # Plans made from the edges of either device have other orders of rows and columns, and the same results.
    plan, x = make(spec)
    made_on_cpu = pyg_sparse.plan(GRAPH.edge_index, GRAPH.num_src, format=spec)
    for mine, other in ((plan, made_on_cpu), (plan.t(), made_on_cpu.t())):
        torch.testing.assert_close(pyg_sparse.spmm(mine, x).cpu(), pyg_sparse.spmm(other, x.cpu()))


def test_runs_on_the_current_stream(spec: FormatSpec) -> None:
    plan, x = make(spec)
    expected = pyg_sparse.spmm(plan, 3 * x)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)  # work on another stream would overtake this and read x unscaled
        later = x * 3
        result = pyg_sparse.spmm(plan, later)
    stream.synchronize()
    assert torch.equal(result, expected)


def test_replays_in_a_cuda_graph(spec: FormatSpec) -> None:
    plan, x = make(spec)
    static = x.clone()
    pyg_sparse.spmm(plan, static)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = pyg_sparse.spmm(plan, static, reduce="mean")
    for _ in range(2):
        static.normal_()
        graph.replay()
        assert torch.equal(result, pyg_sparse.spmm(plan, static, reduce="mean"))


@pytest.mark.parametrize("in_a_graph", [False, True])
def test_kernels_that_start_early_wait_for_each_other(spec: FormatSpec, in_a_graph: bool) -> None:
    # Each step reads what the one before it writes, in memory that earlier steps have given back.
    generator = torch.Generator("cuda").manual_seed(0)
    edge_index = torch.randint(20_000, (2, 200_000), device="cuda", generator=generator)
    edge_index[1, :20_000] %= 3  # rows of several parts
    plan = pyg_sparse.plan(edge_index, 20_000, format=spec)
    scale = 1 / plan.in_degree.clamp(min=1).float()

    def steps(x: torch.Tensor, after_each: Callable[[], None]) -> torch.Tensor:
        for _ in range(10):
            x = pyg_sparse.spmm(plan, x, row_scale=scale)
            after_each()
            weight = pyg_sparse.sddmm(plan, x, x)
            after_each()
            x = pyg_sparse.spmm(plan.t(), x, weight.clamp(-1, 1), reduce="mean")
            after_each()
            x = pyg_sparse.spmm(plan, x, reduce="max") + x
            after_each()
        return x

    x = torch.randn(20_000, 64, device="cuda", generator=generator)
    expected = steps(x, torch.cuda.synchronize)
    for _ in range(5):
        if not in_a_graph:
            assert torch.equal(steps(x, lambda: None), expected)
            continue
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = steps(x, lambda: None)
        graph.replay()
        assert torch.equal(result, expected)


def test_does_not_synchronise(spec: FormatSpec) -> None:
    plan, x = make(spec)
    x.requires_grad_()
    value = torch.rand(plan.num_edges, device="cuda", dtype=torch.float64, requires_grad=True)
    torch.cuda.set_sync_debug_mode("error")
    try:
        out = pyg_sparse.spmm(plan, x, value, reduce="mean").sum() + pyg_sparse.sddmm(plan, x, x).sum()
        out.backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_a_second_device(spec: FormatSpec) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("no second CUDA device")
    plan, x = make(spec, "cuda:1")
    assert torch.cuda.current_device() == 0
    result = pyg_sparse.spmm(plan, x)
    assert result.device == x.device
    torch.testing.assert_close(result.cpu(), pyg_sparse.spmm(plan.to("cpu"), x.cpu()))
    with pytest.raises(ValueError, match="x is on cuda:0, but the plan is on cuda:1"):
        pyg_sparse.spmm(plan, x.to("cuda:0"))


def test_past_the_block_limit_of_one_dimension() -> None:
    # 65,537 slices of 64 features would not fit a second grid dimension.
    plan = pyg_sparse.plan(torch.tensor([[0, 1], [1, 1]], device="cuda"), 2)
    x = torch.randn(2, 64 * 65_536 + 1, device="cuda", dtype=torch.float16)
    result = pyg_sparse.spmm(plan, x)
    torch.testing.assert_close(result[1], (x[0].float() + x[1].float()).half())
    assert (result[0] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_enough_short_rows_to_share_warps(spec: FormatSpec, dtype: torch.dtype) -> None:
    # Several rows share a warp only where there are many of them; widths have shapes of their own. Among the rows are
    # four of thousands of entries.
    nodes, edges = 80_000, 500_000
    generator = torch.Generator("cuda").manual_seed(0)
    edge_index = torch.randint(nodes, (2, edges), device="cuda", generator=generator)
    edge_index[1, : edges // 20] %= 4
    plan = pyg_sparse.plan(edge_index, nodes, format=spec)
    accumulate = torch.float64 if dtype == torch.float64 else torch.float32
    random = functools.partial(torch.randn, device="cuda", generator=generator)
    weight, (row, own) = random(edges).to(dtype), random(2, nodes).to(accumulate)
    for width in (1, 2, 3, 6, 8, 16, 20, 32, 33, 40, 41, 47, 64, 94, 100, 128, 130, 256):
        x, bias = random(nodes, width).to(dtype), random(width).to(accumulate)
        message = x[edge_index[0]].double()

        def sums(message: torch.Tensor, width: int = width) -> torch.Tensor:
            zeros = torch.zeros(nodes, width, device="cuda", dtype=torch.float64)
            return zeros.index_add(0, edge_index[1], message)

        plain, weighted = sums(message), sums(message * weight[:, None].double())
        everything = (plain * row[:, None].double() + own[:, None].double() * x.double() + bias.double()).relu()
        results = (
            (pyg_sparse.spmm(plan, x), plain),
            (pyg_sparse.spmm(plan, x, weight), weighted),
            (pyg_sparse.spmm(plan, x, row_scale=row, self_scale=own, bias=bias, relu=True), everything),
        )
        for result, expected in results:
            assert relative_error(result[4:], expected[4:]) < 4 * torch.finfo(dtype).eps
            # Rounding adds up over a row's entries, one after the other at worst.
            assert relative_error(result[:4], expected[:4]) < (edges / 80) ** 0.5 * torch.finfo(accumulate).eps + (
                torch.finfo(dtype).eps
            )
        q = random(nodes, width).to(dtype)
        dots = (q[edge_index[1]].double() * message).sum(1)
        assert relative_error(pyg_sparse.sddmm(plan, q, x), dots) < tolerance(dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("edges", ["by source", "by target", "otherwise"])
def test_values_of_long_rows(edges: str, dtype: torch.dtype) -> None:
    # Of sorted edges, a row's values are moved in sequence. Two rows are too long for that, and one has no entries.
    generator = torch.Generator("cuda").manual_seed(0)
    random = functools.partial(torch.randn, device="cuda", generator=generator)
    key = torch.randperm(2000 * 2000, device="cuda", generator=generator)[:300_000]
    edge_index = torch.stack([key // 2000, key % 2000])
    edge_index = edge_index[:, (edge_index != 7).all(0)]
    edge_index = torch.cat([edge_index, torch.randint(2000, (2, 18_000), device="cuda", generator=generator)], 1)
    edge_index[1, -9000:] = 3
    edge_index[0, -18_000:-9000] = 3
    if edges != "otherwise":
        edge_index = edge_index[:, edge_index[int(edges == "by target")].argsort(stable=True)]
    plan = pyg_sparse.plan(edge_index, 2000)
    assert plan.edges == edges
    weight = random(edge_index.size(1)).to(dtype).requires_grad_()
    src, dst = edge_index
    scales = [torch.rand(2000, device="cuda", generator=generator).to(torch.promote_types(dtype, torch.float32))] * 2
    for width in (3, 4, 8, 16, 24, 32, 64, 100):
        x, q = (random(2000, width).to(dtype).requires_grad_() for _ in range(2))
        message = x[src].double() * weight[:, None].double()
        expected = torch.zeros(2000, width, device="cuda", dtype=torch.float64).index_add(0, dst, message)
        scaled_message = message * scales[1][src, None].double()
        scaled = torch.zeros_like(expected).index_add(0, dst, scaled_message) * scales[0][:, None].double()
        dots = (q[dst].double() * x[src].double()).sum(1)
        for inputs, result, reference in (
            ((x, weight), pyg_sparse.spmm(plan, x, weight), expected),
            ((x, weight), pyg_sparse.spmm(plan, x, weight, row_scale=scales[0], col_scale=scales[1]), scaled),
            ((q, x), pyg_sparse.sddmm(plan, q, x), dots),
        ):
            grad = random(result.shape).to(dtype)
            gradients = torch.autograd.grad(result, inputs, grad)
            of_reference = torch.autograd.grad(reference, inputs, grad.double(), retain_graph=True)
            for ours, theirs in zip((result, *gradients), (reference, *of_reference), strict=True):
                assert relative_error(ours, theirs) < tolerance(dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_tiles_of_many_rows_and_of_one(dtype: torch.dtype) -> None:
    generator = torch.Generator("cuda").manual_seed(0)
    random = functools.partial(torch.randn, device="cuda", generator=generator)
    length = torch.cat([torch.full((count,), n) for n, count in ((0, 3000), (1, 90_000), (7, 9000), (300, 200))])
    length = torch.cat([length, torch.tensor([1025, 2049, 4096, 4200, 5000, 20_001])])
    length = length[torch.randperm(length.numel(), generator=torch.Generator().manual_seed(0))].cuda()
    nodes, edges = length.numel(), int(length.sum())
    dst = torch.repeat_interleave(torch.arange(nodes, device="cuda"), length)
    src = torch.randint(nodes, (edges,), device="cuda", generator=generator)
    plan = pyg_sparse.plan(torch.stack([src, dst]), nodes)
    tensors = plan.forward.tensors()
    assert tensors["tile_shared_ptr"].numel() == 4  # three rows are cut
    rows = tensors["tile_ptr"].diff()
    assert rows.min() == 1
    assert rows.max() > 500
    accumulate = torch.float64 if dtype == torch.float64 else torch.float32
    weight, own, bias = random(edges).to(dtype), random(nodes).to(accumulate), random(1).to(accumulate)
    x = random(nodes, 3).to(dtype)
    for part in (x[:, :1], x[:, 1:2].contiguous()):  # strided, and not
        zeros, message = torch.zeros(nodes, 1, device="cuda", dtype=torch.float64), part[src].double()
        plain = zeros.index_add(0, dst, message)
        weighted = zeros.index_add(0, dst, message * weight[:, None].double())
        everything = (plain + own[:, None].double() * part.double() + bias.double()).relu()
        for result, expected in (
            (pyg_sparse.spmm(plan, part), plain),
            (pyg_sparse.spmm(plan, part, weight), weighted),
            (pyg_sparse.spmm(plan, part, self_scale=own, bias=bias, relu=True), everything),
        ):
            assert relative_error(result, expected) < tolerance(dtype)
            assert torch.equal(result[length == 0], expected[length == 0].to(dtype)) or expected is everything
    # A chain of dependent launches.
    small = random(nodes, 1).to(dtype)
    step = functools.partial(pyg_sparse.spmm, plan, edge_weight=weight, reduce="mean")
    torch.cuda.synchronize()
    chained = step(step(step(small)))
    expected = small
    for _ in range(3):
        expected = step(expected)
        torch.cuda.synchronize()
    assert torch.equal(chained, expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_long_rows_that_a_block_sums(dtype: torch.dtype) -> None:
    generator = torch.Generator("cuda").manual_seed(0)
    random = functools.partial(torch.randn, device="cuda", generator=generator)
    length = torch.tensor([2, 0, 1024, 5, 17, 64, *[1] * 200, 33], device="cuda")
    nodes, edges = length.numel(), int(length.sum())
    dst = torch.repeat_interleave(torch.arange(nodes, device="cuda"), length)
    src = torch.randint(nodes, (edges,), device="cuda", generator=generator)
    plan = pyg_sparse.plan(torch.stack([src, dst]), nodes)
    assert plan.forward.tensors()["team_ptr"].numel() == 5  # rows of more than 16 entries
    accumulate = torch.float64 if dtype == torch.float64 else torch.float32
    weight, own = random(edges).to(dtype), random(nodes).to(accumulate)
    for width in (1, 2, 3, 4, 6, 8, 12, 16, 20, 31, 32, 33, 40, 47, 64, 94, 100, 128, 256, 601):
        x, bias = random(nodes, width).to(dtype), random(width).to(accumulate)
        zeros, message = torch.zeros(nodes, width, device="cuda", dtype=torch.float64), x[src].double()
        plain = zeros.index_add(0, dst, message)
        weighted = zeros.index_add(0, dst, message * weight[:, None].double())
        assert relative_error(pyg_sparse.spmm(plan, x), plain) < tolerance(dtype)
        assert relative_error(pyg_sparse.spmm(plan, x, weight), weighted) < tolerance(dtype)
        everything = (plain + own[:, None].double() * x.double() + bias.double()).relu()
        result = pyg_sparse.spmm(plan, x, self_scale=own, bias=bias, relu=True)
        assert relative_error(result, everything) < tolerance(dtype)
        assert torch.equal(pyg_sparse.spmm(plan, x, plan.store_weight(weight)), pyg_sparse.spmm(plan, x, weight))
        scaled = zeros.index_add(0, dst, message * own[src, None].double())
        assert relative_error(pyg_sparse.spmm(plan, x, col_scale=own), scaled) < tolerance(dtype)
        heads = random(edges, 3).to(dtype)
        x = random(nodes, 3, width).to(dtype)
        message = (x[src].double() * heads[:, :, None].double()).flatten(1)
        several = torch.zeros(nodes, 3 * width, device="cuda", dtype=torch.float64).index_add(0, dst, message)
        assert relative_error(pyg_sparse.spmm(plan, x, heads).flatten(1), several) < tolerance(dtype)


@pytest.mark.parametrize("spec", [pyg_sparse.Csr(), pyg_sparse.Hyb(1)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_weighted_rows_that_share_a_warp(dtype: torch.dtype, spec: FormatSpec) -> None:
    generator = torch.Generator("cuda").manual_seed(0)
    random = functools.partial(torch.randn, device="cuda", generator=generator)
    # 64 to 100 entries a row on average, in enough rows to fill the device with groups of 8 and 16 lanes.
    nodes = 20_000
    length = torch.randint(56, 112, (nodes,), generator=torch.Generator().manual_seed(0)).cuda()
    dst = torch.repeat_interleave(torch.arange(nodes, device="cuda"), length)
    src = torch.randint(nodes, dst.shape, device="cuda", generator=generator)
    plan = pyg_sparse.plan(torch.stack([src, dst]), nodes, format=spec)
    weight = random(dst.numel()).to(dtype)
    for width in (4, 8, 12, 20, 32, 40, 64):
        x = random(nodes, width).to(dtype)
        message = x[src].double() * weight[:, None].double()
        expected = torch.zeros(nodes, width, device="cuda", dtype=torch.float64).index_add(0, dst, message)
        assert relative_error(pyg_sparse.spmm(plan, x, weight), expected) < tolerance(dtype)
        # What is not a number, in x or among the weights, spoils its own rows and no others.
        x[7], spoiled = float("nan"), weight.clone()
        spoiled[dst == 9] = float("nan")
        bad = torch.zeros(nodes, dtype=torch.bool, device="cuda").index_fill(0, dst[src == 7], True)
        bad[9] = True
        assert torch.equal(pyg_sparse.spmm(plan, x, spoiled).isnan().any(1), bad)


def _needs_gigabytes(count: int) -> None:
    gc.collect()
    torch.cuda.empty_cache()
    if torch.cuda.mem_get_info()[0] < count << 30:
        pytest.skip(f"{count} GiB of device memory are not free")


def test_more_than_2_31_edges() -> None:
    _needs_gigabytes(118)
    nodes, edges, step = 1 << 17, (1 << 31) + (1 << 20), 1 << 26
    generator = torch.Generator("cuda").manual_seed(0)
    random = functools.partial(torch.randn, device="cuda", generator=generator)
    edge_index = torch.randint(nodes, (2, edges), device="cuda", dtype=torch.int32, generator=generator)
    plan = pyg_sparse.plan(edge_index, nodes)
    assert plan.forward.slot.dtype == torch.int64
    x, q = random(nodes, 4), random(nodes, 4)
    weight = pyg_sparse.sddmm(plan, q, x)
    results = pyg_sparse.spmm(plan, x), pyg_sparse.spmm(plan, x, weight), pyg_sparse.spmm(plan.t(), q, reduce="mean")
    expected = [torch.zeros(nodes, 4, device="cuda", dtype=torch.float64) for _ in results]
    for part in (slice(start, start + step) for start in range(0, edges, step)):
        src, dst = edge_index[:, part].long()
        message = x[src].double()
        dots = (q[dst].double() * message).sum(1)
        assert relative_error(weight[part], dots) < 4 * torch.finfo(torch.float32).eps
        expected[0].index_add_(0, dst, message)
        expected[1].index_add_(0, dst, message.mul_(dots[:, None]))
        expected[2].index_add_(0, src, q[dst].double())
    expected[2] /= plan.out_degree[:, None]
    for ours, theirs in zip(results, expected, strict=True):
        assert relative_error(ours, theirs) < 1e-5


def test_more_than_2_31_features() -> None:
    _needs_gigabytes(20)
    nodes, width = (1 << 16) + 2, 1 << 15
    src = torch.tensor([0, nodes - 1, nodes - 2, 5], device="cuda")
    dst = torch.tensor([nodes - 1, nodes - 1, 0, 7], device="cuda")
    x = torch.zeros(nodes, width, device="cuda", dtype=torch.bfloat16)
    x[src] = torch.randn(4, width, device="cuda").bfloat16()
    plan = pyg_sparse.plan(torch.stack([src, dst]), nodes)
    result = pyg_sparse.spmm(plan, x)
    assert torch.equal(result[-1], (x[0].float() + x[-1].float()).bfloat16())
    assert torch.equal(result[0], x[-2])
    assert torch.equal(result[7], x[5])
    assert int(result.any(1).sum()) == 3
    dots = pyg_sparse.sddmm(plan, x, x)
    assert relative_error(dots, (x[dst].double() * x[src].double()).sum(1)) < 2 * torch.finfo(torch.bfloat16).eps


def test_more_than_2_31_values() -> None:
    _needs_gigabytes(40)
    nodes, edges, heads, step = 1 << 16, 1 << 25, 65, 1 << 22
    generator = torch.Generator("cuda").manual_seed(0)
    edge_index = torch.randint(nodes, (2, edges), device="cuda", generator=generator)
    plan = pyg_sparse.plan(edge_index, nodes)
    q, x = torch.randn(2, nodes, heads, 1, device="cuda", generator=generator).bfloat16()
    weight = pyg_sparse.sddmm(plan, q, x)
    result = pyg_sparse.spmm(plan, x, weight)
    expected = torch.zeros(nodes, heads, device="cuda", dtype=torch.float64)
    for part in (slice(start, start + step) for start in range(0, edges, step)):
        src, dst = edge_index[:, part]
        assert torch.equal(weight[part], (q[dst] * x[src]).squeeze(2))
        expected.index_add_(0, dst, weight[part].double() * x[src].squeeze(2).double())
    assert relative_error(result.squeeze(2), expected) < 2 * torch.finfo(torch.bfloat16).eps
