"""How one choice is made of many predictions, and what is told of it."""

from __future__ import annotations

import json

import pytest
import torch

import pyg_sparse
from pyg_sparse.formats import Coo, Csr, Hyb
from pyg_sparse.planner.candidates import Candidate, candidate_specs
from pyg_sparse.planner.cases import Case, case_of, cases_for
from pyg_sparse.planner.choice import Choice, Scored, choose, from_report, report
from pyg_sparse.planner.model import Prediction

A, B, C = Candidate("given", Csr()), Candidate("community, 8 rounds", Csr(64)), Candidate("degree", Hyb(1, 5))
NARROW, WIDE = Case(8, 4), Case(128, 4)


def scored(candidate: Candidate, narrow: float, wide: float, measured: bool = False) -> Scored:
    times = {NARROW: narrow, WIDE: wide}
    predicted = {case: Prediction(ms, {"near": ms}, 1.0) for case, ms in times.items()}
    return Scored(candidate, predicted, dict(times) if measured else {})


def test_the_best_for_all_cases_is_the_base() -> None:
    base, special = choose([scored(A, 1.0, 10.0), scored(B, 1.05, 8.0)], [NARROW, WIDE])
    assert base == B
    assert special == {}


def test_a_case_with_much_to_gain_has_a_choice_of_its_own() -> None:
    base, special = choose([scored(A, 1.0, 10.0), scored(B, 2.0, 2.0)], [NARROW, WIDE])
    assert base == B
    assert special == {NARROW: A}


def test_doubt_counts() -> None:
    doubtful = Scored(C, {NARROW: Prediction(1.0, {}, 1.3)})
    assert choose([doubtful, Scored(A, {NARROW: Prediction(1.2, {}, 1.0)})], [NARROW])[0] == A


def test_what_was_measured_comes_first() -> None:
    entries = [scored(A, 3.0, 3.0, measured=True), scored(B, 2.0, 2.0), scored(C, 2.5, 4.0, measured=True)]
    assert choose(entries, [NARROW, WIDE])[0] == A
    assert choose(entries, [NARROW])[0] == C


def test_without_predictions_the_first_is_taken() -> None:
    assert choose([Scored(A), Scored(B)], [NARROW]) == (A, {})


def test_a_report_is_json_and_says_what_was_chosen() -> None:
    entries = [scored(A, 1.0, 10.0), scored(B, 2.0, 2.0), scored(C, 5.0, 5.0, measured=False)]
    base, special = choose(entries, [NARROW, WIDE])
    choice = Choice(base, special, {}, entries)
    told = json.loads(json.dumps(report(choice, [NARROW, WIDE])))
    again = from_report(told, {})
    assert (again.base, again.special) == (base, special)
    assert [c["candidates"][0]["candidate"] for c in told["cases"]] == [A.as_dict(), B.as_dict()]
    assert told["cases"][1]["candidates"][0]["predicted_ms"] == 2.0
    assert choice.chosen() == [B, A]
    assert choice.of(NARROW) == A
    assert choice.of(WIDE) == choice.of(Case(256, 2)) == B


@pytest.mark.parametrize("about", [{}, {"order": 3, "format": "csr"}, {"order": "given", "format": "elf"},
                                   {"order": "given", "format": "csr", "split": -1},
                                   {"order": "given", "format": "csr", "chunk": 4}])  # fmt: skip
def test_what_is_no_candidate_raises(about: dict) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        Candidate.from_dict(about)


def test_candidates_survive_json() -> None:
    for on_cuda in (False, True):
        for spec in candidate_specs(1000, 20_000, on_cuda=on_cuda):
            candidate = Candidate("given", spec)
            assert Candidate.from_dict(json.loads(json.dumps(candidate.as_dict()))) == candidate
    assert str(Candidate("given", Coo(64))) == "coo(chunk=64), rows by given"
    assert str(A) == "csr, rows by given"


def test_cases() -> None:
    assert [case_of(k, 4).width for k in (0, 1, 2, 8, 9, 32, 33, 128, 129, 256, 257, 10_000)] == [
        1, 1, 8, 8, 32, 32, 128, 128, 256, 256, 256, 256,
    ]  # fmt: skip
    assert cases_for([16, 17, 500], [torch.float32, torch.bfloat16]) == (
        Case(32, 2), Case(32, 4), Case(256, 2), Case(256, 4),
    )  # fmt: skip
    assert [str(c) for c in cases_for([1, 9, 999], None)] == [
        "K = 1, 32 bits", "K = 9 to 32, 32 bits", "K > 128, 32 bits",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"widths": [0]}, r"widths=\(0,\): 0 must be an int of at least 1"),
        ({"widths": [8.0]}, "8.0 must be an int"),
        ({"widths": []}, "widths must not be empty"),
        ({"dtypes": [torch.int32]}, "torch.int32 must be one of"),
        ({"mode": "fast"}, "mode='fast' must be one of auto, tune"),
        ({"mode": "tune", "budget": 0}, "budget=0 must be a positive number"),
        ({"mode": "tune", "budget": float("nan")}, "budget=nan must be a positive number"),
        ({"order": "rows"}, "order='rows' must be one of auto, degree, given, community, leading, rcm"),
        ({"format": "csr"}, "format='csr' must be"),
    ],
)
def test_bad_options_of_plan_raise(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pyg_sparse.plan(torch.tensor([[0], [1]]), **options)


def test_a_single_width_or_dtype_raises() -> None:
    for options in ({"widths": 8}, {"dtypes": torch.float32}):
        with pytest.raises(TypeError, match=f"{next(iter(options))}=.* must be several"):
            pyg_sparse.plan(torch.tensor([[0], [1]]), **options)
