"""Pictures of the committed results, drawn from benchmarks/results/<device>/*.json into docs/images.

    python -m benchmarks.plots

A result file that is not there gives no picture, and a message. The same results give the same bytes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import geometric_mean

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from benchmarks.results import OURS, ROOT, Row, read
from benchmarks.rows import fastest, graph_title, grouped, in_given_order, ms, plain
from benchmarks.suite_tables import SOURCES, device_field, speedups

RESULTS = ROOT / "results"
IMAGES = ROOT.parent / "docs" / "images"
COLORS = {"real": "#1f5fa8", "exact": "#2a9d8f", "twin": "#b9bec6"}
_OURS, _RIVAL = "#1f5fa8", "#b9bec6"
_STYLE = {
    "svg.hashsalt": "pyg_sparse",  # ids in the file would be random
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.constrained_layout.use": True,
}


def suite(rows: Sequence[Row]) -> Figure:
    """The speed-up on every matrix, sorted, for each width."""
    by_width = speedups(rows, device_field(rows))
    source = {row["graph"]: row["source"] for row in rows}
    figure, axes = _panels(len(by_width))
    for axis, (k, ratios) in zip(axes, sorted(by_width.items()), strict=True):
        names = sorted(ratios, key=ratios.__getitem__)
        # Bars start at 1, so that a slower one hangs below.
        heights = [ratios[name] - 1 for name in names]
        axis.bar(range(len(names)), heights, bottom=1, color=[COLORS[source[name]] for name in names])
        mean = f", mean {geometric_mean(ratios.values()):.2f}" if ratios else ""
        _speed_up(axis, f"K = {k}{mean}")
        axis.set_xticks([])
        axis.set_xlabel(f"{len(names)} matrices, sorted")
    kinds = [kind for kind in SOURCES if kind in source.values()]
    _legend(figure, {SOURCES[kind]: COLORS[kind] for kind in kinds})
    return figure


def suite_roofline(rows: Sequence[Row]) -> Figure:
    """The share of the speed limit that was reached on every matrix, by its number of entries."""
    field = device_field(rows)
    by_width = grouped([row for row in rows if row["impl"] == OURS and row.get(field)], "k")
    by_width.sort(key=lambda at_k: at_k[0]["k"])
    figure, axes = _panels(len(by_width))
    for axis, at_k in zip(axes, by_width, strict=True):
        for kind in SOURCES:
            of_kind = [row for row in at_k if row["source"] == kind]
            reached = [row["limit_ms"] / row[field] for row in of_kind]
            axis.plot([row["num_edges"] for row in of_kind], reached, "o", markersize=3, color=COLORS[kind])
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set(title=f"K = {at_k[0]['k']}", xscale="log", xlabel="entries")
    axes[0].set_ylabel("limit / measured time")
    kinds = [kind for kind in SOURCES if any(row["source"] == kind for row in rows)]
    _legend(figure, {SOURCES[kind]: COLORS[kind] for kind in kinds})
    return figure


def speed_up(rows: Sequence[Row]) -> Figure:
    """The speed-up by graph and width."""
    cases = grouped(in_given_order(plain(rows)), "graph", "scale")
    figure, axes = _panels(len(cases))
    for axis, case in zip(axes, cases, strict=True):
        ratios = {}
        for at_k in grouped(case, "k"):
            ours, theirs = _pair(at_k)
            if ours and theirs:
                ratios[f"{at_k[0]['k']}"] = ms(theirs) / ms(ours)
        heights = [ratio - 1 for ratio in ratios.values()]
        bars = axis.bar([*ratios], heights, bottom=1, color=_OURS)
        axis.bar_label(bars, [f"{ratio:.2f}" for ratio in ratios.values()])
        _speed_up(axis, graph_title(case[0]))
        axis.set_xlabel("K")
    return figure


def roofline(rows: Sequence[Row]) -> Figure:
    """The share of the speed limit that was reached, by graph and width."""
    colors = {OURS: _OURS, "fastest rival": _RIVAL}
    cases = grouped(in_given_order(plain(rows)), "graph", "scale")
    figure, axes = _panels(len(cases))
    for axis, case in zip(axes, cases, strict=True):
        for index, color in enumerate(colors.values()):
            best = {at_k[0]["k"]: _pair(at_k)[index] for at_k in grouped(case, "k")}
            reached = {k: row["limit_ms"] / ms(row) for k, row in best.items() if row}
            places = [[*best].index(k) + 0.4 * (index - 0.5) for k in reached]
            axis.bar(places, [*reached.values()], 0.4, color=color)
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set_xticks(range(len(best)), [str(k) for k in best])
        axis.set(title=graph_title(case[0]), xlabel="K")
    axes[0].set_ylabel("limit / measured time")
    _legend(figure, colors)
    return figure


def epoch(rows: Sequence[Row]) -> Figure:
    """The time of a training epoch by backend."""
    cases = grouped(rows, "graph", "scale", "k", "dtype")
    figure, axes = _panels(len(cases))
    for axis, case in zip(axes, cases, strict=True):
        measured = [row for row in case if row["ms"] is not None]
        colors = [_OURS if row["impl"] == OURS else _RIVAL for row in measured]
        bars = axis.bar([row["impl"] for row in measured], [row["ms"] for row in measured], color=colors)
        axis.bar_label(bars, [f"{row['ms']:.3g}" for row in measured])
        first = case[0]
        axis.set(title=f"{graph_title(first)}\nhidden {first['k']}, {first['dtype']}")
    axes[0].set_ylabel("ms per epoch")
    return figure


PICTURES: dict[str, tuple[str, Callable[[Sequence[Row]], Figure]]] = {
    "suite": ("suite.json", suite),
    "suite-roofline": ("suite.json", suite_roofline),
    "spmm": ("spmm.json", speed_up),
    "spmm-roofline": ("spmm.json", roofline),
    "sddmm": ("sddmm.json", speed_up),
    "sddmm-roofline": ("sddmm.json", roofline),
    "epoch": ("epoch.json", epoch),
}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plots", description=__doc__.partition("\n")[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, default=IMAGES)
    arguments = parser.parse_args(argv)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for folder in sorted(path for path in arguments.results.iterdir() if path.is_dir()):
        for name, (file, draw) in PICTURES.items():
            path = arguments.out / f"{name}-{folder.name}.svg"
            if not (folder / file).exists():
                print(f"no {folder.name}/{file}: {path.name} is not drawn")
                continue
            meta, rows = read(folder / file)
            with plt.rc_context(_STYLE):
                figure = draw(rows)
                figure.suptitle(f"{meta['device']}, commit {meta['commit'][:12]}", fontsize=8, color="gray")
                figure.savefig(path, metadata={"Date": None})
            plt.close(figure)
            print(f"wrote {path.name}")


def _panels(count: int) -> tuple[Figure, list[Axes]]:
    """Side by side on one scale."""
    figure, axes = plt.subplots(1, count, figsize=(0.6 + 2.4 * count, 3), squeeze=False, sharey=True)
    return figure, [*axes[0]]


def _speed_up(axis: Axes, title: str) -> None:
    axis.axhline(1, color="black", linewidth=0.8)
    axis.set_yscale("log")
    axis.yaxis.set_major_formatter("{x:g}")
    axis.yaxis.set_minor_formatter("{x:g}")
    axis.set_title(title)
    if axis.get_subplotspec().is_first_col():
        axis.set_ylabel("speed-up over the fastest rival")


def _legend(figure: Figure, colors: dict[str, str]) -> None:
    handles = [Patch(color=color, label=label) for label, color in colors.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)


def _pair(rows: Sequence[Row]) -> tuple[Row | None, Row | None]:
    """Our fastest row and the rivals', on the graph as it was given."""
    rows = [row for row in rows if not row.get("ordered")]
    return fastest(r for r in rows if r["impl"] == OURS), fastest(r for r in rows if r["impl"] != OURS)


if __name__ == "__main__":
    main()
