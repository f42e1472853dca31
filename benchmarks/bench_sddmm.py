"""SDDMM by format against cuSPARSE, torch.sparse.sampled_addmm and others, all in one process on one graph.

    python -m benchmarks.bench_sddmm --graphs reddit arxiv --widths 32 128
    python -m benchmarks.bench_sddmm --graphs mtx:matrix.mtx --device cpu

Every result is checked against an fp64 reference before it is timed. The fields: benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks import check, graphs, measure, options, sddmm_contenders
from benchmarks.journal import Journal
from benchmarks.results import Row
from benchmarks.sddmm_contenders import SddmmProblem
from benchmarks.tables import comparison

_SLOT_BYTES = 4  # int32: the edge of each entry


def main(argv: Sequence[str] | None = None) -> None:
    argv = sys.argv[1:] if argv is None else argv
    arguments = _arguments(argv)
    entries = sddmm_contenders.rivals(arguments.rivals) + sddmm_contenders.ours(arguments.formats, arguments.hyb)
    if arguments.external:
        entries += sddmm_contenders.external(arguments.external)
    journal = Journal.start("sddmm", argv, arguments)
    device, speeds = journal.device, journal.speeds

    timer = measure.Timer(device, arguments.repeats, arguments.seconds)
    measure.warm_up(entries, _problem(measure.small_graph(device), 32, torch.float32, 0))
    rows: list[Row] = []
    for spec in arguments.graphs:
        graph = graphs.load(spec, arguments.scale, arguments.seed, device)
        for dtype in arguments.dtypes:
            first = len(rows)
            for k in arguments.widths:
                problem = _problem(graph, k, options.DTYPES[dtype], arguments.seed)
                expected = check.sddmm_reference(problem)
                rows += measure.measure_all(entries, problem, expected, timer, _describe(problem, speeds))
                journal.write(rows)
                del problem, expected
            print(f"\n{comparison(rows[first:])}", flush=True)
        del graph
        measure.free(device)
    print(f"\nwrote {journal.path}")


def _describe(problem: SddmmProblem, speeds: dict[str, Any]) -> Row:
    graph, matrix, q, key = problem.graph, problem.matrix, problem.q, problem.key
    structure = matrix.rowptr.nbytes + matrix.col.nbytes + graph.num_edges * _SLOT_BYTES
    return {
        "bench": "sddmm",
        **measure.describe(graph),
        "op": "sddmm",
        "k": q.size(1),
        "dtype": str(q.dtype).removeprefix("torch."),
        "direction": "fwd",
        **measure.limits(
            bytes_min=q.nbytes + key.nbytes + structure + graph.num_edges * q.itemsize,
            gather_bytes=graph.num_edges * q.size(1) * q.itemsize,
            speeds=speeds,
        ),
    }


def _problem(graph: graphs.Graph, k: int, dtype: torch.dtype, seed: int) -> SddmmProblem:
    device = graph.edge_index.device
    generator = torch.Generator(device).manual_seed(seed)
    q, key = (
        torch.randn(num_nodes, k, device=device, generator=generator).to(dtype)
        for num_nodes in (graph.num_dst, graph.num_src)
    )
    return SddmmProblem(graph, q, key)


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = options.parser("bench_sddmm", __doc__.partition("\n")[0], widths=[32, 128], hyb=[1], file="sddmm.json")
    parser.add_argument(
        "--rivals",
        nargs="*",
        choices=["torch", "cusparse", "gather"],
        help="default: torch cusparse on CUDA, torch gather on the CPU",
    )
    parser.add_argument(
        "--external", type=Path, metavar="FOLDER", help="folder of rivals' shared libraries, see benchmarks/external.py"
    )
    return options.parse(parser, argv, on_cuda=["torch", "cusparse"], on_cpu=["torch", "gather"])


if __name__ == "__main__":
    main()
