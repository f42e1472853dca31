"""Graphs in files of arrays. Nothing in a file is executed: no pickled object is read.

The readers raise ValueError, with a message that continues the file's name.
"""

from __future__ import annotations

import json
import pickle
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

NumNodes = int | tuple[int, int] | None

# The arrays of an archive that may say what its graph is; features and the like stay in the file.
_READ = ("edge_index", "num_nodes", "edges", "node_labels", "format", "shape", "row", "col", "indptr", "indices")


def read_npz(path: Path) -> tuple[Tensor, NumNodes]:
    """A matrix that ``scipy.sparse.save_npz`` wrote, ``edge_index``, or a heterophilous graph as PyG downloads it."""
    try:
        archive = np.load(path, allow_pickle=False)
    except (zipfile.BadZipFile, EOFError, ValueError):  # ValueError: a pickled file, which is not read
        raise ValueError("is not a NumPy archive") from None
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise ValueError("is a single NumPy array, not an archive: use numpy.savez(..., edge_index=...)")
    with archive:
        try:
            arrays = {name: archive[name] for name in _READ if name in archive.files}
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError):
            raise ValueError("holds arrays that are damaged, or of Python objects, which are not read") from None
        return _of_arrays(arrays, archive.files)


def _of_arrays(arrays: dict[str, np.ndarray], names: list[str]) -> tuple[Tensor, NumNodes]:
    """``names``: of all arrays in the file."""
    if "edge_index" in arrays:
        num_nodes = _num_nodes(arrays["num_nodes"].tolist()) if "num_nodes" in arrays else None
        return torch.from_numpy(arrays["edge_index"]), num_nodes
    if arrays.keys() >= {"edges", "node_labels"}:  # each edge once
        from torch_geometric.utils import to_undirected

        edges, count = torch.from_numpy(arrays["edges"]).long().t(), len(arrays["node_labels"])
        if edges.numel() and not 0 <= int(edges.min()) <= int(edges.max()) < count:
            raise ValueError(f"is no graph: edges must hold nodes from 0 to {count - 1}, as node_labels has them")
        return to_undirected(edges, num_nodes=count), count
    if arrays.keys() >= {"format", "shape"}:
        return _of_scipy(arrays)
    raise ValueError(
        f"is no graph: it holds {_listed(names)}, not edge_index, edges with node_labels, or a SciPy matrix"
    )


def _of_scipy(arrays: dict[str, np.ndarray]) -> tuple[Tensor, NumNodes]:
    kind = arrays["format"].item()
    kind = kind.decode() if isinstance(kind, bytes) else str(kind)
    num_dst, num_src = (int(size) for size in arrays["shape"])  # a row sums what its columns send
    if kind == "coo":
        row, col = arrays["row"], arrays["col"]
    elif kind in ("csr", "csc"):
        pointer, index = arrays["indptr"], arrays["indices"]
        length = np.diff(pointer)
        if len(pointer) != (num_dst if kind == "csr" else num_src) + 1 or (length < 0).any():
            raise ValueError("is no sparse matrix: indptr does not fit its shape")
        if length.sum() != len(index):
            raise ValueError("is no sparse matrix: indptr and indices do not fit together")
        own = np.repeat(np.arange(len(length)), length)
        row, col = (own, index) if kind == "csr" else (index, own)
    else:
        raise ValueError(f"holds a SciPy matrix of format {kind!r}; allowed are csr, csc and coo: call .tocsr()")
    return torch.from_numpy(np.stack([col, row]).astype(np.int64)), (num_src, num_dst)


def read_pt(path: Path) -> tuple[Tensor, NumNodes]:
    """``edge_index``, a dict with it and perhaps ``num_nodes``, or a sparse tensor whose rows are targets."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # torch says that CSR is in beta
            found = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise ValueError("holds more than tensors, and is not read: save the edge_index tensor alone") from None
    except (RuntimeError, EOFError, KeyError):
        raise ValueError("is not a file that torch.save wrote") from None
    if isinstance(found, Tensor) and found.layout in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc):
        row, col = found.to_sparse_coo()._indices()[:2]  # repeated entries are kept
        return torch.stack([col, row]), (found.size(1), found.size(0))
    if isinstance(found, Tensor):
        return found, None
    if isinstance(found, dict) and isinstance(found.get("edge_index"), Tensor):
        return found["edge_index"], _num_nodes(found.get("num_nodes"))
    held = _listed(found) if isinstance(found, dict) else type(found).__name__
    raise ValueError(f"is no graph: it holds {held}, not a tensor [2, E], a dict with edge_index, or a sparse tensor")


def read_safetensors(path: Path) -> tuple[Tensor, NumNodes]:
    """``edge_index``, and perhaps ``num_nodes`` in the metadata: ``"5"``, or ``"[5, 7]"`` for sources and targets."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as archive:
            if "edge_index" not in archive.keys():  # noqa: SIM118
                raise ValueError(f"is no graph: it holds {_listed(archive.keys())}, not edge_index")
            num_nodes = (archive.metadata() or {}).get("num_nodes")
            return archive.get_tensor("edge_index"), None if num_nodes is None else _num_nodes(json.loads(num_nodes))
    except SafetensorError:
        raise ValueError("is not a safetensors file") from None
    except json.JSONDecodeError:
        raise ValueError(f"is no graph: num_nodes={num_nodes!r} must be an int or a pair of ints") from None


def _num_nodes(value: Any) -> NumNodes:
    if isinstance(value, Tensor):
        value = value.tolist()
    found = tuple(value) if isinstance(value, list | tuple) else value
    if found is None or type(found) is int or (isinstance(found, tuple) and [type(n) for n in found] == [int, int]):
        return found
    raise ValueError(f"is no graph: num_nodes={value!r} must be an int or a pair of ints")


def _listed(names: Any) -> str:
    return ", ".join(sorted(map(str, names))) or "nothing"
