"""Groups come in and go out, the log is not told any more, and another controller takes the fabric over."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import MethodType

import pytest

from controller.config.overcommit_settings import Capacities, Overcommit
from controller.effects import RequestFlows
from controller.multicast.found_swaps import SWITCHES_AWAITED_S
from controller.overcommit import covers
from controller.overcommit.tables import GroupTables
from controller.rules.compile_cover import is_covered
from controller.rules.pipeline import OPENFLOW_1_3, SENDER_COOKIE_BIT
from controller.wire.addresses import format_ip

from .conftest import OPEN, World
from .overcommitted import assert_served, done, group, inside, joined, overcommitted, rules_of, sender_of
from .shadow import Shadow

GROUPS, ONCE_IN = 40, 20


def with_late_answers(world):
    """Have switches tell what they hold in turn with the edits of others."""

    def perform(self, effect):
        if isinstance(effect, RequestFlows) and effect.dpid in self.connected:
            self.queues[effect.dpid].append((0, effect))
        else:
            World.perform(self, effect)

    def step(self, dpid):
        if not isinstance(self.queues[dpid][0][1], RequestFlows):
            World.step(self, dpid)
            return
        _, effect = self.queues[dpid].popleft()
        for event in self.switches[dpid].respond(effect, self.now):
            self.feed(event)

    world.perform, world.step = MethodType(perform, world), MethodType(step, world)


def swapped_after_the_log_was_told(make_world, swaps, steps, seed=0, version=4):
    """Return a world in which so many groups went out and others came in, so many edits for each, and who follows."""
    world = joined(overcommitted(make_world, version, seed=seed), GROUPS)
    for number in range(ONCE_IN):
        assert_served(world, number)
        world.advance(0.3)
    world.advance(1.0)
    shadow = Shadow(world, world.policy)
    shadow.follow()
    world.is_hasty = True
    for number in range(swaps):
        assert_served(world, ONCE_IN + number)
        world.do("group-swap-out", group=format_ip(group(number)))
        for _ in zip(range(steps), world.steps(0.3), strict=False):
            pass
    with_late_answers(world)
    return world, shadow


def out(core):
    return {address for address, each in core.plane.groups.items() if each.is_out}


@pytest.mark.parametrize("steps", [2, 10, 100])
@pytest.mark.parametrize("seed", range(4))
def test_no_packet_is_lost_of_groups_that_came_or_went_after_the_log_was_told(make_world, version, seed, steps):
    world, shadow = swapped_after_the_log_was_told(make_world, 6, steps, seed, version)
    assert out(world.core) != out(shadow.core)
    shadow.lead()
    world.connect_all()
    numbers = [*range(6), *range(ONCE_IN, ONCE_IN + 6)]
    for _ in world.steps(0.6):
        assert_served(world, world.random.choice(numbers))
    for _ in range(20):  # the time of grace ends meanwhile
        for _ in world.steps(1.0):
            assert_served(world, world.random.choice(numbers))
        world.now += 1.0
    assert len(world.refused_edits()) <= (0 if version == OPENFLOW_1_3 else 6), "all is in one table there"


def test_who_is_in_is_what_switches_hold_and_nothing_is_sent(make_world, version):
    world, shadow = swapped_after_the_log_was_told(make_world, 6, 100, version=version)
    before, are_out = world.rules(), out(world.core)
    shadow.lead()
    world.connect_all()
    world.settle()
    assert out(world.core) == are_out
    world.advance(30.0)
    assert out(world.core) == are_out
    assert world.applied == 0
    assert world.rules() == before


def test_a_senders_entry_that_a_switch_has_kept_alone_goes_at_once(make_world):
    """The switch was away while the group went out: its packets would enter a tree that is no more."""
    world, shadow = swapped_after_the_log_was_told(make_world, 0, 0)
    place, name = world.hosts[sender_of(3)].dpid, group(3)
    kept = {key: rule for key, rule in world.switches[place].rules.items() if rule.key.match.ip_dst == name}
    done(world.do("group-swap-out", group=format_ip(name)))
    world.advance(1.0)
    shadow.follow()
    assert not rules_of(world, name)
    for rule in kept.values():
        if rule.cookie & SENDER_COOKIE_BIT:
            world.switches[place].tables.put(rule, world.now)
    shadow.lead()
    world.connect_all()
    world.settle()
    assert not rules_of(world, name)
    assert_served(world, 3)


def test_a_switch_that_lost_all_gets_what_it_had(make_world):
    world, shadow = swapped_after_the_log_was_told(make_world, 0, 0)
    place, are_out = world.hosts[sender_of(3)].dpid, out(world.core)
    before = world.rules()
    for key in before[place]:
        world.switches[place].tables.remove(key)
    shadow.lead()
    world.connect_all()
    world.settle()
    assert out(world.core) == are_out
    assert world.rules() == before


def test_a_switch_that_does_not_come_is_not_waited_for(make_world):
    world, shadow = swapped_after_the_log_was_told(make_world, 6, 100)
    are_out, gone = out(world.core), world.hosts["h7"].dpid
    shadow.lead()
    for dpid in world.switches:
        if dpid != gone:
            world.connect(dpid)
    world.settle()
    assert out(world.core) != are_out
    world.advance(SWITCHES_AWAITED_S)
    assert out(world.core) == are_out


@pytest.mark.parametrize("tree_seed", [None, 77], ids=["same trees", "other trees"])
@pytest.mark.parametrize("seed", range(2))
def test_full_tables_are_taken_over_without_a_log(make_world, version, seed, tree_seed):
    """Groups have no room for other entries beside: where those that stand will not do, they go out first."""
    world = joined(overcommitted(make_world, version, seed=seed), GROUPS)
    for number in range(GROUPS):
        assert_served(world, number)
        world.advance(0.3)
    world.advance(1.0)
    before = len(inside(world))
    policy = replace(world.policy, multicast=replace(world.policy.multicast, seed=tree_seed or 1))
    world.restart(journal=False, policy=policy)
    with_late_answers(world)
    world.connect_all()
    joined(world, GROUPS)
    world.is_hasty = True
    for _ in range(20):
        for _ in world.steps(1.0):
            assert_served(world, world.random.randrange(GROUPS))
        world.now += 1.0
    assert not world.core.grace.is_running
    assert world.refused_edits() == []
    assert len(inside(world)) > before / 3


@pytest.mark.parametrize("is_told", [True, False], ids=["told", "not told"])
def test_groups_under_covering_trees_lose_no_packet_where_the_log_was_not_told(make_world, monkeypatch, is_told):
    monkeypatch.setattr(GroupTables, "short_ahead", lambda self: dict.fromkeys(self.tables, 1) if is_short else {})
    monkeypatch.setattr(covers, "LEAST_GROUPS", 1)
    is_short = False
    world = make_world("fattree", replace(OPEN, overcommit=Overcommit("cover", Capacities(default=1000))))
    members, sender = ("h1", "h6", "h11"), "h16"
    for number in range(8):
        for name in members:
            world.join(name, group(number))
        world.send(sender, group(number))
        world.settle()
    shadow = Shadow(world, world.policy)
    world.advance(1.0)
    shadow.follow()
    is_short = True
    world.advance(25.0)
    under = {name for name, each in world.core.plane.groups.items() if is_covered(each.tree_version)}
    assert len(under) == 8
    if is_told:
        shadow.follow()
    is_short = False
    world.is_hasty = True
    with_late_answers(world)
    shadow.lead()
    world.connect_all()
    for _ in range(20):
        for _ in world.steps(1.0):
            assert world.send(sender, group(world.random.randrange(8))) == Counter(members)
        world.now += 1.0
