"""Large flows of packets to one host: found by the counters of entries, each put on the least loaded equal path.

A flow is what the hosts of one switch send to one host: the counters of that switch's own entries for the host tell
it, so nothing is added to find it. Every switch with hosts is read every `POLL_S`. A flow that has more than a tenth
of the link by which it leaves its first switch in two polls one after the other is given the way whose fullest link
is least full (`controller.service_classes.elephants`), where that is emptier than the one it takes; one that is below
half of that in as many polls goes by its label again. Ways with links that the monitor has told nothing of are none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from controller.effects import Effect, Notice
from controller.events import FlowStatsReceived
from controller.kernel.deadlines import Deadlines
from controller.kernel.domains import OWN_DOMAIN, address_of, domain_of, in_domain
from controller.kernel.hashing import stable_hash
from controller.kernel.notices import NoticeLimiter
from controller.kernel.ports import End
from controller.multicast.events import LoadsMeasured
from controller.multicast.sender_polls import SenderPolls
from controller.rules.installer import Installer
from controller.rules.lowering import LOWERINGS
from controller.rules.model import FlowEntry, PushVlan, SetEthDst
from controller.rules.pipeline import UNICAST_TAG
from controller.service_classes.elephants import POLLS, SHARE, LargeFlows, least_loaded
from controller.service_classes.measures import LEAST_GAIN
from controller.service_classes.pool import FlowsUsed
from controller.unicast.destinations import Destination, HostLocation
from controller.unicast.pinned import FlowName, Stage, Way, equal_ways
from controller.unicast.routes import Routes
from controller.wire.addresses import format_mac
from topology.live import LiveFabric

POLL_S: Final = 10.0
"""Time between two readings of a switch."""

READINGS_PER_S: Final = 20.0
"""Of all switches together; where there are more than 200 with hosts, each is read less often."""

END_SHARE: Final = SHARE / 2
"""Part of its link below which a flow with a way of its own is large no more in a poll."""

FULL: Final = 0.95
"""Part of a link from which on what passes it counts as held up there."""

FRESH_MEASURES: Final = 2
"""Measures of a link after which they show all of a flow that came to it, or left it."""

WAYS_PER_TURN: Final = 256
"""Ways that are looked at in a turn of the loop: on flows that wait beyond, the next turns decide."""

_MASK: Final = 0xFFFF << 48

LARGE_FLOW = "large-flow"
LARGE_FLOW_OVER = "large-flow-over"
POOL_EMPTY = "large-flow-pool-empty"
"""Counters and notices."""

NOTICE_INTERVAL_S: Final = 60.0


class _Reading(NamedTuple):
    """A counter as it was read: at what time, and at what age of its entry."""

    now_s: float
    age_s: float
    byte_count: int


class _Shift(NamedTuple):
    """What flows that moved put on a link, or took from it, which its measures do not show yet."""

    bps: float
    measures: int


class LargeFlowControl:
    """Reads switches, finds large flows and decides on their ways; `bound` of them may have one, 0 for none."""

    def __init__(self, fabric: LiveFabric, routes: Routes, installer: Installer, counters: Counter[str]) -> None:
        self._fabric = fabric
        self._routes = routes
        self._installer = installer
        self._counters = counters
        self._bound = 0
        self._aliases_used = 0
        self._told_used = 0
        self._due: Deadlines[int] = Deadlines()
        self._free_s = float("-inf")
        self._polls = SenderPolls()
        self._partial: dict[int, dict[bytes, float]] = {}
        self._readings: dict[int, dict[tuple[bytes, int], _Reading]] = {}
        self._found: dict[int, LargeFlows[bytes]] = {}
        self._quiet: dict[FlowName, int] = {}
        self._measured: dict[int, dict[int, float]] = {}
        self._shifts: dict[End, _Shift] = {}
        self._rates: dict[FlowName, float] = {}
        self._waiting: dict[FlowName, None] = {}
        self._waiting_since_s = float("-inf")
        self._poll_count = 0
        self._limiter = NoticeLimiter(NOTICE_INTERVAL_S)
        self._notices: list[Notice] = []

    # What follows from events

    def use(self, bound: int, now: float) -> list[Stage]:
        """Go by another policy: so many flows at most; return the stages of edits."""
        if bound == self._bound:
            return []
        was_used, self._bound = bool(self._bound), bound
        if not bound:
            self._forget_all()
            return self._routes.pinned.unpin_all()
        if not was_used:
            for dpid in self._fabric.switches():
                self.switch_connected(dpid, now)
        return []

    def aliases_used(self, count: int) -> None:
        """Take in how many of the pool the trees of groups have."""
        self._aliases_used = count

    def switch_connected(self, dpid: int, now: float) -> None:
        """Read a switch from now on, where flows may have ways of their own."""
        if self._bound and dpid not in self._due:
            self._due.set(dpid, now + POLL_S)

    def switch_disconnected(self, dpid: int) -> Stage:
        """Return the edits that take away ways by a switch that nobody can tell anything."""
        self._polls.connected_anew(dpid)
        self._partial.pop(dpid, None)
        self._readings.pop(dpid, None)
        self._found.pop(dpid, None)
        self._measured.pop(dpid, None)
        for name in [name for name in self._rates if name.dpid == dpid]:
            del self._rates[name]
        return self._routes.pinned.switch_left(dpid)

    def loads_measured(self, event: LoadsMeasured) -> None:
        """Take in what links carry."""
        if not self._bound:
            return
        for dpid, port_no, _, bps in event.loads:
            end = (dpid, port_no)
            self._measured.setdefault(dpid, {})[port_no] = bps
            shift = self._shifts.get(end)
            if shift is not None:
                if shift.measures + 1 >= FRESH_MEASURES:
                    del self._shifts[end]
                else:
                    self._shifts[end] = shift._replace(measures=shift.measures + 1)

    def next_deadline(self) -> float | None:
        """Return when a switch is read next or flows are decided on, None for never."""
        if self._waiting:
            return self._waiting_since_s
        due_s = self._due.next()
        return None if due_s is None else max(due_s, self._free_s)

    def on_deadline(self, now: float) -> Iterator[Effect]:
        """Ask the switches that are due."""
        while self._free_s <= now and (dpid := next(self._due.due(now), None)) is not None:
            if not self._installer.is_open(dpid):
                continue
            self._due.set(dpid, now + POLL_S)
            if not self._routes.leads_to(dpid) or not self._polls.may_ask(dpid, now):
                continue
            request = self._installer.read_flows(dpid, UNICAST_TAG << 48, _MASK)
            if request is not None:
                self._free_s = max(self._free_s, now - 1.0) + 1 / READINGS_PER_S
                self._polls.asked(dpid, request.xid, now)
                self._partial[dpid] = {}
                yield request

    def owns_poll(self, event: FlowStatsReceived) -> bool:
        """Tell whether a statistics reply answers a request of this."""
        return self._polls.owns(event.dpid, event.xid)

    def flow_stats_received(self, event: FlowStatsReceived, now: float) -> list[list[Stage]]:
        """Take in counters; with the last of a switch's, decide. Return plans: each flow's stages of edits.

        On flows that a turn has no room for `placements` decides.
        """
        dpid = event.dpid
        reply = LOWERINGS[event.ofp_version].decode_flow_stats(event.message, UNICAST_TAG << 48, _MASK)
        rates, readings = self._partial.setdefault(dpid, {}), self._readings.setdefault(dpid, {})
        for entry in reply.entries:
            told = _host_of(entry.rule)
            host = None if told is None else self._fabric.host_near(told, dpid)
            if host is None or host.dpid == dpid or entry.byte_count is None:
                continue
            mac = host.mac
            key = (mac, entry.rule.key.priority)
            reading = _Reading(now, entry.duration_s, entry.byte_count)
            rates[mac] = rates.get(mac, 0.0) + _rate_bps(readings.get(key), reading)
            readings[key] = reading
        if reply.more:
            return []
        self._polls.answered(dpid, whole=reply.fault is None)
        del self._partial[dpid]
        for key in [key for key, reading in readings.items() if reading.now_s < now - POLL_S]:
            del readings[key]
        return self._decide(dpid, rates, now) if self._bound and reply.fault is None else []

    def placements(self, now: float) -> list[list[Stage]]:
        """Decide on large flows that wait, as far as a turn has room; return their plans."""
        plans: list[list[Stage]] = []
        looked_at = 0
        while self._waiting and looked_at < WAYS_PER_TURN:
            name = next(iter(self._waiting))
            del self._waiting[name]
            found, here = self._routes.destination(name.mac), self._way(name)
            if name not in self._rates or found is None or not here:
                continue
            ways = equal_ways(found[1], name.dpid, self._is_usable)
            looked_at += len(ways)
            if plan := self._placed(name, found, here, ways, now):
                plans.append(plan)
        return plans

    def told(self) -> list[Notice | FlowsUsed]:
        """Return notices, and how many of the pool flows have where that is news."""
        out: list[Notice | FlowsUsed] = []
        if self._notices:
            out += self._notices
            self._notices.clear()
        count = len(self._routes.pinned)
        if count != self._told_used:
            self._told_used = count
            out.append(FlowsUsed(count))
        return out

    # Decisions

    def _decide(self, dpid: int, rates_bps: dict[bytes, float], now: float) -> list[list[Stage]]:
        self._poll_count += 1
        rates: dict[bytes, float] = {}
        capacity_bps: dict[bytes, float] = {}
        for mac, rate_bps in rates_bps.items():
            if rate_bps and (way := self._way(FlowName(dpid, mac))):
                rates[mac], capacity_bps[mac] = rate_bps, self._capacity_bps(way[0])
        large = self._found.setdefault(dpid, LargeFlows[bytes]()).polled(rates, capacity_bps)
        plans = self._ended(dpid, rates, capacity_bps)
        for name in [name for name in self._rates if name.dpid == dpid and name.mac not in large]:
            if self._routes.pinned.way(name) is None:
                del self._rates[name]
        for mac in large:
            name = FlowName(dpid, mac)
            self._rates[name] = rates[mac]
            self._waiting[name] = None
        self._waiting_since_s = now
        return plans + self.placements(now)

    def _ended(self, dpid: int, rates: dict[bytes, float], capacity_bps: dict[bytes, float]) -> list[list[Stage]]:
        """Have flows of a switch that are large no more go by their labels; return their plans."""
        plans: list[list[Stage]] = []
        pinned = self._routes.pinned
        for name in pinned.at(dpid):
            if rates.get(name.mac, 0.0) >= END_SHARE * capacity_bps.get(name.mac, 0.0) > 0:
                self._quiet.pop(name, None)
                continue
            self._quiet[name] = self._quiet.get(name, 0) + 1
            if self._quiet[name] >= POLLS:
                del self._quiet[name]
                plans.append(pinned.unpin(name))
                self._counters[LARGE_FLOW_OVER] += 1
        for name in [name for name in self._quiet if pinned.way(name) is None]:
            del self._quiet[name]
        return plans

    def _placed(
        self, name: FlowName, to: tuple[HostLocation, Destination], here: Way, ways: list[Way], now: float
    ) -> list[Stage]:
        """Have a large flow take the least loaded of some ways, where that is emptier; return the stages of edits."""
        place, destination = to
        pinned, versions = self._routes.pinned, self._fabric.ofp_versions()
        planned = [
            flow
            for way in ways
            if all(self._is_measured(end) for end in way)
            and (flow := pinned.planned(name, place, destination, way, versions)) is not None
        ]
        if len(planned) < 2 or not all(self._is_measured(end) for end in here):
            return []
        rate_bps = self._rates[name]
        links = {end for flow in planned for end in flow.way} | set(here)
        load_bps = {end: self._load_bps(end) for end in links}
        for end in here:
            load_bps[end] = max(0.0, load_bps[end] - rate_bps)
        capacity_bps = {end: self._capacity_bps(end) for end in links}
        draw = stable_hash(name.dpid, name.mac, self._poll_count) >> 1
        best = planned[least_loaded([flow.way for flow in planned], load_bps, capacity_bps, draw)]

        def fullness(way: Way, more_bps: float = 0.0) -> float:
            return max((load_bps[end] + more_bps) / capacity_bps[end] for end in way)

        now_full, then_full = fullness(here), fullness(best.way)
        is_held_up = fullness(here, rate_bps) >= FULL and then_full <= now_full
        if best.way == here or not (then_full <= now_full - LEAST_GAIN or is_held_up):
            return []
        is_new = pinned.way(name) is None
        if is_new and len(pinned) + self._aliases_used >= self._bound:
            self._counters[POOL_EMPTY] += 1
            if self._limiter.passes(POOL_EMPTY, now):
                text = f"A large flow keeps its path, since all {self._bound} of aliases.pool are in use."
                self._notices.append(Notice(POOL_EMPTY, text))
            return []
        self._shift(here, -rate_bps)
        self._shift(best.way, rate_bps)
        self._counters[LARGE_FLOW] += 1
        if self._limiter.passes(name, now):
            self._notices.append(_placed_notice(name, rate_bps, best.way, place.dpid))
        return pinned.pin(name, best)

    def _is_usable(self, dpid: int) -> bool:
        return dpid not in self._routes.away and self._fabric.ofp_version(dpid) is not None

    def _way(self, name: FlowName) -> Way:
        """Return the way that a flow takes; () where there is none."""
        way = self._routes.pinned.way(name)
        if way is not None:
            return way
        found = self._routes.destination(name.mac)
        hops: list[End] = []
        here = name.dpid
        while found is not None and here != found[0].dpid:
            port_no = self._routes.port_to(here, name.mac)
            there = None if port_no is None else self._routes.links.other_end(here, port_no)
            if there is None or port_no is None or len(hops) > len(self._fabric.graph):
                return ()
            hops.append((here, port_no))
            here = there[0]
        return tuple(hops)

    def _is_measured(self, end: End) -> bool:
        return end[1] in self._measured.get(end[0], ())

    def _load_bps(self, end: End) -> float:
        shift = self._shifts.get(end)
        return max(0.0, self._measured[end[0]][end[1]] + (0.0 if shift is None else shift.bps))

    def _capacity_bps(self, end: End) -> float:
        far = self._routes.links.beyond(*end)
        cable = None if far is None else self._fabric.graph.cable(end[0], far, end[1])
        return float("inf") if cable is None else cable.capacity_bps

    def _shift(self, way: Way, bps: float) -> None:
        for end in way:
            former = self._shifts.get(end)
            self._shifts[end] = _Shift(bps + (0.0 if former is None else former.bps), 0)

    def _forget_all(self) -> None:
        self._partial.clear()
        self._readings.clear()
        self._found.clear()
        self._quiet.clear()
        self._measured.clear()
        self._shifts.clear()
        self._rates.clear()
        self._waiting.clear()
        self._due, self._polls = Deadlines(), SenderPolls()


def _host_of(rule: FlowEntry) -> bytes | None:
    """Return the host of another switch that an entry is for, by its name; None for any other entry."""
    match, actions = rule.key.match, rule.actions
    if match.eth_dst is None or match.eth_dst_mask is not None or len(actions) < 2:
        return None
    if not isinstance(actions[0], SetEthDst) or rule.key.match.eth_dst == actions[0].mac:
        return None
    pushed = next((action.vlan_id for action in actions if isinstance(action, PushVlan)), OWN_DOMAIN)
    return in_domain(match.eth_dst, match.vlan_id or pushed)


def _rate_bps(before: _Reading | None, reading: _Reading) -> float:
    """Return the rate between two readings of a counter, 0.0 for the first; a younger entry has counted from 0."""
    if before is None:
        return 0.0
    is_same = reading.age_s >= before.age_s and reading.byte_count >= before.byte_count
    elapsed_s = reading.now_s - before.now_s
    counted = reading.byte_count - before.byte_count if is_same else reading.byte_count
    return 8.0 * counted / elapsed_s if elapsed_s > 0 else 0.0


def _placed_notice(name: FlowName, rate_bps: float, way: Way, goal: int) -> Notice:
    by = ", ".join(str(dpid) for dpid, _ in way[1:]) or "no other"
    vlan_id = domain_of(name.mac)
    host = format_mac(address_of(name.mac)) + (f" in VLAN {vlan_id}" if vlan_id else "")
    text = (
        f"What hosts at switch {name.dpid} send to {host}, {rate_bps / 1e6:.1f} Mbit/s, goes to switch {goal} by "
        f"switches {by} now, whose links are least busy."
    )
    return Notice(LARGE_FLOW, text, (("dpid", name.dpid), ("mac", format_mac(address_of(name.mac)))))
