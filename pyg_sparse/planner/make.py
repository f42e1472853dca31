"""Makes a plan: sorts the edges, has the planner choose, and builds what it chose."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor

from pyg_sparse.formats import Rows, SparseMatrix, rows_from_edges
from pyg_sparse.formats.rows import true_indices
from pyg_sparse.order import arrange
from pyg_sparse.plan import Pair, Plan, finish, is_sorted, share_structure, side_of
from pyg_sparse.planner.candidates import Candidate
from pyg_sparse.planner.cases import Case
from pyg_sparse.planner.choice import Choice, report
from pyg_sparse.planner.decide import Wanted, decide, is_decided, possible, without_looking
from pyg_sparse.planner.known import device_speeds
from pyg_sparse.planner.remember import Memory


def make_plan(
    edge_index: Tensor, num_src: int, num_dst: int, wanted: Wanted, *, edge_values: bool, use_cache: bool
) -> Plan:
    """:func:`pyg_sparse.plan`, its arguments checked."""
    wanted = possible(wanted, square=num_src == num_dst)
    decided = is_decided(wanted, edge_index.size(1))
    memory = Memory.of(edge_index, num_src, num_dst, wanted, edge_values) if use_cache and not decided else None
    if memory and (found := memory.plan()):
        return found
    watch = _Watch(edge_index.device)
    src, dst = edge_index[0], edge_index[1]
    rows = rows_from_edges(dst, src, num_dst, num_src, keep_slots=edge_values)
    t_rows = rows_from_edges(src, dst, num_src, num_dst, keep_slots=edge_values)
    degrees = _degree(rows), _degree(t_rows)
    symmetric = (
        num_src == num_dst
        and torch.equal(rows.row, t_rows.row)
        and torch.equal(rows.rowptr, t_rows.rowptr)
        and torch.equal(rows.col, t_rows.col)
    )
    edges = "by target" if is_sorted(dst) else "by source" if is_sorted(src) else "otherwise"
    watch.lap("sort")

    sides = [rows, t_rows]
    del rows, t_rows  # so that _Build can free them
    choices, told = _choices(sides, wanted, memory, decided=decided, symmetric=symmetric)
    watch.lap("choose")

    built = _Build(sides, choices, symmetric=symmetric, one=symmetric and not edge_values)
    pairs = built.pairs(wanted.cases, edges)
    watch.lap("build")
    self_loops = src.new_empty(0, dtype=torch.long)
    if num_src == num_dst:
        self_loops = true_indices(lambda part: src[part] == dst[part], src.numel())
    result = Plan(
        num_src=num_src,
        num_dst=num_dst,
        num_edges=edge_index.size(1),
        forward=pairs[0].forward,
        backward=pairs[0].backward,
        symmetric=symmetric,
        orders=pairs[0].orders,
        edges=edges,
        in_degree=degrees[0],
        out_degree=degrees[1],
        self_loops=self_loops,
        loop_nodes=src[self_loops].long(),
        special=tuple(pairs[1:]),
        report=told,
    )
    finish(edge_index.device)
    if memory:
        memory.keep(result, choices, watch.seconds)
    return result


def _choices(
    sides: list[Rows], wanted: Wanted, memory: Memory | None, *, decided: bool, symmetric: bool
) -> tuple[tuple[Choice, Choice], dict[str, Any]]:
    """Those of both directions, and what is told of them."""
    rows, t_rows = sides
    if decided:
        forward = without_looking(rows, wanted)
        return (forward, forward if symmetric else without_looking(t_rows, wanted)), {}
    if memory and (found := memory.choices()):
        forward, backward = found
        return (forward, forward if symmetric else backward), memory.told
    device = device_speeds(rows.col.device, memory.store if memory else None)
    forward = decide(rows, t_rows, wanted, device)
    backward = forward if symmetric else decide(t_rows, rows, wanted, device)
    told = {"forward": report(forward, wanted.cases), "backward": report(backward, wanted.cases)}
    return (forward, backward), told


class _Build:
    """Builds each chosen candidate once, and frees the rows of a direction with its last."""

    def __init__(self, sides: list[Rows], choices: tuple[Choice, Choice], *, symmetric: bool, one: bool) -> None:
        self.choices, self.symmetric, self.one = choices, symmetric, one
        self.matrices: list[dict[Candidate, SparseMatrix]] = [{}, {}]
        self.matrices[0] = _build_all(sides[0], choices[0])
        sides[0] = None  # type: ignore[call-overload]
        if not one:
            self.matrices[1] = _build_all(sides[1], choices[1])

    def pairs(self, cases: tuple[Case, ...], edges: str) -> list[Pair]:
        """That of both bases first, then those of cases with choices of their own."""
        wanted: dict[tuple[Candidate, Candidate], set[Case]] = {(self.choices[0].base, self.choices[1].base): set()}
        for case in cases:
            wanted.setdefault((self.choices[0].of(case), self.choices[1].of(case)), set()).add(case)
        found = []
        for i, ((a, b), own) in enumerate(wanted.items()):
            forward = self.matrices[0][a]
            backward = forward if self.one else self.matrices[1][b]
            if self.symmetric and not self.one:
                backward = self.matrices[1][b] = share_structure(backward, forward)
            orders = a.order, b.order
            found.append(
                Pair(frozenset(own if i else ()), forward, backward, orders, side_of(forward, backward, edges))
            )
        return found


def _build_all(rows: Rows, choice: Choice) -> dict[Candidate, SparseMatrix]:
    found: dict[Candidate, SparseMatrix] = {}
    for name, order in choice.orders.items():
        arranged = rows if order is None else arrange(rows, order)
        for candidate in choice.chosen():
            if candidate.order == name:
                found[candidate] = candidate.spec.build(arranged)
    return found


def _degree(rows: Rows) -> Tensor:
    """int32 ``[num_rows]``: entries of each row, by row id."""
    degree = torch.empty(rows.num_rows, dtype=torch.int32, device=rows.row.device)
    return degree.index_copy_(0, rows.row.long(), rows.lengths().int())


class _Watch:
    """Seconds that the steps took, the device's work included."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._last = time.perf_counter()
        self.seconds: dict[str, float] = {}

    def lap(self, name: str) -> None:
        finish(self._device)
        now = time.perf_counter()
        self.seconds[name] = now - self._last
        self._last = now
