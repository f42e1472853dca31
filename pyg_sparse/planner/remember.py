"""What the cache on disk keeps of a plan: the choice always, its arrays where they are sooner read than built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

import pyg_sparse
from pyg_sparse.order import Order
from pyg_sparse.plan import DEFAULT_BUDGET, Plan
from pyg_sparse.planner.candidates import describe_spec
from pyg_sparse.planner.choice import Choice, check_report, from_report
from pyg_sparse.planner.decide import Wanted
from pyg_sparse.planner.device import device_name
from pyg_sparse.planner.fingerprint import fingerprint
from pyg_sparse.planner.folder import warn
from pyg_sparse.planner.model import MODEL
from pyg_sparse.planner.record import Record
from pyg_sparse.planner.store import Store
from pyg_sparse.serialize import MALFORMED, pack, unpack

READ_GBS = 2.0  # of a file in memory, checked and copied (docs/cache.md)
_LARGEST_SHARE = 0.5  # of the cache, for one plan's arrays


def _tuned(budget_s: float) -> str:
    return f"tune, {budget_s:g} s"


TUNED = _tuned(DEFAULT_BUDGET)


@dataclass
class Memory:
    """The records of one graph, for what is wanted of its plan.

    Attributes:
        key: of the choice; that of the arrays differs in its kind.
        told: the report of the choice, once it was found.
    """

    store: Store
    key: dict[str, str | int]
    device: torch.device
    sizes: tuple[int, int]
    told: dict[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(edge_index: Tensor, num_src: int, num_dst: int, wanted: Wanted, edge_values: bool) -> Memory | None:
        """None where there is no cache."""
        store = Store.default()
        if store is None:
            return None
        key: dict[str, str | int] = {
            "kind": "choice",
            "library": pyg_sparse.__version__,
            "model": MODEL,
            "operator": "spmm",
            "graph": fingerprint(edge_index, num_src, num_dst),
            "device": device_name(edge_index.device),
            "cases": "; ".join(map(str, wanted.cases)),
            "order": wanted.order,
            "format": "auto" if wanted.spec is None else describe_spec(wanted.spec),
            "mode": "auto" if wanted.budget_s is None else _tuned(wanted.budget_s),
            "edge_values": int(edge_values),
        }
        return Memory(store, key, edge_index.device, (num_dst, num_src))

    def holds(self) -> bool:
        """Whether a choice was kept, so that nothing will be predicted or measured."""
        return self._get("choice") is not None

    def plan(self) -> Plan | None:
        """The whole plan, if it was kept."""
        if self.device.type != "cpu":  # a GPU sorts edges in less time than a file is read in
            return None
        record = self._get("plan")
        if record is None:
            return None
        try:
            tensors = {name: tensor.clone() for name, tensor in record.tensors.items()}
            return unpack(record.about, tensors, check_edges=False)
        except MALFORMED as problem:
            warn(f"the cache's plan of this graph is not used: {problem!r}")
            return None

    def _get(self, kind: str) -> Record | None:
        """What was measured serves those too who would be content with a prediction."""
        modes = [TUNED, self.key["mode"]] if self.key["mode"] == "auto" else [self.key["mode"]]
        for mode in modes:
            if record := self.store.get(self.key | {"kind": kind, "mode": mode}):
                return record
        return None

    def choices(self) -> tuple[Choice, Choice] | None:
        """Of both directions, if they were kept."""
        record = self._get("choice")
        if record is None:
            return None
        try:
            forward = self._choice(record.about["forward"], record.tensors, "forward", self.sizes[0])
            backward = forward
            if self.sizes[0] != self.sizes[1] or record.about["symmetric"] is not True:
                backward = self._choice(record.about["backward"], record.tensors, "backward", self.sizes[1])
            for side in ("forward", "backward"):
                check_report(record.about[side])
        except MALFORMED as problem:
            warn(f"the cache's choice for this graph is not used: {problem!r}")
            return None
        self.told = {"forward": record.about["forward"], "backward": record.about["backward"]}
        return forward, backward

    def _choice(self, about: Mapping[str, Any], tensors: Mapping[str, Tensor], side: str, num_rows: int) -> Choice:
        choice = from_report(about, {})
        orders: dict[str, Order | None] = {}
        for name in {candidate.order for candidate in choice.chosen()}:
            if name == "degree":
                orders[name] = None
                continue
            row = tensors[f"{side}.{name}.row"].to(self.device).long()
            if row.shape != (num_rows,) or not torch.equal(
                row.sort().values, torch.arange(num_rows, device=row.device)
            ):
                raise ValueError(f"{name} is no order of {num_rows} rows")
            group = tensors.get(f"{side}.{name}.group")
            if group is not None:
                group = group.to(self.device).long()
                if group.shape != (num_rows,):
                    raise ValueError(f"{name} has no group for each row")
            orders[name] = Order(row, group)
        return Choice(choice.base, choice.special, orders)

    def keep(self, plan: Plan, choices: tuple[Choice, Choice], seconds: Mapping[str, float]) -> None:
        """``seconds``: what the steps of making the plan took."""
        if not self.told:
            tensors: dict[str, Tensor] = {}
            sides = {"forward": choices[0]} if plan.symmetric else {"forward": choices[0], "backward": choices[1]}
            for side, choice in sides.items():
                for name, order in choice.orders.items():
                    if order is not None:
                        tensors[f"{side}.{name}.row"] = order.row.int().cpu()
                    if order is not None and order.group is not None:
                        tensors[f"{side}.{name}.group"] = order.group.int().cpu()
            self.store.put(self.key, {**plan.report, "symmetric": plan.symmetric, "seconds": dict(seconds)}, tensors)
        fits = plan.num_bytes() <= _LARGEST_SHARE * self.store.max_bytes
        if (
            self.device.type == "cpu"
            and fits
            and seconds["sort"] + seconds["build"] > plan.num_bytes() / READ_GBS / 1e9
        ):
            about, arrays = pack(plan)
            self.store.put(self.key | {"kind": "plan"}, about, arrays)
