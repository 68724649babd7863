"""Silent channels under covering trees while others of their group send: no packet is lost or doubled."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from controller.events import DeadlineReached
from controller.multicast.core import MulticastCore
from controller.multicast.events import LogFollowed, PolicyLoaded
from controller.multicast.table_limits import TableLimits
from controller.overcommit.tables import GroupTables
from controller.rules.compile_cover import cover_mac, is_covered
from controller.rules.pipeline import FORWARD
from controller.rules.plans import DRAIN_S
from controller.wire.packets import RecordType
from topology.generators import make

from .conftest import GROUP, GROUP_V6
from .overcommitted import counted, done
from .test_covering import COVER, SILENT_S, group, inside, pass_time, put_times, scarce
from .test_multicast_in_flight import POLICY, Changes, Race

__all__ = ["scarce"]

MEMBERS = ("h1", "h6", "h11")
SENDERS = ("h16", "h3", "h9", "h13")


def want(world, name, number, *senders):
    """Have a host be a member of the channels of these senders alone."""
    sources = [world.hosts[sender].v4 for sender in senders]
    world.record(name, RecordType.CHANGE_TO_INCLUDE, group(number), *sources)


def apart(world, number=0):
    """Return the senders whose channels of a group are under covering trees by themselves."""
    names = {host.v4: name for name, host in world.hosts.items()}
    known = world.core.plane.groups[group(number)]
    return {names[source] for source in known.apart or ()}


def joined(world, count=1, senders=SENDERS, members=MEMBERS):
    """Have members want channels of each of so many groups, to all of which something is sent."""
    for number in range(count):
        for name in members:
            want(world, name, number, *senders)
        for sender in senders:
            world.send(sender, group(number))
        world.settle()
    return world


def kept_awake(world, seconds, *senders, count=1):
    """Let time pass while some senders of each group go on."""
    for _ in range(int(seconds)):
        for number in range(count):
            for sender in senders:
                world.send(sender, group(number))
        world.advance(1.0)
    return world


def assert_served(world, number=0, senders=SENDERS, members=MEMBERS):
    for sender in senders:
        sent = len(world.packet_outs)
        assert world.send(sender, group(number)) == Counter(set(members) - {sender}), sender
        assert len(world.packet_outs) == sent, "the switches forward it"


def entries_of(world, number, sender):
    """Return how many entries switches have of a channel in the table of groups, by switch."""
    source = world.hosts[sender].v4
    counts = Counter(
        dpid
        for dpid, rules in world.rules().items()
        for key in rules
        if key.table == FORWARD and key.match.ip_dst == group(number) and key.match.ip_src == source
    )
    return dict(counts)


def ends_of(world, *names):
    return dict.fromkeys((world.hosts[name].dpid for name in names), 1)


# Who is apart, and what is where


def test_silent_channels_have_entries_at_their_hosts_alone_while_another_of_their_group_sends(make_world, scarce):
    world = kept_awake(joined(make_world("fattree", COVER), 3), SILENT_S, SENDERS[0], count=3)
    for number in range(3):
        assert apart(world, number) == set(SENDERS[1:])
        assert not is_covered(world.core.plane.groups[group(number)].tree_version)
        for sender in SENDERS[1:]:
            assert entries_of(world, number, sender) == ends_of(world, sender, *MEMBERS)
        assert entries_of(world, number, SENDERS[0]).keys() > ends_of(world, SENDERS[0], *MEMBERS).keys()
        assert_served(world, number)
    assert counted(world, "channel-covers") == 9
    assert counted(world, "covers") == counted(world, "swaps-out") == 0


def test_a_channel_that_sends_has_its_own_tree_again_and_others_stay(make_world, scarce, monkeypatch):
    world = kept_awake(joined(make_world("fattree", COVER)), SILENT_S, SENDERS[0])
    monkeypatch.setattr(GroupTables, "short_ahead", lambda _self: {})
    kept_awake(world, 5, SENDERS[0], SENDERS[1])
    assert apart(world) == set(SENDERS[2:])
    assert entries_of(world, 0, SENDERS[1]).keys() > ends_of(world, SENDERS[1], *MEMBERS).keys()
    assert_served(world)
    kept_awake(world, 5, *SENDERS)
    assert not apart(world)
    kept_awake(world, 10, *SENDERS)
    assert not world.core.plane.covers.trees and not world.core.plane.covers.channels
    assert counted(world, "channel-covers-left") == 3
    assert not [key for rules in world.rules().values() for key in rules
                if key.match.eth_dst and key.match.eth_dst[:4] == cover_mac(1)[:4]]  # fmt: skip


def test_a_channel_to_which_nobody_sends_yet_is_apart_and_served_when_somebody_does(make_world, scarce, monkeypatch):
    world = make_world("fattree", COVER)
    for name in MEMBERS:
        want(world, name, 0, "h16", "h3")
    world.send("h16", group(0))
    world.settle()
    kept_awake(world, SILENT_S, "h16")
    assert apart(world) == {"h3"}
    monkeypatch.setattr(GroupTables, "short_ahead", lambda _self: {})
    for _ in range(3):
        assert world.send("h3", group(0)) == Counter(MEMBERS)
        world.settle()
    kept_awake(world, 6, "h16", "h3")
    assert not apart(world)
    assert_served(world, senders=("h16", "h3"))


def test_channels_of_an_ipv6_group_are_apart(make_world, scarce):
    world = make_world("fattree", COVER)
    for name in MEMBERS:
        sources = [world.hosts[sender].address(GROUP_V6) for sender in SENDERS[:2]]
        world.record(name, RecordType.CHANGE_TO_INCLUDE, GROUP_V6, *sources)
    for sender in SENDERS[:2]:
        world.send(sender, GROUP_V6)
    world.settle()
    for _ in range(int(SILENT_S)):
        world.send(SENDERS[0], GROUP_V6)
        world.advance(1.0)
    assert world.core.plane.groups[GROUP_V6].apart
    for sender in SENDERS[:2]:
        assert world.send(sender, GROUP_V6) == Counter(MEMBERS)


def test_a_group_that_is_silent_as_a_whole_goes_whole(make_world, scarce):
    world = joined(make_world("fattree", COVER))
    world.advance(SILENT_S)
    assert not apart(world)
    assert is_covered(world.core.plane.groups[group(0)].tree_version)
    assert_served(world)


def test_members_of_other_sources_get_none_of_a_channel_that_is_apart(make_world, scarce):
    world = make_world("fattree", COVER)
    want(world, "h1", 0, "h16")
    want(world, "h6", 0, "h16", "h3")
    world.join("h11", group(0))
    world.record("h14", RecordType.CHANGE_TO_EXCLUDE, group(0), world.hosts["h3"].v4)
    for sender in ("h16", "h3", "h9"):
        world.send(sender, group(0))
    world.settle()
    kept_awake(world, SILENT_S, "h16")
    assert apart(world) == {"h3"}
    for _ in range(2):
        assert world.send("h3", group(0)) == Counter(("h6", "h11"))
        assert world.send("h16", group(0)) == Counter(("h1", "h6", "h11", "h14"))
        assert world.send("h9", group(0)) == Counter(("h11", "h14"))
        kept_awake(world, 5, "h16", "h3")
        assert apart(world) == set()


def test_a_member_within_the_tree_joins_and_one_elsewhere_has_the_channel_come_back(make_world, scarce, monkeypatch):
    world = kept_awake(joined(make_world("fattree", COVER)), SILENT_S, SENDERS[0])
    monkeypatch.setattr(GroupTables, "short_ahead", lambda _self: {})
    (number,) = set(world.core.plane.groups[group(0)].apart.values())
    tree = world.core.plane.covers.trees[number].adjacent
    near = next(name for name, host in world.hosts.items() if host.dpid in tree and name not in MEMBERS + SENDERS)
    want(world, near, 0, *SENDERS)
    world.settle()
    assert apart(world) == set(SENDERS[1:])
    assert_served(world, members=(*MEMBERS, near))
    far = next(name for name, host in world.hosts.items() if host.dpid not in tree)
    want(world, far, 0, SENDERS[1])
    world.settle()
    assert apart(world) == set(SENDERS[2:])
    assert world.send(SENDERS[1], group(0)) == Counter((*MEMBERS, near, far))


def test_a_channel_that_nobody_names_any_more_is_apart_no_more(make_world, scarce, monkeypatch):
    world = make_world("fattree", COVER)
    for name in MEMBERS:
        want(world, name, 0, *SENDERS)
    world.join("h14", group(0))
    for sender in SENDERS:
        world.send(sender, group(0))
    world.settle()
    kept_awake(world, SILENT_S, SENDERS[0])
    assert apart(world) == set(SENDERS[1:])
    monkeypatch.setattr(GroupTables, "short_ahead", lambda _self: {})
    for name in MEMBERS:
        want(world, name, 0, SENDERS[0])
        world.record(name, RecordType.BLOCK_OLD_SOURCES, group(0), *(world.hosts[each].v4 for each in SENDERS[1:]))
    world.advance(3.0)
    assert not apart(world)
    assert world.send(SENDERS[1], group(0)) == Counter(("h14",))
    assert world.send(SENDERS[0], group(0)) == Counter((*MEMBERS, "h14"))


@pytest.mark.parametrize("mode", ["swap", "off"])
def test_all_channels_have_their_own_trees_in_another_mode(make_world, scarce, mode):
    world = kept_awake(joined(make_world("fattree", COVER), 3), SILENT_S, SENDERS[0], count=3)
    world.feed(PolicyLoaded(replace(COVER, overcommit=replace(COVER.overcommit, mode=mode))))
    world.advance(8.0)
    assert not world.core.plane.covers.trees and not world.core.plane.covers.channels
    for number in range(3):
        assert not apart(world, number)
        assert_served(world, number)


def test_channels_come_back_from_a_tree_that_loses_a_link_or_a_switch_that_is_drained(make_world, scarce):
    for what in ("cut", "drain"):
        world = kept_awake(joined(make_world("fattree", COVER), 2), SILENT_S, SENDERS[0], count=2)
        for cover in list(world.core.plane.covers.trees.values()):
            u, v, *_ = next(link for link in cover.links if link[0] in inside(world) and link[1] in inside(world))
            if what == "drain":
                done(world.do("switch-drain", dpid=max(u, v, key=lambda dpid: len(cover.adjacent[dpid]))))
            elif frozenset((u, v)) not in world.down_links:
                world.cut(u, v)
            world.settle(2.0)
            assert cover.number not in world.core.plane.covers.trees
            for number in range(2):
                assert_served(world, number)


def test_a_group_with_channels_apart_goes_out_and_comes_in_whole(make_world, scarce):
    world = kept_awake(joined(make_world("fattree", COVER)), SILENT_S, SENDERS[0])
    done(world.do("group-swap-out", group="239.7.0.0"))
    world.advance(1.0)
    assert not apart(world)
    assert not any(entries_of(world, 0, sender) for sender in SENDERS)
    assert not world.core.plane.covers.channels
    for _ in range(3):
        for sender in SENDERS:
            assert world.send(sender, group(0)) == Counter(MEMBERS)
        world.settle()
    assert_served(world)


def test_a_channel_that_finds_no_room_to_come_back_stays_or_its_group_goes_out(make_world, scarce, monkeypatch):
    world = kept_awake(joined(make_world("fattree", COVER)), SILENT_S, SENDERS[0])
    covering = world.core.swapping.covering
    monkeypatch.setattr(GroupTables, "find_leaving", lambda *_args: None)
    monkeypatch.setattr(covering, "_room", lambda _table: 0)
    kept_awake(world, 5, SENDERS[0], SENDERS[1])
    assert apart(world) == set(SENDERS[1:])
    assert_served(world)
    monkeypatch.setattr(covering._choice, "note", lambda *_args: False)
    kept_awake(world, 5, SENDERS[1])
    assert world.core.plane.groups[group(0)].is_out
    assert world.send(SENDERS[1], group(0)) == Counter(MEMBERS)


# Under packets


def until_apart(world, wanted, slow=None):
    """Let time go on until exactly these channels are apart; a slow switch takes nothing of what it is sent."""
    for step in range(400):
        if step % 5 == 0:
            world.send(SENDERS[0], group(0))
        pass_time(world, slow)
        if apart(world) == wanted:
            return
    raise AssertionError(apart(world))


def test_a_channel_that_wakes_has_its_senders_entries_when_caches_of_switches_follow_the_rest(
    make_world, scarce, monkeypatch
):
    world = joined(make_world("fattree", COVER), senders=SENDERS[:2])
    until_apart(world, {SENDERS[1]})
    monkeypatch.setattr(GroupTables, "short_ahead", lambda _self: {})
    world.settle(3.0)
    assert_served(world, senders=SENDERS[:2])
    senders, others = put_times(world, monkeypatch)
    until_apart(world, set())
    world.settle(3.0)
    assert others and min(senders) >= max(others) + DRAIN_S
    assert_served(world, senders=SENDERS[:2])


@pytest.mark.parametrize("what", ["sleeps", "wakes", "leaves"])
def test_no_packet_takes_the_way_of_a_channel_that_sleeps_wakes_or_leaves_before_it_is_whole(
    make_world, scarce, monkeypatch, what
):
    for slow in make_world("fattree", COVER).switches:
        monkeypatch.setattr(GroupTables, "short_ahead", lambda self: dict.fromkeys(self.tables, 1))
        world = joined(make_world("fattree", COVER), senders=SENDERS[:2])
        until_apart(world, {SENDERS[1]}, slow if what == "sleeps" else None)
        if what != "sleeps":
            monkeypatch.setattr(GroupTables, "short_ahead", lambda _self: {})
            world.settle(3.0)
            version = world.core.plane.groups[group(0)].tree_version
        if what == "wakes":
            assert_served(world, senders=SENDERS[:2])
            until_apart(world, set(), slow)
            assert world.core.plane.groups[group(0)].tree_version == version
        elif what == "leaves":
            (number,) = world.core.plane.groups[group(0)].apart.values()
            tree = world.core.plane.covers.trees[number].adjacent
            far = next(name for name, host in world.hosts.items() if host.dpid not in tree)
            want(world, far, 0, SENDERS[1])
            assert not apart(world)
            assert world.core.plane.groups[group(0)].tree_version != version, (
                "switches may still have those of before"
            )
        for _ in range(15):
            for sender in SENDERS[:2]:
                got = world.send(sender, group(0))
                assert {name: got[name] for name in MEMBERS} == dict.fromkeys(MEMBERS, 1)
                assert max(got.values()) == 1
            pass_time(world, slow)
        world.settle(3.0)


def test_a_channel_does_not_come_back_to_entries_that_a_switch_may_still_have(make_world, scarce, monkeypatch):
    world = joined(make_world("fattree", COVER), senders=SENDERS[:2])
    own = {dpid for dpid in entries_of(world, 0, SENDERS[1]) if dpid in inside(world)}
    kept_awake(world, 6, *SENDERS[:2])
    until_apart(world, {SENDERS[1]})
    (number,) = world.core.plane.groups[group(0)].apart.values()
    late = min(own - world.core.plane.covers.trees[number].adjacent.keys())
    for _ in range(400):
        world.send(SENDERS[0], group(0))
        pass_time(world, late)
    assert entries_of(world, 0, SENDERS[1])[late], "it takes nothing"
    monkeypatch.setattr(GroupTables, "short_ahead", lambda _self: {})
    for _ in range(40):
        for sender in SENDERS[:2]:
            assert world.send(sender, group(0)) == Counter(MEMBERS)
        pass_time(world, late)
        assert apart(world) == {SENDERS[1]}
    kept_awake(world, 6, *SENDERS[:2])
    assert not apart(world)
    assert_served(world, senders=SENDERS[:2])


class ChannelRace(Race):
    """A race whose members want the channels of its senders by name; packets are sent as switches are edited."""

    def __init__(self, world, members, senders, dice):
        super().__init__(world, members, senders, dice)
        for name in members:
            self.want(name)
        world.settle()

    def want(self, name):
        sources = [self.world.hosts[sender].v4 for sender in self.senders]
        self.world.record(name, RecordType.CHANGE_TO_INCLUDE, GROUP, *sources)

    def send_from(self, *senders):
        every, self.senders = self.senders, list(senders)
        self.send()
        self.senders = every

    def pass_time(self, seconds, *awake):
        """Let time pass while some senders go on, and any may send while there are edits."""
        world, end_s = self.world, self.world.now + seconds
        next_s = world.now
        while True:
            while self.turn():
                pass
            due_s = world.core.next_deadline()
            due_s = end_s if due_s is None else min(due_s, end_s)
            if awake:
                due_s = min(due_s, next_s)
            world.now = max(world.now, due_s)
            if world.now >= end_s:
                return
            if awake and world.now >= next_s:
                next_s = world.now + 1.0
                self.send_from(*awake)
            world.feed(DeadlineReached())
            for _ in range(self.dice.choice((0, 3)) if any(world.queues.values()) else 0):
                self.send_from(*self.senders)
                self.run(self.dice.randrange(8))


class ChannelChanges(Changes):
    """Changes of a race whose members join channels."""

    def make(self, what):
        joined, self.race.world.join = self.race.world.join, self.race.want
        super().make(what)
        self.race.world.join = joined


@pytest.mark.parametrize("room", ["ample", "little"])
@pytest.mark.parametrize("kind", ["members", "links"])
def test_members_and_links_come_and_go_under_packets_of_channels_that_wake_and_sleep(
    make_world, scarce, monkeypatch, kind, room
):
    """Nobody gets a packet twice; where no link fails, members throughout get all; in the end all members do."""
    monkeypatch.setattr(TableLimits, "are_ample", lambda _self: room == "ample")
    told = woken = 0
    for seed in range(5):
        dice = random.Random(f"channels {kind} {room} {seed}")
        world = make_world(make("fattree"), replace(POLICY, overcommit=COVER.overcommit), seed=seed)
        names = list(world.hosts)
        race = ChannelRace(world, dice.sample(names, dice.randint(2, 6)), dice.sample(names, 4), dice)
        changes = ChannelChanges(race)
        race.pass_time(SILENT_S, race.senders[0])
        for _ in range(10):
            told += bool(world.core.plane.covers.channels)
            race.slow = set(dice.sample(sorted(world.switches), dice.randint(0, len(world.switches) // 2)))
            race.send(dice.randrange(6))
            race.run(dice.randrange(15))
            what = dice.choice(["pull", "mend", "join", "leave", "pass", "sleep"] if kind == "links"
                               else ["join", "leave", "pass", "sleep"])  # fmt: skip
            changes.make(what)
            race.pass_time({"pass": 2.3, "sleep": SILENT_S}.get(what, 0.3), dice.choice(race.senders))
        race.settle(3.0)
        woken += counted(world, "channel-covers-left")
        changes.check(seed, steady_get_all=kind == "members")
    assert told > 8
    assert woken > 6


# Restarts


@pytest.mark.parametrize("journal", [True, False], ids=["log", "no log"])
def test_a_restart_keeps_what_is_apart(make_world, scarce, journal):
    world = kept_awake(joined(make_world("fattree", COVER), 3), SILENT_S, SENDERS[0], count=3)
    world.advance(1.0)
    before, names = world.rules(), apart(world)
    assert names == set(SENDERS[1:])
    world.restart(journal=journal)
    world.connect_all()
    world.advance(1.5)
    if journal:
        assert world.applied == 0
        assert world.rules() == before
        assert apart(world) == names
    for _ in range(40):
        world.advance(1.0)
        for number in range(3):
            for name in MEMBERS:
                want(world, name, number, *SENDERS)
    for number in range(3):
        for sender in SENDERS:
            assert world.send(sender, group(number)) == Counter(MEMBERS)
            world.settle()
        assert_served(world, number)


def test_who_follows_has_the_same_channels_under_the_same_trees(make_world, scarce):
    world = kept_awake(joined(make_world("fattree", COVER), 3), SILENT_S, SENDERS[0], count=3)
    world.advance(1.0)
    shadow = MulticastCore(world.policy, world.now)
    shadow.handle(LogFollowed(tuple(world.log.read())), world.now)
    while (due_s := shadow.restart.due_s) is not None:
        shadow.handle(DeadlineReached(), due_s)
    own, theirs = world.core.plane, shadow.plane
    assert theirs.covers.trees == own.covers.trees and theirs.covers.channels.keys() == own.covers.channels.keys()
    assert any(each.apart for each in own.groups.values())
    for name, each in own.groups.items():
        assert theirs.groups[name].apart == each.apart
        assert theirs.groups[name].rules == each.rules
