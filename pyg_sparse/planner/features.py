"""The structural features of a graph's adjacency: 36 numbers and the class of its shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from torch import Tensor

from pyg_sparse.formats.rows import Rows, rows_from_edges
from pyg_sparse.planner.blocks import count_blocks
from pyg_sparse.planner.by_row import by_row
from pyg_sparse.planner.intrinsic import Intrinsic, intrinsic
from pyg_sparse.planner.representation import Representation, representation
from pyg_sparse.planner.shape_class import shape_class
from pyg_sparse.planner.spgemm import Factors, SpGemm, spgemm
from pyg_sparse.validate import check_device, check_edge_index, check_num_nodes

FROM_BLOCKS = ("tile_coverage", "dense_tile_share", "bsr_4", "bsr_8", "bsr_16")


@dataclass(frozen=True)
class Features:
    """18 + 8 + 10 numbers, all finite, with formulas, units and ranges in docs/features.md.

    Attributes:
        intrinsic: size, row lengths, column degrees, where the entries lie.
        representation: positions that formats store per entry.
        spgemm: products and entries of a sparse product.
        shape_class: one of :data:`pyg_sparse.planner.shape_class.SHAPE_CLASSES`.
        sampled: names of the numbers that are estimates; the others are exact.
    """

    intrinsic: Intrinsic
    representation: Representation
    spgemm: SpGemm
    shape_class: str
    sampled: tuple[str, ...]

    def as_dict(self) -> dict[str, float | int | str | list[str]]:
        """The 36 numbers by name, then ``shape_class`` and ``sampled``: what JSON can hold, always in this order."""
        numbers = {**asdict(self.intrinsic), **asdict(self.representation), **asdict(self.spgemm)}
        return {**numbers, "shape_class": self.shape_class, "sampled": list(self.sampled)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Features:
        """What ``as_dict`` made.

        Raises:
            ValueError: names are missing or unknown.
        """
        expected = {*NAMES, "shape_class", "sampled"}
        if values.keys() != expected:
            raise ValueError(f"names that are missing or unknown: {', '.join(sorted(values.keys() ^ expected))}")

        def part(group: Any) -> Any:
            return group(**{f.name: values[f.name] for f in fields(group)})

        parts = part(Intrinsic), part(Representation), part(SpGemm)
        return cls(*parts, values["shape_class"], tuple(values["sampled"]))


NAMES: tuple[str, ...] = tuple(f.name for group in (Intrinsic, Representation, SpGemm) for f in fields(group))


def features(rows: Rows, t_rows: Rows, *, seed: int = 0) -> Features:
    """The features of a matrix, computed on its device. They do not depend on how rows and columns are ordered in
    ``rows``, and CPU and CUDA draw the same samples: results differ by rounding only.

    Args:
        rows: the matrix, in any processing order.
        t_rows: its transpose.
        seed: of the samples.

    Raises:
        ValueError: the shape of ``t_rows`` is not that of the transpose.
    """
    if (t_rows.num_rows, t_rows.num_cols, t_rows.nnz) != (rows.num_cols, rows.num_rows, rows.nnz):
        raise ValueError(
            f"t_rows is {t_rows.num_rows} x {t_rows.num_cols} with {t_rows.nnz} entries, which is no transpose of "
            f"{rows.num_rows} x {rows.num_cols} with {rows.nnz}"
        )
    rng = np.random.default_rng(seed)
    factors = Factors.of(rows, t_rows)
    each = by_row(rows, factors.b)
    blocks = count_blocks(rows, rng)
    product, exact_compression = spgemm(factors, each.products, rng)
    return Features(
        intrinsic=intrinsic(rows, t_rows, each, blocks),
        representation=representation(rows, each.length, blocks),
        spgemm=product,
        shape_class=shape_class(each.length),
        sampled=(() if blocks.exact else FROM_BLOCKS) + (() if exact_compression else ("compression",)),
    )


def features_of(edge_index: Tensor, num_nodes: int | tuple[int, int] | None = None, *, seed: int = 0) -> Features:
    """The features of a graph's forward adjacency: rows are targets, columns sources.

    Args:
        edge_index: int64 or int32 ``[2, E]`` on the CPU or a CUDA device, in any order, duplicates kept.
        num_nodes: as for :func:`pyg_sparse.plan`.
        seed: of the samples.

    Raises:
        TypeError, ValueError: the arguments are not a graph; the message says why.
    """
    check_edge_index(edge_index)
    check_device(edge_index.device)
    num_src, num_dst = check_num_nodes(edge_index, num_nodes)
    src, dst = edge_index
    rows = rows_from_edges(dst, src, num_dst, num_src, keep_slots=False)
    t_rows = rows_from_edges(src, dst, num_src, num_dst, keep_slots=False)
    return features(rows, t_rows, seed=seed)
