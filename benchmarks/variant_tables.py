"""Result rows of one operator's variants as Markdown tables: dtypes, directions, edge values, odd widths."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.markdown import number, provenance, table
from benchmarks.results import OURS, Meta, Row
from benchmarks.rows import fastest, graph_title, grouped, in_given_order, ms


def dtypes(meta: Meta, rows: Sequence[Row]) -> str:
    """The fastest rival and our fastest format, for each dtype."""
    widths = _widths(rows)
    lines = [["graph", "dtype", "ms", *(f"K = {k}" for k in widths)]]
    for case in grouped(rows, "graph", "scale", "dtype"):
        theirs, ours = (_by_width(row for row in case if (row["impl"] == OURS) == mine) for mine in (False, True))
        title = [graph_title(case[0]), case[0]["dtype"]]
        labels = {k: f" ({row['impl']} {row['format']})" if row else "" for k, row in theirs.items()}
        lines.append([*title, "fastest rival", *(_time(theirs.get(k)) + labels.get(k, "") for k in widths)])
        lines.append([*title, OURS, *(_time(ours.get(k)) for k in widths)])
        lines.append([*title, "speed-up", *(_ratio(theirs.get(k), ours.get(k)) for k in widths)])
    return f"{table(lines)}\n\n{provenance(meta)}"


def directions(meta: Meta, rows: Sequence[Row]) -> str:
    """Our products forward, and backward relative to them."""
    return _relative_to(meta, rows, "direction", "fwd")


def values(meta: Meta, rows: Sequence[Row]) -> str:
    """Our products by kind of edge values, relative to those without any."""
    return _relative_to(meta, rows, "values", "implicit")


def widths(meta: Meta, rows: Sequence[Row]) -> str:
    """Our time for a feature, relative to the nearest power of two that was measured: by ratio, the larger of two."""
    measured = _widths(rows)
    powers = [k for k in measured if k & (k - 1) == 0]
    lines = [["graph", "ms", *(f"K = {k}" for k in measured)]]
    for case in grouped(rows, "graph", "scale", "dtype"):
        best = _by_width(row for row in case if row["impl"] == OURS)
        time = {k: ms(row) for k, row in best.items() if row}
        if missing := set(measured) - set(time):
            raise ValueError(f"{case[0]['graph']}: K = {missing} was not measured")
        nearest = {k: min(powers, key=lambda power: (max(k / power, power / k), -power)) for k in measured}
        title = graph_title(case[0])
        lines.append([title, "of a product", *(number(time[k]) for k in measured)])
        lines.append([title, "of 32 features", *(number(32 * time[k] / k) for k in measured)])
        relative = (
            "" if k in powers else f"{time[k] / k / (time[nearest[k]] / nearest[k]):.2f} (K = {nearest[k]})"
            for k in measured
        )
        lines.append([title, "relative to a power of two", *relative])
    return f"{table(lines)}\n\n{provenance(meta)}"


def _relative_to(meta: Meta, rows: Sequence[Row], field: str, base: str) -> str:
    widths = _widths(rows)
    lines = [["graph", field, *(f"K = {k}" for k in widths)]]
    ours = in_given_order([row for row in rows if row["impl"] == OURS])
    for of_graph in grouped(ours, "graph", "scale", "dtype"):
        first = _by_width(row for row in of_graph if row[field] == base)
        for case in grouped(of_graph, field):
            row_of = _by_width(case)
            cells = (
                _time(row_of.get(k)) + ("" if case[0][field] == base else f" ({_ratio(row_of.get(k), first.get(k))})")
                for k in widths
            )
            lines.append([graph_title(case[0]), case[0][field], *cells])
    return f"{table(lines)}\n\n{provenance(meta)}"


def _by_width(rows: Iterable[Row]) -> dict[int, Row | None]:
    return {at_k[0]["k"]: fastest(at_k) for at_k in grouped([*rows], "k")}


def _widths(rows: Sequence[Row]) -> list[int]:
    return sorted({row["k"] for row in rows})


def _time(row: Row | None) -> str:
    return number(ms(row)) if row else "-"


def _ratio(one: Row | None, other: Row | None) -> str:
    return f"{ms(one) / ms(other):.2f}" if one and other else "-"
