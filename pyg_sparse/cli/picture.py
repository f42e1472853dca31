"""A picture of a report: degrees, the chosen format, predicted against measured times."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from pyg_sparse.cli.drawing import Drawing, Timed
from pyg_sparse.cli.spy import Spy, spy
from pyg_sparse.planner.blocks import DENSE
from pyg_sparse.planner.candidates import describe_spec

_Color = tuple[float, float, float]
_BLUE, _ORANGE, _GRAY, _RED = "#1f5fa8", "#e08e1b", "#b9bec6", "#d1214b"
_TINT = 0.75  # how red what lies in dense tiles is
_CELLS = 400  # of the picture of a matrix, in either direction
_MOST_BARS = 14
_MARKERS = {"csr": "o", "coo": "s", "hyb": "^"}
_STYLE: Any = {
    "svg.hashsalt": "pyg_sparse",  # ids in the file would be random
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.constrained_layout.use": True,
}


def save(drawing: Drawing, path: Path) -> None:
    """As the path's suffix says: png, svg or pdf."""
    metadata = {"Date": None} if path.suffix == ".svg" else None
    with rc_context(_STYLE):
        draw(drawing).savefig(path, dpi=150, metadata=metadata)


def png(drawing: Drawing) -> bytes:
    file = io.BytesIO()
    with rc_context(_STYLE):
        draw(drawing).savefig(file, format="png", dpi=130)
    return file.getvalue()


def draw(drawing: Drawing) -> Figure:
    figure = Figure(figsize=(15, 5))  # without pyplot: no window, and no state of it
    axes = figure.subplots(1, 3)
    figure.suptitle(drawing.title, fontsize=9, color="gray")
    _degrees(axes[0], drawing)
    _matrix(axes[1], spy(drawing.build()), drawing.chosen)
    if any(time.measured is not None for time in drawing.times):
        _predicted_against_measured(axes[2], drawing.times)
    else:
        _predicted(axes[2], drawing.times)
    return figure


def _degrees(axis: Axes, drawing: Drawing) -> None:
    incoming, outgoing = (np.sort(degree.cpu().numpy()) for degree in (drawing.in_degree, drawing.out_degree))
    if np.array_equal(incoming, outgoing):
        _points(axis, incoming, "nodes, by in- or out-degree", _BLUE)
    else:
        _points(axis, incoming, "targets, by in-degree", _BLUE)
        _points(axis, outgoing, "sources, by out-degree", _ORANGE)
    axis.set(xlabel="edges of a node", ylabel="nodes", title="Degree distribution")
    if incoming.any():
        axis.set(xscale="log", yscale="log")
    _legend(axis)


def _points(axis: Axes, degree: np.ndarray, name: str, color: str) -> None:
    value, count = np.unique(degree[degree > 0], return_counts=True)
    without = len(degree) - int(count.sum())
    label = f"{name} ({without:,} without edges)" if without else name
    axis.scatter(value, count, s=9, linewidths=0, alpha=0.7, color=color, label=label)


def _matrix(axis: Axes, found: Spy, name: str) -> None:
    axis.set(title=name, xlabel="column", ylabel="row, in the order of the work")
    if not found.row.size:
        axis.text(0.5, 0.5, "no entries", ha="center", transform=axis.transAxes, color="gray")
        return
    colors = _colors(len(found.kinds))
    extent = (-0.5, found.width - 0.5, found.height - 0.5, -0.5)
    axis.imshow(_density(found, colors), extent=extent, aspect="auto", interpolation="nearest")
    handles = [Patch(color=color, label=kind) for color, kind in zip(colors, found.kinds, strict=True)]
    if found.tiles:
        label = f"in {found.tiles:,} 16x16 tiles of {DENSE} or more: {found.in_tile.mean():.0%} of the entries"
        handles.append(Patch(color=_RED, label=label))
    elif found.tiles is None:
        handles.append(Patch(color="white", label="a sample of the entries; dense tiles are not sought"))
    _legend(axis, handles)


def _density(found: Spy, colors: Sequence[_Color]) -> np.ndarray:
    """RGB: the mean colour of a cell's entries, darker the more there are; redder those in dense tiles."""
    rows, cols = min(found.height, _CELLS), min(found.width, _CELLS)
    cell = found.row * rows // found.height * cols + found.col * cols // found.width
    kinds = [np.bincount(cell[found.kind == i], minlength=rows * cols) for i in range(len(colors))]
    count = np.sum(kinds, axis=0)
    color = np.stack(kinds, axis=1) @ np.array(colors) / np.maximum(count, 1)[:, None]
    red = _TINT * (np.bincount(cell[found.in_tile], minlength=rows * cols) / np.maximum(count, 1))[:, None]
    color = (1 - red) * color + red * np.array(to_rgb(_RED))
    # The least that is drawn can still be seen, and a usual cell is not far from the fullest.
    usual = np.quantile(count[count > 0], 0.95)
    strength = np.where(count > 0, 0.3 + 0.7 * np.minimum(np.sqrt(count / usual), 1), 0)[:, None]
    picture: np.ndarray = (1 - strength + strength * color).reshape(rows, cols, 3)
    return picture


def _legend(axis: Axes, handles: Sequence[Patch] | None = None) -> None:
    """Below the axes, where it hides nothing."""
    shown = axis.get_legend_handles_labels()[0] if handles is None else handles
    axis.legend(
        handles=shown,
        frameon=False,
        fontsize=7,
        ncols=2 if len(shown) <= 4 else 3,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.12),
    )


def _colors(count: int) -> list[_Color]:
    """One or two of the other panels', or as many as there are buckets."""
    if count <= 2:
        return [to_rgb(color) for color in (_BLUE, _ORANGE)[:count]]
    return [to_rgb(colormaps["viridis"](0.9 * i / (count - 1))) for i in range(count)]


def _predicted_against_measured(axis: Axes, times: Sequence[Timed]) -> None:
    products = list(dict.fromkeys(time.product for time in times))
    for color, product in zip(_colors(max(len(products), 3)), products, strict=False):
        for kind, marker in _MARKERS.items():
            points = [
                (t.measured, t.predicted)
                for t in times
                if t.product == product and t.candidate.spec.name == kind and t.measured and t.predicted
            ]
            if points:
                x, y = zip(*points, strict=True)
                axis.scatter(x, y, s=16, marker=marker, color=color, alpha=0.75, linewidths=0)
        axis.scatter([], [], color=color, label=product)
    for kind, marker in _MARKERS.items():
        axis.scatter([], [], marker=marker, color="gray", label=kind)
    chosen = [(t.measured, t.predicted) for t in times if t.chosen and t.measured and t.predicted]
    if chosen:
        x, y = zip(*chosen, strict=True)
        axis.scatter(x, y, s=70, facecolors="none", edgecolors=_RED, label="what plan() takes")
    axis.set(
        xscale="log", yscale="log", xlabel="measured ms", ylabel="predicted ms", title="Predicted against measured"
    )
    low, high = min(axis.get_xlim()[0], axis.get_ylim()[0]), max(axis.get_xlim()[1], axis.get_ylim()[1])
    axis.plot([low, high], [low, high], color="gray", linewidth=0.8, zorder=0)
    axis.set(xlim=(low, high), ylim=(low, high))
    for side in (axis.xaxis, axis.yaxis):  # names of 3, 4 and 6 times a power would run into each other
        side.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        side.set_major_formatter(FuncFormatter(lambda ms, _: f"{ms:g}"))
        side.set_minor_formatter(NullFormatter())
    _legend(axis)


def _predicted(axis: Axes, times: Sequence[Timed]) -> None:
    """Bars, for the product in the middle of those asked about."""
    products = list(dict.fromkeys(time.product for time in times))
    if not products:
        axis.set(title="Predicted times")
        axis.text(0.5, 0.5, "nothing was predicted", ha="center", transform=axis.transAxes, color="gray")
        axis.set_axis_off()
        return
    product = products[len(products) // 2]
    own = sorted((t for t in times if t.product == product and t.predicted), key=lambda t: t.predicted or 0.0)
    shown = own[:_MOST_BARS]
    if not any(t.chosen for t in shown):
        shown = [*shown[:-1], *(t for t in own if t.chosen)]
    bars = axis.barh(
        [f"{describe_spec(t.candidate.spec)}, {t.candidate.order}" for t in shown],
        [t.predicted or 0.0 for t in shown],
        color=[_BLUE if t.chosen else _GRAY for t in shown],
    )
    axis.bar_label(bars, [f"{t.predicted:.3g}" for t in shown], padding=2, fontsize=8)
    axis.set_ylim(max(len(shown), 8) - 0.5, -0.6)  # few bars are no thicker than many
    axis.set(title=f"Predicted ms, {product}", xlabel="ms (blue: what plan() takes)")
    axis.margins(x=0.12)
