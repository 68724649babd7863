"""Plot of `vsrt allocate whatif`: how evenly ports are used over the day."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from apps.cli.plots import SETTINGS, line_style, save_figures
from controller.allocation.whatif import Spread


def write_plot(folder: Path, spreads: Mapping[str, Spread], interval_s: float) -> list[Path]:
    """Write the plot as PNG and SVG; return the files."""
    with mpl.rc_context(SETTINGS):
        return save_figures(folder, {"port-spread": draw(spreads, interval_s)})


def draw(spreads: Mapping[str, Spread], interval_s: float) -> Figure:
    """Draw the 99th percentile over the mean, and the Gini coefficient, of the ports at each poll."""
    figure = Figure(figsize=(9, 6), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    for number, (name, spread) in enumerate(spreads.items()):
        hours = np.arange(len(spread.gini)) * interval_s / 3600
        mean = spread.utilisation_pct.mean(axis=1)
        busiest = np.percentile(spread.utilisation_pct, 99, axis=1)
        ratio = np.divide(busiest, mean, out=np.zeros_like(mean), where=mean > 0)
        upper.plot(hours, ratio, label=name, **line_style(number))
        lower.plot(hours, spread.gini, label=name, **line_style(number))
    upper.set_ylabel("99th percentile / mean")
    lower.set_ylabel("Gini coefficient")
    lower.set_xlabel("hours")
    for axes in (upper, lower):
        axes.set_ylim(bottom=0)
    figure.legend(*upper.get_legend_handles_labels(), loc="outside lower center", ncols=len(spreads))
    figure.suptitle("Spread of port utilisation (lower is more even)", fontsize=13)
    return figure
