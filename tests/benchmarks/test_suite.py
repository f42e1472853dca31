import math

import pytest
import torch

from benchmarks import (
    bandwidth,
    bench_suite,
    check,
    contenders,
    make_tables,
    measure,
    results,
    spmm_problem,
    suite_exact,
    suite_stats,
    suite_tables,
    suite_twin,
)
from benchmarks.suite_graphs import TWIN_CV_TOLERANCE, load, suite
from tests.markdown import cells

CPU = torch.device("cpu")
LISTED = {stats.name: stats for stats in suite_stats.read()}
HUGE = 50_000_000  # entries; their columns take too long for a test
SMALL = [name for name, stats in LISTED.items() if stats.nnz < 50_000]
REAL = {
    "HB_bcsstm19",
    "HB_bp_600",
    "HB_can_838",
    "PARSEC_Si2",
    "HB_bcsstk09",
    "Gset_G47",
    "Newman_hep-th",
    "Gset_G31",
    "DIMACS10_fe_4elt2",
    "GHS_indef_aug2d",
    "Barabasi_NotreDame_actors",
}
META = {
    **dict.fromkeys(results.META_KEYS),
    "commit": "0123456789abcdef",
    "device": "Some GPU",
    "date": "2026-01-02T03:04:05+00:00",
    "command": "python -m something",
}


def keys(graph):
    """A number for each entry, in ascending order."""
    col, row = graph.edge_index
    unsorted = row * graph.num_src + col
    return unsorted if (unsorted.diff() > 0).all() else unsorted.sort().values


def test_the_list():
    assert len(LISTED) == 60
    assert {stats.family for stats in LISTED.values()} == set(suite_twin.FAMILIES)
    assert set(suite_exact.EXACT) < set(LISTED)


@pytest.mark.parametrize("name", [name for name, stats in LISTED.items() if stats.nnz <= HUGE])
def test_matrix_without_files(name):
    stats = LISTED[name]
    graph = load(stats, None, 0, CPU)
    assert graph.name == name
    assert graph.source == ("exact" if name in suite_exact.EXACT else "twin")

    found = suite_stats.of_graph(graph)
    assert (found.rows, found.cols, found.nnz) == (stats.rows, stats.cols, stats.nnz)
    assert found.row_max == stats.row_max
    tolerance = 0 if graph.source == "exact" else TWIN_CV_TOLERANCE
    assert found.row_cv == pytest.approx(stats.row_cv, rel=tolerance, abs=suite_stats.CV_ROUNDING + 1e-9)

    col, row = graph.edge_index
    assert 0 <= col.min() <= col.max() < stats.cols
    assert 0 <= row.min() <= row.max() < stats.rows
    assert (keys(graph).diff() > 0).all(), "an entry is there twice"


@pytest.mark.parametrize("name", [name for name, stats in LISTED.items() if stats.nnz > HUGE])
def test_row_lengths_of_the_largest(name):
    stats = LISTED[name]
    lengths = torch.from_numpy(suite_twin.row_lengths(stats, 1))
    assert lengths.shape == (stats.rows,)
    assert (lengths.sum(), lengths.max()) == (stats.nnz, stats.row_max)
    assert lengths.min() >= 1
    cv = lengths.double().std(correction=0) / lengths.double().mean()
    assert float(cv) == pytest.approx(stats.row_cv, rel=TWIN_CV_TOLERANCE, abs=suite_stats.CV_ROUNDING)


def test_same_seed_same_matrix():
    once = {graph.name: graph for graph in suite(only=SMALL)}
    assert list(once) == SMALL
    for name in SMALL:
        (again,) = suite(only=[name])
        (other,) = suite(only=[name], seed=1)
        assert torch.equal(once[name].edge_index, again.edge_index)
        if again.source == "twin":
            assert not torch.equal(keys(again), keys(other))


def test_columns_fit_the_family():
    def near(name):
        col, row = load(LISTED[name], None, 0, CPU).edge_index
        return ((col - row).abs() <= LISTED[name].row_max).double().mean()

    assert near("Nemeth_nemeth26") > 0.98
    assert near("Schenk_IBMNA_c-38") < 0.6
    col, row = load(LISTED["Sandia_adder_dcop_44"], None, 0, CPU).edge_index
    assert (col == row).sum() == LISTED["Sandia_adder_dcop_44"].rows, "a circuit has its diagonal"
    assert col.bincount().max() > 20 * col.bincount().double().mean(), "and dense columns"


def test_boundary_of_a_small_chessboard():
    row, col = suite_exact.chessboard(2, 3, 2)
    placements = [(2, 1), (3, 1), (1, 2), (3, 2), (1, 3), (2, 3)]  # of the rooks on the two lines
    expected = [(i, face) for i, (one, other) in enumerate(placements) for face in (one - 1, 3 + other - 1)]
    assert sorted(zip(row.tolist(), col.tolist(), strict=True)) == expected


def test_real_files(data_root):
    graphs = {graph.name: graph for graph in suite(data_root, only=REAL)}
    assert set(graphs) == REAL
    for name, graph in graphs.items():
        assert graph.source == "real"
        assert LISTED[name].agrees(graph)


@pytest.mark.parametrize("name", sorted(REAL & set(suite_exact.EXACT)))
def test_construction_is_the_real_matrix(name, data_root):
    (real,) = suite(data_root, only=[name])
    (built,) = suite(only=[name])
    assert torch.equal(keys(real), keys(built))


def test_a_file_of_another_matrix_is_refused(tmp_path):
    folder = tmp_path / "matrices"
    folder.mkdir()
    (folder / "index.tsv").write_text("name\tfile\nHB/str_0\tstr_0.mtx\n")
    (folder / "str_0.mtx").write_text("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 1\n")
    with pytest.raises(ValueError, match=r"HB_str_0 \(real\) does not have the listed statistics"):
        list(suite(tmp_path, only=["HB_str_0"]))


def test_unknown_matrix():
    with pytest.raises(ValueError, match=r"not in suitesparse60\.csv: HB_nothing"):
        list(suite(only=["HB_nothing"]))


def test_run_on_two_matrices(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bandwidth, "measure", lambda device: {"copy_gbs": 1.0, "gather_gbs": 1.0})
    monkeypatch.delenv("PYG_SPARSE_DATA", raising=False)
    out = tmp_path / "suite.json"
    names = ["HB_str_0", "Bai_cdde2"]
    bench_suite.main(f"--only {' '.join(names)} --widths 1 4 --seconds 0.01 --device cpu --out {out}".split())

    _, rows = results.read(out)
    assert {(row["graph"], row["source"]) for row in rows} == {("HB_str_0", "twin"), ("Bai_cdde2", "exact")}
    assert {row["k"] for row in rows} == {1, 4}
    assert {row["impl"] for row in rows} == {results.OURS, "torch.sparse.mm", "scipy"}
    for row in rows:
        assert row["bench"] == "suite"
        assert row["ms"] > 0
        assert row["host_ms"] > 0
        assert row["error"] < 1e-5
    printed = capsys.readouterr().out
    assert "HB_str_0, twin (synthetic), 2,454 entries: K = 1: " in printed
    assert "Bai_cdde2, exact construction, 4,681 entries: K = 1: " in printed


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("contender", contenders.rivals(["spmv"]), ids=lambda contender: contender.format)
def test_cusparse_spmv(contender):
    graph = measure.small_graph(torch.device("cuda"))
    problem = spmm_problem.make(graph, "fwd", "explicit", 1, torch.float32, 0)
    with contender.prepare(problem) as prepared:
        assert check.relative_error(prepared.run(), check.reference(problem)) < 1e-5


def suite_row(graph, source, k, impl, device_ms, ms, layout="csr"):
    time = results.failed("out of memory") if ms is None else {**results.timed([ms]), "device_ms": device_ms}
    return {
        "bench": "suite",
        "graph": graph,
        "source": source,
        "num_rows": 10,
        "num_cols": 20,
        "num_edges": 1000,
        "op": "spmm",
        "k": k,
        "dtype": "float32",
        "direction": "fwd",
        "values": "implicit",
        "impl": impl,
        "format": layout,
        **time,
    }


ROWS = [
    suite_row("a", "real", 8, "cuSPARSE", 4.0, 10.0),
    suite_row("a", "real", 8, "torch.sparse.mm", 6.0, 8.0),
    suite_row("a", "real", 8, "pyg_sparse", 2.0, 8.0),  # device 4 / 2, whole call 8 / 8
    suite_row("b", "twin", 8, "cuSPARSE", 1.0, 9.0),
    suite_row("b", "twin", 8, "cuSPARSE", None, 0.5, "coo"),  # could not be captured
    suite_row("b", "twin", 8, "cuSPARSE", 3.0, 9.0, "default"),
    {**suite_row("b", "twin", 8, "pyg_sparse", 2.0, 2.0), "limit_ms": 2.5},  # 1 / 2, 0.5 / 2; at the limit 1 / 2.5
    suite_row("a", "real", 32, "cuSPARSE", 3.0, 3.0),
    suite_row("a", "real", 32, "pyg_sparse", None, None),
]


def test_summary_by_hand():
    table = suite_tables.suite(META, ROWS)
    everything = "all, 1 of them twins (synthetic)"
    whole = f"{math.sqrt(1 * 0.25):.2f}"
    assert cells(table, everything, "8") == ["2", "1.00", whole, "1.50", "0.40", "1", "0.50 (b, twin)", "2.00 (a)"]
    assert cells(table, "real", "8") == ["1", "2.00", "1.00", "-", "-", "0", "2.00 (a)", "2.00 (a)"]
    assert cells(table, "twin (synthetic)", "8") == [
        "1",
        "0.50",
        "0.25",
        "1.50",
        "0.40",
        "1",
        "0.50 (b, twin)",
        "0.50 (b, twin)",
    ]
    assert "- pyg_sparse, a, K = 32: out of memory" in table
    assert table.endswith("To repeat it: `python -m something`.")


def test_detail_by_hand():
    table = suite_tables.suite_detail(META, ROWS)
    assert cells(table, "matrix") == ["source", "rows", "columns", "entries", "K = 8", "K = 32"]
    assert cells(table, "a") == ["real", "10", "20", "1,000", "2.00", "-"]
    assert cells(table, "b") == ["twin (synthetic)", "10", "20", "1,000", "0.50", "-"]


def test_tables_are_generated(tmp_path):
    results.write(tmp_path / "h200" / "suite.json", META, ROWS)
    assert suite_tables.suite(META, ROWS) in make_tables.table("suite", "h200", tmp_path)
    assert suite_tables.suite_detail(META, ROWS) in make_tables.table("suite-detail", "h200", tmp_path)


def test_pictures(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    from benchmarks import plots

    limited = [{**row, "limit_ms": 0.5} for row in ROWS]
    for file in ("suite", "spmm", "sddmm"):
        results.write(tmp_path / "results" / "h200" / f"{file}.json", META, limited)
    for out in ("first", "second"):
        plots.main(["--results", str(tmp_path / "results"), "--out", str(tmp_path / out)])
    assert "no h200/epoch.json: epoch-h200.svg is not drawn" in capsys.readouterr().out
    kinds = ["sddmm", "sddmm-roofline", "spmm", "spmm-roofline", "suite", "suite-roofline"]
    names = [f"{kind}-h200.svg" for kind in kinds]
    assert {path.name for path in (tmp_path / "first").iterdir()} == {*names}
    for name in names:
        picture = (tmp_path / "first" / name).read_bytes()
        assert picture == (tmp_path / "second" / name).read_bytes()
        assert len(picture) < 100_000
    assert "twin (synthetic)" in (tmp_path / "first" / "suite-h200.svg").read_text()
