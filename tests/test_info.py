import json
import subprocess
import sys

import pytest
import torch

from pyg_sparse import _info
from pyg_sparse._extension import library_path
from pyg_sparse.formats import FORMATS


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "pyg_sparse", *arguments], capture_output=True, text=True)


def test_json_reports_this_installation():
    result = run("info", "--json")
    assert result.returncode == 0, result.stderr
    info = json.loads(result.stdout)
    assert info["torch"] == torch.__version__
    assert info["library"] == str(library_path())
    assert info["formats"] == sorted(FORMATS)
    assert info["cpu"]["name"]
    assert len(info["devices"]) == torch.cuda.device_count()
    assert info["build"]["cuda"] == bool(info["build"]["arches"])


def test_text_reports_this_installation():
    result = run("info")
    assert result.returncode == 0, result.stderr
    assert torch.__version__ in result.stdout
    assert str(library_path()) in result.stdout


def test_text_of_a_cuda_build():
    info = _info.collect()
    info["build"] |= {"cuda": True, "cuda_version": "13.0", "arches": "80,90+PTX"}
    info["devices"] = [{"name": "Some GPU", "capability": "9.0", "memory_bytes": 3 << 30}]
    text = _info.render(info)
    assert "CUDA 13.0, arches 80,90+PTX" in text
    assert "Some GPU, capability 9.0, 3.0 GiB" in text


@pytest.mark.parametrize("arguments", [(), ("nonsense",), ("info", "--nonsense")])
def test_bad_usage_prints_help(arguments):
    result = run(*arguments)
    assert result.returncode == 2
    assert "usage: python -m pyg_sparse" in result.stderr
