"""The CPU's kernels are compiled for several instruction sets: each must be right, and none may need another's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / "build/objects/csrc/cpu/isa"


def names(wanted: str) -> str:
    """What the library answers to this PYG_SPARSE_CPU."""
    command = [sys.executable, "-c", "import torch, pyg_sparse; print(torch.ops.pyg_sparse.build_info())"]
    environment = os.environ | {"PYG_SPARSE_CPU": wanted}
    result = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    return result.stdout if result.returncode == 0 else result.stderr.strip().splitlines()[-1]


@pytest.fixture(scope="module")
def allowed() -> list[str]:
    return names("none").partition("allow ")[2].split(", ")


def test_an_unknown_set_is_an_error_that_names_the_known() -> None:
    message = names("sse9")
    assert "PYG_SPARSE_CPU is sse9" in message
    assert message.endswith("baseline")


def test_the_best_is_the_default(allowed: list[str]) -> None:
    assert json.loads(names(""))["cpu"] == allowed[0]
    features = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    sanitized = "libasan" in os.environ.get("LD_PRELOAD", "")
    if "avx512vl" in features and "avx512bw" in features and not sanitized:
        assert allowed[0] == "x86-64-v4"


@pytest.mark.parametrize("name", ["x86-64-v3", "baseline"])
def test_every_set_is_right(name: str, allowed: list[str]) -> None:
    if name not in allowed[1:]:
        pytest.skip("the default" if name in allowed else "not of this processor and build")
    assert json.loads(names(name))["cpu"] == name
    files = ["tests/test_cpu.py", "tests/test_scipy.py", "tests/test_extremum.py::test_extremum"]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *files]
    environment = os.environ | {"PYG_SPARSE_CPU": name}
    result = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-3000:]


@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm")
@pytest.mark.parametrize("name", ["x86_64_v3", "x86_64_v4"])
def test_no_function_is_shared_between_sets(name: str) -> None:
    # Of a function that several files define the linker keeps one, which every processor must be able to run.
    built = BUILT / f"{name}.o"
    if not built.exists():
        pytest.skip(f"{built} is not there: the library was not built here, or not for this processor")
    command = ["nm", "--demangle", "--defined-only", str(built)]
    symbols = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    functions = [line.split(maxsplit=2)[2] for line in symbols if line.split(maxsplit=2)[1] in "TtWwVvu"]
    kernels = [function for function in functions if f"pyg_sparse::cpu::{name}::" in function]
    if not symbols:
        pytest.skip(f"{built} is empty: not for this compiler")
    assert [function for function in functions if function not in kernels] == []
    assert len(kernels) > 100
