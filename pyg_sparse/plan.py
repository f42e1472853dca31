"""A graph's adjacency, converted once into the formats that its forward and backward products run on."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from pyg_sparse.formats import SPECS, Csr, FormatSpec, Rows, SparseMatrix, rows_from_edges
from pyg_sparse.formats.checks import in_range, require
from pyg_sparse.formats.rows import true_indices
from pyg_sparse.order import ORDERS, arrange, choose_order
from pyg_sparse.side import REVERSED, Side
from pyg_sparse.validate import check_device, check_edge_index, check_num_nodes
from pyg_sparse.weights import StoredWeight, store_weight


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
    side: Side = field(init=False, repr=False)

    def __post_init__(self) -> None:
        a, b = self.forward, self.backward
        operands = a.name, a.layout, a.num_partials, b.name, b.layout, b.num_partials, self.num_dst, self.num_src
        object.__setattr__(self, "side", Side(operands, self.edges))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "side"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()
        _finish(self.device)

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
        )

    def store_weight(self, edge_weight: Tensor) -> StoredWeight:
        """Constant edge weights, brought into the plan's order once: :func:`pyg_sparse.spmm` reads them in sequence.

        Takes the memory of two copies, one a direction. Weights that change, or need a gradient, are passed to
        :func:`pyg_sparse.spmm` as they are.

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
        forward = self.forward.to(device)
        if self.backward is self.forward:
            backward = forward
        else:
            backward = self.backward.to(device)
            if self.symmetric:
                backward = _share_structure(backward, forward)
        moved = replace(
            self,
            forward=forward,
            backward=backward,
            in_degree=self.in_degree.to(device),
            out_degree=self.out_degree.to(device),
            self_loops=self.self_loops.to(device),
            loop_nodes=self.loop_nodes.to(device),
        )
        _finish(device)
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

    def check(self) -> None:
        """Raises ValueError unless every index in the plan's tensors is in range."""
        expected = {"forward": (self.num_dst, self.num_src), "backward": (self.num_src, self.num_dst)}
        for name, shape in expected.items():
            matrix = getattr(self, name)
            require((matrix.num_rows, matrix.num_cols, matrix.nnz) == (*shape, self.num_edges), f"{name}'s shape")
            matrix.check()
        if self.edges != "otherwise" and self.has_edge_values:  # sddmm relies on it
            src, dst = self.edge_index()
            require(_is_sorted(dst if self.edges == "by target" else src), "edges")
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
        matrices = (self.forward, self.backward)
        tensors = [t for matrix in matrices for t in matrix.tensors().values()]
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
        }

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
        return "\n".join(lines)


# A plan first made for inference must serve training too, where inference tensors cannot be saved.
@torch.inference_mode(False)
def plan(
    edge_index: Tensor,
    num_nodes: int | tuple[int, int] | None = None,
    *,
    format: str | FormatSpec = "auto",
    order: str = "auto",
    edge_values: bool = True,
) -> Plan:
    """Converts a graph into a :class:`Plan`, on the device of ``edge_index``.

    Args:
        edge_index: int64 or int32 ``[2, E]``, sources and targets. Unsorted, duplicate and directed edges are fine.
        num_nodes: number of nodes, ``(num_src, num_dst)`` for a bipartite graph, or None: the largest index + 1.
        format: ``"auto"``, or a spec: ``Csr(split)``, ``Coo(chunk)``, ``Hyb(c, k)``. ``"auto"`` is ``Csr()``.
        order: in which order rows are processed and stored; features and results stay in the caller's.
            ``"degree"``: descending; ``"given"``: by node id, and by degree among 4096 neighbours (256 on the CPU);
            ``"community"``: by communities that label propagation finds; ``"auto"``: whichever is predicted to need
            least traffic (:mod:`pyg_sparse.order`); on the CPU the given order unless communities gain much.
        edge_values: keep what explicit edge values and sddmm need: 4 bytes per edge and direction.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: a shape, an index or a size is out of range.
    """
    check_edge_index(edge_index)
    check_device(edge_index.device)
    num_src, num_dst = check_num_nodes(edge_index, num_nodes)
    spec = _spec(format)
    if order not in ORDERS:
        raise ValueError(f"order={order!r} must be one of {', '.join(ORDERS)}")
    src, dst = edge_index[0], edge_index[1]

    rows = rows_from_edges(dst, src, num_dst, num_src, keep_slots=edge_values)
    t_rows = rows_from_edges(src, dst, num_src, num_dst, keep_slots=edge_values)
    in_degree, out_degree = _degree(rows), _degree(t_rows)
    symmetric = (
        num_src == num_dst
        and torch.equal(rows.row, t_rows.row)
        and torch.equal(rows.rowptr, t_rows.rowptr)
        and torch.equal(rows.col, t_rows.col)
    )
    edges = "by target" if _is_sorted(dst) else "by source" if _is_sorted(src) else "otherwise"
    choice = choose_order(rows, t_rows, order)
    t_choice = choice if symmetric else choose_order(t_rows, rows, order)
    if choice.order is not None:
        rows = arrange(rows, choice.order)
    forward = spec.build(rows)
    del rows
    if symmetric and not edge_values:
        backward = forward
    else:
        if t_choice.order is not None:
            t_rows = arrange(t_rows, t_choice.order)
        backward = spec.build(t_rows)
        if symmetric:
            backward = _share_structure(backward, forward)
    del t_rows
    self_loops = src.new_empty(0, dtype=torch.long)
    if num_src == num_dst:
        self_loops = true_indices(lambda part: src[part] == dst[part], src.numel())
    result = Plan(
        num_src=num_src,
        num_dst=num_dst,
        num_edges=edge_index.size(1),
        forward=forward,
        backward=backward,
        symmetric=symmetric,
        orders=(choice.name, t_choice.name),
        edges=edges,
        in_degree=in_degree,
        out_degree=out_degree,
        self_loops=self_loops,
        loop_nodes=src[self_loops].long(),
    )
    _finish(edge_index.device)
    return result


def _finish(device: torch.device) -> None:
    """A new plan is whole on every stream that will use it; kernels rely on that (csrc/cuda/overlap.cuh)."""
    if device.type == "cuda":
        torch.cuda.current_stream(device).synchronize()


def _is_sorted(index: Tensor) -> bool:
    return bool((index[1:] >= index[:-1]).all())


def _degree(rows: Rows) -> Tensor:
    """int32 ``[num_rows]``: entries of each row, by row id."""
    degree = torch.empty(rows.num_rows, dtype=torch.int32, device=rows.row.device)
    return degree.index_copy_(0, rows.row.long(), rows.lengths().int())


def _spec(format: str | FormatSpec) -> FormatSpec:
    if isinstance(format, FormatSpec):
        return format
    if format == "auto":
        return Csr()
    specs = ", ".join(f"{cls.__name__}(...)" for cls in SPECS.values())
    raise ValueError(f'format={format!r} must be "auto" or one of {specs}')


def _share_structure(matrix: SparseMatrix, other: SparseMatrix) -> SparseMatrix:
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
