"""Tables of what plans cost, and of how well they choose."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

from benchmarks.fit_cost_model import render
from benchmarks.markdown import number, provenance, table
from benchmarks.results import Meta, Row
from benchmarks.rows import graph_title, grouped


def read_cost_model(path: Path) -> tuple[Meta, list[Row]]:
    """Its rows are not measurements, but what cross-validation made of them."""
    document = json.loads(path.read_text())
    return document["meta"], document["rows"]


def cost_model(meta: Meta, rows: Sequence[Row]) -> str:
    return f"{render(rows)}\n\n{provenance(meta)}"


def plan(meta: Meta, rows: Sequence[Row]) -> str:
    """Milliseconds of a plan."""
    names = ["plain", "auto", "auto, again", "tune", "tune, again", "hyb", "hyb, again", "plain epoch"]
    plans = [row for row in rows if row["op"] == "plan"]
    names = [name for name in names if any(row["impl"] == name for row in plans)]
    lines = [["graph", *names, "auto: sort / choose / build"]]
    for group in grouped(plans, "graph", "scale"):
        ms = {row["impl"]: row["ms"] for row in group}
        steps = next((row.get("steps_ms", {}) for row in group if row["impl"] == "auto"), {})
        parts = " / ".join(number(steps.get(f"{step} ms")) for step in ("sort", "choose", "build"))
        lines.append([graph_title(group[0]), *(number(ms.get(name)) for name in names), parts])
    return f"{table(lines)}\n\n{provenance(meta)}"


def products(meta: Meta, rows: Sequence[Row]) -> str:
    """Milliseconds of a product by each plan."""
    found = [row for row in rows if row["op"] == "spmm"]
    widths = sorted({row["k"] for row in found})
    lines = [["graph", "plan", "of which", *(f"K = {k}" for k in widths)]]
    for group in grouped(found, "graph", "scale", "impl"):
        ms = {row["k"]: row["ms"] for row in group}
        formats = "; ".join(dict.fromkeys(row["format"] for row in group))
        lines.append([graph_title(group[0]), group[0]["impl"], formats, *(number(ms.get(k)) for k in widths)])
    return f"{table(lines)}\n\n{provenance(meta)}"


def tune(meta: Meta, rows: Sequence[Row]) -> str:
    """Times of the choice over the fastest candidate's."""
    lines = [["mode", "graphs", "regret", "largest"]]
    for group in grouped(rows, "impl"):
        regrets = [row["regret"] for row in group]
        mean = math.exp(sum(map(math.log, regrets)) / len(regrets))
        lines.append([group[0]["impl"], str(len(regrets)), f"{mean:.3f}", f"{max(regrets):.2f}"])
    return f"{table(lines)}\n\n{provenance(meta)}"
