"""Every test compares with PyG's own GCNConv of the same parameters, given the same input."""

import copy
import io
import pickle

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from torch_geometric import EdgeIndex

import pyg_sparse
import pyg_sparse.cache
from pyg_sparse.nn import GCNConv
from tests.nn.layers import GRAPHS, NORMS, PyGConv, assert_same, convs, graph, run

pytestmark = pytest.mark.filterwarnings(
    "ignore:Sparse CSR tensor support is in beta",
    "ignore:Sparse invariant checks are implicitly disabled",
    "ignore:Converting sparse tensor to CSR",
)


@pytest.mark.parametrize("batch", [(), (3,)], ids=["2d", "3d"])
@pytest.mark.parametrize(("in_channels", "out_channels"), [(7, 3), (3, 7)], ids=["narrowing", "widening"])
@pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("name", GRAPHS)
def test_same_as_pyg(device, name, weighted, norm, flow, in_channels, out_channels, batch):
    num_nodes, edge_index = graph(name, device)
    x = torch.randn(*batch, num_nodes, in_channels, dtype=torch.float64, device=device)
    edge_weight = torch.rand(edge_index.size(1), dtype=torch.float64, device=device) if weighted else None
    pyg, ours = convs(in_channels, out_channels, device, flow=flow, **NORMS[norm])
    expected = run(pyg, x, edge_index, edge_weight)
    for edges in (edge_index, pyg_sparse.plan(edge_index, num_nodes)):
        assert_same(run(ours, x, edges, edge_weight), expected)


@st.composite
def weighted_graphs(draw):
    num_nodes = draw(st.integers(1, 6))
    node = st.integers(0, num_nodes - 1)
    edges = draw(st.lists(st.tuples(node, node, st.floats(0.0, 4.0, allow_subnormal=False)), max_size=24))
    source, target, weight = zip(*edges, strict=True) if edges else ((), (), ())
    edge_index = torch.tensor([source, target], dtype=torch.int64)
    return num_nodes, edge_index, torch.tensor(weight, dtype=torch.float64)


@settings(deadline=None)
@given(weighted_graphs(), st.booleans(), st.sampled_from(sorted(NORMS)), st.booleans(), st.booleans())
def test_same_as_pyg_on_any_graph(drawn, weighted, norm, backwards, as_plan):
    num_nodes, edge_index, edge_weight = drawn
    x = torch.linspace(-2, 3, num_nodes * 3, dtype=torch.float64).view(num_nodes, 3)
    flow = "target_to_source" if backwards else "source_to_target"
    pyg, ours = convs(3, 2, "cpu", flow=flow, **NORMS[norm])
    edges = pyg_sparse.plan(edge_index, num_nodes) if as_plan else edge_index
    weight = edge_weight if weighted else None
    # A degree can be so small that gradients exceed any fixed absolute tolerance.
    assert_same(run(ours, x, edges, weight), run(pyg, x, edge_index, weight), atol=1e-10, rtol=1e-9)


@pytest.mark.parametrize("norm", NORMS)
def test_negative_and_cancelling_weights(device, norm):
    edge_index = torch.tensor([[0, 1, 2, 1, 3, 3], [1, 0, 1, 2, 2, 3]], device=device)
    edge_weight = torch.tensor([-3.0, -1.0, 1.0, 0.0, 0.0, -2.0], dtype=torch.float64, device=device)
    x = torch.randn(4, 5, dtype=torch.float64, device=device)
    pyg, ours = convs(5, 2, device, **NORMS[norm])
    actual, expected = run(ours, x, edge_index, edge_weight), run(pyg, x, edge_index, edge_weight)
    if norm != "no_norm":
        assert expected["out"].isnan().any()  # a degree below zero has no square root, in PyG either
    assert_same(actual, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_lower_precision_loses_no_more_than_pyg(device, dtype, weighted):
    num_nodes, edge_index = graph("random", device)
    x = torch.randn(num_nodes, 8, device=device).to(dtype)
    edge_weight = torch.rand(edge_index.size(1), device=device).to(dtype) if weighted else None
    pyg, ours = convs(8, 4, device, dtype)
    actual, same_dtype = run(ours, x, edge_index, edge_weight), run(pyg, x, edge_index, edge_weight)
    exact = run(pyg.double(), x.double(), edge_index, None if edge_weight is None else edge_weight.double())
    for name, value in exact.items():
        assert actual[name].dtype == dtype
        error, pyg_error = ((got[name].double() - value).norm() for got in (actual, same_dtype))
        assert error <= 2 * pyg_error + torch.finfo(dtype).eps * value.norm(), name


def test_edge_weight_column(device):
    num_nodes, edge_index = graph("loops", device)
    x = torch.randn(num_nodes, 5, dtype=torch.float64, device=device)
    edge_weight = torch.rand(edge_index.size(1), 1, dtype=torch.float64, device=device)
    pyg, ours = convs(5, 2, device)
    assert_same(run(ours, x, edge_index, edge_weight), run(pyg, x, edge_index, edge_weight))


def test_weights_without_gradient(device):
    num_nodes, edge_index = graph("loops", device)
    x = torch.randn(num_nodes, 5, dtype=torch.float64, device=device)
    edge_weight = torch.rand(edge_index.size(1), dtype=torch.float64, device=device)
    pyg, ours = convs(5, 2, device)
    torch.testing.assert_close(ours(x, edge_index, edge_weight), pyg(x, edge_index, edge_weight))


@pytest.mark.parametrize("in_channels", [5, -1])
@pytest.mark.parametrize("bias", [False, True])
def test_state_dict(device, in_channels, bias):
    num_nodes, edge_index = graph("loops", device)
    x = torch.randn(num_nodes, 5, device=device)
    pyg = PyGConv(in_channels, 2, bias=bias).to(device)
    ours = GCNConv(in_channels, 2, bias=bias).to(device)
    expected = pyg(x, edge_index)
    ours(x, edge_index)  # materialises the lazy weight
    assert ours.state_dict().keys() == pyg.state_dict().keys()
    assert repr(ours) == repr(pyg)
    ours.load_state_dict(pyg.state_dict())
    torch.testing.assert_close(ours(x, edge_index), expected)


@pytest.mark.parametrize("out_channels", [2, 9])
def test_sparse_features(device, out_channels):
    num_nodes, edge_index = graph("loops", device)
    x = torch.randn(num_nodes, 5, dtype=torch.float64, device=device)
    pyg, ours = convs(5, out_channels, device)
    torch.testing.assert_close(ours(x.to_sparse(), edge_index), pyg(x, edge_index))


@pytest.mark.parametrize("out_channels", [2, 9])
def test_replaced_linear(device, out_channels):
    """Aggregation does not commute with what users may put in the place of the matrix product."""
    num_nodes, edge_index = graph("loops", device)
    x = torch.randn(num_nodes, 5, dtype=torch.float64, device=device)
    pyg, ours = convs(5, out_channels, device)
    pyg.lin = ours.lin = torch.nn.Linear(5, out_channels).to(device).double()
    torch.testing.assert_close(ours(x, edge_index), pyg(x, edge_index))


# torch.sparse matrices ######################################################################################


def adjacency(name, layout, device):
    """The transposed adjacency with random values; torch sums duplicate entries."""
    num_nodes, edge_index = graph(name, device)
    value = torch.rand(edge_index.size(1), dtype=torch.float64, device=device)
    adj_t = torch.sparse_coo_tensor(edge_index.flip(0), value, (num_nodes, num_nodes)).coalesce()
    return num_nodes, adj_t.to_sparse(layout=layout)


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_coo], ids=["csr", "coo"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", [name for name in GRAPHS if name != "empty"])
def test_sparse_matrix(device, name, norm, layout, built):
    num_nodes, adj_t = adjacency(name, layout, device)
    x = torch.randn(num_nodes, 5, dtype=torch.float64, device=device)
    pyg, ours = convs(5, 3, device, **NORMS[norm])
    expected = run(pyg, x, adj_t)
    for _ in range(2):
        assert_same(run(ours, x, adj_t), expected)
    assert len(built) == 1


@pytest.mark.parametrize("norm", NORMS)
def test_sparse_matrix_value_gradient(device, norm):
    num_nodes, adj_t = adjacency("loops", torch.sparse_csr, device)
    x = torch.randn(num_nodes, 5, dtype=torch.float64, device=device)
    grads = []
    for conv in convs(5, 3, device, **NORMS[norm]):
        value = adj_t.values().clone().requires_grad_()
        matrix = torch.sparse_csr_tensor(adj_t.crow_indices(), adj_t.col_indices(), value, adj_t.shape)
        conv(x, matrix).square().sum().backward()
        grads.append(value.grad)
    torch.testing.assert_close(*grads, atol=1e-10, rtol=1e-10)


def test_sparse_matrix_ignores_edge_weight_like_pyg(device):
    num_nodes, adj_t = adjacency("loops", torch.sparse_csr, device)
    x = torch.randn(num_nodes, 5, dtype=torch.float64, device=device)
    pyg, ours = convs(5, 3, device)
    torch.testing.assert_close(ours(x, adj_t, torch.rand(3)), pyg(x, adj_t, torch.rand(3)))


def test_sparse_matrices_left_to_pyg(device, built):
    num_nodes, adj_t = adjacency("loops", torch.sparse_coo, device)
    x = torch.randn(num_nodes, 5, dtype=torch.float64, device=device)
    pyg, ours = convs(5, 3, device)
    uncoalesced = torch.sparse_coo_tensor(adj_t.indices(), adj_t.values(), adj_t.shape, is_coalesced=False)
    torch.testing.assert_close(ours(x, uncoalesced), pyg(x, adj_t))
    with pytest.raises(NotImplementedError, match="CSC"):
        ours(x, adj_t.to_sparse_csc())
    ours.flow = "target_to_source"
    with pytest.raises(ValueError, match="target_to_source"):
        ours(x, adj_t)
    assert not built


# Plans and caching ##########################################################################################


def test_planned_once_for_calls_layers_and_flows(device, built):
    num_nodes, edge_index = graph("random", device)
    x = torch.randn(num_nodes, 4, device=device)
    layers = [GCNConv(4, 4).to(device), GCNConv(4, 4, flow="target_to_source").to(device)]
    for _ in range(3):
        for layer in layers:
            layer(x, edge_index).sum().backward()
    assert len(built) == 1


def test_changed_edge_index_is_never_stale(device):
    num_nodes, edge_index = graph("random", device)
    x = torch.randn(num_nodes, 4, dtype=torch.float64, device=device)
    pyg, ours = convs(4, 3, device)
    ours(x, edge_index)
    edge_index[1, ::2] = (edge_index[1, ::2] + 1) % num_nodes
    torch.testing.assert_close(ours(x, edge_index), pyg(x, edge_index))
    other = edge_index.flip(0)
    torch.testing.assert_close(ours(x, other), pyg(x, other))


def test_edge_index_class(device, built):
    num_nodes, edge_index = graph("random", device)
    x = torch.randn(num_nodes, 4, dtype=torch.float64, device=device)
    pyg, ours = convs(4, 3, device)
    wrapped = EdgeIndex(edge_index)
    for _ in range(2):
        torch.testing.assert_close(ours(x, wrapped), pyg(x, edge_index))
    assert len(built) == 1
    edge_index[1, ::2] = (edge_index[1, ::2] + 1) % num_nodes  # the memory of the wrapped one too
    torch.testing.assert_close(ours(x, wrapped), pyg(x, edge_index))


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_cached_ignores_later_graphs(device, weighted):
    num_nodes, edge_index = graph("random", device)
    x = torch.randn(num_nodes, 4, dtype=torch.float64, device=device)
    edge_weight = torch.rand(edge_index.size(1), dtype=torch.float64, device=device) if weighted else None
    pyg, ours = convs(4, 3, device, cached=True)
    expected = pyg(x, edge_index, edge_weight)
    torch.testing.assert_close(ours(x, edge_index, edge_weight), expected)
    torch.testing.assert_close(ours(x, edge_index.flip(0)), expected)
    torch.testing.assert_close(copy.deepcopy(ours)(x, edge_index.flip(0)), expected)
    assert ours.state_dict().keys() == pyg.state_dict().keys()

    ours.reset_parameters()
    ours.load_state_dict(pyg.state_dict())
    fresh, _ = convs(4, 3, device)
    fresh.load_state_dict(pyg.state_dict())
    torch.testing.assert_close(ours(x, edge_index.flip(0)), fresh(x, edge_index.flip(0)))


def test_cached_weights_are_stored_unless_they_are_learned(device):
    num_nodes, edge_index = graph("random", device)
    x = torch.randn(num_nodes, 4, dtype=torch.float64, device=device)
    for learned in (False, True):
        edge_weight = torch.rand(edge_index.size(1), dtype=torch.float64, device=device, requires_grad=learned)
        pyg, ours = convs(4, 3, device, cached=True)
        torch.testing.assert_close(ours(x, edge_index, edge_weight), pyg(x, edge_index, edge_weight))
        assert isinstance(ours._cached_edge_index.edge_weight, pyg_sparse.StoredWeight) != learned


def test_cached_weights_may_be_integers(device):
    num_nodes, edge_index = graph("random", device)
    x = torch.randn(num_nodes, 4, dtype=torch.float64, device=device)
    edge_weight = torch.randint(1, 4, (edge_index.size(1),), device=device)
    pyg, ours = convs(4, 3, device, cached=True)
    expected = pyg(x, edge_index, edge_weight.double())
    for _ in range(2):
        torch.testing.assert_close(ours(x, edge_index, edge_weight), expected)


def test_cached_without_normalisation_follows_the_graph(device):
    num_nodes, edge_index = graph("random", device)
    x = torch.randn(num_nodes, 4, dtype=torch.float64, device=device)
    pyg, ours = convs(4, 3, device, cached=True, normalize=False)
    for edges in (edge_index, edge_index.flip(0)):
        torch.testing.assert_close(ours(x, edges), pyg(x, edges))


@pytest.mark.parametrize("as_plan", [False, True], ids=["edge_index", "plan"])
def test_deepcopy_and_pickle(device, as_plan):
    num_nodes, edge_index = graph("random", device)
    x = torch.randn(num_nodes, 4, device=device)
    conv = GCNConv(4, 3).to(device)
    edges = pyg_sparse.plan(edge_index, num_nodes) if as_plan else edge_index
    expected = conv(x, edges)
    saved = io.BytesIO()
    torch.save(conv, saved)
    saved.seek(0)
    for same in (
        copy.deepcopy(conv),
        pickle.loads(pickle.dumps(conv)),
        torch.load(saved, weights_only=False),
    ):
        torch.testing.assert_close(same(x, edges), expected)


@pytest.mark.parametrize("dynamic", [False, None, True])
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_compile_with_plan_has_no_graph_break(device, weighted, dynamic):
    num_nodes, edge_index = graph("random", device)
    x = torch.randn(num_nodes, 4, dtype=torch.float64, device=device)
    edge_weight = torch.rand(edge_index.size(1), dtype=torch.float64, device=device) if weighted else None
    pyg, ours = convs(4, 3, device)
    compiled = torch.compile(ours, backend="aot_eager", fullgraph=True, dynamic=dynamic)
    plan = pyg_sparse.plan(edge_index, num_nodes)
    assert_same(run(compiled, x, plan, edge_weight), run_renamed(pyg, x, edge_index, edge_weight))


def run_renamed(conv, *args):
    """``run``, with the parameters called as in a compiled module."""
    names = {name: f"_orig_mod.{name}" for name, _ in conv.named_parameters()}
    return {names.get(name, name): value for name, value in run(conv, *args).items()}


def test_compile_with_edge_index(device, built):
    num_nodes, edge_index = graph("random", device)
    x = torch.randn(num_nodes, 4, dtype=torch.float64, device=device)
    pyg, ours = convs(4, 3, device)
    compiled = torch.compile(ours, backend="aot_eager")
    for _ in range(2):
        torch.testing.assert_close(compiled(x, edge_index), pyg(x, edge_index))
    assert len(built) == 1


def test_autocast_keeps_the_low_precision(device):
    num_nodes, edge_index = graph("random", device)
    x = torch.randn(num_nodes, 8, device=device)
    for widths in ((8, 4), (8, 16)):
        pyg, ours = convs(*widths, device, torch.float32)
        with torch.autocast(device, torch.bfloat16):
            out = ours(x, edge_index, torch.ones(edge_index.size(1), device=device))
        assert out.dtype == torch.bfloat16
        torch.testing.assert_close(out.float(), pyg(x, edge_index), atol=0.05, rtol=0.05)


# Bad inputs #################################################################################################


def test_messages_of_bad_inputs(device):
    num_nodes, edge_index = graph("loops", device)
    num_edges = edge_index.size(1)
    x = torch.randn(num_nodes, 4, device=device)
    conv = GCNConv(4, 3).to(device)
    plan = pyg_sparse.plan(edge_index, num_nodes)

    with pytest.raises(ValueError, match="tuple"):
        conv((x, x), plan)
    with pytest.raises(ValueError, match=rf"\[{num_edges}\].*\[{num_edges - 1}\]"):
        conv(x, edge_index, torch.ones(num_edges - 1, device=device))
    with pytest.raises(ValueError, match=rf"\[{num_edges}\].*\[{num_edges}, 2\]"):
        conv(x, edge_index, torch.ones(num_edges, 2, device=device))
    without_values = pyg_sparse.plan(edge_index, num_nodes, edge_values=False)
    with pytest.raises(ValueError, match="edge_values=True"):
        conv(x, without_values, torch.ones(num_edges, device=device))
    with pytest.raises(ValueError):  # noqa: PT011 (the operator's own message)
        conv(x[1:], plan)
    bipartite = pyg_sparse.plan(edge_index, (num_nodes, num_nodes + 2))
    with pytest.raises(ValueError, match=f"{num_nodes} sources and {num_nodes + 2} targets"):
        conv(x, bipartite)


def test_bipartite_plan_without_normalisation(device):
    num_nodes, edge_index = graph("loops", device)
    x = torch.randn(num_nodes, 4, dtype=torch.float64, device=device)
    pyg, ours = convs(4, 3, device, normalize=False)
    out = ours(x, pyg_sparse.plan(edge_index, (num_nodes, num_nodes + 2)))
    torch.testing.assert_close(out[:num_nodes], pyg(x, edge_index))
    torch.testing.assert_close(out[num_nodes:], ours.bias.expand(2, -1))
