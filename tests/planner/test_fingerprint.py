from itertools import product

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from pyg_sparse.planner.fingerprint import fingerprint

Words = NDArray[np.uint64]


def mixed(h: Words) -> Words:
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


def reference(edge_index: torch.Tensor) -> list[int]:
    """What the operator returns, in NumPy."""
    a, b = edge_index.long().cpu().numpy().view(np.uint64)
    place = np.arange(a.size, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    sums = [mixed(mixed(place + a) + b).sum(), mixed(mixed(~place + b) + a).sum()]
    return np.array(sums, dtype=np.uint64).view(np.int64).tolist()


def edges(count: int, device: str = "cpu") -> torch.Tensor:
    return torch.randint(1000, (2, count), device=device)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("count", [0, 1, 31, 257, 1_300_000])  # more than CUDA's largest grid has threads
def test_operator_agrees_with_numpy(device, dtype, count):
    edge_index = edges(count, device).to(dtype)
    assert torch.ops.pyg_sparse.fingerprint(edge_index).tolist() == reference(edge_index)


def test_extreme_indices(device):
    limit = torch.iinfo(torch.int64)
    edge_index = torch.tensor([[limit.min, limit.max, -1], [2**32, 0, -(2**32)]], device=device)
    assert torch.ops.pyg_sparse.fingerprint(edge_index).tolist() == reference(edge_index)


def test_index_type_strides_and_threads_do_not_matter(device):
    edge_index = edges(100_000, device)
    same = [
        edge_index.int(),
        edge_index.t().contiguous().t(),
        torch.stack([edge_index, edge_index + 1], dim=2)[:, :, 0],
        torch.cat([edge_index, edge_index], dim=1)[:, 100_000:],
        edge_index.cpu(),
    ]
    expected = fingerprint(edge_index, 1000, 1000)
    assert [fingerprint(other, 1000, 1000) for other in same] == [expected] * len(same)
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        assert fingerprint(edge_index, 1000, 1000) == expected
    finally:
        torch.set_num_threads(threads)


def test_repeated_edge(device):
    one = torch.tensor([[3], [4]], device=device)
    assert fingerprint(one.expand(2, 7), 5, 5) == fingerprint(one.repeat(1, 7), 5, 5)


def test_every_change_shows(device):
    edge_index = edges(500, device)
    assert (edge_index[0] != edge_index[1]).any()
    swapped = edge_index.clone()
    swapped[:, [3, 4]] = torch.tensor([[1, 2], [3, 4]], device=device)
    back = swapped.clone()
    back[:, [3, 4]] = swapped[:, [4, 3]]
    other_end = edge_index.clone()
    other_end[1, -1] += 1
    graphs = [
        (edge_index, 1000, 1000),
        (edge_index, 1001, 1000),
        (edge_index, 1000, 1001),
        (edge_index.flip(0), 1000, 1000),
        (edge_index.flip(1), 1000, 1000),
        (edge_index.sort().values, 1000, 1000),
        (edge_index[:, :-1], 1000, 1000),
        (torch.cat([edge_index, edge_index[:, -1:]], dim=1), 1000, 1000),
        (swapped, 1000, 1000),
        (back, 1000, 1000),
        (other_end, 1000, 1000),
    ]
    assert len({fingerprint(*graph) for graph in graphs}) == len(graphs)


def test_small_graphs_differ_in_both_halves():
    """All graphs of two edges over six nodes."""
    found = [
        torch.ops.pyg_sparse.fingerprint(torch.tensor(ends).view(2, 2)).tolist() for ends in product(range(6), repeat=4)
    ]
    for half in zip(*found, strict=True):
        assert len(set(half)) == 6**4


def test_is_pinned():
    """A change of the hash, or of the text around it, makes every record on disk useless: do it on purpose."""
    edge_index = torch.tensor([[0, 1, 2, 2], [1, 2, 0, 2]])
    assert fingerprint(edge_index, 3, 4) == "e6f29fa75686eb5fccffb5a0a3634157"


@pytest.mark.parametrize(
    ("edge_index", "error", "message"),
    [
        ([[0], [1]], TypeError, "edge_index must be a torch.Tensor, not list"),
        (torch.zeros(2, 3), TypeError, "edge_index must be int64 or int32, not torch.float32"),
        (torch.zeros(3, 2, dtype=torch.long), ValueError, r"edge_index must have shape \[2, E\], not \[3, 2\]"),
        (torch.zeros(2, 3, dtype=torch.long, device="meta"), ValueError, "device meta is not supported"),
    ],
    ids=["list", "float", "shape", "device"],
)
def test_bad_input_is_named(edge_index, error, message):
    with pytest.raises(error, match=message):
        fingerprint(edge_index, 3, 3)
