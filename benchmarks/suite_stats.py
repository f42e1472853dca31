"""Row statistics of the 60 SuiteSparse matrices, and whether a graph has them."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.graphs import Graph

LISTED = Path(__file__).parent / "suitesparse60.csv"
CV_ROUNDING = 0.005  # the list has two decimals


@dataclass(frozen=True)
class Stats:
    """`row_cv` is the standard deviation of the row lengths over their mean."""

    name: str
    rows: int
    cols: int
    nnz: int
    row_max: int
    row_cv: float
    family: str

    def agrees(self, graph: Graph, cv_tolerance: float = 0.0) -> bool:
        """Size and longest row are equal; the cv is within the list's rounding and a relative tolerance."""
        found = of_graph(graph, self.family)
        same = (self.rows, self.cols, self.nnz, self.row_max) == (found.rows, found.cols, found.nnz, found.row_max)
        allowed = CV_ROUNDING + cv_tolerance * self.row_cv + 1e-9
        return same and abs(self.row_cv - found.row_cv) <= allowed


def read(path: Path = LISTED) -> list[Stats]:
    with path.open(newline="") as file:
        return [
            Stats(
                line["name"],
                int(line["rows"]),
                int(line["cols"]),
                int(line["nnz"]),
                int(line["row_max"]),
                float(line["row_cv"]),
                line["family"],
            )
            for line in csv.DictReader(file)
        ]


def of_graph(graph: Graph, family: str = "") -> Stats:
    """A row of the matrix is a target, a column a source."""
    lengths = torch.bincount(graph.edge_index[1], minlength=graph.num_dst).double()
    cv = float(lengths.std(correction=0) / lengths.mean())
    return Stats(graph.name, graph.num_dst, graph.num_src, graph.num_edges, int(lengths.max()), cv, family)
