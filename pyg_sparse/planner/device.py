"""The speeds of a device, measured once: the cost model's terms are times at these speeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from pyg_sparse._extension import build_info
from pyg_sparse.formats import Csr, Rows, SparseMatrix
from pyg_sparse.planner.timing import samples_of

_NEAR_BYTES = {"cuda": 1 << 24, "cpu": 1 << 18}  # of x: in L2, and in a core's own cache
_FAR_BYTES = {"cuda": 1 << 29, "cpu": 1 << 28}
_COPY_BYTES = {"cuda": 1 << 28, "cpu": 1 << 27}
_GATHERED = {"cuda": 1 << 22, "cpu": 1 << 18}  # rows of x
_WIDTH = {"cuda": 128, "cpu": 32}
_ROW = 64  # entries
_CHAIN = 1 << 13  # entries that one warp sums
_BUDGET_MS = 150.0  # of each speed


@dataclass(frozen=True)
class Device:
    """
    Attributes:
        kind: ``"cuda"`` or ``"cpu"``.
        name: the model.
        cores: multiprocessors, or threads that torch uses.
        cache_bytes: L2 of a GPU; a core's own cache on a CPU.
        launch_ms: shortest product, as it is queued behind others.
        near_gbs: rows of x summed from the cache of ``cache_bytes``.
        far_gbs: rows of x summed from memory.
        copy_gbs: bytes read and written by a large copy.
        wait_us: a load that waits for the one before, as a single warp's loads do; 0 on the CPU.
    """

    kind: str
    name: str
    cores: int
    cache_bytes: int
    launch_ms: float
    near_gbs: float
    far_gbs: float
    copy_gbs: float
    wait_us: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def measure(device: torch.device) -> Device:
    """Takes about a second. Kernels of this library are what is measured, but for the copy."""
    kind = device.type
    copied = torch.ones(_COPY_BYTES[kind] // 4, dtype=torch.float32, device=device)
    target = torch.empty_like(copied)
    copy_ms = _fastest(lambda: target.copy_(copied), device)
    width = _WIDTH[kind]
    gathered = _GATHERED[kind] * width * 4
    near, far = (
        gathered / _fastest(_gather(device, limit[kind] // (4 * width), _GATHERED[kind], width), device) / 1e6
        for limit in (_NEAR_BYTES, _FAR_BYTES)
    )
    launch_ms = _fastest(_gather(device, 8, 8, 8), device)
    wait_us = 0.0
    if kind == "cuda":
        # A warp has 4 entries of 32 features side by side, and 8 loads on their way.
        wait_us = (_fastest(_chain(device), device) - launch_ms) * 1e3 / (_CHAIN / 32)
    return Device(
        kind=kind,
        name=device_name(device),
        cores=_cores(device),
        cache_bytes=_cache_bytes(device),
        launch_ms=_short(launch_ms),
        near_gbs=_short(near),
        far_gbs=_short(far),
        copy_gbs=_short(2 * copied.nbytes / copy_ms / 1e6),
        wait_us=_short(wait_us),
    )


def device_name(device: torch.device) -> str:
    """What a device's speeds are remembered by: its model, and on the CPU the threads and the kernels used."""
    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    from pyg_sparse._info import cpu_name

    return f"{cpu_name()}, {torch.get_num_threads()} threads, {build_info()['cpu']}"


def _cores(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).multi_processor_count)
    return torch.get_num_threads()


def _cache_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).L2_cache_size)
    return int(build_info()["l2_bytes"])


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def _fastest(run: Callable[[], Any], device: torch.device) -> float:
    """Milliseconds: the least of several, as other work on the machine must not be remembered as the device's speed."""
    return min(samples_of(run, device, _BUDGET_MS))


def _gather(device: torch.device, num_cols: int, entries: int, width: int) -> Callable[[], Tensor]:
    """A product that sums so many random rows of x, 64 at a time."""
    generator = torch.Generator("cpu").manual_seed(0)
    col = torch.randint(num_cols, (entries,), generator=generator, dtype=torch.int32, device="cpu").to(device)
    return _product(_matrix(col, max(entries // _ROW, 1), num_cols, Csr()), width)


def _chain(device: torch.device) -> Callable[[], Tensor]:
    """A product with a single row, which one warp sums."""
    generator = torch.Generator("cpu").manual_seed(0)
    col = torch.randint(1 << 12, (_CHAIN,), generator=generator, dtype=torch.int32, device="cpu").to(device)
    return _product(_matrix(col, 1, 1 << 12, Csr(1 << 20)), 32)


def _matrix(col: Tensor, num_rows: int, num_cols: int, spec: Csr) -> SparseMatrix:
    rowptr = torch.arange(num_rows + 1, device=col.device) * (col.numel() // num_rows)
    row = torch.arange(num_rows, dtype=torch.int32, device=col.device)
    return spec.build(Rows(rowptr, row, col, col[:0], num_rows, num_cols))


def _product(matrix: SparseMatrix, width: int) -> Callable[[], Tensor]:
    x = torch.ones(matrix.num_cols, width, dtype=torch.float32, device=matrix.device)
    return lambda: product(matrix, x)


def product(matrix: SparseMatrix, x: Tensor) -> Tensor:
    """The matrix times x, without values, scales or gradients."""
    operands: tuple[Any, ...] = (
        matrix.name,
        matrix.layout,
        matrix.num_partials,
        matrix.name,
        [],
        0,
        matrix.num_rows,
        matrix.num_cols,
    )
    out: Tensor = torch.ops.pyg_sparse.spmm.default(*operands, x, *[None] * 6, False, "otherwise")
    return out
