"""Fits the planner's cost model to measured candidates, and tests it on graphs it has not seen.

    python -m benchmarks.fit_cost_model benchmarks/results/h200/candidates.json
    python -m benchmarks.fit_cost_model benchmarks/results/cpu/candidates.json --write

`--write` puts the coefficients into the package, and the table beside the file, as cost_model.json.

The coefficients of each class of kernels are found by least squares without negative ones, over relative errors, each
graph and width with the same weight. Cross-validation leaves out whole families of graphs. As in the SparseDitto paper:
`regret` is the geometric mean of the chosen candidate's time over the fastest one's, `top-1` how often it is the
fastest (within 2 %), `capture` how much of the gain from the plain format to the fastest is had, and `cliff` how often
the choice takes more than twice the plain format's time. `regret of 6` is that of the best of the six candidates that
are predicted to be fastest: what measuring them would leave.
`all, small ones plain`: with plain csr below 2^18 entries, as in `pyg_sparse.plan`.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpus_file import Sample, read
from benchmarks.markdown import table
from pyg_sparse.planner import cpu_terms, cuda_terms
from pyg_sparse.planner.candidates import candidate_specs, describe_spec
from pyg_sparse.planner.decide import MIN_ENTRIES
from pyg_sparse.planner.device import Device
from pyg_sparse.planner.model import Coefficients, Prediction, predict

FOLDS, TOP = 8, 6
_CLOSE = 1.02
_ROUNDS = 6  # of reweighting
_LEAST_ERROR = 0.05


def fit(samples: Sequence[Sample], device: Device) -> Coefficients:
    model = cuda_terms if device.kind == "cuda" else cpu_terms
    names = list(model.TERMS)
    by_class: dict[str, list[tuple[list[float], Sample]]] = defaultdict(list)
    for s in samples:
        terms = model.terms(s.work, s.k, s.itemsize, device)
        kernels = model.kernel_class(s.work, s.k, s.itemsize, device)
        by_class[kernels].append(([terms.get(name, 0.0) for name in names], s))
    found: Coefficients = {}
    for kernels, rows in sorted(by_class.items()):
        matrix, ms = np.array([terms for terms, _ in rows]), np.array([s.ms for _, s in rows])
        count: dict[tuple[str, int, int], int] = defaultdict(int)
        for _, s in rows:
            count[s.graph, s.k, s.itemsize] += 1
        weight = np.array([count[s.graph, s.k, s.itemsize] ** -0.5 for _, s in rows])
        solution = _least_relative_error(matrix, ms, weight)
        found[kernels] = {name: float(f"{c:.4g}") for name, c in zip(names, solution, strict=True) if c > 0}
    return found


def _least_relative_error(matrix: np.ndarray, ms: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Non-negative, and robust: large errors count less in each further round."""
    from scipy.optimize import nnls

    scale = np.ones(len(ms))
    solution = np.zeros(matrix.shape[1])
    for _ in range(_ROUNDS):
        row = weight * scale
        solution = nnls(matrix / ms[:, None] * row[:, None], row)[0]
        ratio = np.maximum(matrix @ solution / ms, 1e-3)
        scale = np.maximum(np.abs(np.log(ratio)), _LEAST_ERROR) ** -0.5 * np.maximum(ratio, 1.0) ** -0.5
    return solution


def cross_validate(samples: Sequence[Sample], device: Device, seed: int = 0) -> dict[int, Prediction]:
    """By the sample's identity, predictions of models that have seen no graph of its family."""
    groups = sorted({s.group for s in samples})
    np.random.default_rng(seed).shuffle(groups)
    found: dict[int, Prediction] = {}
    for fold in range(FOLDS):
        held_out = set(groups[fold::FOLDS])
        coefficients = fit([s for s in samples if s.group not in held_out], device)
        for s in samples:
            if s.group in held_out:
                prediction = predict(s.work, s.k, s.itemsize, device, coefficients)
                if prediction is not None:
                    found[id(s)] = prediction
    return found


def judge(samples: Sequence[Sample], predicted: dict[int, Prediction], plain: Callable[[Sample], bool]) -> list[dict]:
    """A row for each width and dtype, and one for all."""
    by_case: dict[tuple[int, int, str], list[Sample]] = defaultdict(list)
    for s in samples:
        if id(s) in predicted:
            by_case[s.itemsize, s.k, s.graph].append(s)
    rows: dict[Any, list[dict[str, float]]] = defaultdict(list)
    for (itemsize, k, graph), entries in by_case.items():
        base = next((s.ms for s in entries if plain(s)), None)
        if base is None:
            continue
        best = min(s.ms for s in entries)
        ranked = sorted(entries, key=lambda s: predicted[id(s)].rank)
        chosen = ranked[0].ms
        about = {
            "graph": graph, "chosen": f"{ranked[0].spec}, {ranked[0].order}",
            "best": next(f"{s.spec}, {s.order}" for s in entries if s.ms == best),
            "regret": chosen / best, "regret of 6": min(s.ms for s in ranked[:TOP]) / best, "plain": base / best,
            "top-1": float(chosen <= best * _CLOSE), "cliff": float(chosen > 2 * base),
            "error": float(np.mean([abs(math.log(predicted[id(s)].ms / s.ms)) for s in entries])),
        }  # fmt: skip
        rows[itemsize, k].append(about)
        rows["all"].append(about)
        small = entries[0].work.nnz < MIN_ENTRIES
        planned = {"regret": base / best, "top-1": float(base <= best * _CLOSE), "cliff": 0.0} if small else {}
        rows["all, small ones plain"].append(about | planned)
    return [{"case": case, **_summary(entries)} for case, entries in sorted(rows.items(), key=lambda r: str(r[0]))]


def _summary(cases: list[dict]) -> dict[str, Any]:
    def mean(name: str) -> float:
        return math.exp(float(np.mean([math.log(c[name]) for c in cases])))

    gain, had = math.log(mean("plain")), math.log(mean("plain") / mean("regret"))
    return {
        "graphs": len(cases), "regret": mean("regret"), "regret of 6": mean("regret of 6"), "plain": mean("plain"),
        "top-1": float(np.mean([c["top-1"] for c in cases])), "capture": had / gain if gain else 1.0,
        "cliff": float(np.mean([c["cliff"] for c in cases])), "error": float(np.mean([c["error"] for c in cases])),
        "worst": sorted(cases, key=lambda c: -c["regret"])[:5],
    }  # fmt: skip


def _is_candidate(sample: Sample, on_cuda: bool) -> bool:
    """What was measured may be more than what the planner chooses among."""
    specs = candidate_specs(sample.work.num_rows, sample.work.nnz, on_cuda=on_cuda)
    return sample.spec in {describe_spec(spec) for spec in specs}


def render(rows: Iterable[dict]) -> str:
    """A line for each width, those of all widths last."""
    names = ["graphs", "regret", "regret of 6", "plain", "top-1", "capture", "cliff", "error"]
    lines = [["case", *names]]
    for row in sorted(rows, key=lambda row: (isinstance(row["case"], str), row["case"])):
        case = row["case"] if isinstance(row["case"], str) else f"K = {row['case'][1]}, {8 * row['case'][0]} bits"
        lines.append([case, str(row["graphs"]), *(f"{row[name]:.3f}" for name in names[1:])])
    return table(lines)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fit_cost_model", description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path, nargs="+", help="candidates.json of one device")
    parser.add_argument("--write", action="store_true", help="write the coefficients into the package")
    parser.add_argument("--worst", type=int, default=0, help="show so many graphs with the largest regret")
    arguments = parser.parse_args(argv)
    parts = [read(path) for path in arguments.file]
    device = parts[0][0]
    on_cuda = device.kind == "cuda"
    samples = [s for _, part in parts for s in part if _is_candidate(s, on_cuda)]
    order = "degree" if on_cuda else "given"
    rows = judge(samples, cross_validate(samples, device), lambda s: s.order == order and s.spec == "csr")
    print(render(rows))
    for row in rows:
        for case in row["worst"][: arguments.worst]:
            print(row["case"], f"{case['regret']:.2f} {case['graph']}: {case['chosen']}; best {case['best']}")
    coefficients = fit(samples, device)
    for kernels, own in coefficients.items():
        print(f"{kernels}: " + ", ".join(f"{name} {c:.3g}" for name, c in own.items()))
    if arguments.write:
        path = Path(__file__).parents[1] / "pyg_sparse" / "planner" / f"{device.kind}.json"
        about = {"fitted_to": device.name, "coefficients": coefficients}
        path.write_text(json.dumps(about, indent=1) + "\n")
        beside = arguments.file[0].with_name("cost_model.json")
        beside.write_text(json.dumps({"meta": _meta(arguments.file[0]), "rows": rows}, indent=1) + "\n")
        print(f"wrote {path} and {beside}")


def _meta(path: Path) -> dict[str, Any]:
    """Where and when the candidates were measured."""
    found: dict[str, Any] = json.loads(path.read_text())["meta"]
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
