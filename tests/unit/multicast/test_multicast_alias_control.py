"""Aliases that follow what is measured: from the pool to groups that wait, between groups, and back to the pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from controller.config.service_class_settings import Aliases, StaticTrees
from controller.config.service_classes import ServiceClass
from controller.config.terms import parse_prefix
from controller.multicast import alias_control
from controller.multicast.events import LoadsMeasured, PolicyLoaded
from controller.service_classes.goals import Goal, GoalKind
from controller.service_classes.pool import FlowsUsed
from controller.wire.addresses import format_ip, parse_ip
from wire_frames import fields_of

from .conftest import GROUP, OPEN, leaf_spine

OTHER = parse_ip("239.2.0.1")
FAST = replace(OPEN, aliases=Aliases(mode="dynamic", pace="fast"))
GBIT = 1e9
MEMBERS = ["h9", "h10", "h11", "h12"]
SENDERS = [f"h{n}" for n in range(1, 9)]


@pytest.fixture
def make(make_world):
    def build(policy=FAST, version=4):
        return make_world(leaf_spine(leaves=6, spines=4, hosts=2), policy, version)

    return build


def begin(world, group, senders, members=MEMBERS):
    for name in members:
        world.join(name, group)
    world.settle()
    for name in senders:
        world.send(name, group)
    world.settle()


def stream(world, rates_bps: Mapping[bytes, Mapping[str, float]], seconds: float):
    """Have hosts send at some rates by group; nobody may get a packet twice, or miss one."""
    end_s, asked_s = world.now + seconds, world.now
    while world.now < end_s:
        if world.now >= asked_s + 60:  # hosts answer the querier
            asked_s = world.now
            for group in rates_bps:
                for name in MEMBERS:
                    world.join(name, group, version=3)
        for group, rates in rates_bps.items():
            for name, rate_bps in rates.items():
                host = world.hosts[name]
                delivery = world.fabric.deliver(*host.place, fields_of(world.data(name, group)), round(rate_bps / 4))
                got = sorted((copy.dpid, copy.port_no) for copy in delivery.hosts.elements())
                assert got == sorted(world.hosts[member].place for member in MEMBERS)
        world.advance(2.0)
        pool = world.core.policy.aliases.pool
        assert world.core.plane.aliases.bound_count <= pool, "one that is being taken away counts too"


def moves(world, kind="alias-moved"):
    return [dict(notice.fields) for notice in world.notices if notice.kind == kind]


def trees(world, group=GROUP):
    return len(world.core.plane.groups[group].all_trees())


def test_a_hot_group_gets_trees_until_it_hardly_waits(make, version):
    world = make(version=version)
    begin(world, GROUP, SENDERS)
    stream(world, {GROUP: dict.fromkeys(SENDERS, 0.24 * GBIT)}, 20)
    assert moves(world)[0] == {"group": "239.1.2.3", "from": "pool", "by": "efficiency"}
    stream(world, {GROUP: dict.fromkeys(SENDERS, 0.24 * GBIT)}, 60)
    assert trees(world) == 4
    loads = world.core.forest.loads
    assert loads.max_utilisation() < 0.6
    text = next(notice.text for notice in world.notices if notice.kind == "alias-moved")
    assert text.startswith("239.1.2.3 gets an alias from the pool, to wait less: ")


def reasons(world, group=GROUP):
    shown = world.core.sections.groups.changes(0, 1000)["put"][format_ip(group)]
    return [alias["reason"] for alias in shown["aliases"]]


def test_each_alias_says_why_its_group_has_it(make):
    always = StaticTrees(parse_prefix("239.1.0.0/16"), 1)
    world = make(replace(FAST, aliases=replace(FAST.aliases, static=(always,))))
    begin(world, GROUP, SENDERS)
    assert reasons(world) == ["the policy gives it always (aliases.static)"]
    world.core.aliases.ask(GROUP, True, world.now)
    world.advance(1.0)
    assert reasons(world)[1:] == ["an operator asked for it"]
    stream(world, {GROUP: dict.fromkeys(SENDERS, 0.24 * GBIT)}, 80)
    why = reasons(world)[2]
    assert why.startswith("from the pool, to wait less: ")
    assert f"239.1.2.3 gets an alias {why}." in [notice.text for notice in world.notices]
    world.core.aliases.ask(GROUP, False, world.now)
    world.advance(2.0)
    assert why not in reasons(world)


def test_quiet_groups_and_those_of_one_sender_get_none(make):
    world = make()
    begin(world, GROUP, SENDERS)
    begin(world, OTHER, ["h1"])
    stream(world, {GROUP: dict.fromkeys(SENDERS, 0.01 * GBIT), OTHER: {"h1": 0.9 * GBIT}}, 60)
    assert (trees(world), trees(world, OTHER)) == (1, 1)
    assert moves(world) == []


@pytest.mark.parametrize("silent", [0, 1, 2])
def test_a_trial_leaves_no_trace(make, silent):
    world = make(replace(OPEN, aliases=Aliases(mode="dynamic", pace="fast", pool=0)))
    begin(world, GROUP, SENDERS)
    rates = {GROUP: dict.fromkeys(SENDERS, 0.24 * GBIT)}
    stream(world, rates, 8)
    rates[GROUP].update(dict.fromkeys(SENDERS[:silent], 0.0))
    stream(world, rates, 30)
    group, forest = world.core.plane.groups[GROUP], world.core.forest

    def state():
        return list(forest.loads.bps), len(forest), world.rules(), {k: s.alias for k, s in group.senders.items()}

    before = state()
    assert world.core.aliases.trial.would_gain(group)
    assert state() == before


def test_large_flows_to_one_host_have_a_part_of_the_pool(make):
    world = make(replace(FAST, aliases=replace(FAST.aliases, pool=2, unicast=True)))
    begin(world, GROUP, SENDERS)
    world.feed(FlowsUsed(2))
    hot = {GROUP: dict.fromkeys(SENDERS, 0.24 * GBIT)}
    stream(world, hot, 40)
    assert (trees(world), world.told_aliases) == (1, [])
    world.feed(FlowsUsed(1))
    stream(world, hot, 40)
    assert (trees(world), world.told_aliases) == (2, [1])


def test_a_group_that_waits_for_large_flows_gets_its_alias_when_one_ends(make):
    always = StaticTrees(parse_prefix("239.1.0.0/16"), 1)
    world = make(replace(FAST, aliases=replace(FAST.aliases, static=(always,), pool=1, unicast=True)))
    world.feed(FlowsUsed(1))
    begin(world, GROUP, SENDERS)
    assert trees(world) == 1
    world.feed(FlowsUsed(0))
    world.advance(1.0)
    assert trees(world) == 2


def test_an_alias_moves_from_a_group_that_hardly_needs_it(make):
    world = make(replace(FAST, aliases=replace(FAST.aliases, pool=1)))
    begin(world, GROUP, SENDERS[:4])
    begin(world, OTHER, SENDERS[4:])
    hot, cool = dict.fromkeys(SENDERS[:4], 0.22 * GBIT), dict.fromkeys(SENDERS[4:], 0.01 * GBIT)
    stream(world, {GROUP: hot, OTHER: cool}, 30)
    assert (trees(world), trees(world, OTHER)) == (2, 1)
    cool, hot = dict.fromkeys(SENDERS[:4], 0.01 * GBIT), dict.fromkeys(SENDERS[4:], 0.22 * GBIT)
    stream(world, {GROUP: cool, OTHER: hot}, 60)
    assert (trees(world), trees(world, OTHER)) == (1, 2)
    assert moves(world)[-1] == {"group": "239.2.0.1", "from": "239.1.2.3", "by": "efficiency"}
    assert world.core.plane.aliases.bound_count == 1


def test_a_class_that_misses_its_goal_takes_a_tree_from_a_less_important_group(make):
    feed = ServiceClass("feed", 1, (parse_prefix("239.2.0.0/16"),), goal=Goal(GoalKind.DELAY, 0.001))
    bulk = ServiceClass("bulk", 5, (parse_prefix("239.1.0.0/16"),))
    aliases = replace(FAST.aliases, pool=1)
    world = make(replace(FAST, aliases=aliases, classes=(feed, bulk)))
    begin(world, GROUP, SENDERS[:4])
    begin(world, OTHER, SENDERS[4:])
    both = {GROUP: dict.fromkeys(SENDERS[:4], 0.23 * GBIT)}
    stream(world, both, 30)
    assert trees(world) == 2
    stream(world, {**both, OTHER: dict.fromkeys(SENDERS[4:], 0.2 * GBIT)}, 60)
    assert {"group": "239.2.0.1", "from": "239.1.2.3", "by": "goal"} in moves(world)
    assert trees(world, OTHER) == 2


def test_a_class_may_keep_its_groups_as_they_are(make):
    closed = ServiceClass("closed", 6, (parse_prefix("239.1.0.0/16"),), aliases=False)
    world = make(replace(FAST, classes=(closed,)))
    begin(world, GROUP, SENDERS)
    stream(world, {GROUP: dict.fromkeys(SENDERS, 0.24 * GBIT)}, 60)
    assert trees(world) == 1


def test_an_alias_that_carries_nothing_goes_back_to_the_pool(make, monkeypatch):
    world = make()
    begin(world, GROUP, SENDERS)
    stream(world, {GROUP: dict.fromkeys(SENDERS, 0.24 * GBIT)}, 40)
    had = trees(world)
    assert had > 1
    monkeypatch.setattr(alias_control, "IDLE_S", 60.0)
    stream(world, {GROUP: dict.fromkeys(SENDERS, 0.0)}, 120)
    assert trees(world) == 1
    assert len(moves(world, "alias-returned")) == had - 1
    assert world.core.plane.aliases.bound_count == 0


def test_trees_of_the_policy_are_nobody_elses(make):
    static = (StaticTrees(parse_prefix("239.1.0.0/16"), 2),)
    world = make(replace(FAST, aliases=replace(FAST.aliases, pool=2, static=static)))
    begin(world, GROUP, SENDERS[:4])
    begin(world, OTHER, SENDERS[4:])
    quiet, hot = dict.fromkeys(SENDERS[:4], 0.01 * GBIT), dict.fromkeys(SENDERS[4:], 0.23 * GBIT)
    stream(world, {GROUP: quiet, OTHER: hot}, 60)
    assert (trees(world), trees(world, OTHER)) == (3, 1)


def test_a_steady_pace_takes_a_minute(make):
    world = make(replace(FAST, aliases=Aliases(mode="dynamic")))
    begin(world, GROUP, SENDERS)
    rates = {GROUP: dict.fromkeys(SENDERS, 0.24 * GBIT)}
    stream(world, rates, 30)
    first = trees(world)
    stream(world, rates, 60)
    second = trees(world)
    stream(world, rates, 200)
    assert first <= second <= first + 1
    assert trees(world) > second


def test_a_restart_keeps_what_moved(make, version):
    world = make(version=version)
    begin(world, GROUP, SENDERS)
    rates = {GROUP: dict.fromkeys(SENDERS, 0.24 * GBIT)}
    stream(world, rates, 60)
    had, before = trees(world), world.rules()
    assert had > 1
    world.restart()
    world.connect_all()
    applied = world.applied
    world.settle(5.0)
    assert (trees(world), world.applied, world.rules()) == (had, applied, before)
    stream(world, rates, 60)
    assert trees(world) >= had


def test_another_mode_takes_all_back(make):
    world = make()
    begin(world, GROUP, SENDERS)
    rates = {GROUP: dict.fromkeys(SENDERS, 0.24 * GBIT)}
    stream(world, rates, 60)
    assert trees(world) > 1
    world.feed(PolicyLoaded(OPEN))
    stream(world, rates, 10)
    assert trees(world) == 1
    assert world.core.aliases.next_deadline() is None


def test_an_operator_gives_an_alias_and_takes_it(make):
    world = make()
    begin(world, GROUP, SENDERS)
    assert world.do("alias-add", group="239.1.2.3").document == {"group": "239.1.2.3", "aliases": 1}
    world.settle(1.0)
    assert trees(world) == 2
    for _ in range(3):
        world.do("alias-add", group="239.1.2.3")
    refused = world.do("alias-add", group="239.1.2.3")
    assert (refused.field, refused.text) == (
        "group",
        "group: 239.1.2.3: it has 4 aliases; aliases.per_group allows 4",
    )
    for _ in range(4):
        world.do("alias-remove", group="239.1.2.3")
    world.settle(2.0)
    assert trees(world) == 1
    assert "no alias but those" in world.do("alias-remove", group="239.1.2.3").text
    assert "no members or senders" in world.do("alias-add", group="239.9.9.9").text


@pytest.mark.parametrize("mode", ["off", "static"])
def test_where_measures_move_nothing_an_operator_moves_nothing_either(make, mode):
    world = make(replace(OPEN, aliases=Aliases(mode=mode)))
    begin(world, GROUP, SENDERS)
    assert "aliases.mode is not dynamic" in world.do("alias-add", group="239.1.2.3").text


def test_what_is_measured_is_shown(make):
    world = make()
    begin(world, GROUP, SENDERS)
    stream(world, {GROUP: dict.fromkeys(SENDERS, 0.24 * GBIT)}, 30)
    document = world.core.group_view.group(GROUP)
    assert document["queue_packets"] > 0
    assert 0 < document["utilisation_pct"] <= 100
    assert world.core.figures.all().alias_count == len(document["aliases"]) > 0
    assert world.core.figures.all().alias_moves == {"efficiency": len(moves(world))}


def test_a_group_that_is_dropped_on_its_way_waits_as_much_as_one_can_whatever_its_links_carry(make):
    world = make()
    begin(world, GROUP, SENDERS)
    rates = {GROUP: dict.fromkeys(SENDERS, 0.02 * GBIT)}
    stream(world, rates, 40)
    before = world.core.aliases.measured(GROUP)
    assert before.queue < 0.25 and trees(world) == 1
    loads = world.core.forest.loads
    number = max(range(len(loads.bps)), key=lambda number: loads.bps[number])
    link, background_bps = loads.links[number], float(loads.background_bps[number])
    cable = (link.u, link.u_port, link.v, background_bps)
    world.feed(LoadsMeasured((cable,), ((link.u, link.u_port),)))
    stream(world, rates, 24)
    assert moves(world)[0] == {"group": "239.1.2.3", "from": "pool", "by": "efficiency"}
    world.feed(LoadsMeasured((cable,)))
    stream(world, rates, 24)
    assert world.core.aliases.measured(GROUP).queue < 0.25


def test_more_groups_than_one_look_takes_are_first_seen_in_the_next(make, monkeypatch):
    monkeypatch.setattr(alias_control, "FIRST_SEEN_PER_LOOK", 1)
    world = make()
    begin(world, GROUP, ["h1"])
    begin(world, OTHER, ["h2"])
    seen = []
    for _ in range(12):
        stream(world, {GROUP: {"h1": 0.1 * GBIT}, OTHER: {"h2": 0.1 * GBIT}}, 2)
        seen.append(sum(world.core.aliases.measured(group) is not None for group in (GROUP, OTHER)))
    assert seen == sorted(seen)
    assert seen.count(1) == 5, "a look is 10 s after the one before"
    assert seen[-1] == 2
