"""The terms of a CUDA product's predicted time, each in milliseconds at the device's speeds.

They are added up, each times a coefficient that was fitted to measured products (benchmarks/fit_cost_model.py).
"""

from __future__ import annotations

import math

from pyg_sparse.planner.device import Device
from pyg_sparse.planner.launch import Launch, launch_of
from pyg_sparse.planner.work import Work

TERMS = {
    "launch": "the launch",
    "second launch": "a second launch, which adds up partial sums",
    "stream": "indices, results and x once, from memory or, if they fit, from L2",
    "core": "rows of x that a multiprocessor loads from L2, loaded once by all rows it has in flight",
    "near": "rows of x not used by the 256 entries before, from L2",
    "far": "rows of x not used by the 262,144 entries before, from memory, where x does not fit L2",
    "issue": "loads of rows of x, at one line a cycle and multiprocessor",
    "scattered": "narrow results that are not written in sequence, each a sector",
    "idle": "the same for lanes that wait for a longer row of their warp",
    "wait": "loads on their way one after the other, with as many items as there is room for side by side",
    "longest": "the longest item, which some warp has beside its share of the others",
    "tail": "the longest item, as far as it takes longer than all the others together",
    "late": "the longest item, where long ones may start last",
    "partials": "partial sums, written and read",
    "teams": "blocks of threads that take a cut row each",
    "cut": "cut rows, whose sums are put together",
    "tile": "entries and rows of tiles",
}
_CLOCK = 1.7e6  # lines a millisecond and multiprocessor
_WARPS_IN_FLIGHT, _BLOCKS_IN_FLIGHT, _COMBINING = 24, 8, 64
_SECTOR, _LINE, _BLOCK_BYTES = 32, 128, 512
_STAGED_US = 0.025  # an entry of a tile's row that one lane adds up
_TILE = 1024
# Formats and orders about which less is known must be predicted to gain more than this.
DOUBT = {"csr": 1.0, "hyb": 1.2, "coo": 1.5}
ORDER_DOUBT = 1.005  # of any but that by length


def doubt(work: Work) -> float:
    return DOUBT[work.format] * (1.0 if work.by_length else ORDER_DOUBT)


def kernel_class(work: Work, k: int, itemsize: int, device: Device) -> str:
    """Products that share coefficients."""
    kernel = launch_of(work, k, itemsize, device.cores, device.cache_bytes).kernel
    return f"{work.format}, {kernel}"


def terms(work: Work, k: int, itemsize: int, device: Device) -> dict[str, float]:
    launch = launch_of(work, k, itemsize, device.cores, device.cache_bytes)
    near, far, copy = device.near_gbs * 1e6, device.far_gbs * 1e6, device.copy_gbs * 1e6  # bytes a millisecond
    row_bytes = k * itemsize
    gathered = work.nnz * max(_SECTOR, math.ceil(row_bytes / _SECTOR) * _SECTOR)
    slice_bytes = row_bytes / launch.slices
    beyond = max(1.0 - device.cache_bytes * 0.7 / max(work.num_cols * slice_bytes, 1), 0.0)
    dense_rows = work.num_rows + min(work.num_cols, work.nnz)  # of results, and of x once
    streamed = (work.positions * 4 + work.items * 12) * launch.slices + dense_rows * row_bytes
    core, reuse = work.profile.at(_SECTOR / row_bytes)
    issue = work.positions * max(1, math.ceil(slice_bytes / _LINE)) * launch.slices / (device.cores * _CLOCK)
    found = {
        "launch": device.launch_ms,
        "stream": streamed / (copy if streamed > device.cache_bytes else near),
        "core": core * gathered / near,
        "near": reuse[0] * gathered / near,
        "far": reuse[-1] * gathered / far * beyond,
        "issue": issue,
        "scattered": 0.0 if work.in_sequence else work.num_rows * max(_SECTOR - row_bytes, 0) / near,
    }
    if launch.kernel == "tile":
        late = 0.0 if work.by_length else min(work.longest, _TILE) * _STAGED_US * 1e-3
        return found | {"late": late, "tile": (work.nnz + work.num_rows) / (device.cores * _CLOCK)}
    return found | _waits(work, launch, row_bytes, issue, found["core"], device)


def _waits(work: Work, launch: Launch, row_bytes: int, issue: float, core: float, device: Device) -> dict[str, float]:
    """The terms of kernels in which items of different lengths wait for each other; ``issue``, ``core``: as above."""
    wait_ms = device.wait_us * 1e-3
    near = device.near_gbs * 1e6
    step = launch.neighbours * launch.unroll  # entries on their way at a time
    steps = work.profile.steps_of(launch.sharing) if work.format == "csr" else 1.0
    side_by_side = min(work.items * launch.slices, device.cores * _WARPS_IN_FLIGHT * launch.sharing)
    wait = (work.positions / step * steps + 2 * work.items) * launch.slices * wait_ms / max(side_by_side, 1)
    path = 0.0
    if work.format != "coo":
        path = max(work.longest / step, work.longest_part / (launch.part_neighbours * launch.unroll)) * wait_ms
    hidden = max(1.2 * issue, core, 0.7 * wait) if work.by_length else 0.0
    teams = work.teams and launch.kernel == "short"
    found = {
        "idle": issue * (steps - 1.0),
        "wait": wait,
        "longest": path,
        "tail": max(path - hidden, 0.0),
        "late": 0.0 if work.by_length else path,
    }
    if teams:
        blocks = device.cores * _BLOCKS_IN_FLIGHT
        return found | {"teams": work.cut_rows * math.ceil(row_bytes / _BLOCK_BYTES) * 2 * wait_ms / blocks}
    if not work.partials:
        return found
    found["second launch"] = device.launch_ms
    found["partials"] = work.partials * max(row_bytes, _SECTOR) / near
    if work.format == "csr":
        found["cut"] = work.cut_rows * math.ceil(row_bytes / _LINE) * wait_ms / (device.cores * _COMBINING)
    return found
