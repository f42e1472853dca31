"""The public operators: sparse-dense product and sampled dense-dense product over a plan."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_sparse.plan import Plan
from pyg_sparse.validate import check_features, check_vector

REDUCTIONS = ("sum", "mean")


def spmm(
    plan: Plan,
    x: Tensor,
    edge_weight: Tensor | None = None,
    *,
    reduce: str = "sum",
    row_scale: Tensor | None = None,
    col_scale: Tensor | None = None,
    self_scale: Tensor | None = None,
) -> Tensor:
    r"""Aggregates the features of every target's in-neighbours.

    .. math::
        y_i = r_i \sum_{e: j \to i} w_e c_j x_j + s_i x_i

    with edge weights :math:`w`, row scale :math:`r`, column scale :math:`c` and self scale :math:`s`; those not
    given are 1, and 0 for :math:`s`. Sums are fp32 for fp16, bf16 and fp32 features and fp64 for fp64. The result
    repeats bit for bit. Differentiable any number of times in ``x``, ``edge_weight`` and the scales.

    Args:
        plan: the graph.
        x: ``[..., num_src, K]``, fp64, fp32, bf16 or fp16, any strides.
        edge_weight: ``[E]`` of x's dtype (under autocast, any), in the order of the plan's ``edge_index``.
        reduce: ``"sum"``, or ``"mean"``: the sum divided by the number of in-edges (0 where there are none).
        row_scale: ``[num_dst]``, fp64 for fp64 features and fp32 otherwise.
        col_scale: ``[num_src]``, the same.
        self_scale: ``[num_dst]``, the same; needs as many sources as targets.

    Returns:
        ``[..., num_dst, K]`` of x's dtype.

    Raises:
        TypeError, ValueError: an argument does not fit the plan; the message says how.
    """
    _check_plan(plan)
    check_features("x", x, plan.device, plan.num_src, "sources")
    scale_dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    if reduce not in REDUCTIONS:
        raise ValueError(f"reduce={reduce!r} must be one of {', '.join(REDUCTIONS)}")
    if edge_weight is not None:
        _need_edge_values(plan, "edge_weight")
        if torch.is_autocast_enabled(x.device.type) and isinstance(edge_weight, Tensor):
            edge_weight = edge_weight.to(x.dtype)  # autocast lowers x, but not the weights, on the way here
        check_vector("edge_weight", edge_weight, plan.device, plan.num_edges, x.dtype, "edge")
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

    if x.dim() > 2:  # one product for all batches: they become columns
        nodes_first = x.movedim(-2, 0)
        flat = spmm(
            plan,
            nodes_first.flatten(1),
            edge_weight,
            reduce=reduce,
            row_scale=row_scale,
            col_scale=col_scale,
            self_scale=self_scale,
        )
        return flat.unflatten(1, nodes_first.shape[1:]).movedim(0, -2)

    if reduce == "mean":
        inverse = plan.in_degree.clamp(min=1).to(scale_dtype).reciprocal()
        row_scale = inverse if row_scale is None else row_scale * inverse

    # The operator has no gradient in its scales: those that need one are multiplied by torch.
    before = after = add = None
    if torch.is_grad_enabled() and any(s is not None and s.requires_grad for s in (row_scale, col_scale, self_scale)):
        if x.dtype in (torch.bfloat16, torch.float16):  # between the steps, sums keep the accumulator's precision
            weight = None if edge_weight is None else edge_weight.float()
            wide = spmm(plan, x.float(), weight, row_scale=row_scale, col_scale=col_scale, self_scale=self_scale)
            return wide.to(x.dtype)
        if col_scale is not None and col_scale.requires_grad:
            before, col_scale = col_scale, None
        if row_scale is not None and row_scale.requires_grad:
            after, row_scale = row_scale, None
        if self_scale is not None and (self_scale.requires_grad or after is not None or before is not None):
            add, self_scale = self_scale, None
    out = torch.ops.pyg_sparse.spmm(
        plan.forward.name,
        plan.forward.layout,
        plan.forward.num_partials,
        plan.backward.name,
        plan.backward.layout,
        plan.backward.num_partials,
        plan.num_dst,
        plan.num_src,
        x if before is None else _scaled(x, before),
        edge_weight,
        row_scale,
        col_scale,
        self_scale,
    )
    if after is not None:
        out = _scaled(out, after)
    if add is not None:
        out = out + _scaled(x, add)
    return out


def sddmm(plan: Plan, q: Tensor, k: Tensor) -> Tensor:
    r"""The dot product over every edge: :math:`s_e = \langle q_i, k_j \rangle` for :math:`e: j \to i`.

    Args:
        plan: the graph, made with ``edge_values=True``.
        q: ``[num_dst, K]``, fp64, fp32, bf16 or fp16, any strides.
        k: ``[num_src, K]`` of q's dtype.

    Returns:
        ``[E]`` of q's dtype, in the order of the plan's ``edge_index``. Differentiable any number of times.

    Raises:
        TypeError, ValueError: an argument does not fit the plan; the message says how.
    """
    _check_plan(plan)
    _need_edge_values(plan, "sddmm")
    check_features("q", q, plan.device, plan.num_dst, "targets")
    check_features("k", k, plan.device, plan.num_src, "sources")
    if q.dim() != 2 or k.dim() != 2:
        raise ValueError(f"q and k must have 2 dimensions, not {q.dim()} and {k.dim()}")
    if q.dtype != k.dtype:
        raise TypeError(f"q has dtype {q.dtype} and k {k.dtype}; they must be the same")
    if q.size(1) != k.size(1):
        raise ValueError(f"q has width {q.size(1)} and k {k.size(1)}; they must be the same")
    return torch.ops.pyg_sparse.sddmm(
        plan.forward.name,
        plan.forward.layout,
        plan.forward.num_partials,
        plan.backward.name,
        plan.backward.layout,
        plan.backward.num_partials,
        plan.num_dst,
        plan.num_src,
        plan.num_edges,
        q,
        k,
        None,
        None,
    )


def _scaled(x: Tensor, scale: Tensor) -> Tensor:
    return x * scale.unsqueeze(-1)


def _check_plan(plan: Plan) -> None:
    if not isinstance(plan, Plan):
        raise TypeError(f"plan must be a pyg_sparse.Plan, not {type(plan).__name__}; make one with pyg_sparse.plan")


def _need_edge_values(plan: Plan, what: str) -> None:
    if not plan.has_edge_values:
        raise ValueError(f"{what} needs a plan made with edge_values=True")
