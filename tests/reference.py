"""What the operators compute, in plain PyTorch, and how far off a result may be."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def spmm(
    edge_index: Tensor,
    num_dst: int,
    x: Tensor,
    value: Tensor | None = None,
    row_scale: Tensor | None = None,
    col_scale: Tensor | None = None,
    self_scale: Tensor | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    """``value`` is ``[E]`` or, for heads side by side in x, ``[E, H]``."""
    src, dst = edge_index
    message = x[src]
    if value is not None:
        heads = value[:, None] if value.dim() == 1 else value
        message = message * heads.repeat_interleave(x.size(1) // heads.size(1), dim=1)
    if col_scale is not None:
        message = message * col_scale[src, None]
    out = x.new_zeros(num_dst, x.size(1)).index_add(0, dst, message)
    if row_scale is not None:
        out = out * row_scale[:, None]
    if self_scale is not None:
        out = out + x * self_scale[:, None]
    if bias is not None:
        out = out + bias
    return out


def extremum(index: Tensor, size: int, message: Tensor, reduce: str) -> Tensor:
    """The largest or smallest message of each index, 0 where there is none."""
    out = message.new_zeros(size, message.size(1))
    return out.scatter_reduce(0, index[:, None].expand_as(message), message, f"a{reduce}", include_self=False)


def sddmm(edge_index: Tensor, q: Tensor, k: Tensor) -> Tensor:
    src, dst = edge_index
    return (q[dst] * k[src]).sum(dim=1)


def assert_accurate(
    result: Tensor, compute: Callable[[Callable[[Tensor], Tensor]], Tensor], accumulator: torch.dtype
) -> None:
    """At most twice the error, against fp64, of PyTorch's own computation in the accumulator's precision,
    and never asked to be better than the rounding of the terms summed.

    ``compute(cast)`` is that computation on operands passed through ``cast``.
    """
    exact = compute(lambda t: t.double())
    close = compute(lambda t: t.to(accumulator)).to(result.dtype)
    magnitude = compute(lambda t: t.double().abs())
    assert result.shape == exact.shape
    assert result.isfinite().all()
    error = (result.double() - exact).norm()
    allowed = 2 * (close.double() - exact).norm()
    # One rounding of the result, and those of a sum whose terms may be equal and round alike.
    unit = torch.finfo(result.dtype).eps + 16 * torch.finfo(accumulator).eps
    rounding = unit * magnitude.norm() + torch.finfo(result.dtype).tiny
    assert error <= torch.maximum(allowed, rounding), f"{error} > {allowed} and {rounding}"


def assert_compiles_the_same(model: Callable[..., Tensor], *inputs: Tensor) -> None:
    """One graph, whose result and gradients are the model's own."""
    compiled = torch.compile(model, fullgraph=True)
    torch.testing.assert_close(compiled(*inputs), model(*inputs))
    grads = (torch.autograd.grad(function(*inputs), inputs) for function in (compiled, model))
    for grad, expected in zip(*grads, strict=True):
        torch.testing.assert_close(grad, expected)
