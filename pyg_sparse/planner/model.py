"""The cost model: a product's time as a sum of terms, each at the speeds of the device, times a fitted coefficient."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from pyg_sparse.planner import cpu_terms, cuda_terms
from pyg_sparse.planner.device import Device
from pyg_sparse.planner.work import Work

MODEL = 1
"""To be raised with every change of terms, coefficients, orders or formats: earlier choices are then forgotten."""

Coefficients = dict[str, dict[str, float]]
"""For each class of kernels, each term's."""


@dataclass(frozen=True)
class Prediction:
    """
    Attributes:
        ms: the time, the sum of ``terms``.
        terms: milliseconds by name, those that are not 0.
        doubt: how much more than another the product must save to be preferred, as a factor.
    """

    ms: float
    terms: dict[str, float]
    doubt: float

    @property
    def rank(self) -> float:
        """What candidates are compared by."""
        return self.ms * self.doubt


def predict(
    work: Work, k: int, itemsize: int, device: Device, coefficients: Coefficients | None = None
) -> Prediction | None:
    """The time of a product with ``k`` features of ``itemsize`` bytes; None for a class that was never measured."""
    model = cuda_terms if device.kind == "cuda" else cpu_terms
    known = fitted(device.kind) if coefficients is None else coefficients
    own = known.get(model.kernel_class(work, k, itemsize, device))
    if own is None:
        return None
    found = {name: own.get(name, 0.0) * ms for name, ms in model.terms(work, k, itemsize, device).items()}
    found = {name: ms for name, ms in found.items() if ms > 0.0}
    return Prediction(sum(found.values()), found, model.doubt(work))


@cache
def fitted(kind: str) -> Coefficients:
    """The coefficients that benchmarks/fit_cost_model.py found for a kind of device."""
    text = files("pyg_sparse.planner").joinpath(f"{kind}.json").read_text()
    found: Coefficients = json.loads(text)["coefficients"]
    return found
