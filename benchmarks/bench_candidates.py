"""Every candidate of the planner on many graphs: what the cost model is fitted to.

    python -m benchmarks.bench_candidates --root DATA
    python -m benchmarks.bench_candidates --only grid power --widths 8 32 128 --device cpu

Forward products over a 0/1 matrix; results are compared with those of the first candidate. The file:
benchmarks/corpus_file.py.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks import check, corpus_file, measure, results
from benchmarks.corpus import Member, corpus
from benchmarks.graphs import Graph
from benchmarks.options import DTYPES
from pyg_sparse.formats import Rows, rows_from_edges
from pyg_sparse.order import arrange
from pyg_sparse.planner.candidates import candidate_specs, describe_spec
from pyg_sparse.planner.device import measure as measure_device
from pyg_sparse.planner.device import product
from pyg_sparse.planner.lengths import Lengths
from pyg_sparse.planner.orders import candidate_orders
from pyg_sparse.planner.profile import order_profile
from pyg_sparse.planner.timing import samples_of
from pyg_sparse.planner.work import work_of

_EVERY_FORMAT = ("degree", "given", "community, 8 rounds")  # orders; the others are measured with csr alone
_WRITE_EVERY = 60.0  # seconds


def main(argv: Sequence[str] | None = None) -> None:
    argv = sys.argv[1:] if argv is None else argv
    arguments = _arguments(argv)
    device = torch.device(arguments.device)
    path = arguments.out or results.device_folder(device) / "candidates.json"
    speeds = measure_device(device).as_dict()
    print(speeds, flush=True)
    command = results.command("benchmarks.bench_candidates", argv)
    meta = results.collect_meta(device, command, [arguments.seed], speeds=speeds)
    members = corpus(arguments.root, arguments.seed, device, arguments.largest)
    if arguments.only:
        members = [m for m in members if any(m.name.startswith(name) for name in arguments.only)]
    found: list[dict[str, Any]] = []
    written = time.monotonic()
    for member in members:
        try:
            found.append(measure_member(member, arguments))
        except Exception as error:  # what cannot be measured is a result; the others go on
            found.append({"graph": member.name, "group": member.group, "times": [], "why": measure.reason(error)})
        print(member.name, found[-1].get("why", len(found[-1]["times"])), flush=True)
        measure.free(device)
        if time.monotonic() > written + _WRITE_EVERY or member is members[-1]:
            _write(path, meta, found)
            written = time.monotonic()
    print(f"\nwrote {path}")


def measure_member(member: Member, arguments: argparse.Namespace) -> dict[str, Any]:
    graph = member.make()
    src, dst = graph.edge_index
    rows = rows_from_edges(dst, src, graph.num_dst, graph.num_src, keep_slots=False)
    t_rows = rows_from_edges(src, dst, graph.num_src, graph.num_dst, keep_slots=False)
    lengths = Lengths.of(rows)
    found: dict[str, Any] = {
        "graph": member.name, "group": member.group, "source": graph.source, "num_rows": graph.num_dst,
        "num_cols": graph.num_src, "nnz": graph.num_edges, "orders": {}, "specs": {}, "times": [],
    }  # fmt: skip
    first: dict[str, Tensor] = {}
    for name, order in candidate_orders(rows, t_rows):
        profile = order_profile(rows, order)
        arranged = arrange(rows, order)
        specs = candidate_specs(rows.num_rows, rows.nnz, on_cuda=rows.col.is_cuda)
        for spec in specs if name in _EVERY_FORMAT else specs[:1]:
            work = work_of(spec, rows.num_cols, lengths, profile, name)
            found["specs"][describe_spec(spec)] = corpus_file.sizes(work)
            if spec is specs[0]:
                found["orders"][name] = corpus_file.order_of(work)
            times = _times(graph, arranged, spec, arguments, first)
            found["times"] += [[name, describe_spec(spec), *entry] for entry in times]
    return found


def _times(graph: Graph, rows: Rows, spec: Any, arguments: argparse.Namespace, first: dict[str, Tensor]) -> list[list]:
    """dtype, width, median, least and number of repeats; None for the times where the format or result is wrong."""
    matrix = spec.build(rows)
    found: list[list] = []
    for dtype in arguments.dtypes:
        for k in arguments.widths:
            try:
                x = _features(graph, k, DTYPES[dtype], arguments.seed)
                if k == arguments.widths[0]:
                    out = product(matrix, x)
                    error = check.relative_error(out, first.setdefault(dtype, out.double()))
                    if error > check.TOLERANCE[DTYPES[dtype]]:
                        raise ValueError(f"wrong by {error}")
                samples = samples_of(lambda: product(matrix, x), x.device, arguments.budget_ms)  # noqa: B023
                least = results.short(min(samples))
                found.append([dtype, k, results.short(statistics.median(samples)), least, len(samples)])
            except torch.OutOfMemoryError:
                found.append([dtype, k, None, None, 0])
    return found


def _features(graph: Graph, k: int, dtype: torch.dtype, seed: int) -> Tensor:
    generator = torch.Generator(graph.edge_index.device).manual_seed(seed)
    return torch.randn(graph.num_src, k, device=graph.edge_index.device, generator=generator).to(dtype)


def _write(path: Path, meta: dict[str, Any], graphs: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    lines = ",\n".join(json.dumps(graph) for graph in graphs)
    temporary.write_text(f'{{"meta": {json.dumps(meta)},\n"graphs": [\n{lines}\n]}}\n')
    temporary.replace(path)


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bench_candidates", description=__doc__.partition("\n")[0]
    )
    add = parser.add_argument
    data = os.environ.get("PYG_SPARSE_DATA")
    cuda = torch.cuda.is_available()
    add("--root", type=Path, default=data and Path(data), help="folder of real matrices; default: $PYG_SPARSE_DATA")
    add("--widths", nargs="+", type=int, default=[8, 1, 32, 128, 256] if cuda else [8, 1, 32, 128])
    add("--dtypes", nargs="+", choices=DTYPES, default=["float32"])
    add("--only", nargs="+", default=[], metavar="NAME", help="graphs whose names begin so")
    add("--largest", type=int, default=1 << (27 if cuda else 21), help="entries of a graph")
    add("--seed", type=int, default=0)
    add("--budget-ms", type=float, default=12.0, help="longest time for the repeats of one measurement")
    add("--device", default="cuda" if cuda else "cpu")
    add("--out", type=Path, help="default: benchmarks/results/<device>/candidates.json")
    return parser.parse_args(argv)


if __name__ == "__main__":
    main()
