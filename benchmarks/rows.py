"""What tables and pictures ask of result rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.results import Row


def grouped(rows: Sequence[Row], *keys: str) -> list[list[Row]]:
    """Rows that agree in `keys`, in order of first appearance."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(key) for key in keys), []).append(row)
    return list(groups.values())


def ms(row: Row) -> float:
    """Device time where it was measured: it is for calls so short that launching them takes longer."""
    return float(row.get("device_ms") or row["ms"])


def fastest(rows: Iterable[Row]) -> Row | None:
    return min((row for row in rows if row["ms"] is not None), key=ms, default=None)


def graph_title(row: Row) -> str:
    """The graph's name, and whether it is synthetic."""
    notes = {"shaped": "synthetic", "twin": "synthetic twin"}
    if row["source"] not in notes:
        return str(row["graph"])
    scale = row.get("scale")
    return f"{row['graph']} ({notes[row['source']]}{'' if scale in (None, 1) else f', scale {scale:g}'})"


def plain(rows: Iterable[Row]) -> list[Row]:
    """Forward products in fp32 over a 0/1 matrix; sddmm has no values."""
    case = {"dtype": "float32", "direction": "fwd", "values": "implicit"}
    return [row for row in rows if all(row.get(key, value) == value for key, value in case.items())]


def in_given_order(rows: Iterable[Row]) -> list[Row]:
    """Those of graphs whose nodes were not numbered in our order for the rivals' sake."""
    return [row for row in rows if not row.get("ordered")]
