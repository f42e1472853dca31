"""Kernels published by others, called through ctypes from shared libraries that are built elsewhere.

A rival is one `.so` file in a folder. It needs no torch, only a CUDA driver, and exports this C interface:

    const char *rival_name(void);
    const char *rival_variants(void);

The name in result tables, and a comma-separated list of what it can do: `spmm` or `sddmm`, alone or followed by a colon
and the variant's own name (`spmm:one stream`).

    void *rival_create(const char *variant, int64_t rows, int64_t cols, int64_t nnz, const int32_t *rowptr,
                       const int32_t *col, const void *value, int dtype, int64_t k, char *error, int error_size);
    void rival_destroy(void *);

Prepares one variant (as in the list) for a matrix and a width k. All preprocessing happens here and may wait for the
device. `rowptr` (rows + 1), `col` (nnz) and `value` (nnz) are device pointers to CSR with ascending columns in each
row; they stay valid and unchanged until `rival_destroy`, so they may be used as they are. `sddmm` gets no values:
`value` is NULL. `dtype` is that of all dense matrices and values: 0 float32, 1 float16, 2 bfloat16, 3 float64. When
the rival cannot do this dtype, width or shape, or when CUDA fails, it returns NULL and writes the reason into `error`.

    int rival_spmm(void *, const void *x, void *out, void *stream);
    int rival_sddmm(void *, const void *q, const void *key, void *out, void *stream);

Return 0 or a CUDA error code. All dense matrices are contiguous and row-major: x and key are [cols, k], q is [rows, k].
SpMM writes `out` [rows, k] in full, whatever was in it: a rival that accumulates clears it first, in this call. SDDMM
writes one dot product an entry to `out` [nnz], in CSR order. All work is queued on `stream` (a cudaStream_t) or ordered
with it, nothing waits for the device, and a call can be captured in a CUDA graph.

    int64_t rival_bytes(void *);

Device bytes of all that the calls read besides the dense matrices: the CSR arrays where they are used, and its own.

Where a library's kernels run on the host, host pointers and a NULL stream do as well: that is how this file is tested.
"""

from __future__ import annotations

import ctypes
from contextlib import nullcontext
from ctypes import c_char_p, c_int, c_int64, c_void_p
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch import Tensor

_DTYPE = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2, torch.float64: 3}
_ERROR_SIZE = 512

_CREATE = [c_char_p, c_int64, c_int64, c_int64, c_void_p, c_void_p, c_void_p, c_int, c_int64, c_char_p, c_int]
_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "rival_name": (c_char_p, []),
    "rival_variants": (c_char_p, []),
    "rival_create": (c_void_p, _CREATE),
    "rival_spmm": (c_int, [c_void_p] * 4),
    "rival_sddmm": (c_int, [c_void_p] * 5),
    "rival_bytes": (c_int64, [c_void_p]),
    "rival_destroy": (None, [c_void_p]),
}


def load(folder: Path) -> list[Library]:
    """Every rival in a folder, by file name."""
    paths = sorted(folder.glob("*.so"))
    if not paths:
        raise FileNotFoundError(f"no shared libraries in {folder}")
    return [Library(path) for path in paths]


class Library:
    """One rival's shared library; raises ImportError when it is not one."""

    def __init__(self, path: Path) -> None:
        try:
            self._functions = ctypes.CDLL(str(path.resolve()))
        except OSError as error:
            raise ImportError(f"{path.name} cannot be loaded: {error}") from error
        for name, (result, arguments) in _SIGNATURES.items():
            try:
                function = getattr(self._functions, name)
            except AttributeError:
                raise ImportError(f"{path.name} does not export {name}") from None
            function.restype, function.argtypes = result, arguments
        self.name: str = self._functions.rival_name().decode()
        self.variants: list[str] = self._functions.rival_variants().decode().split(",")

    def variants_of(self, op: str) -> dict[str, str]:
        """The variants of `spmm` or `sddmm`, by the name that tells them apart."""
        split = {variant: variant.partition(":") for variant in self.variants}
        return {own or "default": variant for variant, (of, _, own) in split.items() if of == op}

    def call(self, name: str, *arguments: object) -> Any:
        return getattr(self._functions, name)(*arguments)


class Rival:
    """One variant prepared for one matrix and one width; raises RuntimeError when the library refuses.

    Args:
        rowptr, col: int32 CSR structure, columns ascending in each row.
        value: one value an entry for SpMM, None for SDDMM.
        num_cols, k: columns of the matrix, width of the dense matrices.
        dtype: of the dense matrices, and of `value`.
    """

    def __init__(
        self,
        library: Library,
        variant: str,
        rowptr: Tensor,
        col: Tensor,
        value: Tensor | None,
        num_cols: int,
        k: int,
        dtype: torch.dtype,
    ) -> None:
        if rowptr.dtype != torch.int32 or col.dtype != torch.int32:
            raise ValueError("rowptr and col must be int32")
        if value is not None and (value.dtype != dtype or value.shape != col.shape):
            raise ValueError(f"value must have the shape of col and be {dtype}")
        self._library, self._label = library, f"{library.name} {variant}"
        self._handle: int | None = None
        self._device, self._dtype = rowptr.device, dtype
        self._shape = (rowptr.numel() - 1, num_cols, col.numel(), k)
        self._tensors = (rowptr, col, value)  # the library keeps bare pointers
        structure = [None if t is None else self._address(t) for t in self._tensors]
        error = ctypes.create_string_buffer(_ERROR_SIZE)
        with self._on_device():
            self._handle = self._library.call(
                "rival_create", variant.encode(), *self._shape[:3], *structure, _DTYPE[dtype], k, error, _ERROR_SIZE
            )
        if not self._handle:
            raise RuntimeError(f"{self._label}: {error.value.decode(errors='replace') or 'refused without a reason'}")

    def spmm(self, x: Tensor, out: Tensor) -> Tensor:
        """`out = A @ x`."""
        rows, cols, _, k = self._shape
        self._run("rival_spmm", self._pointer(x, cols, k), self._pointer(out, rows, k))
        return out

    def sddmm(self, q: Tensor, key: Tensor, out: Tensor) -> Tensor:
        """`out[e] = q[row of e] @ key[column of e]`."""
        rows, cols, nnz, k = self._shape
        self._run("rival_sddmm", self._pointer(q, rows, k), self._pointer(key, cols, k), self._pointer(out, nnz))
        return out

    @property
    def nbytes(self) -> int:
        """Bytes of the matrix in the rival's format, without any output."""
        return self._library.call("rival_bytes", self._open_handle())

    def close(self) -> None:
        """Destroy what the library made."""
        if self._handle:
            with self._on_device():
                self._library.call("rival_destroy", self._handle)
            self._handle = None

    def __enter__(self) -> Rival:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, name: str, *pointers: int) -> None:
        on_cuda = self._device.type == "cuda"
        with self._on_device():
            stream = torch.cuda.current_stream().cuda_stream if on_cuda else None
            status = self._library.call(name, self._open_handle(), *pointers, stream)
        if status != 0:
            raise RuntimeError(f"{self._label}: {name} returned CUDA error {status}")

    def _pointer(self, tensor: Tensor, *shape: int) -> int:
        if tensor.shape != shape or tensor.dtype != self._dtype:
            raise ValueError(f"{self._dtype} of shape {shape} expected, got {tensor.dtype} of {tuple(tensor.shape)}")
        return self._address(tensor)

    def _address(self, tensor: Tensor) -> int:
        if tensor.device != self._device or not tensor.is_contiguous():
            raise ValueError(f"contiguous tensors on {self._device} expected")
        return tensor.data_ptr()

    def _open_handle(self) -> int:
        if not self._handle:
            raise ValueError(f"{self._label} is closed")
        return self._handle

    def _on_device(self) -> torch.cuda.device | nullcontext[None]:
        return torch.cuda.device(self._device) if self._device.type == "cuda" else nullcontext()
