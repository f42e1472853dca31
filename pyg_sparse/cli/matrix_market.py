"""Sparse matrices in Matrix Market files (Boisvert, Pozo, Remington 1996), without their values.

Readers raise ValueError, with a message that continues the file's name.
"""

from __future__ import annotations

import gzip
import warnings
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from torch import Tensor

_NUMBERS = {"pattern": 2, "real": 3, "integer": 3, "complex": 4}  # in the line of an entry
_SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")


def read(path: Path) -> tuple[Tensor, tuple[int, int]]:
    """int64 ``[2, E]`` and (columns, rows): a row sums what its columns send. Stored zeros are entries."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return _read(file)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise ValueError("is not a whole gzip file") from None


def _read(file: BinaryIO | gzip.GzipFile) -> tuple[Tensor, tuple[int, int]]:
    header = file.readline(1024).decode("latin-1").lower().split()
    if len(header) != 5 or header[:2] != ["%%matrixmarket", "matrix"]:
        raise ValueError("is no Matrix Market file: it does not begin with %%MatrixMarket matrix")
    layout, field, symmetry = header[2:]
    for value, allowed in ((layout, ("coordinate",)), (field, _NUMBERS), (symmetry, _SYMMETRIES)):
        if value not in allowed:
            raise ValueError(f"is a Matrix Market file of kind {value!r}; allowed: {', '.join(allowed)}")
    line = b"%"
    while line.startswith(b"%") or line.isspace():
        line = file.readline()
    sizes = line.split()
    if len(sizes) != 3 or not all(size.isdigit() for size in sizes):
        raise ValueError(f"has no line of rows, columns and entries, but {line[:80].decode('latin-1').strip()!r}")
    num_rows, num_cols, entries = map(int, sizes)
    place = _numbers(file.read(), _NUMBERS[field], entries)[:, :2]
    if not np.array_equal(place, np.floor(place)):  # nan is not equal either
        raise ValueError("has an entry whose row or column is no whole number")
    index = place.astype(np.int64) - 1
    row, col = index.T
    if entries and (index.min() < 0 or row.max() >= num_rows or col.max() >= num_cols):
        raise ValueError(f"has an entry outside of its {num_rows} rows and {num_cols} columns")
    if symmetry != "general":  # one triangle is stored
        beside = row != col
        row, col = np.concatenate([row, col[beside]]), np.concatenate([col, row[beside]])
    return torch.from_numpy(np.stack([col, row])), (num_cols, num_rows)


def _numbers(text: bytes, per_line: int, lines: int) -> np.ndarray:
    """float64 ``[lines, per_line]``: indices are exact in it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)  # how older NumPys tell of text that is no number
            found = np.fromstring(text, sep=" ") if text.strip() else np.empty(0)
    except (ValueError, DeprecationWarning):
        raise ValueError("has entries that are not numbers") from None
    if found.size != lines * per_line:
        raise ValueError(f"has {found.size} numbers in place of {lines} entries of {per_line}")
    return found.reshape(lines, per_line)
