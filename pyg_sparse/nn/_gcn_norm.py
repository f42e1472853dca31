r"""GCN's normalization as the factors of :func:`pyg_sparse.spmm`: no self-loop becomes an edge.

With the weight :math:`w_e` of an edge and :math:`s_i` of a node's self-loop,

.. math::
    \mathbf{x}^{\prime}_i = d_i^{-1/2} \sum_{e: j \to i} w_e d_j^{-1/2} \mathbf{x}_j
    + s_i d_i^{-1} \mathbf{x}_i, \qquad d_i = \sum_{e: j \to i} w_e + s_i.

PyG has one rule of self-loops for an ``edge_index``, :func:`replaced_self_loops`, and another for a
``torch.sparse`` matrix, :func:`added_self_loops`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from pyg_sparse.ops import spmm
from pyg_sparse.plan import Plan
from pyg_sparse.weights import StoredWeight


class Propagation(NamedTuple):
    """Everything :func:`pyg_sparse.spmm` needs to aggregate over one graph."""

    plan: Plan
    edge_weight: Tensor | StoredWeight | None = None
    scale: Tensor | None = None
    self_scale: Tensor | None = None

    def kept(self) -> Propagation:
        """The same for many calls: edge weights without a gradient are brought into the plan's order."""
        weight = self.edge_weight
        if not isinstance(weight, Tensor) or weight.requires_grad:
            return self
        if not weight.is_floating_point():
            weight = weight.to(torch.float32 if self.scale is None else self.scale.dtype)
        return self._replace(edge_weight=self.plan.store_weight(weight))

    def __call__(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        # The features' dtype counts now, which autocast may have lowered since the factors were computed.
        edge_weight = None if self.edge_weight is None else self.edge_weight.to(x.dtype)
        scale = None if self.scale is None else self.scale.to(accumulate_dtype(x))
        self_scale = None if self.self_scale is None else self.self_scale.to(accumulate_dtype(x))
        bias = None if bias is None else bias.to(accumulate_dtype(x))
        return spmm(self.plan, x, edge_weight, row_scale=scale, col_scale=scale, self_scale=self_scale, bias=bias)


def accumulate_dtype(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


def gcn_norm(plan: Plan, edge_weight: Tensor | None, self_weight: Tensor | None, dtype: torch.dtype) -> Propagation:
    """Symmetric normalization of a square graph, whose nodes have self-loops of ``self_weight`` (``[N]``)."""
    degree = _degree(plan, edge_weight, dtype)
    if self_weight is not None:
        degree = degree + self_weight
    scale = degree.pow(-0.5)
    scale = scale.masked_fill(scale == float("inf"), 0.0)
    self_scale = None if self_weight is None else self_weight * scale * scale
    return Propagation(plan, edge_weight, scale, self_scale)


def replaced_self_loops(
    plan: Plan, edge_weight: Tensor | None, fill_value: float, dtype: torch.dtype
) -> tuple[Tensor | None, Tensor]:
    """One self-loop a node instead of those in the graph: PyG's ``add_remaining_self_loops``.

    Returns the weights of the edges and of each node's self-loop, which is that of its loop in the graph (of
    several, the last), otherwise ``fill_value``; without edge weights it is 1, whatever ``fill_value`` is.
    """
    if edge_weight is None:
        fill_value = 1.0
    self_weight = torch.full((plan.num_dst,), fill_value, dtype=dtype, device=plan.device)
    if plan.self_loops.numel() == 0:
        return edge_weight, self_weight
    if edge_weight is None:
        # The plan's own loops contribute 1 each. Taken off the self term, one plan serves every rule.
        ones = torch.ones_like(plan.loop_nodes, dtype=dtype)
        return None, self_weight.index_add(0, plan.loop_nodes, ones, alpha=-1)
    # PyG assigns with duplicates in the same way, so each of them receives the whole gradient here as well.
    self_weight = self_weight.index_put((plan.loop_nodes,), edge_weight[plan.self_loops].to(dtype))
    return edge_weight.index_fill(0, plan.self_loops, 0.0), self_weight


def added_self_loops(plan: Plan, fill_value: float, dtype: torch.dtype) -> Tensor:
    """The weight of one more self-loop a node, on top of those in the graph: PyG's ``add_self_loops``."""
    return torch.full((plan.num_dst,), fill_value, dtype=dtype, device=plan.device)


def _degree(plan: Plan, edge_weight: Tensor | None, dtype: torch.dtype) -> Tensor:
    if edge_weight is None:
        return plan.in_degree.to(dtype)
    ones = torch.ones((plan.num_src, 1), dtype=dtype, device=plan.device)
    return spmm(plan, ones, edge_weight.to(dtype)).squeeze(-1)
