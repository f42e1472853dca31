"""What the tests of the commands share: running one in this process, and a small graph in a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from pyg_sparse.__main__ import main
from pyg_sparse.planner import known
from pyg_sparse.planner.device import Device, device_name

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command: its exit code, what it prints, and its errors. The CPU's speeds are made up, not measured."""
    name = device_name(torch.device("cpu"))
    monkeypatch.setattr(known, "_known", {name: Device("cpu", name, 2, 1 << 20, 0.02, 100.0, 10.0, 20.0, 0.0)})

    def run(*arguments: object) -> tuple[int, str, str]:
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = int(stop.code or 0)
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def small_graph(tmp_path: Path) -> Path:
    """200 sources, 100 targets, 1500 edges."""
    edge_index = torch.stack([torch.randint(200, (1500,)), (100 * torch.rand(1500) ** 3).long()])
    path = tmp_path / "small.safetensors"
    save_file({"edge_index": edge_index}, path, {"num_nodes": "[200, 100]"})
    return path
