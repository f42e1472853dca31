"""Generate the tables in README.md and docs/benchmarks.md from benchmarks/results/<device>/*.json.

    python -m benchmarks.make_tables           # rewrite the tables
    python -m benchmarks.make_tables --check   # fail if a table is not what the results say

A table stands between `<!-- table:KIND-DEVICE -->` and `<!-- /table -->`; without results it is empty.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import plan_tables, suite_tables, tables, variant_tables
from benchmarks.results import ROOT, Meta, Row, read

DOCUMENTS = (ROOT.parent / "README.md", *(ROOT.parent / "docs" / name for name in ("benchmarks.md", "planner.md")))
RESULTS = ROOT / "results"
KINDS: dict[str, tuple[str, Callable[[Meta, Sequence[Row]], str]]] = {
    "epoch": ("epoch.json", tables.epoch),
    "epoch-edge-index": ("epoch_edge_index.json", tables.epoch),
    "spmm": ("spmm.json", tables.spmm),
    "spmm-detail": ("spmm.json", tables.detail),
    "spmm-dtypes": ("spmm_half.json", variant_tables.dtypes),
    "spmm-directions": ("spmm_directions.json", variant_tables.directions),
    "spmm-values": ("spmm_values.json", variant_tables.values),
    "spmm-means": ("spmm.json", variant_tables.means),
    "spmm-precisions": ("spmm_half.json", variant_tables.precisions),
    "spmm-rates": ("spmm.json", variant_tables.rates),
    "spmm-threads": ("spmm_threads.json", variant_tables.threads),
    "spmm-widths": ("spmm_widths.json", variant_tables.widths),
    "cost-model": ("cost_model.json", plan_tables.cost_model),
    "plan": ("plan.json", plan_tables.plan),
    "plan-products": ("plan.json", plan_tables.products),
    "tune": ("tune.json", plan_tables.tune),
    "sddmm": ("sddmm.json", tables.sddmm),
    "sddmm-detail": ("sddmm.json", tables.detail),
    "suite": ("suite.json", suite_tables.suite),
    "suite-detail": ("suite.json", suite_tables.suite_detail),
}
_MARKER = re.compile(r"(<!-- table:([\w-]+)-(\w+) -->\n)(.*?)(<!-- /table -->)", re.DOTALL)


def table(kind: str, device: str, results: Path = RESULTS) -> str:
    """What belongs between the markers of one table."""
    if kind not in KINDS:
        raise ValueError(f"unknown table {kind}: expected one of {', '.join(KINDS)}")
    file, render = KINDS[kind]
    path = results / device / file
    if not path.exists():
        return ""
    meta, rows = plan_tables.read_cost_model(path) if kind == "cost-model" else read(path)
    return f"\n{render(meta, rows)}\n\n"


def update(text: str, results: Path = RESULTS) -> str:
    """The document with all its tables generated anew."""
    return _MARKER.sub(lambda found: found[1] + table(found[2], found[3], results) + found[5], text)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.make_tables",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--check", action="store_true", help="write nothing, fail if a document would change")
    check = parser.parse_args(argv).check
    stale = [path for path in DOCUMENTS if path.exists() and update(path.read_text()) != path.read_text()]
    if check and stale:
        names = ", ".join(path.name for path in stale)
        sys.exit(f"not what benchmarks/results say: {names}; run python -m benchmarks.make_tables")
    for path in stale:
        path.write_text(update(path.read_text()))


if __name__ == "__main__":
    main()
