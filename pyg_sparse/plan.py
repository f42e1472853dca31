"""A graph's adjacency, converted once into the formats that its forward and backward products run on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pyg_sparse.formats import SPECS, FormatSpec, SparseMatrix
from pyg_sparse.formats.checks import in_range, require
from pyg_sparse.order import ORDERS
from pyg_sparse.planner.cases import Case, case_of, cases_for
from pyg_sparse.side import REVERSED, Side
from pyg_sparse.validate import check_device, check_edge_index, check_num_nodes
from pyg_sparse.weights import StoredWeight, store_weight

if TYPE_CHECKING:
    from pyg_sparse.planner.tune import Progress

MODES = ("auto", "tune")
DEFAULT_BUDGET = 2.0  # seconds


@dataclass(frozen=True, eq=False)
class Pair:
    """The matrices of both directions that some products run on.

    Attributes:
        cases: which products; empty for the plan's own pair, which serves all others.
        forward, backward, orders, side: as in :class:`Plan`.
    """

    cases: frozenset[Case]
    forward: SparseMatrix
    backward: SparseMatrix
    orders: tuple[str, str]
    side: Side

    def t(self) -> Pair:
        return Pair(self.cases, self.backward, self.forward, self.orders[::-1], self.side.t)


@dataclass(frozen=True, eq=False)
class Plan:
    """A fixed graph, ready for :func:`pyg_sparse.spmm` and :func:`pyg_sparse.sddmm` in both directions.

    Made by :func:`pyg_sparse.plan`; immutable, and owned by whoever holds it.

    Attributes:
        num_src, num_dst: nodes on either side of the edges.
        num_edges: edges given, duplicates counted.
        forward: rows are targets, columns sources.
        backward: the transpose.
        symmetric: the structure equals its transpose, so both directions share their structure tensors.
        orders: how the rows of forward and backward are ordered.
        edges: how the caller's edges are sorted: ``"by target"``, ``"by source"`` or ``"otherwise"``. sddmm runs over
            the side on which a row's edges lie together.
        in_degree: int32 ``[num_dst]``, edges into each target.
        out_degree: int32 ``[num_src]``, edges out of each source.
        self_loops: int64, positions in ``edge_index`` of the edges from a node to itself.
        loop_nodes: int64, the node of each of them.
        special: pairs of matrices for products that are much faster on others than ``forward`` and ``backward``.
        report: how the planner chose, for :meth:`explain`; empty where there was nothing to choose.
        side: forward as the compiled operators take it.
    """

    num_src: int
    num_dst: int
    num_edges: int
    forward: SparseMatrix
    backward: SparseMatrix
    symmetric: bool
    orders: tuple[str, str]
    edges: str
    in_degree: Tensor
    out_degree: Tensor
    self_loops: Tensor
    loop_nodes: Tensor
    special: tuple[Pair, ...] = ()
    report: Mapping[str, Any] = field(default_factory=dict)
    side: Side = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "side", side_of(self.forward, self.backward, self.edges))

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in self.__dict__.items() if name != "side"}
        state["special"] = [(p.cases, p.forward, p.backward, p.orders) for p in self.special]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        special = [Pair(cases, a, b, orders, side_of(a, b, state["edges"])) for cases, a, b, orders in state["special"]]
        self.__dict__.update(state | {"special": tuple(special)})
        self.__post_init__()
        finish(self.device)

    def at(self, k: int, dtype: torch.dtype) -> Plan | Pair:
        """What products of ``k`` features of ``dtype`` run on: it has ``forward``, ``backward`` and ``side``."""
        if self.special:
            case = case_of(k, dtype.itemsize)
            for pair in self.special:
                if case in pair.cases:
                    return pair
        return self

    def pairs(self) -> tuple[Plan | Pair, ...]:
        """The plan itself, which serves what the others do not, and these."""
        return (self, *self.special)

    def matrices(self) -> list[SparseMatrix]:
        """All of them, each once."""
        return list({id(m): m for pair in self.pairs() for m in (pair.forward, pair.backward)}.values())

    @property
    def device(self) -> torch.device:
        return self.forward.device

    @property
    def has_edge_values(self) -> bool:
        """Whether the plan takes explicit edge values (``edge_values=True`` when it was made)."""
        return self.forward.has_slots and self.backward.has_slots

    def t(self) -> Plan:
        """The plan of the reversed graph; it shares every tensor with this one."""
        return replace(
            self,
            num_src=self.num_dst,
            num_dst=self.num_src,
            forward=self.backward,
            backward=self.forward,
            orders=self.orders[::-1],
            edges=REVERSED[self.edges],
            in_degree=self.out_degree,
            out_degree=self.in_degree,
            special=tuple(pair.t() for pair in self.special),
            report={"forward": self.report["backward"], "backward": self.report["forward"]} if self.report else {},
        )

    def store_weight(self, edge_weight: Tensor) -> StoredWeight:
        """Constant edge weights, brought into the plan's order once: :func:`pyg_sparse.spmm` reads them in sequence.

        Takes the memory of a copy for each of the plan's matrices. Weights that change, or need a gradient, are passed
        to :func:`pyg_sparse.spmm` as they are.

        Args:
            edge_weight: ``[E]`` of a floating-point dtype, in the order of ``edge_index``, without a gradient.

        Raises:
            TypeError, ValueError: it does not fit the plan; the message says how.
        """
        return store_weight(self, edge_weight)

    def edge_index(self) -> Tensor:
        """int64 ``[2, E]``, rebuilt: in the caller's edge order if the plan has edge values, else sorted by target."""
        dst, src = self.forward.to_coo()
        return torch.stack([src, dst])

    @torch.inference_mode(False)
    def to(self, device: torch.device | str) -> Plan:
        """This plan on another device (itself if it is there already)."""
        device = check_device(torch.device(device))
        if device == self.device:
            return self
        moved_matrix = {id(matrix): matrix.to(device) for matrix in self.matrices()}
        if self.symmetric:
            for pair in self.pairs():
                a, b = moved_matrix[id(pair.forward)], moved_matrix[id(pair.backward)]
                if a is not b:
                    moved_matrix[id(pair.backward)] = share_structure(b, a)
        forward, backward = moved_matrix[id(self.forward)], moved_matrix[id(self.backward)]
        special = []
        for pair in self.special:
            a, b = moved_matrix[id(pair.forward)], moved_matrix[id(pair.backward)]
            special.append(Pair(pair.cases, a, b, pair.orders, side_of(a, b, self.edges)))
        moved = replace(
            self,
            forward=forward,
            backward=backward,
            in_degree=self.in_degree.to(device),
            out_degree=self.out_degree.to(device),
            self_loops=self.self_loops.to(device),
            loop_nodes=self.loop_nodes.to(device),
            special=tuple(special),
        )
        finish(device)
        return moved

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the plan as one safetensors file, whole or not at all."""
        from pyg_sparse.serialize import save_plan

        save_plan(self, path)

    @staticmethod
    @torch.inference_mode(False)
    def load(path: str | os.PathLike[str], device: torch.device | str = "cpu") -> Plan:
        """Reads a plan written by :meth:`save`. Nothing in the file is executed.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is truncated, is not a plan, or its tensors do not fit together.
        """
        from pyg_sparse.serialize import load_plan

        return load_plan(path, device)

    def check(self, *, edges: bool = True) -> None:
        """Raises ValueError unless every index in the plan's tensors is in range.

        ``edges``: also whether they are sorted as the plan says, which only CUDA's sddmm relies on.
        """
        expected = {"forward": (self.num_dst, self.num_src), "backward": (self.num_src, self.num_dst)}
        for pair in self.pairs():
            for name, shape in expected.items():
                matrix = getattr(pair, name)
                require((matrix.num_rows, matrix.num_cols, matrix.nnz) == (*shape, self.num_edges), f"{name}'s shape")
                matrix.check()
            if self.symmetric:  # backward's slots are used with forward's structure
                require(_same_structure(pair.forward, pair.backward), "symmetric")
            if edges and self.edges != "otherwise" and self.has_edge_values:
                dst, src = pair.forward.to_coo()
                require(is_sorted(dst if self.edges == "by target" else src), "edges")
        for name, size in (("in_degree", self.num_dst), ("out_degree", self.num_src)):
            degree = getattr(self, name)
            require(degree.dtype == torch.int32 and degree.shape == (size,), f"{name}'s shape")
        for name in ("self_loops", "loop_nodes"):
            index = getattr(self, name)
            size = self.num_edges if name == "self_loops" else self.num_dst
            require(index.dtype == torch.int64 and index.shape == self.self_loops.shape, f"{name}'s shape")
            require(in_range(index, 0, size), f"{name}'s range")

    def num_bytes(self) -> int:
        """Bytes of all tensors, shared ones counted once."""
        tensors = [t for matrix in self.matrices() for t in matrix.tensors().values()]
        tensors += [self.in_degree, self.out_degree, self.self_loops, self.loop_nodes]
        return sum({t.data_ptr(): t.nbytes for t in tensors}.values())

    def describe(self) -> dict[str, Any]:
        """What was chosen, and what it costs in bytes and padding."""
        return {
            "num_src": self.num_src,
            "num_dst": self.num_dst,
            "num_edges": self.num_edges,
            "device": str(self.device),
            "symmetric": self.symmetric,
            "orders": self.orders,
            "edges": self.edges,
            "edge_values": self.has_edge_values,
            "self_loops": self.self_loops.numel(),
            "bytes": self.num_bytes(),
            "forward": self.forward.stats(),
            "backward": self.backward.stats(),
            "special": [
                {
                    "cases": sorted(map(str, pair.cases)),
                    "orders": pair.orders,
                    "forward": pair.forward.stats(),
                    "backward": pair.backward.stats(),
                }
                for pair in self.special
            ],
        }

    def explain(self) -> str:
        """What was chosen for which products, what came next, and the terms of the predicted times that decided."""
        from pyg_sparse.planner.explain import explain

        return explain(self)

    def _first_reason(self) -> str:
        from pyg_sparse.planner.explain import headline

        return headline(self)

    def __repr__(self) -> str:
        about = self.describe()
        mean = self.num_edges / max(self.num_dst, 1)
        values = "edge values" if about["edge_values"] else "no edge values"
        lines = [
            f"Plan({self.num_src:,} sources -> {self.num_dst:,} targets, {self.num_edges:,} edges, "
            f"mean in-degree {mean:.1f}, {about['device']}, {_bytes(about['bytes'])}, {values})",
            f"  forward:  {_describe_format(about['forward'])}, rows by {self.orders[0]}",
        ]
        if self.backward is self.forward:
            lines.append("  backward: the same tensors (symmetric)")
        else:
            shared = "structure shared with forward (symmetric); " if self.symmetric else ""
            lines.append(f"  backward: {shared}{_describe_format(about['backward'])}, rows by {self.orders[1]}")
        for pair in about["special"]:
            lines.append(f"  {'; '.join(pair['cases'])}:")
            for i, direction in enumerate(("forward", "backward")):
                lines.append(f"    {direction}: {_describe_format(pair[direction])}, rows by {pair['orders'][i]}")
        if self.report:
            lines.append("  " + self._first_reason())
        return "\n".join(lines)


# A plan first made for inference must serve training too, where inference tensors cannot be saved.
@torch.inference_mode(False)
def plan(
    edge_index: Tensor,
    num_nodes: int | tuple[int, int] | None = None,
    *,
    mode: str = "auto",
    widths: Iterable[int] | None = None,
    dtypes: Iterable[torch.dtype] | None = None,
    format: str | FormatSpec = "auto",
    order: str = "auto",
    edge_values: bool = True,
    budget: float = DEFAULT_BUDGET,
    cache: bool = True,
    progress: Progress | None = None,
) -> Plan:
    """Converts a graph into a :class:`Plan`, on the device of ``edge_index``.

    Below 2^18 edges, or where ``format`` and ``order`` are given, nothing is chosen: small graphs take ``Csr()``, by
    degree on CUDA and as given on the CPU. How others choose: docs/planner.md.

    Args:
        edge_index: int64 or int32 ``[2, E]``, sources and targets. Unsorted, duplicate and directed edges are fine.
        num_nodes: number of nodes, ``(num_src, num_dst)`` for a bipartite graph, or None: the largest index + 1.
        mode: ``"auto"``: the candidates are ranked by a cost model, without running any. ``"tune"``: those that it
            ranks first are measured, on small graphs too.
        widths: feature widths to choose for; None: 8, 32, 128 and 256. A product of another width takes the choice
            for most of them.
        dtypes: of features, to choose for; None: fp32.
        format: ``"auto"``, or a spec: ``Csr(split)``, ``Coo(chunk)``, ``Hyb(c, k)``.
        order: in which order rows are processed and stored; features and results stay in the caller's.
            ``"degree"``: descending; ``"given"``: by node id, and by degree among 4096 neighbours (256 on the CPU);
            ``"community"``: by communities that label propagation finds; ``"leading"``: by their first columns;
            ``"rcm"``: Reverse Cuthill-McKee. Of a matrix that is not square, the rows have no communities: it takes
            ``"degree"`` for these and for ``"rcm"``. ``"auto"``: whichever is best.
        edge_values: keep what explicit edge values and sddmm need: 4 bytes per edge and direction.
        budget: seconds that ``mode="tune"`` may measure, for each direction.
        cache: use the cache on disk (docs/cache.md), where something was chosen.
        progress: called with a :class:`pyg_sparse.planner.tune.Step` for each candidate measured.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: a shape, an index or a size is out of range.
    """
    check_edge_index(edge_index)
    check_device(edge_index.device)
    spec = _spec(format)
    if order not in ORDERS:
        raise ValueError(f"order={order!r} must be one of {', '.join(ORDERS)}")
    if mode not in MODES:
        raise ValueError(f"mode={mode!r} must be one of {', '.join(MODES)}")
    if isinstance(budget, bool) or not isinstance(budget, int | float) or not 0 < budget < float("inf"):
        raise ValueError(f"budget={budget!r} must be a positive number of seconds")
    cases = cases_for(widths, dtypes)
    num_src, num_dst = check_num_nodes(edge_index, num_nodes)

    from pyg_sparse.planner.decide import Wanted
    from pyg_sparse.planner.make import make_plan

    wanted = Wanted(order, spec, cases, float(budget) if mode == "tune" else None, progress)
    return make_plan(edge_index, num_src, num_dst, wanted, edge_values=edge_values, use_cache=cache)


def side_of(forward: SparseMatrix, backward: SparseMatrix, edges: str) -> Side:
    a, b = forward, backward
    operands = a.name, a.layout, a.num_partials, b.name, b.layout, b.num_partials, a.num_rows, a.num_cols
    return Side(operands, edges)


def finish(device: torch.device) -> None:
    """A new plan is whole on every stream that will use it; kernels rely on that (csrc/cuda/overlap.cuh)."""
    if device.type == "cuda":
        torch.cuda.current_stream(device).synchronize()


def is_sorted(index: Tensor) -> bool:
    return bool((index[1:] >= index[:-1]).all())


def _spec(format: str | FormatSpec) -> FormatSpec | None:
    """None: to be chosen."""
    if isinstance(format, FormatSpec):
        return format
    if format == "auto":
        return None
    specs = ", ".join(f"{cls.__name__}(...)" for cls in SPECS.values())
    raise ValueError(f'format={format!r} must be "auto" or one of {specs}')


def _same_structure(a: SparseMatrix, b: SparseMatrix) -> bool:
    """But for the slot maps, which have the same size."""
    if a.name != b.name or a.slot.shape != b.slot.shape:
        return False
    others = b.tensors()
    return all(name == "slot" or others[name] is t or torch.equal(others[name], t) for name, t in a.tensors().items())


def share_structure(matrix: SparseMatrix, other: SparseMatrix) -> SparseMatrix:
    """``matrix`` with all tensors but the slot map taken from ``other``, to which they are equal."""
    return replace(other, slot=matrix.slot)


def _describe_format(stats: dict[str, Any]) -> str:
    text = (
        f"{stats['format']}, {_bytes(stats['bytes'])}, padding {stats['padding']:.1%}, {stats['partials']:,} partials"
    )
    if "buckets" in stats:
        widths = ", ".join(f"{b['width']}: {b['rows']:,}" for b in stats["buckets"])
        text += f", c={stats['c']}, k={stats['k']}, rows by width {{{widths}}}"
    return text


def _bytes(count: int) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000  # type: ignore[assignment]
    return f"{count:.2f} GB"
