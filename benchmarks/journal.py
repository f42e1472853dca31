"""A benchmark's result file while it is measured: meta is collected first, rows are written as they come."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks import bandwidth, cusparse, results
from benchmarks.results import Meta, Row


@dataclass(frozen=True)
class Journal:
    """Made by :meth:`start`; `speeds` are those of `bandwidth.measure`."""

    device: torch.device
    path: Path
    meta: Meta
    speeds: dict[str, Any]
    append: bool

    @staticmethod
    def start(bench: str, argv: Sequence[str], arguments: argparse.Namespace) -> Journal:
        """Measures the device's speeds; refuses rows of another commit or machine before, not after, measuring."""
        device = torch.device(arguments.device)
        if device.type == "cuda":
            torch.cuda.set_device(device.index or 0)
        path = arguments.out or results.device_folder(device) / f"{bench}.json"
        speeds = bandwidth.measure(device)
        command = results.command(f"benchmarks.bench_{bench}", argv)
        meta = results.collect_meta(device, command, [arguments.seed], bandwidth=speeds)
        if device.type == "cuda":
            meta["cusparse"] = cusparse.version(device)
        if arguments.append:
            results.merge(path, meta, [])
        print(f"{meta['device']}, torch {meta['torch']}, {speeds}", flush=True)
        return Journal(device, path, meta, speeds, arguments.append)

    def write(self, rows: Sequence[Row]) -> None:
        results.write(self.path, *(results.merge(self.path, self.meta, rows) if self.append else (self.meta, rows)))
