"""Result files: one object of `meta` (where and how it was measured) and `rows` (what was measured).

A row is flat and complete in itself. A failed measurement is a row too: `ms` is null and `why` says why.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import platform
import re
import shlex
import statistics
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

Row = dict[str, Any]
Meta = dict[str, Any]

ROOT = Path(__file__).parent
OURS = "pyg_sparse"
META_KEYS = ("commit", "device", "driver", "torch", "pyg", "cuda", "python", "seeds", "date", "command")
ROW_KEYS = ("bench", "graph", "source", "op", "k", "dtype", "direction", "impl", "format", "ms")
SOURCES = {"real", "exact", "twin", "shaped", "generated"}
DIRECTIONS = ("fwd", "bwd", "fwd+bwd", "epoch")
_ENVIRONMENT = ("commit", "device", "driver", "torch", "pyg", "cuda", "python")
_IDENTITY = (*ROW_KEYS[:-1], "values", "scale", "ordered", "threads")


def command(module: str, argv: Sequence[str]) -> str:
    """The command that repeats a measurement, without what depends on the machine: the folders of its files."""
    words = [*argv]
    for option in ("--json", "--root"):
        if option in words:
            at = words.index(option)
            del words[at : at + 2]
    for option in ("--external", "--out"):
        if option in words:
            at = words.index(option) + 1
            words[at] = Path(words[at]).resolve().name
    words = [f"{kind}{colon}{Path(path).name}" for kind, colon, path in (word.partition(":") for word in words)]
    return shlex.join(["python", "-m", module, *words])


def collect_meta(device: torch.device, command: str, seeds: Sequence[int], **extra: object) -> Meta:
    """Everything a reader needs to judge or repeat the numbers."""
    on_cuda = device.type == "cuda"
    return {
        "commit": commit(),
        "device": torch.cuda.get_device_name(device) if on_cuda else _cpu_name(),
        "driver": _driver() if on_cuda else None,
        "torch": torch.__version__,
        "pyg": version("torch_geometric"),
        "cuda": torch.version.cuda if on_cuda else None,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        "seeds": list(seeds),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": command,
        **extra,
    }


def commit() -> str:
    """PYG_SPARSE_COMMIT, for a copy of the tree whose repository is missing or another; else HEAD, marked when tracked
    files differ from it."""
    if named := os.environ.get("PYG_SPARSE_COMMIT"):
        return named
    try:
        head = _output("git", "-C", str(ROOT), "rev-parse", "HEAD")
        # Results themselves may have been written already.
        changed = _output("git", "-C", str(ROOT), "status", "--porcelain", "-uno", "--", ":/", ":!results")
        return head + ("-dirty" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def device_folder(device: torch.device) -> Path:
    """`benchmarks/results/<device>`: `cpu`, or the model in a GPU's name (`h200`)."""
    if device.type != "cuda":
        return ROOT / "results" / "cpu"
    name = torch.cuda.get_device_name(device)
    model = re.search(r"\w*\d\w*", name)
    return ROOT / "results" / (model.group() if model else name).lower()


def short(value: float) -> float:
    """The value to the five digits that a measurement can be good for."""
    return float(f"{value:.5g}")


def timed(samples: Sequence[float]) -> Row:
    """The time fields of a row."""
    return {
        "ms": short(statistics.median(samples)),
        "ms_min": short(min(samples)),
        "ms_max": short(max(samples)),
        "n": len(samples),
        "ms_samples": [short(sample) for sample in samples],
    }


def failed(why: str) -> Row:
    """The time fields of a row that could not be measured."""
    return {"ms": None, "ms_min": None, "ms_max": None, "n": 0, "ms_samples": [], "why": why}


def validate(meta: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> None:
    """Raise ValueError for what nobody could trust: a missing field, a time of 0, a bare failure."""
    if missing := [key for key in META_KEYS if key not in meta]:
        raise ValueError(f"meta lacks {', '.join(missing)}")
    for row in rows:
        if missing := [key for key in ROW_KEYS if key not in row]:
            raise ValueError(f"row lacks {', '.join(missing)}: {row}")
        if row["source"] not in SOURCES or row["direction"] not in DIRECTIONS:
            raise ValueError(f"unknown source or direction: {row}")
        if row["ms"] is None:
            if not row.get("why"):
                raise ValueError(f"a row without ms must say why: {row}")
        elif not (math.isfinite(row["ms"]) and row["ms"] > 0):
            raise ValueError(f"ms must be positive: {row}")
        if "ms_samples" in row and row.get("n") != len(row["ms_samples"]):
            raise ValueError(f"n is not the number of samples: {row}")


def write(path: Path, meta: Meta, rows: Sequence[Row]) -> None:
    """Write atomically, so a killed run leaves the last complete file."""
    validate(meta, rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    lines = ",\n".join(json.dumps(row, allow_nan=False) for row in rows)
    temporary.write_text(f'{{"meta": {json.dumps(meta, indent=1, allow_nan=False)},\n"rows": [\n{lines}\n]}}\n')
    temporary.replace(path)


def read(path: Path) -> tuple[Meta, list[Row]]:
    document = json.loads(path.read_text())
    validate(document["meta"], document["rows"])
    return document["meta"], document["rows"]


def merge(path: Path, meta: Meta, rows: Sequence[Row]) -> tuple[Meta, list[Row]]:
    """The file's rows followed by `rows`, which replace those measuring the same thing.

    One `meta` describes all rows of a file, so rows of another commit or machine are refused.
    """
    if not path.exists():
        return meta, list(rows)
    old_meta, old_rows = read(path)
    if differing := [key for key in _ENVIRONMENT if old_meta[key] != meta[key]]:
        raise ValueError(f"{path} was measured with another {', '.join(differing)}: write to a new file")
    commands = dict.fromkeys([*old_meta["command"].split(" && "), meta["command"]])
    meta = {**meta, "command": " && ".join(commands)}
    replaced = {_identity(row) for row in rows}
    return meta, [row for row in old_rows if _identity(row) not in replaced] + list(rows)


def _identity(row: Row) -> tuple[Any, ...]:
    return tuple(row.get(key) for key in _IDENTITY)


def _cpu_name() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text() if cpuinfo.exists() else ""
    model = re.search(r"model name\s*: (.*)", text)
    return f"{model.group(1) if model else platform.machine()}, {os.cpu_count()} cores"


def _driver() -> str | None:
    try:
        return _output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return None


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
