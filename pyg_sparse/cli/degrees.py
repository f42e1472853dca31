"""How many rows and columns have how many entries, by octave."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from pyg_sparse.cli.report import Section

_BAR = 30  # characters of the longest


class Octave(NamedTuple):
    """Nodes with ``low`` to ``high`` edges: how many targets have so many in-edges, how many sources out-edges."""

    low: int
    high: int
    targets: int
    sources: int


def octaves(in_degree: Tensor, out_degree: Tensor) -> list[Octave]:
    """0, 1, 2-3, 4-7, ..., up to the largest degree that occurs."""
    exponents = [torch.frexp(degree.double()).exponent for degree in (in_degree, out_degree)]
    most = max((int(e.max()) for e in exponents if e.numel()), default=-1)
    counts = [torch.bincount(e, minlength=most + 1).tolist() for e in exponents]
    return [Octave(1 << e >> 1, max((1 << e) - 1, 0), counts[0][e], counts[1][e]) for e in range(most + 1)]


def section(found: list[Octave]) -> Section:
    rows = [["edges", "targets", "", "sources", ""]]
    largest = [max((octave[i] for octave in found), default=0) for i in (2, 3)]
    for octave in found:
        span = str(octave.low) if octave.low == octave.high else f"{octave.low:,}-{octave.high:,}"
        targets, sources = octave.targets, octave.sources
        rows.append([span, f"{targets:,}", _bar(targets, largest[0]), f"{sources:,}", _bar(sources, largest[1])])
    return Section("Degrees", [], rows, right=(0, 1, 3))


def _bar(count: int, largest: int) -> str:
    """At least one character for what is not 0."""
    return "#" * -(-count * _BAR // largest) if count else ""
