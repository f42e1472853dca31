"""The graph that a command is given: a file, a PyG dataset's name, or a synthetic shape."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from pyg_sparse.cli import graph_files, matrix_market, named_graphs
from pyg_sparse.cli.errors import UsageError
from pyg_sparse.validate import check_edge_index, check_num_nodes

Found = tuple[Tensor, int | tuple[int, int] | None]
"""An ``edge_index``, and ``num_nodes`` as :func:`pyg_sparse.plan` takes it."""

READERS: dict[str, Callable[[Path], Found]] = {
    ".npz": graph_files.read_npz,
    ".mtx": matrix_market.read,
    ".mtx.gz": matrix_market.read,
    ".pt": graph_files.read_pt,
    ".safetensors": graph_files.read_safetensors,
}
SYNTHETIC = "shape:"


class LoadedGraph(NamedTuple):
    """``edge_index``: int64 ``[2, E]``, every index in range."""

    name: str
    edge_index: Tensor
    num_src: int
    num_dst: int


def load_graph(spec: str, root: Path | None = None) -> LoadedGraph:
    """Reads a graph onto the CPU.

    Args:
        spec: a file with one of the suffixes of ``READERS``, ``shape:NAME@SCALE``, or a dataset's name.
        root: where PyG's datasets lie, or are downloaded to; None: a folder in the user's cache.

    Raises:
        UsageError: it is no graph; the message says why.
    """
    found: Found
    suffix = next((known for known in sorted(READERS, key=len, reverse=True) if spec.endswith(known)), None)
    if spec.startswith(SYNTHETIC):
        name, found = named_graphs.synthetic(spec.removeprefix(SYNTHETIC))
    elif suffix is not None:
        name, found = Path(spec).name.removesuffix(suffix), _read(Path(spec), READERS[suffix])
    elif Path(spec).exists() or "/" in spec:
        raise UsageError(f"GRAPH={spec!r}: {_why_no_file(Path(spec))}")
    else:
        name, found = named_graphs.dataset(spec, root)
    edge_index, num_nodes = found
    try:
        check_edge_index(edge_index)
        num_src, num_dst = check_num_nodes(edge_index, num_nodes)
    except (TypeError, ValueError) as problem:
        raise UsageError(f"GRAPH={spec!r} is no graph: {problem}") from None
    return LoadedGraph(name, edge_index.to(torch.int64).contiguous(), num_src, num_dst)


def _read(path: Path, reader: Callable[[Path], Found]) -> Found:
    if not path.is_file():
        raise UsageError(f"GRAPH={str(path)!r}: {_why_no_file(path)}")
    try:
        return reader(path)
    except OSError as problem:
        raise UsageError(f"GRAPH={str(path)!r} cannot be read: {problem.strerror or problem}") from None
    except (TypeError, ValueError) as problem:  # TypeError: an array of no numbers
        raise UsageError(f"GRAPH={str(path)!r} {problem}") from None


def _why_no_file(path: Path) -> str:
    if not path.exists():
        return "there is no such file"
    if path.is_dir():
        return "this is a folder; name a file in it"
    return f"a file's name must end in {', '.join(READERS)}"
