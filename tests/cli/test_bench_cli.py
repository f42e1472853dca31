"""bench: every candidate measured and compared with torch.sparse.mm."""

import json
import subprocess
import sys

import pytest
import torch

from pyg_sparse.cli import measure
from pyg_sparse.cli.graph import load_graph
from pyg_sparse.cli.rival import rival_name, sparse_csr
from pyg_sparse.cli.survey import products, survey


def test_json(command, small_graph):
    code, out, err = command(
        "bench", small_graph, "--widths", "5,32", "--dtype", "fp64", "--budget-ms", "0.1", "--json"
    )
    assert code == 0
    found = json.loads(out)
    assert found["rival"].startswith("torch.sparse.mm")
    assert [(product["k"], product["dtype"]) for product in found["products"]] == [(5, "float64"), (32, "float64")]
    for product in found["products"]:
        times = [candidate["measured_ms"] for candidate in product["candidates"]]
        assert times == sorted(times)
        assert {candidate["format"] for candidate in product["candidates"]} == {"csr", "coo", "hyb"}
        auto = next(c for c in product["candidates"] if c.items() >= product["auto"].items())
        assert product["regret"] == pytest.approx(auto["measured_ms"] / times[0] - 1)
        for candidate in product["candidates"]:
            assert candidate["predicted_ms"] > 0
            assert candidate["error"] < 1e-12
            assert candidate["speedup"] == pytest.approx(product["rival_ms"] / candidate["measured_ms"])
    assert len(err.splitlines()) == 2 + len(found["products"][0]["candidates"])


def test_text(command, small_graph):
    code, out, _ = command("bench", small_graph, "--widths", "8", "--budget-ms", "0.1")
    assert code == 0
    title, sentence, *_ = out.splitlines()
    assert title.startswith("small: 200 sources")
    assert sentence.startswith("K=8 float32: plan() takes csr, rows by given: ")
    assert "the fastest" in sentence
    assert "times as fast as torch.sparse.mm" in sentence
    header = next(line for line in out.splitlines() if line.startswith("format"))
    assert header.split("  ")[-1].strip() == "error"
    assert rival_name(torch.device("cpu")) in out


def test_half_precision(command, small_graph, tmp_path):
    arguments = ("--widths", "8", "--dtypes", "bf16,fp16", "--budget-ms", "0.1", "--plot", tmp_path / "a.png", "--json")
    code, out, _ = command("bench", small_graph, *arguments)
    assert code == 0
    assert [product["dtype"] for product in json.loads(out)["products"]] == ["bfloat16", "float16"]
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_a_wrong_result_fails(command, small_graph, monkeypatch):
    product = measure.product_of
    monkeypatch.setattr(
        measure, "product_of", lambda matrix, x: product(matrix, x) * (2 if matrix.name == "hyb" else 1)
    )
    code, out, err = command("bench", small_graph, "--widths", "8", "--budget-ms", "0.1")
    assert code == 1
    assert "1.0e+00" in out  # all is shown
    assert "results differ from the first ones: hyb(" in err
    assert "csr" not in err.partition("results differ")[2]


def test_a_rival_that_does_not_run(command, small_graph, monkeypatch):
    def refuse(*_):
        raise RuntimeError("not built\nwith MKL")

    monkeypatch.setattr(torch.sparse, "mm", refuse)
    code, out, _ = command("bench", small_graph, "--widths", "8", "--budget-ms", "0.1")
    assert code == 0
    assert "does not run: not built" in out
    code, out, _ = command("bench", small_graph, "--widths", "8", "--budget-ms", "0.1", "--json")
    product = json.loads(out)["products"][0]
    assert product["rival_ms"] is None
    assert product["rival_problem"] == "not built"
    assert all(candidate["speedup"] is None for candidate in product["candidates"])


def test_the_rival_has_the_same_matrix(small_graph):
    graph = load_graph(str(small_graph))
    found = survey(graph, products((8,), (torch.float32,)), torch.device("cpu"))
    expected = torch.zeros(100, 200)
    expected.index_put_((graph.edge_index[1], graph.edge_index[0]), torch.ones(1500), accumulate=True)
    rival = sparse_csr(found.rows, torch.float32)
    assert torch.equal(torch.sparse.mm(rival, torch.eye(200)), expected)


def test_bad_usage(command, small_graph):
    code, out, err = command("bench", small_graph, "--budget-ms", "nan")
    assert (code, out) == (2, "")
    assert "argument --budget-ms: 'nan' must be a positive number" in err


def test_as_a_process(small_graph):
    result = subprocess.run(
        [sys.executable, "-m", "pyg_sparse", "bench", small_graph, "--widths", "8", "--budget-ms", "1", "--json"],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["command"] == "bench"
    assert "\x1b" not in result.stderr
