"""python -m pyg_sparse bench GRAPH"""

from __future__ import annotations

import argparse
import math
from typing import Any

from pyg_sparse.cli import drawing, options, text
from pyg_sparse.cli.command import add_command, facts_of, headline
from pyg_sparse.cli.graph import LoadedGraph
from pyg_sparse.cli.measure import Measured, measure
from pyg_sparse.cli.report import Report, Section
from pyg_sparse.cli.rival import rival_name
from pyg_sparse.cli.survey import Product, Survey, products, survey


def add(commands: Any) -> None:
    parser = add_command(commands, "bench", "measure every candidate against torch.sparse.mm", _look)
    parser.add_argument(
        "--budget-ms", type=options.positive, default=20.0, metavar="MS", help="for each measurement; default: 20"
    )


def _look(graph: LoadedGraph, args: argparse.Namespace) -> Report:
    found = survey(graph, products(args.widths, args.dtypes), args.device)
    measured = measure(found, args.budget_ms)
    title = headline(graph, args.device)
    regrets = {product: _regret(found, measured, product) for product in found.products}
    rival = rival_name(args.device)
    sections = [
        Section(title, [_sentence(found, measured, product, regrets[product]) for product in found.products]),
        *(_section(found, measured, product, rival) for product in found.products),
    ]
    facts = {
        "command": "bench",
        **facts_of(graph, args.device),
        "rival": rival,
        "products": [
            {
                **product.as_dict(),
                "auto": found.auto(product).as_dict(),
                "regret": regrets[product],
                "rival_ms": measured.rival_ms[product],
                "rival_problem": measured.rival_problem.get(product),
                "candidates": _facts(found, measured, product),
            }
            for product in found.products
        ],
    }
    times = drawing.of_survey(title, found, measured.ms)
    return Report(f"bench {graph.name}", facts, sections, times, failed=measured.wrong())


def _regret(found: Survey, measured: Measured, product: Product) -> float:
    """How much longer the automatic choice takes than the fastest candidate, as a share."""
    fastest = min(measured.ms[entry.candidate, product] for entry in found.scored)
    return measured.ms[found.auto(product), product] / fastest - 1.0


def _sentence(found: Survey, measured: Measured, product: Product, regret: float) -> str:
    auto = found.auto(product)
    behind = f"{regret:.1%} slower than the fastest" if regret > 0 else "the fastest"
    line = f"{product}: plan() takes {auto}: {text.ms(measured.ms[auto, product])} ms, {behind}"
    rival = measured.rival_ms[product]
    return (
        line if rival is None else f"{line}, {rival / measured.ms[auto, product]:.2f} times as fast as torch.sparse.mm"
    )


def _facts(found: Survey, measured: Measured, product: Product) -> list[dict[str, Any]]:
    rival = measured.rival_ms[product]
    facts = []
    for entry in found.scored:
        ms = measured.ms[entry.candidate, product]
        error = measured.error[entry.candidate, product]
        prediction = entry.predicted.get(product.case)
        facts.append(
            {
                **entry.candidate.as_dict(),
                "predicted_ms": prediction.ms if prediction else None,
                "measured_ms": ms,
                "speedup": rival / ms if rival else None,
                "error": error if math.isfinite(error) else None,
            }
        )
    return sorted(facts, key=lambda fact: fact["measured_ms"])


def _section(found: Survey, measured: Measured, product: Product, rival: str) -> Section:
    rival_ms = measured.rival_ms[product]
    rows: list[tuple[float, list[str]]] = []
    for entry in found.scored:
        ms = measured.ms[entry.candidate, product]
        name, _, order = str(entry.candidate).partition(", rows by ")
        prediction = entry.predicted.get(product.case)
        mark = " *" if entry.candidate == found.auto(product) else ""
        rows.append(
            (
                ms,
                [
                    name,
                    order + mark,
                    text.ms(prediction.ms) if prediction else "-",
                    text.ms(ms),
                    f"{rival_ms / ms:.2f}" if rival_ms else "-",
                    f"{measured.error[entry.candidate, product]:.1e}",
                ],
            )
        )
    lines = ["* what plan() takes"]
    if rival_ms is not None:
        rows.append((rival_ms, [rival, "", "", text.ms(rival_ms), "1.00", ""]))
    else:
        lines.append(f"{rival} does not run: {measured.rival_problem[product]}")
    table = [row for _, row in sorted(rows, key=lambda row: row[0])]
    header = ["format", "rows by", "predicted ms", "measured ms", "speed-up", "error"]
    return Section(f"{product}, a forward product", lines, [header, *table], right=(2, 3, 4, 5))
