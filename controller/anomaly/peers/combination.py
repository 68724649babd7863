"""From the scores of several metrics to one per member, and to what kind of fault they speak of."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Verdict = Literal["component fault", "load difference", "not told"]

_LATENCY = re.compile(r"(?:^|[^a-z])(?:await|svctm|latency|delay|rtt|jitter|avgqu-sz|aqu-sz)(?:$|[^a-z])")
_THROUGHPUT = re.compile(
    r"(?:^|[^a-z])(?:tps|rd_sec|wr_sec|[rwd]?kb|[rt]xkb|[rt]xpck|bps|pps|bytes|octets|packets|pckts?|rate|throughput|iops|load)(?:$|[^a-z])|/s$"
)
_FAILURES = re.compile(r"error|drop|discard|fail|lost|loss")
_RATE = re.compile(r"/s$|rate|per[-_ ]s|%|pct|percent|ratio")


def combined(ratios: Sequence[Floats], share: float, ratio_max: float) -> Floats:
    """Return one score per window and member: the mean over the metrics that are furthest out.

    Parameters
    ----------
    ratios : sequence of NDArray[np.float64]
        One array per metric, (windows, members) each, NaN where the metric says nothing.
    share : float
        Share of the metrics that the mean is over, at least one: of few metrics it is the maximum, while among
        hundreds a single one that is out by chance does not decide. It is a share of those known of the member that
        has most of them in the window, so that the mean is over the same number for all (where a member has fewer,
        over all it has): the few furthest of few are otherwise further out than the many furthest of many.
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
    wanted = np.ceil(known.max(axis=1, keepdims=True) * share - 1e-9)
    taken = np.maximum(1, np.minimum(wanted, known)).astype(np.int64)
    total = np.cumsum(np.where(np.isnan(ordered), 0.0, ordered), axis=0)
    mean = np.take_along_axis(total, (taken - 1)[None], axis=0)[0] / taken
    return np.where(known > 0, mean, np.nan)


def kind_of(metric: str) -> Literal["latency", "throughput", "other"]:
    """Return what a metric's name says it measures."""
    name = metric.lower()
    if _LATENCY.search(name):
        return "latency"
    return "throughput" if _THROUGHPUT.search(name) and not _FAILURES.search(name) else "other"


def counts_failures(metric: str) -> bool:
    """Say whether a metric's name says that it counts failures: "output-drops" does, "rxdrop/s" is a rate."""
    name = metric.lower()
    return bool(_FAILURES.search(name)) and not _RATE.search(name)


def verdict(scores: Mapping[str, float]) -> Verdict:
    """Return what kind of fault a member has, from a score of each of its metrics over the time of the fault.

    Source: Kasick et al., 4.1: latency that is anomalous where throughput is not indicates a component-level problem;
    with throughput it is a difference in load. "not told" where either kind is missing or neither is anomalous.
    """
    latency = [score for metric, score in scores.items() if kind_of(metric) == "latency"]
    throughput = [score for metric, score in scores.items() if kind_of(metric) == "throughput"]
    if not latency or not throughput or max(*latency, *throughput) <= 1:
        return "not told"
    return "load difference" if max(throughput) > 1 else "component fault"
