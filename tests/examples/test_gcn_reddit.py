import os
import statistics
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from benchmarks import results
from examples.gcn_reddit import __main__ as program
from examples.gcn_reddit import data, memory, model
from examples.gcn_reddit.cli import parse
from examples.gcn_reddit.report import loss_differences, row
from examples.gcn_reddit.train import Config, Run, run

TINY = ["--scale", "0.003", "--hidden", "8", "--epochs", "5"]


def config(*argv: str) -> Config:
    return parse([*argv, "--device", "cpu"]).config


def test_compares_all_backends_and_writes_results(tmp_path, capfd):
    status = program.main([*TINY, "--device", "cpu", "--compare", "--out", str(tmp_path)])
    printed = capfd.readouterr().out
    assert status == 0
    assert "synthetic" in printed
    assert "Plan(" in printed
    if find_spec("matplotlib") is not None:
        assert (tmp_path / "gcn.png").read_bytes().startswith(b"\x89PNG")

    meta, rows = results.read(tmp_path / "epoch.json")
    assert meta["seeds"] == [0]
    assert [row["impl"] for row in rows] == list(model.BACKENDS)
    for each in rows:
        assert each["source"] == "shaped"
        assert each["scale"] == 0.003
        assert each["n"] == 2, "epochs after the warm-up"
        assert each["peak_mb"] > 0
        assert each["loss_samples"] == pytest.approx(rows[0]["loss_samples"], rel=1e-4)


def test_cora_reaches_the_published_accuracy_with_pygs_losses(data_root):
    planetoid = data_root / "planetoid"
    options = ("--dataset", "planetoid:Cora", "--root", str(planetoid))
    before = set(planetoid.rglob("*"))
    ours = run(config(*options, "--seeds", "5"), "pyg_sparse", describe=False)
    assert statistics.fmean(ours.test_acc) == pytest.approx(0.81, abs=0.015)
    assert len(ours.test_acc) == 5
    assert set(planetoid.rglob("*")) == before, "the root is only read"

    for dropout in ("0", "0.5"):
        short = config(*options, "--epochs", "20", "--dropout", dropout)
        ours, theirs = (run(short, impl, describe=False) for impl in ("pyg_sparse", "pyg"))
        assert len(ours.losses) == 20
        assert ours.losses == pytest.approx(theirs.losses, rel=1e-4)


def test_a_failing_backend_is_a_result(monkeypatch):
    def fail(*_: object) -> None:
        raise torch.OutOfMemoryError("no memory\nmore words")

    monkeypatch.setitem(model.BACKENDS, "pyg", fail)
    failed = run(config(*TINY), "pyg", describe=False)
    written = row(failed, config(*TINY))
    assert written["ms"] is None
    assert written["why"] == "OutOfMemoryError: no memory"


def _die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), 9)


def test_a_killed_backend_is_a_result(monkeypatch):
    monkeypatch.setattr(program, "run", _die)
    died = program._isolated(config(*TINY), "pyg", first=True)
    assert died.why is not None
    assert "killed" in died.why
    assert row(died, config(*TINY))["ms"] is None


def test_loss_differences_are_against_pyg():
    runs = [Run("pyg_sparse", losses=[2.0, 1.1]), Run("pyg", losses=[2.0, 1.0]), Run("torch-sparse", why="x")]
    (line,) = loss_differences(runs)
    assert line.endswith("1.0e-01")
    assert loss_differences(runs[:1]) == []


def test_peak_memory_is_that_since_the_reset():
    device = torch.device("cpu")
    memory.reset_peak(device)
    before = memory.peak_mb(device)
    torch.ones(50_000_000)
    assert 190 < memory.peak_mb(device) - before < 300
    memory.reset_peak(device)
    assert memory.peak_mb(device) - before < 100


@pytest.mark.parametrize("layers", [1, 3])
def test_other_depths(layers):
    done = run(config(*TINY, "--layers", str(layers)), "pyg_sparse", describe=False)
    assert done.why is None
    assert done.losses[-1] < done.losses[0]


def test_bfloat16_autocast():
    done = run(config(*TINY, "--amp", "bf16"), "pyg_sparse", describe=False)
    assert done.why is None
    assert row(done, config(*TINY, "--amp", "bf16"))["dtype"] == "bfloat16"


def test_defaults_are_the_data_sets():
    cora, shaped = config("--dataset", "planetoid:Cora"), config()
    assert (cora.hidden, cora.epochs, cora.weight_decay) == (16, 200, 5e-4)
    assert (shaped.hidden, shaped.scale) == (128, data.CPU_SCALE)
    assert config("--dataset", "planetoid:Cora", "--hidden", "7").hidden == 7


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--epochs", "0"], "--epochs: must be a whole number from 1, got 0"),
        (["--epochs", "two"], "--epochs: must be a whole number from 1, got two"),
        (["--scale", "1.5"], "--scale: must be in (0, 1], got 1.5"),
        (["--scale", "nan"], "--scale: must be in (0, 1], got nan"),
        (["--dropout", "1"], "--dropout: must be in [0, 1), got 1"),
        (["--lr", "0"], "--lr: must be a number above 0, got 0"),
        (["--dataset", "cora"], "reddit-shaped, reddit, planetoid:Cora"),
        (["--backend", "dgl"], "pyg_sparse, pyg, torch-sparse"),
    ],
)
def test_bad_values_say_what_is_allowed(argv, message, capsys):
    with pytest.raises(SystemExit) as stopped:
        parse(argv)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err.replace("'", "")


@pytest.mark.skipif(find_spec("ogb") is not None, reason="ogb is installed")
def test_arxiv_names_what_to_install(capsys):
    with pytest.raises(SystemExit):
        parse(["--dataset", "ogbn-arxiv"])
    assert "pip install 'pyg_sparse[datasets]'" in capsys.readouterr().err


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_without_a_device(capsys):
    with pytest.raises(SystemExit):
        parse(["--device", "cuda"])
    assert "finds no CUDA device" in capsys.readouterr().err


def test_a_data_set_that_cannot_be_loaded_ends_the_run(tmp_path: Path, monkeypatch):
    def offline(*_: object, **__: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr(program, "_isolated", offline)
    with pytest.raises(SystemExit, match=r"planetoid:Cora cannot be loaded, --root is .*: no network"):
        program.main(["--dataset", "planetoid:Cora", "--root", str(tmp_path)])
