"""From the scores of several metrics to one per member, and to what kind of fault they speak of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Verdict = Literal["component fault", "load difference", "not told"]

LATENCY_WORDS = ("await", "svctm", "latency", "delay", "rtt", "jitter", "queue", "qu-sz", "aqu")
THROUGHPUT_WORDS = ("tps", "rd_sec", "wr_sec", "kb/s", "/s", "bps", "pps", "bytes", "packets", "rate", "throughput")


def combined(ratios: Sequence[Floats], share: float, ratio_max: float) -> Floats:
    """Return one score per window and member: the mean over the metrics that are furthest out.

    Parameters
    ----------
    ratios : sequence of NDArray[np.float64]
        One array per metric, (windows, members) each, NaN where the metric says nothing.
    share : float
        Share of the metrics known that the mean is over, at least one: of few metrics it is the maximum, while among
        hundreds a single one that is out by chance does not decide.
    ratio_max : float
        One metric counts no more than this.

    Returns
    -------
    NDArray[np.float64]
        (windows, members); NaN where no metric says anything.
    """
    if len(ratios) == 1:
        return ratios[0]
    stacked = np.minimum(np.stack(ratios), ratio_max)
    known = (~np.isnan(stacked)).sum(axis=0)
    ordered = -np.sort(-stacked, axis=0)
    taken = np.maximum(1, np.ceil(known * share - 1e-9)).astype(np.int64)
    total = np.cumsum(np.where(np.isnan(ordered), 0.0, ordered), axis=0)
    mean = np.take_along_axis(total, (taken - 1)[None], axis=0)[0] / taken
    return np.where(known > 0, mean, np.nan)


def kind_of(metric: str) -> Literal["latency", "throughput", "other"]:
    """Return what a metric's name says it measures."""
    name = metric.lower()
    if any(word in name for word in LATENCY_WORDS):
        return "latency"
    return "throughput" if any(word in name for word in THROUGHPUT_WORDS) else "other"


def verdict(peaks: Mapping[str, float]) -> Verdict:
    """Return what kind of fault a member has, from the highest score of each of its metrics.

    Source: seed 004, 4.1: latency that is anomalous where throughput is not indicates a component-level problem; with
    throughput it is a difference in load. "not told" where either kind is missing or neither is anomalous.
    """
    latency = [score for metric, score in peaks.items() if kind_of(metric) == "latency"]
    throughput = [score for metric, score in peaks.items() if kind_of(metric) == "throughput"]
    if any(score > 1 for score in throughput):
        return "load difference"
    if throughput and any(score > 1 for score in latency):
        return "component fault"
    return "not told"
