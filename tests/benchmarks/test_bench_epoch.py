import pytest
import torch

from benchmarks import bench_epoch, results, tables
from examples.gcn_reddit import model

TINY = ["--shape", "reddit", "--scale", "0.003", "--device", "cpu"]


@pytest.fixture
def measured(tmp_path):
    def main(*argv):
        out = tmp_path / "epoch.json"
        bench_epoch.main([*TINY, *argv, "--out", str(out)])
        return results.read(out)

    return main


def test_measures_every_case(measured, capsys):
    meta, rows = measured("--hidden", "4", "8", "--pyg-hidden", "8", "--epochs", "2")
    assert meta["command"].startswith("python -m benchmarks.bench_epoch --shape reddit")
    cases = [(row["impl"], row["k"], row["dtype"]) for row in rows]
    dtypes = ("float32", "bfloat16")
    assert cases == [
        *((impl, k, dtype) for impl in ("pyg_sparse", "torch-sparse") for k in (4, 8) for dtype in dtypes),
        *(("pyg", 8, dtype) for dtype in dtypes),
    ]
    for row in rows:
        assert (row["bench"], row["graph"], row["source"], row["scale"]) == ("epoch", "reddit-shaped", "shaped", 0.003)
        if row["ms"] is None:  # SpMM in bf16 is not in every build of torch for the CPU
            assert (row["impl"], row["dtype"]) == ("torch-sparse", "bfloat16")
            assert "not implemented" in row["why"]
            continue
        assert row["n"] == 2, "epochs after the warm-up"
        assert row["peak_mb"] > 0
        assert row["final_loss"] == row["loss_samples"][-1]
        assert (row["preprocess_ms"] is None) == (row["impl"] == "pyg")

    losses = {case: row.get("final_loss") for case, row in zip(cases, rows, strict=True)}
    for other in (("torch-sparse", 8, "float32"), ("pyg", 8, "float32")):
        assert losses["pyg_sparse", 8, "float32"] == pytest.approx(losses[other], rel=1e-4)
    assert losses["pyg_sparse", 8, "bfloat16"] == pytest.approx(losses["pyg", 8, "bfloat16"], rel=1e-2)
    assert losses["pyg_sparse", 8, "bfloat16"] != losses["pyg_sparse", 8, "float32"]
    assert tables.epoch(meta, rows) in capsys.readouterr().out


def test_one_graph_and_one_plan_for_all(measured, monkeypatch):
    made = []

    def counted(name, function):
        return lambda *arguments, **options: (made.append(name), function(*arguments, **options))[1]

    monkeypatch.setattr(bench_epoch, "load", counted("graph", bench_epoch.load))
    monkeypatch.setitem(model.BACKENDS, "pyg_sparse", counted("plan", model.BACKENDS["pyg_sparse"]))
    _, rows = measured("--hidden", "4", "8", "--epochs", "1", "--backends", "pyg_sparse")
    assert len(rows) == 4
    assert made == ["graph", "plan", "plan"], "the first plan is the warm-up's"


def test_what_does_not_fit_is_skipped(measured, monkeypatch):
    monkeypatch.setattr(bench_epoch, "available_mb", lambda device: 1.0)
    _, (row,) = measured("--backends", "pyg", "--dtypes", "float32", "--epochs", "1")
    assert (row["k"], row["ms"]) == (128, None)
    # 15,200 edges of 2 * 128 * 4 + 2 * 16 bytes
    assert row["why"] == "skipped: needs about 0.0161 GB, 0.001 GB are free"


def test_a_backend_that_cannot_be_prepared_is_a_result(measured, monkeypatch):
    def fail(*_: object) -> None:
        raise torch.OutOfMemoryError("no memory\nmore words")

    monkeypatch.setitem(model.BACKENDS, "torch-sparse", fail)
    options = ("--hidden", "4", "8", "--dtypes", "float32", "--epochs", "1")
    _, rows = measured("--backends", "torch_sparse", "pyg_sparse", *options)
    assert [row.get("why") for row in rows] == ["OutOfMemoryError: no memory"] * 2 + [None] * 2


def test_append_keeps_other_cases(measured):
    options = ("--dtypes", "float32", "--backends", "pyg_sparse", "--epochs", "1")
    measured("--hidden", "4", *options)
    _, rows = measured("--hidden", "8", *options, "--append")
    assert [row["k"] for row in rows] == [4, 8]


@pytest.mark.parametrize("shape", ["arxiv", "proteins"])
def test_other_shapes(measured, shape):
    _, (row,) = measured("--shape", shape, "--hidden", "4", "--dtypes", "float32", "--backends", "pyg_sparse")
    assert row["graph"] == f"{shape}-shaped"
    assert row["ms"] > 0
