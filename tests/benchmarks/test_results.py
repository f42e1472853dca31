import json

import pytest
import torch

from benchmarks import results

META = dict.fromkeys(results.META_KEYS, "x")
ROW = {
    "bench": "spmm",
    "graph": "g",
    "source": "real",
    "op": "spmm",
    "k": 8,
    "dtype": "float32",
    "direction": "fwd",
    "impl": "a",
    "format": "csr",
}


def row(**fields):
    return {**ROW, **results.timed([3.0, 1.0, 2.0]), **fields}


def test_timed_keeps_the_samples():
    assert results.timed([3.0, 1.0, 2.123456]) == {
        "ms": 2.1235,
        "ms_min": 1.0,
        "ms_max": 3.0,
        "n": 3,
        "ms_samples": [3.0, 1.0, 2.1235],
    }


def test_written_file_reads_back(tmp_path):
    path = tmp_path / "new" / "spmm.json"
    rows = [row(), {**ROW, **results.failed("out of memory")}]
    results.write(path, META, rows)
    assert results.read(path) == (META, rows)
    assert [entry.name for entry in path.parent.iterdir()] == ["spmm.json"]


def test_failed_write_keeps_the_last_file(tmp_path):
    path = tmp_path / "spmm.json"
    results.write(path, META, [row()])
    with pytest.raises(ValueError, match="JSON"):
        results.write(path, META, [row(error=float("nan"))])
    assert results.read(path) == (META, [row()])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"ms": None}, "must say why"),
        ({"ms": 0.0}, "must be positive"),
        ({"ms": float("nan")}, "must be positive"),
        ({"n": 20}, "number of samples"),
        ({"source": "invented"}, "unknown source"),
        ({"direction": "sideways"}, "unknown source or direction"),
    ],
)
def test_untrustworthy_rows_are_refused(bad, message):
    with pytest.raises(ValueError, match=message):
        results.validate(META, [row(**bad)])


def test_missing_fields_are_named():
    with pytest.raises(ValueError, match="row lacks graph"):
        results.validate(META, [{key: value for key, value in row().items() if key != "graph"}])
    with pytest.raises(ValueError, match="meta lacks commit"):
        results.validate({key: value for key, value in META.items() if key != "commit"}, [])


def test_merge_replaces_the_same_measurement_and_keeps_others(tmp_path):
    path = tmp_path / "spmm.json"
    results.write(path, META, [row(), row(k=32)])
    meta, rows = results.merge(path, {**META, "command": "second"}, [row(ms=9.0)])
    assert rows == [row(k=32), row(ms=9.0)]
    assert meta["command"] == "x && second"


def test_merge_twice_is_merge_once(tmp_path):
    path = tmp_path / "spmm.json"
    results.write(path, META, [row()])
    once = results.merge(path, {**META, "command": "second"}, [row(k=32)])
    results.write(path, *once)
    assert results.merge(path, {**META, "command": "second"}, [row(k=32)]) == once


def test_merge_refuses_another_commit(tmp_path):
    path = tmp_path / "spmm.json"
    results.write(path, META, [row()])
    with pytest.raises(ValueError, match="another commit"):
        results.merge(path, {**META, "commit": "y"}, [row()])


def test_meta_is_complete_and_json():
    meta = results.collect_meta(torch.device("cpu"), "python -m x", [0], bandwidth={"copy_gbs": 1.0})
    results.validate(json.loads(json.dumps(meta)), [])
    assert meta["driver"] is None
    assert meta["device"].endswith("cores")


def test_commit_without_a_repository(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setenv("PYG_SPARSE_COMMIT", "abc")
    assert results.commit() == "abc"
    monkeypatch.delenv("PYG_SPARSE_COMMIT")
    assert results.commit() == "unknown"


def test_a_commit_that_is_named_counts_before_the_repository(monkeypatch):
    monkeypatch.setenv("PYG_SPARSE_COMMIT", "abc")
    assert results.commit() == "abc"


@pytest.mark.parametrize(
    ("name", "folder"), [("NVIDIA H200", "h200"), ("NVIDIA A100-SXM4-80GB", "a100"), ("Plain", "plain")]
)
def test_folder_of_a_gpu(name, folder, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: name)
    assert results.device_folder(torch.device("cuda")).name == folder


def test_command_leaves_out_folders() -> None:
    argv = ["--graphs", "reddit", "mtx:/some/where/a.mtx", "--out", "/tmp/x.json", "--scale", "0.1"]
    assert results.command("m", argv) == "python -m m --graphs reddit mtx:a.mtx --out x.json --scale 0.1"
