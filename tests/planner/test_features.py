"""Structural features: every number against a dense computation, samples against what they stand for."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from pathlib import Path
from statistics import mean

import numpy as np
import pytest
import torch
from torch import Tensor

from pyg_sparse import Hyb
from pyg_sparse.formats.rows import Rows, permute
from pyg_sparse.planner.blocks import count_blocks
from pyg_sparse.planner.by_row import by_row, lengths_by_id
from pyg_sparse.planner.features import FROM_BLOCKS, NAMES, Features, features, features_of
from pyg_sparse.planner.intrinsic import Intrinsic
from pyg_sparse.planner.representation import Representation, hyb_padding
from pyg_sparse.planner.spgemm import Factors, SpGemm, spgemm
from pyg_sparse.planner.statistics import quantiles
from tests.conftest import FAMILIES, Graph
from tests.formats.test_formats import rows_of
from tests.order_graphs import both_sides, needs_cuda, uniform
from tests.planner.dense_features import compression, dense, dense_features, hyb_positions

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "features.md"


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def _dense_corner() -> Graph:
    """A full block, a diagonal, and a column that many share: tiles of all densities."""
    block = torch.cartesian_prod(torch.arange(40), torch.arange(40)).t()
    loops = torch.arange(300).expand(2, -1)
    shared = torch.stack([torch.full((150,), 299), torch.arange(0, 300, 2)])
    return Graph(torch.cat([block, loops, shared], dim=1), 300, 300)


GRAPHS = {**FAMILIES, "dense_corner": _dense_corner()}


def _skewed(nodes: int = 600, edges: int = 24_000) -> Graph:
    draw = torch.rand(2, edges, generator=generator(1))
    return Graph((nodes * draw**2).long(), nodes, nodes)


# Exact numbers


@pytest.mark.parametrize("name", GRAPHS)
def test_numbers_are_those_of_the_dense_matrix(name: str, device: str) -> None:
    graph = GRAPHS[name]
    found = features(*both_sides(graph, device))
    assert found.sampled == ()
    numbers = found.as_dict()
    expected = dense_features(graph)
    assert [n for n in numbers if n not in ("shape_class", "sampled")] == list(expected)
    for key, value in expected.items():
        assert numbers[key] == pytest.approx(value, rel=1e-12, abs=0), key


def test_graphs_tell_numbers_from_zero_and_one() -> None:
    # What the test above compares must not be trivial in all graphs.
    numbers = [features(*both_sides(graph)).as_dict() for graph in GRAPHS.values()]
    for name in NAMES:
        if not name.startswith("fit_"):  # see the next test
            assert len({n[name] for n in numbers} - {0, 1}) >= 2, name


@pytest.mark.parametrize(("nodes", "too_many"), [(40_000, (5, 3, 1)), (3_000, (5, 0, 0))])
def test_rows_fit_an_accumulator_by_their_products_or_by_the_columns(
    nodes: int, too_many: tuple[int, int, int], device: str
) -> None:
    # Row 0 has 512 entries and row 1 has one; both name rows without entries. Rows 2 to 7 name rows 0 and 1.
    named = [[*range(100, 612)], [100], [0], [0, 1], [0] * 8, [0] * 8 + [1], [0] * 64, [0] * 64 + [1]]
    dst = torch.arange(8).repeat_interleave(torch.tensor([len(n) for n in named]))
    src = torch.tensor([col for columns in named for col in columns])
    found = features_of(torch.stack([src, dst]).to(device), nodes).spgemm
    assert found.u_total == 512 + 513 + 4096 + 4097 + 32768 + 32769
    assert found.u_max == 32769
    assert [found.fit_512, found.fit_4k, found.fit_32k] == [(nodes - rows) / nodes for rows in too_many]


def test_long_rows_in_one_pass(device: str) -> None:
    # Rows around the length from which on a block of threads reads them on CUDA, several of them in one block.
    lengths = torch.tensor([2047, 2048, 2049, 0, 6000, 1, 31, 33] * 5)
    dst = torch.arange(40).repeat_interleave(lengths)
    src = torch.randint(7, 3000, dst.shape, generator=generator(2))
    rows = rows_of(Graph(torch.stack([src, dst]), 3000, 40), device)
    weight = torch.randint(2**40, (3000,), generator=generator(3))
    found = torch.ops.pyg_sparse.row_features(rows.rowptr, rows.row, rows.col, weight.to(device)).cpu()
    for i, columns in enumerate(src.split(lengths.tolist())):
        low, high = (int(columns.min()), int(columns.max())) if len(columns) else (0, -1)
        assert found[:, i].tolist() == [low, high, int((columns == i).sum()), int(weight[columns].sum())]
    assert found[2].sum() > 0


def test_processing_order_does_not_matter() -> None:
    rows, t_rows = both_sides(FAMILIES["power_law"])
    order = torch.randperm(rows.num_rows)
    moved = permute(rows, order)
    start = moved.rowptr[:-1].repeat_interleave(moved.lengths())
    shuffled = torch.sort(start + torch.rand(rows.nnz, dtype=torch.float64) * 0.5).indices  # in each row
    assert not torch.equal(moved.col[shuffled], moved.col)
    moved = dataclasses.replace(moved, col=moved.col[shuffled])
    assert features(moved, t_rows) == features(rows, t_rows)


@pytest.mark.parametrize("k", [None, 0, 1, 3, 6])
@pytest.mark.parametrize("c", [1, 2, 5, 1000])
@pytest.mark.parametrize("name", ["hub", "power_law", "uniform", "wide", "tall", "no_sources"])
def test_hyb_padding_is_that_of_the_built_format(name: str, c: int, k: int | None, device: str) -> None:
    rows = rows_of(FAMILIES[name], device)
    spec = Hyb(c, k)
    built = spec.build(rows)
    expected = built.col.numel() / rows.nnz - 1 if rows.nnz else 0.0
    assert hyb_padding(rows, spec) == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_hyb_pads_to_powers_of_two() -> None:
    lengths = [0, 1, 2, 3, 8, 9, 13, 16, 17, 40]
    dst = torch.arange(10).repeat_interleave(torch.tensor(lengths))
    rows = rows_of(Graph(torch.stack([torch.zeros_like(dst), dst]), 1, 10))
    for k in (0, 2, 3, 4, 7):
        stored = sum(hyb_positions(n, k) for n in lengths)
        assert hyb_padding(rows, Hyb(1, k)) == (stored - sum(lengths)) / sum(lengths)


@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_quantiles_are_numpys(size: int, device: str) -> None:
    values = torch.randint(50, (size,), generator=generator(size))
    shares = (0.0, 0.05, 0.25, 0.5, 0.95, 1.0)
    expected = np.quantile(values.numpy(), shares)
    assert quantiles(values.to(device), shares) == pytest.approx(expected.tolist(), rel=1e-12)


def test_products_use_the_rows_of_the_second_factor() -> None:
    # Rectangular: A A^T. Square, though not symmetric: A A.
    for name in ("wide", "power_law"):
        rows, t_rows = both_sides(FAMILIES[name])
        factors = Factors.of(rows, t_rows)
        assert (factors.b is rows) == (name == "power_law")
        assert torch.equal(lengths_by_id(factors.t_b), torch.bincount(factors.b.col, minlength=factors.b.num_cols))


# Samples


@pytest.mark.parametrize("budget", [6_000, 12_000])
def test_sampled_blocks_stand_for_all(budget: int, device: str) -> None:
    rows = rows_of(_skewed(), device)
    full = count_blocks(rows, rng(0))
    drawn = [count_blocks(rows, rng(seed), budget) for seed in range(40)]
    assert full.exact
    assert full.entries == rows.nnz
    assert not any(d.exact for d in drawn)
    assert len({d.entries for d in drawn}) > 20
    assert mean(d.entries for d in drawn) == pytest.approx(budget, rel=0.3)
    for width in (4, 8, 16):
        each = [d.expansion(width) for d in drawn]
        assert mean(each) == pytest.approx(full.expansion(width), rel=0.06)
        assert np.std(each) < 0.25 * full.expansion(width)
    share = [d.in_dense / d.entries for d in drawn]
    assert 0.1 < full.in_dense / full.entries < 0.9
    assert mean(share) == pytest.approx(full.in_dense / full.entries, abs=0.06)


def _compression(graph: Graph, seed: int, budget: int, device: str = "cpu") -> tuple[float, bool]:
    factors = Factors.of(*both_sides(graph, device))
    product, exact = spgemm(factors, by_row(factors.a, factors.b).products, rng(seed), budget)
    return product.compression, exact


@pytest.mark.parametrize(
    ("graph", "budget"),
    [
        (uniform(1500, 12_000), 80_000),  # fewer than budget products in 1024 rows: rows alone are sampled
        (_skewed(1500, 30_000), 100_000),  # more: columns too
        (_skewed(), 20_000),
        (Graph(_skewed(2000, 20_000).edge_index % torch.tensor([[700], [2000]]), 700, 2000), 50_000),
    ],
    ids=["rows", "columns", "few columns", "rectangular"],
)
def test_sampled_compression_stands_for_all(graph: Graph, budget: int, device: str) -> None:
    truth = compression(dense(graph))
    assert _compression(graph, 0, 1 << 40, device) == (pytest.approx(truth, rel=1e-12), True)
    drawn = [_compression(graph, seed, budget, device) for seed in range(16)]
    assert not any(exact for _, exact in drawn)
    assert len({value for value, _ in drawn}) > 8
    assert mean(value for value, _ in drawn) == pytest.approx(truth, rel=0.05)
    assert all(abs(value - truth) < 0.25 * truth for value, _ in drawn)


def test_columns_are_sampled_where_there_are_entries() -> None:
    # Every product is in one of two columns of 1500.
    once = torch.stack([torch.tensor([7, 1000]).repeat(750), torch.arange(1500)])
    graph = Graph(torch.cat([once] * 3, dim=1), 1500, 1500)
    assert _compression(graph, 0, 1_000)[0] == pytest.approx(compression(dense(graph)), rel=0.05)


@pytest.fixture(scope="module")
def large() -> tuple[Rows, Rows]:
    return both_sides(_skewed(20_000, 1_300_000))


def test_samples_repeat_for_a_seed_and_are_named(large: tuple[Rows, Rows]) -> None:
    first, again, other = (features(*large, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first.sampled == (*FROM_BLOCKS, "compression")
    a, b = first.as_dict(), other.as_dict()
    assert {name for name in a if a[name] != b[name]} == set(first.sampled) - {"tile_coverage"} | (
        {"tile_coverage"} if a["tile_coverage"] < 1 else set()
    )


def test_samples_of_a_large_graph_are_close(large: tuple[Rows, Rows]) -> None:
    found = features(*large)
    full = count_blocks(large[0], rng(0), budget=1 << 40)
    assert full.exact
    assert found.representation.bsr_8 == pytest.approx(full.expansion(8), rel=0.03)
    assert found.representation.bsr_8 != full.expansion(8)


def test_only_what_is_sampled_is_named() -> None:
    # Few entries, many products.
    assert features(*both_sides(_skewed(3000, 60_000))).sampled == ("compression",)


@needs_cuda
@pytest.mark.parametrize("name", [*GRAPHS, "large"])
def test_cuda_gives_the_numbers_of_the_cpu(name: str) -> None:
    graph = _skewed(20_000, 1_300_000) if name == "large" else GRAPHS[name]
    expected, found = (features(*both_sides(graph, device), seed=3).as_dict() for device in ("cpu", "cuda"))
    for key, value in expected.items():
        if isinstance(value, float):
            assert found[key] == pytest.approx(value, rel=1e-12), key
        else:
            assert found[key] == value, key


# Shape classes


def _of_lengths(lengths: Tensor) -> str:
    dst = torch.arange(len(lengths)).repeat_interleave(lengths)
    src = torch.randint(len(lengths), dst.shape, generator=generator(0))
    return features_of(torch.stack([src, dst]), len(lengths)).shape_class


def _draw(seed: int = 9) -> Tensor:
    return torch.rand(20_000, dtype=torch.float64, generator=generator(seed))


@pytest.mark.parametrize(
    ("expected", "lengths"),
    [
        ("uniform", torch.full((1000,), 7)),
        ("uniform", torch.poisson(torch.full((5000,), 30.0), generator=generator(1)).long()),
        ("moderate", torch.poisson(torch.full((5000,), 5.0), generator=generator(1)).long()),
        ("moderate", (1 + 20 * _draw()).long()),
        ("moderate", torch.tensor([0, 7, 7]).repeat(300)),  # rows without entries are no mode
        ("skewed", (-12 * _draw().log() * (1 + (_draw(8) < 0.2) * 2)).long()),  # two exponentials
        ("skewed", torch.cat([torch.full((5000,), 4), torch.tensor([3000])])),  # a hub
        ("power-law", (_draw() ** (-1 / 1.2)).clamp(max=5000).long()),  # exponent 2.2
        ("power-law", (3 * _draw() ** (-1 / 1.8)).clamp(max=5000).long()),  # exponent 2.8
        ("bimodal", torch.tensor([3, 60]).repeat(500)),
        ("bimodal", torch.cat([torch.full((900,), 5), torch.full((110,), 200)])),
    ],
)
def test_shape_classes(expected: str, lengths: Tensor) -> None:
    shuffled = lengths[torch.randperm(len(lengths), generator=generator(4))]
    assert _of_lengths(shuffled) == expected


def test_a_few_long_rows_are_no_second_mode() -> None:
    assert _of_lengths(torch.cat([torch.full((950,), 5), torch.full((50,), 200)])) != "bimodal"


# Values


@pytest.mark.parametrize("name", GRAPHS)
def test_numbers_are_in_their_ranges(name: str) -> None:
    graph = GRAPHS[name]
    found = features(*both_sides(graph))
    numbers = found.as_dict()
    shares = ("row_empty", "span_normalized", "diagonal_fraction", "tile_coverage", "dense_tile_share")
    for key in (*shares, "fit_512", "fit_4k", "fit_32k"):
        assert 0 <= numbers[key] <= 1
    assert all(isinstance(numbers[n], int | float) and math.isfinite(numbers[n]) and numbers[n] >= 0 for n in NAMES)
    assert 0 <= numbers["hyb_padding"] < 1
    assert numbers["mean_gap"] <= max(graph.num_src - 1, 0)
    assert numbers["row_q25"] <= numbers["row_median"] <= numbers["row_q75"] <= numbers["row_max"]
    assert numbers["u_median"] <= numbers["u_p95"] <= numbers["u_max"] <= numbers["u_total"]
    assert numbers["fit_512"] <= numbers["fit_4k"] <= numbers["fit_32k"]
    if graph.edge_index.numel():
        assert numbers["sell_8"] >= 1
        assert numbers["ell"] >= 1
        assert numbers["row_mean"] / numbers["density"] == pytest.approx(graph.num_src)  # as documented
        if numbers["u_total"]:
            assert numbers["compression"] >= 1


@pytest.mark.parametrize("name", ["empty", "no_edges", "no_sources"])
def test_without_edges_all_is_zero(name: str, device: str) -> None:
    graph = FAMILIES[name]
    numbers = features(*both_sides(graph, device)).as_dict()
    expected = {"num_rows": graph.num_dst}
    if graph.num_dst:
        expected.update(row_empty=1.0, fit_512=1.0, fit_4k=1.0, fit_32k=1.0)
    assert {key: value for key, value in numbers.items() if value} == {
        key: value for key, value in {**expected, "shape_class": "uniform"}.items() if value
    }


def test_json_round_trip(large: tuple[Rows, Rows]) -> None:
    found = features(*large)
    text = json.dumps(found.as_dict(), allow_nan=False)
    assert Features.from_dict(json.loads(text)) == found
    assert list(json.loads(text)) == [*NAMES, "shape_class", "sampled"]


def test_names_that_do_not_fit_are_refused() -> None:
    values = features(*both_sides(FAMILIES["uniform"])).as_dict()
    with pytest.raises(ValueError, match="extra"):
        Features.from_dict({**values, "extra": 1})
    with pytest.raises(ValueError, match="bsr_4"):
        Features.from_dict({key: value for key, value in values.items() if key != "bsr_4"})


def test_there_are_36_numbers_and_each_is_documented() -> None:
    assert [len(dataclasses.fields(group)) for group in (Intrinsic, Representation, SpGemm)] == [18, 8, 10]
    assert len(set(NAMES)) == 36
    documented = re.findall(r"^\| `(\w+)` \|.*\| (exact|bands|rows) \|$", DOCUMENT.read_text(), flags=re.MULTILINE)
    assert tuple(name for name, _ in documented) == NAMES
    assert {name for name, how in documented if how != "exact"} == {*FROM_BLOCKS, "compression"}


# Arguments


def test_features_of_a_graph_are_those_of_its_forward_adjacency(device: str) -> None:
    graph = FAMILIES["wide"]
    found = features_of(graph.edge_index.int().to(device), (graph.num_src, graph.num_dst))
    assert found == features(*both_sides(graph, device))
    assert found.intrinsic.num_rows == graph.num_dst


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="num_nodes"):
        features_of(torch.tensor([[0, 5], [1, 1]]), 3)
    with pytest.raises(TypeError, match="int64"):
        features_of(torch.zeros(2, 3))
    rows = rows_of(FAMILIES["wide"])
    with pytest.raises(ValueError, match="transpose"):
        features(rows, rows)
