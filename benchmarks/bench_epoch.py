"""A GCN training epoch by backend, hidden width and dtype, all in one process on one graph.

    python -m benchmarks.bench_epoch --shape reddit --hidden 8 32 128 256 --dtypes float32 bfloat16
    python -m benchmarks.bench_epoch --scale 0.01 --backends pyg_sparse --device cpu

The model and its training are those of examples/gcn_reddit; bfloat16 is autocast. The fields: benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

# PyG's messages of tens of GB do not fit between freed blocks otherwise. torch reads it when it is loaded.
os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")

import torch

from benchmarks import measure, results, tables
from benchmarks.results import Row
from examples.gcn_reddit import report
from examples.gcn_reddit.data import RECIPES, Recipe, Task, default_scale, load
from examples.gcn_reddit.memory import available_mb
from examples.gcn_reddit.model import BACKENDS
from examples.gcn_reddit.train import WARMUP_EPOCHS, Config, Run, prepare, recorded, train
from pyg_sparse.datasets import SHAPES

AMP = {"float32": None, "bfloat16": torch.bfloat16}


def main(argv: Sequence[str] | None = None) -> None:
    argv = sys.argv[1:] if argv is None else argv
    arguments = _arguments(argv)
    device = torch.device(arguments.device)
    path = arguments.out or results.device_folder(device) / "epoch.json"
    meta = results.collect_meta(device, results.command("benchmarks.bench_epoch", argv), [arguments.seed])
    if arguments.append:
        results.merge(path, meta, [])  # refuse another commit or machine before, not after, measuring

    config = _config(arguments, device)
    task = load(config.dataset, root=config.root, scale=config.scale, seed=arguments.seed, device=device)
    print(f"{meta['device']}, torch {meta['torch']}\n{task.describe()}", flush=True)
    task.edge_index = task.edge_index.cpu()  # out of the way of a training that does not need it

    rows: list[Row] = []
    for impl in arguments.backends:
        widths = arguments.pyg_hidden if impl == "pyg" else arguments.hidden
        cases = [replace(config, hidden=k, amp=AMP[dtype]) for k, dtype in product(widths, arguments.dtypes)]
        for row in _measure(impl, cases, task):
            rows.append(row)
            results.write(path, *(results.merge(path, meta, rows) if arguments.append else (meta, rows)))
        measure.free(device)
    print(f"\n{tables.epoch(meta, rows)}\n\nwrote {path}")


def _measure(impl: str, cases: Sequence[Config], task: Task) -> Iterator[Row]:
    """A row for each case, all on the graph as the backend prepared it once."""
    device = cases[0].device
    _warm_up(impl, cases[0])
    new_run = partial(Run, impl, about=task.about, num_nodes=len(task.x), num_edges=task.edge_index.size(1))
    prepared = new_run()
    with recorded(prepared):
        # The copy on the device lives as long as the backend needs it.
        here = replace(task, edge_index=task.edge_index.to(device))
        backend, prepared.preprocess_ms = prepare(cases[0], impl, here)
        del here
    for case in cases:
        why = prepared.why or (_too_large(case, task) if impl == "pyg" else None)
        run = new_run(why=why, preprocess_ms=prepared.preprocess_ms)
        if why is None:
            print(f"\n{impl}, hidden {case.hidden}, {'bfloat16' if case.amp else 'float32'}", flush=True)
            with recorded(run):
                train(case, task, backend, run)
            measure.free(device)
        yield report.row(run, case)


def _config(arguments: argparse.Namespace, device: torch.device) -> Config:
    dataset = f"{arguments.shape}-shaped"
    recipe = RECIPES.get(dataset, Recipe())
    return Config(
        dataset=dataset,
        root=Path(),
        scale=default_scale(device) if arguments.scale is None else arguments.scale,
        device=device,
        dtype=torch.float32,
        amp=None,
        layers=2,
        seeds=(arguments.seed,),
        **{**vars(recipe), "epochs": arguments.epochs + WARMUP_EPOCHS},
    )


def _warm_up(impl: str, config: Config) -> None:
    """Load the library on a small graph, so that the time to prepare does not include it."""
    graph = measure.small_graph(config.device)
    with suppress(Exception):  # a failure is reported where it is measured
        BACKENDS[impl](graph.edge_index, graph.num_src, config.dtype)


def _too_large(config: Config, task: Task) -> str | None:
    """Why PyG's messages would not fit: on a CPU the process would be killed."""
    num_edges, width = task.edge_index.size(1), max(config.hidden, task.classes)
    # Two sets of fp32 messages at a time, and an edge_index with self-loops beside the given one.
    needed, free = num_edges * (2 * 4 * width + 2 * 2 * 8) / 1e9, available_mb(config.device) / 1e3
    return f"skipped: needs about {needed:.3g} GB, {free:.3g} GB are free" if needed > free else None


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_epoch", description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--shape", choices=SHAPES, default="reddit", help="what the synthetic graph is shaped like")
    add("--scale", type=float, help="of the synthetic graph; default 1 on CUDA, as in examples/gcn_reddit on the CPU")
    add("--hidden", nargs="+", type=int, default=[8, 32, 128, 256])
    add("--pyg-hidden", nargs="+", type=int, default=[128], help="of the backend pyg, which is slow and large")
    add("--dtypes", nargs="+", choices=AMP, default=["float32", "bfloat16"], help="bfloat16 is autocast")
    add("--backends", nargs="+", type=_backend, choices=BACKENDS, default=["pyg_sparse", "torch-sparse", "pyg"])
    add("--epochs", type=int, default=20, help=f"timed epochs, after {WARMUP_EPOCHS} others")
    add("--seed", type=int, default=0)
    add("--device", default="auto")
    add("--out", type=Path, help="default: benchmarks/results/<device>/epoch.json")
    add("--append", action="store_true", help="keep the rows in the file, of the same commit and machine")
    arguments = parser.parse_args(argv)
    if arguments.device == "auto":
        arguments.device = "cuda" if torch.cuda.is_available() else "cpu"
    return arguments


def _backend(name: str) -> str:
    return "torch-sparse" if name == "torch_sparse" else name


if __name__ == "__main__":
    main()
