"""What each candidate format takes in memory: of the matrix itself, or predicted where building all would take long."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from pyg_sparse.cli import text
from pyg_sparse.cli.report import Section
from pyg_sparse.cli.survey import Survey
from pyg_sparse.formats import FormatSpec
from pyg_sparse.planner.candidates import describe_spec
from pyg_sparse.planner.lengths import Lengths
from pyg_sparse.planner.profile import SHARING, WINDOWS, OrderProfile
from pyg_sparse.planner.work import work_of

MAX_BUILT = 1 << 24  # entries


@dataclass(frozen=True)
class Size:
    """``built``: the numbers are those of the matrix, not estimates from the lengths of its rows."""

    format: str
    bytes: int
    padding: float
    partials: int
    built: bool

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def sizes(found: Survey) -> list[Size]:
    """Of the forward direction, with slot maps. Only the rows' lengths matter, not their order."""
    specs = list(dict.fromkeys(entry.candidate.spec for entry in found.scored))
    return [_built(found, spec) if found.rows.nnz <= MAX_BUILT else _estimated(found, spec) for spec in specs]


def _built(found: Survey, spec: FormatSpec) -> Size:
    stats = spec.build(found.rows).stats()
    return Size(describe_spec(spec), stats["bytes"], stats["padding"], stats["partials"], built=True)


def _estimated(found: Survey, spec: FormatSpec) -> Size:
    """From the lengths of rows, without the small tensors."""
    rows = found.rows
    any_order = OrderProfile(1.0, 1.0, (1.0,) * len(WINDOWS), (1.0,) * len(WINDOWS), (1.0,) * len(SHARING))
    work = work_of(spec, rows.num_cols, Lengths.of(rows), any_order, "degree")
    assert work is not None  # of all candidates' formats
    per_position = {"csr": 8, "coo": 12, "hyb": 8}[spec.name]  # a column and a slot, and a row
    per_item = {"csr": 12, "coo": 0, "hyb": 8}[spec.name]
    size = work.positions * per_position + work.items * per_item
    return Size(describe_spec(spec), size, work.positions / rows.nnz - 1.0, work.partials, built=False)


def section(found: list[Size]) -> Section:
    rows = [["format", "bytes", "padding", "partial sums"]]
    rows += [[s.format, text.size(s.bytes), f"{s.padding:.1%}", f"{s.partials:,}"] for s in found]
    lines = [] if all(s.built for s in found) else [f"estimates: nothing is built for more than {MAX_BUILT:,} edges"]
    return Section("Formats, one direction", lines, rows, right=(1, 2, 3))
