"""SpMV and SpMM over 60 SuiteSparse matrices, real, exact or twins, against cuSPARSE and torch.sparse.

    python -m benchmarks.bench_suite --root DATA
    python -m benchmarks.bench_suite --only Bai_cdde2 Watson_Baumann --widths 1 32 --device cpu

Every result is checked against an fp64 reference before it is timed. The fields: benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from benchmarks import check, contenders, measure, results, spmm_problem
from benchmarks.contenders import Contender, Problem
from benchmarks.journal import Journal
from benchmarks.results import Row
from benchmarks.suite_graphs import suite
from benchmarks.suite_tables import overview
from benchmarks.timing import elapsed_ms, time_cpu, time_cuda, time_cuda_graph, time_host

_HOST_CALLS = 200  # few enough for a device's queue to take them all
_GRAPH_CALLS = 10


class Timer(measure.Timer):
    """Three times of each call. A call that alone takes `seconds` is not repeated: most here take microseconds."""

    def times(self, run: Callable[[], Any]) -> Row:
        _, once = elapsed_ms(run, self.device)
        affordable = max(1, int(self.seconds * 1e3 / once))
        time = time_cuda if self.on_cuda else time_cpu
        row = results.timed(time(run, warmup=min(2, affordable - 1), repeats=min(self.repeats, affordable)))
        row["host_ms"] = results.short(time_host(run, min(_HOST_CALLS, affordable)))
        if self.on_cuda:
            torch.cuda.synchronize(self.device)
            row["device_ms"] = self._device_ms(run, row["ms"])
        return row

    def _device_ms(self, run: Callable[[], Any], ms: float) -> float | None:
        if ms >= measure.DEVICE_TIME_BELOW_MS:
            return ms  # the device is the slower side: events around the call see nothing else
        with suppress(RuntimeError):  # not every library call can be captured
            replays = max(3, min(self.repeats, int(self.seconds * 1e3 / (_GRAPH_CALLS * ms))))
            return results.short(statistics.median(time_cuda_graph(run, replays, _GRAPH_CALLS)))
        return None


def main(argv: Sequence[str] | None = None) -> None:
    argv = sys.argv[1:] if argv is None else argv
    arguments = _arguments(argv)
    journal = Journal.start("suite", argv, arguments)
    device, speeds = journal.device, journal.speeds

    entries = {k: _contenders(k, device, arguments.external) for k in arguments.widths}
    small = measure.small_graph(device)
    for k in arguments.widths:
        measure.warm_up(entries[k], spmm_problem.make(small, "fwd", "implicit", k, torch.float32, arguments.seed))

    timer = Timer(device, arguments.repeats, arguments.seconds)
    rows: list[Row] = []
    for graph in suite(arguments.root, arguments.seed, arguments.only, device):
        first = len(rows)
        for k in arguments.widths:
            problem = spmm_problem.make(graph, "fwd", "implicit", k, torch.float32, arguments.seed)
            size = {"num_rows": graph.num_dst, "num_cols": graph.num_src}
            common = {"bench": "suite", **spmm_problem.describe(problem, speeds), **size}
            rows += measure.measure_all(entries[k], problem, check.reference(problem), timer, common)
            del problem
        journal.write(rows)
        print(overview(rows[first:]), flush=True)
        del graph
        measure.free(device)
    print(f"\nwrote {journal.path}")


def _contenders(k: int, device: torch.device, external: Path | None) -> list[Contender[Problem]]:
    """One column is SpMV, for which cuSPARSE has functions of its own."""
    names = ["torch", "spmv" if k == 1 else "cusparse"] if device.type == "cuda" else ["torch", "scipy"]
    entries = contenders.rivals(names, device.type) + contenders.ours(["auto"], [])
    return entries + (contenders.external(external) if external else [])


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_suite", description=__doc__.partition("\n")[0])
    add = parser.add_argument
    data = os.environ.get("PYG_SPARSE_DATA")
    add("--root", type=Path, default=data and Path(data), help="folder of real matrices; default: $PYG_SPARSE_DATA")
    add("--widths", nargs="+", type=int, default=[1, 8, 32, 128, 256])
    add("--only", nargs="+", default=[], metavar="NAME", help="matrices, as in benchmarks/suitesparse60.csv")
    add("--seed", type=int, default=0)
    add("--repeats", type=int, default=20)
    add("--seconds", type=float, default=0.05, help="longest time for the repeats of one measurement")
    add("--external", type=Path, metavar="FOLDER", help="folder of rivals' libraries, see benchmarks/external.py")
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    add("--out", type=Path, help="default: benchmarks/results/<device>/suite.json")
    add("--append", action="store_true", help="keep the rows in the file, of the same commit and machine")
    return parser.parse_args(argv)


if __name__ == "__main__":
    main()
