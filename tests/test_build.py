"""The build decisions of setup.py, the shape of the library it makes, and what a user sees without it."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from pyg_sparse._extension import BUILD, library_path

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def setup_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("setup_script", ROOT / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def cuda_home(tmp_path: Path) -> str:
    nvcc = tmp_path / "bin" / "nvcc"
    nvcc.parent.mkdir()
    nvcc.write_text("#!/bin/sh\nprintf 'compute_80\\ncompute_90\\n'\n")
    nvcc.chmod(0o755)
    return str(tmp_path)


def test_cuda_needs_torch_with_cuda_and_nvcc(setup_script, cuda_home, tmp_path):
    empty = str(tmp_path / "empty")
    assert setup_script.use_cuda("auto", "2.13.0+cu130", "13.0", cuda_home)
    assert setup_script.use_cuda("1", "2.13.0+cu130", "13.0", cuda_home)
    assert not setup_script.use_cuda("0", "2.13.0+cu130", "13.0", cuda_home)
    assert not setup_script.use_cuda("auto", "2.13.0+cpu", None, cuda_home)
    assert not setup_script.use_cuda("auto", "2.13.0+cu130", "13.0", None)
    assert not setup_script.use_cuda("auto", "2.13.0+cu130", "13.0", empty)


def test_a_cpu_build_says_why(setup_script, capsys):
    setup_script.use_cuda("auto", "2.13.0+cpu", None, None)
    assert "torch 2.13.0+cpu was built without CUDA" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("torch_cuda", "home", "reason"),
    [
        (None, None, "torch 2.13.0 was built without CUDA"),
        ("13.0", None, "no nvcc: CUDA_HOME is not set"),
        ("13.0", "/nowhere", "no nvcc: CUDA_HOME is /nowhere, which has no bin/nvcc"),
    ],
)
def test_impossible_cuda_says_why(setup_script, torch_cuda, home, reason):
    with pytest.raises(SystemExit, match=reason):
        setup_script.use_cuda("1", "2.13.0", torch_cuda, home)


def test_default_arches_are_those_nvcc_knows(setup_script, cuda_home, monkeypatch):
    monkeypatch.delenv("TORCH_CUDA_ARCH_LIST", raising=False)
    flags = setup_script.arch_flags(cuda_home)
    assert flags == [
        "-gencode=arch=compute_80,code=sm_80",
        "-gencode=arch=compute_90,code=sm_90",
        "-gencode=arch=compute_90,code=compute_90",
    ]
    assert setup_script.arch_names(flags) == "80,90,90+PTX"


def test_arch_list_is_honoured(setup_script, cuda_home, monkeypatch):
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "8.6;9.0+PTX")
    names = setup_script.arch_names(setup_script.arch_flags(cuda_home))
    assert sorted(names.split(",")) == ["86", "90", "90+PTX"]


def run_setup(value: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "setup.py", "--name"],
        cwd=ROOT,
        env={**os.environ, "PYG_SPARSE_CUDA": value},
        capture_output=True,
        text=True,
    )


def test_unknown_setting_fails_the_build():
    result = run_setup("yes")
    assert result.returncode == 1
    assert "PYG_SPARSE_CUDA='yes' is not one of auto, 0, 1" in result.stderr


@pytest.mark.skipif(torch.version.cuda is not None, reason="torch has CUDA")
def test_cuda_build_with_cpu_torch_fails():
    result = run_setup("1")
    assert result.returncode == 1
    assert f"torch {torch.__version__} was built without CUDA" in result.stderr


def import_copy(folder: Path, library: bytes | None) -> subprocess.CompletedProcess[str]:
    """Imports a copy of the package with another library, or none."""
    package = shutil.copytree(
        library_path().parent, folder / "pyg_sparse", ignore=shutil.ignore_patterns("*.so", "__pycache__")
    )
    if library is not None:
        (package / "_C.so").write_bytes(library)
    return subprocess.run([sys.executable, "-c", "import pyg_sparse"], cwd=folder, capture_output=True, text=True)


def test_missing_library_says_how_to_build(tmp_path):
    result = import_copy(tmp_path, library=None)
    assert result.returncode == 1
    assert "ImportError: pyg_sparse's native library is not built" in result.stderr
    assert str(tmp_path / "pyg_sparse" / "_C.so") in result.stderr
    assert BUILD in result.stderr


def test_damaged_library_says_how_to_rebuild(tmp_path):
    result = import_copy(tmp_path, library=b"not a library")
    assert result.returncode == 1
    assert "ImportError: pyg_sparse's native library does not load with torch" in result.stderr
    assert BUILD in result.stderr


@pytest.mark.skipif(shutil.which("nm") is None, reason="needs nm")
def test_library_uses_only_the_stable_abi():
    result = subprocess.run(
        ["nm", "--dynamic", "--undefined-only", library_path()], check=True, capture_output=True, text=True
    )
    names = [line.split()[-1] for line in result.stdout.splitlines()]
    assert any(name.startswith("torch_") for name in names)  # the stable ABI is plain C
    unstable = ("_ZN2at", "_ZNK2at", "_ZN3c10", "_ZNK3c10", "_ZN5torch", "_ZNK5torch", "Py", "_Py")
    assert [name for name in names if name.startswith(unstable)] == []


@pytest.mark.skipif(shutil.which("readelf") is None, reason="needs readelf")
def test_library_does_not_link_python():
    result = subprocess.run(["readelf", "--dynamic", library_path()], check=True, capture_output=True, text=True)
    assert "libtorch" in result.stdout
    assert "python" not in result.stdout
