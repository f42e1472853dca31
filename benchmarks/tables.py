"""Result rows as Markdown tables. A table says where it was measured and how to repeat it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from textwrap import shorten

from benchmarks.markdown import number, provenance, table
from benchmarks.results import OURS, Meta, Row
from benchmarks.rows import fastest, graph_title, grouped, ms, plain

_EXTRA = {"preprocess ms": "preprocess_ms", "peak MB": "peak_mb"}


def epoch(meta: Meta, rows: Sequence[Row]) -> str:
    """One training epoch by backend; with a column for the dtype where there are several."""
    several = len({row["dtype"] for row in rows}) > 1
    head = [
        "graph",
        "hidden",
        *(["dtype"] if several else []),
        "backend",
        "ms per epoch",
        f"relative to {OURS}",
        "peak memory",
        "test accuracy",
    ]
    lines = [head]
    missing: dict[tuple[str, str, str], list[str]] = {}
    for row in chain.from_iterable(grouped(rows, "graph", "scale", "k", "dtype")):
        case = [graph_title(row), str(row["k"]), *([row["dtype"]] if several else []), row["impl"]]
        if row["ms"] is None:
            missing.setdefault((row["impl"], row["dtype"], row["why"]), []).append(str(row["k"]))
            continue
        ours = fastest(r for r in rows if r["impl"] == OURS and _same(r, row, "graph", "k", "dtype", "scale"))
        ratio = f"{row['ms'] / ours['ms']:.2f}" if ours else ""
        peak = f"{row['peak_mb'] / 1000:.2f} GB" if row.get("peak_mb") else ""
        accuracy = f"{row['test_acc']:.1%}" if row.get("test_acc") else ""
        lines.append([*case, number(row["ms"]), ratio, peak, accuracy])
    failures = "\n".join(
        f"- {impl}, {dtype}, hidden {', '.join(ks)}: {shorten(why, 100)}" for (impl, dtype, why), ks in missing.items()
    )
    return "\n\n".join(filter(None, [table(lines), failures, provenance(meta)]))


def spmm(meta: Meta, rows: Sequence[Row]) -> str:
    """The fastest rival and our fastest format, forward in fp32 over a 0/1 matrix."""
    return _summary(meta, plain(rows))


def sddmm(meta: Meta, rows: Sequence[Row]) -> str:
    """The fastest rival and our fastest format in fp32."""
    return _summary(meta, [row for row in rows if row["dtype"] == "float32"])


def _summary(meta: Meta, rows: Sequence[Row]) -> str:
    widths = sorted({row["k"] for row in rows})
    lines = [["graph", "ms", *(f"K = {k}" for k in widths)]]
    for of_graph in grouped(rows, "graph", "scale"):
        by_width = [[row for row in of_graph if row["k"] == k] for k in widths]
        ours, theirs, in_our_order = (
            [fastest(row for row in at_k if _kind(row) == kind) for at_k in by_width]
            for kind in (("ours", False), ("rival", False), ("rival", True))
        )
        title = graph_title(of_graph[0])
        lines.append([title, "fastest rival", *(_cell(row, "{impl} {format}") for row in theirs)])
        lines.append([title, f"{OURS}, fastest format", *(_cell(row, "{format}") for row in ours)])
        lines.append([title, "speed-up", *_ratios(theirs, ours)])
        if any(in_our_order):
            cells = (_cell(row, "{impl} {format}") for row in in_our_order)
            lines.append([title, "fastest rival, nodes numbered in our order", *cells])
            lines.append([title, "speed-up over that", *_ratios(in_our_order, ours)])
    return f"{table(lines)}\n\n{provenance(meta)}"


def _kind(row: Row) -> tuple[str, bool]:
    return "ours" if row["impl"] == OURS else "rival", bool(row.get("ordered"))


def _ratios(theirs: Sequence[Row | None], ours: Sequence[Row | None]) -> list[str]:
    return [f"{ms(a) / ms(b):.2f}" if a and b else "-" for a, b in zip(theirs, ours, strict=True)]


def detail(meta: Meta, rows: Sequence[Row]) -> str:
    """Every implementation of an operator; a table for each graph, dtype, direction and kind of values."""
    cases = grouped(rows, "graph", "scale", "ordered", "dtype", "direction", "values")
    return "\n\n".join([*map(comparison, cases), provenance(meta)])


def comparison(rows: Sequence[Row]) -> str:
    """Every implementation on one graph, with the reasons of those that failed."""
    first = rows[0]
    values = [f"{first['values']} values"] if "values" in first else []
    order = ["nodes numbered in our order"] if first.get("ordered") else []
    title = ", ".join([f"**{graph_title(first)}**", *order, first["dtype"], first["direction"], *values])
    size = f"{first['num_nodes']:,} nodes, {first['num_edges']:,} entries"
    caption = f"{title}; {size}. ms (relative to the fastest rival):"

    limits = {row["k"]: row["limit_ms"] for row in rows}
    widths = sorted(limits)
    rivals = {k: fastest(r for r in rows if r["k"] == k and r["impl"] != OURS) for k in widths}
    lines = [["implementation", "format", *(f"K = {k}" for k in widths), *_EXTRA]]
    for of_impl in grouped(rows, "impl", "format"):
        by_width = {row["k"]: row for row in of_impl}
        cells = [_relative(by_width.get(k), rivals[k]) for k in widths]
        widest = by_width[max(by_width)]
        extra = [number(widest.get(key)) for key in _EXTRA.values()]
        lines.append([widest["impl"], widest["format"], *cells, *extra])
    lines.append(["limit", "", *(number(limits[k]) for k in widths), *("" for _ in _EXTRA)])

    return "\n\n".join(filter(None, [caption, table(lines), _failures(rows)]))


def _failures(rows: Sequence[Row]) -> str:
    """A line for each reason, with the formats that have it at the same widths."""
    widths: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        if row["ms"] is None:
            why = row["why"].replace(f"{row['impl']} {row['op']}:{row['format']}: ", "")
            widths.setdefault((row["impl"], why, row["format"]), []).append(str(row["k"]))
    formats: dict[tuple[str, str, str], list[str]] = {}
    for (impl, why, layout), ks in widths.items():
        formats.setdefault((impl, why, ", ".join(ks)), []).append(layout)
    return "\n".join(f"- {impl} {', '.join(names)}, K = {ks}: {why}" for (impl, why, ks), names in formats.items())


def _relative(row: Row | None, rival: Row | None) -> str:
    if row is None or row["ms"] is None:
        return "-"
    return number(ms(row)) + (f" ({number(ms(row) / ms(rival))})" if rival else "")


def _cell(row: Row | None, label: str) -> str:
    return "-" if row is None else f"{number(ms(row))} ({label.format(**row)})"


def _same(row: Row, other: Row, *keys: str) -> bool:
    return all(row.get(key) == other.get(key) for key in keys)
