"""The picture of a run: how it learned, and how long an epoch took with each backend. Needs matplotlib."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .train import Run

COLOURS = {"pyg_sparse": "#0b7a55", "pyg": "#c8553d", "torch-sparse": "#4a6fa5"}
LABELS = {"pyg_sparse": "pyg_sparse", "pyg": "PyG, edge_index", "torch-sparse": "PyG, torch.sparse CSR"}
LINES = {"train": ":", "val": "--", "test": "-"}


def draw(path: Path, title: str, runs: Sequence[Run]) -> None:
    """Two panels: the first run's loss and accuracy over its epochs, and the epoch times of all."""
    with rc_context({"axes.spines.top": False, "axes.titlesize": "medium"}):
        figure = Figure(figsize=(12, 4.5), layout="constrained")
        figure.suptitle(title)
        left, right = figure.subplots(1, 2)
        _curves(left, runs[0])
        _bars(right, runs)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp.png")
    figure.savefig(temporary, dpi=150)
    temporary.replace(path)


def _curves(axes: Axes, run: Run) -> None:
    (loss,) = axes.plot(range(1, len(run.losses) + 1), run.losses, color="0.45", label="loss")
    axes.set(xlabel="epoch", ylabel="training loss", ylim=(0, None), title=f"Training with {LABELS[run.impl]}")
    right = axes.twinx()
    right.set(ylabel="accuracy", ylim=(0, 1.02))
    epochs, *parts = zip(*run.accuracy, strict=True)
    lines = [
        right.plot(epochs, values, style, color=COLOURS[run.impl], label=f"{part} accuracy")[0]
        for (part, style), values in zip(LINES.items(), parts, strict=True)
    ]
    axes.legend(handles=[loss, *lines], loc="center right", frameon=False)


def _bars(axes: Axes, runs: Sequence[Run]) -> None:
    medians = [statistics.median(run.ms_samples) for run in runs]
    names, colours = [LABELS[run.impl] for run in runs], [COLOURS[run.impl] for run in runs]
    bars = axes.barh(names, medians, height=0.6, color=colours)
    labels = [f"{ms:,.1f} ms, {run.peak_mb:,.0f} MB" for run, ms in zip(runs, medians, strict=True)]
    axes.bar_label(bars, labels, padding=4)
    axes.set_ylim(max(len(runs), 3) - 0.5, -0.5)  # from the top; a lone bar is no thicker
    axes.set(xlabel="ms per epoch (median)", xlim=(0, 1.6 * max(medians)), title="Epoch time and peak memory")
    axes.spines["right"].set_visible(False)
