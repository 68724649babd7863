"""A world for the multicast core: hosts, discovery's word, and fake switches that take edits and forward packets.

Edits reach a switch one by one when `settle` or `steps` lets them; packets go through what the switches hold at
that moment, and what is punted goes to the core.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from controller.config.policy import Policy
from controller.config.settings import Limits
from controller.discovery.base_rules import base_rules
from controller.effects import (
    ActionRefused,
    ActionTaken,
    ApplyEdits,
    Edit,
    EntriesLost,
    Notice,
    Put,
    RequestFlows,
    RequestTables,
    SendPacket,
)
from controller.events import (
    BarrierReplied,
    DeadlineReached,
    EditFailed,
    PacketReceived,
    Port,
    SwitchConnected,
    SwitchDisconnected,
    SwitchesDrained,
)
from controller.log import MemoryLog, WriteLog
from controller.multicast.actions import read_action
from controller.multicast.core import MulticastCore
from controller.multicast.effects import Audit
from controller.rules.fake import FakeFabric, FakeSwitch
from controller.service_classes.pool import AliasesUsed
from controller.wire.addresses import parse_ip
from controller.wire.encode import encode
from controller.wire.frame import decode
from controller.wire.packets import GroupRecord, Query, RecordType, Report
from controller.wire.udp import encode_udp
from restored_log import put_back
from topology.events import (
    HostGone,
    HostLearnt,
    LinkDown,
    LinkUp,
    PortRole,
    PortRoleChanged,
    SwitchDown,
    SwitchUp,
)
from topology.generators import make
from topology.graph import Graph
from wire_frames import fields_of

GROUP = parse_ip("239.1.2.3")
GROUP_V6 = parse_ip("ff0e::1:2:3")
OPEN = Policy(
    default_allow=True,
    limits=Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6, groups_per_port=65536),
)
Place = tuple[int, int]
BASE_PUTS = {version: [Put(rule) for rule in base_rules(version)] for version in (1, 4)}


class Host(NamedTuple):
    """A host of the world; `addresses` are its IPv4 and IPv6 address."""

    name: str
    mac: bytes
    v4: bytes
    v6: bytes
    dpid: int
    port_no: int

    @property
    def place(self) -> Place:
        return self.dpid, self.port_no

    def address(self, group: bytes) -> bytes:
        return self.v4 if len(group) == 4 else self.v6


class World:
    """One core and its fabric. `order` decides which switch carries out its next edit in `steps`."""

    def __init__(
        self,
        graph: Graph,
        policy: Policy = OPEN,
        version: int | Mapping[int, int] = 4,
        *,
        seed: int = 0,
        capacity: int = 1_000_000,
        start: bool = True,
    ) -> None:
        self.graph = graph
        self.policy = policy
        self.random = random.Random(seed)
        self.now = 1000.0
        self.core = MulticastCore(policy, self.now)
        self.hosts: dict[str, Host] = {}
        # Named by the two switches, further cables between these with -1, -2, ... beside them.
        self.links: dict[frozenset[int], tuple[Place, Place]] = {}
        self.switches: dict[int, FakeSwitch] = {}
        self.notices: list[Notice] = []
        self.audits: list[Audit] = []
        self.log = MemoryLog()
        self.outcomes: list[ActionTaken | ActionRefused] = []
        self.told_drained: tuple[int, ...] = ()
        self.told_lost: list[int] = []
        self.told_aliases: list[int] = []
        self.packet_outs: list[tuple[Place, bytes]] = []
        self.applied = 0
        self.is_hasty = False
        self.connected: set[int] = set()
        self.queues: dict[int, deque[tuple[int, Edit | None]]] = {}
        self.down_links: set[frozenset[int]] = set()
        self._build(version, capacity)
        self.alive = dict(self.switches)
        self.fabric = FakeFabric(self.links.values(), self.alive)
        if start:
            self.connect_all()
            self.settle()
            self.notices.clear()

    # Building

    def _build(self, version: int | Mapping[int, int], capacity: int) -> None:
        graph = self.graph
        number = {name: graph.attributes(name)["dpid"] for name in graph.switches()}
        ports: dict[int, set[int]] = {dpid: set() for dpid in number.values()}
        for link in graph.links():
            ends = []
            for node, port_no in ((link.u, link.u_port), (link.v, link.v_port)):
                if node in number:
                    ports[number[node]].add(port_no)
                    ends.append((number[node], port_no))
            if len(ends) == 2:
                pair = (ends[0][0], ends[1][0])
                others = sum(key.issuperset(pair) for key in self.links)
                self.links[frozenset((*pair, -others) if others else pair)] = (ends[0], ends[1])
            else:
                (name,) = {link.u, link.v} - number.keys()
                n = int(str(name)[1:])
                tail = n.to_bytes(2, "big")
                v6 = b"\xfe\x80" + bytes(12) + tail
                self.hosts[str(name)] = Host(
                    str(name), b"\x02\0\0\0" + tail, b"\x0a\0" + tail, v6, ends[0][0], ends[0][1]
                )
        for dpid in sorted(ports):
            ofp_version = version if isinstance(version, int) else version.get(dpid, 4)
            self.switches[dpid] = FakeSwitch(dpid, ofp_version, ports[dpid], capacity=capacity)
            for put in BASE_PUTS[ofp_version]:
                assert self.switches[dpid].apply(put, self.now) is None
            self.queues[dpid] = deque()

    def connect_all(self) -> None:
        for dpid in self.switches:
            self.connect(dpid)
        for ends in self.links.values():
            self.link_up(*ends)
        for host in self.hosts.values():
            self.feed(PortRoleChanged(host.dpid, host.port_no, PortRole.EDGE))
        for host in self.hosts.values():
            self.learn(host)

    def connect(self, dpid: int) -> None:
        switch = self.switches[dpid]
        self.connected.add(dpid)
        ports = tuple(Port(port_no, f"p{port_no}", bytes(6), True, 1e9) for port_no in sorted(switch.ports or ()))
        self.feed(SwitchConnected(dpid, switch.ofp_version, ports))
        self.feed(SwitchUp(dpid, switch.ofp_version))

    def learn(self, host: Host) -> None:
        self.feed(HostLearnt(host.mac, host.dpid, host.port_no, (host.v4, host.v6)))

    # Events and effects

    def handle(self, event: Any) -> list[Any]:
        """Have the core handle an event; a test may put something in between."""
        return list(self.core.handle(event, self.now))

    def feed(self, event: Any) -> list[Any]:
        effects = self.handle(event)
        for effect in effects:
            self.perform(effect)
        return effects

    def do(self, name: str, /, **fields: Any) -> ActionTaken | ActionRefused:
        """Have the core do what an operator asks for."""
        self.feed(read_action(name, fields))
        return self.outcomes.pop()

    def perform(self, effect: Any) -> None:
        if isinstance(effect, ApplyEdits):
            if effect.dpid in self.connected:
                self.queues[effect.dpid] += enumerate(effect.edits, effect.first_xid)
                self.queues[effect.dpid].append((effect.first_xid + len(effect.edits), None))
        elif isinstance(effect, RequestFlows | RequestTables):
            if effect.dpid in self.connected:
                for event in self.switches[effect.dpid].respond(effect, self.now):
                    self.feed(event)
        elif isinstance(effect, SendPacket):
            if effect.dpid in self.connected:
                self.packet_outs += [((effect.dpid, port_no), effect.data) for port_no in effect.ports]
        elif isinstance(effect, Notice):
            self.notices.append(effect)
        elif isinstance(effect, Audit):
            self.audits.append(effect)
        elif isinstance(effect, WriteLog):
            self.log.write(effect)
        elif isinstance(effect, ActionTaken | ActionRefused):
            self.outcomes.append(effect)
        elif isinstance(effect, SwitchesDrained):
            self.told_drained = effect.dpids
        elif isinstance(effect, AliasesUsed):
            self.told_aliases.append(effect.number)
        elif isinstance(effect, EntriesLost):
            self.told_lost.append(effect.dpid)
        else:
            raise AssertionError(effect)

    def perform_all(self, effects: list[Any]) -> None:
        for effect in effects:
            self.perform(effect)

    def step(self, dpid: int) -> None:
        """Let a switch carry out its next edit or answer its next barrier."""
        xid, edit = self.queues[dpid].popleft()
        if edit is None:
            self.feed(BarrierReplied(dpid, xid))
            return
        self.applied += 1
        error = self.switches[dpid].apply(edit, self.now)
        if error is not None:
            self.feed(EditFailed(dpid, xid, *error))

    def steps(self, until_s: float = 0.6) -> Iterator[None]:
        """Carry out edits one by one in random order, and deadlines of the next moments, until all is quiet.

        Where the world `is_hasty`, deadlines that are due come between edits, else after all of them.
        """
        end_s = self.now + until_s
        while True:
            busy = [dpid for dpid, queue in self.queues.items() if queue]
            due_s = self.core.next_deadline() if self.is_hasty or not busy else None
            is_due = self.is_hasty and due_s is not None and due_s <= self.now and self.random.random() < 0.5
            if busy and not is_due:
                self.step(self.random.choice(busy))
            else:
                if due_s is None or due_s > end_s:
                    return
                self.now = max(self.now, due_s)
                self.feed(DeadlineReached())
            yield

    def settle(self, until_s: float = 0.6) -> None:
        for _ in self.steps(until_s):
            pass

    def advance(self, seconds: float) -> None:
        end_s = self.now + seconds
        self.settle(seconds)
        self.now = end_s

    # The fabric changes

    def link_up(self, one: Place, other: Place) -> None:
        for dpid, port_no in (one, other):
            self.feed(PortRoleChanged(dpid, port_no, PortRole.TRUNK))
        self.feed(LinkUp(one[0], one[1], other[0], other[1], 1e9))

    def cut(self, *name: int) -> None:
        ends = self.links[frozenset(name)]
        self.fabric.cut(ends[0])
        self.down_links.add(frozenset(name))
        for end in ends:
            self.feed(PortRoleChanged(*end, PortRole.DOWN))
        self.feed(LinkDown(*ends[0], *ends[1]))

    def mend(self, *name: int) -> None:
        self.link_up(*self.plug(*name))

    def plug(self, *name: int) -> tuple[Place, Place]:
        """Put a cable back whose ports are up, while discovery does not know yet what they lead to."""
        ends = self.links[frozenset(name)]
        self.fabric.connect(*ends)
        self.down_links.discard(frozenset(name))
        for end in ends:
            self.feed(PortRoleChanged(*end, PortRole.UNKNOWN))
        return ends

    def disconnect(self, dpid: int, *, dies: bool = True) -> None:
        """Lose a switch: its connection, and (`dies`) what it holds and all that passes it."""
        self.connected.discard(dpid)
        self.queues[dpid].clear()
        for host in self.hosts.values():
            if host.dpid == dpid:
                self.feed(HostGone(host.mac, dpid, host.port_no))
        for pair, ends in self.links.items():
            if dpid in pair and pair not in self.down_links:
                self.feed(LinkDown(*ends[0], *ends[1]))
        self.feed(SwitchDisconnected(dpid))
        self.feed(SwitchDown(dpid))
        if dies:
            del self.alive[dpid]
            for key in list(self.switches[dpid].rules):
                self.switches[dpid].tables.remove(key)

    def reconnect(self, dpid: int) -> None:
        self.alive[dpid] = self.switches[dpid]
        for rule in base_rules(self.switches[dpid].ofp_version):
            assert self.switches[dpid].apply(Put(rule), self.now) is None
        self.connect(dpid)
        for pair, ends in self.links.items():
            if dpid in pair and pair not in self.down_links and {end[0] for end in ends} <= self.connected:
                self.link_up(*ends)
        for host in self.hosts.values():
            if host.dpid == dpid:
                self.feed(PortRoleChanged(dpid, host.port_no, PortRole.EDGE))
                self.learn(host)

    def move(self, name: str, dpid: int, port_no: int) -> None:
        """Unplug a host and plug it in elsewhere, at a port that hosts were at before."""
        host = self.hosts[name]
        self.feed(PortRoleChanged(host.dpid, host.port_no, PortRole.DOWN))
        self.feed(HostGone(host.mac, host.dpid, host.port_no))
        self.hosts[name] = host._replace(dpid=dpid, port_no=port_no)

    def restart(self, *, journal: bool = True, policy: Policy | None = None) -> None:
        """Start a new controller on the switches as they are; discovery begins anew."""
        self.now += 5.0
        for queue in self.queues.values():
            queue.clear()
        self.connected.clear()
        self.applied = 0
        self.core = MulticastCore(policy or self.policy, self.now)
        if not journal:
            self.log = MemoryLog()
        put_back(self.core, self.log.read(), self.feed)

    # Hosts speak

    def report(self, name: str, frame_or_report: Report | bytes) -> None:
        host = self.hosts[name]
        frame = frame_or_report if isinstance(frame_or_report, bytes) else encode(frame_or_report)
        self.feed(PacketReceived(host.dpid, host.port_no, frame))

    def record(self, name: str, kind: RecordType, group: bytes = GROUP, *sources: bytes, version: int = 0) -> None:
        host = self.hosts[name]
        family = 4 if len(group) == 4 else 6
        version = version or (3 if family == 4 else 2)
        record = GroupRecord(kind, group, tuple(sources))
        self.report(name, Report(family, version, host.mac, host.address(group), (record,)))

    def join(self, name: str, group: bytes = GROUP, version: int = 0) -> None:
        kind = RecordType.CHANGE_TO_EXCLUDE if version == 0 else RecordType.MODE_IS_EXCLUDE
        self.record(name, kind, group, version=version)

    def leave(self, name: str, group: bytes = GROUP, version: int = 0) -> None:
        self.record(name, RecordType.CHANGE_TO_INCLUDE, group, version=version)

    def data(self, name: str, group: bytes = GROUP, payload: bytes = b"data", **changes: bytes) -> bytes:
        host = self.hosts[name]
        return encode_udp(changes.get("mac", host.mac), changes.get("source", host.address(group)), group, payload)

    def inject(self, place: Place, frame: bytes) -> Counter[str | Place]:
        """Send a frame into a port; return how many copies reached whom, by host name or port."""
        fields = fields_of(frame)
        delivery = self.fabric.deliver(*place, fields, len(frame))
        at = {host.place: host.name for host in self.hosts.values()}
        got: Counter[str | Place] = Counter()
        for copy, count in delivery.hosts.items():
            assert copy.eth_dst == fields.eth_dst, "a copy left the fabric with another MAC address"
            got[at.get((copy.dpid, copy.port_no), (copy.dpid, copy.port_no))] += count
        assert delivery.punts.total() <= 1, "one packet went to the controller more than once"
        for punt in delivery.punts:
            assert (punt.dpid, punt.in_port) == place, "the controller got a packet from inside the fabric"
            first = len(self.packet_outs)
            if punt.dpid in self.connected:
                self.feed(PacketReceived(punt.dpid, punt.in_port, frame))
            for to, sent in self.packet_outs[first:]:
                if sent == frame:
                    got[at.get(to, to)] += 1
        return got

    def flood(self, name: str, frame: bytes, per_s: int, seconds: float, lag_s: float = 0.01) -> int:
        """Have a host repeat a frame; return how often the controller got it. Its edits take effect `lag_s` later."""
        host, punted, end_s = self.hosts[name], 0, self.now + seconds
        switch, fields = self.switches[host.dpid], fields_of(frame)
        while self.now < end_s:
            switch.expire(self.now)
            for _ in range(round(per_s * lag_s)):
                if switch.process(fields, host.port_no).sent:
                    punted += 1
                    self.feed(PacketReceived(host.dpid, host.port_no, frame))
            self.advance(lag_s)
        return punted

    def send(self, name: str, group: bytes = GROUP, **changes: bytes) -> Counter[str | Place]:
        """Send a packet from a host and return how many copies reached whom."""
        return self.inject(self.hosts[name].place, self.data(name, group, **changes))

    def rules(self) -> dict[int, dict[Any, Any]]:
        """Return what the multicast app holds on every switch."""
        return {
            dpid: {key: rule for key, rule in switch.rules.items() if rule.cookie >> 48 == 0x5602}
            for dpid, switch in self.switches.items()
        }

    def queries(self, since: int = 0) -> list[tuple[Place, Query]]:
        found = [(place, decode(frame)) for place, frame in self.packet_outs[since:]]
        return [(place, packet) for place, packet in found if isinstance(packet, Query)]

    def refused_edits(self) -> list[Any]:
        return [entry for switch in self.switches.values() for entry in switch.refused]


def leaf_spine(leaves: int = 3, spines: int = 2, hosts: int = 2) -> Graph:
    """Return a fabric of two tiers."""
    from topology.generators.draft import Draft
    from topology.graph import NodeKind

    draft = Draft(1e9)
    lower = [draft.switch(NodeKind.TOR) for _ in range(leaves)]
    upper = [draft.switch(NodeKind.AGGREGATION) for _ in range(spines)]
    for leaf in lower:
        draft.hosts(leaf, hosts)
        for spine in upper:
            draft.link(leaf, spine)
    return draft.graph


def bundles(spines: int = 2) -> Graph:
    """Return three ToRs with two hosts each, two cables to each spine, and two more between the first two ToRs."""
    from topology.generators.draft import Draft
    from topology.graph import NodeKind

    draft = Draft(1e9)
    lower = [draft.switch(NodeKind.TOR) for _ in range(3)]
    upper = [draft.switch(NodeKind.AGGREGATION) for _ in range(spines)]
    for leaf in lower:
        draft.hosts(leaf, 2)
        for spine in (*upper, *upper):
            draft.link(leaf, spine)
    for _ in range(2):
        draft.link(lower[0], lower[1])
    return draft.graph


def ring(switches: int = 5, hosts: int = 1) -> Graph:
    """Return switches in a circle, each with hosts."""
    from topology.generators.draft import Draft
    from topology.graph import NodeKind

    draft = Draft(1e9)
    names = [draft.switch(NodeKind.SWITCH) for _ in range(switches)]
    for name in names:
        draft.hosts(name, hosts)
    for name, following in zip(names, (*names[1:], names[0]), strict=True):
        draft.link(name, following)
    return draft.graph


GRAPHS: dict[str, Callable[[], Graph]] = {
    "fattree": lambda: make("fattree", {"k": 4}),
    "avalanche24": lambda: make("avalanche24"),
    "leaf-spine": leaf_spine,
    "bundles": bundles,
    "ring": ring,
    "tree": lambda: make("tree", {"depth": 2, "fanout": 3}),
}


@pytest.fixture
def make_world() -> Callable[..., World]:
    def build(graph: str | Graph = "fattree", *args: Any, **kwargs: Any) -> World:
        return World(GRAPHS[graph]() if isinstance(graph, str) else graph, *args, **kwargs)

    return build


@pytest.fixture(params=[1, 4], ids=["of10", "of13"])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)
