"""The operators as the library calls them: torch.compile records them whole, else they run with little around them.

torch's own way of giving an operator gradients in Python (autograd.py) takes several times as long as a small product.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function, forward_ad

from pyg_sparse import gradients
from pyg_sparse.formats import SparseMatrix
from pyg_sparse.gradients import OptTensor
from pyg_sparse.plan import Plan
from pyg_sparse.side import Saved, Side


def spmm(
    side: Side,
    x: Tensor,
    value: OptTensor = None,
    t_value: OptTensor = None,
    row_scale: OptTensor = None,
    col_scale: OptTensor = None,
    self_scale: OptTensor = None,
    bias: OptTensor = None,
    relu: bool = False,
) -> Tensor:
    args = (x, value, t_value, row_scale, col_scale, self_scale, bias)
    if _is_recorded_whole():
        return torch.ops.pyg_sparse.spmm.default(*side.operands, *args, relu, side.edges)
    if _records(args):
        return _Spmm.apply(side, *args, relu)
    return _spmm(side, *args, relu)


def sddmm(
    side: Side, num_edges: int, heads: int, q: Tensor, k: Tensor, row_scale: OptTensor, col_scale: OptTensor
) -> Tensor:
    args = (q, k, row_scale, col_scale)
    if _is_recorded_whole():
        return torch.ops.pyg_sparse.sddmm.default(*side.operands, num_edges, heads, *args, side.edges)
    if _records(args):
        return _Sddmm.apply(side, num_edges, heads, *args)
    return _sddmm(side, num_edges, heads, *args)


def extremum(plan: Plan, x: Tensor, value: OptTensor, largest: bool) -> Tensor:
    if _is_recorded_whole():
        return torch.ops.pyg_sparse.spmm_extremum.default(*_matrix(plan.forward), x, value, largest)[0]
    if _records((x, value)):
        return _Extremum.apply(plan.forward, x, value, largest)[0]
    return _extremum(plan.forward, x, value, largest)[0]


def _is_recorded_whole() -> bool:
    return torch.compiler.is_compiling() or torch.jit.is_tracing()


def _records(args: tuple[OptTensor, ...]) -> bool:
    """Whether a gradient may be recorded. Forward mode is refused: the operators would drop tangents silently."""
    records, forward_mode = torch.is_grad_enabled(), forward_ad._current_level >= 0
    if not records and not forward_mode:
        return False
    tensors = [arg for arg in args if arg is not None]
    if forward_mode and any(forward_ad.unpack_dual(t).tangent is not None for t in tensors):
        raise NotImplementedError(
            "pyg_sparse's operators have no forward-mode derivative (torch.func.jvp, torch.autograd.forward_ad); "
            "use backward mode"
        )
    return records and any(t.requires_grad for t in tensors)


# Beneath autograd.


def _spmm(side: Side, *args: Any) -> Tensor:
    with torch._C._AutoDispatchBelowAutograd():
        return torch.ops.pyg_sparse.spmm.default(*side.operands_of_one, *args, side.edges)


def _sddmm(side: Side, *args: Any) -> Tensor:
    operands = side.operands if side.edges == "by source" else side.operands_of_one
    with torch._C._AutoDispatchBelowAutograd():
        return torch.ops.pyg_sparse.sddmm.default(*operands, *args, side.edges)


def _extremum(matrix: SparseMatrix, *args: Any) -> tuple[Tensor, Tensor]:
    with torch._C._AutoDispatchBelowAutograd():
        return torch.ops.pyg_sparse.spmm_extremum.default(*_matrix(matrix), *args)


def _matrix(matrix: SparseMatrix) -> tuple[Any, ...]:
    return matrix.name, matrix.layout, matrix.num_partials, matrix.num_rows, matrix.num_cols


class _Spmm(Function):
    @staticmethod
    def forward(ctx: Any, side: Side, x: Tensor, value: OptTensor, t_value: OptTensor, *rest: Any) -> Tensor:
        *scales, bias, relu = rest
        out = _spmm(side, x, value, t_value, *rest)
        ctx.bias_dtype = None if bias is None else bias.dtype
        # x is needed for the gradient in value alone, and the output for relu's, which is 0 where the output is.
        tensors = (x if ctx.needs_input_grad[2] else None, value, t_value, *scales, out if relu else None)
        ctx.saved = Saved(ctx, side, tensors)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[OptTensor, ...]:
        side, saved = ctx.saved.load(ctx)
        value, needs = saved[1], ctx.needs_input_grad

        def dots(*args: Any) -> Tensor:
            return sddmm(side, value.size(0), value.size(1) if value.dim() == 2 else 1, *args)

        def transposed(*args: Any) -> Tensor:
            return spmm(side.t, *args)

        needed = needs[1], needs[2], needs[7]
        grad_x, grad_value, grad_bias = gradients.of_spmm(needed, grad, saved, ctx.bias_dtype, transposed, dots)
        return None, grad_x, grad_value, None, None, None, None, grad_bias, None


class _Sddmm(Function):
    @staticmethod
    def forward(ctx: Any, side: Side, num_edges: int, heads: int, *args: Any) -> Tensor:
        ctx.saved = Saved(ctx, side, args)
        return _sddmm(side, num_edges, heads, *args)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[OptTensor, ...]:
        side, saved = ctx.saved.load(ctx)

        def product(*args: Any) -> Tensor:
            return spmm(side, *args)

        def transposed(*args: Any) -> Tensor:
            return spmm(side.t, *args)

        needed = ctx.needs_input_grad[3:5]
        grad_q, grad_k = gradients.of_sddmm(needed, grad, saved, product, transposed)
        return None, None, None, grad_q, grad_k, None, None


class _Extremum(Function):
    @staticmethod
    def forward(ctx: Any, matrix: SparseMatrix, x: Tensor, value: OptTensor, largest: bool) -> tuple[Tensor, Tensor]:
        out, arg = _extremum(matrix, x, value, largest)
        ctx.x_shape = x.shape
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(arg)
        # x is needed for the gradient in value alone.
        ctx.save_for_backward(matrix.col, matrix.slot, x if ctx.needs_input_grad[2] else None, value, arg)
        return out, arg

    @staticmethod
    def backward(ctx: Any, grad: OptTensor, _: None) -> tuple[OptTensor, ...]:
        if grad is None:
            return None, None, None, None
        col, slot, x, value, arg = ctx.saved_tensors
        needed = ctx.needs_input_grad[1:3]
        return None, *gradients.of_extremum(needed, grad, col, slot, x, ctx.x_shape, value, arg), None
