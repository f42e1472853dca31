"""The results over the SuiteSparse list as Markdown: speed-ups over the fastest rival of each matrix and width.

Twins are synthetic matrices, and are called so beside every number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import geometric_mean

from benchmarks.markdown import provenance, table
from benchmarks.results import OURS, Meta, Row
from benchmarks.rows import grouped

SOURCES = {"real": "real", "exact": "exact construction", "twin": "twin (synthetic)"}
SLOWER = 0.95
"""Below this speed-up we count as slower: 5 % is what times of microseconds are good for."""


def suite(meta: Meta, rows: Sequence[Row]) -> str:
    """Each width over all matrices and over each kind of them, and why anything of ours is missing."""
    field = device_field(rows)
    device, whole = speedups(rows, field), speedups(rows, "ms")
    default = speedups([row for row in rows if row["impl"] == OURS or row["format"] == "default"], field)
    limit = at_the_limit(rows, field)
    source = {row["graph"]: row["source"] for row in rows}
    kinds = [kind for kind in SOURCES if kind in source.values()]
    twins = [*source.values()].count("twin")
    titles = {**SOURCES, "all": f"all, {twins} of them twins (synthetic)" if twins else "all"}
    means = ["speed-up", "whole call", "over default", "at the limit"]
    head = ["matrices", "K", "number", *means, f"below {SLOWER}", "worst", "best"]
    lines = [head]
    for kind in ["all", *kinds]:
        for k in sorted(device):
            of_kind = {name: ratio for name, ratio in device[k].items() if kind in ("all", source[name])}
            if of_kind:
                others = [[of[k][name] for name in of_kind if name in of.get(k, {})] for of in (whole, default, limit)]
                lines.append([titles[kind], str(k), *_summary(of_kind, others, source)])
    return "\n\n".join(filter(None, [table(lines), _failures(rows), provenance(meta)]))


def suite_detail(meta: Meta, rows: Sequence[Row]) -> str:
    """The speed-up in device time on every matrix."""
    device = speedups(rows, device_field(rows))
    lines = [["matrix", "source", "rows", "columns", "entries", *(f"K = {k}" for k in sorted(device))]]
    for of_graph in grouped(rows, "graph"):
        first = of_graph[0]
        cells = [_ratio(device[k].get(first["graph"])) for k in sorted(device)]
        size = [f"{first[key]:,}" for key in ("num_rows", "num_cols", "num_edges")]
        lines.append([first["graph"], SOURCES[first["source"]], *size, *cells])
    return f"{table(lines)}\n\n{provenance(meta)}"


def overview(rows: Sequence[Row]) -> str:
    """One matrix in a line of text: its speed-up by width."""
    first, device = rows[0], speedups(rows, device_field(rows))
    ratios = ", ".join(f"K = {k}: {_ratio(device[k].get(first['graph']))}" for k in sorted(device))
    return f"{first['graph']}, {SOURCES[first['source']]}, {first['num_edges']:,} entries: {ratios}"


def speedups(rows: Iterable[Row], field: str) -> dict[int, dict[str, float]]:
    """By width and matrix, the fastest rival's time over our fastest; where both were measured."""
    by_width: dict[int, dict[str, float]] = {}
    for of_case in grouped([*rows], "k", "graph"):
        k, name = of_case[0]["k"], of_case[0]["graph"]
        ours, theirs = (
            min((row[field] for row in of_case if (row["impl"] == OURS) == is_ours and row.get(field)), default=None)
            for is_ours in (True, False)
        )
        at_k = by_width.setdefault(k, {})
        if ours and theirs:
            at_k[name] = theirs / ours
    return by_width


def at_the_limit(rows: Sequence[Row], field: str) -> dict[int, dict[str, float]]:
    """The speed-ups if each of our calls took its limit, or as long as our shortest one: a launch at least."""
    ours = [row for row in rows if row["impl"] == OURS and row.get(field) and row.get("limit_ms")]
    launch = min((row[field] for row in ours), default=0.0)
    ideal = [{**row, field: max(row["limit_ms"], launch)} for row in ours]
    return speedups([*ideal, *(row for row in rows if row["impl"] != OURS)], field)


def device_field(rows: Iterable[Row]) -> str:
    """Of the time on the device; a CPU has no other time than that of the whole call."""
    return "device_ms" if any(row.get("device_ms") for row in rows) else "ms"


def _summary(ratios: Mapping[str, float], others: Sequence[Sequence[float]], source: Mapping[str, str]) -> list[str]:
    worst, best = (choose(ratios, key=ratios.__getitem__) for choose in (min, max))
    slower = sum(ratio < SLOWER for ratio in ratios.values())
    named = [f"{_ratio(ratios[name])} ({name}{', twin' * (source[name] == 'twin')})" for name in (worst, best)]
    means = [_ratio(geometric_mean(values)) if values else "-" for values in (ratios.values(), *others)]
    return [str(len(ratios)), *means, str(slower), *named]


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _failures(rows: Iterable[Row]) -> str:
    ours = [row for row in rows if row["impl"] == OURS and row["ms"] is None]
    return "\n".join(f"- {OURS}, {row['graph']}, K = {row['k']}: {row['why']}" for row in ours)
