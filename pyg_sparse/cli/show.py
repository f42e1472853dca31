"""Prints a report: with rich on a terminal that has it, else as plain lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TextIO

from pyg_sparse.cli import text
from pyg_sparse.cli.report import Report, Section

_BORDERS = 4  # characters by which a table of rich's is wider


def is_rich(stream: TextIO) -> bool:
    return stream.isatty() and find_spec("rich") is not None


def show(report: Report, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(report.facts, indent=2))
    elif is_rich(sys.stdout):
        _rich(report.sections)
    else:
        print("\n\n".join(map(_plain, report.sections)))


def _plain(section: Section) -> str:
    table = [text.table(section.rows, section.right)] if section.rows else []
    return "\n".join([section.title, *section.lines, *table])


def _rich(sections: Sequence[Section]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    for section in sections:
        console.print(Text(section.title, style="bold"))
        for line in section.lines:
            console.print(Text(line))
        plain = text.table(section.rows, section.right).splitlines() if section.rows else []
        if max(map(len, plain), default=0) + _BORDERS > console.width:  # rich would cut cells off
            print(*plain, "", sep="\n")
        elif section.rows:
            table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
            for i, name in enumerate(section.rows[0]):
                table.add_column(Text(name), justify="right" if i in section.right else "left", no_wrap=True)
            for row in section.rows[1:]:
                table.add_row(*map(Text, row))
            console.print(table)
        else:
            console.print()
