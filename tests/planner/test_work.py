"""What is known of a format before it is built, against the format."""

from __future__ import annotations

import pytest
import torch

from pyg_sparse.formats import Coo, Csr, FormatSpec, Hyb
from pyg_sparse.order import Order
from pyg_sparse.planner.lengths import Lengths
from pyg_sparse.planner.profile import order_profile
from pyg_sparse.planner.work import Work, work_of
from tests.planner.graphs import LENGTHS, rows_of_lengths

SPECS = [Csr(), Csr(4), Csr(16), Csr(4096), Coo(64), Hyb(1, 0), Hyb(1, 3), Hyb(), Hyb(1, 9)]


def work(lengths: list[int], spec: FormatSpec) -> Work:
    rows = rows_of_lengths(lengths)
    profile = order_profile(rows, Order(torch.arange(rows.num_rows), None))
    found = work_of(spec, rows.num_cols, Lengths.of(rows), profile, "degree")
    assert found is not None
    return found


@pytest.mark.parametrize("spec", SPECS, ids=repr)
@pytest.mark.parametrize("name", LENGTHS)
def test_sizes_are_those_of_the_built_matrix(name: str, spec: FormatSpec) -> None:
    matrix, found = spec.build(rows_of_lengths(LENGTHS[name])), work(LENGTHS[name], spec)
    assert (found.num_rows, found.num_cols, found.nnz) == (matrix.num_rows, matrix.num_cols, matrix.nnz)
    assert found.positions == matrix.col.numel()
    assert found.format == matrix.name
    if isinstance(spec, Coo):
        return  # counts chunks; which of them share a row is not known
    assert found.partials == matrix.num_partials
    if isinstance(spec, Csr):
        parts = matrix.part_ptr.numel() - 1  # type: ignore[attr-defined]
        cut = matrix.shared_ptr.numel() - 1  # type: ignore[attr-defined]
        whole = matrix.rowptr.diff()[cut:]  # type: ignore[attr-defined]
        assert found.items == parts + whole.numel()
        assert found.cut_rows == cut
        assert found.longest == int(whole.max()) if whole.numel() else found.longest == 0
        assert found.tiles == (matrix.tile_ptr.numel() > 1)  # type: ignore[attr-defined]
        assert found.teams == (matrix.team_ptr.numel() > 1)  # type: ignore[attr-defined]
    if isinstance(spec, Hyb):
        assert found.items == matrix.row.numel()  # type: ignore[attr-defined]
        several = matrix.shared_ptr.diff() > 0  # type: ignore[attr-defined]
        assert found.cut_rows == int(several.sum())


def test_hyb_of_several_partitions_is_not_known_in_advance() -> None:
    rows = rows_of_lengths([3, 4])
    profile = order_profile(rows, Order(torch.arange(2), None))
    assert work_of(Hyb(2), rows.num_cols, Lengths.of(rows), profile, "degree") is None


def test_lengths() -> None:
    found = Lengths.of(rows_of_lengths([5, 0, 5, 12, 7]))
    assert (found.shortest, found.longest) == (0, 12)
    assert [found.longest_up_to(n) for n in (0, 4, 5, 6, 11, 99)] == [0, 0, 5, 5, 7, 12]
    assert [found.longer_than(n) for n in (0, 5, 7, 12)] == [4, 2, 1, 0]
    assert found.parts(5) == 2 + 3
    assert found.skew() == pytest.approx((25 + 25 + 144 + 49) * 5 / 29**2)
    assert Lengths.of(rows_of_lengths([])).longest == 0
