"""cuSPARSE's SpMM with a chosen algorithm, called through ctypes on the library that torch itself loaded.

torch offers no choice of algorithm and no preprocessing, so `torch.sparse.mm` alone is too weak a rival.
Enum values and signatures are those of CUDA 13's `cusparse.h` and `library_types.h`.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_double, c_float, c_int, c_int64, c_size_t, c_void_p
from functools import cache
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
_ORDER_ROW = 2  # cusparseOrder_t
_INDEX_32I = 2  # cusparseIndexType_t
_INDEX_BASE_ZERO = 0  # cusparseIndexBase_t
_DATA_TYPE = {torch.float32: 0, torch.float64: 1, torch.float16: 2, torch.bfloat16: 14}  # cudaDataType

_SPMM = [c_void_p, c_int, c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_int, c_int]
_SIGNATURES: dict[str, list[type]] = {
    "cusparseCreate": [POINTER(c_void_p)],
    "cusparseGetVersion": [c_void_p, POINTER(c_int)],
    "cusparseSetStream": [c_void_p, c_void_p],
    "cusparseCreateCsr": [POINTER(c_void_p), *[c_int64] * 3, *[c_void_p] * 3, *[c_int] * 4],
    "cusparseCreateCoo": [POINTER(c_void_p), *[c_int64] * 3, *[c_void_p] * 3, *[c_int] * 3],
    "cusparseCreateDnMat": [POINTER(c_void_p), *[c_int64] * 3, c_void_p, c_int, c_int],
    "cusparseDestroySpMat": [c_void_p],
    "cusparseDestroyDnMat": [c_void_p],
    "cusparseSpMM_bufferSize": [*_SPMM, POINTER(c_size_t)],
    "cusparseSpMM_preprocess": [*_SPMM, c_void_p],
    "cusparseSpMM": [*_SPMM, c_void_p],
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


class CusparseSpmm:
    """`out = A @ x` by one algorithm; descriptors, workspace and preprocessing are made once.

    Args:
        rowptr, col: int32 CSR structure of A, rows sorted.
        value: one value an entry, of x's dtype.
        x, out: contiguous row-major matrices of one dtype; halves are accumulated in fp32.
        algorithm: a key of `ALGORITHMS`; the COO ones get the row of each entry as an int32 array.
    """

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

        self.out = out
        self._device = x.device
        self._descriptors: list[tuple[str, c_void_p]] = []
        data_type, nnz = _DATA_TYPE[x.dtype], col.numel()
        scalar = c_double if x.dtype == torch.float64 else c_float
        self._alpha, self._beta = scalar(1), scalar(0)
        compute_type = _DATA_TYPE[torch.float64 if x.dtype == torch.float64 else torch.float32]
        is_coo = algorithm.startswith("coo")
        row = _row_of_entry(rowptr, nnz) if is_coo else rowptr
        self._tensors = (row, col, value, x)  # cuSPARSE keeps bare pointers

        shape = (num_rows, num_cols, nnz, row.data_ptr(), col.data_ptr(), value.data_ptr())
        try:
            if is_coo:
                matrix = self._create("Coo", "SpMat", *shape, _INDEX_32I, _INDEX_BASE_ZERO, data_type)
            else:
                matrix = self._create("Csr", "SpMat", *shape, _INDEX_32I, _INDEX_32I, _INDEX_BASE_ZERO, data_type)
            dense = [
                self._create("DnMat", "DnMat", *t.shape, width, t.data_ptr(), data_type, _ORDER_ROW) for t in (x, out)
            ]
            # fmt: off
            self._arguments = (
                _handle(self._device), _NON_TRANSPOSE, _NON_TRANSPOSE, byref(self._alpha), matrix, dense[0],
                byref(self._beta), dense[1], compute_type, ALGORITHMS[algorithm],
            )
            # fmt: on
            size = c_size_t()
            self._call("cusparseSpMM_bufferSize", byref(size))
            self._buffer = torch.empty(max(size.value, 1), dtype=torch.uint8, device=self._device)
            if not is_coo:  # documented to have no effect on COO
                self._call("cusparseSpMM_preprocess", self._buffer.data_ptr())
        except BaseException:
            self.close()
            raise

    @property
    def nbytes(self) -> int:
        """Bytes of the matrix, the workspace and the output."""
        return sum(t.nbytes for t in (*self._tensors[:3], self._buffer, self.out))

    def __call__(self) -> Tensor:
        self._call("cusparseSpMM", self._buffer.data_ptr())
        return self.out

    def close(self) -> None:
        """Destroy the descriptors."""
        while self._descriptors:
            call(*self._descriptors.pop())

    def _create(self, make: str, kind: str, *arguments: object) -> c_void_p:
        descriptor = c_void_p()
        call(f"cusparseCreate{make}", byref(descriptor), *arguments)
        self._descriptors.append((f"cusparseDestroy{kind}", descriptor))
        return descriptor

    def _call(self, name: str, last: object) -> None:
        with torch.cuda.device(self._device):
            call("cusparseSetStream", self._arguments[0], torch.cuda.current_stream().cuda_stream)
            call(name, *self._arguments, last)


def _row_of_entry(rowptr: Tensor, nnz: int) -> Tensor:
    rows = torch.arange(rowptr.numel() - 1, dtype=torch.int32, device=rowptr.device)
    return rows.repeat_interleave(rowptr.diff(), output_size=nnz)
