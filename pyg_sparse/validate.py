"""Checks of what a user passes in, before any kernel runs. Messages name the argument, the value, what is allowed."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_sparse._extension import build_info
from pyg_sparse.formats.rows import INT32_MAX

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def check_device(device: torch.device) -> torch.device:
    if device.type == "cpu":
        return device
    if device.type != "cuda":
        raise ValueError(f"device {device} is not supported: the kernels run on cpu and cuda")
    if not build_info()["cuda"]:
        raise RuntimeError(
            f"device {device}: pyg_sparse was built for the CPU only; rebuild it with "
            "PYG_SPARSE_CUDA=1 pip install --no-build-isolation -e ."
        )
    return torch.empty(0, device=device).device  # "cuda" gets its index


def check_edge_index(edge_index: Tensor) -> None:
    if not isinstance(edge_index, Tensor):
        raise TypeError(f"edge_index must be a torch.Tensor, not {type(edge_index).__name__}")
    if edge_index.layout != torch.strided:
        raise TypeError(f"edge_index must be a dense [2, E] tensor, not one of layout {edge_index.layout}")
    if edge_index.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"edge_index must be int64 or int32, not {edge_index.dtype}")
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(f"edge_index must have shape [2, E], not {list(edge_index.shape)}")


def check_num_nodes(edge_index: Tensor, num_nodes: int | tuple[int, int] | None) -> tuple[int, int]:
    """The number of sources and targets; every index in ``edge_index`` is below it."""
    if edge_index.size(1):
        low, high = (bound.tolist() for bound in torch.aminmax(edge_index, dim=1))
    else:
        low, high = [0, 0], [-1, -1]
    for side, name in enumerate(("source", "target")):
        if low[side] < 0:
            raise ValueError(f"edge_index[{side}] holds the negative {name} {low[side]}; indices start at 0")
        if high[side] >= INT32_MAX:
            raise ValueError(f"edge_index[{side}] holds the {name} {high[side]}; indices end at {INT32_MAX - 1}")
    if num_nodes is None:
        sizes = (max(high) + 1,) * 2
    elif isinstance(num_nodes, tuple) and len(num_nodes) == 2:
        sizes = num_nodes
    else:
        sizes = (num_nodes, num_nodes)
    for size in sizes:
        if not isinstance(size, int) or isinstance(size, bool):
            raise TypeError(f"num_nodes={num_nodes!r} must be an int, a pair (num_src, num_dst) of ints, or None")
        if not 0 <= size <= INT32_MAX:
            raise ValueError(f"num_nodes={num_nodes!r} must lie between 0 and {INT32_MAX}")
    for side, name, size in zip((0, 1), ("source", "target"), sizes, strict=True):
        if high[side] >= size:
            allowed = f"allows 0 to {size - 1}" if size else "allows none"
            raise ValueError(f"edge_index[{side}] holds the {name} {high[side]}, but num_nodes={num_nodes!r} {allowed}")
    return sizes[0], sizes[1]


def check_features(
    name: str, x: Tensor, device: torch.device, num_rows: int, meaning: str, *, heads: bool = False
) -> None:
    """Features ``[..., num_rows, K]`` or, with heads, ``[num_rows, H, K]``."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, not {type(x).__name__}")
    if x.dtype not in DTYPES:
        allowed = ", ".join(str(dtype).removeprefix("torch.") for dtype in DTYPES)
        raise TypeError(f"{name} has dtype {x.dtype}; allowed are {allowed}")
    if x.layout != torch.strided:
        raise TypeError(f"{name} must be a dense tensor, not one of layout {x.layout}")
    rows_at = 0 if heads else -2
    if x.dim() < 2 or (heads and x.dim() != 3):
        shape = f"[{num_rows}, H, K]" if heads else f"[..., {num_rows}, K]"
        raise ValueError(f"{name} must have shape {shape}, not {list(x.shape)}")
    if x.size(rows_at) != num_rows:
        raise ValueError(f"{name} has {x.size(rows_at)} rows, but the plan has {num_rows} {meaning}")
    if x.device != device:
        raise ValueError(f"{name} is on {x.device}, but the plan is on {device}; move one with .to()")


def check_edge_weight(weight: Tensor, device: torch.device, num_edges: int, x: Tensor) -> None:
    """Weights ``[E]``, or ``[E, H]`` for features ``[num_src, H, K]``."""
    if isinstance(weight, Tensor) and weight.dim() == 2 and weight.layout == torch.strided:
        if weight.shape != (num_edges, x.size(1)) or x.size(1) == 0:
            raise ValueError(
                f"edge_weight must have shape [{num_edges}] or, for x of shape {list(x.shape)} as [num_src, H, K], "
                f"[{num_edges}, {max(x.size(1), 1)}], not {list(weight.shape)}"
            )
        weight = weight[:, 0]
    check_vector("edge_weight", weight, device, num_edges, x.dtype, "edge")


def check_vector(name: str, vector: Tensor, device: torch.device, size: int, dtype: torch.dtype, meaning: str) -> None:
    if not isinstance(vector, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, not {type(vector).__name__}")
    if vector.layout != torch.strided:
        raise TypeError(f"{name} must be a dense tensor, not one of layout {vector.layout}")
    if vector.dim() != 1 or vector.size(0) != size:
        raise ValueError(f"{name} must have shape [{size}], one value per {meaning}, not {list(vector.shape)}")
    if vector.dtype != dtype:
        raise TypeError(f"{name} has dtype {vector.dtype}, but here it must be {dtype}")
    if vector.device != device:
        raise ValueError(f"{name} is on {vector.device}, but the plan is on {device}; move one with .to()")
