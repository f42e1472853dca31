"""The order in which rows are processed and stored, chosen so that rows worked on together share columns.

Features and results stay where the caller has them: only the order of the work changes. Rows of one community, found by
label propagation, gather the same features, which are then still in a cache close by.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyg_sparse.formats.rows import Rows, permute, rank, sort_by_key

ORDERS = ("auto", "degree", "given", "community", "leading", "rcm")
ROUNDS = (4, 8, 16)  # label propagation stops at one of these
CPU_ROUNDS = (4, 8)
SEED = 0

_GROUP_ROUNDS = 8
_GROUP_SAMPLES = 128

# Rows that keep their place among the others if the given order is kept.
_WINDOW, _CPU_WINDOW = 1 << 12, 1 << 8


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
