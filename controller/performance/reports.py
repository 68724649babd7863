"""Answers of the performance core to questions about ports."""

from __future__ import annotations

from typing import NamedTuple

from topology.graph import NodeKind


class PortReport(NamedTuple):
    """What is known of one port.

    Attributes
    ----------
    dpid, port_no, name, kind
        Which port, and the class of its switch.
    speed_bps
        Its capacity; 0 where unknown.
    present, link_up
        Whether the port is there, and its link.
    at_s
        When its last sample was received; None before the first.
    per_s
        Last rates in the order of `COUNTERS`; None where unknown.
    rx_utilisation_pct, tx_utilisation_pct
        Last utilisation; None where unknown.
    totals
        Counted since `since_s`, resets and wraps of the switch put right; None for a counter that the switch has not.
    since_s
        When the totals began: the first sample, or the last reset on request.
    reset_s
        When the switch's own counters were last seen to begin anew; None where never.
    discontinuities
        Discontinuities of this port so far.
    raised
        What is raised at the moment, such as ``rx_crc_err``.
    """

    dpid: int
    port_no: int
    name: str
    kind: NodeKind
    speed_bps: float
    present: bool
    link_up: bool
    at_s: float | None
    per_s: tuple[float | None, ...]
    rx_utilisation_pct: float | None
    tx_utilisation_pct: float | None
    totals: tuple[int | None, ...]
    since_s: float | None
    reset_s: float | None
    discontinuities: int
    raised: tuple[str, ...]


class HistogramReport(NamedTuple):
    """How the rates of a counter are distributed.

    Attributes
    ----------
    samples, zeros
        Rates counted, and how many of them were 0.
    buckets
        (lower, upper, count) of each bucket that is not empty, ascending; 1/s, upper exclusive.
    percentiles
        Percent (50, 90, 99, 99.9, 100) to rate; empty where nothing was counted. Off by at most a sixteenth.
    """

    samples: int
    zeros: int
    buckets: tuple[tuple[float, float, int], ...]
    percentiles: dict[float, float]


class ResetReport(NamedTuple):
    """A port whose counters began anew, or were set to 0 for reports."""

    time_s: float
    dpid: int
    port_no: int
    reason: str
