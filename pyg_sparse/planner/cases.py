"""The kinds of products for which a plan may have a choice of its own: by feature width and by dtype."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch

WIDTHS = (1, 8, 32, 128, 256)
"""A product of K features belongs to the first of these that is at least K, and beyond 256 to the last."""

DEFAULT_WIDTHS = (8, 32, 128, 256)
DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


class Case(NamedTuple):
    """``width``: one of ``WIDTHS``; ``itemsize``: bytes of a feature."""

    width: int
    itemsize: int

    def __str__(self) -> str:
        above = max((w for w in WIDTHS if w < self.width), default=0)
        widths = (
            f"K > {above}" if self.width == WIDTHS[-1] else f"K = {above + 1} to {self.width}" if above else "K = 1"
        )
        return f"{widths}, {8 * self.itemsize} bits"


def case_of(k: int, itemsize: int) -> Case:
    for width in WIDTHS:
        if k <= width:
            return Case(width, itemsize)
    return Case(WIDTHS[-1], itemsize)


def cases_for(widths: Iterable[int] | None, dtypes: Iterable[torch.dtype] | None) -> tuple[Case, ...]:
    """Without widths those of ``DEFAULT_WIDTHS``, without dtypes fp32.

    Raises:
        TypeError, ValueError: a width is not a positive int, a dtype not one of ``DTYPES``, or there are none.
    """
    for name, given in (("widths", widths), ("dtypes", dtypes)):
        if given is not None and not isinstance(given, Iterable):
            raise TypeError(f"{name}={given!r} must be several, such as [{given!r}]")
    wanted = DEFAULT_WIDTHS if widths is None else tuple(widths)
    for width in wanted:
        if type(width) is not int or width < 1:
            raise ValueError(f"widths={wanted!r}: {width!r} must be an int of at least 1")
    kinds = (torch.float32,) if dtypes is None else tuple(dtypes)
    for dtype in kinds:
        if dtype not in DTYPES:
            raise ValueError(f"dtypes={kinds!r}: {dtype!r} must be one of {', '.join(map(str, DTYPES))}")
    if not wanted or not kinds:
        raise ValueError(f"{'dtypes' if wanted else 'widths'} must not be empty")
    return tuple(sorted({case_of(width, dtype.itemsize) for width in wanted for dtype in kinds}))
