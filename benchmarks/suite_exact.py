"""Matrices that have a construction, so that no file is needed: their pattern is exact up to the order of the
rows and columns, and is compared with the listed statistics before it is called so.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial

import numpy as np

Entries = tuple[np.ndarray, np.ndarray]
"""The row and the column of each entry."""


def diagonal(size: int) -> Entries:
    return np.arange(size), np.arange(size)


def stencil(*shape: int) -> Entries:
    """A point of a grid and its neighbours along each axis: 5 points in two dimensions, 7 in three."""
    index = np.arange(np.prod(shape)).reshape(shape)
    pairs = [(index, index)]
    for axis in range(index.ndim):
        low = index.take(np.arange(shape[axis] - 1), axis)
        high = index.take(np.arange(1, shape[axis]), axis)
        pairs += [(low, high), (high, low)]
    rows, cols = zip(*pairs, strict=True)
    return np.concatenate([r.ravel() for r in rows]), np.concatenate([c.ravel() for c in cols])


def augmented_grid(side: int) -> Entries:
    """aug2d: the links of a square grid and its points, each joined to the other; links leave the grid on all sides."""
    point = np.arange(side * side).reshape(side, side)
    above, left = np.arange(side), side + (2 * side + 1) * np.arange(side)
    right = left[:, None] + 1 + 2 * np.arange(side)
    below = right + 1
    links = np.concatenate(
        [
            right.ravel(),
            below.ravel(),
            np.hstack([left[:, None], right[:, :-1]]).ravel(),
            np.vstack([above, below[:-1]]).ravel(),
        ]
    )
    points = 2 * side * (side + 1) + np.tile(point.ravel(), 4)
    return np.concatenate([links, points]), np.concatenate([points, links])


def chessboard(height: int, width: int, rooks: int) -> Entries:
    """The boundary of the chessboard complex: placements of rooks that attack none, and those with one rook fewer.

    A placement is a number with a digit for each line of the board: 0, or one more than its rook's place.
    """
    base = width + 1
    placed, used = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for weight in base ** np.arange(height):
        free = [(used >> place) & 1 == 0 for place in range(width)]
        new = [placed[where] + (place + 1) * weight for place, where in enumerate(free)]
        new_used = [used[where] | (1 << place) for place, where in enumerate(free)]
        placed, used = np.concatenate([placed, *new]), np.concatenate([used, *new_used])
    count = np.bitwise_count(used)
    simplices, faces = np.sort(placed[count == rooks]), np.sort(placed[count == rooks - 1])
    rows, cols = [], []
    for weight in base ** np.arange(height):
        digit = simplices // weight % base
        (row,) = digit.nonzero()
        rows.append(row)
        cols.append(np.searchsorted(faces, simplices[row] - digit[row] * weight))
    return np.concatenate(rows), np.concatenate(cols)


def not_3_connected(nodes: int, edges: int) -> Entries:
    """The boundary of the complex of graphs that are not 3-connected, from those with `edges` edges to one fewer.

    Such a graph falls apart without some two nodes: it lacks all edges across some split of the other nodes.
    """
    pairs = list(itertools.combinations(range(nodes), 2))
    bit = {pair: 1 << i for i, pair in enumerate(pairs)}
    across = []
    for cut in pairs:
        first, *others = (node for node in range(nodes) if node not in cut)
        for size in range(len(others)):
            for more in itertools.combinations(others, size):
                rest = set(others) - set(more)
                across.append(sum(bit[min(a, b), max(a, b)] for a in (first, *more) for b in rest))

    def members(count: int) -> np.ndarray:
        graphs = np.array([sum(bits) for bits in itertools.combinations(bit.values(), count)])
        return np.sort(graphs[(graphs[:, None] & np.array(across) == 0).any(axis=1)])

    simplices, faces = members(edges), members(edges - 1)
    row, at = (simplices[:, None] >> np.arange(len(pairs)) & 1).nonzero()
    return row, np.searchsorted(faces, simplices[row] - (1 << at))


EXACT: dict[str, Callable[[], Entries]] = {
    "HB_bcsstm19": partial(diagonal, 817),
    "Oberwolfach_flowmeter0": partial(diagonal, 9669),
    "Bai_cdde2": partial(stencil, 31, 31),
    "Watson_Baumann": partial(stencil, 11, 101, 101),
    "GHS_indef_aug2d": partial(augmented_grid, 98),
    "JGD_Homology_n3c6-b10": partial(not_3_connected, 6, 11),
    "JGD_Homology_ch7-8-b4": partial(chessboard, 7, 8, 5),
    "JGD_Homology_ch7-9-b5": partial(chessboard, 7, 9, 6),
}
