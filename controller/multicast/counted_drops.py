"""How many frames entries of one cookie have dropped, read switch by switch, seldom where they drop nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from controller.effects import Effect
from controller.events import FlowStatsReceived
from controller.kernel.deadlines import Deadlines
from controller.rules.installer import Installer
from controller.rules.lowering import LOWERINGS
from controller.rules.model import FlowKey

COUNT_INTERVAL_S, QUIET_INTERVAL_S = 10.0, 60.0
"""Between two readings of a switch: of one that has dropped some since it was read last, and of others. None takes
longer than the policy's check of all entries does."""

READINGS_PER_S, BURST_S = 20.0, 1.0
"""Of all switches together, and for how long what was left of that may be made up for; where there are more than
1,200 that drop nothing, each is read less often."""

_WHOLE_COOKIE = (1 << 64) - 1


class CountedDrops:
    """Reads the counters of the entries that have a cookie.

    An entry that is older than this controller has counted before: what it had by then is told nobody again.
    """

    def __init__(self, installer: Installer, cookie: int) -> None:
        self._installer = installer
        self._cookie = cookie
        self._watched: set[int] = set()
        self._due: Deadlines[int] = Deadlines()
        self._free_s = float("-inf")
        self._began_s: float | None = None
        self._polls: dict[int, int] = {}
        self._counts: dict[int, dict[FlowKey, int]] = {}
        self._count_interval_s, self._quiet_interval_s = COUNT_INTERVAL_S, QUIET_INTERVAL_S

    def use_check_interval(self, interval_s: float, now: float) -> None:
        """Read each switch at least as often as all its entries are read; 0 is for entries that are not read."""
        longest_s = interval_s or QUIET_INTERVAL_S
        self._count_interval_s = min(COUNT_INTERVAL_S, longest_s)
        self._quiet_interval_s = min(QUIET_INTERVAL_S, longest_s)
        for dpid in self._watched:
            self._due.set_sooner(dpid, now + self._quiet_interval_s)

    def switch_connected(self, dpid: int, now: float) -> None:
        """Read a switch from now on."""
        if self._began_s is None:
            self._began_s = now
        if dpid not in self._watched:
            self._watched.add(dpid)
            self._due.set(dpid, now + self._count_interval_s)

    def switch_disconnected(self, dpid: int) -> None:
        """Ask a switch nothing until it is back; what it counted before is not counted again."""
        self._polls.pop(dpid, None)

    def next_deadline(self) -> float | None:
        """Return when a switch is read next, None for never."""
        if not self._watched:
            return None
        due_s = self._due.next()
        return None if due_s is None else max(due_s, self._free_s)

    def on_deadline(self, now: float) -> Iterator[Effect]:
        """Ask the switches that are due."""
        while self._free_s <= now and (dpid := next(self._due.due(now), None)) is not None:
            request = self._installer.read_flows(dpid, self._cookie, _WHOLE_COOKIE)
            if request is None:
                self._watched.discard(dpid)
                continue
            self._free_s = max(self._free_s, now - BURST_S) + 1 / READINGS_PER_S
            self._due.set(dpid, now + self._quiet_interval_s)
            self._polls[dpid] = request.xid
            yield request

    def owns_poll(self, event: FlowStatsReceived) -> bool:
        """Tell whether a statistics reply answers a request of these."""
        return self._polls.get(event.dpid) == event.xid

    def counted(self, event: FlowStatsReceived, now: float) -> Counter[FlowKey]:
        """Return what a switch has dropped since its last answer, by entry."""
        dpid = event.dpid
        reply = LOWERINGS[event.ofp_version].decode_flow_stats(event.message, self._cookie, _WHOLE_COOKIE)
        counts = self._counts.setdefault(dpid, {})
        dropped = Counter[FlowKey]()
        for entry in reply.entries:
            if entry.packet_count is None or entry.foreign:
                continue
            key, count = entry.rule.key, entry.packet_count
            before = counts.get(key)
            if before is None:
                is_older = self._began_s is not None and entry.duration_s > now - self._began_s
                before = count if is_older else 0
            counts[key] = count
            if count != before:
                dropped[key] += count - (before if before < count else 0)
        if dropped:
            self._due.set(dpid, now + self._count_interval_s)
        return dropped
