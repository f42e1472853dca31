"""The gradients of the operators, made of the operators (docs/design.md), whoever runs these."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

OptTensor = Tensor | None


def of_spmm(
    needs: Sequence[bool],
    grad: Tensor,
    saved: Sequence[OptTensor],
    bias_dtype: torch.dtype | None,
    t_spmm: Callable[..., Tensor],
    sddmm: Callable[..., Tensor],
) -> tuple[OptTensor, OptTensor, OptTensor]:
    """In x, value and bias, as far as needed.

    Args:
        saved: x (for the gradient in value), value, t_value, row_scale, col_scale, self_scale, and a ReLU's output.
        t_spmm: (x, value, t_value, row_scale, col_scale, self_scale) with the transpose.
        sddmm: (q, k, row_scale, col_scale).
    """
    x, value, t_value, row_scale, col_scale, self_scale, out = saved
    if out is not None:
        grad = torch.ops.aten.threshold_backward(grad, out, 0)
    values = (value, None) if t_value is None else (t_value, value)
    grad_x = t_spmm(grad, *values, col_scale, row_scale, self_scale) if needs[0] else None
    grad_value = None
    if needs[1]:
        assert value is not None
        if t_value is not None:
            raise RuntimeError("values in a plan's own order are constant: they have no gradient")
        grad_value = sddmm(grad, x, row_scale, col_scale).view_as(value)
    return grad_x, grad_value, grad.sum(0, dtype=bias_dtype) if needs[2] else None


def of_sddmm(
    needs: Sequence[bool],
    grad: Tensor,
    saved: Sequence[OptTensor],
    spmm: Callable[..., Tensor],
    t_spmm: Callable[..., Tensor],
) -> tuple[OptTensor, OptTensor]:
    """In q and k, as far as needed. ``saved``: q, k, row_scale, col_scale; ``spmm`` and ``t_spmm`` as above."""
    q, k, row_scale, col_scale = saved
    grad_q = spmm(k, grad, None, row_scale, col_scale, None) if needs[0] else None
    grad_k = t_spmm(q, grad, None, col_scale, row_scale, None) if needs[1] else None
    return grad_q, grad_k


def of_extremum(
    needs: Sequence[bool],
    grad: Tensor,
    col: Tensor,
    slot: Tensor,
    x: OptTensor,
    x_shape: torch.Size,
    value: OptTensor,
    arg: Tensor,
) -> tuple[OptTensor, OptTensor]:
    """In x and value. Each element of grad belongs to one entry; torch's operators bring the further derivatives."""
    if col.numel() == 0:  # no entry that arg could name
        grad, arg = grad[:0], arg[:0]
    # Halves are summed in fp32, as everywhere.
    dtype, sums = grad.dtype, torch.promote_types(grad.dtype, torch.float32)
    none = arg < 0
    position = arg.clamp(min=0)
    source = col[position].long()
    # Where there is no entry every factor is 0, since what belongs to position 0 could be NaN.
    share = grad.to(sums).masked_fill(none, 0)
    grad_x = grad_value = None
    if value is not None:
        edge = slot[position].long()
        if needs[1]:
            assert x is not None
            product = share * x.gather(0, source).to(sums).masked_fill(none, 0)
            grad_value = share.new_zeros(value.shape).scatter_add(0, edge.flatten(), product.flatten()).to(dtype)
        share = share * value[edge].to(sums).masked_fill(none, 0)
    if needs[0]:
        grad_x = share.new_zeros(x_shape).scatter_add(0, source, share).to(dtype)
    return grad_x, grad_value
