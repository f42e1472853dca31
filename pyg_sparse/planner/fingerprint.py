"""What identifies a graph on disk: a hash of its edges, computed where they are."""

from __future__ import annotations

from hashlib import blake2b

import torch
from torch import Tensor

from pyg_sparse.validate import check_device, check_edge_index


def fingerprint(edge_index: Tensor, num_src: int, num_dst: int) -> str:
    """128 bits that differ between graphs, as 32 hexadecimal digits.

    Edges count in the caller's order, since plans refer to them by position. The index type, strides and device do
    not matter. Two different graphs agree by chance only, once in about 2^128; the hash is not a cryptographic one, so
    whoever wants two graphs to agree may find some that do. Waits for the device.

    Args:
        edge_index: ``[2, E]``, int64 or int32, on the CPU or on CUDA. Its values are not checked.
        num_src, num_dst: the number of sources and targets.

    Raises:
        TypeError, ValueError: if edge_index is no such tensor.
    """
    check_edge_index(edge_index)
    check_device(edge_index.device)
    low, high = torch.ops.pyg_sparse.fingerprint(edge_index).tolist()
    shape_and_edges = f"{num_src} {num_dst} {edge_index.size(1)} {low} {high}"
    return blake2b(shape_and_edges.encode(), digest_size=16).hexdigest()
