"""Large results on the CPU take turns in the same memory."""

from __future__ import annotations

import copy
import io
import multiprocessing
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from torch import Tensor

import pyg_sparse
from pyg_sparse import Plan
from tests.order_graphs import uniform

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="results are torch's own elsewhere")

NODES = 3000
WIDTHS = (32, 100, 700)  # 0.4, 1.2 and 8.4 MB


@pytest.fixture(scope="module")
def plan() -> Plan:
    return pyg_sparse.plan(uniform(NODES, 5 * NODES).edge_index, NODES)


def product(plan: Plan, x: Tensor) -> Tensor:
    src, dst = plan.edge_index()
    return torch.zeros(NODES, x.shape[1]).index_add(0, dst, x[src])


@pytest.mark.parametrize("width", WIDTHS)
def test_memory_is_used_again(plan: Plan, width: int) -> None:
    x = torch.randn(NODES, width)
    expected = product(plan, x)
    places = set()
    for _ in range(8):
        result = pyg_sparse.spmm(plan, x)
        places.add(result.data_ptr())
        torch.testing.assert_close(result, expected)
        result.fill_(float("nan"))  # what the next one finds
        del result
    assert len(places) == 1


@pytest.mark.parametrize("width", WIDTHS)
def test_results_in_use_are_left_alone(plan: Plan, width: int) -> None:
    inputs = [torch.randn(NODES, width) for _ in range(6)]
    results = [pyg_sparse.spmm(plan, x) for x in inputs]
    views = [result[1:] for result in results[:3]]
    del results[:3]
    more = [pyg_sparse.spmm(plan, x) for x in inputs]
    for x, result in zip(inputs + inputs[3:], more + results, strict=True):
        torch.testing.assert_close(result, product(plan, x))
    for x, view in zip(inputs[:3], views, strict=True):
        torch.testing.assert_close(view, product(plan, x)[1:])


def test_results_are_tensors_like_any_other(plan: Plan) -> None:
    x = torch.randn(NODES, 100)
    result, expected = pyg_sparse.spmm(plan, x), product(plan, x)
    assert result.is_contiguous()
    assert result.untyped_storage().nbytes() == result.nbytes
    file = io.BytesIO()
    torch.save(result, file)
    file.seek(0)
    shared = pyg_sparse.spmm(plan, x).share_memory_()
    for other in (torch.load(file, weights_only=True), copy.deepcopy(result), shared, torch.tensor(result.numpy())):
        torch.testing.assert_close(other, expected)
    array = pyg_sparse.spmm(plan, x).numpy()  # outlives its tensor
    pyg_sparse.spmm(plan, x + 1)
    torch.testing.assert_close(torch.from_numpy(array), expected)


def test_threads_take_turns(plan: Plan) -> None:
    inputs = [torch.randn(NODES, 100) for _ in range(4)]
    expected = [product(plan, x) for x in inputs]

    def work(i: int) -> bool:
        return all(torch.allclose(pyg_sparse.spmm(plan, inputs[i]), expected[i], atol=1e-5) for _ in range(40))

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, range(4)))


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_what_is_kept_has_a_bound(plan: Plan) -> None:
    x = torch.ones(NODES, 700)  # 8.4 MB
    before = resident_bytes()
    results = [pyg_sparse.spmm(plan, x) for _ in range(64)]
    assert resident_bytes() - before > 30 * x.nbytes
    results.clear()
    assert resident_bytes() - before < 36 * x.nbytes


def _in_a_child(plan: Plan, x: Tensor, results: multiprocessing.Queue[bool]) -> None:
    torch.set_num_threads(1)
    results.put(all(torch.allclose(pyg_sparse.spmm(plan, x), product(plan, x), atol=1e-5) for _ in range(3)))


def test_forked_processes_have_their_own(plan: Plan) -> None:
    x = torch.randn(NODES, 100)
    kept = pyg_sparse.spmm(plan, x)
    pyg_sparse.spmm(plan, x)  # leaves memory for the next
    context = multiprocessing.get_context("fork")
    results: multiprocessing.Queue[bool] = context.Queue()
    children = [context.Process(target=_in_a_child, args=(plan, x + i, results)) for i in range(3)]
    for child in children:
        child.start()
    pyg_sparse.spmm(plan, x + 7)
    assert all(results.get(timeout=60) for _ in children)
    for child in children:
        child.join()
    torch.testing.assert_close(kept, product(plan, x))
