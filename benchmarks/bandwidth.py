"""The two speeds that bound SpMM on a device, measured in the process that uses them.

`copy`: bytes read and written per second by a large copy. `gather`: bytes per second of 512-byte rows summed
from a source that stays in the L2 cache, where every other byte of traffic is negligible. A kernel that loads
an x row for each entry cannot beat the second; one that reuses rows inside a core can.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks.timing import time_cpu, time_cuda

_WIDTH = 128  # fp32: rows of 512 bytes
_ROWS_A_BAG = 64


def measure(device: torch.device) -> dict[str, object]:
    """`copy_gbs`, `gather_gbs` and how they were taken, for a result file's meta.

    On a CPU also `far_gather_gbs`, of rows that come from memory.
    """
    on_cuda = device.type == "cuda"
    gather_gbs, method = _gather_gbs(device, on_cuda)
    speeds: dict[str, object] = {
        "copy_gbs": round(_copy_gbs(device, 1 << 30 if on_cuda else 1 << 28), 1),
        "gather_gbs": round(gather_gbs, 1),
        "gather_method": method,
    }
    if not on_cuda:
        far = _embedding_bag_gbs(device, num_rows=1 << 20, count=1 << 19)  # 512 MiB
        speeds["far_gather_gbs"] = round(far, 1)
    return speeds


def _copy_gbs(device: torch.device, nbytes: int) -> float:
    source = torch.randn(nbytes // 4, device=device)
    target = torch.empty_like(source)
    return 2 * nbytes / _median_ms(lambda: target.copy_(source), device) / 1e6


def _gather_gbs(device: torch.device, on_cuda: bool) -> tuple[float, str]:
    num_rows = 1 << 15 if on_cuda else 1 << 8  # 16 MiB in a GPU's L2, 128 KiB in a core's
    count = 1 << 22 if on_cuda else 1 << 19
    method = f"embedding_bag, {num_rows} rows of 512 bytes, bags of {_ROWS_A_BAG}"
    speed = _embedding_bag_gbs(device, num_rows, count)
    if on_cuda:
        source, index, gathered = _bags(device, num_rows, count)
        try:
            from benchmarks.gather_kernel import sum_rows

            triton_speed = gathered / _median_ms(lambda: sum_rows(source, index), device) / 1e6
        except Exception as error:  # no Triton or no host compiler: the weaker figure stands, and says so
            return speed, f"{method} (Triton kernel: {type(error).__name__})"
        if triton_speed > speed:
            return triton_speed, method.replace("embedding_bag", "Triton kernel")
    return speed, method


def _embedding_bag_gbs(device: torch.device, num_rows: int, count: int) -> float:
    source, index, gathered = _bags(device, num_rows, count)
    return gathered / _median_ms(lambda: torch.nn.functional.embedding_bag(index, source, mode="sum"), device) / 1e6


def _bags(device: torch.device, num_rows: int, count: int) -> tuple[Tensor, Tensor, int]:
    """Rows, which of them each bag sums, and the bytes of `count` rows."""
    source = torch.randn(num_rows, _WIDTH, device=device)
    index = torch.randint(num_rows, (count // _ROWS_A_BAG, _ROWS_A_BAG), device=device, dtype=torch.int32)
    return source, index, count * _WIDTH * 4


def _median_ms(fn: Callable[[], Any], device: torch.device) -> float:
    time = time_cuda if device.type == "cuda" else time_cpu
    return statistics.median(time(fn, warmup=3, repeats=10))
