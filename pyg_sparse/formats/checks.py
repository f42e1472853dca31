"""Checks of format parameters, and of the tensors of a matrix that was read from a file."""

from __future__ import annotations

import torch
from torch import Tensor


def positive(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}={value!r} must be an int of at least 1")


def require(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(f"{what} is wrong")


def in_range(index: Tensor, low: int, high: int) -> bool:
    """Whether all of ``index`` lies in ``[low, high)``."""
    return index.numel() == 0 or (int(index.min()) >= low and int(index.max()) < high)


def is_pointer(ptr: Tensor, last: int) -> bool:
    """Whether ``ptr`` is int64, rises from 0 to ``last`` and never falls."""
    return (
        ptr.dtype == torch.int64
        and ptr.dim() == 1
        and ptr.numel() >= 1
        and int(ptr[0]) == 0
        and int(ptr[-1]) == last
        and not bool((ptr.diff() < 0).any())
    )


def is_index(index: Tensor, size: int, low: int, high: int) -> bool:
    """Whether ``index`` is int32 of shape ``[size]`` with values in ``[low, high)``."""
    return index.dtype == torch.int32 and index.shape == (size,) and in_range(index, low, high)


def each_once(index: Tensor, size: int, col: Tensor | None = None) -> bool:
    """Whether ``index`` holds each of 0 ... size - 1 exactly once; with ``col``, where that is not negative."""
    if not index.is_cuda:
        found: bool = torch.ops.pyg_sparse.each_once(index, col, size)
        return found
    if col is not None:
        index = index[col >= 0]
    if index.numel() != size or not in_range(index, 0, size):
        return False
    return bool((torch.bincount(index, minlength=size) == 1).all())
