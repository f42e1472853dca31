"""The 60 SuiteSparse matrices of the list as graphs: the real file, else an exact construction, else a twin."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
import torch

from benchmarks import graphs, suite_twin
from benchmarks.graphs import Graph
from benchmarks.suite_exact import EXACT
from benchmarks.suite_stats import LISTED, Stats, read

TWIN_CV_TOLERANCE = 0.02  # relative


def suite(
    root: Path | None = None,
    seed: int = 0,
    only: Collection[str] = (),
    device: torch.device | str = "cpu",
    listed: Path = LISTED,
) -> Iterator[Graph]:
    """The graphs one by one, in the order of the list; `Graph.source` is `real`, `exact` or `twin`.

    Args:
        root: data folder with `matrices/index.tsv`, which gives the file of each matrix that is there.
        seed: of the twins.
        only: names to make, all if there are none.
    """
    files = _files(root) if root else {}
    matrices = read(listed)
    if unknown := set(only) - {stats.name for stats in matrices}:
        raise ValueError(f"not in {listed.name}: {', '.join(sorted(unknown))}")
    for stats in matrices:
        if not only or stats.name in only:
            yield load(stats, files.get(stats.name), seed, torch.device(device))


def load(stats: Stats, file: Path | None, seed: int, device: torch.device) -> Graph:
    """Raises ValueError for a graph that has not the listed statistics, wherever it comes from."""
    tolerance = 0.0
    if file:
        graph = graphs.load(f"{'npz' if file.suffix == '.npz' else 'mtx'}:{file}", 1.0, seed, device)
        graph.name = stats.name
    elif stats.name in EXACT:
        row, col = EXACT[stats.name]()
        graph = _graph(stats, "exact", np.stack([col, row]), device)
    else:
        graph = _graph(stats, "twin", suite_twin.edges(stats, seed), device)
        tolerance = TWIN_CV_TOLERANCE
    if not stats.agrees(graph, tolerance):
        raise ValueError(f"{stats.name} ({graph.source}) does not have the listed statistics")
    return graph


def _graph(stats: Stats, source: str, edge_index: np.ndarray, device: torch.device) -> Graph:
    return Graph(stats.name, source, torch.from_numpy(edge_index).to(device), stats.cols, stats.rows)


def _files(root: Path) -> dict[str, Path]:
    """File by the list's name, which has an underscore between group and matrix."""
    folder = root / "matrices"
    with (folder / "index.tsv").open(newline="") as index:
        return {
            line["name"].replace("/", "_", 1): folder / line["file"] for line in csv.DictReader(index, delimiter="\t")
        }
