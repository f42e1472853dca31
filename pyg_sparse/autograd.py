"""Fakes and gradients of the torch operators, for torch.compile and for those who call the operators themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pyg_sparse import gradients
from pyg_sparse.formats import FORMATS
from pyg_sparse.plan import REVERSED


# The arguments of the operators are in the order of their schemas, csrc/torch/ops.cpp and extremum.cpp.
@torch.library.register_fake("pyg_sparse::spmm")
def _(*args: Any) -> Tensor:
    num_rows, x = args[6], args[8]
    return x.new_empty(num_rows, x.size(1))


@torch.library.register_fake("pyg_sparse::sddmm")
def _(*args: Any) -> Tensor:
    num_edges, heads, q = args[8:11]
    return q.new_empty(num_edges, heads)


@torch.library.register_fake("pyg_sparse::spmm_extremum")
def _(*args: Any) -> tuple[Tensor, Tensor]:
    num_rows, x = args[3], args[5]
    out = x.new_empty(num_rows, x.size(1))
    return out, torch.empty_like(out, dtype=torch.int64)


class _Saved:
    """A matrix and its transpose as an operator's context keeps them."""

    def __init__(self, ctx: Any, inputs: tuple[Any, ...], operands: tuple[Tensor | None, ...]) -> None:
        self.names = inputs[0], inputs[3]
        layout, self.partials, t_layout, self.t_partials, self.num_rows, self.num_cols = (
            inputs[1], inputs[2], *inputs[4:8],
        )  # fmt: skip
        self.lengths = len(layout), len(t_layout)
        ctx.save_for_backward(*layout, *t_layout, *operands)

    def operands(self, ctx: Any) -> tuple[Tensor | None, ...]:
        return ctx.saved_tensors[sum(self.lengths) :]

    def sides(self, ctx: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The first arguments of an operator, and those of one with the transpose."""
        a, b = self.lengths
        layout, t_layout = list(ctx.saved_tensors[:a]), list(ctx.saved_tensors[a : a + b])
        one, other = (self.names[0], layout, self.partials), (self.names[1], t_layout, self.t_partials)
        return (*one, *other, self.num_rows, self.num_cols), (*other, *one, self.num_cols, self.num_rows)


def _spmm(side: tuple[Any, ...], edges: str) -> Callable[..., Tensor]:
    return lambda *args: torch.ops.pyg_sparse.spmm(*side, *args, None, False, edges)


def _spmm_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, value, *scales, bias, relu, ctx.edges = inputs[8:]
    ctx.heads = value.size(1) if value is not None and value.dim() == 2 else 1
    ctx.bias_dtype = None if bias is None else bias.dtype
    # As in eager.py.
    needs_x = value is not None and value.requires_grad
    ctx.saved = _Saved(ctx, inputs, (x if needs_x else None, value, *scales, output if relu else None))


def _spmm_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    side, t_side = ctx.saved.sides(ctx)
    saved = ctx.saved.operands(ctx)

    def dots(*args: Any) -> Tensor:
        return torch.ops.pyg_sparse.sddmm(*side, saved[1].size(0), ctx.heads, *args, ctx.edges)

    needed = [ctx.needs_input_grad[i] for i in (8, 9, 13)]
    t_spmm = _spmm(t_side, REVERSED[ctx.edges])
    grad_x, grad_value, grad_bias = gradients.of_spmm(needed, grad, saved, ctx.bias_dtype, t_spmm, dots)
    return *_no_gradients(ctx), grad_x, grad_value, None, None, None, grad_bias, None, None


def _sddmm_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *operands, ctx.edges = inputs[10:]
    ctx.saved = _Saved(ctx, inputs, tuple(operands))


def _sddmm_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    side, t_side = ctx.saved.sides(ctx)
    needed = ctx.needs_input_grad[10:12]
    products = _spmm(side, ctx.edges), _spmm(t_side, REVERSED[ctx.edges])
    grad_q, grad_k = gradients.of_sddmm(needed, grad, ctx.saved.operands(ctx), *products)
    return *_no_gradients(ctx), None, None, grad_q, grad_k, None, None, None


def _no_gradients(ctx: Any) -> tuple[Any, ...]:
    a, b = ctx.saved.lengths
    return None, [None] * a, None, None, [None] * b, None, None, None


def _extremum_setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    format, layout, _, _, _, x, value, _ = inputs
    ctx.num_tensors, ctx.x_shape = len(layout), x.shape
    ctx.set_materialize_grads(False)
    names = FORMATS[format].layout_names
    x = x if value is not None and value.requires_grad else None
    ctx.save_for_backward(layout[names.index("col")], layout[names.index("slot")], x, value, output[1])


def _extremum_backward(ctx: Any, grad: Tensor | None, _: None) -> tuple[Any, ...]:
    grad_x = grad_value = None
    if grad is not None:
        col, slot, x, value, arg = ctx.saved_tensors
        needed = ctx.needs_input_grad[5:7]
        grad_x, grad_value = gradients.of_extremum(needed, grad, col, slot, x, ctx.x_shape, value, arg)
    return None, [None] * ctx.num_tensors, None, None, None, grad_x, grad_value, None


torch.library.register_autograd("pyg_sparse::spmm", _spmm_backward, setup_context=_spmm_setup)
torch.library.register_autograd("pyg_sparse::sddmm", _sddmm_backward, setup_context=_sddmm_setup)
torch.library.register_autograd("pyg_sparse::spmm_extremum", _extremum_backward, setup_context=_extremum_setup)
