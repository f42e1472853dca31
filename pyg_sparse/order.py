"""The order in which rows are processed and stored, chosen so that rows worked on together share columns.

Features and results stay where the caller has them: only the order of the work changes. Rows of one community, found by
label propagation, gather the same features, which are then still in a cache close by.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyg_sparse._extension import build_info
from pyg_sparse.formats.rows import Rows, permute, rank, sort_by_key

ORDERS = ("auto", "degree", "given", "community")
ROUNDS = (4, 8, 16)  # label propagation stops at one of these, or where its communities cost most
CPU_ROUNDS = (4, 8)
SEED = 0

_GROUP_ROUNDS = 8
_GROUP_SAMPLES = 128

# What the prediction assumes of a device: rows in flight on one multiprocessor, how many of those there are, and the
# TB/s of each level of memory (an H200's; only their ratio matters).
_ROWS_A_CORE, _CORES = 48, 128
_L2_BYTES = 40 << 20
_SLICE_BYTES, _SHORT_ROW_SLICE_BYTES = 128, 512
_L2_SPEED, _DRAM_SPEED = 9.3, 4.1
# What another order must be predicted to take, relative to that by degree, to be chosen. Where rows share a warp, or
# where they are few, less can be foreseen.
_WORTHWHILE, _CLEARLY_WORTHWHILE = 0.998, 0.97
_ROWS_A_WARP, _LONG_ROW, _SHORT_ROW = 4, 128, 32  # as in csrc/cuda/launch.cuh and launch_short.cuh
# On a CPU: x's bytes of an entry, how much longer they take from beyond a core's own cache, and what communities must
# be predicted to take, relative to the given order, to be chosen: to find them takes as long as tens of products.
_CPU_ROW_BYTES, _BEYOND = 128, 3.0
_CPU_WORTHWHILE = 0.85
# Rows that keep their place among the others if the given order is kept.
_WINDOW, _CPU_WINDOW = 1 << 12, 1 << 8

_MANY_ROWS = 16 * _ROWS_A_CORE * _CORES  # with fewer, the device waits for long rows that start late
_MIN_ENTRIES = 1 << 18  # below, x is in the nearest cache anyway
_MAX_ENTRIES = 1 << 30  # beyond, arranging needs more memory than a plan should


@dataclass(frozen=True, eq=False)
class Order:
    """``row``: int64 ``[num_rows]``, stored rows in the new order.

    ``group``: int64 ``[num_rows]``, by row id, or None where rows are not grouped.
    """

    row: Tensor
    group: Tensor | None


def communities(rows: Rows, t_rows: Rows, rounds: int, label: Tensor | None = None, seed: int = SEED) -> Tensor:
    """int32 ``[N]``: the community of each node of a square graph, after so many rounds of label propagation.

    Each round every node takes the most frequent label among its own and those of 31 sampled neighbours, over in-edges
    and over out-edges in turn. Deterministic for a seed, and for the same rows the same on every device.
    """
    if label is None:
        label = torch.arange(rows.num_rows, dtype=torch.int32, device=rows.col.device)
    for i in range(rounds):
        side = rows if i % 2 == 0 else t_rows
        label = torch.ops.pyg_sparse.vote(side.rowptr, side.row, side.col, label, seed + i)
    return label


def community_order(rows: Rows, label: Tensor, seed: int = SEED) -> Order:
    """Rows by community, communities that are neighbours side by side, and by descending length in a community."""
    _, group = torch.unique(label, return_inverse=True)
    cluster = _clusters(rows, group, seed)[group]
    group_of_row, cluster_of_row = (t[rows.row.long()] for t in (group, cluster))
    # Stored rows are sorted by length already.
    by_group = torch.sort(group_of_row, stable=True).indices
    return Order(by_group[torch.sort(cluster_of_row[by_group], stable=True).indices], group)


def given_order(rows: Rows) -> Order:
    """Rows by id, but by descending length among 4096 neighbours, for those that share a warp (SELL-C-sigma,
    arXiv:1307.6209); among 256 on the CPU, which foresees the end of a row as long as the one before."""
    window = rows.row.long() // (_WINDOW if rows.row.is_cuda else _CPU_WINDOW)
    return Order(torch.sort(window, stable=True).indices, None)  # stored rows are sorted by length already


def arrange(rows: Rows, order: Order) -> Rows:
    """The rows in their new order; in a row, columns of its own group first, and both parts in the order they had.

    Rows of a group then begin with the same columns, in the same order.
    """
    if order.group is None:
        return permute(rows, order.row)
    lengths = rows.lengths()[order.row]
    stored = rows.stored_row_of_entries()
    foreign = order.group[rows.row.long()][stored] != order.group[rows.col]
    # Columns are sorted in each row: a stable sort keeps that order.
    row_key = rank(order.row)[stored]
    if rows.col.is_cuda:
        entry = torch.sort(row_key.long().mul_(2).add_(foreign), stable=True).indices
    else:
        _, by_part = sort_by_key(foreign.int(), 2)
        _, by_row = sort_by_key(row_key[by_part], rows.num_rows)
        entry = by_part[by_row]
    return replace(
        rows,
        rowptr=pad(lengths.cumsum(0), (1, 0)),
        row=rows.row[order.row],
        col=rows.col[entry],
        slot=rows.slot[entry] if rows.slot.numel() else rows.slot,
    )


@dataclass(frozen=True, eq=False)
class Choice:
    """The chosen order (None: that of the given rows, by degree), its name, and every candidate's predicted cost."""

    order: Order | None
    name: str
    costs: dict[str, float]


def choose_order(rows: Rows, t_rows: Rows, wanted: str = "auto", seed: int = SEED) -> Choice:
    """By predicted cost, if ``wanted`` is ``"auto"``: never one that is predicted to be slower than by degree.

    On the CPU the given order takes the place of that by degree: results are then written almost in sequence. Where
    communities are wanted of a matrix that is not square, rows are ordered by degree.
    """
    square = rows.num_rows == rows.num_cols
    if rows.nnz == 0 or (wanted == "community" and not square):
        return Choice(None, "degree", {})
    if wanted == "auto" and not _worth_trying(rows):
        wanted = "degree" if _on_cuda(rows) else "given"
    if wanted == "degree":
        return Choice(None, "degree", {})
    if wanted == "given":
        return Choice(given_order(rows), "given", {})
    costs: dict[str, float] = {}
    choice, least = Choice(None, "degree", costs), float("inf")
    if wanted == "auto":
        choice, least = (_ungrouped_on_cuda if _on_cuda(rows) else _ungrouped_on_cpu)(rows, costs)
    if not square:
        return choice
    label: Tensor | None = None
    done = 0
    for rounds in ROUNDS if _on_cuda(rows) else CPU_ROUNDS:
        label = communities(rows, t_rows, rounds - done, label, seed + done)
        done = rounds
        order = community_order(rows, label, seed)
        name = f"community, {rounds} rounds"
        costs[name] = (predicted_cost if _on_cuda(rows) else predicted_cpu_cost)(rows, order.row)
        if costs[name] < least:
            choice, least = Choice(order, name, costs), costs[name]
    return choice


def _on_cuda(rows: Rows) -> bool:
    return rows.col.is_cuda


def _ungrouped_on_cuda(rows: Rows, costs: dict[str, float]) -> tuple[Choice, float]:
    """The best order without communities, and what these must cost less than. Adds to ``costs``."""
    choice = Choice(None, "degree", costs)
    costs["degree"] = predicted_cost(rows, torch.arange(rows.num_rows, device=rows.col.device))
    many, long = rows.num_rows >= _MANY_ROWS, rows.nnz >= _LONG_ROW * rows.num_rows
    least = costs["degree"] * (_WORTHWHILE if many and long else _CLEARLY_WORTHWHILE)
    if many:
        given = given_order(rows)
        costs["given"] = predicted_cost(rows, given.row)
        if costs["given"] < least:
            choice, least = Choice(given, "given", costs), costs["given"]
    return choice, least


def _ungrouped_on_cpu(rows: Rows, costs: dict[str, float]) -> tuple[Choice, float]:
    given = given_order(rows)
    costs["given"] = predicted_cpu_cost(rows, given.row)
    return Choice(given, "given", costs), costs["given"] * _CPU_WORTHWHILE


def _worth_trying(rows: Rows) -> bool:
    if not _MIN_ENTRIES <= rows.nnz <= _MAX_ENTRIES:
        return False
    square = rows.num_rows == rows.num_cols
    return _on_cuda(rows) or (square and rows.num_cols * _CPU_ROW_BYTES > _own_cache_bytes())


def _own_cache_bytes() -> int:
    """Of a CPU's core."""
    return int(build_info()["l2_bytes"])


def predicted_cost(rows: Rows, order: Tensor) -> float:
    """Time that an entry takes, relative to bringing its 128 bytes of x from L2 to a core.

    Columns that rows in flight together share are fetched once: by one core's rows from L2, by all cores' from memory
    where a slice of x does not fit L2. Both are counted in windows of the order. The instructions take about as long as
    L2; short rows share a warp, which takes as long as its longest.
    """
    in_flight = _ROWS_A_CORE * _CORES
    cost = _imbalance(rows, order) + _distinct(rows, order, window=in_flight, stride=_CORES, samples=64)
    slice_bytes = _SLICE_BYTES if rows.nnz >= _SHORT_ROW * rows.num_rows else _SHORT_ROW_SLICE_BYTES
    if rows.num_cols * slice_bytes > _L2_BYTES:
        cost += _distinct(rows, order, window=in_flight, stride=1, samples=8) * _L2_SPEED / _DRAM_SPEED
    return cost


def predicted_cpu_cost(rows: Rows, order: Tensor) -> float:
    """Time that an entry takes on a CPU, relative to one whose row of x is in the core's own cache.

    One that is not takes ``_BEYOND`` longer. Columns are counted once in a window of as many entries as the cache holds
    rows of x.
    """
    entries = _own_cache_bytes() // _CPU_ROW_BYTES
    window = max(int(entries * rows.num_rows / rows.nnz) // 8 * 8, 8)
    return 1.0 + _BEYOND * _distinct(rows, order, window=window, stride=1, samples=12)


def _imbalance(rows: Rows, order: Tensor) -> float:
    """Steps that warps take per step of work, where rows share warps; else 1."""
    if rows.nnz >= _LONG_ROW * rows.num_rows:
        return 1.0
    lengths = pad(rows.lengths()[order], (0, -rows.num_rows % _ROWS_A_WARP)).view(-1, _ROWS_A_WARP)
    return float(lengths.amax(1).sum()) * _ROWS_A_WARP / rows.nnz


def _distinct(rows: Rows, order: Tensor, window: int, stride: int, samples: int) -> float:
    """Distinct columns per entry among every ``stride``-th block of rows of a window, over evenly spaced windows."""
    device = rows.col.device
    block = 8
    span = min(window, max(rows.num_rows, 1))
    start = torch.linspace(0, rows.num_rows - span, samples, device=device).long()
    offset = torch.arange(0, span, block * stride, device=device)
    place = (start[:, None, None] + offset[:, None] + torch.arange(block, device=device)).flatten(1)
    stored = order[place.clamp(max=rows.num_rows - 1)]
    lengths = rows.lengths()[stored].masked_fill_(place >= rows.num_rows, 0).flatten()
    count = int(lengths.sum())
    if count == 0:
        return 1.0
    owner = torch.repeat_interleave(torch.arange(lengths.numel(), device=device), lengths, output_size=count)
    begin = rows.rowptr[stored].flatten() - (lengths.cumsum(0) - lengths)
    col = rows.col[begin[owner] + torch.arange(count, device=device)].long()
    key = owner // stored.size(1) * rows.num_cols + col
    return torch.unique(key).numel() / count


def _clusters(rows: Rows, group: Tensor, seed: int) -> Tensor:
    """int64 ``[groups]``: label propagation among the groups, over edges sampled between them."""
    device = group.device
    count = int(group.max()) + 1 if group.numel() else 0
    generator = torch.Generator(device).manual_seed(seed)
    by_group = torch.sort(group[rows.row.long()], stable=True).indices
    size = torch.bincount(group, minlength=count)
    first = size.cumsum(0) - size
    # Isolated nodes are groups too: samples must not need more memory than entries do.
    samples = min(_GROUP_SAMPLES, max(2 * rows.nnz // max(count, 1), 1))
    draw = torch.rand(count, samples, 2, device=device, generator=generator)
    member = by_group[first[:, None] + (draw[..., 0] * size[:, None]).long().clamp_(max=size[:, None] - 1)]
    length = rows.lengths()[member]
    entry = rows.rowptr[member] + (draw[..., 1] * length).long().clamp_(max=length.clamp(min=1) - 1)
    neighbour = group[rows.col[entry.clamp(max=max(rows.nnz - 1, 0))].long()]
    leaves = (length > 0) & (neighbour != torch.arange(count, device=device)[:, None])
    between = Rows(
        rowptr=pad(leaves.sum(1).cumsum(0), (1, 0)),
        row=torch.arange(count, dtype=torch.int32, device=device),
        col=neighbour[leaves].int(),
        slot=rows.slot[:0],
        num_rows=count,
        num_cols=count,
    )
    return communities(between, between, _GROUP_ROUNDS, seed=seed).long()
