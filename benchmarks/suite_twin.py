"""Structural twins: random matrices with the size, the entry count, the longest row and the spread of row lengths of
a listed matrix, and columns where matrices of its family have them. A twin is not the matrix, and results say so.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from benchmarks.suite_stats import Stats

_CHUNK = 1 << 16  # entries at a time: sorted in cache, and temporaries stay small beside the result
_BISECTIONS = 36
_KINDS = 256  # shares of a pattern are rounded to this fraction


@dataclass(frozen=True)
class Pattern:
    """Where the entries of a row lie, as shares of them; what is left over lies anywhere.

    Args:
        diagonal: every row has an entry at its own place.
        near: around the row's own place, within `reach`: that many columns, or a fraction of them below 1, and at
            least the row's length.
        bands: around the places at a distance of `shift` (a power of the number of columns) to either side.
        hubs: in columns as popular as the row of the same place is long.
        runs: this many consecutive rows have similar lengths, as the unknowns of one mesh node have.
        shortest: length of the shortest row allowed.
    """

    diagonal: bool = True
    near: float = 0.0
    reach: float = 0.0
    bands: float = 0.0
    shift: float = 0.5
    hubs: float = 0.0
    runs: int = 1
    shortest: int = 1


_SIMULATION = Pattern(near=0.5, reach=16, hubs=0.3)
_UNIFORM = Pattern(diagonal=False)
FAMILIES = {
    "banded": Pattern(near=1.0, runs=8),
    "census": Pattern(diagonal=False, near=0.8, reach=64, bands=0.2),
    "circuit": _SIMULATION,
    "diagonal": Pattern(),
    "fem": Pattern(near=0.5, bands=0.5, runs=3),
    "gene": Pattern(diagonal=False, near=0.3, reach=1 / 32, hubs=0.7),
    "incidence": _UNIFORM,
    "mesh": Pattern(diagonal=False, near=0.5, reach=8, bands=0.5, shift=0.95),
    "optimization": Pattern(near=0.3, reach=1 / 64, hubs=0.5),
    "quantum": Pattern(near=0.5, bands=0.5),
    "random": _UNIFORM,
    "road": Pattern(diagonal=False, near=0.8, reach=16, bands=0.2),
    "simulation": _SIMULATION,
    "social": Pattern(diagonal=False, near=0.4, reach=1 / 64, hubs=0.4, shortest=0),
    "web": Pattern(diagonal=False, near=0.8, reach=64, hubs=0.2, shortest=0),
}


def edges(stats: Stats, seed: int) -> np.ndarray:
    """The columns and the rows of the entries, sorted by row and column, each entry once."""
    rng = np.random.default_rng([seed, zlib.crc32(stats.name.encode())])
    pattern = FAMILIES[stats.family]
    lengths = _arranged(row_lengths(stats, pattern.shortest), pattern.runs, rng)
    ends = lengths.cumsum()
    result = np.empty((2, stats.nnz), np.int64)
    result[1] = np.repeat(np.arange(stats.rows), lengths)
    first = 0
    while first < stats.rows:
        start = ends[first] - lengths[first]
        last = max(first + 1, int(np.searchsorted(ends, start + _CHUNK, "right")))
        result[0, start : ends[last - 1]] = _columns(stats, pattern, result[1], lengths, first, last, rng)
        first = last
    return result


def row_lengths(stats: Stats, shortest: int) -> np.ndarray:
    """Lengths in descending order: one row of the greatest, the others log-logistic, rounded and clipped to the limits.

    The width of the distribution is the one that gives the listed spread of all lengths, its scale the one that gives
    the mean. What rounding leaves of the entry count is spread over the rows.
    """
    rows, longest = stats.rows - 1, stats.row_max
    total = stats.nnz - longest
    values = np.arange(shortest, longest + 1)
    squares = (1 + stats.row_cv**2) * stats.nnz**2 / stats.rows - longest**2
    borders = np.log(values[:-1] + 0.5)

    def at_most(sigma: float) -> np.ndarray:
        """The share of rows that are at most as long as each value but the greatest."""
        low, high = -20.0, 20.0
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            share = (1 + np.tanh((borders - middle) / sigma)) / 2
            mean = longest - share.sum()  # summation by parts
            low, high = (middle, high) if mean * rows < total else (low, middle)
        return share

    narrow, wide = 1e-3, 10.0
    for _ in range(_BISECTIONS):
        sigma = (narrow * wide) ** 0.5
        counts = np.diff(np.rint(np.concatenate([[0], at_most(sigma), [1]]) * rows).astype(np.int64))
        narrow, wide = (sigma, wide) if (counts * values**2).sum() < squares else (narrow, sigma)

    lengths = np.concatenate([[longest], np.repeat(values[::-1], counts[::-1])])
    return _corrected(lengths, stats.nnz, shortest)


def _corrected(lengths: np.ndarray, total: int, shortest: int) -> np.ndarray:
    """The same with the given sum: rows evenly chosen from those away from the limits are changed by one."""
    longest = lengths[0]
    while missing := int(total - lengths.sum()):
        (rows,) = (lengths[1:] < longest if missing > 0 else lengths[1:] > shortest).nonzero()
        chosen = 1 + rows[np.linspace(0, len(rows) - 1, min(abs(missing), len(rows))).astype(np.int64)]
        lengths[chosen] += np.sign(missing)
    return lengths


def _arranged(lengths: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    whole = len(lengths) // runs * runs
    order = rng.permutation(whole // runs)
    return np.concatenate([lengths[:whole].reshape(-1, runs)[order].ravel(), lengths[whole:]])


def _columns(
    stats: Stats,
    pattern: Pattern,
    row_of_entry: np.ndarray,
    lengths: np.ndarray,
    first: int,
    last: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Distinct ascending columns of the rows from `first` to before `last`."""
    lengths, cols = lengths[first:last], stats.cols
    start = lengths.cumsum() - lengths
    place = np.arange(first, last) * cols // stats.rows
    reach = np.maximum(lengths, pattern.reach * (cols if pattern.reach < 1 else 1)).astype(np.float32)
    row = np.repeat(np.arange(last - first), lengths)
    size = len(row)

    kind = rng.integers(_KINDS, size=size, dtype=np.uint8)
    ends = np.rint(np.cumsum([pattern.near, pattern.bands / 2, pattern.bands / 2, pattern.hubs]) * _KINDS).astype(int)
    shift = np.zeros(_KINDS, np.int64)
    shift[ends[0] : ends[1]] = cols**pattern.shift
    shift[ends[1] : ends[2]] = -shift[ends[0] : ends[1]].max(initial=0)
    col = ((2 * rng.random(size, np.float32) - 1) * reach[row]).astype(np.int64) + place[row] + shift[kind]
    if ends[3] > ends[2]:
        hubs = ((kind >= ends[2]) & (kind < ends[3])).nonzero()[0]
        col[hubs] = row_of_entry[rng.integers(len(row_of_entry), size=len(hubs))] * cols // stats.rows
    if ends[3] < _KINDS:
        rest = (kind >= ends[3]).nonzero()[0]
        col[rest] = rng.integers(cols, size=len(rest))
    if pattern.diagonal:
        at = start[lengths > 0]
        col[at] = place[row[at]]
    return _distinct(row, col % cols, start, lengths, cols)


def _distinct(row: np.ndarray, col: np.ndarray, start: np.ndarray, lengths: np.ndarray, cols: int) -> np.ndarray:
    """The columns of each row sorted; one that is there already moves to the next free place."""
    col = np.sort(row * cols + col) - row * cols
    nth = np.arange(len(row)) - start[row]
    # Less its rank in the row a column may not fall, nor exceed what leaves room for those after it.
    rank_free = np.maximum.accumulate(row * (2 * cols) + col - nth) - row * (2 * cols)
    return np.minimum(rank_free, cols - lengths[row]) + nth
