"""How many frames with a VLAN tag the switches have dropped, at ports that the policy does not put into the VLAN."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from controller.effects import Effect, Notice
from controller.events import FlowStatsReceived
from controller.kernel.notices import NoticeLimiter
from controller.multicast.counted_drops import CountedDrops
from controller.rules.cookies import VLAN_TAGGED_COOKIE
from controller.rules.installer import Installer

NOTICE_INTERVAL_S = 600.0

PORTS_TOLD = 4
"""Ports that an event names, those that dropped most."""

NO_PORT = 0
"""Stands for the port where an entry is about several: of frames with two tags, or where no port is in a VLAN."""

VLAN_TAGGED = "vlan-tagged"
"""The counter, and the reason for which a tagged frame that reaches the controller is ignored."""


class TaggedFrames(CountedDrops):
    """Tells of the entries that drop tagged frames.

    Entries are by port where ports are in VLANs, so that the port is told.
    """

    def __init__(self, installer: Installer, counters: Counter[str]) -> None:
        super().__init__(installer, VLAN_TAGGED_COOKIE)
        self._counters = counters
        self._limiter = NoticeLimiter(NOTICE_INTERVAL_S)

    def flow_stats_received(self, event: FlowStatsReceived, now: float) -> Iterable[Effect]:
        """Count what a switch has dropped since its last answer; one notice a switch in `NOTICE_INTERVAL_S`."""
        dpid, by_port = event.dpid, Counter[int]()
        for key, count in self.counted(event, now).items():
            by_port[key.match.in_port or NO_PORT] += count
        dropped = by_port.total()
        if not dropped:
            return
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
