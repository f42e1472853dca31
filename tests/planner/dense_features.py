"""The features once more, from a dense matrix in NumPy: nothing of the library but the default k of hyb."""

from __future__ import annotations

import itertools

import numpy as np

from tests.conftest import Graph


def dense(graph: Graph) -> np.ndarray:
    """int64 ``[num_dst, num_src]``: entries at every position."""
    matrix = np.zeros((graph.num_dst, graph.num_src), dtype=np.int64)
    src, dst = graph.edge_index.numpy()
    np.add.at(matrix, (dst, src), 1)
    return matrix


def _ratio(a: float, b: float) -> float:
    return a / b if b else 0.0


def _cv(values: np.ndarray) -> float:
    return _ratio(values.std(), values.mean()) if values.size else 0.0


def _quantile(values: np.ndarray, share: float) -> float:
    return float(np.quantile(values, share)) if values.size else 0.0


def blocks(matrix: np.ndarray, width: int) -> np.ndarray:
    """Entries in every block."""
    rows, cols = (-(-size // width) for size in matrix.shape)
    padded = np.zeros((rows * width, cols * width), dtype=np.int64)
    padded[: matrix.shape[0], : matrix.shape[1]] = matrix
    return padded.reshape(rows, width, cols, width).sum((1, 3))


def _sell(length: np.ndarray, height: int) -> int:
    return sum(height * int(length[i : i + height].max()) for i in range(0, len(length), height))


def hyb_positions(length: int, k: int) -> int:
    """Widths of the pieces of a row."""
    pieces = [min(length - start, 1 << k) for start in range(0, length, 1 << k)]
    return sum(next(1 << b for b in range(k + 1) if 1 << b >= piece) for piece in pieces)


def factors(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """B, and u."""
    second = matrix if matrix.shape[0] == matrix.shape[1] else matrix.T
    return second, matrix @ second.sum(1)


def compression(matrix: np.ndarray) -> float:
    second, u = factors(matrix)
    return _ratio(u.sum(), np.count_nonzero(matrix.astype(np.float64) @ second.astype(np.float64)))


def dense_features(graph: Graph) -> dict[str, float]:
    matrix = dense(graph)
    num_rows, num_cols = matrix.shape
    nnz = int(matrix.sum())
    length, degree = matrix.sum(1), matrix.sum(0)
    columns = [np.repeat(np.arange(num_cols), row) for row in matrix if row.any()]
    spans = [c[-1] - c[0] + 1 for c in columns]
    gaps = [b - a for c in columns for a, b in itertools.pairwise(c.tolist())]
    tile = blocks(matrix, 16)
    second, u = factors(matrix)
    bound = np.minimum(u, second.shape[1])
    mean = -(-nnz // num_rows) if num_rows else 0
    k = next(b for b in range(21) if 1 << b >= mean)
    intrinsic = {
        "num_rows": num_rows,
        "nnz": nnz,
        "density": _ratio(nnz, matrix.size),
        "row_mean": _ratio(nnz, num_rows),
        "row_max": max(length, default=0),
        "row_cv": _cv(length),
        "row_q25": _quantile(length, 0.25),
        "row_median": _quantile(length, 0.5),
        "row_q75": _quantile(length, 0.75),
        "row_empty": _ratio(np.count_nonzero(length == 0), num_rows),
        "col_max": max(degree, default=0),
        "col_cv": _cv(degree),
        "row_span": _ratio(sum(spans), len(spans)),
        "span_normalized": _ratio(_ratio(sum(spans), len(spans)), num_cols),
        "mean_gap": _ratio(sum(gaps), len(gaps)),
        "diagonal_fraction": _ratio(np.trace(matrix), nnz),
        "tile_coverage": _ratio(np.count_nonzero(tile), tile.size),
        "dense_tile_share": _ratio(tile[tile >= 32].sum(), nnz),
    }
    representation = {
        "ell": _ratio(num_rows * max(length, default=0), nnz),
        **{f"sell_{height}": _ratio(_sell(length, height), nnz) for height in (8, 32, 256)},
        **{f"bsr_{w}": _ratio(w * w * np.count_nonzero(blocks(matrix, w)), nnz) for w in (4, 8, 16)},
        "hyb_padding": _ratio(sum(hyb_positions(n, k) for n in length.tolist()) - nnz, nnz),
    }
    spgemm = {
        "u_total": u.sum(),
        "u_mean": _ratio(u.sum(), num_rows),
        "u_median": _quantile(u, 0.5),
        "u_p95": _quantile(u, 0.95),
        "u_max": max(u, default=0),
        "u_cv": _cv(u),
        "fit_512": _ratio(np.count_nonzero(bound <= 512), num_rows),
        "fit_4k": _ratio(np.count_nonzero(bound <= 4096), num_rows),
        "fit_32k": _ratio(np.count_nonzero(bound <= 32768), num_rows),
        "compression": compression(matrix),
    }
    return {**intrinsic, **representation, **spgemm}
