"""Sparse aggregation for graph neural networks: a graph is converted once into a plan, and its kernels do the rest."""

from pyg_sparse import _extension

_extension.load()

from pyg_sparse import autograd  # noqa: E402, F401
from pyg_sparse.formats import Coo, Csr, Hyb  # noqa: E402
from pyg_sparse.ops import sddmm, spmm  # noqa: E402
from pyg_sparse.plan import Plan, plan  # noqa: E402
from pyg_sparse.weights import StoredWeight  # noqa: E402

__version__ = "0.1.0"
__all__ = ["Coo", "Csr", "Hyb", "Plan", "StoredWeight", "plan", "sddmm", "spmm"]
