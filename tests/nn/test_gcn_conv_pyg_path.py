"""What GCNConv leaves to PyG's own path: hooks, explanations, subclasses. Compared with PyG's GCNConv."""

import pytest
import torch
from torch_geometric.nn import MessagePassing

import pyg_sparse
import pyg_sparse.cache
from pyg_sparse.nn import GCNConv
from tests.nn.layers import GRAPHS, PyGConv, convs, graph

pytestmark = pytest.mark.filterwarnings(
    "ignore:Sparse CSR tensor support is in beta",
    "ignore:Sparse invariant checks are implicitly disabled",
    "ignore:Converting sparse tensor to CSR",
)


class Doubled:
    """Mixed into both layers: what a user's subclass would do."""

    def message(self, x_j, edge_weight):
        return 2 * edge_weight.view(-1, 1) * x_j


class DoubledPyGConv(Doubled, PyGConv):
    pass


class DoubledGCNConv(Doubled, GCNConv):
    pass


class CustomPropagate(GCNConv):
    def propagate(self, edge_index, size=None, **kwargs):
        return MessagePassing.propagate(self, edge_index, size=size, **kwargs)


def double_message(conv):
    conv.message = lambda x_j, edge_weight: 2 * edge_weight.view(-1, 1) * x_j


def explain(conv):
    conv.explain = True
    conv._edge_mask = torch.linspace(-1, 1, 90, dtype=torch.float64, device=conv.lin.weight.device)
    conv._loop_mask = torch.tensor(GRAPHS["random"][1]) != torch.tensor(GRAPHS["random"][2])


def decompose(conv):
    conv.decomposed_layers = 2


def hook(name):
    return lambda conv: getattr(conv, f"register_{name}_hook")(lambda *args: None)


PYG_PATH = {
    "explain mode": explain,
    "decomposed_layers": decompose,
    "'message' is overridden": double_message,
    **{f"{name} hooks": hook(name) for name in ("propagate_forward", "propagate_forward_pre")},
    **{f"{name} hooks": hook(name) for name in ("message_and_aggregate_forward", "message_and_aggregate_forward_pre")},
}


@pytest.mark.parametrize("reason", PYG_PATH)
def test_pyg_path(device, reason, built):
    num_nodes, edge_index = graph("random", device)
    x = torch.randn(num_nodes, 4, dtype=torch.float64, device=device)
    pyg, ours = convs(4, 6, device)
    for conv in (pyg, ours):
        PYG_PATH[reason](conv)
    exact = {"rtol": 0, "atol": 0} if device == "cpu" else {}  # PyG's scatter on CUDA does not repeat
    torch.testing.assert_close(ours(x, edge_index), pyg(x, edge_index), **exact)
    assert not built
    match = "hooks are registered" if "hooks" in reason else reason
    with pytest.raises(ValueError, match=f"Plan while .*{match}.*edge_index"):
        ours(x, pyg_sparse.plan(edge_index, num_nodes))


@pytest.mark.parametrize(
    "name", ["message_forward", "message_forward_pre", "aggregate_forward", "aggregate_forward_pre"]
)
def test_pyg_path_calls_the_hook(device, name):
    num_nodes, edge_index = graph("random", device)
    conv = GCNConv(4, 6).to(device)
    calls = []
    getattr(conv, f"register_{name}_hook")(lambda *args: calls.append(args) or args[-1])
    conv(torch.randn(num_nodes, 4, device=device), edge_index)
    assert len(calls) == 1


@pytest.mark.parametrize("kwargs", [{"aggr": "max"}, {"aggr": "mean"}, {"node_dim": 0}], ids=str)
def test_pyg_path_of_constructor_arguments(device, kwargs, built):
    num_nodes, edge_index = graph("random", device)
    x = torch.randn(num_nodes, 2, 4, dtype=torch.float64, device=device)
    if "node_dim" not in kwargs:
        x = x[:, 0]
    pyg, ours = convs(4, 6, device, normalize=False, **kwargs)
    torch.testing.assert_close(ours(x, edge_index), pyg(x, edge_index))
    assert not built
    with pytest.raises(ValueError, match=next(iter(kwargs))):
        ours(x, pyg_sparse.plan(edge_index, num_nodes))


def test_node_dim_counted_from_the_front(device, built):
    num_nodes, edge_index = graph("random", device)
    x = torch.randn(3, num_nodes, 4, dtype=torch.float64, device=device)
    pyg, ours = convs(4, 6, device, node_dim=1)
    torch.testing.assert_close(ours(x, edge_index), pyg(x, edge_index))
    assert len(built) == 1


def test_pyg_path_of_subclasses(device, built):
    num_nodes, edge_index = graph("random", device)
    x = torch.randn(num_nodes, 4, device=device)
    ours = DoubledGCNConv(4, 6).to(device)
    pyg = DoubledPyGConv(4, 6).to(device)
    pyg.load_state_dict(ours.state_dict())
    torch.testing.assert_close(ours(x, edge_index), pyg(x, edge_index))
    CustomPropagate(4, 6).to(device)(x, edge_index)
    assert not built
    with pytest.raises(ValueError, match="'propagate' is overridden"):
        CustomPropagate(4, 6).to(device)(x, pyg_sparse.plan(edge_index, num_nodes))


def test_explain_after_plain_calls(device):
    """By now PyG has generated a fast `propagate` for its layer, which ours must not start from."""
    num_nodes, edge_index = graph("random", device)
    x = torch.randn(num_nodes, 4, dtype=torch.float64, device=device)
    _, ours = convs(4, 6, device)
    plain = ours(x, edge_index)
    explain(ours)
    assert not torch.allclose(ours(x, edge_index), plain)
    ours.explain = False
    torch.testing.assert_close(ours(x, edge_index), plain)


def test_explain_after_cached_calls(device):
    num_nodes, edge_index = graph("random", device)
    x = torch.randn(num_nodes, 4, dtype=torch.float64, device=device)
    pyg, ours = convs(4, 6, device, cached=True)
    plain = ours(x, edge_index)
    pyg(x, edge_index)
    for conv in (pyg, ours):
        explain(conv)
    torch.testing.assert_close(ours(x, edge_index), pyg(x, edge_index))
    ours.explain = False
    torch.testing.assert_close(ours(x, edge_index), plain)


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_trace_does_not_bake_the_graph_in(device):
    num_nodes, edge_index = graph("random", device)
    x = torch.randn(num_nodes, 4, dtype=torch.float64, device=device)
    conv = GCNConv(4, 6).to(device).double()
    traced = torch.jit.trace(conv, (x, edge_index), check_trace=False)
    other = edge_index.flip(0)
    torch.testing.assert_close(traced(x, other), conv(x, other))
