"""python -m pyg_sparse plan GRAPH"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from torch import Tensor

import pyg_sparse
from pyg_sparse.cli import drawing, options, text
from pyg_sparse.cli.command import add_command, facts_of, headline
from pyg_sparse.cli.errors import Failure
from pyg_sparse.cli.graph import LoadedGraph
from pyg_sparse.cli.progress import Progress
from pyg_sparse.cli.report import Report, Section
from pyg_sparse.plan import MODES
from pyg_sparse.planner.cases import cases_for
from pyg_sparse.planner.decide import Wanted, is_decided
from pyg_sparse.planner.remember import Memory
from pyg_sparse.planner.tune import Step


def add(commands: Any) -> None:
    parser = add_command(commands, "plan", "choose a graph's formats, build them, and remember the choice", _look)
    parser.add_argument("--mode", choices=MODES, default="auto", help="auto: predict; tune: measure; default: auto")
    parser.add_argument(
        "--budget",
        type=options.positive,
        default=2.0,
        metavar="SECONDS",
        help="of --mode tune, a direction; default: 2",
    )
    parser.add_argument("--no-cache", action="store_true", help="neither read nor write the cache on disk")
    parser.add_argument("--out", type=options.writable, metavar="FILE", help="save the plan, for Plan.load")


def _look(graph: LoadedGraph, args: argparse.Namespace) -> Report:
    edge_index = graph.edge_index.to(args.device)
    memory = _memory(edge_index, graph, args)
    had = isinstance(memory, Memory) and memory.holds()
    start = time.perf_counter()
    with Progress() as progress:
        plan = pyg_sparse.plan(
            edge_index,
            (graph.num_src, graph.num_dst),
            mode=args.mode,
            widths=args.widths,
            dtypes=args.dtypes,
            budget=args.budget,
            cache=not args.no_cache,
            progress=lambda step: progress.step(step.done, step.planned, _step(step)),
        )
    seconds = time.perf_counter() - start
    cached = _cached(memory, had)
    if args.out is not None:
        _save(plan, args.out)
    title = headline(graph, args.device)
    facts = {
        "command": "plan",
        **facts_of(graph, args.device),
        "mode": args.mode,
        "seconds": seconds,
        "cache": cached,
        "plan": plan.describe(),
        "choice": dict(plan.report),
        "out": None if args.out is None else str(args.out),
    }
    done = [f"planned in {seconds:.3g} s; the cache: {cached}"]
    if args.out is not None:
        done.append(f"saved as {args.out}, {text.size(args.out.stat().st_size)}")
    sections = [
        Section(title, done),
        Section("Plan", str(plan).splitlines()),
        Section("Why", plan.explain().splitlines()),
    ]
    return Report(f"plan {graph.name}", facts, sections, drawing.of_plan(title, plan))


def _memory(edge_index: Tensor, graph: LoadedGraph, args: argparse.Namespace) -> Memory | str:
    """What the cache keeps of such plans, or why it keeps nothing."""
    cases = cases_for(args.widths, args.dtypes)
    wanted = Wanted("auto", None, cases, args.budget if args.mode == "tune" else None)
    if args.no_cache:
        return "not used"
    if is_decided(wanted, edge_index.size(1)):
        return "not needed, nothing was chosen"
    return Memory.of(edge_index, graph.num_src, graph.num_dst, wanted, True) or "off"


def _cached(memory: Memory | str, had: bool) -> str:
    """``had``: before the plan was made."""
    if isinstance(memory, str):
        return memory
    if had:
        return "had the choice"
    return "has the choice from now on" if memory.holds() else "the choice could not be kept"


def _save(plan: pyg_sparse.Plan, path: Path) -> None:
    try:
        plan.save(path)
    except OSError as problem:
        raise Failure(f"{path} cannot be written: {problem.strerror or problem}") from None


def _step(step: Step) -> str:
    times = ", ".join(f"{case}: {text.ms(ms)} ms" for case, ms in step.measured.items())
    return f"{step.candidate}: {times}"
