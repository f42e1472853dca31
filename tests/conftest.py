"""Fixtures shared by all tests: the devices, the graph families, the format variants and the real data."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import pyg_sparse.cache
from pyg_sparse import Plan
from pyg_sparse.formats import SPECS, FormatSpec

DATA = Path(os.environ.get("PYG_SPARSE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def pytest_configure() -> None:
    os.environ["PYG_SPARSE_CACHE"] = "off"  # a test that wants a cache names a folder
    os.environ["PYG_SPARSE_POISON"] = "1"  # large results on the CPU hold NaN before they are written
    if "PYTEST_XDIST_WORKER" in os.environ:  # the workers share the cores
        torch.set_num_threads(1)


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request: pytest.FixtureRequest) -> str:
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return request.param


@pytest.fixture(scope="session")
def data_root() -> Path:
    if not DATA.is_dir():
        pytest.skip(f"no data folder: set PYG_SPARSE_DATA or put the data in {DATA}")
    return DATA


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """The plans that the cache builds during the test, oldest first."""
    plans: list[Plan] = []
    build = pyg_sparse.cache.plan

    def recording_plan(*args: Any, **kwargs: Any) -> Plan:
        plans.append(build(*args, **kwargs))
        return plans[-1]

    monkeypatch.setattr(pyg_sparse.cache, "plan", recording_plan)
    return plans


@pytest.fixture(autouse=True)
def seeded() -> None:
    """The same numbers in every run: rarely, random ones round worse than the bounds of rounding allow."""
    torch.manual_seed(0)


@pytest.fixture
def poisoned() -> Iterator[None]:
    """New memory holds NaN, so that an element that a kernel does not write shows; large results do in every test."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    yield
    torch.use_deterministic_algorithms(before)


def variants() -> list[FormatSpec]:
    """Every registered format with its defaults, and with all of its parameters small, which stresses its seams."""
    specs: list[FormatSpec] = []
    for cls in SPECS.values():
        names = [f.name for f in dataclasses.fields(cls)]
        specs += [cls(), *(cls(**dict.fromkeys(names, value)) for value in (1, 3))]
    return specs


@pytest.fixture(params=variants(), ids=repr)
def spec(request: pytest.FixtureRequest) -> FormatSpec:
    return request.param


@dataclasses.dataclass(frozen=True)
class Graph:
    edge_index: Tensor
    num_src: int
    num_dst: int


def _uniform(num_src: int, num_dst: int, edges: int, seed: int = 0) -> Graph:
    generator = torch.Generator().manual_seed(seed)
    src = torch.randint(num_src, (edges,), generator=generator)
    dst = torch.randint(num_dst, (edges,), generator=generator)
    return Graph(torch.stack([src, dst]), num_src, num_dst)


def _power_law() -> Graph:
    generator = torch.Generator().manual_seed(1)
    draw = torch.rand(2, 3000, generator=generator)
    return Graph((200 * draw**4).long(), 200, 200)


def _hub() -> Graph:
    src = torch.randint(150, (2500,), generator=torch.Generator().manual_seed(2))
    dst = torch.full((2500,), 17)
    dst[::10] = src[::10]
    return Graph(torch.stack([src, dst]), 150, 150)


def _banded() -> Graph:
    center = torch.arange(100).repeat_interleave(5)
    other = center + torch.arange(-2, 3).repeat(100)
    inside = (other >= 0) & (other < 100)
    return Graph(torch.stack([other[inside], center[inside]]), 100, 100)


def _symmetric() -> Graph:
    half = _uniform(80, 80, 400, seed=3).edge_index
    return Graph(torch.cat([half, half.flip(0)], dim=1)[:, torch.randperm(800)], 80, 80)


FAMILIES = {
    "empty": Graph(torch.empty(2, 0, dtype=torch.long), 0, 0),
    "no_edges": Graph(torch.empty(2, 0, dtype=torch.long), 9, 9),
    "no_sources": Graph(torch.empty(2, 0, dtype=torch.long), 0, 4),
    "one_node": Graph(torch.zeros(2, 1, dtype=torch.long), 1, 1),
    "isolated": Graph(torch.tensor([[3, 90, 3], [90, 3, 55]]), 100, 100),
    "self_loops": Graph(torch.arange(40).expand(2, 40).contiguous(), 40, 40),
    "duplicates": Graph(torch.tensor([[1, 2, 1, 1, 4, 2], [0, 0, 0, 3, 3, 0]]).repeat(1, 20), 5, 5),
    "hub": _hub(),
    "power_law": _power_law(),
    "uniform": _uniform(120, 120, 1500),
    "banded": _banded(),
    "symmetric": _symmetric(),
    "wide": _uniform(500, 7, 900),
    "tall": _uniform(7, 500, 900),
    "sparse_tall": _uniform(50, 2000, 60),  # most rows empty, most buckets empty
}


@pytest.fixture(params=list(FAMILIES))
def graph(request: pytest.FixtureRequest) -> Graph:
    return FAMILIES[request.param]


@pytest.fixture(params=["isolated", "duplicates", "banded", "wide", "symmetric"])
def small(request: pytest.FixtureRequest) -> Graph:
    graph = FAMILIES[request.param]
    if request.param == "duplicates":
        return Graph(graph.edge_index[:, :18], 5, 5)
    return Graph(graph.edge_index[:, :60] % 24, min(graph.num_src, 24), min(graph.num_dst, 24))
