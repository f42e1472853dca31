"""Time a function; every function returns the raw samples in milliseconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch


def time_cpu(fn: Callable[[], Any], warmup: int = 5, repeats: int = 20) -> list[float]:
    """Wall-clock time of each call."""
    for _ in range(warmup):
        fn()
    samples = []
    for _ in range(repeats):
        start = time.perf_counter()
        fn()
        samples.append((time.perf_counter() - start) * 1e3)
    return samples


def time_cuda(fn: Callable[[], Any], warmup: int = 5, repeats: int = 20) -> list[float]:
    """Time between two events around each call, all queued without waiting in between.

    A call that takes the host longer to launch than the device to run is measured at the host's pace;
    `time_cuda_graph` measures the device alone.
    """
    for _ in range(warmup):
        fn()
    events = [(_event(), _event()) for _ in range(repeats)]
    for start, end in events:
        start.record()
        fn()
        end.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) for start, end in events]


def time_cuda_graph(fn: Callable[[], Any], repeats: int = 20, calls: int = 10) -> list[float]:
    """Device time of a call: each sample is a replay of a CUDA graph of `calls` calls, divided by `calls`."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        fn()  # lazily created handles and workspaces must exist before the capture
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            fn()
    return [sample / calls for sample in time_cuda(graph.replay, warmup=2, repeats=repeats)]


def time_host(fn: Callable[[], Any], calls: int) -> float:
    """Time the host takes for a call when it waits for no result: a loop of calls, divided by their number.

    A device's queue holds about a thousand launches; with more than that waiting, the device's time would show.
    """
    start = time.perf_counter()
    for _ in range(calls):
        fn()
    return (time.perf_counter() - start) * 1e3 / calls


def elapsed_ms(fn: Callable[[], Any], device: torch.device) -> tuple[Any, float]:
    """The result and the wall-clock time of a single call, device work included."""
    _synchronize(device)
    start = time.perf_counter()
    result = fn()
    _synchronize(device)
    return result, (time.perf_counter() - start) * 1e3


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
