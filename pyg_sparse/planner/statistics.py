"""Statistics of one number a row, with defined values where there are no rows."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor


def ratio(a: float, b: float) -> float:
    """``a / b``, and 0 where there is nothing to divide by."""
    return a / b if b else 0.0


def variation(values: Tensor) -> float:
    """Coefficient of variation: the standard deviation (of all, not of a sample) over the mean; 0 if that is 0."""
    total = int(values.sum())
    if total == 0:
        return 0.0
    mean = total / values.numel()
    return math.sqrt(float((values.double() - mean).square_().sum()) / values.numel()) / mean


def largest(values: Tensor) -> int:
    return int(values.max()) if values.numel() else 0


def quantiles(values: Tensor, shares: tuple[float, ...]) -> list[float]:
    """Linear interpolation between the two nearest of the sorted values, as NumPy's default; 0 without values.

    Args:
        values: int64 ``[n]``.
        shares: in [0, 1].
    """
    last = values.numel() - 1
    if last < 0:
        return [0.0] * len(shares)
    below = [math.floor(share * last) for share in shares]
    ranks = [*below, *(min(rank + 1, last) for rank in below)]
    found = _ranked(values, ranks)
    low, high = found[: len(shares)], found[len(shares) :]
    return [a + (b - a) * (share * last - rank) for a, b, share, rank in zip(low, high, shares, below, strict=True)]


def _ranked(values: Tensor, ranks: list[int]) -> list[int]:
    """The values at these places of the ascending order."""
    if values.is_cuda:
        result: list[int] = torch.sort(values).values[torch.tensor(ranks, device=values.device)].tolist()
        return result
    return np.partition(values.numpy(), ranks)[ranks].tolist()  # torch's sort takes many times longer on a CPU
