"""The orders of rows among which the planner chooses."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from pyg_sparse.formats.rows import Rows
from pyg_sparse.order import CPU_ROUNDS, ROUNDS, SEED, Order, communities, community_order, given_order

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


def candidate_orders(rows: Rows, t_rows: Rows, only: str = "auto", seed: int = SEED) -> Iterator[tuple[str, Order]]:
    """The orders that can be had of these rows, by name: those of one kind, or with ``"auto"`` all.

    Rows and columns of a matrix that is not square have nothing in common: it has neither communities nor an order of
    Reverse Cuthill-McKee.
    """
    square = rows.num_rows == rows.num_cols and rows.nnz > 0
    if only in ("auto", "degree"):
        yield "degree", Order(torch.arange(rows.num_rows, device=rows.col.device), None)
    if only in ("auto", "given"):
        yield "given", given_order(rows)
    if only in ("auto", "leading"):
        yield "leading", leading_order(rows)
    if square and (only == "rcm" or (only == "auto" and rows.nnz <= MAX_RCM_ENTRIES)):
        yield "rcm", rcm_order(rows)
    if not square or only not in ("auto", "community"):
        return
    label: Tensor | None = None
    done = 0
    for rounds in ROUNDS if rows.col.is_cuda else CPU_ROUNDS:
        label = communities(rows, t_rows, rounds - done, label, seed + done)
        done = rounds
        yield f"community, {rounds} rounds", community_order(rows, label, seed)
