"""The public operators: sparse-dense product and sampled dense-dense product over a plan."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pyg_sparse import eager
from pyg_sparse.plan import Plan
from pyg_sparse.side import Side
from pyg_sparse.validate import check_edge_weight, check_features, check_vector
from pyg_sparse.weights import StoredWeight

REDUCTIONS = ("sum", "mean", "max", "min")


def spmm(
    plan: Plan,
    x: Tensor,
    edge_weight: Tensor | StoredWeight | None = None,
    *,
    reduce: str = "sum",
    row_scale: Tensor | None = None,
    col_scale: Tensor | None = None,
    self_scale: Tensor | None = None,
    bias: Tensor | None = None,
    relu: bool = False,
) -> Tensor:
    r"""Aggregates the features of every target's in-neighbours.

    .. math::
        y_i = \sigma \left( r_i \sum_{e: j \to i} w_e c_j x_j + s_i x_i + b \right)

    with edge weights :math:`w`, row scale :math:`r`, column scale :math:`c`, self scale :math:`s` and bias :math:`b`;
    those not given are 1, and 0 for :math:`s` and :math:`b`. :math:`\sigma` is the identity, or ``relu``. Sums are
    fp32 for fp16, bf16 and fp32 features and fp64 for fp64. The result repeats bit for bit. Differentiable any number
    of times in ``x``, ``edge_weight``, the scales and the bias.

    With ``reduce="max"`` or ``"min"``, :math:`y_{ik}` is the largest or smallest :math:`w_e x_{jk}`: 0 without
    in-edges, NaN if one of them is. The gradient of :math:`y_{ik}` goes to one edge, among equal ones the first in the
    plan's stored order. ``edge_weight`` is then ``[E]``; the scales, ``bias`` and ``relu`` are not taken.

    Args:
        plan: the graph.
        x: ``[..., num_src, K]``, fp64, fp32, bf16 or fp16, any strides.
        edge_weight: ``[E]`` of x's dtype (under autocast, any), in the order of the plan's ``edge_index``; or
            ``[E, H]``, a weight for each of ``H`` heads, and x is then ``[num_src, H, K]``; or constant weights that
            the plan has stored in its own order (:meth:`pyg_sparse.Plan.store_weight`).
        reduce: ``"sum"``; ``"mean"``: the sum divided by the number of in-edges (0 where there are none); ``"max"`` or
            ``"min"``.
        row_scale: ``[num_dst]``, fp64 for fp64 features and fp32 otherwise.
        col_scale: ``[num_src]``, the same. bf16 features may be rounded once more after their scaling.
        self_scale: ``[num_dst]``, the same; needs as many sources as targets.
        bias: ``[K]``, the same dtype (under autocast, any).
        relu: set what is negative to 0.

    Returns:
        ``[..., num_dst, K]`` of x's dtype.

    Raises:
        TypeError, ValueError: an argument does not fit the plan; the message says how.
    """
    _check_plan(plan)
    heads = isinstance(edge_weight, Tensor) and edge_weight.dim() == 2
    check_features("x", x, plan.device, plan.num_src, "sources", heads=heads)
    scale_dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    if reduce not in REDUCTIONS:
        raise ValueError(f"reduce={reduce!r} must be one of {', '.join(REDUCTIONS)}")
    extremum = reduce in ("max", "min")
    pair = plan if extremum else plan.at(_width(x, heads), x.dtype)
    if extremum:
        _need_plain_messages(
            reduce, edge_weight, row_scale=row_scale, col_scale=col_scale, self_scale=self_scale, bias=bias, relu=relu
        )
    t_weight = None
    if edge_weight is not None:
        _need_edge_values(plan, "edge_weight")
        if torch.is_autocast_enabled(x.device.type) and isinstance(edge_weight, Tensor | StoredWeight):
            edge_weight = edge_weight.to(x.dtype)  # autocast lowers x, but not the weights, on the way here
        if isinstance(edge_weight, StoredWeight):
            edge_weight, t_weight = edge_weight.of(pair)
            check_vector("edge_weight", edge_weight, plan.device, pair.forward.col.numel(), x.dtype, "position")
        else:
            check_edge_weight(edge_weight, plan.device, plan.num_edges, x)
    if row_scale is not None:
        check_vector("row_scale", row_scale, plan.device, plan.num_dst, scale_dtype, "target")
    if col_scale is not None:
        check_vector("col_scale", col_scale, plan.device, plan.num_src, scale_dtype, "source")
    if self_scale is not None:
        if plan.num_src != plan.num_dst:
            raise ValueError(
                f"self_scale needs as many sources as targets; the plan has {plan.num_src} and {plan.num_dst}"
            )
        check_vector("self_scale", self_scale, plan.device, plan.num_dst, scale_dtype, "target")
    if bias is not None:
        if torch.is_autocast_enabled(x.device.type) and isinstance(bias, Tensor):
            bias = bias.to(scale_dtype)
        check_vector("bias", bias, plan.device, x.size(-1), scale_dtype, "feature")

    shape = x.shape
    if x.dim() > 2:  # one product for all heads or batches: they become columns
        x = x.flatten(1) if heads else x.movedim(-2, 0).flatten(1)
        if bias is not None:
            bias = bias.repeat(x.size(1) // max(bias.numel(), 1))

    if reduce == "mean":
        inverse = plan.in_degree.clamp(min=1).to(scale_dtype).reciprocal()
        row_scale = inverse if row_scale is None else row_scale * inverse

    scales = (row_scale, col_scale, self_scale)
    if extremum:
        out = eager.extremum(plan, x, edge_weight, reduce == "max")
    elif torch.is_grad_enabled() and any(scale is not None and scale.requires_grad for scale in scales):
        out = _with_gradients_of_scales(pair.side, x, (edge_weight, t_weight), *scales)
        if bias is not None:
            out = (out + bias).to(x.dtype)
        if relu:
            out = out.relu()
    else:
        out = eager.spmm(pair.side, x, edge_weight, t_weight, *scales, bias, relu)
    if len(shape) == 2:
        return out
    return (
        out.view(plan.num_dst, *shape[1:]) if heads else out.view(plan.num_dst, *shape[:-2], shape[-1]).movedim(0, -2)
    )


def _width(x: Tensor, heads: bool) -> int:
    """Features of a product: all heads or batches are one."""
    if x.dim() == 2:
        return x.size(1)
    return math.prod(x.shape[1:] if heads else (*x.shape[:-2], x.size(-1)))


def _with_gradients_of_scales(
    side: Side,
    x: Tensor,
    weights: tuple[Tensor | None, Tensor | None],
    row_scale: Tensor | None,
    col_scale: Tensor | None,
    self_scale: Tensor | None,
) -> Tensor:
    """The operator has no gradient in its scales: those that need one are multiplied by torch."""
    if x.dtype in (torch.bfloat16, torch.float16):  # between the steps, sums keep the accumulator's precision
        value, t_value = (None if weight is None else weight.float() for weight in weights)
        return _with_gradients_of_scales(side, x.float(), (value, t_value), row_scale, col_scale, self_scale).to(
            x.dtype
        )
    before = after = add = None
    if col_scale is not None and col_scale.requires_grad:
        before, col_scale = col_scale, None
    if row_scale is not None and row_scale.requires_grad:
        after, row_scale = row_scale, None
    if self_scale is not None and (self_scale.requires_grad or after is not None or before is not None):
        add, self_scale = self_scale, None
    scaled = x if before is None else _scaled(x, before)
    scales = (row_scale, col_scale, self_scale)
    out = eager.spmm(side, scaled, *weights, *scales)
    if after is not None:
        out = _scaled(out, after)
    if add is not None:
        out = out + _scaled(x, add)
    return out


def sddmm(plan: Plan, q: Tensor, k: Tensor) -> Tensor:
    r"""The dot product over every edge: :math:`s_e = \langle q_i, k_j \rangle` for :math:`e: j \to i`.

    Args:
        plan: the graph, made with ``edge_values=True``.
        q: ``[num_dst, K]``, or ``[num_dst, H, K]`` for ``H`` heads; fp64, fp32, bf16 or fp16, any strides.
        k: ``[num_src, K]`` or ``[num_src, H, K]``, of q's dtype.

    Returns:
        ``[E]`` or ``[E, H]`` of q's dtype, in the order of the plan's ``edge_index``. Differentiable any number of
        times.

    Raises:
        TypeError, ValueError: an argument does not fit the plan; the message says how.
    """
    _check_plan(plan)
    _need_edge_values(plan, "sddmm")
    heads = isinstance(q, Tensor) and q.dim() == 3
    check_features("q", q, plan.device, plan.num_dst, "targets", heads=heads)
    check_features("k", k, plan.device, plan.num_src, "sources", heads=heads)
    if q.dim() not in (2, 3) or q.dim() != k.dim():
        raise ValueError(f"q and k must both have 2 or both 3 dimensions, not {q.dim()} and {k.dim()}")
    if q.dtype != k.dtype:
        raise TypeError(f"q has dtype {q.dtype} and k {k.dtype}; they must be the same")
    if q.shape[1:] != k.shape[1:]:
        shapes = f"{list(q.shape[1:])} and k {list(k.shape[1:])}" if heads else f"{q.size(1)} and k {k.size(1)}"
        raise ValueError(f"q has width {shapes}; they must be the same")
    if not heads:
        return eager.sddmm(plan.side, plan.num_edges, 1, q, k, None, None).squeeze(1)
    if q.size(1) == 0:
        return q.new_empty(plan.num_edges, 0)
    return eager.sddmm(plan.side, plan.num_edges, q.size(1), q.flatten(1), k.flatten(1), None, None)


def _scaled(x: Tensor, scale: Tensor) -> Tensor:
    return x * scale.unsqueeze(-1)


def _check_plan(plan: Plan) -> None:
    if not isinstance(plan, Plan):
        raise TypeError(f"plan must be a pyg_sparse.Plan, not {type(plan).__name__}; make one with pyg_sparse.plan")


def _need_plain_messages(
    reduce: str, edge_weight: Tensor | StoredWeight | None, *, relu: bool, **vectors: Tensor | None
) -> None:
    """An extremum is taken over the edges' own messages: nothing is multiplied or added to them or to the result."""
    given = [name for name, vector in vectors.items() if vector is not None] + ["relu"] * bool(relu)
    if given:
        raise ValueError(f"{given[0]} cannot be used with reduce={reduce!r}; it needs reduce='sum' or 'mean'")
    if isinstance(edge_weight, StoredWeight):
        raise ValueError(f"a stored edge_weight cannot be used with reduce={reduce!r}: pass the weights, [E]")
    if isinstance(edge_weight, Tensor) and edge_weight.dim() == 2:
        raise ValueError(
            f"edge_weight of shape {list(edge_weight.shape)} cannot be used with reduce={reduce!r}, which takes one "
            "weight per edge, [E]"
        )


def _need_edge_values(plan: Plan, what: str) -> None:
    if not plan.has_edge_values:
        raise ValueError(f"{what} needs a plan made with edge_values=True")
