"""What a run leaves behind: rows for the result file, and how far the losses are apart."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks import results

from .train import Config, Run

COMPARED_EPOCHS = 20


def row(run: Run, config: Config) -> results.Row:
    """One flat object of the result file's ``rows``."""
    fixed = {
        "bench": "epoch",
        "graph": config.dataset,
        "source": "shaped" if config.synthetic else "real",
        "scale": config.scale if config.synthetic else None,
        "num_nodes": run.num_nodes,
        "num_edges": run.num_edges,
        "op": "gcn",
        "k": config.hidden,
        "layers": config.layers,
        "dropout": config.dropout,
        "dtype": str(config.amp or config.dtype).removeprefix("torch."),
        "direction": "epoch",
        "impl": run.impl,
        "format": None,
    }
    if run.why is not None:
        return fixed | results.failed(run.why)
    measured = {
        "preprocess_ms": run.preprocess_ms,
        "peak_mb": run.peak_mb,
        "test_acc": statistics.fmean(run.test_acc),
        "test_acc_samples": run.test_acc,
        "final_loss": run.losses[-1],
        "loss_samples": run.losses,
    }
    return fixed | results.timed(run.ms_samples) | measured


def loss_differences(runs: Sequence[Run]) -> list[str]:
    """How far each backend's losses are from PyG's at most, over the first epochs.

    Later, rounding has grown into another trajectory.
    """
    done = {run.impl: run.losses[:COMPARED_EPOCHS] for run in runs if run.why is None}
    expected = done.pop("pyg", [])
    return [
        f"loss of {impl} against PyG's, first {len(expected)} epochs: largest relative difference "
        f"{max(abs(a - b) / abs(b) for a, b in zip(losses, expected, strict=True)):.1e}"
        for impl, losses in done.items()
        if expected
    ]
