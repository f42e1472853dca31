"""Plans of graphs seen before, held as long as the graph's own tensor lives.

A layer is given an ``edge_index`` and keeps no graph itself. Here its plan is found again by the identity of
the tensor *object*: an entry goes with its tensor, and is rebuilt when the tensor has changed.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from pyg_sparse.plan import Plan, plan

NumNodes = int | tuple[int, int]


@dataclass
class _Entry:
    state: tuple[object, ...]
    plans: dict[NumNodes, Plan] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


_entries = WeakTensorKeyDictionary()
_lock = threading.Lock()


@torch.compiler.disable(reason="plans are looked up in Python; pass a pyg_sparse.Plan to avoid the break")
def plan_for(edge_index: Tensor, num_nodes: NumNodes, *, edge_values: bool) -> Plan:
    """The plan of ``edge_index``, built at the first call and again whenever the tensor has changed.

    Args:
        edge_index: ``[2, E]``, or a ``torch.sparse`` matrix (CSR or coalesced COO) with a row per target and
            a column per source, whose entries then are the edges.
        num_nodes: The number of nodes, or ``(num_src, num_dst)``.
        edge_values: Whether the plan must accept explicit edge values. One that does serves every call.

    A change is seen by the tensor's version counter, address and shape. What PyTorch does not see, such as
    a write through ``edge_index.data`` or through the NumPy array it was made from, is not seen here either.
    The cache on disk is not used: a layer may be given another sampled graph at every step. Tensors made under
    ``torch.inference_mode`` have no version counter; they are planned on every call.
    """
    if edge_index.is_inference():
        return plan(_edges(edge_index), num_nodes, edge_values=edge_values, cache=False)

    state = _state(edge_index)
    with _lock:
        entry = _entries.get(edge_index)
        if entry is None or entry.state != state:
            entry = _entries[edge_index] = _Entry(state)
    with entry.lock:  # a second thread that wants the same plan waits instead of building it again
        found = entry.plans.get(num_nodes)
        if found is None or (edge_values and not found.has_edge_values):
            found = plan(_edges(edge_index), num_nodes, edge_values=edge_values, cache=False)
            entry.plans[num_nodes] = found
        return found


def _parts(edge_index: Tensor) -> tuple[Tensor, ...]:
    """The plain tensors that hold the edges."""
    if edge_index.layout == torch.sparse_csr:
        return edge_index.crow_indices(), edge_index.col_indices()
    if edge_index.layout == torch.sparse_coo:
        return (edge_index.indices(),)
    return (edge_index,)


def _state(edge_index: Tensor) -> tuple[object, ...]:
    return tuple((part._version, part.data_ptr(), part.shape, part.stride()) for part in _parts(edge_index))


def _edges(edge_index: Tensor) -> Tensor:
    if edge_index.layout == torch.sparse_csr:
        rowptr, col = _parts(edge_index)
        rows = torch.arange(edge_index.size(0), dtype=col.dtype, device=col.device)
        row = rows.repeat_interleave(rowptr.diff(), output_size=col.numel())
        return torch.stack([col, row])
    if edge_index.layout == torch.sparse_coo:
        return edge_index.indices().flip(0)
    return edge_index
