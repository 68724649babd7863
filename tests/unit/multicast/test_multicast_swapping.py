"""Groups that go out of tables too small for all, and come in by a packet: none is lost, doubled or refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from controller.config.overcommit_settings import Capacities, Overcommit
from controller.effects import ActionRefused, ApplyEdits
from controller.events import DeadlineReached, SwitchDisconnected
from controller.multicast.core import MulticastCore
from controller.multicast.departures import CACHED_S, RETURN_PAUSE_S
from controller.multicast.events import LogFollowed, PolicyLoaded
from controller.multicast.table_limits import table_of
from controller.multicast.thrashing import Thrashing
from controller.overcommit.draws import HashedChance
from controller.overcommit.tables import GroupTables
from controller.rules.compile import tree_version_of
from controller.rules.lowering import LOWERINGS
from controller.rules.pipeline import SENDER_COOKIE_BIT
from controller.wire.addresses import format_ip
from topology.events import HostGone, PortRole, PortRoleChanged

from .conftest import OPEN, leaf_spine
from .overcommitted import (
    MEMBERS,
    ROOM,
    assert_served,
    counted,
    done,
    edits_of,
    group,
    inside,
    joined,
    overcommitted,
    policy,
    rules_of,
)

# Going in and out


def test_members_alone_cost_no_entry_and_a_packet_brings_all(make_world, version):
    world = joined(overcommitted(make_world, version), 4)
    assert rules_of(world, group(0)) == []
    assert_served(world, 0)
    world.settle()
    assert inside(world) == [group(0)]
    sent = len(world.packet_outs)
    assert_served(world, 0)
    assert len(world.packet_outs) == sent


def test_what_a_group_needs_is_worked_out_once_when_its_first_packet_brings_it_in(make_world, monkeypatch):
    world = joined(overcommitted(make_world), 4)
    plane, worked_out = world.core.plane, []
    supported = plane.tree_duties.of
    monkeypatch.setattr(
        plane.tree_duties, "of", lambda found, effects: worked_out.append(1) or supported(found, effects)
    )
    assert_served(world, 0)
    world.settle()
    assert inside(world) == [group(0)]
    assert len(worked_out) == 1


@pytest.mark.parametrize("said", [True, False], ids=["said", "found"])
def test_more_groups_than_fit_are_all_served(make_world, version, said):
    world = joined(overcommitted(make_world, version, said=said), 60)
    for _ in range(3):
        for number in range(60):
            assert_served(world, number)
            world.advance(0.3)
            assert_served(world, number)
    assert 0 < len(inside(world)) < 60
    assert bool(world.refused_edits()) is not said
    assert len({notice.kind for notice in world.notices} & {"swap-in-failed"}) == (not said)


@pytest.mark.parametrize("seed", range(3))
def test_packets_between_any_two_edits_arrive_once(make_world, seed):
    world = joined(overcommitted(make_world, seed=seed), 40)
    world.is_hasty = True
    for turn in range(120):  # those that send are others every second
        active = [(turn // 5 * 3 + number) % 40 for number in range(8)]
        assert_served(world, world.random.choice(active))
        for _, _step in zip(range(12), world.steps(0.2), strict=False):
            assert_served(world, world.random.choice(active))
        world.now += 0.2
    assert world.refused_edits() == []
    assert counted(world, "swaps-out")


def test_a_senders_entry_is_the_last_to_come_and_the_first_to_go(make_world):
    world = joined(overcommitted(make_world), 40)
    world.is_hasty = True
    whole = None
    for turn in range(60):
        assert_served(world, turn % 40)
        for _ in world.steps(0.4):
            rules = rules_of(world, group(turn % 40))
            senders = [rule for rule in rules if rule.cookie & SENDER_COOKIE_BIT]
            if senders and whole is None:
                whole = len(rules) - len(senders)
            assert not senders or len(rules) - len(senders) >= 3
        world.now += 0.2
    assert whole is not None


def test_a_group_may_leave_at_any_moment_of_its_coming_in(make_world, version):
    """Its sender's entry may be at the switch, or on its way there, without the controller having heard."""
    name = format_ip(group(0))
    world = joined(overcommitted(make_world, version), 1)
    assert_served(world, 0)
    world.settle()
    done(world.do("group-swap-out", group=name))
    world.settle()
    for edit_count in range(20):
        done(world.do("group-swap-in", group=name))
        for _, _step in zip(range(edit_count), world.steps(0.1), strict=False):
            pass
        world.do("group-swap-out", group=name)
        for _ in world.steps(0.6):
            assert_served(world, 0)
            world.now += 0.02
        done(world.do("group-swap-out", group=name))
        world.settle()


def test_who_comes_back_at_once_has_its_senders_entries_a_moment_after_the_rest_is_confirmed(make_world, version):
    """Open vSwitch goes by its cache for a moment longer: there is no entry for the group's packets there."""
    name = format_ip(group(0))
    world = joined(overcommitted(make_world, version), 1)
    assert_served(world, 0)
    world.settle()
    whole = len(rules_of(world, group(0)))
    for away_s, pause_s in ((0.5, RETURN_PAUSE_S), (CACHED_S + 1, 0.0)):
        done(world.do("group-swap-out", group=name))
        world.settle()
        assert rules_of(world, group(0)) == []
        world.advance(away_s)
        done(world.do("group-swap-in", group=name))
        rest_s = senders_s = None
        for _ in world.steps():
            count = len(rules_of(world, group(0)))
            rest_s = world.now if count == whole - 1 and rest_s is None else rest_s
            senders_s = world.now if count == whole and senders_s is None else senders_s
        assert senders_s - rest_s == pytest.approx(pause_s)


def test_what_changes_of_a_group_that_is_out_costs_no_entry(make_world):
    world = joined(overcommitted(make_world), 2)
    assert_served(world, 0)
    world.settle()
    done(world.do("group-swap-out", group=format_ip(group(0))))
    world.settle()
    assert rules_of(world, group(0)) == []
    assert edits_of(world.handle(world_join(world, "h8", group(0)))) == []
    world.cut(*next(iter(world.links)))
    world.settle()
    assert rules_of(world, group(0)) == []
    assert world.send("h1", group(0)) == Counter([*MEMBERS, "h8"])
    world.settle()
    assert world.send("h1", group(0)) == Counter([*MEMBERS, "h8"])


def world_join(world, name, address):
    """Return the event of a host's join, not handled yet."""
    seen = []
    feed, world.feed = world.feed, seen.append
    world.join(name, address)
    world.feed = feed
    return seen[0]


def test_refused_senders_are_dropped_whatever_their_group_does(make_world, version):
    world = joined(overcommitted(make_world, version), 1)
    world.core.gate.admission.replace  # noqa: B018 - there is one
    denied = replace(world.policy, default_allow=False, rules=receivers_only())
    world.feed(PolicyLoaded(denied))
    world.settle()
    assert world.send("h1", group(0)) == Counter()
    world.settle()
    sent = len(world.packet_outs)
    punted = world.flood("h1", world.data("h1", group(0)), 100, 0.2)
    assert punted == 0
    assert len(world.packet_outs) == sent


def receivers_only():
    from controller.config.load import load_policy

    text = "version: 1\nrules:\n  - {name: all, groups: [239.0.0.0/8], role: receiver, hosts: any, action: allow}\n"
    return load_policy(text).rules


def test_a_group_that_ended_and_comes_again_begins_out(make_world):
    world = joined(overcommitted(make_world), 1)
    assert_served(world, 0)
    world.settle()
    for name in MEMBERS:
        world.leave(name, group(0))
    world.advance(400)
    assert group(0) not in world.core.plane.groups
    assert rules_of(world, group(0)) == []
    joined(world, 1)
    assert rules_of(world, group(0)) == []
    assert_served(world, 0)


def test_a_switch_that_never_confirms_has_the_group_come_in_under_another_version(make_world):
    world = joined(overcommitted(make_world), 1)
    assert_served(world, 0)
    world.settle()
    before = world.core.plane.groups[group(0)].tree_version
    leaves = {host.dpid for host in world.hosts.values()}
    spine = next(dpid for dpid in world.core.plane.groups[group(0)].rules if dpid not in leaves)
    world.connected.discard(spine)
    world.queues[spine].clear()
    world.feed(SwitchDisconnected(spine))
    done(world.do("group-swap-out", group=format_ip(group(0))))
    world.advance(31)
    assert_served(world, 0)
    world.settle()
    assert world.core.plane.groups[group(0)].tree_version != before
    versions = {tree_version_of(r.key.match) for r in rules_of(world, group(0)) if not r.cookie & SENDER_COOKIE_BIT}
    assert before in versions


def unplug(world, name):
    host = world.hosts[name]
    world.feed(PortRoleChanged(host.dpid, host.port_no, PortRole.DOWN))
    world.feed(HostGone(host.mac, host.dpid, host.port_no))


def plug_in(world, name):
    host = world.hosts[name]
    world.feed(PortRoleChanged(host.dpid, host.port_no, PortRole.EDGE))
    world.learn(host)


def full_of_ended(make_world):
    """Return a world whose tables are full of groups from h1 to h7, which have just ended; 30 others have h8."""
    world = overcommitted(make_world)
    for number in range(60):
        world.join("h7" if number < 30 else "h8", group(number))
    world.settle()
    for number in range(30):
        world.send("h1", group(number))
        world.advance(0.3)
    world.advance(25)
    for name in ("h1", "h7"):
        unplug(world, name)
    assert len(world.core.plane.groups) == 30
    return world


def test_groups_that_have_just_ended_are_not_chosen_to_leave(make_world):
    world = full_of_ended(make_world)
    for number in range(30, 60):
        assert world.send("h2", group(number)) == Counter(["h8"])
    world.settle()
    assert len(inside(world)) == ROOM


def test_groups_that_end_and_begin_in_one_moment_count_once(make_world):
    world = full_of_ended(make_world)
    tables = world.core.swapping.accounts.tables
    assert list(tables) == []
    assert {table.used for table in tables.tables.values()} == {0}
    for name in ("h1", "h7"):
        plug_in(world, name)
    for number in range(30):
        world.join("h7", group(number))
    world.settle()
    assert list(tables) == inside(world) == []
    for number in range(30):
        assert world.send("h1", group(number)) == Counter(["h7"])
    world.settle()
    assert set(tables) == set(inside(world))


# Who stays


def test_operators_pin_and_unpin(make_world):
    world = joined(overcommitted(make_world), 60)
    name = format_ip(group(59))
    done(world.do("group-pin", group=name))
    world.settle()
    assert group(59) in inside(world)
    for number in range(59):
        assert_served(world, number)
        world.advance(0.3)
    assert group(59) in inside(world)
    assert isinstance(world.do("group-swap-out", group=name), ActionRefused)
    done(world.do("group-unpin", group=name))
    assert isinstance(world.do("group-unpin", group=name), ActionRefused)


def test_operators_have_a_group_in_and_out(make_world):
    world, name = joined(overcommitted(make_world), 2), format_ip(group(0))
    assert isinstance(world.do("group-swap-out", group=name), ActionRefused)
    done(world.do("group-swap-in", group=name))
    world.settle()
    assert rules_of(world, group(0))
    assert isinstance(world.do("group-swap-in", group=name), ActionRefused)
    done(world.do("group-swap-out", group=name))
    world.settle()
    assert rules_of(world, group(0)) == []
    assert isinstance(world.do("group-swap-out", group="239.9.9.9"), ActionRefused)


def test_static_members_have_their_group_in(make_world):
    world = overcommitted(make_world)
    dpid, port_no = world.hosts["h5"].place
    done(world.do("static-member-add", group=format_ip(group(1)), dpid=dpid, port_no=port_no))
    world.settle()
    assert inside(world) == [group(1)]
    assert rules_of(world, group(1))


def test_without_the_mode_nobody_is_out_and_actions_say_so(make_world):
    world = joined(make_world(leaf_spine(4, 2, 2), OPEN), 3)
    assert len(inside(world)) == 3
    refused = world.do("group-swap-out", group=format_ip(group(0)))
    assert isinstance(refused, ActionRefused)
    assert "overcommit.mode is off" in refused.text
    assert world.core.table_view.tables() == {}


def effects_of(make_world, overcommit, version):
    """Return all that a core has done while hosts join, send and leave, a cable is lost and a host moves."""
    world, done_there = make_world(leaf_spine(4, 2, 2), replace(OPEN, overcommit=overcommit), version), []
    handle = world.core.handle
    world.handle = lambda event: done_there.append(handle(event, world.now)) or done_there[-1]
    joined(world, 8)
    for number in range(8):
        assert_served(world, number)
        world.advance(0.3)
    world.cut(*next(iter(world.links)))
    world.settle()
    for name in MEMBERS:
        world.leave(name, group(0))
    unplug(world, "h1")
    world.advance(5)
    plug_in(world, "h1")
    world.advance(30)
    return done_there


def bytes_of(effects, version):
    """Return what edits are to switches, as bytes."""
    encode = LOWERINGS[version].encode_batch
    return [(effect[0], encode(effect)) for each in effects for effect in each if isinstance(effect, ApplyEdits)]


def test_off_sends_byte_for_byte_what_is_sent_without_the_section(make_world, version):
    absent = effects_of(make_world, Overcommit(), version)
    off = effects_of(make_world, Overcommit(capacity=Capacities(default=24), store=4, faults_per_second=1), version)
    assert len(bytes_of(absent, version)) > 50
    assert bytes_of(off, version) == bytes_of(absent, version)
    assert off == absent


def test_another_policy_brings_all_in_and_lets_them_out_again(make_world):
    world = joined(overcommitted(make_world, room=500), 10)
    small = world.policy
    world.feed(PolicyLoaded(OPEN))
    world.settle()
    assert len(inside(world)) == 10
    world.feed(PolicyLoaded(small))
    world.settle()
    assert len(inside(world)) == 10
    world.feed(PolicyLoaded(policy(capacity=5)))
    world.settle()
    assert len(inside(world)) < 10
    for number in range(10):
        assert_served(world, number)


# Bounds


def test_what_is_carried_has_a_bound_for_each_group_and_switch(make_world):
    world = joined(overcommitted(make_world, room=1, carried_packets_per_second=5, faults_per_second=8), 3)
    got = [world.send("h1", group(n)) for n in (0, 1, 2) for _ in range(12)]
    assert counted(world, "carried-over-limit") > 0
    assert sum(sum(each.values()) for each in got) < 2 * len(got)
    world.advance(2)
    assert_served(world, 0)


def test_a_table_that_thrashes_is_told_with_the_size_that_would_do(make_world):
    world = joined(overcommitted(make_world, said=False), 1)
    limits, tables, thrashing = world.core.swapping.accounts.limits, GroupTables(HashedChance(1), 100), Thrashing()
    limits.use(Capacities(default=20))
    table = table_of(7, 2)
    tables.set_capacity(table, 20)
    tables.came_in(b"inside", {table: 3}, 95.0)
    thrashing.turned_away(b"outside", {table: 30, table_of(8, 2): 1}, 104.0)
    thrashing.turned_away(b"long ago", {table: 500}, 60.0)
    notices = []
    for now in range(90, 120, 2):
        for _ in range(5 if now < 106 else 0):
            thrashing.swapped_in([table])
        notices += [(now, notice) for notice in thrashing.look(tables, limits, float(now))]
    ((now, notice),) = notices
    assert now == 100
    assert dict(notice.fields) == {"dpid": 7, "table_id": 2, "size": 33}


# Restarts


def test_a_restart_has_the_same_groups_in(make_world):
    world = joined(overcommitted(make_world), 60)
    for number in range(60):
        assert_served(world, number)
        world.advance(0.3)
    world.advance(1.0)
    before = set(inside(world))
    world.restart()
    world.connect_all()
    world.advance(5)
    assert set(inside(world)) == before
    assert world.applied == 0
    world.advance(40)
    assert set(inside(world)) <= before
    assert counted(world, "swaps-in") == 0
    for number in range(60):
        assert_served(world, number)


def test_a_restart_without_a_log_takes_over_what_switches_hold(make_world):
    world = joined(overcommitted(make_world), 10)
    for number in range(5):
        assert_served(world, number)
        world.settle()
    world.restart(journal=False)
    world.connect_all()
    joined(world, 10)
    world.advance(40)
    assert set(inside(world)) == {group(number) for number in range(5)}
    for number in range(10):
        assert_served(world, number)


def test_who_follows_has_the_same_groups_out(make_world):
    world = joined(overcommitted(make_world), 6)
    for number in range(4):
        assert_served(world, number)
        world.settle()
    done(world.do("group-swap-out", group=format_ip(group(3))))
    done(world.do("group-pin", group=format_ip(group(5))))
    world.advance(1)
    shadow = MulticastCore(world.policy, world.now)
    shadow.handle(LogFollowed(tuple(world.log.read())), world.now)
    while (due_s := shadow.restart.due_s) is not None:
        shadow.handle(DeadlineReached(), due_s)
    out = {address for address, each in shadow.plane.groups.items() if each.is_out}
    assert out == {group(3), group(4)}
    assert group(5) in shadow.swapping.pinned


def test_tables_are_shown(make_world):
    world = joined(overcommitted(make_world), 3)
    assert_served(world, 0)
    world.settle()
    leaf = world.hosts["h1"].dpid
    rows = [row for row in world.core.table_view.tables().values() if row["dpid"] == leaf]
    assert {row["groups"] for row in rows} == {1}
    assert {row["groups_out"] for row in rows} == {0}
    member = [row for row in world.core.table_view.tables().values() if row["dpid"] == world.hosts["h5"].dpid]
    assert {row["groups_out"] for row in member} == {2}
    assert {row["state"] for row in rows} == {"high"}
    assert {row["faults"] for row in rows} == {0}  # a sender's first packet, which nobody knew
    for _ in range(3):
        assert_served(world, 0)
    world.advance(5)
    done(world.do("group-swap-out", group=format_ip(group(0))))
    world.settle()
    assert_served(world, 0)
    for table in world.core.table_view.tables().values():
        assert (table["hits"], table["faults"]) == ((3, 1) if table["dpid"] == leaf else (0, 0))


def test_tables_of_a_switch_that_is_gone_are_not_shown(make_world):
    world = joined(overcommitted(make_world), 3)
    assert_served(world, 0)
    world.settle()
    leaf = world.hosts["h5"].dpid
    assert leaf in {figures.dpid for _, figures in world.core.table_view.figures()}
    world.disconnect(leaf)
    world.settle()
    assert leaf not in {figures.dpid for _, figures in world.core.table_view.figures()}
    assert leaf not in {row["dpid"] for row in world.core.table_view.tables().values()}
