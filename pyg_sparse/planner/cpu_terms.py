"""The terms of a CPU product's predicted time, each in milliseconds at the device's speeds.

They are added up, each times a coefficient that was fitted to measured products (benchmarks/fit_cost_model.py).
"""

from __future__ import annotations

import math

from pyg_sparse.planner.device import Device
from pyg_sparse.planner.profile import WINDOWS
from pyg_sparse.planner.work import Work

TERMS = {
    "launch": "the call",
    "second pass": "a second pass, which adds up partial sums",
    "stream": "indices and results, from and to memory",
    "near": "rows of x, from a core's own cache",
    "far": "rows of x that the own cache no longer holds, from further away",
    "scattered": "results that are not written in sequence",
    "items": "the begin and the end of each item",
    "uneven": "the same, where the length is not foreseen",
    "partials": "partial sums, written and read",
}
_LINE = 64
_ITEM_NS = 5.0
# Formats and orders about which less is known must be predicted to gain more than this.
DOUBT = {"csr": 1.0, "hyb": 1.1, "coo": 1.5}
ORDER_DOUBT = 1.1  # of any but the given one


def doubt(work: Work) -> float:
    return DOUBT[work.format] * (1.0 if work.in_sequence else ORDER_DOUBT)


def kernel_class(work: Work, k: int, itemsize: int, device: Device) -> str:
    """Products that share coefficients."""
    return work.format


def terms(work: Work, k: int, itemsize: int, device: Device) -> dict[str, float]:
    near, far, copy = device.near_gbs * 1e6, device.far_gbs * 1e6, device.copy_gbs * 1e6  # bytes a millisecond
    row_bytes = k * itemsize
    lines = max(math.ceil(row_bytes / _LINE), 1) * _LINE
    out_bytes = work.num_rows * row_bytes
    streamed = work.positions * 4 + work.items * 12 + out_bytes
    beyond = missing(work, row_bytes, device.cache_bytes)
    found = {
        "launch": device.launch_ms,
        "stream": streamed / (copy if streamed > device.cache_bytes else near),
        "near": work.positions * max(row_bytes, _LINE / 2) / near,
        "far": beyond * work.nnz * lines / far,
        "items": work.items * _ITEM_NS * 1e-6 / device.cores,
        "uneven": (work.profile.steps[0] - 1.0) * work.items * _ITEM_NS * 1e-6 / device.cores,
    }
    if not work.in_sequence:
        found["scattered"] = work.num_rows * lines / far
    if work.partials:
        found["second pass"] = device.launch_ms
        found["partials"] = work.partials * max(row_bytes, _LINE) / near
    return found


def missing(work: Work, row_bytes: int, cache_bytes: int) -> float:
    """The share of entries whose row of x is not in a cache of so many bytes any more.

    A cache that replaces what was used longest ago holds the distinct columns of the latest w entries, and these are
    the sum of the shares that miss smaller windows (Denning and Schwartz 1972).
    """
    if work.num_cols * row_bytes <= cache_bytes:
        return 0.0
    room = cache_bytes / max(row_bytes, _LINE)
    reuse = work.profile.at(_LINE / row_bytes)[1]
    held, before, share = 0.0, 0, 1.0
    for window, miss in zip(WINDOWS, reuse, strict=True):
        gained = (window - before) * (share + miss) / 2
        if held + gained >= room:
            return share + (miss - share) * (room - held) / gained
        held, before, share = held + gained, window, miss
    return share
