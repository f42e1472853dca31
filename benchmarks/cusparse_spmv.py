"""cuSPARSE's SpMV with a chosen algorithm: the rival where x has one column."""

from __future__ import annotations

from ctypes import c_void_p

from torch import Tensor

from benchmarks.cusparse import CusparseSpmm

ALGORITHMS = {"default": 0, "csr_alg1": 2, "csr_alg2": 3, "coo_alg1": 1, "coo_alg2": 4}
"""cusparseSpMVAlg_t. `default` is run on CSR."""


class CusparseSpmv(CusparseSpmm):
    """`out = A @ x`, prepared as SpMM is; x and out are matrices of one column, which in memory are vectors."""

    function = "cusparseSpMV"
    operations = 1
    algorithms = ALGORITHMS

    def _dense(self, matrix: Tensor, *, transposed: bool = False) -> c_void_p:
        if matrix.size(1) != 1:
            raise ValueError(f"one column expected, got {matrix.size(1)}")
        return self._vector(matrix)
