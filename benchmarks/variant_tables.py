"""Result rows of one operator's variants as Markdown tables: dtypes, directions, edge values, odd widths."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from benchmarks.markdown import number, provenance, table
from benchmarks.results import OURS, Meta, Row
from benchmarks.rows import fastest, graph_title, grouped, in_given_order, ms, plain


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


def threads(meta: Meta, rows: Sequence[Row]) -> str:
    """Our products by the number of threads, relative to one."""
    return _relative_to(meta, rows, "threads", 1, faster=True)


def precisions(meta: Meta, rows: Sequence[Row]) -> str:
    """Our products by dtype, relative to fp32."""
    return _relative_to(meta, rows, "dtype", "float32", faster=True)


def means(meta: Meta, rows: Sequence[Row]) -> str:
    """Geometric means over the graphs of the speed-up over each case's fastest rival, and the least, by direction."""
    widths = _widths(rows)
    lines = [["speed-up", *(f"K = {k}" for k in widths), "all"]]
    titles = {("fwd",): "forward", ("bwd",): "backward", ("fwd", "bwd"): "forward + backward"}
    for directions, title in titles.items():
        ratios = {k: [] for k in widths}
        for case in grouped(rows, "graph", "scale", "k"):
            pairs = [_rival_and_ours(row for row in case if row["direction"] == name) for name in directions]
            if all(theirs and ours for theirs, ours in pairs):
                ratios[case[0]["k"]].append(sum(a for a, _ in pairs) / sum(b for _, b in pairs))
        every = [ratio for of_width in ratios.values() for ratio in of_width]
        lines.append([title, *(_mean_and_least(of) for of in (*ratios.values(), every))])
    return f"{table(lines)}\n\n{provenance(meta)}"


def rates(meta: Meta, rows: Sequence[Row]) -> str:
    """The bytes of x that our forward products gather a second, and their shares of what `embedding_bag` reaches."""
    speeds = {"a core's own cache": "gather_gbs", "memory": "far_gather_gbs"}
    limits = {where: meta["bandwidth"][name] for where, name in speeds.items() if name in meta["bandwidth"]}
    forward = plain(row for row in rows if row["impl"] == OURS)
    widths = _widths(forward)
    lines = [["graph", "gathered", *(f"K = {k}" for k in widths)]]
    for of_graph in grouped(forward, "graph", "scale"):
        best = _by_width(of_graph)
        gathered = [row["gather_bytes"] / ms(row) / 1e6 if (row := best.get(k)) else None for k in widths]
        title = graph_title(of_graph[0])
        lines.append([title, "GB/s", *("-" if speed is None else f"{speed:.0f}" for speed in gathered)])
        for where, limit in limits.items():
            shares = ("-" if speed is None else f"{speed / limit:.2f}" for speed in gathered)
            lines.append([title, f"of {limit:.0f} GB/s, from {where}", *shares])
    return f"{table(lines)}\n\n{provenance(meta)}"


def _rival_and_ours(rows: Iterable[Row]) -> tuple[float | None, float | None]:
    of_one = [*rows]
    best = (fastest(row for row in of_one if (row["impl"] == OURS) == mine) for mine in (False, True))
    theirs, ours = (ms(row) if row else None for row in best)
    return theirs, ours


def _mean_and_least(ratios: Sequence[float]) -> str:
    return f"{statistics.geometric_mean(ratios):.2f} ({min(ratios):.2f})" if ratios else "-"


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


def _relative_to(meta: Meta, rows: Sequence[Row], field: str, base: object, *, faster: bool = False) -> str:
    """Times by `field`, and how much longer than with its value `base` they are, or how many times faster."""
    widths = _widths(rows)
    lines = [["graph", field, *(f"K = {k}" for k in widths)]]
    ours = in_given_order([row for row in rows if row["impl"] == OURS])
    same = [key for key in ("graph", "scale", "dtype") if key != field]
    for of_graph in grouped(ours, *same):
        first = _by_width(row for row in of_graph if row[field] == base)
        for case in grouped(of_graph, field):
            row_of = _by_width(case)
            cells = []
            for k in widths:
                pair = row_of.get(k), first.get(k)
                ratio = _ratio(*(pair[::-1] if faster else pair))
                cells.append(_time(row_of.get(k)) + ("" if case[0][field] == base else f" ({ratio})"))
            lines.append([graph_title(case[0]), str(case[0][field]), *cells])
    return f"{table(lines)}\n\n{provenance(meta)}"


def _by_width(rows: Iterable[Row]) -> dict[int, Row | None]:
    return {at_k[0]["k"]: fastest(at_k) for at_k in grouped([*rows], "k")}


def _widths(rows: Sequence[Row]) -> list[int]:
    return sorted({row["k"] for row in rows})


def _time(row: Row | None) -> str:
    return number(ms(row)) if row else "-"


def _ratio(one: Row | None, other: Row | None) -> str:
    return f"{ms(one) / ms(other):.2f}" if one and other else "-"
