"""How many frames with a VLAN tag the switches have dropped, at ports that the policy does not put into the VLAN."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from controller.effects import Effect, Notice
from controller.events import FlowStatsReceived
from controller.kernel.deadlines import Deadlines
from controller.kernel.notices import NoticeLimiter
from controller.rules.cookies import VLAN_TAGGED_COOKIE
from controller.rules.installer import Installer
from controller.rules.lowering import LOWERINGS
from controller.rules.model import FlowKey

COUNT_INTERVAL_S, QUIET_INTERVAL_S = 10.0, 60.0
"""Between two readings of a switch: of one that has dropped some since it was read last, and of others. None takes
longer than the policy's check of all entries does."""

READINGS_PER_S, BURST_S = 20.0, 1.0
"""Of all switches together, and for how long what was left of that may be made up for; where there are more than
1,200 that drop nothing, each is read less often."""

NOTICE_INTERVAL_S = 600.0

PORTS_TOLD = 4
"""Ports that an event names, those that dropped most."""

NO_PORT = 0
"""Stands for the port where an entry is about several: of frames with two tags, or where no port is in a VLAN."""

VLAN_TAGGED = "vlan-tagged"
"""The counter, and the reason for which a tagged frame that reaches the controller is ignored."""

_WHOLE_COOKIE = (1 << 64) - 1


class TaggedFrames:
    """Reads the counters of the entries that drop tagged frames, switch by switch.

    An entry that is older than this controller has counted before: what it had by then is told nobody again. Entries
    are by port where ports are in VLANs, so that the port is told.
    """

    def __init__(self, installer: Installer, counters: Counter[str]) -> None:
        self._installer = installer
        self._counters = counters
        self._watched: set[int] = set()
        self._due: Deadlines[int] = Deadlines()
        self._free_s = float("-inf")
        self._began_s: float | None = None
        self._polls: dict[int, int] = {}
        self._counts: dict[int, dict[FlowKey, int]] = {}
        self._limiter = NoticeLimiter(NOTICE_INTERVAL_S)
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
        due_s = self._due.next()
        return None if due_s is None else max(due_s, self._free_s)

    def on_deadline(self, now: float) -> Iterable[Effect]:
        """Ask the switches that are due."""
        while self._free_s <= now and (dpid := next(self._due.due(now), None)) is not None:
            request = self._installer.read_flows(dpid, VLAN_TAGGED_COOKIE, _WHOLE_COOKIE)
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

    def flow_stats_received(self, event: FlowStatsReceived, now: float) -> Iterable[Effect]:
        """Count what a switch has dropped since its last answer; one notice a switch in `NOTICE_INTERVAL_S`."""
        dpid = event.dpid
        reply = LOWERINGS[event.ofp_version].decode_flow_stats(event.message, VLAN_TAGGED_COOKIE, _WHOLE_COOKIE)
        counts = self._counts.setdefault(dpid, {})
        by_port = Counter[int]()
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
                by_port[key.match.in_port or NO_PORT] += count - (before if before < count else 0)
        dropped = by_port.total()
        if not dropped:
            return
        self._due.set(dpid, now + self._count_interval_s)
        self._counters[VLAN_TAGGED] += dropped
        if self._limiter.passes(dpid, now):
            text = f"Switch {dpid} dropped {dropped} frames with a VLAN tag that their port is not to have"
            yield Notice(VLAN_TAGGED, f"{text}{_ports_of(dpid, by_port)}.", (("dpid", dpid),))


def _ports_of(dpid: int, by_port: Counter[int]) -> str:
    """Return which ports dropped how many, those that dropped most first; nothing where it is not known of any."""
    known = [(count, port_no) for port_no, count in by_port.items() if port_no != NO_PORT]
    if not known:
        return ""
    known.sort(key=lambda found: (-found[0], found[1]))
    told = [f"{count} at port {dpid}:{port_no}" for count, port_no in known[:PORTS_TOLD]]
    rest = by_port.total() - sum(count for count, _ in known[:PORTS_TOLD])
    return ": " + ", ".join([*told, f"{rest} elsewhere"] if rest else told)
