"""The CPU's kernels against SciPy and NumPy in fp64, over generated graphs, widths, dtypes and formats."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import pyg_sparse
from pyg_sparse.formats import FormatSpec
from tests.conftest import variants

sparse = pytest.importorskip("scipy.sparse")

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


@dataclass(frozen=True)
class Case:
    edge_index: torch.Tensor
    num_src: int
    num_dst: int
    width: int
    dtype: torch.dtype
    format: FormatSpec
    seed: int

    def plan(self) -> pyg_sparse.Plan:
        return pyg_sparse.plan(self.edge_index, (self.num_src, self.num_dst), format=self.format)

    def random(self, which: int, *shape: int) -> torch.Tensor:
        """Eighths, different ones for each `which`: all dtypes hold them, and fp32 all sums of their products."""
        generator = torch.Generator().manual_seed(3 * self.seed + which)
        return torch.randint(-16, 17, shape, generator=generator).div(8).to(self.dtype)

    def matrix(self, value: torch.Tensor) -> sparse.csr_matrix:
        src, dst = self.edge_index.numpy()
        return sparse.csr_matrix((value.double().numpy(), (dst, src)), (self.num_dst, self.num_src))

    def check(self, result: torch.Tensor, expected: np.ndarray) -> None:
        """Sums are exact, and rounded once."""
        assert result.dtype == self.dtype
        allowed = torch.finfo(self.dtype).eps * np.abs(expected)
        assert (np.abs(result.detach().double().numpy() - expected) <= allowed).all()


@st.composite
def cases(draw: st.DrawFn) -> Case:
    num_src, num_dst = draw(st.integers(1, 60)), draw(st.integers(1, 60))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    edges = draw(st.sampled_from([0, 1, 7, 200, 3000]))
    src = torch.randint(num_src, (edges,), generator=generator)
    # From even rows to a few that have nearly all entries.
    skew = draw(st.sampled_from([1, 3, 12]))
    dst = (torch.rand(edges, generator=generator).pow(skew) * num_dst).long()
    width = draw(st.one_of(st.integers(1, 20), st.sampled_from([31, 32, 33, 41, 64, 100, 128, 200])))
    format = draw(st.sampled_from(variants()))
    dtype = draw(st.sampled_from(DTYPES))
    return Case(torch.stack([src, dst]), num_src, num_dst, width, dtype, format, draw(st.integers(0, 1000)))


@given(cases(), st.booleans())
@settings(max_examples=300, deadline=None)
def test_products_and_their_gradients(case: Case, weighted: bool) -> None:
    plan = case.plan()
    x = case.random(0, case.num_src, case.width).requires_grad_()
    weight = case.random(1, plan.num_edges).requires_grad_() if weighted else None
    value = torch.ones(plan.num_edges) if weight is None else weight.detach()
    matrix, wide = case.matrix(value), x.detach().double().numpy()
    result = pyg_sparse.spmm(plan, x, weight)
    case.check(result, matrix @ wide)
    gradient = case.random(2, case.num_dst, case.width)
    result.backward(gradient)
    wide_gradient = gradient.double().numpy()
    case.check(x.grad, matrix.T @ wide_gradient)
    if weight is not None:
        src, dst = case.edge_index.numpy()
        case.check(weight.grad, (wide[src] * wide_gradient[dst]).sum(1))


@given(cases())
@settings(max_examples=200, deadline=None)
def test_dot_products(case: Case) -> None:
    q, key = case.random(0, case.num_dst, case.width), case.random(1, case.num_src, case.width)
    src, dst = case.edge_index.numpy()
    expected = (q.double().numpy()[dst] * key.double().numpy()[src]).sum(1)
    case.check(pyg_sparse.sddmm(case.plan(), q, key), expected)


@given(cases())
@settings(max_examples=200, deadline=None)
def test_largest(case: Case) -> None:
    x = case.random(0, case.num_src, case.width)
    expected = np.full((case.num_dst, case.width), -np.inf)
    src, dst = case.edge_index.numpy()
    np.maximum.at(expected, dst, x.double().numpy()[src])
    expected[np.isinf(expected)] = 0  # rows without entries
    result = pyg_sparse.spmm(case.plan(), x, reduce="max")
    assert np.array_equal(result.double().numpy(), expected)
