"""SpMM by format against cuSPARSE's algorithms, torch.sparse, SciPy and PyG, all in one process on one graph.

    python -m benchmarks.bench_spmm --graphs reddit arxiv --widths 8 32 128 256
    python -m benchmarks.bench_spmm --graphs mtx:matrix.mtx --device cpu --values implicit explicit

Every result is checked against an fp64 reference before it is timed. The fields: benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks import bandwidth, check, contenders, cusparse, graphs, results
from benchmarks.contenders import Contender, Problem
from benchmarks.results import Row
from benchmarks.tables import spmm_case
from benchmarks.timing import elapsed_ms, time_cpu, time_cuda, time_cuda_graph
from pyg_sparse.formats import SPECS

DTYPES = {str(dtype).removeprefix("torch."): dtype for dtype in check.TOLERANCE}
DEVICE_TIME_BELOW_MS = 1.0


@dataclass(frozen=True)
class Timer:
    """At least three repeats; fewer than asked for where those would take longer than `seconds`."""

    device: torch.device
    repeats: int
    seconds: float

    @property
    def on_cuda(self) -> bool:
        return self.device.type == "cuda"

    def samples(self, run: Callable[[], Tensor]) -> list[float]:
        _, once = elapsed_ms(run, self.device)
        repeats = max(3, min(self.repeats, int(self.seconds * 1e3 / once)))
        time = time_cuda if self.on_cuda else time_cpu
        return time(run, warmup=min(3, repeats), repeats=repeats)


def main(argv: Sequence[str] | None = None) -> None:
    argv = sys.argv[1:] if argv is None else argv
    arguments = _arguments(argv)
    device = torch.device(arguments.device)
    if device.type == "cuda":
        torch.cuda.set_device(device.index or 0)
    entries = contenders.rivals(arguments.rivals) + contenders.ours(arguments.formats, arguments.hyb)
    path = arguments.out or results.device_folder(device) / "spmm.json"

    speeds = bandwidth.measure(device)
    meta = results.collect_meta(
        device, results.command("benchmarks.bench_spmm", argv), [arguments.seed], bandwidth=speeds
    )
    if device.type == "cuda":
        meta["cusparse"] = cusparse.version(device)
    if arguments.append:
        results.merge(path, meta, [])  # refuse another commit or machine before, not after, measuring
    print(f"{meta['device']}, torch {meta['torch']}, {speeds}", flush=True)

    timer = Timer(device, arguments.repeats, arguments.seconds)
    _warm_up(entries, device)
    rows: list[Row] = []
    for spec in arguments.graphs:
        graph = graphs.load(spec, arguments.scale, arguments.seed, device)
        for dtype, direction, values in product(arguments.dtypes, arguments.directions, arguments.values):
            first = len(rows)
            for k in arguments.widths:
                problem = _problem(graph, direction, values, k, DTYPES[dtype], arguments.seed)
                rows += _measure_all(entries, problem, timer, speeds)
                results.write(path, *(results.merge(path, meta, rows) if arguments.append else (meta, rows)))
                del problem
            print(f"\n{spmm_case(rows[first:])}", flush=True)
        del graph
        _free(timer)
    print(f"\nwrote {path}")


def _measure_all(entries: Sequence[Contender], problem: Problem, timer: Timer, speeds: dict[str, Any]) -> Iterator[Row]:
    common = _describe(problem, speeds)
    expected = check.reference(problem)
    for contender in entries:
        row = {**common, "impl": contender.impl, "format": contender.format}
        try:
            row |= _measure(contender, problem, expected, timer)
        except Exception as error:  # what cannot be measured is a result; the others go on
            row |= results.failed(_reason(error))
        if row["ms"] is None:
            _free(timer)
        yield row


def _measure(contender: Contender, problem: Problem, expected: Tensor, timer: Timer) -> Row:
    with torch.no_grad(), contender.prepare(problem) as prepared:
        # Freed at once: an output allocated next takes this block, so what it does not write stays NaN.
        problem.new_out()
        before = torch.cuda.memory_allocated() if timer.on_cuda else 0
        if timer.on_cuda:
            torch.cuda.reset_peak_memory_stats()
        out = prepared.run()
        preprocess = prepared.preprocess_ms
        row: Row = {"preprocess_ms": preprocess and results.short(preprocess), "peak_mb": None}
        if timer.on_cuda:
            extra = torch.cuda.max_memory_allocated() - before
            row["peak_mb"] = results.short((prepared.structure_bytes + extra) / 1e6)
        row["error"] = results.short(check.relative_error(out, expected))
        del out
        if row["error"] > check.TOLERANCE[problem.x.dtype]:
            return row | results.failed(f"wrong: relative error {row['error']:.1e}")
        row |= results.timed(timer.samples(prepared.run))
        if timer.on_cuda and row["ms"] < DEVICE_TIME_BELOW_MS:
            with suppress(RuntimeError):  # not every library call can be captured
                row["device_ms"] = results.short(statistics.median(time_cuda_graph(prepared.run, timer.repeats)))
        return row


def _describe(problem: Problem, speeds: dict[str, Any]) -> Row:
    graph, matrix, x = problem.graph, problem.matrix, problem.x
    value_bytes = problem.weight.nbytes if problem.weight is not None else 0
    out_bytes = matrix.num_rows * x.size(1) * x.itemsize
    bytes_min = x.nbytes + out_bytes + matrix.rowptr.nbytes + matrix.col.nbytes + value_bytes
    gather_bytes = graph.num_edges * x.size(1) * x.itemsize
    limits = bytes_min / speeds["copy_gbs"], gather_bytes / speeds["gather_gbs"]
    return {
        "bench": "spmm",
        "graph": graph.name,
        "source": graph.source,
        "scale": graph.scale,
        "num_nodes": max(graph.num_src, graph.num_dst),
        "num_edges": graph.num_edges,
        "op": "spmm",
        "k": x.size(1),
        "dtype": str(x.dtype).removeprefix("torch."),
        "direction": problem.direction,
        "values": "implicit" if problem.weight is None else "explicit",
        "bytes_min": bytes_min,
        "gather_bytes": gather_bytes,
        "limit_ms": results.short(max(limits) / 1e6),
    }


def _problem(graph: graphs.Graph, direction: str, values: str, k: int, dtype: torch.dtype, seed: int) -> Problem:
    device = graph.edge_index.device
    generator = torch.Generator(device).manual_seed(seed)
    num_cols = graph.num_src if direction == "fwd" else graph.num_dst
    x = torch.randn(num_cols, k, device=device, generator=generator).to(dtype)
    explicit = values == "explicit"
    weight = torch.randn(graph.num_edges, device=device, generator=generator).to(dtype) if explicit else None
    return Problem(graph, direction, x, weight)


def _warm_up(entries: Sequence[Contender], device: torch.device) -> None:
    """Load every library and kernel, so that no preprocessing time includes it."""
    edge_index = torch.randint(1000, (2, 20_000), device=device)
    problem = _problem(
        graphs.Graph("warm-up", "exact", edge_index, 1000, 1000), "fwd", "implicit", 32, torch.float32, 0
    )
    for contender in entries:
        with suppress(Exception), torch.no_grad(), contender.prepare(problem) as prepared:
            prepared.run()  # a failure is reported where it is measured


def _free(timer: Timer) -> None:
    gc.collect()
    if timer.on_cuda:
        torch.cuda.synchronize()  # raises if a kernel has broken the context: nothing more can be measured
        torch.cuda.empty_cache()


def _reason(error: Exception) -> str:
    if isinstance(error, torch.OutOfMemoryError):
        return "out of memory"
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"[:200]


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_spmm", description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add(
        "--graphs",
        nargs="+",
        default=["reddit", "arxiv", "products", "proteins"],
        help="synthetic shapes, mtx:PATH or npz:PATH",
    )
    add("--widths", nargs="+", type=int, default=[8, 32, 128, 256])
    add("--dtypes", nargs="+", choices=DTYPES, default=["float32"])
    add("--directions", nargs="+", choices=["fwd", "bwd"], default=["fwd", "bwd"])
    add("--values", nargs="+", choices=["implicit", "explicit"], default=["implicit"])
    add("--formats", nargs="*", choices=["auto", *SPECS], default=list(SPECS))
    add("--hyb", nargs="+", type=int, default=[1, 2, 4], help="partition counts of hyb")
    add(
        "--rivals",
        nargs="*",
        choices=["torch", "cusparse", "scipy", "scatter"],
        help="default: torch cusparse on CUDA, torch scipy scatter on the CPU",
    )
    add("--scale", type=float, help="of synthetic shapes; default 1 on CUDA, 0.05 on the CPU")
    add("--seed", type=int, default=0)
    add("--repeats", type=int, default=20)
    add("--seconds", type=float, default=4.0, help="longest time for the repeats of one measurement")
    add("--device", default="auto")
    add("--out", type=Path, help="default: benchmarks/results/<device>/spmm.json")
    add("--append", action="store_true", help="keep the rows in the file, of the same commit and machine")
    arguments = parser.parse_args(argv)
    if arguments.device == "auto":
        arguments.device = "cuda" if torch.cuda.is_available() else "cpu"
    on_cuda = arguments.device.startswith("cuda")
    if arguments.rivals is None:
        arguments.rivals = ["torch", "cusparse"] if on_cuda else ["torch", "scipy", "scatter"]
    if arguments.scale is None:
        arguments.scale = 1.0 if on_cuda else 0.05
    return arguments


if __name__ == "__main__":
    main()
