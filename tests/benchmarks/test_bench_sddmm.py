import shutil
import subprocess
from contextlib import nullcontext

import pytest
import torch

from benchmarks import bandwidth, bench_sddmm, check, graphs, measure, results, sddmm_contenders
from benchmarks.contenders import Contender, Prepared
from benchmarks.sddmm_contenders import SddmmProblem

CPU = torch.device("cpu")
SPEEDS = {"copy_gbs": 1.0, "gather_gbs": 1.0, "gather_method": "none"}

# Computes on the host, in CSR order as every rival does.
RIVAL = """
#include <cstdint>
struct Rival { int64_t rows, nnz, k; const int32_t *rowptr, *col; };
extern "C" {
const char *rival_name() { return "Fake"; }
const char *rival_variants() { return "spmm,sddmm:host"; }
void *rival_create(const char *, int64_t rows, int64_t, int64_t nnz, const int32_t *rowptr, const int32_t *col,
                   const void *, int dtype, int64_t k, char *, int) {
    return dtype == 0 ? new Rival{rows, nnz, k, rowptr, col} : nullptr;
}
int rival_spmm(void *, const void *, void *, void *) { return 1; }
int rival_sddmm(void *self, const void *q, const void *key, void *out, void *) {
    const Rival &r = *(Rival *)self;
    for (int64_t i = 0; i < r.rows; ++i)
        for (int e = r.rowptr[i]; e < r.rowptr[i + 1]; ++e) {
            float sum = 0;
            for (int64_t c = 0; c < r.k; ++c)
                sum += ((const float *)q)[i * r.k + c] * ((const float *)key)[r.col[e] * r.k + c];
            ((float *)out)[e] = sum;
        }
    return 0;
}
int64_t rival_bytes(void *self) { return 4 * (((Rival *)self)->rows + 1 + ((Rival *)self)->nnz); }
void rival_destroy(void *self) { delete (Rival *)self; }
}
"""


def random_graph(num_edges=200, num_src=20, num_dst=30):
    generator = torch.Generator().manual_seed(0)
    ends = [torch.randint(nodes, (num_edges,), generator=generator) for nodes in (num_src, num_dst)]
    return graphs.Graph("small", "real", torch.stack(ends), num_src, num_dst)


@pytest.fixture
def problem():
    return SddmmProblem(random_graph(), torch.randn(30, 8), torch.randn(20, 8))


@pytest.fixture
def timer():
    return measure.Timer(CPU, 3, 1.0)


@pytest.fixture
def rival_folder(tmp_path):
    if not shutil.which("g++"):
        pytest.skip("no g++")
    (tmp_path / "rival.cpp").write_text(RIVAL)
    command = ["g++", "-O1", "-shared", "-fPIC", "-o", tmp_path / "fake.so", tmp_path / "rival.cpp"]
    subprocess.run(command, check=True)
    return tmp_path


def contender(by_entry, calls, **fields):
    def run():
        calls.append(None)
        return by_entry

    return Contender("fake", "csr", lambda problem: nullcontext(Prepared(run, None, 0, **fields)))


@pytest.mark.parametrize("products", [1, 100, check._PRODUCTS])
def test_reference_is_sampled_from_the_dense_product(problem, products, monkeypatch):
    monkeypatch.setattr(check, "_PRODUCTS", products)
    dense = problem.q.double() @ problem.key.double().T
    row = torch.repeat_interleave(torch.arange(30), problem.matrix.rowptr.diff())
    torch.testing.assert_close(check.sddmm_reference(problem), dense[row, problem.matrix.col.long()])


def test_every_contender_computes_it(problem, timer):
    expected = check.sddmm_reference(problem)
    entries = sddmm_contenders.rivals(["torch", "gather"]) + sddmm_contenders.ours(["auto", "csr", "coo", "hyb"], [2])
    assert len(entries) == 7
    for entry in entries:
        row = measure.measure(entry, problem, expected, timer)
        assert row["ms"] > 0, entry
        assert row["error"] < 1e-6


@pytest.mark.parametrize("arrange", [{}, {"arrange": lambda out: 2 * out}], ids=["order of the edges", "doubled"])
def test_wrong_result_is_not_timed(problem, timer, arrange):
    expected, calls = check.sddmm_reference(problem), []
    src, dst = problem.graph.edge_index
    by_edge = (problem.q[dst] * problem.key[src]).sum(1)
    (row,) = measure.measure_all([contender(by_edge, calls, **arrange)], problem, expected, timer, {})
    assert row["ms"] is None
    assert row["why"].startswith("wrong: relative error")
    assert len(calls) == 1

    right = contender(by_edge, calls, arrange=problem.sorted)
    assert measure.measure(right, problem, expected, timer)["ms"] > 0


def test_unwritten_result_is_not_timed(problem, timer):
    expected, calls = check.sddmm_reference(problem), []
    (row,) = measure.measure_all([contender(problem.new_out(), calls)], problem, expected, timer, {})
    assert row["ms"] is None
    assert "not finite" in row["why"]
    assert len(calls) == 1


def test_limits():
    problem = SddmmProblem(random_graph(), torch.randn(30, 4), torch.randn(20, 4))
    row = bench_sddmm._describe(problem, SPEEDS)
    # q, key, row pointers, columns, slots, output
    assert row["bytes_min"] == 30 * 16 + 20 * 16 + 31 * 4 + 200 * 4 + 200 * 4 + 200 * 4
    assert row["gather_bytes"] == 200 * 4 * 4
    assert row["limit_ms"] == results.short(row["bytes_min"] / 1e6)
    assert row["num_nodes"] == 30


def test_gather_that_does_not_fit_is_skipped(problem, timer, monkeypatch):
    monkeypatch.setattr(sddmm_contenders, "SCATTER_LIMIT", 1000)
    (row,) = measure.measure_all(sddmm_contenders.rivals(["gather"]), problem, torch.zeros(200), timer, {})
    assert "skipped" in row["why"]


def test_external_rivals_are_measured(problem, timer, rival_folder):
    (entry,) = sddmm_contenders.external(rival_folder)
    assert (entry.impl, entry.format) == ("Fake", "host")
    assert measure.measure(entry, problem, check.sddmm_reference(problem), timer)["ms"] > 0


def test_run_measures_everything_and_keeps_failures(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bandwidth, "measure", lambda device: SPEEDS)
    out = tmp_path / "sddmm.json"
    command = "--graphs arxiv --scale 0.005 --widths 4 8 --dtypes float32 bfloat16 --repeats 3 --device cpu"
    bench_sddmm.main([*command.split(), "--out", str(out)])

    meta, rows = results.read(out)
    assert meta["command"] == f"python -m benchmarks.bench_sddmm {command} --out {out.name}"
    assert {(row["bench"], row["op"], row["source"], row["scale"]) for row in rows} == {
        ("sddmm", "sddmm", "shaped", 0.005)
    }
    for dtype in ("float32", "bfloat16"):
        for k in (4, 8):
            case = [row for row in rows if row["dtype"] == dtype and row["k"] == k]
            assert [row["format"] for row in case if row["impl"] == results.OURS and row["ms"]] == [
                "csr",
                "coo",
                "hyb(c=1)",
            ]
            assert any(row["ms"] for row in case if row["impl"] != results.OURS)
    for row in rows:  # sampled_addmm in bf16 is not in every build of torch for the CPU
        assert row["ms"] or "Expected self to be a floating-point" in row["why"]
    assert "**arxiv-shaped (synthetic, scale 0.005)**, bfloat16, fwd; 847 nodes" in capsys.readouterr().out
