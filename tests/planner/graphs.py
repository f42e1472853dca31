"""Rows with lengths of all kinds, and the device that predictions are made for."""

from __future__ import annotations

import torch

from pyg_sparse.formats import Rows, rows_from_edges
from pyg_sparse.planner.device import Device

H200 = Device("cuda", "a GPU", 132, 60 << 20, 0.002, 9400.0, 4500.0, 4250.0, 0.35)
CPU = Device("cpu", "a CPU", 2, 2 << 20, 0.024, 210.0, 15.0, 25.0, 0.0)


def rows_of_lengths(lengths: list[int], num_cols: int = 500, seed: int = 0) -> Rows:
    dst = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths, dtype=torch.long))
    src = torch.randint(num_cols, dst.shape, generator=torch.Generator().manual_seed(seed))
    return rows_from_edges(dst, src, len(lengths), num_cols, keep_slots=False)


LENGTHS = {
    "even": [5] * 300,
    "one": [7],
    "mixed": [i % 40 for i in range(1000)],
    "hub": [3] * 2000 + [900, 300],
    "long": [200 + i for i in range(50)],
    "very long": [10] * 100 + [6000, 9000],
    "empty rows": [0] * 50 + [4] * 10,
}
