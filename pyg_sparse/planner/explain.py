"""A plan's choice in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyg_sparse.planner.candidates import Candidate
from pyg_sparse.planner.cases import Case

if TYPE_CHECKING:
    from pyg_sparse.plan import Plan

_TERMS = 4  # shown of a comparison
_NOTHING = "nothing was chosen: the graph has fewer than 2^18 or more than 2^30 edges, or format and order were given"


def headline(plan: Plan) -> str:
    """One line: how the forward direction's format came about."""
    about = plan.report["forward"]
    case = about["cases"][-1] if len(about["cases"]) == 1 else about["cases"][len(about["cases"]) // 2]
    first = case["candidates"][0]
    how = "measured" if "measured_ms" in first else "predicted"
    text = f"chosen of {about['considered']} candidates ({Case(case['width'], case['itemsize'])}: "
    text += f"{first.get('measured_ms', first.get('predicted_ms', float('nan'))):.3g} ms {how}"
    others = case["candidates"][1:]
    if others:
        text += f"; next {_name(others[0])}, {_ms(others[0])}"
    return text + "); see explain()"


def explain(plan: Plan) -> str:
    if not plan.report:
        return _NOTHING
    lines: list[str] = []
    for direction in ("forward", "backward"):
        if direction == "backward" and plan.symmetric:
            lines.append("backward: as forward (symmetric)")
            continue
        about = plan.report[direction]
        lines.append(f"{direction}: {about['considered']} candidates")
        for case in about["cases"]:
            lines += _case(Case(case["width"], case["itemsize"]), case["candidates"])
    return "\n".join(lines)


def _case(case: Case, candidates: Sequence[Mapping[str, Any]]) -> list[str]:
    first, *others = candidates
    lines = [f"  {case}: {_name(first)}, {_ms(first)}"]
    terms = sorted(first.get("terms_ms", {}).items(), key=lambda term: -term[1])
    if terms:
        lines.append("    of which " + ", ".join(f"{name} {ms:.3g}" for name, ms in terms))
    if others:
        lines.append(f"    next: {_name(others[0])}, {_ms(others[0])}")
        if difference := _difference(first, others[0]):
            lines.append(f"    what decided: {difference}")
    return lines


def _difference(first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """The terms that differ most, second minus first."""
    own, other = first.get("terms_ms", {}), second.get("terms_ms", {})
    gaps = {name: other.get(name, 0.0) - own.get(name, 0.0) for name in {*own, *other}}
    largest = sorted((gap for gap in gaps.items() if gap[1]), key=lambda gap: -abs(gap[1]))[:_TERMS]
    return ", ".join(f"{name} {gap:+.3g} ms" for name, gap in largest)


def _name(entry: Mapping[str, Any]) -> str:
    return str(Candidate.from_dict(entry["candidate"]))


def _ms(entry: Mapping[str, Any]) -> str:
    parts = [f"{entry[f'{how}_ms']:.3g} ms {how}" for how in ("measured", "predicted") if f"{how}_ms" in entry]
    return ", ".join(parts) or "not predicted"
