"""What inspect, plan and bench have in common: load the graph, look at it, show what was found."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from pyg_sparse.cli.errors import Failure, UsageError
from pyg_sparse.cli.graph import LoadedGraph, load_graph
from pyg_sparse.cli.options import add_common
from pyg_sparse.cli.page import page
from pyg_sparse.cli.report import Report
from pyg_sparse.cli.show import show
from pyg_sparse.planner.device import device_name
from pyg_sparse.planner.store import Store

Look = Callable[[LoadedGraph, argparse.Namespace], Report]


def add_command(commands: Any, name: str, what: str, look: Look) -> argparse.ArgumentParser:
    """The parser of a command that looks at a graph, for arguments of its own."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=what, description=what)
    add_common(parser)
    parser.set_defaults(run=lambda args: _run(look, args))
    return parser


def headline(graph: LoadedGraph, device: torch.device) -> str:
    """The graph and the device in a line."""
    return (
        f"{graph.name}: {graph.num_src:,} sources -> {graph.num_dst:,} targets, {graph.edge_index.size(1):,} edges; "
        f"on {device} ({device_name(device)})"
    )


def facts_of(graph: LoadedGraph, device: torch.device) -> dict[str, Any]:
    about = {"name": graph.name, "num_src": graph.num_src, "num_dst": graph.num_dst}
    about["num_edges"] = graph.edge_index.size(1)
    return {"graph": about, "device": str(device), "device_name": device_name(device)}


def _run(look: Look, args: argparse.Namespace) -> int:
    try:
        Store.default()
    except ValueError as problem:  # of the environment
        raise UsageError(problem) from None
    report = look(load_graph(args.graph, args.root), args)
    show(report, as_json=args.json)
    if args.plot is not None:
        from pyg_sparse.cli.picture import save

        _write(args.plot, lambda: save(report.drawing, args.plot))
    if args.html is not None:
        _write(args.html, lambda: args.html.write_text(page(report), encoding="utf-8"))
    if report.failed:
        raise Failure(report.failed)
    return 0


def _write(path: Path, write: Callable[[], object]) -> None:
    try:
        write()
    except OSError as problem:
        raise Failure(f"{path} cannot be written: {problem.strerror or problem}") from None
    print(f"wrote {path}", file=sys.stderr)
