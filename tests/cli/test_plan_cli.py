"""plan: choosing, tuning, remembering and saving."""

import json

import pytest
import torch

import pyg_sparse
from pyg_sparse.planner.folder import FOLDER


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER, str(tmp_path / "cache"))


def test_a_small_graph(command, small_graph):
    code, out, err = command("plan", small_graph)
    assert (code, err) == (0, "")
    assert "the cache: not needed, nothing was chosen" in out
    assert "Plan(200 sources -> 100 targets, 1,500 edges" in out
    assert "nothing was chosen: the graph has fewer than 2^18 or more" in out


def test_tune(command, small_graph, cache):
    arguments = ("plan", small_graph, "--mode", "tune", "--widths", "8,32", "--budget", "0.2")
    code, out, err = command(*arguments)
    assert code == 0
    assert "the cache: has the choice from now on" in out
    assert "ms measured" in out
    first = err.splitlines()[0]
    assert first.startswith("1/")
    assert "K = 2 to 8, 32 bits: " in first
    code, out, err = command(*arguments)
    assert (code, err) == (0, "")
    assert "the cache: had the choice" in out


def test_json(command, small_graph, cache):
    code, out, err = command("plan", small_graph, "--mode", "tune", "--widths", "8", "--budget", "0.1", "--json")
    assert code == 0
    assert err.startswith("1/")
    found = json.loads(out)
    assert found["mode"] == "tune"
    assert found["seconds"] > 0
    assert found["plan"]["num_edges"] == 1500
    candidates = found["choice"]["forward"]["cases"][0]["candidates"]
    assert candidates[0]["measured_ms"] > 0
    assert candidates[0]["predicted_ms"] > 0


def test_no_cache(command, small_graph, cache, tmp_path):
    code, out, _ = command("plan", small_graph, "--mode", "tune", "--budget", "0.1", "--widths", "8", "--no-cache")
    assert code == 0
    assert "the cache: not used" in out
    assert not (tmp_path / "cache").exists()


def test_a_large_graph_by_the_model(command, cache):
    arguments = ("plan", "shape:arxiv@0.13", "--json")
    caches = [json.loads(command(*arguments)[1])["cache"] for _ in range(2)]
    assert caches == ["has the choice from now on", "had the choice"]


def test_out(command, small_graph, tmp_path):
    path = tmp_path / "plan.safetensors"
    code, out, _ = command("plan", small_graph, "--out", path)
    assert code == 0
    assert f"saved as {path}, " in out
    loaded = pyg_sparse.Plan.load(path)
    x = torch.randn(200, 4)
    assert pyg_sparse.spmm(loaded, x).shape == (100, 4)


def test_picture_and_page(command, small_graph, tmp_path):
    code, _, err = command(
        "plan",
        small_graph,
        "--mode",
        "tune",
        "--budget",
        "0.1",
        "--plot",
        tmp_path / "a.png",
        "--html",
        tmp_path / "a.html",
    )
    assert code == 0
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert "Plan(200 sources -&gt; 100 targets" in (tmp_path / "a.html").read_text()
    assert err.endswith(f"wrote {tmp_path / 'a.png'}\nwrote {tmp_path / 'a.html'}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mode", "fast"], "invalid choice: 'fast'"),
        (["--budget", "0"], "argument --budget: '0' must be a positive number"),
        (["--budget", "inf"], "argument --budget: 'inf' must be a positive number"),
        (["--out", "no/folder/x"], "argument --out: 'no/folder/x' must be a file in a folder that exists"),
    ],
)
def test_bad_usage(command, small_graph, arguments, message):
    code, out, err = command("plan", small_graph, *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_what_cannot_be_written(command, small_graph):
    code, _, err = command("plan", small_graph, "--html", "/dev/full")
    assert code == 1
    assert "/dev/full cannot be written: No space left on device" in err
