"""The product by other libraries for the CPU. Each is optional: nothing of it is imported before it is asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from types import ModuleType

import numpy as np
import torch
from torch import Tensor

from benchmarks.graphs import Matrix

Run = Callable[[], Tensor]


@dataclass(frozen=True)
class Peer:
    """`prepare` takes the matrix, its values or None where all are 1, and x; what it returns is timed."""

    package: str
    module: str
    format: str
    prepare: Callable[[Matrix, Tensor | None, Tensor], Run]

    @property
    def installed(self) -> bool:
        return find_spec(self.module) is not None


def load(name: str) -> Peer:
    """A library by its rival's name; raises ImportError when it is not installed."""
    peer = PEERS[name]
    if not peer.installed:
        raise ImportError(f"rival {name}: the package {peer.package} is not installed")
    return peer


def installed() -> list[str]:
    return [name for name, peer in PEERS.items() if peer.installed]


def _torch_sparse(matrix: Matrix, values: Tensor | None, x: Tensor) -> Run:
    from torch_sparse import SparseTensor, matmul

    adjacency = SparseTensor(
        rowptr=matrix.rowptr.long(),
        col=matrix.col.long(),
        value=values,
        sparse_sizes=(matrix.num_rows, matrix.num_cols),
        is_sorted=True,
        trust_data=True,
    )
    return lambda: matmul(adjacency, x, reduce="sum")


def _dgl(matrix: Matrix, values: Tensor | None, x: Tensor) -> Run:
    # `import dgl` imports GraphBolt, which is built for a few versions of torch and has no part in products.
    sys.modules.setdefault("dgl.graphbolt", ModuleType("dgl.graphbolt"))
    import dgl

    # DGL's columns are targets, as our rows are. Without edge ids, the values are in the order of the entries.
    csc = (matrix.rowptr, matrix.col, [])
    block = dgl.create_block(("csc", csc), num_src_nodes=matrix.num_cols, num_dst_nodes=matrix.num_rows)
    if values is None:
        return lambda: dgl.ops.copy_u_sum(block, x)
    return lambda: dgl.ops.u_mul_e_sum(block, x, values)


def _graphblas(matrix: Matrix, values: Tensor | None, x: Tensor) -> Run:
    import graphblas as gb

    gb.ss.config["nthreads"] = torch.get_num_threads()
    if values is None:
        values = x.new_ones(matrix.col.numel())
    adjacency = gb.Matrix.ss.import_csr(
        indptr=matrix.rowptr.numpy(),
        col_indices=matrix.col.numpy(),
        values=values.numpy(),
        nrows=matrix.num_rows,
        ncols=matrix.num_cols,
        sorted_cols=True,
    )
    features = gb.Matrix.ss.import_fullr(x.numpy())
    shape, dtype = (matrix.num_rows, x.size(1)), x.numpy().dtype

    def run() -> Tensor:
        # Only a product that is added to a dense matrix gets the vectorized kernel, several times as fast.
        out = gb.Matrix.ss.import_fullr(np.zeros(shape, dtype), take_ownership=True)
        out(gb.binary.plus) << gb.semiring.plus_times(adjacency @ features)
        return torch.from_numpy(out.ss.export("fullr", give_ownership=True)["values"])

    return run


PEERS = {
    "torch_sparse": Peer("torch_sparse", "torch_sparse", "csr int64", _torch_sparse),
    "dgl": Peer("dgl", "dgl", "csc int32", _dgl),
    "graphblas": Peer("python-graphblas", "graphblas", "csr int64", _graphblas),
}
