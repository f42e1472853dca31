"""Every kind of file and name, and what is said of each that is no graph."""

import gzip
import pickle
import re
import shutil
import sys

import numpy as np
import pytest
import scipy.io
import scipy.sparse
import torch
from safetensors.torch import save_file
from torch import Tensor

from pyg_sparse.cli.errors import Failure, UsageError
from pyg_sparse.cli.graph import load_graph
from pyg_sparse.cli.named_graphs import NAMES
from pyg_sparse.datasets import shaped_graph

EDGES = torch.tensor([[0, 3, 3, 1], [2, 0, 1, 1]])
MATRIX = scipy.sparse.coo_matrix((np.ones(4), (EDGES[1].numpy(), EDGES[0].numpy())), shape=(3, 5))


def pairs(edge_index: Tensor) -> list[list[int]]:
    return sorted(edge_index.t().tolist())


def check(loaded, num_src: int, num_dst: int, edges: Tensor = EDGES) -> None:
    assert (loaded.num_src, loaded.num_dst) == (num_src, num_dst)
    assert loaded.edge_index.dtype == torch.int64
    assert pairs(loaded.edge_index) == pairs(edges)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_scipy_npz(tmp_path, kind):
    scipy.sparse.save_npz(tmp_path / "m.npz", MATRIX.asformat(kind))
    loaded = load_graph(str(tmp_path / "m.npz"))
    assert loaded.name == "m"
    check(loaded, 5, 3)


def test_edge_index_npz(tmp_path):
    np.savez(tmp_path / "a.npz", edge_index=EDGES.int().numpy())
    check(load_graph(str(tmp_path / "a.npz")), 4, 4)
    np.savez(tmp_path / "b.npz", edge_index=EDGES.numpy(), num_nodes=7)
    check(load_graph(str(tmp_path / "b.npz")), 7, 7)


def test_heterophilous_npz(tmp_path):
    np.savez(tmp_path / "h.npz", edges=EDGES.t().numpy(), node_labels=np.zeros(6))
    both = torch.tensor([[0, 2, 3, 0, 3, 1, 1], [2, 0, 0, 3, 1, 3, 1]])
    check(load_graph(str(tmp_path / "h.npz")), 6, 6, both)


@pytest.mark.parametrize("ending", [".mtx", ".mtx.gz"])
@pytest.mark.parametrize("field", ["pattern", "real", "integer", "complex"])
def test_matrix_market(tmp_path, ending, field):
    path = tmp_path / f"m{ending}"
    with gzip.open(path, "wb") if ending.endswith("gz") else path.open("wb") as file:
        scipy.io.mmwrite(file, MATRIX, comment="by hand\nin two lines", field=field)
    loaded = load_graph(str(path))
    assert loaded.name == "m"
    check(loaded, 5, 3)


@pytest.mark.parametrize("symmetry", ["symmetric", "skew-symmetric", "hermitian"])
def test_one_triangle_of_a_matrix(tmp_path, symmetry):
    path = tmp_path / "m.mtx"
    path.write_text(f"%%MatrixMarket matrix coordinate complex {symmetry}\n%\n\n3 3 2\n2 1 1.0 0.5\n3 3 1e3 0\n")
    check(load_graph(str(path)), 3, 3, torch.tensor([[0, 1, 2], [1, 0, 2]]))


def test_matrix_without_entries(tmp_path):
    path = tmp_path / "m.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern general\n3 4 0\n")
    check(load_graph(str(path)), 4, 3, torch.empty(2, 0))


def sparse() -> Tensor:
    """EDGES, a row per target."""
    return torch.sparse_coo_tensor(EDGES.flip(0), torch.ones(4), (3, 5), check_invariants=True)


@pytest.mark.filterwarnings("ignore:Sparse CS:UserWarning")
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_sparse_pt(tmp_path, layout):
    torch.save(sparse().to_sparse(layout=layout), tmp_path / "g.pt")
    check(load_graph(str(tmp_path / "g.pt")), 5, 3)


@pytest.mark.parametrize(
    ("content", "num_src", "num_dst"),
    [
        (EDGES, 4, 4),
        (EDGES.int(), 4, 4),
        ({"edge_index": EDGES}, 4, 4),
        ({"edge_index": EDGES, "num_nodes": 9}, 9, 9),
        ({"edge_index": EDGES, "num_nodes": torch.tensor([5, 3])}, 5, 3),
    ],
)
def test_pt(tmp_path, content, num_src, num_dst):
    torch.save(content, tmp_path / "g.pt")
    check(load_graph(str(tmp_path / "g.pt")), num_src, num_dst)


@pytest.mark.parametrize(("metadata", "num_src", "num_dst"), [(None, 4, 4), ("8", 8, 8), ("[5, 3]", 5, 3)])
def test_safetensors(tmp_path, metadata, num_src, num_dst):
    save_file({"edge_index": EDGES}, tmp_path / "g.safetensors", {"num_nodes": metadata} if metadata else None)
    check(load_graph(str(tmp_path / "g.safetensors")), num_src, num_dst)


def test_real_files(data_root):
    for path, nodes, edges in (
        ("heterophilous_npz/chameleon.npz", 2277, 2 * 31371),
        ("heterophilous/minesweeper/raw/minesweeper.npz", 10000, 78804),
        ("planetoid_pubmed/pubmed_structure.npz", 19717, 88648),
        ("matrices/suitesparse/HB/can_838.mtx.gz", 838, 10010),
    ):
        loaded = load_graph(str(data_root / path))
        assert (loaded.num_src, loaded.num_dst, loaded.edge_index.size(1)) == (
            nodes,
            nodes,
            edges,
        ) or "chameleon" in path
    rectangular = load_graph(str(data_root / "matrices/suitesparse/LPnetlib/lp_e226.mtx.gz"))
    assert (rectangular.num_dst, rectangular.num_src, rectangular.edge_index.size(1)) == (223, 472, 2768)
    matrix = scipy.io.mmread(data_root / "matrices/suitesparse/LPnetlib/lp_e226.mtx.gz").tocoo()
    assert pairs(rectangular.edge_index) == sorted(np.stack([matrix.col, matrix.row], 1).tolist())


def test_dataset_under_a_root(data_root, tmp_path):
    shutil.copytree(data_root / "planetoid" / "Cora", tmp_path / "Cora")
    loaded = load_graph("cora", tmp_path)
    assert (loaded.name, loaded.num_src, loaded.edge_index.size(1)) == ("Cora", 2708, 10556)


def test_dataset_of_pyg_itself():
    assert load_graph("KarateClub").num_src == 34


def test_dataset_that_cannot_be_had(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Failure, match=r"Cora could not be had in .*file"):
        load_graph("Cora", tmp_path / "file")


def test_synthetic_shape():
    loaded = load_graph("shape:arxiv@0.01")
    assert loaded.name == "arxiv-shaped (synthetic, scale 0.01)"
    assert torch.equal(loaded.edge_index, shaped_graph("arxiv", scale=0.01).edge_index)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("none.npz", "GRAPH='none.npz': there is no such file"),
        ("folder/none", "there is no such file"),
        ("nonsense", f"neither a file nor a known name; known are {NAMES[0]}, .*ogbn-arxiv.*shape:reddit"),
        ("shape:nonsense", "the shape 'nonsense' must be one of reddit, arxiv"),
        ("shape:reddit@0", "the scale '0' must be above 0 and at most 1"),
        ("shape:reddit@x", "the scale 'x' must be above 0"),
    ],
)
def test_what_is_no_graph(spec, message):
    with pytest.raises(UsageError, match=message):
        load_graph(spec)


def test_missing_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ogb", None)
    with pytest.raises(UsageError, match=re.escape("'ogbn-arxiv' needs ogb: pip install 'pyg_sparse[datasets]'")):
        load_graph("ogbn-arxiv")


class Anything:
    """Not a tensor."""


HEADER = "%%MatrixMarket matrix coordinate pattern general\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("g.csv", b"", r"a file's name must end in .npz, .mtx"),
        ("g.npz", b"nonsense", "is not a NumPy archive"),
        ("g.pt", b"nonsense", "is not a file that torch.save wrote|holds more than tensors"),
        ("g.pt", pickle.dumps([1]), "is not a file that torch.save wrote|holds more than tensors"),
        ("g.safetensors", b"nonsense", "is not a safetensors file"),
        ("g.mtx", b"nonsense", "does not begin with %%MatrixMarket"),
        ("g.mtx.gz", b"nonsense", "is not a whole gzip file"),
        ("g.mtx.gz", gzip.compress(HEADER.encode() + b"1 1 1\n1 1\n")[:-12], "is not a whole gzip file"),
        ("g.mtx", b"%%MatrixMarket matrix array real general\n1 1\n1\n", "of kind 'array'; allowed: coordinate"),
        ("g.mtx", HEADER.encode() + b"2 2\n", "has no line of rows, columns and entries, but '2 2'"),
        ("g.mtx", HEADER.encode() + b"2 2 2\n1 1\n", "has 2 numbers in place of 2 entries of 2"),
        ("g.mtx", HEADER.encode() + b"2 2 1\n1 3\n", "has an entry outside of its 2 rows and 2 columns"),
        ("g.mtx", HEADER.encode() + b"2 2 1\n0 1\n", "has an entry outside"),
        ("g.mtx", HEADER.encode() + b"2 2 1\n1 x\n", "has entries that are not numbers"),
        ("g.mtx", HEADER.encode(), "has no line of rows"),
    ],
)
def test_broken_files(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=message):
        load_graph(str(tmp_path / name))


def test_a_single_array(tmp_path):
    with (tmp_path / "g.npz").open("wb") as file:
        np.save(file, EDGES.numpy())
    with pytest.raises(UsageError, match="is a single NumPy array"):
        load_graph(str(tmp_path / "g.npz"))


def test_a_folder(tmp_path):
    with pytest.raises(UsageError, match="this is a folder"):
        load_graph(str(tmp_path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"edge_index": np.array([[0, -1], [1, 1]])}, "holds the negative source -1"),
        ({"edge_index": np.array([[0, 5], [1, 1]]), "num_nodes": 3}, "holds the source 5, but num_nodes=3"),
        ({"edge_index": np.zeros((3, 2), np.int64)}, r"must have shape \[2, E\]"),
        ({"edge_index": np.zeros((2, 2))}, "must be int64 or int32, not torch.float64"),
        ({"edge_index": np.zeros((2, 2), np.int64), "num_nodes": 1.5}, "num_nodes=1.5 must be an int"),
        ({"edge_index": np.array([[Anything()], [1]])}, "of Python objects, which are not read"),
        ({"other": np.zeros(1)}, "it holds other, not edge_index"),
        ({"edges": np.array([[0, 9]]), "node_labels": np.zeros(3)}, "nodes from 0 to 2"),
        ({"format": b"dia", "shape": (2, 2)}, "format 'dia'; allowed are csr, csc and coo"),
        ({"format": b"csr", "shape": (2, 2), "indptr": [0, 1], "indices": [0]}, "indptr does not fit"),
        ({"format": b"csr", "shape": (2, 2), "indptr": [0, 1, 3], "indices": [0]}, "do not fit together"),
        ({"format": b"csr", "shape": (2, 2), "indptr": [0, 1, 2], "indices": [0, 7]}, "holds the source 7"),
    ],
)
def test_archives_that_are_no_graph(tmp_path, content, message):
    np.savez(tmp_path / "g.npz", **content)
    with pytest.raises(UsageError, match=message):
        load_graph(str(tmp_path / "g.npz"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (Anything(), "holds more than tensors, and is not read"),
        ([1, 2], "it holds list, not a tensor"),
        ({"x": torch.zeros(2)}, "it holds x, not a tensor"),
        (torch.zeros(3), "must be int64 or int32"),
        ({"edge_index": EDGES, "num_nodes": "many"}, "num_nodes='many' must be an int"),
    ],
)
def test_tensors_that_are_no_graph(tmp_path, content, message):
    torch.save(content, tmp_path / "g.pt")
    with pytest.raises(UsageError, match=message):
        load_graph(str(tmp_path / "g.pt"))


@pytest.mark.parametrize("num_nodes", ["many", '"4"', "[1, 2, 3]", "true"])
def test_metadata_that_is_no_number(tmp_path, num_nodes):
    save_file({"edge_index": EDGES}, tmp_path / "g.safetensors", {"num_nodes": num_nodes})
    with pytest.raises(UsageError, match=r"num_nodes=.* must be an int or a pair of ints"):
        load_graph(str(tmp_path / "g.safetensors"))


def test_safetensors_without_edges(tmp_path):
    save_file({"x": EDGES}, tmp_path / "g.safetensors")
    with pytest.raises(UsageError, match="it holds x, not edge_index"):
        load_graph(str(tmp_path / "g.safetensors"))
