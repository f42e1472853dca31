"""What a command found, before it is known how it will be shown: on a terminal, in a pipe, as JSON or as a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyg_sparse.cli.drawing import Drawing


@dataclass(frozen=True)
class Section:
    """
    Attributes:
        title: one line.
        lines: shown below it, as they are.
        rows: of a table below that, the first of them its header.
        right: the table's columns of numbers.
    """

    title: str
    lines: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    right: Sequence[int] = ()


@dataclass(frozen=True)
class Report:
    """
    Attributes:
        title: the command and the graph.
        facts: all of it, for JSON.
        sections: all of it, for people.
        drawing: what a picture shows.
        failed: why the command fails all the same; empty if it does not.
    """

    title: str
    facts: dict[str, Any]
    sections: Sequence[Section]
    drawing: Drawing
    failed: str = ""
