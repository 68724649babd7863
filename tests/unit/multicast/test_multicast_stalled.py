"""A switch that carries out nothing for seconds, while trees change around it: what it holds leads nobody astray."""

from __future__ import annotations

import random

import pytest

from controller.config.policy import Policy
from controller.config.settings import Limits, Multicast
from controller.events import DeadlineReached
from controller.wire.addresses import parse_ip

from .conftest import GRAPHS, World, ring

GROUP = parse_ip("239.1.2.3")
OSPF, LLMNR = parse_ip("224.0.0.5"), parse_ip("ff02::1:3")
POLICY = Policy(
    default_allow=True,
    limits=Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6),
    multicast=Multicast(fast_leave=True),
)
STEP_S = 0.2


def carry_out(world: World, stalled: int, until_s: float) -> None:
    """Let time pass, in which all switches but one do what they were told."""
    end_s = world.now + until_s
    while True:
        busy = [dpid for dpid, queue in world.queues.items() if queue and dpid != stalled]
        if busy:
            world.step(world.random.choice(busy))
            continue
        due_s = world.core.next_deadline()
        if due_s is None or due_s > end_s:
            world.now = end_s
            return
        world.now = max(world.now, due_s)
        world.feed(DeadlineReached())


@pytest.mark.parametrize("graph", ["ring", "leaf-spine", "fattree", "bundles"])
def test_nobody_gets_a_packet_twice_while_one_switch_does_nothing(make_world, graph, version):
    """Members come and go, switches are drained, cables are cut and mended; when the switch goes on, all get all."""
    for seed in range(40):
        dice = random.Random(f"{graph} {version} {seed}")
        world = make_world(ring(4) if graph == "ring" else GRAPHS[graph](), POLICY, version, seed=seed)
        names, pairs = sorted(world.hosts), sorted(sorted(pair) for pair in world.links)
        sender = dice.choice(names)
        for name in dice.sample(names, 3):
            world.join(name)
        world.send(sender)
        world.settle()
        stalled, drained = dice.choice(sorted(world.switches)), set()
        for _ in range(14):
            what = dice.choice(["join", "leave", "drain", "undrain", "cut", "mend"])
            down = sorted(sorted(pair) for pair in world.down_links)
            if what in ("join", "leave"):
                getattr(world, what)(dice.choice(names))
            elif what == "drain":
                drained.add(dpid := dice.choice(sorted(world.switches)))
                world.do("switch-drain", dpid=dpid)
            elif what == "undrain" and drained:
                world.do("switch-undrain", dpid=drained.pop())
            elif what == "cut" and len(down) < len(pairs):
                world.cut(*dice.choice([pair for pair in pairs if pair not in down]))
            elif what == "mend" and down:
                world.mend(*dice.choice(down))
            carry_out(world, stalled, STEP_S * dice.randrange(3))
            assert set(world.send(sender).values()) <= {1}, (seed, what)
        world.settle()
        for pair in sorted(sorted(pair) for pair in world.down_links):
            world.mend(*pair)
        world.settle()
        assert sum(1 for _ in world.core.fabric.graph.links()) == len(world.links)
        group = world.core.plane.groups.get(GROUP)
        ports = {(dpid, port) for dpid, ports in (group.interests if group else {}).items() for port in ports}
        members = {name for name, host in world.hosts.items() if host.place in ports}
        assert world.send(sender) == dict.fromkeys(members - {sender}, 1), seed


@pytest.mark.parametrize("graph", ["ring", "leaf-spine", "fattree"])
def test_nothing_of_link_scope_comes_twice_while_one_switch_does_nothing(make_world, graph, version):
    """Links fail and return, and the members of a group with entries of its own come and go."""
    groups = [OSPF] if version == 1 else [OSPF, LLMNR]
    for seed in range(40):
        dice = random.Random(f"{graph} {version} {seed}")
        world = make_world(ring(4) if graph == "ring" else GRAPHS[graph](), POLICY, version, seed=seed)
        names, pairs = sorted(world.hosts), sorted(sorted(pair) for pair in world.links)
        stalled = dice.choice(sorted(world.switches))
        for _ in range(14):
            pair = dice.choice(pairs)
            if dice.random() < 0.3 and LLMNR in groups:
                getattr(world, dice.choice(["join", "leave"]))(dice.choice(names), LLMNR)
            elif frozenset(pair) in world.down_links:
                world.mend(*pair)
            else:
                world.cut(*pair)
            carry_out(world, stalled, STEP_S * dice.randrange(3))
            for group in groups:
                assert set(world.send(dice.choice(names), group).values()) <= {1}, (seed, group)
