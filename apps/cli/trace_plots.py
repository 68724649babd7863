"""Plots of `vsrt trace inspect`: rates over time, gaps, and sizes of the busiest groups of a capture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from apps.cli.plots import COLOURS, SETTINGS, line_style, save_figures
from controller.captures.arrivals import SIZE_BOUNDS, ArrivalTally
from controller.captures.figures import CaptureFigures
from controller.wire.addresses import format_ip

SHOWN_GROUPS = len(COLOURS)


def write_plots(folder: Path, figures: CaptureFigures, title: str) -> list[Path]:
    """Write every plot as PNG and SVG; return the files, none where nobody sends to a group."""
    busiest = sorted(figures.arrivals.items(), key=lambda item: (-item[1].size_bytes, item[0]))[:SHOWN_GROUPS]
    shown = [(format_ip(group), arrivals) for group, arrivals in busiest]
    if not shown:
        return []
    begin_s = figures.first_ns / 1e9
    draw: dict[str, Callable[[], Figure]] = {
        "rates": lambda: _rates(shown, begin_s, title),
        "gaps": lambda: _gaps(shown, title),
        "sizes": lambda: _sizes(shown, title),
    }
    with mpl.rc_context(SETTINGS):
        return save_figures(folder, {name: make() for name, make in draw.items()})


def _rates(shown: Sequence[tuple[str, ArrivalTally]], begin_s: float, title: str) -> Figure:
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots()
    for number, (name, arrivals) in enumerate(shown):
        course = arrivals.rate_course()
        at_s = [at - begin_s for at, _ in course]
        axes.step(at_s, [rate_bps / 1e6 for _, rate_bps in course], where="post", label=name, **line_style(number))
    axes.set_xlabel("seconds from the first frame")
    axes.set_ylabel("Mbit/s")
    axes.set_ylim(bottom=0)
    axes.set_title(f"{title}: rates")
    axes.legend()
    return figure


def _gaps(shown: Sequence[tuple[str, ArrivalTally]], title: str) -> Figure:
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots()
    for number, (name, arrivals) in enumerate(shown):
        counts = arrivals.gap_counts()
        total = sum(count for _, count in counts)
        passed = accumulate(count for _, count in counts)
        axes.step(
            [max(gap_s * 1000, 1e-4) for gap_s, _ in counts],
            [100 * count / total for count in passed],
            where="post",
            label=name,
            **line_style(number),
        )
    axes.set_xscale("log")
    axes.set_xlabel("gap between two frames, ms")
    axes.set_ylabel("gaps at or below, %")
    axes.set_ylim(0, 101)
    axes.set_title(f"{title}: gaps")
    axes.legend()
    return figure


def _sizes(shown: Sequence[tuple[str, ArrivalTally]], title: str) -> Figure:
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(shown)
    for number, (name, arrivals) in enumerate(shown):
        shares = [100 * count / arrivals.frame_count for count in arrivals.size_counts()]
        at = [place + width * (number - (len(shown) - 1) / 2) for place in range(len(shares))]
        axes.bar(at, shares, width, label=name, color=COLOURS[number])
    axes.set_xticks(range(len(SIZE_BOUNDS) + 1), [f"to {bound}" for bound in SIZE_BOUNDS] + ["more"])
    axes.set_xlabel("bytes of a frame with its check sequence")
    axes.set_ylabel("frames, %")
    axes.set_title(f"{title}: sizes")
    axes.legend()
    return figure
