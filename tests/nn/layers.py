"""What the tests of GCNConv share: graphs, PyG's layer and ours with the same parameters, and their comparison."""

import torch
import torch_geometric.nn

from pyg_sparse.nn import GCNConv

PyGConv = torch_geometric.nn.GCNConv

# name: (number of nodes, sources, targets)
GRAPHS = {
    "empty": (0, [], []),
    "no_edges": (4, [], []),
    "one_node": (1, [], []),
    "one_loop": (1, [0], [0]),
    "isolated_nodes": (6, [1, 1, 3], [3, 4, 1]),
    "loops": (5, [0, 1, 1, 4, 2, 3, 4], [0, 0, 1, 4, 4, 2, 2]),
    "duplicate_edges": (4, [0, 0, 0, 2, 2, 1], [1, 1, 1, 3, 3, 0]),
    "duplicate_loops": (4, [2, 0, 2, 1, 2, 0, 3, 0], [2, 0, 2, 2, 2, 0, 1, 1]),
}
# The random graph has loops and duplicates too.
_generator = torch.Generator().manual_seed(0)
GRAPHS["random"] = (17, *torch.randint(17, (2, 90), generator=_generator).tolist())

NORMS = {
    "default": {},
    "improved": {"improved": True},
    "no_self_loops": {"add_self_loops": False},
    "no_norm": {"normalize": False},
}


def graph(name, device):
    num_nodes, source, target = GRAPHS[name]
    return num_nodes, torch.tensor([source, target], dtype=torch.int64, device=device)


def convs(in_channels, out_channels, device, dtype=torch.float64, **kwargs):
    """PyG's layer and ours with the same parameters."""
    pyg = PyGConv(in_channels, out_channels, **kwargs).to(device, dtype)
    ours = GCNConv(in_channels, out_channels, **kwargs).to(device, dtype)
    if pyg.bias is not None:
        torch.nn.init.normal_(pyg.bias)
    ours.load_state_dict(pyg.state_dict())
    return pyg, ours


def run(conv, x, edges, edge_weight=None):
    """The output, and the gradient of everything that has one, for a fixed output gradient."""
    x = x.clone().requires_grad_()
    inputs = {"x": x, **dict(conv.named_parameters())}
    if edge_weight is not None:
        edge_weight = edge_weight.clone().requires_grad_()
        inputs["edge_weight"] = edge_weight
    out = conv(x, edges, edge_weight)
    grad = torch.linspace(-1, 2, out.numel(), dtype=out.dtype, device=out.device).view_as(out)
    grads = torch.autograd.grad(out, list(inputs.values()), grad, materialize_grads=True)
    return {"out": out, **dict(zip(inputs, grads, strict=True))}


def assert_same(actual, expected, atol=1e-10, rtol=1e-10):
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(
            actual[name],
            value,
            atol=atol,
            rtol=rtol,
            equal_nan=True,
            msg=lambda text, name=name: f"{name}: {text}",
        )
