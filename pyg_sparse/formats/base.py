"""What every format has: a spec that a user writes, and a matrix that holds tensors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor

from pyg_sparse.formats.checks import each_once, in_range, require
from pyg_sparse.formats.rows import Rows

Matrix = TypeVar("Matrix", bound="SparseMatrix")


class FormatSpec(ABC):
    """A choice of format with its parameters; ``build`` makes the matrix. Subclasses are frozen dataclasses."""

    name: ClassVar[str]

    @abstractmethod
    def build(self, rows: Rows) -> SparseMatrix: ...


@dataclass(frozen=True, eq=False)
class SparseMatrix(ABC):
    """A sparse 0/1 matrix in one format, with the slot map from its positions to the caller's edges.

    Attributes:
        num_rows, num_cols: shape.
        nnz: number of entries, without padding.
        num_partials: rows of workspace that spmm needs (docs/design.md, section 4).
        layout_names: the tensors in the order in which the compiled operators read them.
    """

    name: ClassVar[str]
    layout_names: ClassVar[tuple[str, ...]]
    num_rows: int
    num_cols: int
    nnz: int
    num_partials: int
    col: Tensor
    slot: Tensor

    @classmethod
    @abstractmethod
    def from_csr(cls: type[Matrix], rows: Rows, spec: Any) -> Matrix:
        """Builds the matrix from sorted rows, on their device."""

    @abstractmethod
    def stored_entries(self) -> tuple[Tensor, Tensor, Tensor]:
        """int64 row, column and position of every entry, in stored order."""

    @abstractmethod
    def check_structure(self) -> None:
        """Raises ValueError unless the format's own tensors are consistent, so that no kernel reads past them."""

    def check(self) -> None:
        """Raises ValueError unless a kernel can run on this matrix: what a file may have got wrong."""
        require(min(self.num_rows, self.num_cols, self.nnz, self.num_partials) >= 0, "a negative size")
        self.check_structure()
        require(self.slot.dtype in (torch.int32, torch.int64), "slot's dtype")
        if self.slot.numel():
            require(self.slot.shape == self.col.shape, "slot's shape")
            require(in_range(self.slot, 0, self.nnz), "slot's range")  # kernels read values in padding, too
            require(each_once(self.slot, self.nnz, self.col), "slot")

    @property
    def layout(self) -> list[Tensor]:
        return [getattr(self, name) for name in self.layout_names]

    @property
    def has_slots(self) -> bool:
        return self.slot.numel() > 0 or self.nnz == 0

    @property
    def device(self) -> torch.device:
        return self.col.device

    def to_coo(self) -> tuple[Tensor, Tensor]:
        """int64 ``row, col`` of every entry: in the caller's edge order with a slot map, else in stored order."""
        row, col, position = self.stored_entries()
        if not self.has_slots:
            return row, col
        edge = self.slot.index_select(0, position).long()
        return torch.empty_like(row).index_copy_(0, edge, row), torch.empty_like(col).index_copy_(0, edge, col)

    def tensors(self) -> dict[str, Tensor]:
        return {f.name: value for f in fields(self) if isinstance(value := getattr(self, f.name), Tensor)}

    def numbers(self) -> dict[str, int]:
        return {f.name: value for f in fields(self) if isinstance(value := getattr(self, f.name), int)}

    def to(self: Matrix, device: torch.device | str) -> Matrix:
        moved: dict[str, Any] = {name: tensor.to(device) for name, tensor in self.tensors().items()}
        return replace(self, **moved)

    def num_bytes(self) -> int:
        return sum(tensor.nbytes for tensor in self.tensors().values())

    def stats(self) -> dict[str, Any]:
        """Bytes, padding ratio (stored positions per entry, minus one) and what is particular to the format."""
        positions = self.col.numel()
        return {
            "format": self.name,
            "bytes": self.num_bytes(),
            "padding": positions / self.nnz - 1.0 if self.nnz else 0.0,
            "partials": self.num_partials,
        }
