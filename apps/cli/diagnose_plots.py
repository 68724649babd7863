"""Plots of `vsrt diagnose`: the members of a group laid over each other, scores and persistence over time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from apps.cli.plots import SETTINGS, line_style, save_figures
from controller.anomaly.peers.diagnosis import NEWCOMERS, Diagnosis, GroupDiagnosis
from controller.anomaly.peers.incidents import Faulty
from controller.anomaly.peers.resample import grid_over, is_counter, moving_average, rates, resample
from controller.anomaly.series import OrderedSeries, RawSeries, ordered

METRICS_DRAWN = 3
MARKED = 5
"""Members that are drawn in colours of their own at most."""
DENSE = 1500
"""More points than this along a plot are drawn as thin lines."""


def write_plots(folder: Path, found: Diagnosis, series: Sequence[RawSeries]) -> list[Path]:
    """Write the plots of every group as PNG and SVG, each whole or not at all; return the files."""
    written = []
    with mpl.rc_context({**SETTINGS, "date.converter": "concise"}):
        for number, group in enumerate(found.groups):
            clash = any(_file_name(other) == _file_name(group) for other in found.groups[:number])
            stem = f"{_file_name(group)}-{number}" if clash else _file_name(group)
            figures = {
                f"peers-{stem}": peers_overlaid(group, found, series),
                f"persistence-{stem}": persistence(group, found),
            }
            written += save_figures(folder, figures)
    return written


def _file_name(group: GroupDiagnosis) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", group.peer_group).strip("-.") or "group"


def peers_overlaid(group: GroupDiagnosis, found: Diagnosis, series: Sequence[RawSeries]) -> Figure:
    """Draw the metrics that tell most, all members over each other; the faulty in colour, their time shaded."""
    faulty = [one for one in found.faulty if one.member.peer_group == group.peer_group]
    names = _marked(group, faulty)
    metrics = _telling_metrics(group, faulty)
    figure = Figure(figsize=(11, 1.2 + 2.6 * len(metrics)), layout="constrained")
    panels = figure.subplots(len(metrics), 1, sharex=True, squeeze=False)[:, 0]
    for metric, axes in zip(metrics, panels, strict=True):
        drawn = _smoothed(group, metric, found, series)
        for member, (at, values) in drawn.items():
            if member not in names:
                axes.plot(at, values, color="0.6", linewidth=0.8, alpha=0.6, zorder=1)
        for number, member in enumerate(names):
            if member in drawn:
                axes.plot(*drawn[member], label=member, **_line_style(number, len(drawn[member][1])))
        _shade(axes, faulty, names)
        axes.set_title(metric, loc="left", fontsize=10)
    panels[-1].set_xlabel("time, UTC")
    if names:
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=MARKED, fontsize=9)
    count = len({one.member.name for one in faulty})
    shown = f", the {len(names)} furthest out in colour" if count > len(names) else ""
    figure.suptitle(f"{len(group.members)} members of {group.peer_group} laid over each other: {count} faulty{shown}")
    return figure


def persistence(group: GroupDiagnosis, found: Diagnosis) -> Figure:
    """Draw scores and accumulators over time: those of the most persistent members in colour."""
    figure = Figure(figsize=(11, 6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    at = _dates(found.ends_s)
    peaks = group.accumulators.max(axis=0, initial=0)
    order = [int(member) for member in np.argsort(-peaks, kind="stable")[:MARKED] if peaks[member] > 0]
    others = [member for member in range(len(group.members)) if member not in order]
    for axes, values in ((above, group.scores), (below, group.accumulators)):
        if others:
            axes.plot(at, values[:, others], color="0.6", linewidth=0.8, alpha=0.6, drawstyle="steps-post")
        for number, member in enumerate(order):
            style = _line_style(number, len(at))
            axes.plot(at, values[:, member], label=group.members[member], drawstyle="steps-post", **style)
    above.axhline(1, color="0.2", linewidth=1)
    above.annotate("threshold", (0.005, 1.0), xycoords=("axes fraction", "data"), ha="left", va="bottom", color="0.3")
    above.set_ylabel("score of the window")
    below.set_ylabel("accumulator, windows")
    below.set_xlabel("time, UTC")
    if order:
        figure.legend(*below.get_legend_handles_labels(), loc="outside lower center", ncols=MARKED, fontsize=9)
    figure.suptitle(f"Persistence of anomalies in {group.peer_group}")
    return figure


def _line_style(number: int, points: int) -> dict[str, Any]:
    """Return how the line of a marked member is drawn: thin and unbroken where dashes would run into one another."""
    style = line_style(number)
    return style if points <= DENSE else {**style, "linewidth": 0.9, "linestyle": "-", "alpha": 0.8}


def _marked(group: GroupDiagnosis, faulty: Sequence[Faulty]) -> list[str]:
    """Return the members that were faulty, those furthest out first."""
    names = dict.fromkeys(one.member.name for one in faulty)
    peaks = {name: float(np.nanmax(group.scores[:, group.members.index(name)])) for name in names}
    return sorted(names, key=lambda name: -peaks[name])[:MARKED]


def _telling_metrics(group: GroupDiagnosis, faulty: Sequence[Faulty]) -> list[str]:
    """Return the metrics furthest out in the faulty members, else the first."""
    peaks: dict[str, float] = {}
    for one in faulty:
        for metric, peak in one.metrics.items():
            peaks[metric] = max(peak, peaks.get(metric, 0.0))
    ordered_names = sorted(peaks, key=lambda metric: -peaks[metric])
    return (ordered_names or list(group.by_metric))[:METRICS_DRAWN]


def _smoothed(
    group: GroupDiagnosis, metric: str, found: Diagnosis, series: Sequence[RawSeries]
) -> dict[str, tuple[NDArray[Any], NDArray[np.float64]]]:
    """Return times and smoothed values of each member of the group."""
    tidy: dict[str, OrderedSeries] = {
        one.name.member: ordered(one)
        for one in series
        if one.name.metric == metric
        and one.name.member in group.members
        and one.name.peer_group == group.peer_group.removeprefix(NEWCOMERS)
    }
    if is_counter(metric, list(tidy.values())):
        tidy = {member: rates(one) for member, one in tidy.items() if len(one.at_s) > 1}
    tidy = {member: one for member, one in tidy.items() if len(one.at_s)}
    drawn = {}
    for member, one in tidy.items():
        grid = grid_over(float(one.at_s[0]), float(one.at_s[-1]), found.settings.interval_s)
        values = moving_average(resample(one, grid), found.settings.smoothing_samples)
        drawn[member] = (_dates(grid.ends_s), values)
    return drawn


def _shade(axes: Any, faulty: Sequence[Faulty], names: Sequence[str]) -> None:
    for one in faulty:
        if one.member.name in names:
            colour = line_style(names.index(one.member.name))["color"]
            start, end = _dates(np.array([one.first_s, one.last_s]))
            axes.axvspan(start, end, color=colour, alpha=0.12, zorder=0, linewidth=0)


def _dates(at_s: NDArray[np.float64]) -> NDArray[Any]:
    return np.asarray((at_s * 1e3).astype("datetime64[ms]"))
