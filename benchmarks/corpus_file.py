"""The measured candidates of many graphs, as benchmarks/bench_candidates.py writes them.

An object: `meta`, with the device's speeds as the planner measures them, and `graphs`, each with its `group`, sizes,
the profile of every order (`orders`), the sizes of every format (`specs`) and the measured times (`times`: order, spec,
dtype, width, median and least milliseconds, repeats). The model is fitted to the least.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from pyg_sparse.planner.device import Device
from pyg_sparse.planner.profile import OrderProfile
from pyg_sparse.planner.work import Work

OF_THE_ORDER = ("profile", "by_length", "in_sequence")
ITEMSIZE = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True)
class Sample:
    """A candidate on a graph at a width, and its time."""

    graph: str
    group: str
    order: str
    spec: str
    work: Work
    k: int
    itemsize: int
    ms: float


def sizes(work: Work) -> dict[str, Any]:
    """What a format's work has whatever the order of rows."""
    return {f.name: getattr(work, f.name) for f in fields(work) if f.name not in OF_THE_ORDER}


def order_of(work: Work) -> dict[str, Any]:
    profile = {name: _short(value) for name, value in asdict(work.profile).items()}
    return {"profile": profile, "by_length": work.by_length, "in_sequence": work.in_sequence}


def _short(value: Any) -> Any:
    return [round(v, 4) for v in value] if isinstance(value, tuple) else round(value, 4)


def read(path: Path) -> tuple[Device, list[Sample]]:
    file = json.loads(path.read_text())
    return Device(**file["meta"]["speeds"]), [sample for graph in file["graphs"] for sample in _samples(graph)]


def _samples(graph: dict[str, Any]) -> Iterator[Sample]:
    for order, spec, dtype, k, _median, ms, _repeats in graph["times"]:
        about = graph["specs"].get(spec)
        if about is None or ms is None:
            continue
        ordered = dict(graph["orders"][order])
        profile = {name: tuple(v) if isinstance(v, list) else v for name, v in ordered.pop("profile").items()}
        if about["format"] != "csr":
            ordered["by_length"] = True
        work = Work(**about, **ordered, profile=OrderProfile(**profile))
        yield Sample(graph["graph"], graph["group"], order, spec, work, k, ITEMSIZE[dtype], ms)
