"""Fakes and gradients of the torch operators. Those of spmm and sddmm are made of the same two (docs/design.md)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

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
    x, value, row_scale, col_scale, self_scale, bias, relu, ctx.edges = inputs[8:]
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
            REVERSED[ctx.edges],
        )  # fmt: skip
    if ctx.needs_input_grad[9]:
        grad_value = torch.ops.pyg_sparse.sddmm(
            ctx.format, layout, ctx.partials, ctx.t_format, t_layout, ctx.t_partials,
            ctx.num_rows, ctx.num_cols, value.size(0), ctx.heads, grad, kept["x"], row_scale, col_scale, ctx.edges,
        ).view_as(value)  # fmt: skip
    if ctx.needs_input_grad[13]:
        grad_bias = grad.sum(0, dtype=ctx.bias_dtype)
    return (None, [None] * len(layout), None, None, [None] * len(t_layout), None, None, None,
            grad_x, grad_value, None, None, None, grad_bias, None, None)  # fmt: skip


def _sddmm_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.format, layout, ctx.partials, ctx.t_format, t_layout, ctx.t_partials, ctx.num_rows, ctx.num_cols = inputs[:8]
    q, k, row_scale, col_scale, ctx.edges = inputs[10:]
    _keep(ctx, layout, t_layout, q=q, k=k, row_scale=row_scale, col_scale=col_scale)


def _sddmm_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    layout, t_layout, kept = _kept(ctx)
    row_scale, col_scale = kept["row_scale"], kept["col_scale"]
    grad_q = grad_k = None
    if ctx.needs_input_grad[10]:
        grad_q = torch.ops.pyg_sparse.spmm(
            ctx.format, layout, ctx.partials, ctx.t_format, t_layout, ctx.t_partials,
            ctx.num_rows, ctx.num_cols, kept["k"], grad, row_scale, col_scale, None, None, False, ctx.edges,
        )  # fmt: skip
    if ctx.needs_input_grad[11]:
        grad_k = torch.ops.pyg_sparse.spmm(
            ctx.t_format, t_layout, ctx.t_partials, ctx.format, layout, ctx.partials,
            ctx.num_cols, ctx.num_rows, kept["q"], grad, col_scale, row_scale, None, None, False, REVERSED[ctx.edges],
        )  # fmt: skip
    return (None, [None] * len(layout), None, None, [None] * len(t_layout), None, None, None, None, None,
            grad_q, grad_k, None, None, None)  # fmt: skip


def _extremum_setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    format, layout, _, _, _, x, value, _ = inputs
    ctx.num_tensors, ctx.x_shape = len(layout), x.shape
    ctx.set_materialize_grads(False)
    names = FORMATS[format].layout_names
    # x is needed for the gradient in value alone.
    x = x if value is not None and value.requires_grad else None
    ctx.save_for_backward(layout[names.index("col")], layout[names.index("slot")], x, value, output[1])


def _extremum_backward(ctx: Any, grad: Tensor | None, _: None) -> tuple[Any, ...]:
    """Each element of grad belongs to one entry; made of torch's operators, which bring the further derivatives."""
    col, slot, x, value, arg = ctx.saved_tensors
    grad_x = grad_value = None
    if grad is not None:
        if col.numel() == 0:  # no entry that arg could name
            grad, arg = grad[:0], arg[:0]
        # Halves are summed in fp32, as everywhere.
        dtype, sums = grad.dtype, torch.promote_types(grad.dtype, torch.float32)
        none = arg < 0
        position = arg.clamp(min=0)
        source = col[position].long()
        edge: Any = None if value is None else slot[position].long()
        # Where there is no entry every factor is 0, since what belongs to position 0 could be NaN.
        share = grad.to(sums).masked_fill(none, 0)
        if ctx.needs_input_grad[6]:
            product = share * x.gather(0, source).to(sums).masked_fill(none, 0)
            grad_value = share.new_zeros(value.shape).scatter_add(0, edge.flatten(), product.flatten()).to(dtype)
        if ctx.needs_input_grad[5]:
            if value is not None:
                share = share * value[edge].to(sums).masked_fill(none, 0)
            grad_x = share.new_zeros(ctx.x_shape).scatter_add(0, source, share).to(dtype)
    return None, [None] * ctx.num_tensors, None, None, None, grad_x, grad_value, None


torch.library.register_autograd("pyg_sparse::spmm", _spmm_backward, setup_context=_spmm_setup)
torch.library.register_autograd("pyg_sparse::sddmm", _sddmm_backward, setup_context=_sddmm_setup)
torch.library.register_autograd("pyg_sparse::spmm_extremum", _extremum_backward, setup_context=_extremum_setup)
