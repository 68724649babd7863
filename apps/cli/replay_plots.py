"""Plots of `vsrt emulate --replay`: by how much gaps differ from captured ones, and what receivers got."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from apps.cli.plots import COLOURS, SETTINGS, line_style, save_figures

SHORTEST_MS = 1e-4
SHOWN_RECEIVERS = 40
"""Those with the highest loss are shown of more."""


def write_replay_plots(folder: Path, result: Mapping[str, Any], title: str) -> list[Path]:
    """Write both plots of a result as PNG and SVG; return the files."""
    with mpl.rc_context(SETTINGS):
        figures = {
            "gap-errors": _gap_errors(result["replay"]["gap_errors"], title),
            "receivers": _receivers(result["receivers"], title),
        }
        return save_figures(folder, figures)


def _gap_errors(counts: Sequence[tuple[float, int]], title: str) -> Figure:
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    total = sum(count for _, count in counts)
    shares = [100 * passed / total for passed in accumulate(count for _, count in counts)]
    errors_ms = [max(SHORTEST_MS, 1000 * error_s) for error_s, _ in counts]
    axes.step(errors_ms, shares, where="post", **line_style(0))
    axes.set_xscale("log")
    axes.set_xlabel("difference from the captured gap, ms")
    axes.set_ylabel("gaps at or below, %")
    axes.set_ylim(0, 101)
    axes.set_title(f"{title}: gaps as they were sent")
    return figure


def _receivers(receivers: Sequence[Mapping[str, Any]], title: str) -> Figure:
    shown = sorted(receivers, key=lambda each: -each["lost_pct"])[:SHOWN_RECEIVERS]
    figure = Figure(figsize=(8, 2 + 0.3 * len(shown)), layout="constrained")
    axes = figure.subplots()
    places = range(len(shown))
    axes.barh(places, [each["sent"] for each in shown], 0.8, color="0.85", label="owed")
    axes.barh(places, [each["received"] for each in shown], 0.5, color=COLOURS[0], label="received")
    axes.set_yticks(places, [f"{each['host']} of {each['group']}" for each in shown])
    axes.invert_yaxis()
    axes.set_xlabel("packets")
    axes.set_title(f"{title}: receivers")
    figure.legend(loc="outside lower center", ncols=2)
    return figure
