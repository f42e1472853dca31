from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
import torch

import pyg_sparse
from benchmarks import bandwidth, bench_spmm, check, contenders, cpu_peers, graphs, measure, results

SPEEDS = {"copy_gbs": 1.0, "gather_gbs": 1.0, "gather_method": "none"}


@pytest.fixture
def graph_file(tmp_path):
    path = tmp_path / "small.npz"
    rng = np.random.default_rng(0)
    np.savez(path, edge_index=rng.integers(0, 30, (2, 200)))
    return path


@pytest.fixture
def graph(graph_file):
    return graphs.load(f"npz:{graph_file}", 1.0, 0, torch.device("cpu"))


@pytest.mark.parametrize("direction", ["fwd", "bwd"])
@pytest.mark.parametrize("weighted", [False, True])
def test_reference_is_the_dense_product(graph, direction, weighted):
    weight = torch.randn(graph.num_edges) if weighted else None
    x = torch.randn(30, 40)
    dense = torch.zeros(30, 30, dtype=torch.float64)
    src, dst = graph.edge_index
    ones = torch.ones(graph.num_edges, dtype=torch.float64)
    dense.index_put_((dst, src), ones if weight is None else weight.double(), accumulate=True)
    expected = (dense if direction == "fwd" else dense.T) @ x.double()
    torch.testing.assert_close(check.reference(contenders.Problem(graph, direction, x, weight)), expected)


def test_nodes_can_be_numbered_in_our_order(graph_file, graph):
    ordered = graphs.load(f"ordered:npz:{graph_file}", 1.0, 0, torch.device("cpu"))
    assert (ordered.name, ordered.ordered, graph.ordered) == ("small", True, False)
    row = pyg_sparse.plan(graph.edge_index, graph.num_src).forward.row.long()
    assert torch.equal(row[ordered.edge_index], graph.edge_index)
    in_degree = ordered.matrix("fwd").rowptr.diff()
    assert in_degree.tolist() == sorted(in_degree.tolist(), reverse=True)
    assert measure.describe(ordered)["ordered"] is True
    assert "ordered" not in measure.describe(graph)


def test_only_a_square_graph_can_be_ordered(tmp_path):
    scipy.sparse.save_npz(tmp_path / "wide.npz", scipy.sparse.random(3, 5, 0.5, rng=0))
    with pytest.raises(ValueError, match="wide cannot be ordered: it has 5 sources and 3 targets"):
        graphs.load(f"ordered:npz:{tmp_path / 'wide.npz'}", 1.0, 0, torch.device("cpu"))


def test_error_sees_what_was_not_written():
    expected = torch.ones(3, 2, dtype=torch.float64)
    assert check.relative_error(torch.ones(3, 2), expected) == 0
    assert check.relative_error(torch.full((3, 2), 1.5), expected) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="not finite"):
        check.relative_error(torch.full((3, 2), float("nan")), expected)
    with pytest.raises(ValueError, match="wrong shape"):
        check.relative_error(torch.ones(2, 3), expected)


def test_run_measures_everything_and_keeps_failures(graph_file, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bandwidth, "measure", lambda device: SPEEDS)
    out = tmp_path / "spmm.json"
    command = f"--graphs npz:{graph_file} --widths 4 --dtypes float32 float16 --values implicit explicit"
    command += f" --rivals torch scatter --repeats 3 --device cpu --out {out}"
    bench_spmm.main(command.split())

    meta, rows = results.read(out)
    assert str(tmp_path) not in meta["command"]
    assert all(row["error"] < 2e-3 for row in rows if row["ms"])
    ours = [row for row in rows if row["impl"] == results.OURS]
    assert ours
    assert all(row["ms"] for row in ours)
    for dtype in ("float32", "float16"):
        for direction in ("fwd", "bwd"):
            for values in ("implicit", "explicit"):
                case = {"dtype": dtype, "direction": direction, "values": values}
                assert [row for row in ours if case.items() <= row.items()], case
    for row in rows:  # SpMM in fp16 is not in every build of torch for the CPU
        assert row["ms"] or "not implemented" in row["why"]
    assert "**small**, float16, bwd, explicit values" in capsys.readouterr().out


def test_threads_are_measured_one_after_the_other(graph_file, tmp_path, monkeypatch):
    monkeypatch.setattr(bandwidth, "measure", lambda device: SPEEDS)
    before, used = torch.get_num_threads(), []
    measured = measure.measure_all
    monkeypatch.setattr(measure, "measure_all", lambda *args: used.append(torch.get_num_threads()) or measured(*args))
    out = tmp_path / "spmm.json"
    command = f"--graphs npz:{graph_file} --widths 4 --threads 2 1 --directions fwd --rivals --formats auto"
    try:
        bench_spmm.main([*command.split(), *f"--repeats 2 --device cpu --out {out}".split()])
    finally:
        torch.set_num_threads(before)
    assert used == [2, 1]
    assert [row["threads"] for row in results.read(out)[1]] == [2, 1]


def test_the_cpus_speeds_are_near_and_far(monkeypatch):
    asked = []
    monkeypatch.setattr(bandwidth, "_copy_gbs", lambda device, nbytes: 1.0)
    monkeypatch.setattr(
        bandwidth, "_embedding_bag_gbs", lambda device, num_rows, count: asked.append(num_rows) or 2.0 / len(asked)
    )
    speeds = bandwidth.measure(torch.device("cpu"))
    assert (speeds["gather_gbs"], speeds["far_gather_gbs"]) == (2.0, 1.0)
    assert asked[0] * 512 <= 1 << 18
    assert asked[1] * 512 >= 1 << 29


def test_wrong_result_is_not_timed(graph, monkeypatch):
    timer = measure.Timer(torch.device("cpu"), 3, 1.0)
    problem = contenders.Problem(graph, "fwd", torch.randn(30, 4), None)
    (scatter,) = contenders.rivals(["scatter"])
    row = measure.measure(scatter, problem, 2 * check.reference(problem), timer)
    assert row["ms"] is None
    assert row["why"].startswith("wrong: relative error 5")


@pytest.mark.parametrize("name", ["torch", *cpu_peers.PEERS])
@pytest.mark.parametrize("direction", ["fwd", "bwd"])
@pytest.mark.parametrize("weighted", [False, True])
def test_cpu_rivals_compute_the_product_of_a_wide_matrix(name, direction, weighted):
    if name in cpu_peers.PEERS and not cpu_peers.PEERS[name].installed:
        pytest.skip(f"{name} is not installed")
    torch.manual_seed(0)
    src, dst = torch.randint(50, (200,)), torch.randint(30, (200,))
    graph = graphs.Graph("wide", "exact", torch.stack([src, dst]), 50, 30)
    weight = torch.randn(graph.num_edges) if weighted else None
    problem = contenders.Problem(graph, direction, torch.randn(50 if direction == "fwd" else 30, 4), weight)
    for contender in contenders.rivals([name]):
        with torch.no_grad(), contender.prepare(problem) as prepared:
            for out in (prepared.run(), prepared.run()):
                assert check.relative_error(out, check.reference(problem)) < check.TOLERANCE[torch.float32]


@pytest.mark.parametrize("name", cpu_peers.PEERS)
def test_missing_rival_is_an_error_only_when_asked_for(name, monkeypatch):
    missing = replace(cpu_peers.PEERS[name], module="no_such_module")
    monkeypatch.setitem(cpu_peers.PEERS, name, missing)
    with pytest.raises(ImportError, match=f"rival {name}: the package {missing.package} is not installed"):
        bench_spmm.main(["--device", "cpu", "--rivals", name])
    assert name not in bench_spmm._arguments(["--device", "cpu"]).rivals


def test_reducing_product_of_torch_is_a_rival_on_the_cpu_only():
    formats = {device: [c.format for c in contenders.rivals(["torch"], device)] for device in ("cpu", "cuda")}
    assert formats["cpu"] == [*formats["cuda"], "csr int32 reduce"]
