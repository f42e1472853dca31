"""python -m pyg_sparse inspect GRAPH"""

from __future__ import annotations

import argparse
from dataclasses import fields
from itertools import zip_longest
from typing import Any

from pyg_sparse.cli import degrees, drawing, sizes, text
from pyg_sparse.cli.command import add_command, facts_of, headline
from pyg_sparse.cli.graph import LoadedGraph
from pyg_sparse.cli.report import Report, Section
from pyg_sparse.cli.survey import Survey, products, survey
from pyg_sparse.planner.features import Features, features


def add(commands: Any) -> None:
    add_command(commands, "inspect", "describe a graph, and predict how fast its products are in which format", _look)


def _look(graph: LoadedGraph, args: argparse.Namespace) -> Report:
    found = survey(graph, products(args.widths, args.dtypes), args.device)
    described = features(found.rows, found.t_rows)
    in_octaves = degrees.octaves(found.rows.lengths(), found.t_rows.lengths())
    formats = sizes.sizes(found)
    title = headline(graph, args.device)
    sections = [
        Section(title, [f"shape class: {described.shape_class}"]),
        _features(described),
        degrees.section(in_octaves),
        sizes.section(formats),
        _candidates(found),
    ]
    facts = {
        "command": "inspect",
        **facts_of(graph, args.device),
        "features": described.as_dict(),
        "degrees": [octave._asdict() for octave in in_octaves],
        "formats": [size.as_dict() for size in formats],
        "auto": {
            "by_model": found.by_model,
            "forward": [p.as_dict() | found.auto(p).as_dict() for p in found.products],
        },
        "candidates": [
            {
                **entry.candidate.as_dict(),
                "times": [
                    p.as_dict() | {"predicted_ms": entry.predicted[p.case].ms if p.case in entry.predicted else None}
                    for p in found.products
                ],
            }
            for entry in found.scored
        ],
    }
    return Report(f"inspect {graph.name}", facts, sections, drawing.of_survey(title, found))


def _features(found: Features) -> Section:
    """The three groups side by side."""
    columns = []
    for group in (found.intrinsic, found.representation, found.spgemm):
        names = [f.name for f in fields(group)]
        columns.append([(name, _number(getattr(group, name), estimated=name in found.sampled)) for name in names])
    rows = [[cell for pair in row for cell in pair] for row in zip_longest(*columns, fillvalue=("", ""))]
    lines = ["~ marks estimates from a sample"] if found.sampled else []
    header = ["the matrix", "", "positions per entry", "", "a sparse product", ""]
    return Section("Features (docs/features.md)", lines, [header, *rows], right=(1, 3, 5))


def _number(value: float, *, estimated: bool) -> str:
    shown = f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
    return f"~{shown}" if estimated else shown


def _candidates(found: Survey) -> Section:
    """In the planner's order for the product in the middle: by time, and by how far a prediction can be trusted."""
    middle = found.products[len(found.products) // 2]

    def key(entry: Any) -> float:
        return entry.cost(middle.case)

    rows = [["format", "rows by", *map(str, found.products)]]
    for entry in sorted(found.scored, key=key):
        cells = []
        for product in found.products:
            prediction = entry.predicted.get(product.case)
            mark = "*" if entry.candidate == found.auto(product) else " "
            cells.append((text.ms(prediction.ms) if prediction else "-") + f" {mark}")
        name, _, order = str(entry.candidate).partition(", rows by ")
        rows.append([name, order, *cells])
    how = "by these predictions" if found.by_model else "without predictions, for a graph of this size (docs/cli.md)"
    lines = [f"* what plan() takes, {how}", f"in the planner's order for {middle}"]
    return Section("Predicted ms of a forward product", lines, rows, right=range(2, len(rows[0])))
