"""What the planner chooses among: an order of rows and a format with its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from pyg_sparse.formats import SPECS, Coo, Csr, FormatSpec, Hyb
from pyg_sparse.formats.csr import default_split
from pyg_sparse.formats.hyb import default_exponent

_LONGEST_SPLIT = 4096  # longer parts leave most of a device waiting for one warp


@dataclass(frozen=True)
class Candidate:
    """``order``: name of an order of rows; ``spec``: the format."""

    order: str
    spec: FormatSpec

    def __str__(self) -> str:
        return f"{describe_spec(self.spec)}, rows by {self.order}"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        own = {f.name: getattr(self.spec, f.name) for f in fields(self.spec)}  # type: ignore[arg-type]
        return {"order": self.order, "format": self.spec.name, **own}

    @staticmethod
    def from_dict(about: Mapping[str, Any]) -> Candidate:
        """Raises KeyError, TypeError or ValueError unless it is what :meth:`as_dict` returns."""
        own = dict(about)
        order, name = own.pop("order"), own.pop("format")
        if not isinstance(order, str):
            raise TypeError(f"order must be a name, not {order!r}")
        return Candidate(order, SPECS[name](**own))


def describe_spec(spec: FormatSpec) -> str:
    """``csr``, ``csr(split=64)``, ``hyb(c=1, k=5)``: without what is left to the default."""
    own = {f.name: getattr(spec, f.name) for f in fields(spec)}  # type: ignore[arg-type]
    given = ", ".join(f"{name}={value}" for name, value in own.items() if value is not None)
    return f"{spec.name}({given})" if given else spec.name


def candidate_specs(num_rows: int, nnz: int, *, on_cuda: bool) -> list[FormatSpec]:
    """The formats worth a prediction; csr with its defaults comes first."""
    found: list[FormatSpec] = [Csr()]
    if nnz == 0:
        return found
    k = default_exponent(nnz, num_rows)
    if not on_cuda:  # there a row is summed by one core whatever its length, and buckets save no waiting
        return [*found, Coo(4096), Hyb(1, k), Hyb(1, k + 1)]
    split, mean = default_split(nnz, num_rows), nnz / num_rows
    if split // 4 >= max(2 * mean, 16):
        found.append(Csr(split // 4))
    if split < _LONGEST_SPLIT:
        found.append(Csr(min(split * 4, _LONGEST_SPLIT)))
    return [*found, Coo(1024), *(Hyb(1, i) for i in (k, k + 1, k + 2))]
