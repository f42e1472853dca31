"""Contenders on one problem: each is run, checked, and only then timed. What cannot be measured is a row, too."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from benchmarks import check, results
from benchmarks.contenders import Contender
from benchmarks.graphs import Graph
from benchmarks.results import Row
from benchmarks.timing import elapsed_ms, time_cpu, time_cuda, time_cuda_graph

DEVICE_TIME_BELOW_MS = 1.0


class Problem(Protocol):
    """What a problem of any operator has."""

    @property
    def dtype(self) -> torch.dtype: ...

    def new_out(self) -> Tensor:
        """An output that shows what was not written."""


P = TypeVar("P", bound=Problem)


@dataclass(frozen=True)
class Timer:
    """At least three repeats; fewer than asked for where those would take longer than `seconds`."""

    device: torch.device
    repeats: int
    seconds: float

    @property
    def on_cuda(self) -> bool:
        return self.device.type == "cuda"

    def samples(self, run: Callable[[], Any]) -> list[float]:
        _, once = elapsed_ms(run, self.device)
        repeats = max(3, min(self.repeats, int(self.seconds * 1e3 / once)))
        time = time_cuda if self.on_cuda else time_cpu
        return time(run, warmup=min(3, repeats), repeats=repeats)

    def times(self, run: Callable[[], Any]) -> Row:
        """The time fields of a row."""
        row = results.timed(self.samples(run))
        if self.on_cuda and row["ms"] < DEVICE_TIME_BELOW_MS:
            with suppress(RuntimeError):  # not every library call can be captured
                row["device_ms"] = results.short(statistics.median(time_cuda_graph(run, self.repeats)))
        return row


def measure_all(
    entries: Sequence[Contender[P]], problem: P, expected: Tensor, timer: Timer, common: Row
) -> Iterator[Row]:
    """A row for each contender: the fields in `common`, then what was measured or why nothing was."""
    for contender in entries:
        row = {**common, "impl": contender.impl, "format": contender.format}
        try:
            row |= measure(contender, problem, expected, timer)
        except Exception as error:  # what cannot be measured is a result; the others go on
            row |= results.failed(reason(error))
        if row["ms"] is None:
            free(timer.device)
        yield row


def measure(contender: Contender[P], problem: P, expected: Tensor, timer: Timer) -> Row:
    """Times of one contender whose result is that expected in fp64; raises what the contender raises."""
    with torch.no_grad(), contender.prepare(problem) as prepared:
        # Freed at once: an output allocated next takes this block, so what it does not write stays NaN. Ours on a CPU
        # takes that of its last one.
        problem.new_out()
        if contender.impl == results.OURS and not timer.on_cuda:
            prepared.run().fill_(float("nan"))
        before = torch.cuda.memory_allocated() if timer.on_cuda else 0
        if timer.on_cuda:
            torch.cuda.reset_peak_memory_stats()
        out = prepared.run()
        preprocess = prepared.preprocess_ms
        row: Row = {"preprocess_ms": preprocess and results.short(preprocess), "peak_mb": None}
        if timer.on_cuda:
            extra = torch.cuda.max_memory_allocated() - before
            row["peak_mb"] = results.short((prepared.structure_bytes + extra) / 1e6)
        row["error"] = results.short(check.relative_error(prepared.arrange(out), expected))
        del out
        if row["error"] > check.TOLERANCE[problem.dtype]:
            return row | results.failed(f"wrong: relative error {row['error']:.1e}")
        return row | timer.times(prepared.run)


def describe(graph: Graph) -> Row:
    """A row's fields about the graph."""
    return {
        "graph": graph.name,
        "source": graph.source,
        "scale": graph.scale,
        "num_nodes": max(graph.num_src, graph.num_dst),
        "num_edges": graph.num_edges,
        **({"ordered": True} if graph.ordered else {}),
    }


def limits(bytes_min: int, gather_bytes: int, speeds: dict[str, Any]) -> Row:
    """A row's fields about what no kernel can avoid, and the time it takes."""
    ms = max(bytes_min / speeds["copy_gbs"], gather_bytes / speeds["gather_gbs"]) / 1e6
    return {"bytes_min": bytes_min, "gather_bytes": gather_bytes, "limit_ms": results.short(ms)}


def warm_up(entries: Iterable[Contender[P]], problem: P) -> None:
    """Load every library and kernel on a small problem, so that no preprocessing time includes it."""
    for contender in entries:
        with suppress(Exception), torch.no_grad(), contender.prepare(problem) as prepared:
            prepared.run()  # a failure is reported where it is measured


def small_graph(device: torch.device) -> Graph:
    """What to warm up on."""
    return Graph("warm-up", "exact", torch.randint(1000, (2, 20_000), device=device), 1000, 1000)


def free(device: torch.device) -> None:
    """Give the memory of what is no longer used back."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.synchronize()  # raises if a kernel has broken the context: nothing more can be measured
        torch.cuda.empty_cache()


def reason(error: Exception) -> str:
    """An exception in a line of a table."""
    if isinstance(error, torch.OutOfMemoryError):
        return "out of memory"
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"[:200]
