"""Discovery and unicast of a controller that takes over, while switches, their answers and it itself are late."""

from __future__ import annotations

import heapq
import itertools
import random
from collections import deque

import pytest

from controller.discovery.core import DiscoveryCore
from controller.discovery.journal import HostsRead
from controller.discovery.settings import DiscoverySettings
from controller.effects import ApplyEdits, Put, RequestFlows, SendPacket, WriteJournal
from controller.events import (
    BarrierReplied,
    DeadlineReached,
    FlowStatsReceived,
    PacketReceived,
    Port,
    SwitchConnected,
)
from controller.rules.lowering import LOWERINGS
from controller.rules.model import Output
from controller.rules.openflow import FlowCounter
from controller.rules.pipeline import UNICAST_TAG
from controller.unicast.core import UnicastCore
from controller.unicast.settings import UnicastSettings
from controller.wire.addresses import BROADCAST_MAC
from controller.wire.arp import encode_arp
from controller.wire.ethernet import ETHERTYPE_LLDP
from controller.wire.frame import decode
from controller.wire.packets import Arp

SECRET = bytes(32)


class Fabric:
    """Switches with their tables and cables, and hosts that answer when they are asked."""

    def __init__(self, cables, ends):
        self.cables = {}
        for a, a_port, b, b_port in cables:
            self.cables[a, a_port], self.cables[b, b_port] = (b, b_port), (a, a_port)
        self.hosts = {
            end: (b"\x02\0\0\0" + n.to_bytes(2, "big"), b"\x0a\0" + n.to_bytes(2, "big"))
            for n, end in enumerate(ends, 1)
        }
        self.ports = sorted({*self.cables, *ends})
        self.tables = {dpid: {} for dpid, _ in self.ports}
        self.journal = []


class Controller:
    """The two cores on one loop, which takes `cost_s` for each event; what switches say comes late, in their order.

    `late_s` returns for how long the next message of a switch is on its way.
    """

    def __init__(self, fabric, begins_s, *, cost_s=0.0, late_s=lambda dpid: 0.0, seed=0):
        self.fabric = fabric
        self.now = begins_s
        self.random = random.Random(seed)
        self.cost_s, self.late_s = cost_s, late_s
        self.cores = [DiscoveryCore(DiscoverySettings(), SECRET), UnicastCore(UnicastSettings())]
        self.queues = [deque(), deque()]
        self.coming = []
        self.last_s = {}
        self.number = itertools.count()
        self.changed = []

    def connect(self, dpid, at_s):
        ports = tuple(Port(n, "", bytes(6), True, 1e9) for d, n in self.fabric.ports if d == dpid)
        self.say(dpid, SwitchConnected(dpid, 4, ports), (0, 1), at_s)

    def say(self, dpid, event, to, at_s=None):
        """Have a switch say something, which is heard after what it said before."""
        at_s = self.now + self.late_s(dpid) if at_s is None else at_s
        at_s = self.last_s[dpid] = max(at_s, self.last_s.get(dpid, 0.0))
        heapq.heappush(self.coming, (at_s, next(self.number), event, to))

    def run(self, seconds):
        until = self.now + seconds
        while True:
            while self.coming and self.coming[0][0] <= self.now:
                _at_s, _number, event, to = heapq.heappop(self.coming)
                for index in to:
                    self.queues[index].append(event)
            due = [core.next_deadline() for core in self.cores]
            ready = [n for n in (0, 1) if self.queues[n] or (due[n] is not None and due[n] <= self.now)]
            if not ready:
                times = [at for at in (*due, self.coming[0][0] if self.coming else None) if at is not None]
                if not times or min(times) > until:
                    self.now = until
                    return
                self.now = max(self.now, min(times))
                continue
            if self.now > until:
                return
            index = self.random.choice(ready)
            is_due = due[index] is not None and due[index] <= self.now
            event = DeadlineReached() if is_due or not self.queues[index] else self.queues[index].popleft()
            outputs = self.cores[index].handle(event, self.now)
            self.now += self.cost_s
            for output in outputs:
                self.perform(index, output)

    def perform(self, index, output):
        if isinstance(output, ApplyEdits):
            table = self.fabric.tables[output.dpid]
            for edit in output.edits:
                key = edit.rule.key if isinstance(edit, Put) else edit.key
                before = table.get(key)
                if isinstance(edit, Put):
                    table[key] = edit.rule
                else:
                    table.pop(key, None)
                if index == 1:
                    self.changed.append((self.now, output.dpid, edit, before))
            self.say(output.dpid, BarrierReplied(output.dpid, output.first_xid + len(output.edits)), (index,))
        elif isinstance(output, RequestFlows):
            lowering = LOWERINGS[4]
            table = self.fabric.tables[output.dpid]
            told = [rule for rule in table.values() if (rule.cookie ^ output.cookie) & output.cookie_mask == 0]
            entries = b"".join(lowering.encode_flow_stats_entry(FlowCounter(rule, 0, 0, 0.0)) for rule in told)
            message = lowering.encode_flow_stats_reply(output.xid, False, entries)
            self.say(output.dpid, FlowStatsReceived(output.dpid, 4, output.xid, message), (index,))
        elif isinstance(output, SendPacket):
            for port_no in output.ports:
                self.leave((output.dpid, port_no), output.data)
        elif isinstance(output, WriteJournal):
            self.fabric.journal += output.records
        elif type(output).__module__ == "topology.events":
            self.queues[1].append(output)

    def leave(self, end, frame):
        """A frame leaves a switch at a port: hosts answer ARP, switches hand LLDP over."""
        if end in self.fabric.hosts:
            mac, address = self.fabric.hosts[end]
            packet = decode(frame)
            if isinstance(packet, Arp) and packet.operation == 1 and packet.target_ip == address:
                reply = Arp(mac, packet.eth_src, 2, mac, address, packet.sender_mac, packet.sender_ip)
                self.say(end[0], PacketReceived(*end, encode_arp(reply)), (0, 1))
        elif end in self.fabric.cables and int.from_bytes(frame[12:14], "big") == ETHERTYPE_LLDP:
            far = self.fabric.cables[end]
            self.say(far[0], PacketReceived(*far, frame), (0,))


@pytest.fixture
def known(make_fattree):
    """A fabric whose hosts have asked for each other, as a controller leaves it, and the time when it ends."""
    cables, ends = make_fattree(4)
    fabric = Fabric(cables, ends)
    former = Controller(fabric, 1.0)
    for dpid in fabric.tables:
        former.connect(dpid, 1.0)
    former.run(3.0)
    for end, (mac, own) in fabric.hosts.items():
        for other in ends:
            if other != end:
                request = Arp(mac, BROADCAST_MAC, 1, mac, own, bytes(6), fabric.hosts[other][1])
                former.say(end[0], PacketReceived(*end, encode_arp(request)), (0, 1))
        former.run(0.5)
    former.run(3.0)
    assert len(former.cores[1].fabric.hosts()) == len(ends)
    return fabric, former.now


def take_over(fabric, begins_s, **how):
    """Return the controller that follows, before switches connect."""
    new = Controller(fabric, begins_s, **how)
    new.queues[0].append(HostsRead(tuple(fabric.journal)))
    new.run(0.0)
    fabric.journal = []
    return new


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("connect_s", "late_s", "cost_s"),
    [
        pytest.param(0.1, 0.3, 0.0, id="answers late"),
        pytest.param(0.1, 2.0, 0.0, id="answers very late"),
        pytest.param(0.1, 0.1, 0.012, id="controller behind"),
        pytest.param(13.0, 0.1, 0.0, id="switches late"),
        pytest.param(13.0, 1.0, 0.005, id="all of it"),
    ],
)
def test_a_take_over_edits_no_path_however_late_and_in_which_order_what_is_told(
    known, seed, connect_s, late_s, cost_s
):
    """Switches connect, tell their tables and hand LLDP frames over as late as drawn; all lead where they led."""
    fabric, now = known
    held = {dpid: dict(table) for dpid, table in fabric.tables.items()}
    drawn = random.Random(seed)
    lates_s = {dpid: drawn.uniform(0.0, late_s) for dpid in fabric.tables}
    new = take_over(
        fabric, now, seed=seed, cost_s=cost_s, late_s=lambda dpid: drawn.uniform(0.5, 1.0) * lates_s[dpid]
    )
    for dpid in fabric.tables:
        new.connect(dpid, new.now + drawn.uniform(0.0, connect_s))
    new.run(45.0)
    assert new.changed == []
    for dpid, table in fabric.tables.items():
        of_unicast = [{k: r for k, r in t.items() if r.cookie >> 48 == UNICAST_TAG} for t in (table, held[dpid])]
        assert of_unicast[0] == of_unicast[1]
    assert len(list(new.cores[1].fabric.graph.links())) == len(fabric.cables) // 2
    assert len(new.cores[1].fabric.hosts()) == len(fabric.hosts)


@pytest.mark.parametrize("seed", range(2))
def test_a_switch_that_is_gone_costs_the_paths_through_it_alone_and_no_other_switch_is_given_up(known, seed):
    """Those at its other ends count as leading to it until the fabric is back; then nothing is sent there."""
    fabric, now = known
    gone = 20100
    drawn = random.Random(seed)
    new = take_over(fabric, now, seed=seed)
    for dpid in fabric.tables.keys() - {gone}:
        new.connect(dpid, new.now + drawn.uniform(0.0, 2.0))
    new.run(30.0)
    ends = {end for end, far in fabric.cables.items() if far[0] == gone}
    sending = {
        (dpid, rule.actions[-1].port_no)
        for dpid, table in fabric.tables.items()
        for rule in table.values()
        if rule.cookie >> 48 == UNICAST_TAG and rule.actions and isinstance(rule.actions[-1], Output)
    }
    assert not ends & sending
    assert len(list(new.cores[1].fabric.graph.links())) == len(fabric.cables) // 2 - len(ends)
