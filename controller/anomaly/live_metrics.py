"""What is compared of ports and switches, made of the sums in their cells."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.anomaly.live_cells import LEAST_KNOWN, Cells
from controller.anomaly.live_members import titled
from controller.anomaly.peers.combination import Verdict
from controller.anomaly.peers.incidents import SILENT_SHARE
from controller.anomaly.peers.resample import moving_average
from controller.config.anomaly_settings import Anomaly
from controller.performance.counters import Counter as PortCounter

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

RX_PACKETS, TX_PACKETS, ERRORS, DROPPED, FIRST_PCT, SECOND_PCT = range(6)
QUANTITIES = 6
"""Of a port, the last two are the utilisation of both directions; of a switch the first of them is its CPU."""

WHOLE = 0.99
"""Packets at both ends of a cable are only told apart in cells that are known from beginning to end."""
MEDIAN_CELLS = 5
"""Odd; see `lost_pct`."""
SLACK = 1.5
"""So many times the usual difference of two cells; of Poisson traffic, two standard deviations."""
RECEIPT_S = 0.05
"""Samples have the time at which they were received, which is off by as much."""
LEAST_LAG = 5
LEAST_PACKETS = 100
"""Shares of fewer packets are shares of so many: a packet that is seen late is no loss."""


_PACKETS = [PortCounter.RX_PACKETS.column, PortCounter.TX_PACKETS.column]
_ERRORS = [PortCounter.RX_ERRORS.column, PortCounter.TX_ERRORS.column]
_DROPPED = [PortCounter.RX_DROPPED.column, PortCounter.TX_DROPPED.column]


class MetricSubject(StrEnum):
    """What a metric tells of."""

    IMPAIRMENT = "impairment"
    STRESS = "stress"
    LOAD = "load"
    SILENCE = "silence"


class Metric(NamedTuple):
    """A metric, what it tells of, and the settings that switch it on and that bound its bins from below."""

    name: str
    kind: MetricSubject
    watch: str
    least: str
    words: str


PORT_METRICS = (
    Metric(
        "lost_pct",
        MetricSubject.IMPAIRMENT,
        "lost",
        "lost_pct",
        "sends packets of which {:.3g} % are lost on the cable",
    ),
    Metric("errors_per_s", MetricSubject.IMPAIRMENT, "errors", "errors_per_s", "counts {:.3g} errors a second"),
    Metric("dropped_per_s", MetricSubject.STRESS, "drops", "dropped_per_s", "drops {:.3g} packets a second"),
    Metric("rx_utilisation_pct", MetricSubject.LOAD, "load", "utilisation_pct", "receives at {:.3g} % of its speed"),
    Metric("tx_utilisation_pct", MetricSubject.LOAD, "load", "utilisation_pct", "sends at {:.3g} % of its speed"),
    Metric(
        "silent_pct",
        MetricSubject.SILENCE,
        "silence",
        "silent_pct",
        "fell silent: it carries {:.3g} packets a second",
    ),
)
SWITCH_METRICS = (
    Metric("cpu_pct", MetricSubject.STRESS, "cpu", "cpu_pct", "uses {:.3g} % of its CPU"),
    Metric(
        "unforwarded_pct",
        MetricSubject.STRESS,
        "forwarding",
        "unforwarded_pct",
        "receives packets of which it does not send on {:.3g} %",
    ),
    Metric("packets_per_s", MetricSubject.LOAD, "load", "packets_per_s", "receives {:.4g} packets a second"),
)
METRICS_AT_MOST = max(len(PORT_METRICS), len(SWITCH_METRICS))


def cells_needed(settings: Anomaly) -> int:
    """Return how many cells the values of one window are made of."""
    return settings.window_samples + max(settings.smoothing_samples, LEAST_LAG) + MEDIAN_CELLS - 1


def port_amounts(per_s: Floats, utilisation_pct: Floats) -> Floats:
    """Return what is kept of samples of ports, (ports, `QUANTITIES`), from their rates and both utilisations."""
    amounts = np.empty((len(per_s), QUANTITIES))
    amounts[:, :ERRORS] = per_s[:, _PACKETS]
    amounts[:, ERRORS] = _sum(per_s[:, _ERRORS])
    amounts[:, DROPPED] = _sum(per_s[:, _DROPPED])
    amounts[:, FIRST_PCT:] = utilisation_pct
    return amounts


def port_values(
    cells: Cells, rows: Rows, far: Rows, paired: NDArray[np.int64], end: int, settings: Anomaly
) -> Floats:
    """Return the smoothed values of ports in the window that ends before cell `end`.

    Parameters
    ----------
    rows, far : NDArray[np.intp]
        (ports,): rows of the ports and of the other ends of their cables, -1 without one.
    paired : NDArray[np.int64]
        (ports,): from which cell on the cable is the same.

    Returns
    -------
    NDArray[np.float64]
        (`PORT_METRICS`, ports, window), NaN where not known. Of silence these are the packets per second of both
        directions, of ports to other switches, for `silent_pct`.
    """
    count = cells_needed(settings)
    sums, known = cells.sums(rows, end, count)
    found = np.full((len(PORT_METRICS), len(rows), settings.window_samples), np.nan)
    joined = np.flatnonzero(far >= 0)
    if len(joined):
        there, there_known = cells.sums(far[joined], end, count)
        same = np.arange(end - count, end) >= paired[joined, None]
        both = (known[joined] > WHOLE) & (there_known > WHOLE) & same
        sent = np.where(both, sums[TX_PACKETS, joined], np.nan)
        is_within = cells.within_late(rows[joined], end, count) | cells.within_late(far[joined], end, count)
        received = there[RX_PACKETS]
        found[0, joined] = lost_pct(sent, received, is_within, settings.window_samples, cells.interval_s)
    means = sums / np.where(known >= LEAST_KNOWN, known * cells.interval_s, np.nan)
    for metric, quantity in ((1, ERRORS), (2, DROPPED), (3, FIRST_PCT), (4, SECOND_PCT)):
        found[metric] = _smoothed(means[quantity], settings)
    found[5, joined] = _smoothed(means[RX_PACKETS, joined] + means[TX_PACKETS, joined], settings)
    return found


def switch_values(cells: Cells, rows: Rows, of_ports: list[Rows], end: int, settings: Anomaly) -> Floats:
    """Return the smoothed values of switches, as `port_values`; `of_ports` are the rows of each one's ports."""
    count = cells_needed(settings)
    sums, known = cells.sums(rows, end, count)
    found = np.full((len(SWITCH_METRICS), len(rows), settings.window_samples), np.nan)
    cpu = sums[FIRST_PCT] / np.where(known >= LEAST_KNOWN, known * cells.interval_s, np.nan)
    found[0] = _smoothed(cpu, settings)
    for index, ports in enumerate(of_ports):
        if len(ports):
            packets, share = cells.sums(ports, end, count)
            whole = packets / np.where(share >= LEAST_KNOWN, share, np.nan)
            received, sent = whole[RX_PACKETS].sum(axis=0), whole[TX_PACKETS].sum(axis=0)
            smooth_in, smooth_out = _smoothed(received[None], settings)[0], _smoothed(sent[None], settings)[0]
            floor = LEAST_PACKETS / settings.smoothing_samples
            found[1, index] = np.clip(100 * (smooth_in - smooth_out) / np.maximum(smooth_in, floor), 0, 100)
            found[2, index] = smooth_in / cells.interval_s
    return found


def lost_pct(sent: Floats, received: Floats, is_within: NDArray[np.bool_], window: int, interval_s: float) -> Floats:
    """Return which share of the packets sent into cables does not come out, in percent.

    The two ends are polled at different times, so a burst is seen sooner at one of them: the packets under way, sent
    less received since some moment, rise and fall back. A loss never falls back. So that sum stays as it was until a
    late poll has come, is taken through a running median, and its growth over the smoothing time is divided by what
    was sent in it. What polls at other times may still leave is as much as the packets of one cell usually differ
    from those of the next, and at most those of `RECEIPT_S`: so much of the growth is left out.

    Parameters
    ----------
    sent, received : NDArray[np.float64]
        (cables, cells): packets counted in each cell; NaN where either end is not known.
    is_within : NDArray[np.bool_]
        (cables, cells): whether the end of the cell is within a sample of either end that was polled late.
    window : int
        How many values to return.
    interval_s : float
        Length of a cell.

    Returns
    -------
    NDArray[np.float64]
        (cables, window), NaN where less than half of the time is known.
    """
    lag = sent.shape[1] - window - MEDIAN_CELLS + 1
    missing = sent - received
    known = ~np.isnan(missing)
    under_way = _held(np.cumsum(np.where(known, missing, 0.0), axis=1), is_within)
    steady = np.median(np.lib.stride_tricks.sliding_window_view(under_way, MEDIAN_CELLS, axis=1), axis=2)
    middle = slice(MEDIAN_CELLS // 2, -(MEDIAN_CELLS // 2))
    packets = np.cumsum(np.where(known, sent, 0.0), axis=1)[:, middle]
    times = np.cumsum(known, axis=1)[:, middle]
    grown, of = steady[:, lag:] - steady[:, :-lag], packets[:, lag:] - packets[:, :-lag]
    slack = SLACK * _median_of_known(np.abs(np.diff(sent, axis=1)))
    slack = np.nan_to_num(slack + RECEIPT_S / interval_s * np.fmax.reduce(sent, axis=1))[:, None]
    enough = 2 * (times[:, lag:] - times[:, :-lag]) >= lag
    return np.where(enough, np.maximum(0.0, 100 * (grown - slack) / np.maximum(of, LEAST_PACKETS)), np.nan)


def silent_pct(packets_per_s: Floats, usual_per_s: Floats, settings: Anomaly) -> Floats:
    """Return how much of what ports usually carry is missing, in percent; 0 where they carry a tenth of it or more.

    Parameters
    ----------
    packets_per_s : NDArray[np.float64]
        (ports, window), smoothed.
    usual_per_s : NDArray[np.float64]
        (ports,), 0 where not known.

    Returns
    -------
    NDArray[np.float64]
        (ports, window), NaN where not known or where it is usual that fewer than `LEAST_PACKETS` pass in the
        smoothing time.
    """
    smoothing_s = settings.smoothing_samples * settings.interval_s
    usual = np.where(usual_per_s * smoothing_s < LEAST_PACKETS, np.nan, usual_per_s)
    share = packets_per_s / usual[:, None]
    return np.where(share < SILENT_SHARE, 100 * (1 - share), np.where(np.isnan(share), np.nan, 0.0))


def kind_of_fault(metrics: tuple[Metric, ...], anomalous: NDArray[np.bool_]) -> Verdict:
    """Return the verdict from which metrics, (metrics,), were anomalous for long enough.

    Errors and losses on a cable are a component's fault whatever the load. Drops and CPU are one where the load is
    like the peers', else a difference in load: as latency and throughput in Kasick et al., 4.1. Silence is a
    difference in load too: what a port carried may have gone elsewhere, or have ended.
    """
    kinds = {metric.kind for metric, is_out in zip(metrics, anomalous.tolist(), strict=False) if is_out}
    if MetricSubject.IMPAIRMENT in kinds:
        return "component fault"
    if kinds & {MetricSubject.LOAD, MetricSubject.SILENCE}:
        return "load difference"
    return "component fault" if MetricSubject.STRESS in kinds else "not told"


def described(member: str, metric: Metric, value: float, others: float, peers: int) -> str:
    """Return in words what a member does and its `peers` peers, whose median is `others`, do not."""
    text = f"{titled(member)} {metric.words.format(value)}"
    if not peers:
        return f"{text}, unlike in its own past."
    return f"{text}; of its {peers} peers the median is {others:.3g}."


def middle(values: Floats) -> float:
    """Return the median of what is known, NaN where nothing is."""
    known = values[~np.isnan(values)]
    return float(np.median(known)) + 0.0 if len(known) else float("nan")


def _sum(counters: Floats) -> Floats:
    """Return the sum of what is known of counters, (n, 2); NaN where nothing is."""
    known = ~np.isnan(counters)
    return np.where(known.any(axis=1), np.where(known, counters, 0.0).sum(axis=1), np.nan)


def _median_of_known(values: Floats) -> Floats:
    """Return the median of each row, NaN where nothing is known."""
    found = np.full(len(values), np.nan)
    known = ~np.isnan(values).all(axis=1)
    found[known] = np.nanmedian(values[known], axis=1)
    return found


def _held(values: Floats, is_within: NDArray[np.bool_]) -> Floats:
    """Return values, (rows, cells), with the one before in the place of each that does not count.

    At the beginning it is the first that counts.
    """
    if not is_within.any():
        return values
    cells = np.arange(values.shape[1])
    before = np.maximum.accumulate(np.where(is_within, -1, cells), axis=1)
    return np.take_along_axis(values, np.where(before < 0, np.argmin(is_within, axis=1)[:, None], before), axis=1)


def _smoothed(values: Floats, settings: Anomaly) -> Floats:
    return moving_average(values, settings.smoothing_samples)[:, -settings.window_samples :]
