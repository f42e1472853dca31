"""cuSPARSE's SDDMM, called as cusparse.py calls its SpMM. There is one algorithm."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.cusparse import Product

_ALG_DEFAULT = 0  # cusparseSDDMMAlg_t


class CusparseSddmm(Product):
    """`out[e] = <q[row], key[col]>` for every entry of a CSR matrix, in the matrix's order; prepared once.

    Args:
        rowptr, col: int32 CSR structure, rows sorted.
        q, key: contiguous row-major matrices of one dtype; the second factor is key's transpose. Halves are
            accumulated in fp32.
        out: one value an entry, of q's dtype, and finite: that beta = 0 leaves it unread is not documented.
    """

    def __init__(self, rowptr: Tensor, col: Tensor, q: Tensor, key: Tensor, out: Tensor) -> None:
        if rowptr.dtype != torch.int32 or col.dtype != torch.int32:
            raise ValueError("rowptr and col must be int32")
        if not q.dtype == key.dtype == out.dtype:
            raise ValueError(f"one dtype expected, got {q.dtype}, {key.dtype} and {out.dtype}")
        if q.size(0) != rowptr.numel() - 1 or q.size(1) != key.size(1) or out.shape != col.shape:
            raise ValueError(f"shapes do not fit: q {tuple(q.shape)}, key {tuple(key.shape)}, out {tuple(out.shape)}")
        if not all(t.is_cuda and t.is_contiguous() for t in (rowptr, col, q, key, out)):
            raise ValueError("contiguous CUDA tensors expected")

        super().__init__("cusparseSDDMM", q.device)
        self.out = out
        self._tensors = (rowptr, col, q, key)
        try:
            factors = self._dense(q), self._dense(key, transposed=True)
            self._prepare(*factors, self._csr(rowptr, col, out, key.size(0)), q.dtype, _ALG_DEFAULT)
        except BaseException:
            self.close()
            raise

    @property
    def nbytes(self) -> int:
        """Bytes of the matrix, whose values are the output, and of the workspace."""
        return sum(t.nbytes for t in (*self._tensors[:2], self._buffer, self.out))

    def __call__(self) -> Tensor:
        self._run()
        return self.out
