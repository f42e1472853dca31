"""Fakes and gradients of the two torch operators. Each gradient is made of the same two (docs/design.md, section 3)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


# The arguments of both operators are in the order of their schemas, csrc/torch/ops.cpp.
@torch.library.register_fake("pyg_sparse::spmm")
def _(*args: Any) -> Tensor:
    num_rows, x = args[6], args[8]
    return x.new_empty(num_rows, x.size(1))


@torch.library.register_fake("pyg_sparse::sddmm")
def _(*args: Any) -> Tensor:
    num_edges, heads, q = args[8:11]
    return q.new_empty(num_edges, heads)


def _keep(ctx: Any, layout: list[Tensor], t_layout: list[Tensor], **operands: Tensor | None) -> None:
    ctx.names = tuple(operands)
    ctx.split = len(layout), len(layout) + len(t_layout)
    ctx.save_for_backward(*layout, *t_layout, *operands.values())


def _kept(ctx: Any) -> tuple[list[Tensor], list[Tensor], dict[str, Tensor]]:
    saved = ctx.saved_tensors
    a, b = ctx.split
    return list(saved[:a]), list(saved[a:b]), dict(zip(ctx.names, saved[b:], strict=True))


def _spmm_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.format, layout, ctx.partials, ctx.t_format, t_layout, ctx.t_partials, ctx.num_rows, ctx.num_cols = inputs[:8]
    x, value, row_scale, col_scale, self_scale, bias, relu = inputs[8:]
    ctx.heads = value.size(1) if value is not None and value.dim() == 2 else 1
    ctx.bias_dtype = None if bias is None else bias.dtype
    # x is needed for the gradient in value alone, and the output for relu's, which is 0 where the output is.
    ctx.value_needs_grad = value is not None and value.requires_grad
    _keep(
        ctx, layout, t_layout,
        x=x if ctx.value_needs_grad else None, value=value,
        row_scale=row_scale, col_scale=col_scale, self_scale=self_scale, out=output if relu else None,
    )  # fmt: skip


def _spmm_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    layout, t_layout, kept = _kept(ctx)
    value, row_scale, col_scale = kept["value"], kept["row_scale"], kept["col_scale"]
    grad_x = grad_value = grad_bias = None
    if kept["out"] is not None:
        grad = torch.ops.aten.threshold_backward(grad, kept["out"], 0)
    if ctx.needs_input_grad[8]:
        grad_x = torch.ops.pyg_sparse.spmm(
            ctx.t_format, t_layout, ctx.t_partials, ctx.format, layout, ctx.partials,
            ctx.num_cols, ctx.num_rows, grad, value, col_scale, row_scale, kept["self_scale"], None, False,
        )  # fmt: skip
    if ctx.needs_input_grad[9]:
        grad_value = torch.ops.pyg_sparse.sddmm(
            ctx.format, layout, ctx.partials, ctx.t_format, t_layout, ctx.t_partials,
            ctx.num_rows, ctx.num_cols, value.size(0), ctx.heads, grad, kept["x"], row_scale, col_scale,
        ).view_as(value)  # fmt: skip
    if ctx.needs_input_grad[13]:
        grad_bias = grad.sum(0, dtype=ctx.bias_dtype)
    return (None, [None] * len(layout), None, None, [None] * len(t_layout), None, None, None,
            grad_x, grad_value, None, None, None, grad_bias, None)  # fmt: skip


def _sddmm_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.format, layout, ctx.partials, ctx.t_format, t_layout, ctx.t_partials, ctx.num_rows, ctx.num_cols = inputs[:8]
    q, k, row_scale, col_scale = inputs[10:]
    _keep(ctx, layout, t_layout, q=q, k=k, row_scale=row_scale, col_scale=col_scale)


def _sddmm_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    layout, t_layout, kept = _kept(ctx)
    row_scale, col_scale = kept["row_scale"], kept["col_scale"]
    grad_q = grad_k = None
    if ctx.needs_input_grad[10]:
        grad_q = torch.ops.pyg_sparse.spmm(
            ctx.format, layout, ctx.partials, ctx.t_format, t_layout, ctx.t_partials,
            ctx.num_rows, ctx.num_cols, kept["k"], grad, row_scale, col_scale, None, None, False,
        )  # fmt: skip
    if ctx.needs_input_grad[11]:
        grad_k = torch.ops.pyg_sparse.spmm(
            ctx.t_format, t_layout, ctx.t_partials, ctx.format, layout, ctx.partials,
            ctx.num_cols, ctx.num_rows, kept["q"], grad, col_scale, row_scale, None, None, False,
        )  # fmt: skip
    return (None, [None] * len(layout), None, None, [None] * len(t_layout), None, None, None, None, None,
            grad_q, grad_k, None, None)  # fmt: skip


torch.library.register_autograd("pyg_sparse::spmm", _spmm_backward, setup_context=_spmm_setup)
torch.library.register_autograd("pyg_sparse::sddmm", _sddmm_backward, setup_context=_sddmm_setup)
