"""How long a product takes on its device."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

_CALLS, _LEAST_REPEATS, _MOST_REPEATS = 8, 3, 9
_SHORT_MS = 1.0  # on a GPU, shorter calls are timed several at a time, so that none waits for the host


def time_product(run: Callable[[], Any], device: torch.device, budget_ms: float = 20.0) -> float:
    """Milliseconds of a call: the median of 3 to 9 repeats, as many as ``budget_ms`` allows."""
    samples = samples_of(run, device, budget_ms)
    return statistics.median(samples)


def samples_of(run: Callable[[], Any], device: torch.device, budget_ms: float) -> list[float]:
    run()
    once = _wall_ms(run, device)
    repeats = max(_LEAST_REPEATS, min(_MOST_REPEATS, int(budget_ms / max(once, 1e-3))))
    if device.type == "cpu":
        return [_wall_ms(run, device) for _ in range(repeats)]
    with torch.cuda.device(device):
        if once >= _SHORT_MS:
            return _between_events(run, repeats)
        return [ms / _CALLS for ms in _between_events(_recorded(run).replay, _MOST_REPEATS)]


def _wall_ms(run: Callable[[], Any], device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    start = time.perf_counter()
    run()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return (time.perf_counter() - start) * 1e3


def _between_events(run: Callable[[], Any], repeats: int) -> list[float]:
    run()
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(repeats)]
    for start, end in events:
        start.record()
        run()
        end.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) for start, end in events]


def _recorded(run: Callable[[], Any]) -> torch.cuda.CUDAGraph:
    """Several calls in a graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for _ in range(_CALLS):
            run()
    return graph
