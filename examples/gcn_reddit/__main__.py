from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from importlib.util import find_spec

from benchmarks import results, tables

from . import report
from .cli import parse
from .model import BACKENDS
from .train import Config, Run, run


def main(argv: Sequence[str] | None = None) -> int:
    """Train, compare, write; returns the exit status: 1 when the chosen backend failed."""
    argv = sys.argv[1:] if argv is None else argv
    options = parse(argv)
    config, impls = options.config, [options.backend]
    if options.compare:
        impls += [impl for impl in BACKENDS if impl != options.backend]

    try:
        runs = [_isolated(config, impl, first=impl == impls[0]) for impl in impls]
    except OSError as error:
        sys.exit(f"{config.dataset} cannot be loaded, --root is {config.root}: {error}")

    meta = results.collect_meta(config.device, results.command("examples.gcn_reddit", argv), config.seeds)
    rows = [report.row(run, config) for run in runs]
    print(f"\n{tables.epoch(meta, rows)}\n")
    for line in report.loss_differences(runs):
        print(line)

    results.write(options.json, meta, rows)
    print(f"wrote {options.json}")
    done = [run for run in runs if run.why is None]
    if find_spec("matplotlib") is None:
        print("no picture without matplotlib: pip install 'pyg_sparse[plots]'")
    elif done:
        from .picture import draw

        model = f"{config.layers}-layer GCN, hidden width {config.hidden}"
        draw(options.picture, f"{model}, on {done[0].about}\n{meta['device']}", done)
        print(f"wrote {options.picture}")
    return 0 if runs[0] in done else 1


def _isolated(config: Config, impl: str, *, first: bool) -> Run:
    """The run in a process of its own: its peak memory is its own, and running out of it ends no other."""
    context = multiprocessing.get_context("spawn")
    # Without it PyG's messages of tens of GB do not fit between freed blocks. torch reads it when the process starts.
    os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    try:
        with ProcessPoolExecutor(max_workers=1, mp_context=context) as executor:
            return executor.submit(run, config, impl, describe=first).result()
    except BrokenProcessPool:
        print("  failed: the process was killed")
        return Run(impl, why="the process was killed, most likely because memory ran out")


if __name__ == "__main__":
    sys.exit(main())
