"""Silent groups under covering trees: packets and edits in any order, and no packet is lost or doubled."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from controller.config.overcommit_settings import Capacities, Overcommit, TableCapacity
from controller.events import DeadlineReached
from controller.multicast import idle_members
from controller.multicast.core import MulticastCore
from controller.multicast.events import LogFollowed, PolicyLoaded
from controller.multicast.table_limits import TableLimits
from controller.overcommit import covers
from controller.overcommit.tables import GroupTables
from controller.rules.compile_cover import cover_mac, cover_of, is_covered
from controller.rules.pipeline import FORWARD, OPENFLOW_1_0, SENDER_COOKIE_BIT
from controller.rules.plans import DRAIN_S
from controller.wire.addresses import format_ip, parse_ip
from topology.generators import make
from topology.graph import NodeKind

from .conftest import GROUP, GROUP_V6, OPEN
from .overcommitted import counted, done
from .test_multicast_in_flight import POLICY, Changes, Race

COVER = replace(OPEN, overcommit=Overcommit("cover", Capacities(default=1000)))
SILENT_S = 25.0
MEMBERS, SENDER = ("h1", "h6", "h11"), "h16"


@pytest.fixture
def scarce(monkeypatch):
    """Have all tables be taken for short of a few entries, and a tree be worth while for one group."""
    monkeypatch.setattr(GroupTables, "short_ahead", lambda self: dict.fromkeys(self.tables, 1))
    monkeypatch.setattr(covers, "LEAST_GROUPS", 1)


def group(number):
    return parse_ip(f"239.7.{number >> 8}.{number & 255}")


def covered(world):
    return {name for name, each in world.core.plane.groups.items() if is_covered(each.tree_version)}


def filled(world, count, members=MEMBERS, sender=SENDER, begin=0):
    """Have so many groups come in, and be silent then."""
    for number in range(begin, begin + count):
        for name in members:
            world.join(name, group(number))
        world.send(sender, group(number))
        world.settle()
    world.advance(SILENT_S)
    return world


def assert_served(world, name, members=MEMBERS, sender=SENDER):
    sent = len(world.packet_outs)
    assert world.send(sender, name) == Counter(members)
    assert len(world.packet_outs) == sent, "the switches forward it"


def entries_of(world, name):
    return {
        dpid: [rule for rule in rules.values() if rule.key.match.ip_dst == name and rule.key.table == FORWARD]
        for dpid, rules in world.rules().items()
    }


def inside(world):
    """Return the switches that have no hosts."""
    return {
        world.graph.attributes(node)["dpid"]
        for node in world.graph.switches()
        if world.graph.kind(node) is not NodeKind.TOR
    }


def held(world, dpids):
    return sum(key.table == FORWARD for dpid in dpids for key in world.rules()[dpid])


# Who is under a tree, and what is where


def test_silent_groups_have_one_entry_in_common_inside_and_their_own_at_their_hosts(make_world, scarce):
    world = filled(make_world("fattree", COVER), 12)
    assert len(covered(world)) == 12
    ends = {world.hosts[name].dpid for name in (*MEMBERS, SENDER)}
    for number in range(12):
        assert {dpid for dpid, rules in entries_of(world, group(number)).items() if rules} == ends
        assert_served(world, group(number))
    per_switch = Counter(key.match.eth_dst for dpid in inside(world) for key in world.rules()[dpid]
                         if key.match.ip_dst is None and key.match.eth_dst)  # fmt: skip
    assert len(world.core.plane.covers.trees) == 1
    (number,) = world.core.plane.covers.trees
    assert per_switch == {cover_mac(number): held(world, inside(world))}


def test_a_switch_without_a_member_drops_what_comes_in_vain(make_world, scarce):
    world = make_world("fattree", COVER)
    for number, members in enumerate([("h1", "h6"), ("h3", "h8", "h11")]):
        for name in members:
            world.join(name, group(number))
        world.send(SENDER, group(number))
        world.settle()
    world.advance(SILENT_S)
    assert len(world.core.plane.covers.trees) == 1 and len(covered(world)) == 2
    copies = world.switches[world.hosts["h11"].dpid]
    assert_served(world, group(0), ("h1", "h6"))
    assert_served(world, group(1), ("h3", "h8", "h11"))
    assert not entries_of(world, group(0))[copies.dpid]
    at_ends = [key for dpid in world.switches.keys() - inside(world) for key in world.rules()[dpid]]
    assert not [key for key in at_ends if key.table == FORWARD and key.match.eth_dst and key.match.ip_dst is None]


def test_groups_go_under_trees_before_any_is_swapped_out_and_tables_have_room_again(make_world, monkeypatch):
    monkeypatch.setattr(idle_members, "IDLE_S", 1e9)
    graph = make("fattree")
    short = [graph.attributes(node)["dpid"] for node in graph.switches() if graph.kind(node) is NodeKind.AGGREGATION]
    room = Capacities(switches=tuple(TableCapacity(dpid, 60) for dpid in short))
    world = make_world(graph, replace(OPEN, overcommit=Overcommit("cover", room)))
    dice, sent_to = random.Random(1), {}
    for number in range(150):
        sender, *members = sent_to[number] = dice.sample(list(world.hosts), 4)
        for name in members:
            world.join(name, group(number))
        world.settle()
        assert world.send(sender, group(number)) == Counter(members)
        world.advance(0.2)
    world.advance(40.0)
    assert counted(world, "swaps-out") == 0
    assert len(covered(world)) > 20
    for dpid in short:
        assert held(world, [dpid]) < 60
    for number, (sender, *members) in sent_to.items():
        known = world.core.plane.groups[group(number)]
        if not known.is_out and known.senders:  # while tables are short a minute of silence is enough to be forgotten
            assert_served(world, group(number), members, sender)


def test_what_groups_send_in_vain_keeps_below_the_part_of_each_link(make_world, scarce):
    none = replace(COVER, overcommit=replace(COVER.overcommit, cover_spurious_pct=0))
    for policy, is_any in ((COVER, True), (none, False)):
        world = make_world("fattree", policy)
        for number, members in enumerate([("h1", "h6"), ("h1", "h6", "h9"), ("h3", "h11")]):
            for name in members:
                world.join(name, group(number))
            world.send(SENDER, group(number))
            world.settle()
        world.advance(SILENT_S)
        needs = [
            world.core.swapping.covering._need(world.core.plane.groups[name], world.now) for name in covered(world)
        ]
        trees = [world.core.plane.covers.of(world.core.plane.groups[name]).adjacent for name in covered(world)]
        in_vain = [covers.copies_in_vain(*each) for each in zip(trees, needs, strict=True)]
        assert any(in_vain) is is_any


def test_where_links_carry_nearly_what_they_may_the_oldest_group_goes_out_for_others(make_world, scarce, monkeypatch):
    world = make_world("fattree", COVER)
    first = ("h1", "h6", "h9")
    filled(world, 1, first)
    filled(world, 10, ("h1", "h6"), begin=1)
    under = covered(world)
    assert group(0) in under and len(under) > 2
    assert counted(world, "covers-aged") == 0
    monkeypatch.setattr(covers, "FULL_PART", 0.0)
    for name in ("h1", "h6"):
        world.join(name, group(20))
    world.send(SENDER, group(20))
    world.advance(SILENT_S)
    aged = counted(world, "covers-aged")
    assert 0 < aged <= len(under)
    out = {name for name in under if world.core.plane.groups[name].is_out}
    assert len(out) == aged
    for name in out:
        assert world.send(SENDER, name) == Counter(first if name == group(0) else ("h1", "h6"))
        world.settle()


def test_groups_with_a_switch_of_openflow_1_0_on_the_tree_keep_their_own(make_world, scarce):
    graph = make("fattree")
    number = {node: graph.attributes(node)["dpid"] for node in graph.switches()}
    old = {dpid: OPENFLOW_1_0 for node, dpid in number.items() if graph.kind(node) is NodeKind.TOR}
    world = filled(make_world(graph, COVER, {**dict.fromkeys(number.values(), 4), **old}), 3)
    assert not covered(world)
    assert_served(world, group(1))


def test_an_ipv6_group_and_one_of_ipv4_have_a_tree_in_common(make_world, scarce):
    world = make_world("fattree", COVER)
    for name in (GROUP, GROUP_V6):
        for member in MEMBERS:
            world.join(member, name)
        world.send(SENDER, name)
        world.settle()
    world.advance(SILENT_S)
    assert covered(world) == {GROUP, GROUP_V6}
    assert len(world.core.plane.covers.trees) == 1
    for name in (GROUP, GROUP_V6):
        assert_served(world, name)


# Their own again


def test_a_group_that_sends_has_its_own_tree_after_the_next_reading_and_its_cover_goes_with_the_last(
    make_world, scarce, monkeypatch
):
    world = filled(make_world("fattree", COVER), 2)
    monkeypatch.setattr(GroupTables, "short_ahead", lambda _self: {})
    for number in range(2):
        assert_served(world, group(number))
        world.advance(5.0)
        assert covered(world) == {group(1)} - {group(number)}
        assert_served(world, group(number))
    world.advance(10.0)
    assert not world.core.plane.covers.trees
    assert not [key for rules in world.rules().values() for key in rules
                if key.table == FORWARD and key.match.ip_dst is None and key.match.eth_dst]  # fmt: skip


def until_covered(world, wanted, slow=None):
    """Let time go on until exactly these groups are under trees; a slow switch takes nothing of what it is sent."""
    for _ in range(400):
        pass_time(world, slow)
        if covered(world) == wanted:
            return
    raise AssertionError(covered(world))


def pass_time(world, slow):
    world.now += 0.1
    world.feed(DeadlineReached())
    while busy := [dpid for dpid, queue in world.queues.items() if queue and dpid != slow]:
        world.step(busy[0])


def put_times(world, monkeypatch):
    """Return lists that get the times at which entries are put from now on: by which senders send, and others."""
    senders, others, step = [], [], world.step

    def noting(dpid):
        rule = getattr(world.queues[dpid][0][1], "rule", None)
        if rule is not None:
            (senders if rule.cookie & SENDER_COOKIE_BIT else others).append(world.now)
        step(dpid)

    monkeypatch.setattr(world, "step", noting)
    return senders, others


def test_a_group_that_wakes_has_its_senders_entries_when_caches_of_switches_follow_the_rest(
    make_world, scarce, monkeypatch
):
    world = filled(make_world("fattree", COVER), 1)
    until_covered(world, {group(0)})
    monkeypatch.setattr(GroupTables, "short_ahead", lambda _self: {})
    world.settle(3.0)
    assert_served(world, group(0))
    senders, others = put_times(world, monkeypatch)
    until_covered(world, set())
    world.settle(3.0)
    assert others and min(senders) >= max(others) + DRAIN_S
    assert_served(world, group(0))


@pytest.mark.parametrize("room", ["ample", "little"])
@pytest.mark.parametrize("what", ["sleeps", "wakes"])
def test_no_packet_takes_the_way_of_a_group_that_sleeps_or_wakes_before_it_is_whole(
    make_world, scarce, monkeypatch, what, room
):
    monkeypatch.setattr(TableLimits, "are_ample", lambda _self: room == "ample")
    for slow in make_world("fattree", COVER).switches:
        monkeypatch.setattr(GroupTables, "short_ahead", lambda self: dict.fromkeys(self.tables, 1))
        world = make_world("fattree", COVER)
        for name in MEMBERS:
            world.join(name, group(0))
        world.send(SENDER, group(0))
        world.settle()
        until_covered(world, {group(0)}, slow if what == "sleeps" else None)
        if what == "wakes":
            monkeypatch.setattr(GroupTables, "short_ahead", lambda _self: {})
            world.settle(3.0)
            assert_served(world, group(0))
            until_covered(world, set(), slow)
        for _ in range(25):
            assert_served(world, group(0))
            pass_time(world, slow)
        world.settle(3.0)
        assert_served(world, group(0))


def test_a_group_that_finds_no_room_to_wake_stays_under_its_tree_or_goes_out(make_world, scarce, monkeypatch):
    world = filled(make_world("fattree", COVER), 1)
    covering = world.core.swapping.covering
    monkeypatch.setattr(GroupTables, "find_leaving", lambda *_args: None)
    monkeypatch.setattr(covering, "_room", lambda _table: 0)
    assert_served(world, group(0))
    world.advance(5.0)
    assert covered(world) == {group(0)}
    assert_served(world, group(0))
    monkeypatch.setattr(covering._choice, "note", lambda *_args: False)
    world.advance(5.0)
    assert world.core.plane.groups[group(0)].is_out
    assert world.send(SENDER, group(0)) == Counter(MEMBERS)


def test_a_member_within_the_tree_joins_and_leaves_and_one_elsewhere_has_the_group_get_its_own(make_world, scarce):
    world = filled(make_world("fattree", COVER), 1)
    tree = world.core.plane.covers.of(world.core.plane.groups[group(0)])
    near = next(name for name, host in world.hosts.items() if host.dpid in tree.adjacent and name not in MEMBERS)
    world.join(near, group(0))
    world.settle()
    assert covered(world) == {group(0)}
    assert_served(world, group(0), (*MEMBERS, near))
    world.leave("h6", group(0))
    world.advance(3.0)
    assert_served(world, group(0), ("h1", "h11", near))
    world.advance(SILENT_S)
    assert covered(world) == {group(0)}
    tree = world.core.plane.covers.of(world.core.plane.groups[group(0)])
    far = next(name for name, host in world.hosts.items() if host.dpid not in tree.adjacent)
    world.join(far, group(0))
    world.settle()
    assert not covered(world)
    assert_served(world, group(0), ("h1", "h11", near, far))


def test_groups_leave_a_tree_that_loses_a_link_or_a_switch_that_is_drained(make_world, scarce):
    for what in ("cut", "drain"):
        world = filled(make_world("fattree", COVER), 5)
        (cover,) = world.core.plane.covers.trees.values()
        u, v, *_ = next(link for link in cover.links if link[0] in inside(world) and link[1] in inside(world))
        if what == "cut":
            world.cut(u, v)
        else:
            done(world.do("switch-drain", dpid=max(u, v, key=lambda dpid: len(cover.adjacent[dpid]))))
        world.settle(2.0)
        assert cover.number not in world.core.plane.covers.trees
        for number in range(5):
            assert_served(world, group(number))


def test_a_covered_group_that_goes_out_comes_in_by_its_own_tree(make_world, scarce):
    world = filled(make_world("fattree", COVER), 2)
    done(world.do("group-swap-out", group=format_ip(group(0))))
    world.advance(1.0)
    assert covered(world) == {group(1)}
    assert not any(entries_of(world, group(0)).values())
    for _ in range(2):  # it left with one packet, which does not bring it in
        assert world.send(SENDER, group(0)) == Counter(MEMBERS)
        world.settle()
    assert_served(world, group(0))
    assert covered(world) == {group(1)}


@pytest.mark.parametrize("mode", ["swap", "off"])
def test_all_groups_have_their_own_trees_in_another_mode(make_world, scarce, mode):
    world = filled(make_world("fattree", COVER), 4)
    world.feed(PolicyLoaded(replace(COVER, overcommit=replace(COVER.overcommit, mode=mode))))
    world.advance(8.0)
    assert not covered(world) and not world.core.plane.covers.trees
    for number in range(4):
        assert_served(world, group(number))
    assert not [entry for entry in world.log.read() if entry.subject == "cover" and entry.text]


# Under packets


@pytest.mark.parametrize("room", ["ample", "little"])
@pytest.mark.parametrize("kind", ["members", "links"])
def test_members_and_links_come_and_go_under_packets_of_groups_that_wake_and_sleep(
    make_world, scarce, monkeypatch, kind, room
):
    """Nobody gets a packet twice; where no link fails, members throughout get all; in the end all members do."""
    monkeypatch.setattr(TableLimits, "are_ample", lambda _self: room == "ample")
    told = woken = 0
    for seed in range(6):
        dice = random.Random(f"{kind} {room} {seed}")
        policy = replace(POLICY, overcommit=COVER.overcommit)
        world = make_world(make("fattree"), policy, seed=seed)
        names = list(world.hosts)
        race = Race(world, dice.sample(names, dice.randint(2, 6)), dice.sample(names, 2), dice)
        changes = Changes(race)
        race.settle(SILENT_S)
        world.now += 0.1
        for _ in range(12):
            told += bool(covered(world))
            race.slow = set(dice.sample(sorted(world.switches), dice.randint(0, len(world.switches) // 2)))
            race.send(dice.randrange(4))
            race.run(dice.randrange(15))
            what = dice.choice(["pull", "mend", "join", "leave", "pass", "sleep"] if kind == "links"
                               else ["join", "leave", "pass", "sleep"])  # fmt: skip
            changes.make(what)
            if what == "pass":
                race.settle(2.0)
                world.now += 0.3
            elif what == "sleep":
                race.settle(SILENT_S)
                world.now += 0.3
        race.settle(3.0)
        woken += counted(world, "covers-left")
        changes.check(seed, steady_get_all=kind == "members")
    assert told > 15
    assert woken > 6


# Restarts


@pytest.mark.parametrize("journal", [True, False], ids=["log", "no log"])
def test_a_restart_keeps_what_is_covered(make_world, scarce, journal):
    world = filled(make_world("fattree", COVER), 4)
    world.advance(1.0)
    before, names = world.rules(), covered(world)
    world.restart(journal=journal)
    world.connect_all()
    world.advance(5.0)
    if journal:
        assert world.applied == 0
        assert world.rules() == before
        assert covered(world) == names
    for _ in range(40):
        world.advance(1.0)
        for name in MEMBERS:
            for number in range(4):
                world.join(name, group(number))
    for number in range(4):
        assert world.send(SENDER, group(number)) == Counter(MEMBERS)
        world.settle()
        assert_served(world, group(number))


@pytest.mark.parametrize("mode", ["swap", "off"])
def test_a_restart_in_another_mode_gives_all_groups_their_own_trees(make_world, scarce, mode):
    world = filled(make_world("fattree", COVER), 4)
    world.advance(1.0)
    world.restart(policy=replace(COVER, overcommit=replace(COVER.overcommit, mode=mode)))
    world.connect_all()
    world.advance(8.0)
    assert not covered(world) and not world.core.plane.covers.trees
    for number in range(4):
        assert_served(world, group(number))


def test_who_follows_has_the_same_groups_under_the_same_trees(make_world, scarce):
    world = filled(make_world("fattree", COVER), 4)
    world.advance(1.0)
    shadow = MulticastCore(world.policy, world.now)
    shadow.handle(LogFollowed(tuple(world.log.read())), world.now)
    while (due_s := shadow.restart.due_s) is not None:
        shadow.handle(DeadlineReached(), due_s)
    own, theirs = world.core.plane, shadow.plane
    assert theirs.covers.trees == own.covers.trees
    assert {name: each.rules for name, each in theirs.groups.items()} == {
        name: each.rules for name, each in own.groups.items()
    }
    assert {cover_of(each.tree_version) for each in theirs.groups.values()} == set(own.covers.trees)
