"""Drop-in layers: PyTorch Geometric's constructors, ``state_dict`` and numbers, on this library's kernels."""

from pyg_sparse.nn.gcn_conv import GCNConv

__all__ = ["GCNConv"]
