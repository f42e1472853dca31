"""What a plan costs, and what it is worth: time to make it, first and again, and its products against other choices.

    python -m benchmarks.bench_plan
    python -m benchmarks.bench_plan --device cpu --graphs reddit --scale 0.2

`plan` rows: milliseconds until the plan is there: `auto` and `tune` with an empty cache (`steps_ms`: of which), `again`
in a second process with the cache that the first one left (and hyb, built and loaded), `plain` for csr in the device's
plain order, and `plain epoch`, what a two-layer GCN's products with K = hidden and classes take on that plan, forward
and backward. `spmm` rows: a product of each plan.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

import pyg_sparse
from benchmarks import graphs, results
from benchmarks.graphs import Graph
from benchmarks.results import Row
from benchmarks.timing import elapsed_ms
from pyg_sparse import Csr, Hyb, Plan
from pyg_sparse.datasets import SHAPES
from pyg_sparse.planner.device import product
from pyg_sparse.planner.store import Store
from pyg_sparse.planner.timing import samples_of

_HIDDEN = 128
_AGAIN = """
import json, sys, time, torch, pyg_sparse
from benchmarks import graphs
from benchmarks.timing import elapsed_ms
device = torch.device({device!r})
graph = graphs.load({spec!r}, {scale!r}, {seed!r}, device)
small = torch.randint(100, (2, 500), device=device)
pyg_sparse.spmm(pyg_sparse.plan(small, 100), torch.randn(100, 8, device=device))
_, ms = elapsed_ms(lambda: pyg_sparse.plan(graph.edge_index, (graph.num_src, graph.num_dst), {options}), device)
print(json.dumps(ms))
"""


def main(argv: Sequence[str] | None = None) -> None:
    argv = sys.argv[1:] if argv is None else argv
    arguments = _arguments(argv)
    device = torch.device(arguments.device)
    path = arguments.out or results.device_folder(device) / "plan.json"
    meta = results.collect_meta(device, results.command("benchmarks.bench_plan", argv), [arguments.seed])
    rows: list[Row] = []
    for spec in arguments.graphs:
        graph = graphs.load(spec, arguments.scale, arguments.seed, device)
        rows += measure_graph(spec, graph, arguments)
        results.write(path, meta, rows)
    for row in rows:
        print({key: row[key] for key in ("graph", "op", "impl", "k", "format", "ms")} | row.get("steps_ms", {}))
    print(f"\nwrote {path}")


def measure_graph(spec: str, graph: Graph, arguments: argparse.Namespace) -> list[Row]:
    device = graph.edge_index.device
    common = {
        "bench": "plan", "graph": graph.name, "source": graph.source, "scale": graph.scale, "nnz": graph.num_edges,
        "dtype": "float32",
    }  # fmt: skip
    sizes = (graph.num_src, graph.num_dst)
    order = "degree" if device.type == "cuda" else "given"
    plain, plain_ms = elapsed_ms(lambda: pyg_sparse.plan(graph.edge_index, sizes, order=order, format=Csr()), device)
    epoch = _epoch_ms(plain, SHAPES[spec].classes if spec in SHAPES else 40)

    def row(impl: str, ms: float, plan: Plan | None = None, **more: Any) -> Row:
        about = {"op": "plan", "k": 0, "direction": "fwd+bwd", "impl": impl, "ms": results.short(ms)}
        described = f"{plan.forward.name}, {plan.orders[0]}" if plan else ""
        return {**common, **about, "format": described, **more}

    found = [row("plain", plain_ms, plain), row("plain epoch", epoch, plain, hidden=_HIDDEN)]
    plans = {"plain": plain}
    for mode in ("auto", "tune"):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["PYG_SPARSE_CACHE"] = folder
            options: dict[str, Any] = {"mode": mode}
            plan, ms = elapsed_ms(lambda: pyg_sparse.plan(graph.edge_index, sizes, **options), device)  # noqa: B023
            plans[mode] = plan
            found.append(row(mode, ms, plan, steps_ms=_steps()))
            again = _again(spec, arguments, f"mode={mode!r}")
            found.append(row(f"{mode}, again", again, plan))
    if device.type == "cpu":
        with tempfile.TemporaryDirectory() as folder:
            os.environ["PYG_SPARSE_CACHE"] = folder
            build = {"format": Hyb()}
            plan, ms = elapsed_ms(lambda: pyg_sparse.plan(graph.edge_index, sizes, **build), device)
            found.append(row("hyb", ms, plan, steps_ms=_steps()))
            found.append(row("hyb, again", _again(spec, arguments, "format=pyg_sparse.Hyb()"), plan))
    os.environ["PYG_SPARSE_CACHE"] = "off"
    for impl, plan in plans.items():
        for k in arguments.widths:
            pair = plan.at(k, torch.float32)
            x = torch.randn(graph.num_src, k, device=device)
            samples = samples_of(lambda: product(pair.forward, x), device, 200.0)  # noqa: B023
            about = {"op": "spmm", "k": k, "direction": "fwd", "impl": impl}
            name = f"{pair.forward.name}, {pair.orders[0]}"
            found.append({**common, **about, **results.timed(samples), "format": name})
    return found


def _epoch_ms(plan: Plan, classes: int) -> float:
    total = 0.0
    for k in (_HIDDEN, classes):
        x = torch.randn(plan.num_src, k, device=plan.device)
        for matrix in (plan.forward, plan.backward):
            total += statistics.median(samples_of(lambda: product(matrix, x), x.device, 500.0))  # noqa: B023
    return total


def _steps() -> dict[str, float]:
    """What the steps of the plan just made took, as the cache remembers them."""
    store = Store.default()
    for entry in store.entries() if store else []:
        if entry.header and entry.header.key.get("kind") == "choice":
            record = store.get(entry.header.key) if store else None
            if record:
                return {f"{name} ms": results.short(s * 1e3) for name, s in record.about["seconds"].items()}
    return {}


def _again(spec: str, arguments: argparse.Namespace, options: str) -> float:
    code = _AGAIN.format(
        device=arguments.device, spec=spec, scale=arguments.scale, seed=arguments.seed, options=options
    )
    root = Path(__file__).resolve().parents[1]
    environment = os.environ | {"PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root, env=environment
    )
    if "CacheWarning" in done.stderr:
        warnings.warn(done.stderr, stacklevel=2)
    return float(json.loads(done.stdout.splitlines()[-1]))


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_plan", description=__doc__.partition("\n")[0])
    add = parser.add_argument
    cuda = torch.cuda.is_available()
    add("--graphs", nargs="+", default=["reddit", "products", "proteins", "arxiv"], help="as in bench_spmm")
    add("--scale", type=float, default=1.0 if cuda else 0.2, help="of synthetic shapes")
    add("--widths", nargs="+", type=int, default=[8, 32, 128, 256])
    add("--seed", type=int, default=0)
    add("--device", default="cuda" if cuda else "cpu")
    add("--out", type=Path, help="default: benchmarks/results/<device>/plan.json")
    return parser.parse_args(argv)


if __name__ == "__main__":
    main()
