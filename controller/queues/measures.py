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


class SwitchUses(NamedTuple):
    """What the queues of a switch sent and dropped.

    Attributes
    ----------
    keys
        Port and queue of each row, shape (rows, 2); the same array as before where no other queues are there.
    values
        The fields of `QueueUse` by row, shape (5, rows + 1); all 0 where a queue was silent, or nothing is known of
        it. The last column, which is 0, is for queues that have no row.
    """

    keys: NDArray[np.uint64]
    values: NDArray[np.float64]


def switch_uses(
    keys: NDArray[np.uint64],
    tx_bps: NDArray[np.float64],
    tx_pps: NDArray[np.float64],
    dropped_pps: NDArray[np.float64],
) -> SwitchUses:
    """Return what the queues of a switch sent and dropped, each an array by row, with what follows from it."""
    values = np.zeros((len(QueueUse._fields), len(keys) + 1))
    packet_bytes = values[3, :-1]
    np.divide(tx_bps / 8, tx_pps, out=packet_bytes, where=tx_pps > 0)
    offered_bps = tx_bps + 8 * packet_bytes * dropped_pps
    for row, column in zip(values, (tx_bps, tx_pps, dropped_pps, packet_bytes, offered_bps), strict=True):
        row[:-1] = column
    return SwitchUses(keys, values)


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

    def measured(self, sampled: EntriesSampled) -> SwitchUses | None:
        """Take a part of a reply; with its last, return what the queues of the switch sent and dropped.

        None where that is not known: it is the first reply, other queues are there than before, or there are more
        parts. Of queues whose counters went back nothing is known.
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
        self._before[sampled.dpid] = now = now._replace(keys=before.keys)
        return _uses(before, now)


def _uses(before: _Reply, now: _Reply) -> SwitchUses:
    interval_s = now.duration_s - before.duration_s
    interval_s = np.where(np.isnan(interval_s), now.at_s - before.at_s, interval_s)
    is_known = (interval_s > 0) & (now.counters >= before.counters).all(axis=1)
    sent = now.counters - before.counters
    errors_known = (now.counters[:, TX_ERRORS] != UNSUPPORTED) & (before.counters[:, TX_ERRORS] != UNSUPPORTED)
    sent[~errors_known, TX_ERRORS] = 0
    per_s = np.zeros(sent.shape)
    np.divide(sent, interval_s[:, None], out=per_s, where=is_known[:, None])
    tx_bytes, packets, errors = per_s.T
    return switch_uses(now.keys, 8 * tx_bytes, packets, errors)
