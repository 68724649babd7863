"""Plots of `vsrt normalcy`: bounds over a series and ahead of it, scores under it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from apps.cli.plots import COLOURS, SETTINGS, save_figures
from controller.anomaly.normalcy.result import SeriesNormalcy
from controller.anomaly.normalcy.series import Series
from controller.anomaly.normalcy.settings import DAY_S
from controller.anomaly.series import LARGEST

Floats = NDArray[np.float64]
NORMAL, OUTSIDE, BOUND = COLOURS[0], COLOURS[1], COLOURS[2]
DATES: Any = {**SETTINGS, "date.converter": "concise"}
SHOWN_PERIODS, SHOWN_DAYS = 4, 14
"""How much of a series its plot shows: the longer of the two."""


def write_plots(folder: Path, found: Sequence[tuple[str, Series, SeriesNormalcy]]) -> list[Path]:
    """Write the bounds over every series; return the files."""
    figures: dict[str, Figure] = {}
    with mpl.rc_context(DATES):
        for title, series, normalcy in found:
            figures[_unused(f"normalcy-{_file_name(title)}", figures)] = bounds_over(title, series, normalcy)
        return save_figures(folder, figures)


def write_score_plot(folder: Path, title: str, at_s: Floats, values: Floats, scores: Floats) -> list[Path]:
    """Write the scores under a series; return the files."""
    with mpl.rc_context(DATES):
        return save_figures(folder, {f"scores-{_file_name(title)}": scores_under(title, at_s, values, scores)})


def bounds_over(title: str, series: Series, normalcy: SeriesNormalcy) -> Figure:
    """Draw the latest periods of a series with its bounds, which go on for a period or a day, and what is outside."""
    figure = Figure(figsize=(12, 5), layout="constrained")
    axes = figure.subplots()
    if len(series):
        end_s = float(series.at_s[-1])
        shown_s = max(SHOWN_PERIODS * normalcy.period_s, SHOWN_DAYS * DAY_S)
        series = series.part(series.at_s >= end_s - shown_s)
        axes.plot(_dates(series.at_s), series.values, color=NORMAL, linewidth=0.8, label="series")
    if len(series) and normalcy.bounds is not None:
        start_s = max(float(series.at_s[0]), -np.inf if normalcy.since_s is None else normalcy.since_s)
        slot_s = normalcy.bounds.slot_s
        at_s, lower, upper = normalcy.project(start_s - slot_s, end_s + (normalcy.period_s or DAY_S))
        edges = _dates(np.append(at_s, at_s[-1] + slot_s))
        low, high = np.append(lower, lower[-1]), np.append(upper, upper[-1])
        axes.fill_between(edges, low, high, step="post", color=BOUND, alpha=0.25, linewidth=0, label="normal")
        for level in (low, high):
            axes.step(edges, level, where="post", color=BOUND, linewidth=0.8)
        outside = (normalcy.bounds.outside(series.at_s, series.values) != 0) & (series.at_s >= start_s)
        axes.plot(
            _dates(series.at_s[outside]), series.values[outside], ".", color=OUTSIDE, markersize=4, label="outside"
        )
        axes.axvline(_dates(np.array([end_s]))[0], color="0.4", linewidth=1, linestyle=":")
        axes.margins(x=0.01)
        figure.legend(loc="outside lower center", ncols=3)
    axes.set_xlabel("time, UTC")
    period = f"period {normalcy.period_s / DAY_S:g} d" if normalcy.periodic else "no period"
    axes.set_title(f"{title}: {normalcy.category}, {period}\n{normalcy.reason}", fontsize=11)
    axes.set_ylabel("value")
    return figure


def scores_under(title: str, at_s: Floats, values: Floats, scores: Floats) -> Figure:
    """Draw a series and, under it, the score of every point."""
    figure = Figure(figsize=(12, 6), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    order = np.argsort(at_s, kind="stable")
    at = _dates(at_s[order])
    shown = np.where(np.abs(values[order]) <= LARGEST, values[order], np.nan)
    upper.plot(at, shown, color=NORMAL, linewidth=0.8)
    scored = scores[order] > 0
    lower.vlines(at[scored], 0, scores[order][scored], color=OUTSIDE, linewidth=1.2)
    lower.set_ylim(0, 1)
    lower.set_ylabel("anomaly score")
    upper.set_ylabel("value")
    upper.set_title(title, fontsize=11)
    lower.set_xlabel("time, UTC")
    return figure


def _dates(at_s: Floats) -> NDArray[np.datetime64]:
    return (at_s * 1e3).astype("datetime64[ms]")


def _file_name(title: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", title).strip("-.") or "series"


def _unused(name: str, taken: dict[str, Figure]) -> str:
    number, wanted = 2, name
    while name in taken:
        name = f"{wanted}-{number}"
        number += 1
    return name
