"""Sparse formats. ``FORMATS`` maps a name to its matrix class, ``SPECS`` to the spec that builds it."""

from pyg_sparse.formats.base import FormatSpec, SparseMatrix
from pyg_sparse.formats.coo import Coo, CooMatrix
from pyg_sparse.formats.csr import Csr, CsrMatrix
from pyg_sparse.formats.hyb import Hyb, HybMatrix
from pyg_sparse.formats.rows import Rows, rows_from_edges

FORMATS: dict[str, type[SparseMatrix]] = {cls.name: cls for cls in (CsrMatrix, CooMatrix, HybMatrix)}
SPECS: dict[str, type[FormatSpec]] = {cls.name: cls for cls in (Csr, Coo, Hyb)}

__all__ = [
    "FORMATS", "SPECS", "Coo", "CooMatrix", "Csr", "CsrMatrix", "FormatSpec", "Hyb", "HybMatrix", "Rows",
    "SparseMatrix", "rows_from_edges",
]  # fmt: skip
