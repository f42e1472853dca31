import shutil
import subprocess

import numpy as np
import pytest
import torch

from benchmarks import bandwidth, bench_spmm, contenders, external, graphs, results

# Computes on the host. It refuses the width 7, fails in calls of `spmm:failing`, and counts what was destroyed.
SOURCE = """
#include <cstdint>
#include <cstdio>
#include <string>
struct Rival { int64_t rows, k, nnz; const int32_t *rowptr, *col; const float *value; bool fails; };
static int destroyed = 0;
extern "C" {
const char *rival_name() { return "Fake"; }
const char *rival_variants() { return "spmm,spmm:failing,sddmm:host"; }
void *rival_create(const char *variant, int64_t rows, int64_t cols, int64_t nnz, const int32_t *rowptr,
                   const int32_t *col, const void *value, int dtype, int64_t k, char *error, int error_size) {
    if (dtype != 0 || k == 7) {
        snprintf(error, error_size, "dtype %d and width %d of %s are too odd", dtype, (int)k, variant);
        return nullptr;
    }
    return new Rival{rows, k, nnz, rowptr, col, (const float *)value, std::string(variant) == "spmm:failing"};
}
int rival_spmm(void *self, const void *x, void *out, void *stream) {
    const Rival &r = *(Rival *)self;
    if (r.fails || stream) return 700;
    for (int64_t i = 0; i < r.rows; ++i)
        for (int64_t c = 0; c < r.k; ++c) {
            float sum = 0;
            for (int e = r.rowptr[i]; e < r.rowptr[i + 1]; ++e)
                sum += r.value[e] * ((const float *)x)[r.col[e] * r.k + c];
            ((float *)out)[i * r.k + c] = sum;
        }
    return 0;
}
int rival_sddmm(void *self, const void *q, const void *key, void *out, void *stream) {
    const Rival &r = *(Rival *)self;
    if (r.value) return 1;
    for (int64_t i = 0; i < r.rows; ++i)
        for (int e = r.rowptr[i]; e < r.rowptr[i + 1]; ++e) {
            float sum = 0;
            for (int64_t c = 0; c < r.k; ++c)
                sum += ((const float *)q)[i * r.k + c] * ((const float *)key)[r.col[e] * r.k + c];
            ((float *)out)[e] = sum;
        }
    return 0;
}
int64_t rival_bytes(void *self) { return 4 * (((Rival *)self)->rows + 1 + 2 * ((Rival *)self)->nnz); }
void rival_destroy(void *self) { delete (Rival *)self; ++destroyed; }
int destroyed_rivals() { return destroyed; }
}
"""


def compiled(folder, source):
    if not shutil.which("g++"):
        pytest.skip("no g++")
    folder.mkdir(exist_ok=True)
    (folder / "rival.cpp").write_text(source)
    command = ["g++", "-O1", "-shared", "-fPIC", "-o", folder / "fake.so", folder / "rival.cpp"]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("fake"), SOURCE)


@pytest.fixture(scope="module")
def library(folder):
    (found,) = external.load(folder)
    return found


@pytest.fixture
def matrix():
    """CSR of 5 by 6 with an empty row."""
    dense = torch.randn(5, 6).where(torch.rand(5, 6) < 0.5, 0)
    dense[2] = 0
    csr = dense.to_sparse_csr()
    return dense, csr.crow_indices().int(), csr.col_indices().int(), csr.values()


def spmm_rival(library, matrix, variant="spmm", k=3, dtype=torch.float32):
    _, rowptr, col, value = matrix
    return external.Rival(library, variant, rowptr, col, value.to(dtype), 6, k, dtype)


def test_variants_of_each_operator(library):
    assert library.name == "Fake"
    assert library.variants_of("spmm") == {"default": "spmm", "failing": "spmm:failing"}
    assert library.variants_of("sddmm") == {"host": "sddmm:host"}


def test_spmm_is_the_dense_product(library, matrix):
    x, out = torch.randn(6, 3), torch.full((5, 3), float("nan"))
    with spmm_rival(library, matrix) as rival:
        torch.testing.assert_close(rival.spmm(x, out), matrix[0] @ x)
        assert rival.nbytes == sum(t.nbytes for t in matrix[1:])


def test_sddmm_is_a_dot_product_an_entry(library, matrix):
    dense, rowptr, col, _ = matrix
    q, key, out = torch.randn(5, 4), torch.randn(6, 4), torch.full((col.numel(),), float("nan"))
    with external.Rival(library, "sddmm:host", rowptr, col, None, 6, 4, torch.float32) as rival:
        torch.testing.assert_close(rival.sddmm(q, key, out), (q @ key.T)[dense != 0])


def test_refusal_has_the_librarys_message(library, matrix):
    with pytest.raises(RuntimeError, match="Fake spmm: dtype 0 and width 7 of spmm are too odd"):
        spmm_rival(library, matrix, k=7)
    with pytest.raises(RuntimeError, match="dtype 3"):
        spmm_rival(library, matrix, dtype=torch.float64)


def test_failing_call_raises(library, matrix):
    with (
        spmm_rival(library, matrix, "spmm:failing") as rival,
        pytest.raises(RuntimeError, match="Fake spmm:failing: rival_spmm returned CUDA error 700"),
    ):
        rival.spmm(torch.ones(6, 3), torch.ones(5, 3))


def test_tensors_that_do_not_fit_never_reach_the_library(library, matrix):
    _, rowptr, col, value = matrix
    with pytest.raises(ValueError, match="int32"):
        external.Rival(library, "spmm", rowptr.long(), col, value, 6, 3, torch.float32)
    with pytest.raises(ValueError, match="shape of col"):
        external.Rival(library, "spmm", rowptr, col, value[1:], 6, 3, torch.float32)
    with spmm_rival(library, matrix) as rival:
        with pytest.raises(ValueError, match=r"shape \(6, 3\) expected"):
            rival.spmm(torch.ones(5, 3), torch.ones(5, 3))
        with pytest.raises(ValueError, match="float64"):
            rival.spmm(torch.ones(6, 3).double(), torch.ones(5, 3))
        with pytest.raises(ValueError, match="contiguous"):
            rival.spmm(torch.ones(3, 6).T, torch.ones(5, 3))


def test_destroyed_once(library, matrix):
    before = library.call("destroyed_rivals")
    with spmm_rival(library, matrix) as rival:
        assert library.call("destroyed_rivals") == before
    rival.close()
    assert library.call("destroyed_rivals") == before + 1
    with pytest.raises(ValueError, match="closed"):
        rival.spmm(torch.ones(6, 3), torch.ones(5, 3))


def test_library_that_is_no_rival(tmp_path):
    with pytest.raises(FileNotFoundError, match="no shared libraries"):
        external.load(tmp_path)
    incomplete = compiled(tmp_path / "incomplete", SOURCE.replace("rival_bytes", "rival_size"))
    with pytest.raises(ImportError, match=r"fake\.so does not export rival_bytes"):
        external.load(incomplete)
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(ImportError, match=r"text\.so cannot be loaded"):
        external.load(tmp_path)


@pytest.mark.parametrize("direction", ["fwd", "bwd"])
def test_contender_computes_the_problem(folder, direction):
    edge_index = torch.randint(9, (2, 40))
    graph = graphs.Graph("small", "exact", edge_index, 9, 9)
    problem = contenders.Problem(graph, direction, torch.randn(9, 4), torch.randn(40))
    reference = contenders.rivals(["torch"])[0]
    entry = contenders.external(folder)[0]
    assert (entry.impl, entry.format) == ("Fake", "default")
    with entry.prepare(problem) as rival, reference.prepare(problem) as expected:
        torch.testing.assert_close(rival.run(), expected.run())
        assert rival.structure_bytes == 4 * (10 + 2 * 40 + 9 * 4)


def test_benchmark_measures_the_folder(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(bandwidth, "measure", lambda device: {"copy_gbs": 1.0, "gather_gbs": 1.0})
    np.savez(tmp_path / "small.npz", edge_index=np.random.default_rng(0).integers(0, 30, (2, 200)))
    out = tmp_path / "spmm.json"
    command = f"--graphs npz:{tmp_path}/small.npz --widths 4 7 --directions fwd --rivals --formats csr --repeats 3"
    bench_spmm.main(f"{command} --external {folder} --device cpu --out {out}".split())

    meta, rows = results.read(out)
    assert f"--external {folder.name} " in meta["command"]
    assert str(folder.parent) not in meta["command"]
    by_case = {(row["format"], row["k"]): row for row in rows if row["impl"] == "Fake"}
    assert by_case["default", 4]["ms"]
    assert "too odd" in by_case["default", 7]["why"]
    assert "CUDA error 700" in by_case["failing", 4]["why"]
