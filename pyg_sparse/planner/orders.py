"""The orders of rows among which the planner chooses."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from pyg_sparse.formats.rows import Rows
from pyg_sparse.order import CPU_ROUNDS, ROUNDS, Order, communities, community_order, given_order

MAX_RCM_ENTRIES = 1 << 24  # one core searches 30 to 100 million entries a second


def leading_order(rows: Rows) -> Order:
    """Rows by their first two columns as stored (RA-SpMM, rows by leading neighbour)."""
    lengths = rows.lengths()
    last = max(rows.nnz - 1, 0)
    key = torch.full((rows.num_rows,), rows.num_cols, dtype=torch.long, device=rows.col.device)
    key = key * (rows.num_cols + 1) + rows.num_cols
    if rows.nnz:
        first, second = (rows.col[(rows.rowptr[:-1] + i).clamp_(max=last)].long() for i in (0, 1))
        first = torch.where(lengths > 0, first, rows.num_cols)
        second = torch.where(lengths > 1, second, rows.num_cols)
        key = first * (rows.num_cols + 1) + second
    return Order(torch.sort(key, stable=True).indices, None)


def rcm_order(rows: Rows) -> Order:
    """Reverse Cuthill-McKee, of a square matrix; found on the CPU (csrc/include/pyg_sparse/rcm.h)."""
    order = torch.ops.pyg_sparse.rcm(rows.rowptr.cpu(), rows.row.cpu(), rows.col.cpu())
    return Order(order.to(rows.col.device), None)


def candidate_orders(rows: Rows, t_rows: Rows, seed: int = 0) -> Iterator[tuple[str, Order]]:
    """Every order that can be had of these rows, by name; those with the same rows differ in nothing."""
    device = rows.col.device
    yield "degree", Order(torch.arange(rows.num_rows, device=device), None)
    yield "given", given_order(rows)
    yield "leading", leading_order(rows)
    if rows.num_rows != rows.num_cols or rows.nnz == 0:
        return
    if rows.nnz <= MAX_RCM_ENTRIES:
        yield "rcm", rcm_order(rows)
    label: Tensor | None = None
    done = 0
    for rounds in ROUNDS if rows.col.is_cuda else CPU_ROUNDS:
        label = communities(rows, t_rows, rounds - done, label, seed + done)
        done = rounds
        yield f"community, {rounds} rounds", community_order(rows, label, seed)
