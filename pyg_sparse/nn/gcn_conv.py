from __future__ import annotations

from typing import Any, ClassVar

import torch
import torch_geometric.nn
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.dense import Linear
from torch_geometric.typing import Adj, OptTensor
from torch_geometric.utils import is_torch_sparse_tensor

from pyg_sparse.cache import plan_for
from pyg_sparse.nn._gcn_norm import (
    Propagation,
    accumulate_dtype,
    added_self_loops,
    gcn_norm,
    replaced_self_loops,
)
from pyg_sparse.nn._pyg_path import pyg_path_reason
from pyg_sparse.plan import Plan


class GCNConv(torch_geometric.nn.GCNConv):
    r"""The graph convolutional operator from the `"Semi-supervised Classification with Graph Convolutional
    Networks" <https://arxiv.org/abs/1609.02907>`_ paper, with the constructor, ``state_dict`` and numbers of
    :class:`torch_geometric.nn.GCNConv`.

    .. math::
        \mathbf{X}^{\prime} = \mathbf{\hat{D}}^{-1/2} \mathbf{\hat{A}} \mathbf{\hat{D}}^{-1/2} \mathbf{X}
        \mathbf{\Theta},

    where :math:`\mathbf{\hat{A}} = \mathbf{A} + \mathbf{I}` denotes the adjacency matrix with inserted
    self-loops and :math:`\hat{D}_{ii} = \sum_{j=0} \hat{A}_{ij}` its diagonal degree matrix. The adjacency
    matrix can include other values than 1 representing edge weights via the optional ``edge_weight`` tensor.

    The graph is a :class:`pyg_sparse.Plan`, which the caller keeps, or an ``edge_index`` or ``torch.sparse``
    matrix, whose plan is built at the first call and found again as long as that tensor lives unchanged (see
    :mod:`pyg_sparse.cache`). A plan stands for the ``edge_index`` it was built from.

    Where messages are asked for, which a plan never forms, the layer runs PyG's own code, and a plan raises:
    in explain mode, with message passing hooks, for ``decomposed_layers > 1``, an ``aggr`` other than
    ``"add"`` or a ``node_dim`` other than the last but one, in a subclass that overrides ``message``, ``aggregate``,
    ``update``, ``message_and_aggregate`` or ``propagate``, and under ``torch.jit.trace``. PyG's own code also
    takes a ``torch_sparse.SparseTensor`` and a CSC or uncoalesced COO matrix.

    Args:
        in_channels (int): Size of each input sample, or -1 to derive the size from the first input.
        out_channels (int): Size of each output sample.
        improved (bool, optional): Give self-loops the weight 2 instead of 1. As in PyG, it has no effect on
            an ``edge_index`` without edge weights. (default: ``False``)
        cached (bool, optional): Keep the plan and the normalization of the first call, and ignore the graph
            of every later one. (default: ``False``)
        add_self_loops (bool, optional): Add self-loops: to an ``edge_index``, instead of those in the graph,
            whose weight they keep; to a ``torch.sparse`` matrix, on top of them. (default: as ``normalize``)
        normalize (bool, optional): Add self-loops and apply symmetric normalization. (default: ``True``)
        bias (bool, optional): Learn an additive bias. (default: ``True``)
        **kwargs (optional): Additional arguments of :class:`torch_geometric.nn.MessagePassing`.

    Shapes:
        - **input:** node features :math:`(*, |\mathcal{V}|, F_{in})`, edge indices
          :math:`(2, |\mathcal{E}|)` or sparse matrix :math:`(|\mathcal{V}|, |\mathcal{V}|)` or plan, edge
          weights :math:`(|\mathcal{E}|)` *(optional)*
        - **output:** node features :math:`(*, |\mathcal{V}|, F_{out})`

    Features may be fp64, fp32, bf16 or fp16. The output has their dtype, to which edge weights are cast;
    degrees and sums are fp32, or fp64 for fp64. Under autocast the output has autocast's dtype.
    """

    # PyG reads this from the source of the class it finds by name, and finds this one for its own GCNConv.
    propagate_type: ClassVar[dict[str, Any]] = {"x": Tensor, "edge_weight": OptTensor}
    # Explain mode returns to this. Inherited, it would be what PyG generated for its own GCNConv, which
    # explains nothing.
    propagate = MessagePassing.propagate

    _cached_edge_index: Any  # PyG's normalized edge_index, or our Propagation

    def forward(self, x: Tensor, edge_index: Adj | Plan, edge_weight: OptTensor = None) -> Tensor:
        if isinstance(x, (tuple, list)):
            return super().forward(x, edge_index, edge_weight)  # for PyG's error
        reason = pyg_path_reason(self, torch_geometric.nn.GCNConv, x)
        if reason is not None and isinstance(edge_index, Plan):
            raise ValueError(
                f"{self.__class__.__name__} cannot run on a Plan while {reason}: pass the edge_index instead"
            )
        if reason is not None or not self._can_plan(edge_index):
            if isinstance(self._cached_edge_index, Propagation):
                self._cached_edge_index = None
            return super().forward(x, edge_index, edge_weight)

        propagation = self._propagation(x, edge_index, edge_weight)
        # Aggregation is linear in the features, so it may run at the narrower of the two widths.
        if x.layout == torch.strided and x.size(-1) < self.out_channels and type(self.lin) is Linear:
            out = self.lin(propagation(x))
            return out if self.bias is None else out + self.bias.to(out.dtype)
        return propagation(self.lin(x), self.bias)

    def _can_plan(self, edge_index: Adj | Plan) -> bool:
        if isinstance(edge_index, Plan):
            return True
        if not is_torch_sparse_tensor(edge_index):
            return isinstance(edge_index, Tensor)
        if edge_index.layout == torch.sparse_coo and not edge_index.is_coalesced():
            return False
        return edge_index.layout != torch.sparse_csc and self.flow == "source_to_target"

    def _propagation(self, x: Tensor, edge_index: Tensor | Plan, edge_weight: OptTensor) -> Propagation:
        if self.normalize and isinstance(self._cached_edge_index, Propagation):
            return self._cached_edge_index

        plan, edge_weight = self._plan(x, edge_index, edge_weight)
        if not self.normalize:
            return Propagation(plan, edge_weight)
        if plan.num_src != plan.num_dst:
            raise ValueError(
                f"{self.__class__.__name__} normalizes square graphs only (got a plan of {plan.num_src} "
                f"sources and {plan.num_dst} targets); a bipartite graph needs normalize=False"
            )

        dtype = accumulate_dtype(x)
        fill_value = 2.0 if self.improved else 1.0
        self_weight = None
        if self.add_self_loops and is_torch_sparse_tensor(edge_index):
            self_weight = added_self_loops(plan, fill_value, dtype)
        elif self.add_self_loops:
            edge_weight, self_weight = replaced_self_loops(plan, edge_weight, fill_value, dtype)
        propagation = gcn_norm(plan, edge_weight, self_weight, dtype)
        if self.cached:
            self._cached_edge_index = propagation = propagation.kept()
        return propagation

    def _plan(self, x: Tensor, edge_index: Tensor | Plan, edge_weight: OptTensor) -> tuple[Plan, OptTensor]:
        if isinstance(edge_index, Plan):
            plan = edge_index
        elif is_torch_sparse_tensor(edge_index):
            plan = plan_for(edge_index, (edge_index.size(1), edge_index.size(0)), edge_values=True)
            edge_weight = edge_index.values()  # PyG ignores the argument as well
        else:
            edges = edge_index.as_tensor() if isinstance(edge_index, EdgeIndex) else edge_index
            plan = plan_for(edges, x.size(-2), edge_values=edge_weight is not None)
        if self.flow == "target_to_source":
            plan = plan.t()

        if edge_weight is not None:
            if edge_weight.shape not in ((plan.num_edges,), (plan.num_edges, 1)):
                raise ValueError(
                    f"edge_weight must hold one value per edge, shape [{plan.num_edges}] "
                    f"(got {list(edge_weight.shape)})"
                )
            if edge_weight.device != plan.device:
                raise ValueError(f"edge_weight is on {edge_weight.device}, but the graph is on {plan.device}")
            edge_weight = edge_weight.view(-1)
        return plan, edge_weight
