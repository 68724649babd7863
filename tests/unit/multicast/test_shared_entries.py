"""Cores with one entry for each set of pods: packets and edits in any order, and no packet is lost or doubled."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from controller.config.overcommit_settings import Capacities, Overcommit
from controller.multicast.events import PolicyLoaded
from controller.multicast.shared_entries import UNUSED_S
from controller.multicast.table_limits import TableLimits, table_of
from controller.rules.compile_shared import is_shared, shares
from controller.rules.model import Output
from controller.rules.pipeline import FORWARD, OPENFLOW_1_0
from controller.wire.addresses import parse_ip
from controller.wire.packets import RecordType
from topology.generators import make
from topology.graph import NodeKind

from .conftest import GROUP, GROUP_V6, leaf_spine
from .test_multicast_in_flight import POLICY, Changes, Race

SHARING = replace(POLICY, overcommit=Overcommit(mode="swap"))
PODS = 4


@pytest.fixture
def short(monkeypatch):
    """Have tables be taken for so full that groups that come in share."""
    monkeypatch.setattr(TableLimits, "are_ample", lambda _self: False)


def fattree():
    return make("fattree")


def cores(world):
    graph = world.graph
    return [graph.attributes(node)["dpid"] for node in graph.switches() if graph.kind(node) is NodeKind.CORE]


def shared_at(world, dpid):
    return [rule for rule in world.rules()[dpid].values() if is_shared(rule)]


def shared(world):
    return {dpid: found for dpid in world.switches if (found := shared_at(world, dpid))}


def group(number):
    return parse_ip(f"239.7.0.{number}")


def filled(world, count, members=("h1", "h6", "h11"), sender="h16"):
    """Have so many groups of members in three pods come in."""
    for number in range(count):
        for name in members:
            world.join(name, group(number))
        world.send(sender, group(number))
        world.settle()
    return world


def assert_served(world, number, members=("h1", "h6", "h11"), sender="h16"):
    sent = len(world.packet_outs)
    assert world.send(sender, group(number)) == Counter(members), number
    assert len(world.packet_outs) == sent, "the switches forward it"


# What is where


def test_groups_of_the_same_pods_are_one_entry_at_their_core(make_world, short):
    world = filled(make_world(fattree(), SHARING), 12)
    at_cores = {dpid: found for dpid, found in shared(world).items() if dpid in cores(world)}
    assert at_cores
    assert shared(world) == at_cores
    assert {len(found) for found in at_cores.values()} == {1}
    assert not any(rule.key.match.ip_dst for dpid in at_cores for rule in world.rules()[dpid].values()
                   if rule.key.table == FORWARD)  # fmt: skip
    for number in range(12):
        assert_served(world, number)


def test_the_entry_of_a_core_goes_with_the_last_group_that_uses_it(make_world, short):
    world = filled(make_world(fattree(), SHARING), 8)
    assert 8 > sum(map(len, shared(world).values())) > 0
    for number in range(8):
        for name in ("h1", "h6", "h11"):
            world.leave(name, group(number))
        world.advance(3.0)
        for other in range(number + 1, 8):
            assert_served(world, other)
    assert shared(world)
    world.advance(UNUSED_S)
    assert shared(world) == {}


def test_where_all_tables_have_ample_room_nothing_is_shared(make_world):
    world = filled(make_world(fattree(), SHARING), 3)
    assert shared(world) == {}
    assert {each.tree_version for each in world.core.plane.groups.values()} == {0}


def test_without_overcommit_nothing_is_shared(make_world, short):
    world = filled(make_world(fattree(), POLICY), 3)
    assert shared(world) == {}
    assert not any(rule.key.match.eth_dst_mask for rules in world.rules().values() for rule in rules.values())


def test_leaves_under_spines_share_nothing(make_world, short):
    world = make_world(leaf_spine(leaves=4, spines=2, hosts=2), SHARING)
    filled(world, 3, ("h1", "h3", "h5"), "h7")
    assert shared(world) == {}
    assert_served(world, 1, ("h1", "h3", "h5"), "h7")


def test_switches_of_openflow_1_0_share_nothing_and_forward_what_others_share(make_world, short):
    graph = fattree()
    number = {node: graph.attributes(node)["dpid"] for node in graph.switches()}
    for kinds in ({NodeKind.CORE}, {NodeKind.AGGREGATION}, {NodeKind.TOR}):
        old = {dpid: OPENFLOW_1_0 for node, dpid in number.items() if graph.kind(node) in kinds}
        world = filled(make_world(graph, SHARING, {**dict.fromkeys(number.values(), 4), **old}), 3)
        assert bool(shared(world)) is (kinds == {NodeKind.TOR})
        for each in range(3):
            assert_served(world, each)


def test_an_ipv6_group_shares_with_others_of_ipv6(make_world, short):
    world = make_world(fattree(), SHARING)
    for name in ("h1", "h6", "h11"):
        world.join(name, GROUP_V6)
    world.send("h16", GROUP_V6)
    world.settle()
    assert shared(world)
    sent = len(world.packet_outs)
    assert world.send("h16", GROUP_V6) == Counter(["h1", "h6", "h11"])
    assert len(world.packet_outs) == sent


def test_members_of_named_sources_in_other_pods_get_these_alone(make_world, short):
    world = make_world(fattree(), SHARING)
    one, other = world.hosts["h16"].v4, world.hosts["h15"].v4
    world.join("h1")
    world.record("h6", RecordType.ALLOW_NEW_SOURCES, GROUP, one)
    world.record("h11", RecordType.ALLOW_NEW_SOURCES, GROUP, other)
    for _ in range(2):
        assert world.send("h16") == Counter(["h1", "h6"])
        assert world.send("h15") == Counter(["h1", "h11"])
        world.settle()
    pod_1, pod_2, pod_3 = (Output(port_no) for port_no in (1, 2, 3))
    sets = {rule.actions for found in shared(world).values() for rule in found}
    assert sets == {(pod_1,), (pod_1, pod_2), (pod_1, pod_3)}


# Under packets


def all_but(world, slow):
    """Have all switches but one take what they are sent."""
    while busy := [dpid for dpid, queue in world.queues.items() if queue and dpid != slow]:
        world.step(busy[0])


def test_nobody_writes_ports_that_the_core_does_not_know_yet(make_world, short):
    world = filled(make_world(fattree(), SHARING), 1, ("h1", "h6"))
    (core,) = shared(world)
    world.join("h11", group(0))
    all_but(world, core)
    assert_served(world, 0, ("h1", "h6"))
    world.settle()
    assert_served(world, 0)
    assert len(shared_at(world, core)) == 2, "packets may be under way that name the ports of before"
    world.leave("h1", group(0))
    world.advance(3 * UNUSED_S)
    assert_served(world, 0, ("h6", "h11"))
    assert len(shared_at(world, core)) == 1


@pytest.mark.parametrize("kind", ["members", "links", "no version left"])
def test_members_and_links_come_and_go_under_packets(make_world, short, monkeypatch, kind):
    """Nobody gets a packet twice; where no link fails, members throughout get all; in the end all members do."""
    told = 0
    for seed in range(9):
        dice = random.Random(f"{kind} {seed}")
        world = make_world(fattree(), SHARING, seed=seed)
        names = list(world.hosts)
        race = Race(world, dice.sample(names, dice.randint(2, 6)), dice.sample(names, 2), dice)
        assert shares(world.core.plane.groups[GROUP].tree_version)
        if kind == "no version left":
            monkeypatch.setattr(world.core.plane.transitions, "take_version", lambda _group: False)
        changes = Changes(race)
        for _ in range(12):
            race.slow = set(dice.sample(sorted(world.switches), dice.randint(0, len(world.switches) // 2)))
            race.send(dice.randrange(4))
            race.run(dice.randrange(15))
            what = dice.choice(["pull", "mend", "join", "leave", "pass"] if kind != "members" else ["join", "leave"])
            changes.make(what)
            if what == "pass":
                race.settle(0.02)
            told += len(shared(world)) > 0
        race.settle(3.0)
        changes.check(seed, steady_get_all=kind == "members")
    assert told > 25


def test_groups_with_room_go_over_to_shared_entries_under_packets_when_there_is_no_more(make_world, monkeypatch):
    for seed in range(6):
        dice = random.Random(seed)
        world = make_world(fattree(), SHARING, seed=seed)
        race = Race(world, ["h1", "h6", "h11"], ["h16", "h2"], dice)
        assert not shared(world)
        monkeypatch.setattr(TableLimits, "are_ample", lambda _self: False)
        world.core.swapping.touch_all()
        sent = []
        for _ in range(40):
            sent += race.send(2)
            race.settle(0.1)
            world.now += 0.1
        assert shared(world)
        race.check_all(sent)
        monkeypatch.setattr(TableLimits, "are_ample", lambda _self: True)


def test_groups_have_entries_of_their_own_again_when_the_mode_is_off(make_world, short):
    world = filled(make_world(fattree(), SHARING), 3)
    assert shared(world)
    world.feed(PolicyLoaded(POLICY))
    for _ in range(20):
        world.advance(0.5)
    assert shared(world) == {}
    for number in range(3):
        assert_served(world, number)


# Restarts, tables


@pytest.mark.parametrize("journal", [True, False], ids=["log", "no log"])
def test_a_restart_keeps_what_is_shared(make_world, short, journal):
    world = filled(make_world(fattree(), SHARING), 4)
    world.advance(1.0)
    before = world.rules()
    world.restart(journal=journal)
    world.connect_all()
    world.advance(5.0)
    if journal:
        assert world.applied == 0
        assert world.rules() == before
    for _ in range(40):
        world.advance(1.0)
        for name in ("h1", "h6", "h11"):
            for number in range(4):
                world.join(name, group(number))
    for number in range(4):
        world.send("h16", group(number))
        world.settle()
        assert_served(world, number)


def test_a_switch_that_comes_back_empty_gets_the_entries_that_groups_share(make_world, short):
    world = filled(make_world(fattree(), SHARING), 6)
    before = shared(world)
    core = next(iter(before))
    world.disconnect(core)
    world.settle()
    world.advance(1.0)
    world.reconnect(core)
    world.advance(5.0)
    for number in range(6):
        assert_served(world, number)


def test_shared_entries_are_counted_as_those_that_stay(make_world, short):
    world = make_world(fattree(), replace(SHARING, overcommit=Overcommit("swap", Capacities(default=500))))
    filled(world, 6)
    world.advance(40.0)
    for dpid, found in shared(world).items():
        limits = world.core.swapping.accounts.limits
        held = sum(key.table == FORWARD for key in world.rules()[dpid])
        assert limits.of(table_of(dpid, FORWARD)).pinned == held
        assert len(found) == 1
