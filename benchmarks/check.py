"""Check a result against fp64 before it is timed."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.contenders import Problem
from benchmarks.sddmm_contenders import SddmmProblem

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}
"""Relative Frobenius error: room for the output's rounding, none for an accumulator in halves."""

# At a time, so that fp64 copies stay small:
_COLUMNS = 32  # of x
_PRODUCTS = 1 << 25  # of gathered rows
_ROWS = 1 << 18  # of a result


def reference(problem: Problem) -> Tensor:
    """The product in fp64 of the values and features as they are, by `torch.sparse.mm` on the same device."""
    matrix = problem.matrix
    values, size = problem.values().double(), (matrix.num_rows, matrix.num_cols)
    adjacency = torch.sparse_csr_tensor(matrix.rowptr, matrix.col, values, size, check_invariants=False)
    chunks = [torch.sparse.mm(adjacency, part.double()) for part in problem.x.split(_COLUMNS, dim=1)]
    return torch.cat(chunks, dim=1)


def sddmm_reference(problem: SddmmProblem) -> Tensor:
    """The dot products in fp64, gathered along the edges, in the order of the matrix."""
    src, dst = problem.graph.edge_index
    edges = problem.matrix.order.split(max(1, _PRODUCTS // max(1, problem.q.size(1))))
    return torch.cat([(problem.q[dst[e]].double() * problem.key[src[e]].double()).sum(1) for e in edges])


def relative_error(out: Tensor, expected: Tensor) -> float:
    """Relative Frobenius norm of the difference; raises when something was not written or overflowed."""
    if out.shape != expected.shape:
        raise ValueError(f"wrong shape {tuple(out.shape)}, expected {tuple(expected.shape)}")
    if not out.isfinite().all():
        raise ValueError("the output has values that are not finite")
    parts = zip(out.split(_ROWS), expected.split(_ROWS), strict=True)
    difference = sum(float((part.double() - right).square().sum()) for part, right in parts)
    norm = float(torch.linalg.vector_norm(expected))
    return difference**0.5 / (norm or 1.0)
