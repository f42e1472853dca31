"""What tuning leaves to be gained: the tuned choice against every candidate, measured in the same process.

    python -m benchmarks.bench_tune --root DATA --every 4

The cost model was fitted to these graphs, too; its own error is what benchmarks/fit_cost_model.py tests.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks import measure, results
from benchmarks.corpus import Member, corpus
from benchmarks.results import Row
from pyg_sparse.formats import rows_from_edges
from pyg_sparse.order import arrange
from pyg_sparse.planner.candidates import candidate_specs
from pyg_sparse.planner.cases import Case
from pyg_sparse.planner.decide import Wanted, decide
from pyg_sparse.planner.device import product
from pyg_sparse.planner.known import device_speeds
from pyg_sparse.planner.orders import candidate_orders
from pyg_sparse.planner.timing import samples_of


def main(argv: Sequence[str] | None = None) -> None:
    argv = sys.argv[1:] if argv is None else argv
    arguments = _arguments(argv)
    device = torch.device(arguments.device)
    path = arguments.out or results.device_folder(device) / "tune.json"
    meta = results.collect_meta(device, results.command("benchmarks.bench_tune", argv), [arguments.seed])
    members = corpus(arguments.root, arguments.seed, device, arguments.largest)[arguments.first :: arguments.every]
    rows: list[Row] = []
    for member in members:
        rows += measure_member(member, arguments, device)
        measure.free(device)
    results.write(path, meta, rows)
    for impl in ("auto", "tune"):
        regrets = [row["regret"] for row in rows if row["impl"] == impl]
        mean = math.exp(sum(map(math.log, regrets)) / len(regrets))
        print(f"{impl}: regret {mean:.3f}, largest {max(regrets):.2f}, of {len(regrets)} graphs")
    print(f"wrote {path}")


def measure_member(member: Member, arguments: argparse.Namespace, device: torch.device) -> list[Row]:
    graph = member.make()
    src, dst = graph.edge_index
    rows = rows_from_edges(dst, src, graph.num_dst, graph.num_src, keep_slots=False)
    t_rows = rows_from_edges(src, dst, graph.num_src, graph.num_dst, keep_slots=False)
    case = Case(arguments.width, 4)
    speeds = device_speeds(device, None)
    chosen = {
        impl: decide(rows, t_rows, Wanted("auto", None, (case,), budget), speeds).of(case)
        for impl, budget in (("auto", None), ("tune", arguments.budget))
    }
    x = torch.randn(graph.num_src, arguments.width, device=device)
    times: dict[Any, float] = {}
    specs = candidate_specs(rows.num_rows, rows.nnz, on_cuda=device.type == "cuda")
    for name, order in candidate_orders(rows, t_rows):
        arranged = arrange(rows, order)
        for spec in specs:
            matrix = spec.build(arranged)
            times[name, spec] = min(samples_of(lambda: product(matrix, x), device, 20.0))  # noqa: B023
    best = min(times, key=times.__getitem__)
    common = {
        "bench": "tune", "graph": member.name, "source": graph.source, "op": "spmm", "k": arguments.width,
        "dtype": "float32", "direction": "fwd", "best": f"{best[1]!r}, {best[0]}",
        "best_ms": results.short(times[best]),
    }  # fmt: skip
    found = []
    for impl, candidate in chosen.items():
        ms = times[candidate.order, candidate.spec]
        found.append(
            {**common, "impl": impl, "format": str(candidate), "ms": results.short(ms), "regret": ms / times[best]}
        )
    return found


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_tune", description=__doc__.partition("\n")[0])
    add = parser.add_argument
    data = os.environ.get("PYG_SPARSE_DATA")
    cuda = torch.cuda.is_available()
    add("--root", type=Path, default=data and Path(data), help="folder of real matrices; default: $PYG_SPARSE_DATA")
    add("--width", type=int, default=32)
    add("--budget", type=float, default=2.0, help="seconds of tuning")
    add("--every", type=int, default=1, help="take every N-th graph")
    add("--first", type=int, default=0, help="from this one on")
    add("--largest", type=int, default=1 << (25 if cuda else 21), help="entries of a graph")
    add("--seed", type=int, default=0)
    add("--device", default="cuda" if cuda else "cpu")
    add("--out", type=Path, help="default: benchmarks/results/<device>/tune.json")
    return parser.parse_args(argv)


if __name__ == "__main__":
    main()
