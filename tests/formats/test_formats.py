"""Builders: exact round trips, the layout each format promises, and checks of its parameters."""

from __future__ import annotations

import dataclasses

import pytest
import torch

import pyg_sparse.formats.csr as csr_module
import pyg_sparse.formats.rows as rows_module
from pyg_sparse.formats import Coo, Csr, FormatSpec, Hyb, HybMatrix, Rows, rows_from_edges
from tests.conftest import FAMILIES, Graph


def rows_of(graph: Graph, device: str = "cpu", keep_slots: bool = True) -> Rows:
    src, dst = graph.edge_index.to(device)
    return rows_from_edges(dst, src, graph.num_dst, graph.num_src, keep_slots=keep_slots)


def test_round_trip_keeps_edge_order_and_duplicates(graph: Graph, spec: FormatSpec, device: str) -> None:
    row, col = spec.build(rows_of(graph, device)).to_coo()
    assert torch.equal(torch.stack([col, row]).cpu(), graph.edge_index)


def test_round_trip_without_slots_keeps_the_multiset(graph: Graph, spec: FormatSpec, device: str) -> None:
    row, col = spec.build(rows_of(graph, device, keep_slots=False)).to_coo()
    key, expected = (
        torch.sort(r * max(graph.num_src, 1) + c).values for r, c in ((row.cpu(), col.cpu()), graph.edge_index.flip(0))
    )
    assert torch.equal(key, expected)


def test_every_matrix_passes_its_own_check(graph: Graph, spec: FormatSpec) -> None:
    spec.build(rows_of(graph)).check()


def test_rows_in_any_processing_order(spec: FormatSpec) -> None:
    generator = torch.Generator().manual_seed(0)
    dst, src = torch.randint(50, (400,), generator=generator), torch.randint(70, (400,), generator=generator)
    order = torch.randperm(50, generator=generator)
    rank = torch.empty(50, dtype=torch.long)
    rank[order] = torch.arange(50)
    entries = torch.sort(rank[dst], stable=True).indices
    rowptr = torch.nn.functional.pad(torch.bincount(rank[dst], minlength=50).cumsum(0), (1, 0))
    rows = Rows(rowptr, order.int(), src[entries].int(), entries.int(), 50, 70)
    matrix = spec.build(rows)
    matrix.check()
    row, col = matrix.to_coo()
    assert torch.equal(row, dst)
    assert torch.equal(col, src)


def test_wide_slots(spec: FormatSpec) -> None:
    # From 2^31 edges on slots are int64; the formats must carry them through.
    graph = Graph(torch.tensor([[0, 1, 2, 0], [1, 1, 0, 1]]), 3, 2)
    rows = rows_of(graph)
    matrix = spec.build(dataclasses.replace(rows, slot=rows.slot.long()))
    assert matrix.slot.dtype == torch.int64
    row, col = matrix.to_coo()
    assert torch.equal(torch.stack([col, row]), graph.edge_index)


def test_rows_are_sorted_by_length_and_columns_by_id_or_by_phase_and_degree(device: str) -> None:
    dst = torch.tensor([0, 1, 1, 2, 2, 2, 2], device=device)
    src = torch.tensor([8, 4, 8, 8, 0, 4, 2], device=device)
    rows = rows_from_edges(dst, src, 3, 9, keep_slots=True)
    assert rows.row.tolist() == [2, 1, 0]
    assert rows.rowptr.tolist() == [0, 4, 6, 7]
    if device == "cpu":
        assert rows.col.tolist() == [0, 2, 4, 8, 4, 8, 8]
        assert rows.slot.tolist() == [4, 6, 5, 3, 1, 2, 0]
    else:  # 8 and 0 have the same phase, and 8 the higher degree; then those that agree modulo 4, and then modulo 2
        assert rows.col.tolist() == [8, 0, 4, 2, 8, 4, 8]
        assert rows.slot.tolist() == [3, 4, 5, 6, 2, 1, 0]


def test_csr_splits_long_rows_into_equal_parts() -> None:
    dst = torch.tensor([1] * 10 + [0] * 3)
    matrix = Csr(split=4).build(rows_from_edges(dst, torch.arange(13), 2, 13, keep_slots=False))
    assert matrix.part_ptr.tolist() == [0, 3, 6, 10]
    assert matrix.shared_ptr.tolist() == [0, 3]
    assert matrix.num_partials == 3


def test_coo_numbers_partials_at_chunk_borders_only() -> None:
    dst = torch.tensor([0] * 5 + [1] * 2 + [2] * 1)  # chunks of 4: 0000 | 0 11 2
    matrix = Coo(chunk=4).build(rows_from_edges(dst, torch.arange(8), 4, 8, keep_slots=False))
    assert matrix.head.tolist() == [0, 1]
    assert matrix.tail.tolist() == [-1, -1]
    assert matrix.shared_row.tolist() == [0, 3]  # row 0 crosses the border, row 3 is empty
    assert matrix.shared_ptr.tolist() == [0, 2, 2]


def test_hyb_buckets() -> None:
    dst = torch.tensor([0] * 9 + [1] * 4 + [2] * 3 + [3])
    matrix = Hyb(1, 2).build(rows_from_edges(dst, torch.arange(17), 5, 17, keep_slots=False))
    assert isinstance(matrix, HybMatrix)
    # Width 4: two pieces of row 0, rows 1 and 2; width 1: the rest of row 0, row 3.
    assert matrix.bucket.tolist() == [[0, 0, 4], [4, 16, 1]]
    assert matrix.row.tolist() == [0, 0, 1, 2, 0, 3]
    assert matrix.partial.tolist() == [0, 1, -1, -1, 2, -1]
    assert matrix.shared_row.tolist() == [0, 4]
    assert matrix.stats()["padding"] == pytest.approx(1 / 17)
    assert matrix.stats()["buckets"] == [{"width": 4, "rows": 4}, {"width": 1, "rows": 2}]


def test_hyb_partitions_columns() -> None:
    dst = torch.zeros(6, dtype=torch.long)
    matrix = Hyb(2, 3).build(rows_from_edges(dst, torch.tensor([5, 0, 4, 1, 2, 3]), 1, 6, keep_slots=True))
    assert sorted(matrix.col[:4].tolist()) == [-1, 0, 1, 2]
    assert sorted(matrix.col[4:].tolist()) == [-1, 3, 4, 5]


@pytest.mark.parametrize(("mean", "k"), [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3)])
def test_hyb_default_k_is_the_mean_degree(mean: int, k: int) -> None:
    dst = torch.arange(10).repeat(mean)
    assert Hyb().build(rows_from_edges(dst, dst, 10, 10, keep_slots=False)).k == k


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Csr(split=0), r"split=0 must be an int of at least 1"),
        (lambda: Coo(chunk=2.5), r"chunk=2.5 must be an int"),
        (lambda: Hyb(c=0), r"c=0 must be"),
        (lambda: Hyb(k=21), r"k=21 must be None or an int from 0 to 20"),
        (lambda: Hyb(k=-1), r"k=-1 must be"),
        (lambda: Hyb(k=True), r"k=True must be"),
        (lambda: Hyb(c=10**9), r"c=1000000000 must be at most 1024"),
    ],
)
def test_bad_parameters(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("graph", FAMILIES.values(), ids=FAMILIES)
def test_csr_tiles_cover_all_rows(graph: Graph) -> None:
    matrix = Csr().build(rows_of(graph))
    starts = matrix.tile_ptr.tolist()
    assert starts[0] == matrix.tile_shared_ptr.numel() - 1
    assert starts[-1] == matrix.num_rows or starts == [0]
    assert starts == sorted(set(starts))


def test_some_of_the_graphs_have_tiles() -> None:
    assert sum(Csr().build(rows_of(graph)).tile_ptr.numel() > 1 for graph in FAMILIES.values()) >= 3


def test_csr_tiles_are_of_similar_cost() -> None:
    lengths = torch.cat([torch.tensor([4000, 1500, 1024]), torch.full((400_000,), 3), torch.zeros(5000)]).long()
    dst = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
    matrix = Csr().build(rows_from_edges(dst, dst % 7, len(lengths), 7, keep_slots=False))
    rows = matrix.tile_ptr.diff()
    entries = matrix.rowptr[matrix.tile_ptr].diff()
    assert rows[:2].tolist() == [1, 1]  # those of more than 1024 entries
    assert entries[:2].tolist() == [4000, 1500]
    assert int(entries[2:].max()) <= 2048
    assert int((rows + entries)[4:-1].min()) >= 1024 - 3
    assert int(rows.max()) <= 1024  # rows without entries, too
    matrix.check()


def test_csr_cuts_rows_that_tiles_would_wait_for() -> None:
    lengths = torch.tensor([3] * 5000 + [4300, 20_000, 4096, 5000])  # of more than 4096
    dst = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
    matrix = Csr().build(rows_from_edges(dst, dst % 7, len(lengths), 7, keep_slots=False))
    assert matrix.row[:4].tolist() == [5001, 5003, 5000, 5002]
    assert matrix.tile_shared_ptr.tolist() == [0, 10, 13, 16]
    assert matrix.tile_part_ptr[:11].tolist() == list(range(0, 20_001, 2000))
    assert int(matrix.tile_part_ptr.diff().max()) <= 2048
    assert matrix.tile_ptr[:2].tolist() == [3, 4]
    matrix.check()
    rows = rows_from_edges(dst, dst % 7, len(lengths), 7, keep_slots=False)
    by_id = Csr().build(rows_module.permute(rows, rows.row.argsort()))
    assert sorted(by_id.row[:3].tolist()) == [5000, 5001, 5003]  # the longest of all come first in any order
    by_id.check()


def test_csr_cuts_rows_for_tiles_by_the_number_of_entries() -> None:
    lengths = torch.tensor([2] * 2_000_000 + [7900, 7000])  # 4_014_900 // 512 = 7841
    dst = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
    matrix = Csr().build(rows_from_edges(dst, dst % 7, len(lengths), 7, keep_slots=False))
    assert matrix.tile_shared_ptr.tolist() == [0, 4]
    assert matrix.tile_ptr[:2].tolist() == [1, 2]


def test_csr_cuts_the_longest_rows_where_there_are_no_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csr_module, "_LONGEST_RUN", 5000)
    dst = torch.zeros(6000, dtype=torch.long)
    matrix = Csr().build(rows_from_edges(dst, dst, 1, 1, keep_slots=False))
    assert matrix.tile_ptr.tolist() == matrix.tile_shared_ptr.tolist() == [0]
    assert matrix.num_partials == matrix.part_ptr.numel() - 1 == 2
    matrix.check()


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("tile_part_ptr", [0, 2000, 4200, 5001]),
        ("tile_part_ptr", [0, 3333, 1666, 5000]),
        ("tile_part_ptr", [0, 3000, 4000]),
        ("tile_shared_ptr", [0, 0, 3]),
        ("tile_shared_ptr", [0]),
        ("tile_ptr", [0, 2, 102]),
    ],
)
def test_csr_check_refuses_wrong_parts_of_tiles(name: str, wrong: list[int]) -> None:
    dst = torch.tensor([0] * 5000 + list(range(1, 102)))
    matrix = Csr().build(rows_from_edges(dst, dst % 7, 102, 7, keep_slots=False))
    assert matrix.tile_part_ptr.tolist() == [0, 1666, 3333, 5000]
    matrix.check()
    with pytest.raises(ValueError, match=r"tile_|partials"):
        dataclasses.replace(matrix, **{name: torch.tensor(wrong)}).check()


def test_csr_tiles_of_few_rows_are_small() -> None:
    dst = torch.arange(300).repeat_interleave((torch.arange(300) % 30) ** 2 // 29)
    matrix = Csr().build(rows_from_edges(dst, dst, 300, 300, keep_slots=False))
    assert matrix.tile_ptr.numel() > 20
    assert int((matrix.tile_ptr.diff() + matrix.rowptr[matrix.tile_ptr].diff()).max()) <= 128 + 29


@pytest.mark.parametrize(
    ("lengths", "tiles"),
    [
        ([4096], True),
        ([4200], False),  # all rows are to be cut
        ([4200, *[100] * 300], True),
        ([16] * 1000, False),  # even, and short
        ([16] * 1000 + [400] * 10, True),
        ([200] * 100, True),
        ([2] * 2**22 + [100] * 10, False),
    ],
)
def test_csr_has_tiles_where_they_pay(lengths: list[int], tiles: bool) -> None:
    dst = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    matrix = Csr().build(rows_from_edges(dst, dst, len(lengths), len(lengths), keep_slots=False))
    assert (matrix.tile_ptr.numel() > 1) == tiles
    matrix.check()


@pytest.mark.parametrize("wrong", [[0, 1, 1, 4], [0, 3], [0, 4, 2], [1, 4], []])
def test_csr_check_refuses_wrong_tiles(wrong: list[int]) -> None:
    dst = torch.tensor([0, 1, 2, 3])
    matrix = Csr().build(rows_from_edges(dst, dst, 4, 4, keep_slots=False))
    with pytest.raises(ValueError, match="tile_ptr"):
        dataclasses.replace(matrix, tile_ptr=torch.tensor(wrong, dtype=torch.long)).check()


def test_csr_check_refuses_tiles_of_too_many_entries() -> None:
    dst = torch.arange(2).repeat_interleave(2000)
    matrix = Csr().build(rows_from_edges(dst, dst, 2, 2, keep_slots=False))
    with pytest.raises(ValueError, match="tile_ptr"):
        dataclasses.replace(matrix, tile_ptr=torch.tensor([0, 2])).check()


@pytest.mark.parametrize("step", [1, 7, 50, 1000])
def test_edges_are_sorted_a_few_rows_at_a_time(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "_SORTED_AT_ONCE", step)
    generator = torch.Generator().manual_seed(0)
    length = torch.tensor([9, 0, 30, 1, 0, 0, 12, 7, 0])  # longer than a step, and none
    row = torch.repeat_interleave(torch.arange(9), length)[torch.randperm(59, generator=generator)].int()
    col = torch.randint(5, (59,), generator=generator, dtype=torch.int32)
    expected = torch.sort(row.long() * 5 + col, stable=True).indices
    assert torch.equal(rows_module._sorted(row, col, length, 5), expected)


def test_csr_check_refuses_long_rows_without_parts() -> None:
    dst = torch.tensor([0] * 40 + [1] * 40)
    matrix = Csr(split=8).build(rows_from_edges(dst, dst, 2, 2, keep_slots=False))
    with pytest.raises(ValueError, match="shared_ptr"):
        dataclasses.replace(matrix, shared_ptr=torch.tensor([0, 10, 10])).check()


def test_check_refuses_slots_of_padding_out_of_range() -> None:
    dst = torch.tensor([0, 0, 0, 1])
    matrix = Hyb(1, 2).build(rows_from_edges(dst, dst, 2, 2, keep_slots=True))
    padding = matrix.col < 0
    assert padding.any()
    with pytest.raises(ValueError, match="slot"):
        dataclasses.replace(matrix, slot=matrix.slot.masked_fill(padding, 4)).check()


@pytest.mark.parametrize(
    ("lengths", "teams"),
    [
        ([2] * 100, 0),
        ([2] * 100 + [1024, 33, 32], 2),
        ([2] * 100 + [1025, 33], 0),
        ([40] * 50 + [500], 0),  # rows that are not short
        ([2] * 400_000 + [512, 400], 2),
        ([2] * 600_000 + [512, 400], 0),  # many entries
    ],
)
def test_csr_has_teams_for_rows_that_a_block_can_sum(lengths: list[int], teams: int) -> None:
    dst = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    matrix = Csr().build(rows_from_edges(dst, dst, len(lengths), len(lengths), keep_slots=False))
    assert torch.equal(matrix.team_ptr, matrix.rowptr[: teams + 1])
    matrix.check()


@pytest.mark.parametrize("wrong", [[], [0, 40], [0, 40, 99], [0, 40, 80, 84]])
def test_csr_check_refuses_wrong_teams(wrong: list[int]) -> None:
    dst = torch.tensor([0] * 40 + [1] * 40 + [2] * 4 + list(range(3, 20)))
    matrix = Csr().build(rows_from_edges(dst, dst, 20, 20, keep_slots=False))
    assert matrix.team_ptr.tolist() == [0, 40, 80]
    with pytest.raises(ValueError, match="team_ptr"):
        dataclasses.replace(matrix, team_ptr=torch.tensor(wrong, dtype=torch.long)).check()


@pytest.mark.parametrize(
    ("rows", "mean", "longest", "split"),
    [
        (100, 3, 60, 16),
        (5000, 4, 60, 32),
        (1000, 20, 100, 64),
        (10_000, 20, 300, 128),
        (100_000, 3, 100, 64),
        (10_000, 30, 600, 256),
        (100_000, 30, 600, 256),
        (2000, 1200, 9000, 4096),
    ],
)
def test_csr_default_split(rows: int, mean: int, longest: int, split: int) -> None:
    dst = torch.cat([torch.arange(rows).repeat_interleave(mean), torch.zeros(longest - mean, dtype=torch.long)])
    matrix = Csr().build(rows_from_edges(dst, dst, rows, rows, keep_slots=False))
    assert matrix.part_ptr.numel() - 1 == -(-longest // split)
