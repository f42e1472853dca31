"""The planner's choice for one direction of a graph, and the report of how it came about."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyg_sparse.order import Order
from pyg_sparse.planner.candidates import Candidate
from pyg_sparse.planner.cases import Case
from pyg_sparse.planner.model import Prediction

SPECIAL_GAIN = 1.15  # what a format of its own must gain for a case, as it takes the memory of another matrix


@dataclass
class Scored:
    """A candidate with what is known of its time in each case: predicted, and measured, in ms."""

    candidate: Candidate
    predicted: dict[Case, Prediction] = field(default_factory=dict)
    measured: dict[Case, float] = field(default_factory=dict)

    def cost(self, case: Case) -> float:
        """What candidates are compared by: measured ones come before those that are only predicted."""
        if case in self.measured:
            return self.measured[case]
        return self.predicted[case].rank if case in self.predicted else math.inf


@dataclass(frozen=True, eq=False)
class Choice:
    """
    Attributes:
        base: what products take that have no choice of their own.
        special: the cases that have one.
        orders: the arrays of the chosen orders, by name; None is the order by descending length.
        scored: all candidates, or what a report keeps of them.
    """

    base: Candidate
    special: Mapping[Case, Candidate]
    orders: Mapping[str, Order | None]
    scored: Sequence[Scored] = ()

    def of(self, case: Case) -> Candidate:
        return self.special.get(case, self.base)

    def chosen(self) -> list[Candidate]:
        """The base first, each once."""
        return list(dict.fromkeys([self.base, *self.special.values()]))


def choose(scored: Sequence[Scored], cases: Sequence[Case]) -> tuple[Candidate, dict[Case, Candidate]]:
    """The candidate that is best for all cases together, and those that are much better in one."""

    def together(entry: Scored) -> float:
        return sum(math.log(entry.cost(case)) for case in cases)

    complete = [entry for entry in scored if all(math.isfinite(entry.cost(case)) for case in cases)]
    if not complete:
        return scored[0].candidate, {}
    if any(entry.measured for entry in complete):  # the others were predicted to be slower
        complete = [entry for entry in complete if entry.measured]
    base = min(complete, key=together)
    special: dict[Case, Candidate] = {}
    for case in cases:
        best = min(complete, key=lambda entry: entry.cost(case))
        if best.cost(case) * SPECIAL_GAIN < base.cost(case):
            special[case] = best.candidate
    return base.candidate, special


def report(choice: Choice, cases: Sequence[Case], most: int = 8) -> dict[str, Any]:
    """For JSON: for each case the chosen candidate and the ones that come next, with times and terms in ms."""
    found = []
    for case in cases:
        chosen = choice.of(case)
        ranked = sorted(choice.scored, key=lambda entry: entry.cost(case))
        first = [entry for entry in ranked if entry.candidate == chosen]
        others = [entry for entry in ranked if entry.candidate != chosen]
        rows = [_entry(entry, case) for entry in (first + others)[:most]]
        found.append({"width": case.width, "itemsize": case.itemsize, "candidates": rows})
    return {
        "base": choice.base.as_dict(),
        "special": [[case.width, case.itemsize, c.as_dict()] for case, c in choice.special.items()],
        "considered": len(choice.scored),
        "cases": found,
    }


def _entry(entry: Scored, case: Case) -> dict[str, Any]:
    prediction = entry.predicted.get(case)
    about: dict[str, Any] = {"candidate": entry.candidate.as_dict()}
    if prediction is not None:
        about["predicted_ms"] = _short(prediction.ms)
        about["terms_ms"] = {name: _short(ms) for name, ms in prediction.terms.items()}
    if case in entry.measured:
        about["measured_ms"] = _short(entry.measured[case])
    return about


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def check_report(about: Mapping[str, Any]) -> None:
    """Raises KeyError, TypeError or ValueError for what :func:`report` does not return and others could not print."""
    from_report(about, {})
    if type(about["considered"]) is not int or not about["cases"]:
        raise ValueError("a report must say how many candidates were considered, and for which cases")
    for case in about["cases"]:
        str(Case(int(case["width"]), int(case["itemsize"])))
        if not case["candidates"]:
            raise ValueError("a case has no candidates")
        for entry in case["candidates"]:
            Candidate.from_dict(entry["candidate"])
            times = [entry[name] for name in ("predicted_ms", "measured_ms") if name in entry]
            for ms in (*times, *dict(entry.get("terms_ms", {})).values()):
                if type(ms) not in (int, float):
                    raise TypeError(f"{ms!r} is no time")


def from_report(about: Mapping[str, Any], orders: Mapping[str, Order | None]) -> Choice:
    """The choice that :func:`report` tells of. Raises KeyError, TypeError or ValueError if it is none."""
    special = {Case(int(w), int(size)): Candidate.from_dict(c) for w, size, c in about["special"]}
    return Choice(Candidate.from_dict(about["base"]), special, orders)
