"""Measures all candidates, and torch.sparse.mm, on the same features, and compares their results."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from pyg_sparse.cli import text
from pyg_sparse.cli.progress import Progress
from pyg_sparse.cli.rival import rival_name, sparse_csr
from pyg_sparse.cli.survey import Product, Survey
from pyg_sparse.planner.candidates import Candidate
from pyg_sparse.planner.device import product as product_of
from pyg_sparse.planner.timing import time_product

# How far results may be from each other, relative to the largest element: sums in another order, rounded.
_TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-4, torch.bfloat16: 2e-2, torch.float16: 4e-3}


@dataclass
class Measured:
    """
    Attributes:
        ms, error: of every candidate and product; the error is relative to the largest element.
        rival_ms: of torch.sparse.mm, or None where it does not run.
        rival_problem: what it says then.
    """

    ms: dict[tuple[Candidate, Product], float] = field(default_factory=dict)
    error: dict[tuple[Candidate, Product], float] = field(default_factory=dict)
    rival_ms: dict[Product, float | None] = field(default_factory=dict)
    rival_problem: dict[Product, str] = field(default_factory=dict)

    def wrong(self) -> str:
        """Which candidates' results differ from the others'; empty if none."""
        far = [f"{c} at {p}: {e:.1e}" for (c, p), e in self.error.items() if not e <= _TOLERANCE[p.dtype]]
        return f"results differ from the first ones: {'; '.join(far)}" if far else ""


def measure(found: Survey, budget_ms: float) -> Measured:
    device = found.rows.col.device
    measured = Measured()
    generator = torch.Generator(device).manual_seed(0)
    features: dict[Product, Tensor] = {}
    first: dict[Product, Tensor] = {}
    total = len(found.products) + len(found.scored)
    with Progress() as progress:
        for i, p in enumerate(found.products, 1):
            x = torch.randn(found.rows.num_cols, p.k, device=device, generator=generator).to(p.dtype)
            features[p] = x
            try:
                adjacency = sparse_csr(found.rows, p.dtype)
                first[p] = torch.sparse.mm(adjacency, x)
                rival_ms = time_product(lambda: torch.sparse.mm(adjacency, x), device, budget_ms)  # noqa: B023
                measured.rival_ms[p] = rival_ms
                took = f"{text.ms(rival_ms)} ms"
            except RuntimeError as problem:
                measured.rival_ms[p] = None
                measured.rival_problem[p] = took = str(problem).partition("\n")[0]
            progress.step(i, total, f"{rival_name(device)}: {p}: {took}")
        for i, entry in enumerate(found.scored, len(found.products) + 1):
            matrix = found.build(entry.candidate)
            for p, x in features.items():
                y = product_of(matrix, x)
                at = entry.candidate, p
                measured.error[at] = _difference(y, first.setdefault(p, y))
                measured.ms[at] = time_product(lambda: product_of(matrix, x), device, budget_ms)  # noqa: B023
            times = ", ".join(f"{p}: {text.ms(measured.ms[entry.candidate, p])} ms" for p in found.products)
            progress.step(i, total, f"{entry.candidate}: {times}")
    return measured


def _difference(y: Tensor, first: Tensor) -> float:
    if not y.numel():
        return 0.0
    largest = float(first.abs().max())
    return float((y.float() - first.float()).abs().max()) / (largest or 1.0)
