"""cuSPARSE's SpMM with a chosen algorithm, called through ctypes on the library that torch itself loaded.

torch offers no choice of algorithm and no preprocessing, so `torch.sparse.mm` alone is too weak a rival.
Enum values and signatures are those of CUDA 13's `cusparse.h` and `library_types.h`.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_double, c_float, c_int, c_int64, c_size_t, c_void_p
from functools import cache, partial
from pathlib import Path

import torch
from torch import Tensor

ALGORITHMS = {
    "default": 0,
    "csr_alg1": 4,
    "csr_alg2": 6,
    "csr_alg3": 12,
    "coo_alg1": 1,
    "coo_alg2": 2,
    "coo_alg3": 3,
    "coo_alg4": 5,
}
"""cusparseSpMMAlg_t. `default` is run on CSR."""

_NON_TRANSPOSE = 0  # cusparseOperation_t
_ORDER_COL, _ORDER_ROW = 1, 2  # cusparseOrder_t
_INDEX_32I = 2  # cusparseIndexType_t
_INDEX_BASE_ZERO = 0  # cusparseIndexBase_t
_DATA_TYPE = {torch.float32: 0, torch.float64: 1, torch.float16: 2, torch.bfloat16: 14}  # cudaDataType

_PRODUCT = [c_void_p, c_int, c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_int, c_int]
_SPMV = [_PRODUCT[0], *_PRODUCT[2:]]  # of one operation, since a vector is not transposed
_SIGNATURES: dict[str, list[type]] = {
    "cusparseCreate": [POINTER(c_void_p)],
    "cusparseGetVersion": [c_void_p, POINTER(c_int)],
    "cusparseSetStream": [c_void_p, c_void_p],
    "cusparseCreateCsr": [POINTER(c_void_p), *[c_int64] * 3, *[c_void_p] * 3, *[c_int] * 4],
    "cusparseCreateCoo": [POINTER(c_void_p), *[c_int64] * 3, *[c_void_p] * 3, *[c_int] * 3],
    "cusparseCreateDnMat": [POINTER(c_void_p), *[c_int64] * 3, c_void_p, c_int, c_int],
    "cusparseCreateDnVec": [POINTER(c_void_p), c_int64, c_void_p, c_int],
    "cusparseDestroySpMat": [c_void_p],
    "cusparseDestroyDnMat": [c_void_p],
    "cusparseDestroyDnVec": [c_void_p],
    "cusparseSpMM_bufferSize": [*_PRODUCT, POINTER(c_size_t)],
    "cusparseSpMM_preprocess": [*_PRODUCT, c_void_p],
    "cusparseSpMM": [*_PRODUCT, c_void_p],
    "cusparseSpMV_bufferSize": [*_SPMV, POINTER(c_size_t)],
    "cusparseSpMV_preprocess": [*_SPMV, c_void_p],
    "cusparseSpMV": [*_SPMV, c_void_p],
    "cusparseSDDMM_bufferSize": [*_PRODUCT, POINTER(c_size_t)],
    "cusparseSDDMM_preprocess": [*_PRODUCT, c_void_p],
    "cusparseSDDMM": [*_PRODUCT, c_void_p],
}


def library_path() -> str:
    """Path of the cuSPARSE in this process, else of the one installed beside torch."""
    loaded = {line.split(maxsplit=5)[-1] for line in Path("/proc/self/maps").read_text().splitlines()}
    beside_torch = Path(torch.__file__).parents[1].glob("nvidia/*/lib/libcusparse.so.*")
    for path in (*sorted(loaded), *sorted(map(str, beside_torch))):
        if Path(path).name.startswith("libcusparse.so"):
            return path
    raise RuntimeError("no libcusparse: torch loaded none, and no nvidia-cusparse package is installed")


@cache
def library(path: str | None = None) -> ctypes.CDLL:
    """The library, with the argument types of every function used here declared."""
    loaded = ctypes.CDLL(path or library_path())
    for name, arguments in _SIGNATURES.items():
        function = getattr(loaded, name)
        function.argtypes = arguments
        function.restype = c_int
    loaded.cusparseGetErrorString.argtypes = [c_int]
    loaded.cusparseGetErrorString.restype = c_char_p
    return loaded


def call(name: str, *arguments: object) -> None:
    """Call a cuSPARSE function; raise with the library's own message when it fails."""
    status = getattr(library(), name)(*arguments)
    if status != 0:
        message = library().cusparseGetErrorString(status).decode()
        raise RuntimeError(f"{name} returned {status}: {message}")


@cache
def _handle(device: torch.device) -> c_void_p:
    # Kept for the life of the process, as torch keeps its own.
    handle = c_void_p()
    with torch.cuda.device(device):
        call("cusparseCreate", byref(handle))
    return handle


def version(device: torch.device) -> int:
    number = c_int()
    call("cusparseGetVersion", _handle(device), byref(number))
    return number.value


class Product:
    """One of cuSPARSE's products: its descriptors, its workspace, and its calls, which go to the current stream.

    A subclass creates the descriptors, then calls `_prepare` once and `_run` many times. cuSPARSE keeps bare
    pointers, so it keeps the tensors.
    """

    operations = 2  # that a function takes one of for each of its factors

    def __init__(self, function: str, device: torch.device) -> None:
        self._function = function
        self._device = device
        self._descriptors: list[tuple[str, c_void_p]] = []

    def close(self) -> None:
        """Destroy the descriptors."""
        while self._descriptors:
            call(*self._descriptors.pop())

    def _csr(self, rowptr: Tensor, col: Tensor, value: Tensor, num_cols: int) -> c_void_p:
        shape = (rowptr.numel() - 1, num_cols, col.numel(), rowptr.data_ptr(), col.data_ptr(), value.data_ptr())
        return self._create("Csr", "SpMat", *shape, _INDEX_32I, _INDEX_32I, _INDEX_BASE_ZERO, _DATA_TYPE[value.dtype])

    def _coo(self, row: Tensor, col: Tensor, value: Tensor, num_rows: int, num_cols: int) -> c_void_p:
        shape = (num_rows, num_cols, col.numel(), row.data_ptr(), col.data_ptr(), value.data_ptr())
        return self._create("Coo", "SpMat", *shape, _INDEX_32I, _INDEX_BASE_ZERO, _DATA_TYPE[value.dtype])

    def _dense(self, matrix: Tensor, *, transposed: bool = False) -> c_void_p:
        """Of a contiguous matrix, or of its transpose, which is the same memory read as column-major."""
        num_rows, width = matrix.shape
        shape = (width, num_rows) if transposed else (num_rows, width)
        order = _ORDER_COL if transposed else _ORDER_ROW
        return self._create("DnMat", "DnMat", *shape, width, matrix.data_ptr(), _DATA_TYPE[matrix.dtype], order)

    def _vector(self, vector: Tensor) -> c_void_p:
        return self._create("DnVec", "DnVec", vector.numel(), vector.data_ptr(), _DATA_TYPE[vector.dtype])

    def _prepare(
        self,
        left: c_void_p,
        right: c_void_p,
        out: c_void_p,
        dtype: torch.dtype,
        algorithm: int,
        *,
        preprocess: bool = True,
    ) -> None:
        is_double = dtype == torch.float64
        scalar = c_double if is_double else c_float
        self._alpha, self._beta = scalar(1), scalar(0)
        # fmt: off
        self._arguments = (
            _handle(self._device), *[_NON_TRANSPOSE] * self.operations, byref(self._alpha), left, right,
            byref(self._beta), out, _DATA_TYPE[torch.float64 if is_double else torch.float32], algorithm,
        )
        # fmt: on
        size = c_size_t()
        self._call(f"{self._function}_bufferSize", byref(size))
        self._buffer = torch.empty(max(size.value, 1), dtype=torch.uint8, device=self._device)
        if preprocess:
            self._call(f"{self._function}_preprocess", self._buffer.data_ptr())

    def _run(self) -> None:
        self._call(self._function, self._buffer.data_ptr())

    def _create(self, make: str, kind: str, *arguments: object) -> c_void_p:
        descriptor = c_void_p()
        call(f"cusparseCreate{make}", byref(descriptor), *arguments)
        self._descriptors.append((f"cusparseDestroy{kind}", descriptor))
        return descriptor

    def _call(self, name: str, last: object) -> None:
        with torch.cuda.device(self._device):
            call("cusparseSetStream", self._arguments[0], torch.cuda.current_stream().cuda_stream)
            call(name, *self._arguments, last)


class CusparseSpmm(Product):
    """`out = A @ x` by one algorithm; descriptors, workspace and preprocessing are made once.

    Args:
        rowptr, col: int32 CSR structure of A, rows sorted.
        value: one value an entry, of x's dtype.
        x, out: contiguous row-major matrices of one dtype; halves are accumulated in fp32.
        algorithm: a key of `algorithms`; the COO ones get the row of each entry as an int32 array.
    """

    function = "cusparseSpMM"
    algorithms = ALGORITHMS

    def __init__(self, rowptr: Tensor, col: Tensor, value: Tensor, x: Tensor, out: Tensor, algorithm: str) -> None:
        num_rows, num_cols, width = rowptr.numel() - 1, x.size(0), x.size(1)
        if rowptr.dtype != torch.int32 or col.dtype != torch.int32:
            raise ValueError("rowptr and col must be int32")
        if not value.dtype == x.dtype == out.dtype:
            raise ValueError(f"one dtype expected, got {value.dtype}, {x.dtype} and {out.dtype}")
        if out.shape != (num_rows, width) or value.shape != col.shape:
            raise ValueError(f"shapes do not fit: out {tuple(out.shape)}, value {tuple(value.shape)}")
        if not all(t.is_cuda and t.is_contiguous() for t in (rowptr, col, value, x, out)):
            raise ValueError("contiguous CUDA tensors expected")

        super().__init__(self.function, x.device)
        self.out = out
        is_coo = algorithm.startswith("coo")
        row = _row_of_entry(rowptr, col.numel()) if is_coo else rowptr
        self._tensors = (row, col, value, x)
        try:
            create = partial(self._coo, num_rows=num_rows) if is_coo else self._csr
            matrix = create(row, col, value, num_cols=num_cols)
            dense = self._dense(x), self._dense(out)
            # preprocessing is documented to have no effect on COO
            self._prepare(matrix, *dense, x.dtype, self.algorithms[algorithm], preprocess=not is_coo)
        except BaseException:
            self.close()
            raise

    @property
    def nbytes(self) -> int:
        """Bytes of the matrix, the workspace and the output."""
        return sum(t.nbytes for t in (*self._tensors[:3], self._buffer, self.out))

    def __call__(self) -> Tensor:
        self._run()
        return self.out


def _row_of_entry(rowptr: Tensor, nnz: int) -> Tensor:
    rows = torch.arange(rowptr.numel() - 1, dtype=torch.int32, device=rowptr.device)
    return rows.repeat_interleave(rowptr.diff(), output_size=nnz)
