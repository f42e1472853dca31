"""Samples of rows: which are drawn, their entries, and how many distinct columns these have."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pyg_sparse.formats.rows import rank, sort_by_key


def sample(size: int, count: int, rng: np.random.Generator) -> Tensor:
    """int64 ``[min(count, size)]``, ascending: so many of ``range(size)``, each as likely as any other.

    Drawn on the CPU, so that it is the same for every device.
    """
    if count >= size:
        return torch.arange(size)
    return torch.from_numpy(np.sort(rng.choice(size, count, replace=False, shuffle=False)))


def stored(row: Tensor) -> Tensor:
    """int64: where the row of each id is stored."""
    return rank(row.long()).long()


def entries(rowptr: Tensor, of_rows: Tensor) -> tuple[Tensor, Tensor]:
    """Positions of the entries of some stored rows, one row after the other, and whose they are.

    Returns:
        int64 each: positions, and indices into ``of_rows``.
    """
    begin = rowptr[of_rows]
    length = rowptr[of_rows + 1] - begin
    end = length.cumsum(0)
    count = int(end[-1]) if end.numel() else 0
    owner = torch.repeat_interleave(torch.arange(len(of_rows), device=length.device), length, output_size=count)
    shift = begin - (end - length)
    return shift[owner] + torch.arange(count, device=length.device), owner


def sorted_keys(group: Tensor, key: Tensor, num_groups: int, num_keys: int) -> Tensor:
    """int64: ``group * num_keys + key``, sorted.

    Args:
        group, key: integers in ``[0, num_groups)`` and ``[0, num_keys)``.
    """
    if key.is_cuda:
        return torch.sort(group * num_keys + key).values
    _, by_key = sort_by_key(key, num_keys)
    _, by_group = sort_by_key(group.index_select(0, by_key), num_groups)
    return (group * num_keys + key).index_select(0, by_key.index_select(0, by_group))


def distinct(ordered: Tensor) -> int:
    """How many of these sorted keys differ."""
    return min(ordered.numel(), 1) + int((ordered[1:] != ordered[:-1]).sum())
