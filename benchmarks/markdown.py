"""What result tables are made of: cells, rows of Markdown, and the line that says where they were measured."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.results import Meta


def table(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = ["-" * width for width in widths]
    return "\n".join(
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |"
        for line in (lines[0], rule, *lines[1:])
    )


def number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


def provenance(meta: Meta) -> str:
    versions = {"driver": "driver", "CUDA": "cuda", "torch": "torch", "PyG": "pyg", "Python": "python"}
    where = [meta["device"], *(f"{name} {meta[key]}" for name, key in versions.items() if meta[key])]
    when = f"commit {meta['commit'][:12]}, {meta['date'][:10]}"
    return f"Measured on {', '.join(where)}; {when}. To repeat it: `{meta['command']}`."
