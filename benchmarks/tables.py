"""Result rows as Markdown tables. A table says where it was measured and how to repeat it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.results import OURS, Meta, Row

_EXTRA = {"preprocess ms": "preprocess_ms", "peak MB": "peak_mb"}


def epoch(meta: Meta, rows: Sequence[Row]) -> str:
    """One training epoch by backend."""
    head = [
        "graph",
        "hidden",
        "backend",
        "ms per epoch",
        f"relative to {OURS}",
        "peak memory",
        "test accuracy",
    ]
    lines = [head]
    for row in rows:
        case = [_title(row), str(row["k"]), row["impl"]]
        if row["ms"] is None:
            lines.append([*case, row["why"], "", "", ""])
            continue
        ours = _fastest(r for r in rows if r["impl"] == OURS and _same(r, row, "graph", "k", "dtype", "scale"))
        ratio = f"{row['ms'] / ours['ms']:.2f}" if ours else ""
        peak = f"{row['peak_mb'] / 1000:.2f} GB" if row.get("peak_mb") else ""
        accuracy = f"{row['test_acc']:.1%}" if row.get("test_acc") else ""
        lines.append([*case, _number(row["ms"]), ratio, peak, accuracy])
    return f"{_markdown(lines)}\n\n{_provenance(meta)}"


def spmm(meta: Meta, rows: Sequence[Row]) -> str:
    """The fastest rival and our fastest format, forward in fp32 over a 0/1 matrix."""
    case = {"dtype": "float32", "direction": "fwd", "values": "implicit"}
    rows = [row for row in rows if _same(row, case, *case)]
    widths = sorted({row["k"] for row in rows})
    lines = [["graph", "ms", *(f"K = {k}" for k in widths)]]
    for of_graph in _grouped(rows, "graph", "scale"):
        by_width = [[row for row in of_graph if row["k"] == k] for k in widths]
        theirs = [_fastest(row for row in at_k if row["impl"] != OURS) for at_k in by_width]
        ours = [_fastest(row for row in at_k if row["impl"] == OURS) for at_k in by_width]
        ratios = [f"{_ms(a) / _ms(b):.2f}" if a and b else "-" for a, b in zip(theirs, ours, strict=True)]
        title = _title(of_graph[0])
        lines.append([title, "fastest rival", *(_cell(row, "{impl} {format}") for row in theirs)])
        lines.append([title, f"{OURS}, fastest format", *(_cell(row, "{format}") for row in ours)])
        lines.append([title, "speed-up", *ratios])
    return f"{_markdown(lines)}\n\n{_provenance(meta)}"


def spmm_detail(meta: Meta, rows: Sequence[Row]) -> str:
    """Every implementation; a table for each graph, dtype, direction and kind of values."""
    cases = _grouped(rows, "graph", "scale", "dtype", "direction", "values")
    return "\n\n".join([*map(spmm_case, cases), _provenance(meta)])


def spmm_case(rows: Sequence[Row]) -> str:
    """Every implementation on one graph, with the reasons of those that failed."""
    first = rows[0]
    title = f"**{_title(first)}**, {first['dtype']}, {first['direction']}, {first['values']} values"
    size = f"{first['num_nodes']:,} nodes, {first['num_edges']:,} entries"
    caption = f"{title}; {size}. ms (relative to the fastest rival):"

    limits = {row["k"]: row["limit_ms"] for row in rows}
    widths = sorted(limits)
    rivals = {k: _fastest(r for r in rows if r["k"] == k and r["impl"] != OURS) for k in widths}
    lines = [["implementation", "format", *(f"K = {k}" for k in widths), *_EXTRA]]
    for of_impl in _grouped(rows, "impl", "format"):
        by_width = {row["k"]: row for row in of_impl}
        cells = [_relative(by_width.get(k), rivals[k]) for k in widths]
        widest = by_width[max(by_width)]
        extra = [_number(widest.get(key)) for key in _EXTRA.values()]
        lines.append([widest["impl"], widest["format"], *cells, *extra])
    lines.append(["limit", "", *(_number(limits[k]) for k in widths), *("" for _ in _EXTRA)])

    return "\n\n".join(filter(None, [caption, _markdown(lines), _failures(rows)]))


def _failures(rows: Sequence[Row]) -> str:
    widths: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        if row["ms"] is None:
            widths.setdefault((row["impl"], row["format"], row["why"]), []).append(str(row["k"]))
    return "\n".join(f"- {i} {f}, K = {', '.join(ks)}: {why}" for (i, f, why), ks in widths.items())


def _ms(row: Row) -> float:
    """Device time where it was measured: it is for calls so short that launching them takes longer."""
    return float(row.get("device_ms") or row["ms"])


def _fastest(rows: Iterable[Row]) -> Row | None:
    return min((row for row in rows if row["ms"] is not None), key=_ms, default=None)


def _relative(row: Row | None, rival: Row | None) -> str:
    if row is None or row["ms"] is None:
        return "-"
    return _number(_ms(row)) + (f" ({_number(_ms(row) / _ms(rival))})" if rival else "")


def _cell(row: Row | None, label: str) -> str:
    return "-" if row is None else f"{_number(_ms(row))} ({label.format(**row)})"


def _same(row: Row, other: Row, *keys: str) -> bool:
    return all(row.get(key) == other.get(key) for key in keys)


def _title(row: Row) -> str:
    if row["source"] != "shaped":
        return str(row["graph"])
    scale = row.get("scale")
    return f"{row['graph']} (synthetic{'' if scale in (None, 1) else f', scale {scale:g}'})"


def _provenance(meta: Meta) -> str:
    versions = {"driver": "driver", "CUDA": "cuda", "torch": "torch", "PyG": "pyg", "Python": "python"}
    where = [meta["device"], *(f"{name} {meta[key]}" for name, key in versions.items() if meta[key])]
    when = f"commit {meta['commit'][:12]}, {meta['date'][:10]}"
    return f"Measured on {', '.join(where)}; {when}. To repeat it: `{meta['command']}`."


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


def _markdown(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = ["-" * width for width in widths]
    return "\n".join(
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |"
        for line in (lines[0], rule, *lines[1:])
    )


def _grouped(rows: Sequence[Row], *keys: str) -> list[list[Row]]:
    """Rows that agree in `keys`, in order of first appearance."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(key) for key in keys), []).append(row)
    return list(groups.values())
