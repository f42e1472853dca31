"""Graphs by name: PyG's and OGB's datasets, which are downloaded where they are not there yet, and synthetic shapes.

Their own loaders read them, and trust the files in their folder.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Any

from torch import Tensor

from pyg_sparse.cli.errors import Failure, UsageError
from pyg_sparse.datasets import SHAPES, shaped_graph

# The class, and whether it has several datasets, each in a folder of its name.
_FAMILIES: dict[tuple[str, bool], tuple[str, ...]] = {
    ("Planetoid", True): ("Cora", "CiteSeer", "PubMed"),
    ("Amazon", True): ("Computers", "Photo"),
    ("Coauthor", True): ("CS", "Physics"),
    ("HeterophilousGraphDataset", True): ("Roman-empire", "Amazon-ratings", "Minesweeper", "Tolokers", "Questions"),
    ("Reddit", False): ("Reddit",),
    ("Reddit2", False): ("Reddit2",),
    ("Flickr", False): ("Flickr",),
    ("Yelp", False): ("Yelp",),
    ("AmazonProducts", False): ("AmazonProducts",),
    ("Actor", False): ("Actor",),
    ("WikiCS", False): ("WikiCS",),
    ("EmailEUCore", False): ("EmailEUCore",),
    ("KarateClub", False): ("KarateClub",),
}
_OGB = ("ogbn-arxiv", "ogbn-products", "ogbn-proteins")
NAMES = (*(name for names in _FAMILIES.values() for name in names), *_OGB)


def synthetic(spec: str) -> tuple[str, tuple[Tensor, int]]:
    """``NAME`` or ``NAME@SCALE``: a name that says so, and the graph."""
    name, at, scale = spec.partition("@")
    if name not in SHAPES:
        raise UsageError(f"GRAPH={'shape:' + spec!r}: the shape {name!r} must be one of {', '.join(SHAPES)}")
    try:
        shaped = shaped_graph(name, scale=float(scale) if at else 1.0)
    except ValueError:
        raise UsageError(f"GRAPH={'shape:' + spec!r}: the scale {scale!r} must be above 0 and at most 1") from None
    title = f"{name}-shaped (synthetic{f', scale {shaped.scale:g}' if at else ''})"
    return title, (shaped.edge_index, shaped.num_nodes)


def dataset(spec: str, root: Path | None) -> tuple[str, tuple[Tensor, int]]:
    name = {known.lower(): known for known in NAMES}.get(spec.lower())
    if name is None:
        raise UsageError(
            f"GRAPH={spec!r} is neither a file nor a known name; known are {', '.join(NAMES)}, "
            f"and {', '.join(f'shape:{shape}' for shape in SHAPES)}"
        )
    root = _default_root() if root is None else root
    try:
        with contextlib.redirect_stdout(sys.stderr):  # both print, and stdout is for results
            data = _ogb(name, root) if name in _OGB else _pyg(name, root)
    except UsageError:
        raise
    except ImportError as problem:
        raise UsageError(f"GRAPH={spec!r} needs a package that is not installed: {problem}") from None
    except Exception as problem:  # of the loaders: no network, a file that is not what they expect, no space
        raise Failure(f"{name} could not be had in {root}: {type(problem).__name__}: {problem}") from problem
    return name, (data.edge_index, int(data.num_nodes))


def _default_root() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("pyg_sparse_datasets")


def _pyg(name: str, root: Path) -> Any:
    from torch_geometric import datasets

    class_name, several = next(family for family, names in _FAMILIES.items() if name in names)
    if name == "KarateClub":  # comes with PyG
        return datasets.KarateClub()[0]
    family = getattr(datasets, class_name)
    return family(str(root), name)[0] if several else family(str(root / class_name))[0]


def _ogb(name: str, root: Path) -> Any:
    try:
        from ogb.nodeproppred import PygNodePropPredDataset
    except ImportError:
        raise UsageError(f"GRAPH={name!r} needs ogb: pip install 'pyg_sparse[datasets]'") from None
    return PygNodePropPredDataset(name, str(root))[0]
