"""What the poller sends to switches and gets from them, as whole OpenFlow messages."""

from __future__ import annotations

from typing import NamedTuple


class StatsReceived(NamedTuple):
    """One statistics reply as it came in, the whole OpenFlow message; `at_s` is the time of day in epoch seconds."""

    dpid: int
    ofp_version: int
    xid: int
    message: bytes
    at_s: float


class RequestStats(NamedTuple):
    """Send a statistics request, whole OpenFlow message, to a switch."""

    dpid: int
    message: bytes
