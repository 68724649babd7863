"""Plots of `vsrt simulate`: link utilisation, its maximum over the number of groups, and tree sizes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("MPLBACKEND", "Agg")

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

from apps.cli.common import OperationFailed
from apps.cli.whole_files import write_whole

if TYPE_CHECKING:
    from apps.cli.simulation_runs import MaximumByCount, SeedRun

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Told apart by people with any kind of colour vision: M. Okabe, K. Ito, "Color universal design", 2008."""

DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (6, 1.5, 1.5, 1.5)), (0, (3, 1, 1, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
FORMATS = ("png", "svg")
UTILISATION_TICKS = (0, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
LINEAR_UP_TO_PCT = 10
BUSIEST_SHARE = 0.05
SETTINGS: Any = {
    "font.size": 11,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "vsrt",
}


def write_plots(folder: Path, runs: Sequence[SeedRun], by_count: MaximumByCount, topology: str) -> list[Path]:
    """Write every plot as PNG and SVG, each whole or not at all; return the files."""
    title = f"{topology}, {len(runs[0].groups):,} groups" + (f", {len(runs)} seeds" if len(runs) > 1 else "")
    with mpl.rc_context(SETTINGS):
        figures = {
            "utilisation-cdf": utilisation_cdf(runs, title),
            "maximum-by-groups": maximum_by_groups(by_count, f"{topology}, seed {runs[0].seed}"),
            "tree-sizes": tree_sizes(runs, title),
        }
        return save_figures(folder, figures)


def save_figures(folder: Path, figures: Mapping[str, Figure]) -> list[Path]:
    """Write figures by their names into a folder, made where it is missing, as PNG and SVG; return the files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise OperationFailed(f"{folder}: it is there, and no folder") from None
    except OSError as error:
        raise OperationFailed(f"{error.filename or folder}: {error.strerror}") from None
    return [save_figure(figure, folder / f"{name}.{kind}") for name, figure in figures.items() for kind in FORMATS]


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure whole or not at all; the file's name tells the format."""
    kind = path.suffix[1:]
    metadata = {"Date": None} if kind == "svg" else None
    write_whole(path, lambda beside: figure.savefig(beside, format=kind, dpi=150, metadata=metadata))
    return path


def line_style(number: int) -> dict[str, Any]:
    """Return how the line of the given number is drawn."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": DASHES[number % len(DASHES)],
        "linewidth": 2,
        "zorder": 3 - 0.01 * number,
    }


def utilisation_cdf(runs: Sequence[SeedRun], title: str) -> Figure:
    """Draw the share of links, over all runs, that carry no more than a given utilisation; the busiest ones again."""
    figure = Figure(figsize=(11, 5), layout="constrained")
    whole, busiest = figure.subplots(1, 2, width_ratios=(3, 2))
    highest = 100.0
    for number, name in enumerate(runs[0].algorithms):
        values = np.sort(np.concatenate([run.algorithms[name].utilisation_pct for run in runs]))
        highest = max(highest, float(values.max(initial=0.0)))
        shares = np.arange(1, len(values) + 1) / max(1, len(values))
        x, y = np.concatenate(([0], values)), np.concatenate(([0], shares))
        for axes in (whole, busiest):
            axes.step(x, y, where="post", label=name, **line_style(number))
    for axes, lowest in ((whole, 0), (busiest, LINEAR_UP_TO_PCT)):
        axes.axvline(100, color="0.4", linewidth=1)
        axes.set_xscale("symlog", linthresh=LINEAR_UP_TO_PCT, linscale=1)
        shown = [tick for tick in UTILISATION_TICKS if lowest <= tick <= highest * 1.1]
        axes.set_xticks(shown, [str(tick) for tick in shown], minor=False)
        axes.set_xticks([], minor=True)
        axes.set_xlim(lowest, highest * 1.1)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=""))
    whole.set_ylim(0, 1.01)
    busiest.set_ylim(1 - BUSIEST_SHARE, 1 + BUSIEST_SHARE / 40)
    whole.set_ylabel("links at or below, %")
    whole.set_title("all links", fontsize=11)
    busiest.set_title(f"the busiest {100 * BUSIEST_SHARE:g} % of the links", fontsize=11)
    figure.supxlabel(
        f"utilisation of the link, % of its capacity (logarithmic from {LINEAR_UP_TO_PCT} % on)", fontsize=11
    )
    figure.suptitle(f"Utilisation of the links between switches\n{title}", fontsize=13)
    whole.legend(loc="lower right")
    return figure


def maximum_by_groups(by_count: MaximumByCount, title: str) -> Figure:
    """Draw the utilisation of the busiest link over the number of groups."""
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for number, (name, values) in enumerate(by_count.algorithms.items()):
        marker = MARKERS[number % len(MARKERS)]
        axes.plot(by_count.counts, values, label=name, marker=marker, markersize=5, **line_style(number))
    axes.plot(by_count.counts, by_count.lower_bound, label="lower bound, any trees", color="0.2", linewidth=1)
    axes.axhline(100, color="0.4", linewidth=1)
    axes.annotate("capacity", (1.0, 100), xycoords=("axes fraction", "data"), ha="right", va="bottom", color="0.3")
    axes.set_xscale("log")
    positive = [v for values in (*by_count.algorithms.values(), by_count.lower_bound) for v in values if v > 0]
    if positive:
        axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
    axes.set_xlabel("groups")
    axes.set_ylabel("utilisation of the busiest link, %")
    axes.set_title(f"Busiest link over the number of groups\n{title}")
    axes.legend(loc="upper left")
    return figure


def tree_sizes(runs: Sequence[SeedRun], title: str) -> Figure:
    """Draw how many groups have trees of each size, one panel per algorithm with the first one behind it."""
    names = list(runs[0].algorithms)
    figure = Figure(figsize=(8, 1.2 + 1.35 * len(names)), layout="constrained")
    panels = figure.subplots(len(names), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    sizes = {name: np.concatenate([run.algorithms[name].tree_links for run in runs]) for name in names}
    largest = int(max((int(values.max(initial=0)) for values in sizes.values()), default=0))
    width = max(1, -(-largest // 60))
    edges = np.arange(-0.5, largest + width + 0.5, width)
    for number, (name, axes) in enumerate(zip(names, panels, strict=True)):
        share = np.full(len(sizes[name]), 100 / max(1, len(sizes[name])))
        axes.hist(sizes[name], edges, weights=share, color=COLOURS[number % len(COLOURS)], alpha=0.75)
        if number:
            axes.hist(sizes[names[0]], edges, weights=share, histtype="step", color="0.15", linewidth=1)
        axes.set_title(f"{name}, mean {sizes[name].mean():.2f}", loc="left", fontsize=10)
    panels[-1].set_xlabel("links between switches in the tree")
    figure.supylabel("groups, %", fontsize=11)
    outline = f"; outline: {names[0]}" if len(names) > 1 else ""
    figure.suptitle(f"Sizes of trees{outline}\n{title}", fontsize=13)
    return figure
