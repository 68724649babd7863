"""Flows of a sender over the trees of its group: packets under way, and in VLANs."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from controller.config.service_class_settings import Aliases, StaticTrees
from controller.config.terms import parse_prefix
from controller.config.vlans import PortVlans
from controller.events import DeadlineReached, PacketReceived
from controller.kernel.domains import in_domain
from controller.rules.model import FLOW_PARTS
from controller.wire.addresses import parse_ip
from controller.wire.ethernet import with_tag
from controller.wire.udp import encode_udp
from wire_frames import fields_of

from .conftest import GROUP, leaf_spine
from .test_multicast_flows import BY_FLOW, PORTS, frame, parts, use
from .test_multicast_in_flight import POLICY, Packet, Race, fabric_of
from .vlan_world import VlanWorld


def test_groups_of_vlans_are_divided():
    untagged, tagged = PortVlans(10, frozenset()), PortVlans(None, frozenset({10}))
    names = ["h1", "h3", "h9", "h10", "h16"]
    world = VlanWorld(
        {name: tagged if name in ("h3", "h10") else untagged for name in names}, version=4, policy=BY_FLOW
    )
    for name in ("h9", "h10", "h16"):
        world.joins(name)
    world.settle()

    def sent(name, port):
        host = world.hosts[name]
        plain = encode_udp(host.mac, host.v4, GROUP, b"data", source_port=port)
        return plain if name == "h1" else with_tag(plain, 10)

    for name in ("h1", "h3"):
        world.feed(
            PacketReceived(*world.hosts[name].place, with_tag(sent("h1", 1), 10) if name == "h1" else sent(name, 1))
        )
        world.settle(2.0)
    assert parts(world, in_domain(GROUP, 10), "h3").total() == FLOW_PARTS
    for name in ("h1", "h3"):
        for port in PORTS:
            fields = fields_of(sent(name, port))
            copies = world.fabric.deliver(*world.hosts[name].place, fields).hosts
            got = Counter(
                (world.at()[copy.dpid, copy.port_no], copy.vlan_ids, copy.eth_dst) for copy in copies.elements()
            )
            mac = fields.eth_dst
            assert got == {("h9", (), mac): 1, ("h10", (10,), mac): 1, ("h16", (), mac): 1}


class FlowRace(Race):
    """A race whose packets are of many flows."""

    def send(self, count=1):
        sent = []
        for _ in range(count):
            sender = self.dice.choice(self.senders)
            made = frame(self.world, sender, self.dice.choice(PORTS), parse_ip("239.1.2.3"))
            fields = fields_of(made)
            sent.append(Packet(sender, made, fields, [self.first(sender, fields)]))
        self.packets += sent
        return sent


def let_pass(race, seconds):
    race.world.now += seconds
    race.world.feed(DeadlineReached())


@pytest.mark.parametrize("graph", ["leaf-spine", "fattree", "avalanche24", "ring", "bundles"])
def test_trees_come_and_go_under_packets_under_way_and_each_arrives_once(make_world, graph):
    """Whatever switches are slow, and whether flows are divided or senders whole."""
    divided = 0
    for seed in range(20):
        dice = random.Random(f"flows {graph} {seed}")
        fabric = leaf_spine(leaves=4, spines=4) if graph == "leaf-spine" else fabric_of(graph)
        world = make_world(fabric, POLICY, 4, seed=seed)
        names = list(world.hosts)
        members, senders = dice.sample(names, min(4, len(names))), dice.sample(names, min(3, len(names)))
        race = FlowRace(world, members, senders, dice)
        sent = []
        for _ in range(8):
            race.slow = set(dice.sample(sorted(world.switches), dice.randint(0, len(world.switches) // 2)))
            count = dice.randint(0, 4)
            static = (StaticTrees(parse_prefix("239.0.0.0/8"), count),) if count else ()
            split = dice.choice(["flow", "flow", "sender"])
            use(world, Aliases(mode="static" if count else "off", static=static, split=split))
            sent += race.send(2)
            race.run(dice.randrange(20))
            for _ in range(4):
                let_pass(race, dice.choice([0.0, 0.05]))
                sent += race.send(1)
                race.run(dice.randrange(15))
            while any(packet.copies for packet in race.packets):
                race.hop(dice.choice([packet for packet in race.packets if packet.copies]))
            if dice.random() < 0.5:
                race.settle(dice.choice([0.1, 0.6]))
            else:
                let_pass(race, dice.choice([0.0, 0.01, 0.06, 0.3]))
            (group,) = world.core.plane.groups.values()
            divided += any(parts.is_used for parts in (group.parts or {}).values())
        race.settle(3.0)
        race.check_all(sent)
        sent = race.send(6)
        race.settle()
        race.check_all(sent)
    assert divided > 20
