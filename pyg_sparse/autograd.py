"""Fakes and gradients of the torch operators, for torch.compile and for those who call the operators themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pyg_sparse import gradients
from pyg_sparse.formats import FORMATS
from pyg_sparse.side import Saved, Side


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


def _spmm(side: Side) -> Callable[..., Tensor]:
    return lambda *args: torch.ops.pyg_sparse.spmm(*side.operands, *args, None, False, side.edges)


def _spmm_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, value, t_value, *scales, bias, relu, edges = inputs[8:]
    ctx.heads = value.size(1) if value is not None and value.dim() == 2 else 1
    ctx.bias_dtype = None if bias is None else bias.dtype
    # As in eager.py.
    needs_x = value is not None and value.requires_grad
    tensors = (x if needs_x else None, value, t_value, *scales, output if relu else None)
    ctx.saved = Saved(ctx, Side(inputs[:8], edges), tensors)


def _spmm_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    side, saved = ctx.saved.load(ctx)

    def dots(*args: Any) -> Tensor:
        return torch.ops.pyg_sparse.sddmm(*side.operands, saved[1].size(0), ctx.heads, *args, side.edges)

    needed = [ctx.needs_input_grad[i] for i in (8, 9, 14)]
    grad_x, grad_value, grad_bias = gradients.of_spmm(needed, grad, saved, ctx.bias_dtype, _spmm(side.t), dots)
    return *_no_gradients(ctx), grad_x, grad_value, None, None, None, None, grad_bias, None, None


def _sddmm_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, edges = inputs[10:]
    ctx.saved = Saved(ctx, Side(inputs[:8], edges), tensors)


def _sddmm_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    side, saved = ctx.saved.load(ctx)
    needed = ctx.needs_input_grad[10:12]
    grad_q, grad_k = gradients.of_sddmm(needed, grad, saved, _spmm(side), _spmm(side.t))
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
