"""torch.sparse.mm over the same adjacency, as torch's users have it."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from pyg_sparse.formats import Rows


def rival_name(device: torch.device) -> str:
    """What does the work behind torch.sparse.mm: on CUDA cuSPARSE's default algorithm."""
    if device.type == "cuda":
        return "torch.sparse.mm (cuSPARSE)"
    return "torch.sparse.mm (MKL)" if torch.backends.mkl.is_available() else "torch.sparse.mm"


def sparse_csr(rows: Rows, dtype: torch.dtype) -> Tensor:
    """The matrix of ones in torch's CSR, with ascending columns in each row."""
    row = rows.row.long()[rows.stored_row_of_entries()]
    order = torch.sort(row * rows.num_cols + rows.col).indices
    crow = torch.nn.functional.pad(torch.bincount(row, minlength=rows.num_rows).cumsum(0), (1, 0))
    value = torch.ones(rows.nnz, dtype=dtype, device=row.device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch says that CSR is in beta
        return torch.sparse_csr_tensor(crow, rows.col.long()[order], value, (rows.num_rows, rows.num_cols))
