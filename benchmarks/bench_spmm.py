"""SpMM by format against cuSPARSE's algorithms, torch.sparse, SciPy, PyG and others, in one process on one graph.

    python -m benchmarks.bench_spmm --graphs reddit arxiv --widths 8 32 128 256
    python -m benchmarks.bench_spmm --graphs mtx:matrix.mtx --device cpu --values implicit explicit

Every result is checked against an fp64 reference before it is timed. The fields: benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import torch

from benchmarks import check, contenders, cpu_peers, graphs, measure, options, spmm_problem
from benchmarks.journal import Journal
from benchmarks.results import Row
from benchmarks.tables import comparison


def main(argv: Sequence[str] | None = None) -> None:
    argv = sys.argv[1:] if argv is None else argv
    arguments = _arguments(argv)
    device_type = torch.device(arguments.device).type
    entries = contenders.rivals(arguments.rivals, device_type) + contenders.ours(arguments.formats, arguments.hyb)
    if arguments.external:
        entries += contenders.external(arguments.external)
    journal = Journal.start("spmm", argv, arguments)
    device, speeds = journal.device, journal.speeds

    timer = measure.Timer(device, arguments.repeats, arguments.seconds)
    measure.warm_up(entries, spmm_problem.make(measure.small_graph(device), "fwd", "implicit", 32, torch.float32, 0))
    rows: list[Row] = []
    for spec in arguments.graphs:
        graph = graphs.load(spec, arguments.scale, arguments.seed, device)
        variants = product(arguments.threads or [None], arguments.dtypes, arguments.directions, arguments.values)
        for threads, dtype, direction, values in variants:
            first = len(rows)
            if threads:
                torch.set_num_threads(threads)
            for k in arguments.widths:
                problem = spmm_problem.make(graph, direction, values, k, options.DTYPES[dtype], arguments.seed)
                common = {"bench": "spmm", **spmm_problem.describe(problem, speeds)}
                if threads:  # the limit is that of torch's own number of threads
                    common |= {"threads": threads, "limit_ms": None}
                rows += measure.measure_all(entries, problem, check.reference(problem), timer, common)
                journal.write(rows)
                del problem
            print(f"\n{comparison(rows[first:])}", flush=True)
        del graph
        measure.free(device)
    print(f"\nwrote {journal.path}")


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = options.parser(
        "bench_spmm", __doc__.partition("\n")[0], widths=[8, 32, 128, 256], hyb=[1, 2, 4], file="spmm.json"
    )
    add = parser.add_argument
    add("--directions", nargs="+", choices=["fwd", "bwd"], default=["fwd", "bwd"])
    add("--values", nargs="+", choices=["implicit", "explicit", "constant"], default=["implicit"])
    add(
        "--rivals",
        nargs="*",
        choices=["torch", "cusparse", "scipy", "scatter", *cpu_peers.PEERS],
        help="default: torch cusparse on CUDA, torch scipy scatter on the CPU and, if installed, "
        + " ".join(cpu_peers.PEERS),
    )
    add("--threads", nargs="+", type=int, help="of the CPU, one count after the other; default: torch's")
    add(
        "--external", type=Path, metavar="FOLDER", help="folder of rivals' shared libraries, see benchmarks/external.py"
    )
    on_cpu = ["torch", "scipy", "scatter", *cpu_peers.installed()]
    return options.parse(parser, argv, on_cuda=["torch", "cusparse"], on_cpu=on_cpu)


if __name__ == "__main__":
    main()
