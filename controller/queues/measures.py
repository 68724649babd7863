"""What the queues of a switch send, drop and are offered, between two replies of queue statistics."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.performance.counters import UNSUPPORTED
from controller.performance.poller import EntriesSampled

ENTRIES_BOUND = 65536
"""Queues of one switch that are followed; a switch that tells more is not followed."""

TX_BYTES, TX_PACKETS, TX_ERRORS = range(3)
"""Columns of counters; Open vSwitch counts as errors what a queue drops."""


class QueueUse(NamedTuple):
    """What a queue sent, and packets that it dropped, in a second.

    Attributes
    ----------
    packet_bytes
        The mean size of the packets that it sent, 0 where it sent none.
    offered_bps
        What came to it: what it sent, and what it dropped if that was as large.
    """

    tx_bps: float
    tx_pps: float
    dropped_pps: float
    packet_bytes: float
    offered_bps: float

    @property
    def loss_pct(self) -> float:
        """The part of packets that was dropped."""
        came_pps = self.tx_pps + self.dropped_pps
        return 100 * self.dropped_pps / came_pps if came_pps > 0 else 0.0


def queue_use(tx_bps: float, tx_pps: float, dropped_pps: float) -> QueueUse:
    """Return what a queue sent and dropped, with what follows from it."""
    packet_bytes = tx_bps / 8 / tx_pps if tx_pps > 0 else 0.0
    return QueueUse(tx_bps, tx_pps, dropped_pps, packet_bytes, tx_bps + 8 * packet_bytes * dropped_pps)


class _Reply(NamedTuple):
    xid: int
    at_s: float
    keys: NDArray[np.uint64]
    counters: NDArray[np.uint64]
    duration_s: NDArray[np.float64]


class QueueMeter:
    """Follows the counters of the queues of all switches."""

    def __init__(self) -> None:
        self._before: dict[int, _Reply] = {}
        self._parts: dict[int, list[EntriesSampled]] = {}

    def forget(self, dpid: int) -> None:
        """Forget a switch."""
        self._before.pop(dpid, None)
        self._parts.pop(dpid, None)

    def measured(self, sampled: EntriesSampled) -> dict[int, dict[int, QueueUse]] | None:
        """Take a part of a reply; with its last, return by port and queue what sent or dropped anything.

        None where that is not known: it is the first reply, other queues are there than before, or there are more
        parts. Queues whose counters went back are left out.
        """
        parts = self._parts.setdefault(sampled.dpid, [])
        if parts and parts[0].xid != sampled.xid:
            parts.clear()
        parts.append(sampled)
        if sampled.more:
            return None
        del self._parts[sampled.dpid]
        entries = [part.entries for part in parts]
        now = _Reply(
            sampled.xid,
            sampled.at_s,
            np.concatenate([each.keys for each in entries]),
            np.concatenate([each.counters for each in entries]),
            np.concatenate([each.duration_s for each in entries]),
        )
        if len(now.keys) > ENTRIES_BOUND:
            self._before.pop(sampled.dpid, None)
            return None
        before = self._before.get(sampled.dpid)
        self._before[sampled.dpid] = now
        if before is None or not np.array_equal(before.keys, now.keys):
            return None
        return _uses(before, now)


def _uses(before: _Reply, now: _Reply) -> dict[int, dict[int, QueueUse]]:
    interval_s = now.duration_s - before.duration_s
    interval_s = np.where(np.isnan(interval_s), now.at_s - before.at_s, interval_s)
    is_known = (interval_s > 0) & (now.counters >= before.counters).all(axis=1)
    sent = now.counters - before.counters
    errors_known = (now.counters[:, TX_ERRORS] != UNSUPPORTED) & (before.counters[:, TX_ERRORS] != UNSUPPORTED)
    sent[~errors_known, TX_ERRORS] = 0
    rows = np.flatnonzero(is_known & sent.any(axis=1))
    per_s = sent[rows] / interval_s[rows, None]
    found: dict[int, dict[int, QueueUse]] = {}
    for (port_no, queue_id), (tx_bytes, packets, errors) in zip(now.keys[rows].tolist(), per_s.tolist(), strict=True):
        found.setdefault(port_no, {})[queue_id] = queue_use(8 * tx_bytes, packets, errors)
    return found
