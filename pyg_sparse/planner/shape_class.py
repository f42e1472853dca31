"""The shape of the distribution of row lengths, as one of five words."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_sparse.planner.statistics import quantiles, variation

SHAPE_CLASSES = ("uniform", "moderate", "skewed", "power-law", "bimodal")
UNIFORM, MODERATE = 0.3, 1.0  # coefficients of variation up to which rows are so
TAIL = 0.05  # of the rows that have entries
TAIL_EXPONENT = 3.5  # of the density; a fit to a twentieth of the rows is some tenths off, and from 3 on down is sure
SMALLER_MODE = 0.1  # of the rows that have entries


def shape_class(length: Tensor) -> str:
    """The first that fits:

    - ``"bimodal"``: counted by octaves (1, 2-3, 4-7, ...), rows have two peaks, with an octave between them of at
      most half the rows of the lower peak, and at least a tenth of the rows on either side of it;
    - ``"uniform"``: the coefficient of variation is at most 0.3;
    - ``"moderate"``: at most 1;
    - ``"power-law"``: the longest twentieth follows a power law of an exponent of at most 3.5 (Hill 1975);
    - ``"skewed"``: all others.

    Args:
        length: int64 ``[num_rows]``. Rows without entries count for the variation only.
    """
    occupied = length[length > 0]
    if _bimodal(occupied):
        return "bimodal"
    cv = variation(length)
    if cv <= UNIFORM:
        return "uniform"
    if cv <= MODERATE:
        return "moderate"
    return "power-law" if _tail_exponent(occupied) <= TAIL_EXPONENT else "skewed"


def _bimodal(length: Tensor) -> bool:
    octave = torch.frexp(length.double()).exponent
    count: list[int] = torch.bincount(octave).tolist() if length.numel() else []
    least = SMALLER_MODE * length.numel()
    return any(
        2 * count[i] <= min(max(count[:i]), max(count[i + 1 :])) and min(sum(count[:i]), sum(count[i + 1 :])) >= least
        for i in range(2, len(count) - 1)  # octave 0 is that of length 0
    )


def _tail_exponent(length: Tensor) -> float:
    """Hill's estimate from the longest rows: 1 + 1 / the mean logarithm of their length, relative to the shortest."""
    [least] = quantiles(length, (1 - TAIL,))
    tail = length[length >= least].double()
    mean = float((tail / least).log_().mean())
    return 1 + 1 / mean if mean > 0 else float("inf")
