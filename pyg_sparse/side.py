"""A plan as the compiled operators take it, and as a gradient keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

REVERSED = {"by target": "by source", "by source": "by target", "otherwise": "otherwise"}
"""How edges are sorted, and how the reversed ones are."""


class Side:
    """One direction of a plan, in the order of the operators' schemas (csrc/torch/ops.cpp).

    Attributes:
        operands: format, layout and partials, those of the transpose, which gradients need, rows and columns.
        operands_of_one: without the transpose's tensors.
        edges: how the edges are sorted, seen from this side.
    """

    __slots__ = ("edges", "operands", "operands_of_one")

    def __init__(self, operands: tuple[Any, ...], edges: str) -> None:
        self.operands = operands
        self.operands_of_one = (*operands[:4], [], 0, *operands[6:])
        self.edges = edges

    @property
    def t(self) -> Side:
        """The other side. It is made when asked for: two that know each other would keep a plan's memory."""
        a = self.operands
        return Side((*a[3:6], *a[:3], a[7], a[6]), REVERSED[self.edges])


class Saved:
    """A side among the saved tensors of a gradient's context, which are released after it; ``ctx`` itself lives on."""

    __slots__ = ("edges", "lengths", "numbers")

    def __init__(self, ctx: Any, side: Side, tensors: Sequence[Tensor | None]) -> None:
        name, layout, partials, t_name, t_layout, t_partials, rows, cols = side.operands
        self.numbers = name, partials, t_name, t_partials, rows, cols
        self.lengths = len(layout), len(t_layout)
        self.edges = side.edges
        ctx.save_for_backward(*layout, *t_layout, *tensors)

    def load(self, ctx: Any) -> tuple[Side, tuple[Tensor | None, ...]]:
        """The side and the other tensors; only once for a gradient, as hooks may unpack a tensor once only."""
        saved = ctx.saved_tensors
        name, partials, t_name, t_partials, rows, cols = self.numbers
        a, b = self.lengths
        layout, t_layout = list(saved[:a]), list(saved[a : a + b])
        side = Side((name, layout, partials, t_name, t_layout, t_partials, rows, cols), self.edges)
        return side, saved[a + b :]
