"""A unicast core with switches that confirm its edits, and packets that follow the entries it made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import product

import pytest

from controller.effects import ApplyEdits, Notice, Put, RequestFlows, SendPacket
from controller.events import (
    BarrierReplied,
    DeadlineReached,
    FlowStatsReceived,
    PacketReceived,
    SwitchConnected,
    SwitchDisconnected,
)
from controller.rules.lowering import LOWERINGS
from controller.rules.model import FlowEntry, FlowKey, Goto, Match, Output, SetEthDst
from controller.rules.openflow import FlowCounter
from controller.rules.pipeline import LOCATION, PRIORITY_LABEL, PRIORITY_PINNED_FLOW, PRIORITY_PINNED_WAY
from controller.service_classes.pool import FlowsUsed
from controller.unicast.core import UnicastCore
from controller.unicast.entries import host_keys, location_key, pinned_flow_rule, pinned_way_rule, trunk_rule
from controller.unicast.locations import LABEL_MASK
from controller.unicast.settings import UnicastSettings
from controller.wire.udp import encode_udp
from topology.events import HostLearnt, LinkDown, LinkUp, PortRole, PortRoleChanged, SwitchDown, SwitchUp

from .reaching import populate

End = tuple[int, int]
Cable = tuple[int, int, int, int]
KEYS_CACHED = 4096
PINNED = (PRIORITY_PINNED_FLOW, PRIORITY_PINNED_WAY)


def host(number: int, dpid: int, port_no: int) -> HostLearnt:
    """Return host `number`, with one IPv4 and one IPv6 address made of it."""
    tail = number.to_bytes(2, "big")
    return HostLearnt(b"\x02\0\0\0" + tail, dpid, port_no, (b"\x0a\0" + tail, b"\xfe\x80" + bytes(12) + tail))


def fattree(k: int) -> tuple[list[Cable], list[End]]:
    """Return the cables and host ports of a FatTree: edges 10000 + 100 pod + i, aggregations 20000, cores 30000."""
    half = k // 2
    cables, ends = [], []
    for pod in range(1, k + 1):
        for i, j in product(range(half), range(half)):
            cables.append((10000 + 100 * pod + i, half + 1 + j, 20000 + 100 * pod + j, 1 + i))
            cables.append((20000 + 100 * pod + i, half + 1 + j, 30000 + i * half + j, pod))
            ends.append((10000 + 100 * pod + i, 1 + j))
    return cables, ends


@lru_cache(KEYS_CACHED)
def at_host(version: int, address: bytes) -> FlowKey:
    return host_keys(version, address)[0]


at_location = lru_cache(KEYS_CACHED)(location_key)


@lru_cache(KEYS_CACHED)
def at_trunk(port_no: int) -> FlowKey:
    return trunk_rule(port_no).key


@lru_cache(KEYS_CACHED)
def at_label(label: bytes) -> FlowKey:
    return FlowKey(LOCATION, PRIORITY_LABEL, Match(eth_dst=label + bytes(3), eth_dst_mask=LABEL_MASK))


def tell_flows(
    request: RequestFlows,
    version: int,
    rules: Iterable[FlowEntry],
    counted: Callable[[FlowKey], tuple[int, float]] = lambda _key: (0, 0.0),
) -> list[FlowStatsReceived]:
    """Return the replies of a switch that holds `rules`; `counted` tells the bytes and the age of an entry."""
    lowering = LOWERINGS[version]
    told = [rule for rule in rules if (rule.cookie ^ request.cookie) & request.cookie_mask == 0]
    pages = [told[first : first + 200] for first in range(0, len(told), 200)] or [[]]
    replies = []
    for number, page in enumerate(pages, 1):
        counters = [FlowCounter(rule, 0, *counted(rule.key)) for rule in page]
        entries = b"".join(map(lowering.encode_flow_stats_entry, counters))
        message = lowering.encode_flow_stats_reply(request.xid, number < len(pages), entries)
        replies.append(FlowStatsReceived(request.dpid, version, request.xid, message))
    return replies


ELSEWHERE = 9999
"""A port of no switch, for packets that come from another switch, whichever."""

CALLING, CALLER = 99, b"\2\0\0\0\xff\xff"
"""An edge port, where it is one, and who sends there."""


class Bench:
    """Drives one core; switches confirm edits at once unless `hold` collects their confirmations.

    Switches speak `version`; with 0 those of odd datapath ids speak OpenFlow 1.0, the others 1.3.
    """

    def __init__(self, settings: UnicastSettings | None = None, version: int = 4) -> None:
        self.core = UnicastCore(settings or UnicastSettings())
        self.version = version
        self.versions: dict[int, int] = {}
        self.now = 100.0
        self.rules: dict[int, dict[FlowKey, FlowEntry]] = {}
        self.other_end: dict[End, End] = {}
        self.sent: list[SendPacket] = []
        self.notices: list[Notice] = []
        self.expiring: list[tuple[float, int, FlowKey]] = []
        self.edits = 0
        self.away: set[int] = set()
        self.pinned: dict[tuple[int, FlowKey], FlowEntry] = {}
        self.byte_counts: Counter[tuple[int, FlowKey]] = Counter()
        self.put_s: dict[tuple[int, FlowKey], float] = {}
        self.pool_used: list[FlowsUsed] = []
        self.hold: list[BarrierReplied] | None = None
        self.on_edits: Callable[[], None] = lambda: None

    def version_of(self, dpid: int) -> int:
        return self.versions.get(dpid) or self.version or (1 if dpid % 2 else 4)

    def switch(self, dpid: int) -> None:
        self.rules.setdefault(dpid, {})
        self.versions.pop(dpid, None)
        self.versions[dpid] = self.version_of(dpid)
        self.feed(SwitchConnected(dpid, self.version_of(dpid), ()))
        self.feed(SwitchUp(dpid, self.version_of(dpid)))

    def build(self, cables: Iterable[Cable], ends: Iterable[End] = ()) -> None:
        cables, ends = list(cables), list(ends)
        for dpid in sorted({cable[0] for cable in cables} | {cable[2] for cable in cables} | {e[0] for e in ends}):
            self.switch(dpid)
        for cable in cables:
            self.link(cable)
        for end in ends:
            self.feed(PortRoleChanged(*end, PortRole.EDGE))
        self.run(0.1)

    def link(self, cable: Cable, up: bool = True) -> None:
        a, b = cable[:2], cable[2:]
        if up:
            self.other_end[a], self.other_end[b] = b, a
            for end in (a, b):
                self.feed(PortRoleChanged(*end, PortRole.TRUNK))
            self.feed(LinkUp(*cable, 1e9))
        else:
            self.other_end.pop(a, None)
            self.other_end.pop(b, None)
            self.feed(LinkDown(*cable))
            for end in (a, b):
                self.feed(PortRoleChanged(*end, PortRole.DOWN))

    def down(self, dpid: int) -> None:
        for a, b in list(self.other_end.items()):
            if a[0] == dpid:
                self.link((*a, *b), up=False)
        self.feed(SwitchDown(dpid))
        self.rules.pop(dpid, None)
        self.pinned = {held: rule for held, rule in self.pinned.items() if held[0] != dpid}

    def lose(self, dpid: int) -> None:
        """End the connection of a switch, which goes on forwarding."""
        self.away.add(dpid)
        if self.hold is not None:
            self.hold = [reply for reply in self.hold if reply.dpid != dpid]
        self.feed(SwitchDisconnected(dpid))

    def regain(self, dpid: int) -> None:
        """Let a switch connect again, before it was given up."""
        self.away.discard(dpid)
        self.feed(SwitchConnected(dpid, self.version_of(dpid), ()))

    def call(self, dpids: Iterable[int], hosts: Iterable[HostLearnt]) -> None:
        """Have a packet to each host enter each switch, at an edge port of its own."""
        hosts = list(hosts)
        for dpid in dpids:
            self.feed(PortRoleChanged(dpid, CALLING, PortRole.EDGE))
            for other in hosts:
                data = encode_udp(CALLER, bytes((10, 9, 9, 9)), other.addresses[0], b"x", eth_dst=other.mac)
                self.feed(PacketReceived(dpid, CALLING, data))
                self.now += 0.1
        self.run(0.1)

    def meet(self, hosts: Iterable[HostLearnt]) -> None:
        """Have every host send a packet to every other, so that all have been asked for everywhere."""
        hosts = list(hosts)
        for host in hosts:
            self.feed(PortRoleChanged(host.dpid, host.port_no, PortRole.EDGE))
        for one, other in product(hosts, hosts):
            if one is not other:
                data = encode_udp(one.mac, one.addresses[0], other.addresses[0], b"x", eth_dst=other.mac)
                self.feed(PacketReceived(one.dpid, one.port_no, data))
                self.now += 0.1
        self.run(0.1)

    def feed(self, event: object) -> None:
        self.perform(self.core.handle(event, self.now))

    def frame(self, end: End, data: bytes) -> list[SendPacket]:
        """Hand a packet-in to the core and return what it sends for it."""
        before = len(self.sent)
        self.feed(PacketReceived(*end, data))
        return self.sent[before:]

    def perform(self, effects: Iterable[object]) -> None:
        for effect in effects:
            if isinstance(effect, ApplyEdits):
                if effect.dpid in self.rules:
                    assert effect.dpid not in self.away
                    self.apply(effect)
            elif isinstance(effect, SendPacket):
                self.sent.append(effect)
            elif isinstance(effect, Notice):
                self.notices.append(effect)
            elif isinstance(effect, FlowsUsed):
                self.pool_used.append(effect)
            else:
                assert isinstance(effect, RequestFlows), effect
                dpid = effect.dpid
                told = self.rules.get(dpid, {}).values()

                def counted(key: FlowKey, dpid: int = dpid) -> tuple[int, float]:
                    return self.byte_counts[dpid, key], self.now - self.put_s.get((dpid, key), 0.0)

                for reply in tell_flows(effect, self.version_of(dpid), told, counted):
                    self.feed(reply)

    def apply(self, effect: ApplyEdits) -> None:
        table = self.rules[effect.dpid]
        for edit in effect.edits:
            self.edits += 1
            if isinstance(edit, Put):
                if edit.rule.key.priority in PINNED:
                    self.pinned[effect.dpid, edit.rule.key] = edit.rule
                if table.get(edit.rule.key) != edit.rule:
                    self.put_s[effect.dpid, edit.rule.key] = self.now
                    self.byte_counts.pop((effect.dpid, edit.rule.key), None)
                table[edit.rule.key] = edit.rule
                if edit.rule.hard_timeout_s:
                    self.expiring.append((self.now + edit.rule.hard_timeout_s, effect.dpid, edit.rule.key))
            else:
                table.pop(edit.key, None)
                self.pinned.pop((effect.dpid, edit.key), None)
            self.on_edits()
        reply = BarrierReplied(effect.dpid, effect.first_xid + len(effect.edits))
        if self.hold is None:
            self.feed(reply)
        else:
            self.hold.append(reply)

    def confirm(self) -> None:
        """Let the switches confirm everything, and keep nothing back any more."""
        held, self.hold = self.hold or [], None
        for reply in held:
            self.feed(reply)

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while (deadline := self.core.next_deadline()) is not None and deadline <= until:
            self.now = max(self.now, deadline)
            self.feed(DeadlineReached())
        self.now = until
        for at, dpid, key in self.expiring:
            if at <= until:
                self.rules.get(dpid, {}).pop(key, None)
        self.expiring = [expiring for expiring in self.expiring if expiring[0] > until]

    def trace(self, start: End, mac: bytes, strict: bool = False) -> list[End]:
        """Return the host ports at which a packet to `mac` comes out that enters at `start`; fails on a loop.

        A switch drops what would leave at the port where it came in; `strict` fails on that too.
        """
        return self._trace(start, mac, mac, strict)

    def trace_onward(self, dpid: int, mac: bytes, strict: bool = False) -> list[End]:
        """Do what `trace` does for a packet that another switch sent to a switch, at a port of its own."""
        address = self.core.location_address(mac)
        return [] if address is None else self._trace((dpid, ELSEWHERE), address, mac, strict)

    def _trace(self, here: End, address: bytes, mac: bytes, strict: bool) -> list[End]:
        way: list[End] = []
        while True:
            dpid, in_port = here
            way.append(here)
            assert len(way) <= len(self.rules) + 1, f"a packet to {mac.hex()} circles: {way}"
            rule = self.rule_for(dpid, in_port, address)
            if rule is not None and isinstance(rule.actions[-1], Goto):
                address = rule.actions[0][0]
                rule = self.located(dpid, in_port, address)
            if rule is None:
                return []
            *rewritten, action = rule.actions
            for rewriting in rewritten:
                assert isinstance(rewriting, SetEthDst)
                address = rewriting.mac
            assert isinstance(action, Output)
            if action.port_no == in_port:
                assert not strict, f"a packet to {mac.hex()} is sent back at {dpid}"
                return []
            there = self.other_end.get((dpid, action.port_no))
            if there is None:
                if self.core.fabric.host(mac) is not None and (dpid, action.port_no) == self.home(mac):
                    assert address == mac, "hosts get their own address"
                return [(dpid, action.port_no)]
            here = there

    def home(self, mac: bytes) -> End | None:
        found = self.core.fabric.host(mac)
        return None if found is None else (found.dpid, found.port_no)

    def rule_for(self, dpid: int, in_port: int, address: bytes) -> FlowEntry | None:
        """Return the entry of a switch that a packet meets which comes in by a port."""
        rules = self.rules[dpid]
        if self.version_of(dpid) == 1:
            located = self.located(dpid, in_port, address)
            return located or self.pinned_flow(dpid, address) or rules.get(at_host(1, address))
        if in_port == ELSEWHERE or at_trunk(in_port) in rules:
            return self.located(dpid, in_port, address)
        return self.pinned_flow(dpid, address) or rules.get(at_host(4, address))

    def pinned_flow(self, dpid: int, address: bytes) -> FlowEntry | None:
        """Return the entry by which a switch sends what is for a host by a way of its own."""
        rule = pinned_flow_rule(self.version_of(dpid), address, address, 0) if self.pinned else None
        return None if rule is None else self.pinned.get((dpid, rule.key))

    def located(self, dpid: int, in_port: int, address: bytes) -> FlowEntry | None:
        """Return the entry of a switch that a location address meets, whatever its label."""
        rules = self.rules[dpid]
        if self.pinned:
            key = pinned_way_rule(self.version_of(dpid), address, address, in_port, 0).key
            if (dpid, key) in self.pinned:
                return self.pinned[dpid, key]
        if self.version_of(dpid) == 1:
            return rules.get(at_location(1, address))
        return rules.get(at_location(4, address)) or rules.get(at_label(address[:3]))

    def host_rules(self) -> set[tuple[int, FlowEntry]]:
        return {(dpid, rule) for dpid, table in self.rules.items() for rule in table.values()}


@pytest.fixture(scope="session")
def make_bench() -> Callable[..., Bench]:
    return Bench


@pytest.fixture(scope="session")
def make_host() -> Callable[..., HostLearnt]:
    return host


@pytest.fixture(scope="session")
def make_fattree() -> Callable[..., tuple[list[Cable], list[End]]]:
    return fattree


@pytest.fixture
def fabric(make_bench, make_host, make_fattree):
    bench = make_bench()
    cables, ends = make_fattree(4)
    bench.build(cables, ends)
    hosts = [make_host(n, *end) for n, end in enumerate(ends, 1)]
    populate(bench, hosts)
    return bench, hosts, cables
