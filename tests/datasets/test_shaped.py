import pytest
import torch
from torch.nn import Linear, Module
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.nn.models import GCN

from pyg_sparse.datasets import SHAPES, shaped_data, shaped_graph

SCALES = {"reddit": 0.02, "arxiv": 0.1, "products": 0.01, "proteins": 0.03}


@pytest.mark.parametrize("name", SHAPES)
def test_is_a_simple_undirected_graph(name):
    graph = shaped_graph(name, scale=SCALES[name])
    source, target = graph.edge_index
    keys = source * graph.num_nodes + target
    assert graph.edge_index.dtype == torch.int64
    assert 0 <= int(graph.edge_index.min()) <= int(graph.edge_index.max()) < graph.num_nodes
    assert (source != target).all()
    assert (keys.diff() > 0).all(), "sorted, without duplicates"
    assert torch.equal((target * graph.num_nodes + source).sort().values, keys), "symmetric"


@pytest.mark.parametrize("name", SHAPES)
def test_size_skew_and_communities(name):
    graph, shape = shaped_graph(name, scale=SCALES[name]), SHAPES[name]
    degree = graph.edge_index[1].bincount(minlength=graph.num_nodes).double()
    mean = min(shape.entries / shape.nodes, graph.num_nodes / 32)
    assert graph.num_nodes == round(shape.nodes * SCALES[name])
    assert graph.edge_index.size(1) == pytest.approx(graph.num_nodes * mean, rel=0.01)
    assert degree.median() < 0.8 * mean
    assert degree.max() > 5 * mean

    size = graph.community.bincount().double()
    assert size.numel() >= shape.classes
    assert size.max() > 3 * size.min() > 0
    source, target = graph.edge_index
    inside = (graph.community[source] == graph.community[target]).double().mean()
    by_chance = size.square().sum() / size.sum().square()
    assert inside > 8 * by_chance


def test_node_ids_say_nothing():
    community = shaped_graph("arxiv", scale=0.1).community
    same_as_next = (community[1:] == community[:-1]).double().mean()
    assert same_as_next < 0.1


def test_same_seed_same_graph():
    first, again, other = (shaped_graph("reddit", scale=0.01, seed=seed) for seed in (3, 3, 4))
    assert torch.equal(first.edge_index, again.edge_index)
    assert torch.equal(first.community, again.community)
    assert not torch.equal(first.community, other.community)


@pytest.mark.parametrize("name", SHAPES)
def test_smallest_scale(name):
    graph = shaped_graph(name, scale=1e-9)
    assert graph.num_nodes == 2 * SHAPES[name].classes
    assert graph.edge_index.size(1) > 0


def test_bad_arguments():
    with pytest.raises(ValueError, match="name must be one of reddit, arxiv, products, proteins, got 'cora'"):
        shaped_graph("cora")
    for scale in (0, -1, 1.5, float("nan")):
        with pytest.raises(ValueError, match=r"scale must be in \(0, 1\], got"):
            shaped_graph("reddit", scale=scale)


def test_data_has_features_labels_and_a_split():
    data, shape = shaped_data("products", scale=0.002), SHAPES["products"]
    assert data.x.dtype == torch.float32
    assert data.x.shape == (data.num_nodes, shape.features)
    assert data.y.unique().tolist() == list(range(shape.classes))
    masks = torch.stack([data.train_mask, data.val_mask, data.test_mask])
    assert (masks.sum(dim=0) == 1).all()
    assert masks.double().mean(dim=1).tolist() == pytest.approx([0.66, 0.10, 0.24], abs=0.03)


@pytest.mark.parametrize(
    ("name", "scale", "expected_linear", "expected_gcn"),
    [("reddit", 0.01, 0.41, 0.99), ("arxiv", 0.03, 0.46, 0.89), ("products", 0.001, 0.46, 0.97)],
)
def test_a_gcn_learns_what_a_linear_model_does_not(name, scale, expected_linear, expected_gcn):
    data = shaped_data(name, scale=scale)
    classes = SHAPES[name].classes
    torch.manual_seed(0)
    linear = _test_accuracy(Linear(data.num_features, classes), data, data.x)
    gcn = _test_accuracy(GCN(data.num_features, 32, 2, classes, cached=True), data, data.x, data.edge_index)
    assert linear == pytest.approx(expected_linear, abs=0.08)
    assert gcn == pytest.approx(expected_gcn, abs=0.04)


def _test_accuracy(model: Module, data: Data, *args: torch.Tensor) -> float:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    for _ in range(25):
        optimizer.zero_grad()
        cross_entropy(model(*args)[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()
    with torch.no_grad():
        right = model(*args).argmax(dim=1) == data.y
    return float(right[data.test_mask].double().mean())


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda_has_the_same_communities_and_repeats():
    cpu = shaped_graph("reddit", scale=0.01)
    first, again = (shaped_graph("reddit", scale=0.01, device="cuda") for _ in range(2))
    assert first.edge_index.is_cuda
    assert torch.equal(first.community.cpu(), cpu.community)
    assert torch.equal(first.edge_index, again.edge_index)
    assert first.edge_index.size(1) == pytest.approx(cpu.edge_index.size(1), rel=0.01)
