"""Checks of tensors that were read from a file."""

from __future__ import annotations

import pytest
import torch

from pyg_sparse.formats.checks import each_once


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_each_once(dtype: torch.dtype, device: str) -> None:
    def once(index: list[int], size: int, col: list[int] | None = None) -> bool:
        where = None if col is None else torch.tensor(col, dtype=torch.int32, device=device)
        return each_once(torch.tensor(index, dtype=dtype, device=device), size, where)

    assert once([], 0)
    assert once([0], 1)
    assert once([2, 0, 1], 3)
    assert once(torch.randperm(1000).tolist(), 1000)
    for wrong in ([0, 1], [0, 1, 1], [0, 1, 3], [0, 1, -1], [0, 1, 2, 2], [0, 1, 2, 3], [-(2**31), 0, 1]):
        assert not once(wrong, 3), wrong
    assert not once([0, 1, 2], 2**60)
    assert once([5, 1, 0, -7], 2, [-1, 4, 0, -1])  # padding counts for nothing
    assert not once([0, 1], 2, [-1, 0])


def test_each_once_refuses_a_mask_of_another_size() -> None:
    with pytest.raises(RuntimeError, match="col must be int32, of index's size"):
        each_once(torch.tensor([0]), 1, torch.tensor([0, 1], dtype=torch.int32))
