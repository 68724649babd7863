"""A fabric in memory under the three apps that keep flow entries, and somebody who changes entries by hand.

What was changed is known from the tables themselves: each entry of an app's that a switch holds and should not, or
should hold and does not, whatever the controller says of it.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from controller.config.check_settings import Check
from controller.config.multicast_settings import Querier
from controller.config.policy import Policy
from controller.config.settings import Limits, Multicast
from controller.discovery.core import DiscoveryCore
from controller.discovery.settings import DiscoverySettings
from controller.effects import ApplyEdits, Edit, RequestFlows, TableSurveyed
from controller.events import (
    BarrierReplied,
    CheckRequested,
    DeadlineReached,
    EditFailed,
    PacketReceived,
    Port,
    SurveyOrder,
    SwitchConnected,
)
from controller.multicast.core import MulticastCore
from controller.rules.evaluate import Fields
from controller.rules.fake import FakeFabric, FakeSwitch
from controller.rules.inspection import Inspection
from controller.rules.model import FlowEntry, FlowKey, Match, Output
from controller.rules.pipeline import (
    DISCOVERY_TAG,
    ETH_TYPE_IPV4,
    MULTICAST_TAG,
    OPENFLOW_1_0,
    OPENFLOW_1_3,
    PRIORITY_CHANNEL,
    UNICAST_TAG,
)
from controller.rules.rule_texts import rule_document
from controller.unicast.core import UnicastCore
from controller.unicast.settings import UnicastSettings
from controller.wire.addresses import group_mac
from controller.wire.encode import encode
from controller.wire.packets import GroupRecord, RecordType, Report
from controller.wire.udp import encode_udp
from topology.events import HostLearnt, LinkUp, PortRole, PortRoleChanged, SwitchUp
from topology.generators import make

TAGS = {"discovery": DISCOVERY_TAG, "multicast": MULTICAST_TAG, "unicast": UNICAST_TAG}
KINDS = ("missing", "extra", "altered")
GRACE_S = 70.0
"""By then nothing is kept any more for the sake of hosts that may report."""

POLICY = Policy(
    default_allow=True,
    check=Check(interval_s=0.0),
    limits=Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6, groups_per_port=65536),
    multicast=Multicast(fast_leave=True, querier=Querier(enabled=False), sender_timeout_s=86400.0),
)


class Host(NamedTuple):
    """A host at its port."""

    mac: bytes
    ip: bytes
    dpid: int
    port_no: int


class Found(NamedTuple):
    """An entry of an app at a switch that is not as it shall be, in the words of a report."""

    app: str
    dpid: int
    kind: str
    table: int
    priority: int
    match: str


class Told(NamedTuple):
    """What a survey of one app said of a switch."""

    app: str
    document: dict[str, Any]


class CorruptedFabric:
    """A fat tree whose switches speak OpenFlow 1.0 and 1.3 in turn, with groups that have members and senders.

    Edits and answers wait in queues until `step`, `settle` or `advance` lets them take effect, in random order.
    """

    def __init__(self, seed: int, k: int = 4, groups: int = 24) -> None:
        self.random = random.Random(seed)
        self.now = 1000.0
        self.cores: dict[str, Any] = {
            "discovery": DiscoveryCore(DiscoverySettings(check_interval_s=0.0), bytes(32)),
            "multicast": MulticastCore(POLICY, self.now),
            "unicast": UnicastCore(UnicastSettings(check_interval_s=0.0)),
        }
        self.entries: dict[str, Inspection] = {
            "discovery": self.cores["discovery"].entries,
            "multicast": self.cores["multicast"].installer,
            "unicast": self.cores["unicast"].entries,
        }
        self.reports: list[Told] = []
        self.edit_count = 0
        self._by_tag = {core.xid_tag: app for app, core in self.cores.items()}
        self._queues: dict[tuple[str, int], deque[Any]] = {}
        self._number = 0
        self._build(k)
        self.groups = [bytes((239, 7, 0, number)) for number in range(groups)]
        self.members: dict[bytes, set[Host]] = {group: set() for group in self.groups}
        self.senders = {group: self.random.choice(self.hosts) for group in self.groups}
        for group in self.groups:
            for host in self.random.sample(self.hosts, 4):
                self.join(host, group)
            sender = self.senders[group]
            frame = encode_udp(sender.mac, sender.ip, group, b"data")
            self.tell("multicast", PacketReceived(sender.dpid, sender.port_no, frame))
        self.advance(GRACE_S)

    def _build(self, k: int) -> None:
        graph = make("fattree", {"k": k})
        number = {name: graph.attributes(name)["dpid"] for name in graph.switches()}
        ports: dict[int, set[int]] = {dpid: set() for dpid in number.values()}
        links = []
        self.hosts: list[Host] = []
        for link in graph.links():
            ends = [(number[node], port) for node, port in link_ends(link) if node in number]
            for dpid, port_no in ends:
                ports[dpid].add(port_no)
            if len(ends) == 2:
                links.append((ends[0], ends[1]))
            else:
                tail = (len(self.hosts) + 1).to_bytes(2, "big")
                self.hosts.append(Host(b"\x02\0\0\0" + tail, b"\x0a\0" + tail, *ends[0]))
        self.switches = {
            dpid: FakeSwitch(dpid, OPENFLOW_1_0 if dpid % 2 else OPENFLOW_1_3, numbers)
            for dpid, numbers in sorted(ports.items())
        }
        self.fabric = FakeFabric(links, self.switches)
        for dpid, switch in self.switches.items():
            described = tuple(Port(n, f"p{n}", bytes(6), True, 1e9) for n in sorted(ports[dpid]))
            for app in self.cores:
                self.tell(app, SwitchConnected(dpid, switch.ofp_version, described))
            self._topology(SwitchUp(dpid, switch.ofp_version))
        for one, other in links:
            for end in (one, other):
                self._topology(PortRoleChanged(*end, PortRole.TRUNK))
            self._topology(LinkUp(*one, *other, 1e9))
        for host in self.hosts:
            self._topology(PortRoleChanged(host.dpid, host.port_no, PortRole.EDGE))
        for host in self.hosts:
            self._topology(HostLearnt(host.mac, host.dpid, host.port_no, (host.ip,)))
        self.settle()

    # Events and effects

    def tell(self, app: str, event: Any) -> None:
        """Give a core an event; its edits and questions wait for `step`."""
        for effect in self.cores[app].handle(event, self.now):
            if isinstance(effect, ApplyEdits):
                queue = self._queues.setdefault((app, effect.dpid), deque())
                self.edit_count += len(effect.edits)
                queue += enumerate(effect.edits, effect.first_xid)
                queue.append((effect.first_xid + len(effect.edits), None))
            elif isinstance(effect, RequestFlows):
                self._queues.setdefault((app, effect.dpid), deque()).append(effect)
            elif isinstance(effect, TableSurveyed):
                self.reports.append(Told(app, effect.document))

    def _topology(self, event: Any) -> None:
        for app in ("multicast", "unicast"):
            self.tell(app, event)

    def step(self) -> bool:
        """Let one switch carry out its next edit, barrier or question; False where nothing waits."""
        busy = [place for place, queue in self._queues.items() if queue]
        if not busy:
            return False
        app, dpid = self.random.choice(busy)
        work = self._queues[app, dpid].popleft()
        switch = self.switches[dpid]
        if isinstance(work, RequestFlows):
            for event in switch.respond(work, self.now):
                self.tell(app, event)
            return True
        xid, edit = work
        if edit is None:
            self.tell(app, BarrierReplied(dpid, xid))
        else:
            self._apply(app, switch, xid, edit)
        return True

    def _apply(self, app: str, switch: FakeSwitch, xid: int, edit: Edit) -> None:
        error = switch.apply(edit, self.now)
        if error is not None:
            self.tell(app, EditFailed(switch.dpid, xid, *error))

    def steps(self, seconds: float = 0.5) -> Iterator[None]:
        """Let everything take effect one by one, with the deadlines of the next moments."""
        end_s = self.now + seconds
        while True:
            if self.step():
                yield
                continue
            due = [(core.next_deadline(), app) for app, core in self.cores.items()]
            soonest, app = min((due_s, app) for due_s, app in due if due_s is not None)
            if soonest > end_s:
                return
            self.now = max(self.now, soonest)
            self.tell(app, DeadlineReached())

    def settle(self, seconds: float = 0.5) -> None:
        """Let everything take effect."""
        for _ in self.steps(seconds):
            pass

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        end_s = self.now + seconds
        self.settle(seconds)
        self.now = end_s

    # Hosts

    def join(self, host: Host, group: bytes) -> None:
        """Have a host join."""
        self.members[group].add(host)
        self._report(host, group, RecordType.CHANGE_TO_EXCLUDE)

    def leave(self, host: Host, group: bytes) -> None:
        """Have a host leave."""
        self.members[group].discard(host)
        self._report(host, group, RecordType.CHANGE_TO_INCLUDE)

    def _report(self, host: Host, group: bytes, kind: RecordType) -> None:
        frame = encode(Report(4, 3, host.mac, host.ip, (GroupRecord(kind, group),)))
        self.tell("multicast", PacketReceived(host.dpid, host.port_no, frame))

    def churn(self) -> bytes:
        """Have somebody join or leave; return which group."""
        group = self.random.choice(self.groups)
        host = self.random.choice(self.hosts)
        (self.leave if host in self.members[group] else self.join)(host, group)
        return group

    def receivers(self, group: bytes) -> Counter[tuple[int, int]]:
        """Return the copies of a packet of the group's sender that reach ports of hosts."""
        sender = self.senders[group]
        fields = Fields(group_mac(group), sender.mac, ETH_TYPE_IPV4, 17, sender.ip, group)
        hosts = self.fabric.deliver(sender.dpid, sender.port_no, fields, 100).hosts
        got: Counter[tuple[int, int]] = Counter()
        for copy, count in hosts.items():
            got[copy.dpid, copy.port_no] += count
        return got

    def ways(self) -> dict[bytes, frozenset[tuple[int, FlowEntry]]]:
        """Return the entries, with their switches, that a packet of each group's sender meets."""
        found = {}
        for group in self.groups:
            before = self._counts()
            self.receivers(group)
            found[group] = frozenset(place for place, count in self._counts().items() if count != before[place])
        return found

    def _counts(self) -> dict[tuple[int, FlowEntry], int]:
        return {
            (dpid, entry.rule): entry.packet_count
            for dpid, switch in self.switches.items()
            for entry in switch.tables.entries.values()
        }

    # Somebody changes entries

    def corrupt(self, kind: str | None = None) -> Found:
        """Change one entry that is as it shall be, or add one, at some switch; return what a report shall name."""
        while True:
            app, dpid = self.random.choice(list(TAGS)), self.random.choice(list(self.switches))
            change = {"missing": self._remove, "altered": self._alter, "extra": self._add}
            found = change[kind or self.random.choice(KINDS)](app, dpid)
            if found is not None:
                return found

    def _whole(self, app: str, dpid: int) -> FlowEntry | None:
        desired = self.entries[app].desired(dpid)
        held = self.switches[dpid].rules
        whole = [rule for key, rule in desired.items() if held.get(key) == rule]
        return self.random.choice(whole) if whole else None

    def _remove(self, app: str, dpid: int) -> Found | None:
        rule = self._whole(app, dpid)
        if rule is None:
            return None
        self.switches[dpid].tables.remove(rule.key)
        return named(app, dpid, "missing", rule)

    def _alter(self, app: str, dpid: int) -> Found | None:
        rule = self._whole(app, dpid)
        is_old = self.switches[dpid].ofp_version == OPENFLOW_1_0
        if rule is None or (is_old and rule.key.match.tagged):  # A switch of 1.0 cannot hold it but as a drop.
            return None
        ports = sorted(self.switches[dpid].ports or ())
        others = [actions for actions in ((), (Output(self.random.choice(ports)),)) if actions != rule.actions]
        altered = rule._replace(actions=self.random.choice(others))
        kind = "altered"
        if is_old and self.random.random() < 0.5:
            altered, kind = altered._replace(cookie=0), "missing"
        self.switches[dpid].tables.put(altered, self.now)
        return named(app, dpid, kind, rule)

    def _add(self, app: str, dpid: int) -> Found | None:
        self._number += 1
        number = self._number.to_bytes(2, "big")
        like = self._whole(app, dpid)
        match = Match(eth_type=ETH_TYPE_IPV4, ip_dst=b"\x0a\x63" + number, ip_dst_prefix=32)
        key = FlowKey(0 if like is None else like.key.table, 7, match)
        if app == "multicast" and like is not None and self.random.random() < 0.3:
            group = self.random.choice(self.groups)
            match = Match(self.random.choice(sorted(self.switches[dpid].ports or ())), eth_type=ETH_TYPE_IPV4)
            match = match._replace(ip_dst=group, ip_dst_prefix=32)
            key = FlowKey(like.key.table, PRIORITY_CHANNEL + self._number, match)
        rule = FlowEntry(key, (), TAGS[app] << 48 | self._number)
        if key in self.switches[dpid].rules:
            return None
        self.switches[dpid].tables.put(rule, self.now)
        return named(app, dpid, "extra", rule)

    def add_foreign(self) -> tuple[int, FlowEntry]:
        """Add an entry that is nobody's here."""
        self._number += 1
        dpid = self.random.choice(list(self.switches))
        match = Match(eth_type=ETH_TYPE_IPV4, ip_dst=b"\x0a\x62" + self._number.to_bytes(2, "big"), ip_dst_prefix=32)
        rule = FlowEntry(FlowKey(0, 3, match), (), 0x77)
        self.switches[dpid].tables.put(rule, self.now)
        return dpid, rule

    def differences(self) -> Counter[Found]:
        """Return what is not as it shall be, from the tables themselves."""
        found: Counter[Found] = Counter()
        for app, tag in TAGS.items():
            for dpid, switch in self.switches.items():
                desired = self.entries[app].desired(dpid)
                held = {key: rule for key, rule in switch.rules.items() if rule.cookie >> 48 == tag}
                for key, rule in desired.items():
                    if held.get(key) != rule:
                        found[named(app, dpid, "altered" if key in held else "missing", rule)] += 1
                found.update(named(app, dpid, "extra", held[key]) for key in held.keys() - desired.keys())
        return found

    # The check

    def survey(self, *, repair: bool = False, apps: tuple[str, ...] = tuple(TAGS)) -> None:
        """Order reports of all switches; they come with `step` into `reports`."""
        self.reports.clear()
        for app in apps:
            for dpid in self.switches:
                order = SurveyOrder(1, repair, repair, app == "discovery")
                self.tell(app, CheckRequested(dpid, order))

    def reported(self) -> Counter[Found]:
        """Return what the reports name."""
        found: Counter[Found] = Counter()
        for app, document in self.reports:
            assert document["state"] == "read", document
            for kind in KINDS:
                assert document[kind]["count"] == len(document[kind]["entries"])
                for entry in document[kind]["entries"]:
                    place = (entry["table"], entry["priority"], entry["match"])
                    found[Found(app, document["dpid"], kind, *place)] += 1
        return found

    def foreign_count(self) -> int:
        """Return how many foreign entries the reports name."""
        return sum(document["foreign"]["count"] for app, document in self.reports if app == "discovery")


def named(app: str, dpid: int, kind: str, rule: FlowEntry) -> Found:
    """Return an entry as a report names it."""
    document = rule_document(rule)
    return Found(app, dpid, kind, document["table"], document["priority"], document["match"])


def link_ends(link: Any) -> tuple[tuple[Any, int], tuple[Any, int]]:
    """Return both ends of a link of a graph, as node and port."""
    return (link.u, link.u_port), (link.v, link.v_port)
