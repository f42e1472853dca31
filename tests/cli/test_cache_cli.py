import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from pyg_sparse.__main__ import main
from pyg_sparse.cli import text
from pyg_sparse.planner.folder import BYTES, FOLDER
from pyg_sparse.planner.store import Store

DAY = 86400


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The default store, with three records last used 10, 2 and 0 days ago."""
    monkeypatch.setenv(FOLDER, str(tmp_path / "cache"))
    monkeypatch.delenv(BYTES, raising=False)
    store = Store(tmp_path / "cache", 1 << 30)
    for width, days in ((8, 10), (32, 2), (128, 0)):
        store.put({"operator": "spmm", "width": width}, {}, {"x": torch.zeros(width * 100)})
        newest = store.entries()[-1].path
        then = time.time() - days * DAY - 1
        os.utime(newest, (then, then))
    return store


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    """Runs the command in this process: its exit code, what it prints, and its errors."""

    def run(*arguments: str) -> tuple[int, str, str]:
        try:
            code = main(["cache", *arguments])
        except SystemExit as stop:
            code = stop.code
        return code, *capsys.readouterr()

    return run


def damage(store: Store) -> Path:
    path = store.entries()[1].path
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    used = path.stat().st_mtime
    path.write_bytes(content)
    os.utime(path, (used, used))
    return path


def test_list(store, run):
    code, out, err = run("list")
    assert (code, err) == (0, "")
    folder, header, *rows, total = out.splitlines()
    assert folder == str(store.folder)
    assert header.split() == ["operator", "width", "written", "by", "size", "last", "used"]
    assert [row.split()[:2] for row in rows] == [["spmm", "8"], ["spmm", "32"], ["spmm", "128"]]
    assert [row.split("  ")[-1].strip() for row in rows] == ["10 d ago", "2 d ago", "1 s ago"]
    assert len({len(row) for row in rows}) == 1  # aligned
    size = sum(entry.bytes for entry in store.entries())
    assert total == f"3 records, {text.size(size)}"


def test_list_as_json(store, run):
    code, out, _ = run("list", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["folder"] == str(store.folder)
    assert [record["key"]["width"] for record in found["records"]] == [8, 32, 128]
    assert [record["bytes"] for record in found["records"]] == [entry.bytes for entry in store.entries()]
    assert {record["library"] for record in found["records"]} == {"0.1.0"}


def test_list_shows_broken_files_and_nothing_that_steers_a_terminal(store, run):
    store.put({"operator": "\x1b[31mred", "more": 1}, {})
    store.entries()[0].path.write_bytes(b"nonsense")
    code, out, _ = run("list")
    assert code == 0
    assert "broken: " in out
    assert "\x1b" not in out
    assert r"'\x1b[31mred'" in out
    assert json.loads(run("list", "--json")[1])["records"][-1]["key"] is None


def test_nothing_there(tmp_path, monkeypatch, run):
    monkeypatch.setenv(FOLDER, str(tmp_path / "none"))
    assert run("list") == (0, f"{tmp_path / 'none'}\n0 records, 0 B\n", "")
    assert run("verify") == (0, f"{tmp_path / 'none'}\n0 records checked, none broken\n", "")
    assert run("clear") == (0, f"{tmp_path / 'none'}\nremoved 0 records, 0 B; 0 records left\n", "")
    assert not (tmp_path / "none").exists()


def test_verify(store, run):
    code, out, _ = run("verify")
    assert (code, out) == (0, f"{store.folder}\n3 records checked, none broken\n")
    path = damage(store)
    code, out, _ = run("verify")
    assert code == 1
    assert out.splitlines()[1:] == [
        f"{path.name} does not have the checksum that it names",
        "3 records checked, 1 broken",
    ]
    code, out, _ = run("verify", "--json")
    assert code == 1
    problems = [record["problem"] for record in json.loads(out)["records"]]
    assert problems == [None, "does not have the checksum that it names", None]
    assert len(store.entries()) == 3


def test_verify_tells_of_a_folder_that_is_not_used(store, run):
    store.folder.chmod(0o777)
    code, out, _ = run("verify")
    assert code == 1
    assert "not used: every user may write to it" in out


def test_clear(store, run):
    size = sum(entry.bytes for entry in store.entries())
    code, out, _ = run("clear")
    assert (code, out) == (0, f"{store.folder}\nremoved 3 records, {text.size(size)}; 0 records left\n")
    assert list(store.folder.iterdir()) == []


def test_clear_older_than(store, run):
    size = store.entries()[0].bytes
    code, out, _ = run("clear", "--older-than", "2.5", "--json")
    assert code == 0
    assert json.loads(out) == {"folder": str(store.folder), "records": 1, "bytes": size, "left": 2}
    assert run("clear", "--older-than", "1")[1].splitlines()[1].startswith("removed 1 record, ")
    assert [entry.header.key["width"] for entry in store.entries()] == [128]


def test_another_folder(store, tmp_path, monkeypatch, run):
    monkeypatch.setenv(FOLDER, "off")
    assert run("list", "--folder", str(store.folder))[1].startswith(str(store.folder))
    code, out, err = run("list", "--folder", str(tmp_path / "none"))
    assert (code, out) == (2, "")
    assert f"--folder {tmp_path / 'none'}: there is no such folder" in err


def test_off(monkeypatch, run):
    monkeypatch.setenv(FOLDER, "off")
    code, out, err = run("list")
    assert (code, out) == (1, "")
    assert "the cache is off: PYG_SPARSE_CACHE says so" in err


def test_bad_bound(store, monkeypatch, run):
    monkeypatch.setenv(BYTES, "8GB")
    code, out, err = run("list")
    assert (code, out) == (1, "")
    assert "PYG_SPARSE_CACHE_BYTES='8GB' must be a positive number of bytes" in err


@pytest.mark.parametrize(
    "arguments", [(), ("nonsense",), ("list", "x"), *(("clear", "--older-than", d) for d in ("-1", "x", "nan", "inf"))]
)
def test_bad_usage(store, run, arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert "usage: python -m pyg_sparse" in err
    assert len(store.entries()) == 3


def test_as_a_process(store):
    damage(store)
    result = subprocess.run(
        [sys.executable, "-m", "pyg_sparse", "cache", "verify"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 1, result.stderr
    assert "3 records checked, 1 broken" in result.stdout


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (999_949, "999.9 kB"), (999_951, "1.0 MB"), (8 << 30, "8.6 GB")],
)
def test_sizes(count, shown):
    assert text.size(count) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(-5, "0 s"), (59, "59 s"), (60, "1 min"), (7200, "2 h"), (10 * DAY, "10 d")]
)
def test_ages(seconds, shown):
    assert text.age(seconds) == shown
