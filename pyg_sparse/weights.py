"""Edge weights that stay as they are, brought into a plan's own order once instead of at every product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pyg_sparse.validate import check_vector

if TYPE_CHECKING:
    from pyg_sparse.plan import Pair, Plan


@dataclass(frozen=True, eq=False)
class StoredWeight:
    """Constant edge weights in the order in which a plan's matrices store their entries.

    Made by :meth:`pyg_sparse.Plan.store_weight`, for :func:`pyg_sparse.spmm` over that plan or its ``t()``.

    Attributes:
        values: for each matrix ``[positions]``, padding included.
        slots: their slot maps, by which the matrices are recognized.
    """

    values: tuple[Tensor, ...]
    slots: tuple[Tensor, ...]

    @property
    def dtype(self) -> torch.dtype:
        return self.values[0].dtype

    # What is first used for inference must serve training too, where inference tensors cannot be saved.
    @torch.inference_mode(False)
    def to(self, dtype: torch.dtype) -> StoredWeight:
        """The weights in another dtype (themselves if they have it)."""
        if dtype == self.dtype:
            return self
        return StoredWeight(tuple(value.to(dtype) for value in self.values), self.slots)

    def of(self, pair: Plan | Pair) -> tuple[Tensor, Tensor]:
        """In the order of the forward matrix of a plan or of one of its pairs, and in that of the backward one.

        Raises:
            ValueError: they were stored for another plan.
        """
        return self._of(pair.forward.slot), self._of(pair.backward.slot)

    def _of(self, slot: Tensor) -> Tensor:
        for own, value in zip(self.slots, self.values, strict=True):
            if own is slot:
                return value
        raise ValueError("edge_weight was stored for another plan: call store_weight() of this one")


@torch.inference_mode(False)
def store_weight(plan: Plan, edge_weight: Tensor) -> StoredWeight:
    if not plan.has_edge_values:
        raise ValueError("store_weight needs a plan made with edge_values=True")
    dtype = edge_weight.dtype if isinstance(edge_weight, Tensor) else torch.float32
    check_vector("edge_weight", edge_weight, plan.device, plan.num_edges, dtype, "edge")
    if not dtype.is_floating_point:
        raise TypeError(f"edge_weight has dtype {dtype}; it must be a floating-point dtype")
    if edge_weight.requires_grad:
        raise ValueError(
            "edge_weight requires a gradient, which stored weights have not: detach() it, or pass it to spmm as it is"
        )
    slots = tuple(matrix.slot for matrix in plan.matrices())
    return StoredWeight(tuple(edge_weight.index_select(0, slot) for slot in slots), slots)
