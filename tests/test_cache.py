import gc
import threading
import weakref

import pytest
import torch

import pyg_sparse.cache
from pyg_sparse.cache import plan_for

EDGES = ((0, 1, 2, 2), (1, 2, 0, 2))


@pytest.fixture
def edge_index(device):
    return torch.tensor(EDGES, device=device)


def edges(plan):
    return plan.edge_index().tolist()


def test_planned_once(edge_index, built):
    first = plan_for(edge_index, 3, edge_values=False)
    assert plan_for(edge_index, 3, edge_values=False) is first
    assert len(built) == 1


def test_number_of_nodes_is_part_of_the_key(edge_index, built):
    assert plan_for(edge_index, 3, edge_values=False).num_dst == 3
    assert plan_for(edge_index, 5, edge_values=False).num_dst == 5
    assert plan_for(edge_index, (3, 4), edge_values=False).num_dst == 4
    assert plan_for(edge_index, 3, edge_values=False).num_dst == 3
    assert len(built) == 3


def test_plan_with_edge_values_serves_both(edge_index, built):
    assert not plan_for(edge_index, 3, edge_values=False).has_edge_values
    with_values = plan_for(edge_index, 3, edge_values=True)
    assert with_values.has_edge_values
    assert plan_for(edge_index, 3, edge_values=False) is with_values
    assert len(built) == 2


def test_equal_tensors_are_different_graphs(edge_index, built):
    plan_for(edge_index, 3, edge_values=False)
    plan_for(edge_index.clone(), 3, edge_values=False)
    assert len(built) == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda e: e.__setitem__((1, 0), 2),
        lambda e: e.t().copy_(e.flip(0).t()),  # through a view
        lambda e: e.set_(e.flip(0)),
        lambda e: setattr(e, "data", e.flip(0)),
        lambda e: setattr(e, "data", e[:, :3]),  # the same address
    ],
    ids=["setitem", "view", "set_", "data", "shorter data"],
)
def test_changed_tensor_is_planned_again(edge_index, change):
    plan_for(edge_index, 3, edge_values=True)
    change(edge_index)
    assert edges(plan_for(edge_index, 3, edge_values=True)) == edge_index.tolist()


def test_entry_dies_with_its_tensor(device):
    edge_index = torch.tensor(EDGES, device=device)
    plan = weakref.ref(plan_for(edge_index, 3, edge_values=True))
    gc.collect()
    assert plan() is not None
    del edge_index
    gc.collect()
    assert plan() is None


def test_inference_tensors_are_planned_on_every_call(device, built):
    with torch.inference_mode():
        edge_index = torch.tensor(EDGES, device=device)
        plan_for(edge_index, 3, edge_values=False)
        edge_index[1, 0] = 2
        assert edges(plan_for(edge_index, 3, edge_values=True)) == edge_index.tolist()
    assert len(built) == 2


def test_plan_built_in_inference_mode_serves_training(edge_index):
    with torch.inference_mode():
        plan = plan_for(edge_index, 3, edge_values=True)
    x = torch.randn(3, 4, device=edge_index.device, requires_grad=True)
    pyg_sparse.spmm(plan_for(edge_index, 3, edge_values=True), x).sum().backward()
    assert plan_for(edge_index, 3, edge_values=True) is plan
    assert not plan.in_degree.is_inference()


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_coo])
def test_sparse_matrix(device, layout, built):
    dense = torch.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]], device=device)  # a row per target
    adj_t = dense.to_sparse(layout=layout)
    plan = plan_for(adj_t, (3, 2), edge_values=True)
    assert edges(plan) == [[1, 0, 2], [0, 1, 1]]
    assert plan_for(adj_t, (3, 2), edge_values=True) is plan

    indices = adj_t.col_indices() if layout == torch.sparse_csr else adj_t.indices()[1]
    indices[0] = 2
    assert edges(plan_for(adj_t, (3, 2), edge_values=True)) == [[2, 0, 2], [0, 1, 1]]
    assert len(built) == 2


def test_threads_share_one_plan(edge_index, built):
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(plan_for(edge_index, 3, edge_values=True))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(map(id, found))) == len(built) == 1
