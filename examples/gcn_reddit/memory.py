"""Memory that is free, and its peak since a moment: the allocator's on a GPU, the whole process's on a CPU."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import torch


def reset_peak(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    else:
        with suppress(OSError):  # some sandboxes refuse: the peak is then that since the process started
            Path("/proc/self/clear_refs").write_text("5")  # proc(5): resets VmHWM


def peak_mb(device: torch.device) -> float:
    """Peak since :func:`reset_peak` in MB of 10^6 bytes."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e6
    # Not getrusage: a child starts with its parent's maximum.
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6


def available_mb(device: torch.device) -> float:
    """What can still be allocated."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0] / 1e6
    meminfo = Path("/proc/meminfo").read_text()
    return int(meminfo.split("MemAvailable:")[1].split()[0]) * 1024 / 1e6
