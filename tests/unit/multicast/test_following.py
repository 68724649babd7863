"""A core that follows another one's log, entry by entry, is what a restart makes of the whole log, at any time."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.config.service_class_settings import Aliases, StaticTrees
from controller.config.terms import parse_prefix
from controller.effects import Notice
from controller.events import DeadlineReached, JournalLost, PacketReceived, SwitchesDrained
from controller.log import LogEntry, LogEntryKind, MemoryLog, WriteLog
from controller.multicast.core import MulticastCore
from controller.multicast.events import LeadTaken, LogFollowed, PolicyLoaded
from controller.wire.addresses import format_ip, parse_ip
from controller.wire.encode import encode
from controller.wire.packets import PimHello, RecordType
from restored_log import put_back
from topology.events import PortRole, PortRoleChanged

from .shadow import POLICY, Shadow

GROUP = parse_ip("239.1.2.3")
GROUPS = [bytes((239, 1, 1, number)) for number in range(1, 5)]
WHAT = [
    *["join"] * 6,
    *["send"] * 3,
    *["leave"] * 3,
    *["cut", "mend", "drain", "undrain", "rebuild", "wait", "static", "no-static", "router", "sources"],
]


def happen(world, what, number, group):
    """Have one thing happen, as far as it can."""
    hosts, pairs = sorted(world.hosts), sorted(tuple(sorted(pair)) for pair in world.links)
    name, pair, dpid = hosts[number % len(hosts)], pairs[number % len(pairs)], sorted(world.switches)[number % 5]
    host = world.hosts[name]
    place = {"dpid": host.dpid, "port_no": host.port_no}
    if what in ("join", "leave", "send"):
        getattr(world, what)(name, group)
    elif what == "sources":
        other = world.hosts[hosts[(number // 7) % len(hosts)]]
        world.record(name, RecordType.ALLOW_NEW_SOURCES, bytes((232, *group[1:])), other.v4)
    elif what == "cut" and len(world.down_links) < 2 and frozenset(pair) not in world.down_links:
        world.cut(*pair)
    elif what == "mend" and world.down_links:
        world.mend(*sorted(min(world.down_links, key=sorted)))
    elif what in ("drain", "undrain"):
        world.do(f"switch-{what}", dpid=dpid)
    elif what == "rebuild":
        world.do("group-rebuild", group=format_ip(group))
    elif what in ("static", "no-static"):
        world.do("static-member-" + ("add" if what == "static" else "remove"), **place, group=format_ip(group))
    elif what == "router":
        world.feed(PacketReceived(*host.place, encode(PimHello(4, host.mac, host.v4, float(number % 2) * 105.0))))
    elif what == "wait":
        world.advance(number / 2000)


def known(core):
    """What a core knows: topology, what operators set, routers, members, senders, and trees."""
    members = {
        (each.host[:4], each.group, each.mode, each.sources, each.excluded, each.admitted, each.leaving)
        for _, membership in core.memberships.all()
        for each in membership.members()
    }
    senders = {
        (address, key, sender.admitted, sender.rule, sender.rate_bps, sender.alias or 0)
        for address, group in core.plane.groups.items()
        for key, sender in group.senders.items()
    }
    trees = {
        (address, tree.number): (
            tree.tree_version,
            frozenset(frozenset(link[:2]) for link in core.journal.tree_links(address, tree.number)),
        )
        for address, group in core.plane.groups.items()
        for tree in group.all_trees()
    }
    routers = {
        (entry.dpid, entry.port_no, entry.family, frozenset(entry.routers))
        for entry in core.membership.router_ports
        if entry.routers
    }
    structure = {
        event
        for event in core.fabric.structure()
        if getattr(event, "role", PortRole.EDGE) in (PortRole.EDGE, PortRole.TRUNK)
    }
    return structure, set(core.operator.settings()), routers, members, senders, trees


ALIASES = Aliases(mode="static", static=(StaticTrees(parse_prefix("239.1.1.2/31"), 2),))


@pytest.mark.parametrize("aliases", [Aliases(), ALIASES], ids=["one tree each", "aliases"])
@pytest.mark.parametrize("graph", ["leaf-spine", "fattree", "avalanche24"])
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    happenings=st.lists(
        st.tuples(st.sampled_from(WHAT), st.integers(0, 10_000), st.sampled_from(GROUPS), st.booleans()),
        min_size=5,
        max_size=60,
    )
)
def test_who_follows_knows_what_a_restart_would(make_world, graph, aliases, happenings):
    policy = replace(POLICY, aliases=aliases)
    world = make_world(graph, policy)
    shadow = Shadow(world, policy)
    for *happening, follows in happenings:
        happen(world, *happening)
        if follows:
            world.advance(0.2)
            shadow.follow()
    world.advance(1.0)
    shadow.follow()
    fresh = MulticastCore(policy, world.now)
    put_back(fresh, world.log.read(), lambda event: fresh.handle(event, world.now))
    *shadowed, trees = known(shadow.core)
    *restarted, _ = known(fresh)
    assert shadowed == restarted
    assert trees == known(world.core)[-1]
    told = [effect.dpids for effect in shadow.effects if isinstance(effect, SwitchesDrained)]
    assert len(told) == len(shadow.effects)
    assert set(told[-1] if told else ()) == shadow.core.switches.drained


def filled(world):
    for name in ("h2", "h6", "h9", "h16"):
        world.join(name, GROUP)
    world.send("h1", GROUP)
    world.do("static-member-add", dpid=world.hosts["h3"].dpid, port_no=world.hosts["h3"].port_no, group="239.9.9.9")
    world.advance(1.0)


def test_time_stands_still_until_it_leads_and_then_it_edits_nothing(make_world, version):
    world = make_world("fattree", POLICY, version)
    shadow = Shadow(world)
    filled(world)
    shadow.follow()
    world.leave("h9", GROUP)
    for _ in range(60):
        world.advance(100.0)
        for name in ("h2", "h6", "h16"):
            world.join(name, GROUP)
        world.send("h1", GROUP)
        shadow.follow()
    world.advance(1.0)
    shadow.follow()
    assert shadow.core.next_deadline() is None
    before = world.rules()
    shadow.lead()
    ends = [member.expires_at for member in shadow.core.memberships.own.members()]
    assert len(ends) == 3
    assert all(world.now + 100.0 < end <= world.now + 261.0 for end in ends)
    for dpid in world.switches:
        world.connect(dpid)
    world.connect_all()
    world.settle()
    world.advance(30.0)
    assert world.applied == 0
    assert world.rules() == before
    assert world.send("h1", GROUP) == {"h2": 1, "h6": 1, "h16": 1}


def test_a_leader_that_followed_serves_and_asks_hosts_at_once(make_world):
    world = make_world("leaf-spine", POLICY)
    world.join("h3", GROUP)
    world.advance(1.0)
    shadow = Shadow(world)
    shadow.follow()
    shadow.lead()
    for dpid in world.switches:
        world.connect(dpid)
    asked = {place for place, query in world.queries(0) if query.group is None}
    assert asked == {host.place for host in world.hosts.values()}
    world.join("h2", GROUP)
    world.settle()
    assert world.send("h1", GROUP) == {"h2": 1, "h3": 1}


def test_another_policy_while_following_leaves_the_trees_of_the_log(make_world):
    world = make_world("fattree", POLICY)
    shadow = Shadow(world)
    filled(world)
    shadow.follow()
    other = replace(POLICY, multicast=replace(POLICY.multicast, seed=77))
    shadow.handle(PolicyLoaded(other))
    while shadow.core.next_deadline() is not None:
        shadow.handle(DeadlineReached())
    fresh = MulticastCore(other, world.now)
    put_back(fresh, world.log.read(), lambda event: fresh.handle(event, world.now))
    assert known(shadow.core) == known(fresh)


def test_what_cannot_be_read_is_told_when_it_leads_and_costs_nothing_else(make_world):
    world = make_world("leaf-spine", POLICY)
    world.join("h3", GROUP)
    world.advance(1.0)
    shadow = Shadow(world)
    shadow.follow()
    before = known(shadow.core)
    bad = LogEntry.of_record(
        LogEntryKind.OBSERVATION, f"heard/{format_ip(GROUP)}/{world.hosts['h3'].dpid}", {"group": 7}
    )
    shadow.handle(
        LogFollowed((bad, LogEntry.of_record(LogEntryKind.OBSERVATION, "heard", {}), bad._replace(key="drain/1")))
    )
    assert known(shadow.core) == before
    assert shadow.effects == []
    shadow.lead()
    told = [notice for notice in world.notices if notice.kind == "journal-faulty"]
    assert [dict(notice.fields) for notice in told] == [{"records": 3}]


def test_entries_of_a_later_version_outlast_the_lead_of_one_that_does_not_know_them(make_world):
    """They stay to the letter, also where the whole log is written anew; what is taken back meanwhile stays away."""
    world = make_world("leaf-spine", POLICY)
    world.join("h3", GROUP)
    world.advance(1.0)
    later = [
        LogEntry(LogEntryKind.DECISION, "slice/red", '{"vlan" : 7, "of":[1,2]}'),
        LogEntry(LogEntryKind.OBSERVATION, "quota", "not even JSON"),
    ]
    taken_back = LogEntry(LogEntryKind.DECISION, "slice/blue", "{}")
    world.log.write(WriteLog((*later, taken_back)))
    shadow = Shadow(world)
    shadow.follow()
    world.log.write(WriteLog((taken_back._replace(text=None),)))
    shadow.follow()
    world.log = MemoryLog(world.log.read())
    shadow.lead()
    told = [notice for notice in world.notices if notice.kind == "journal-keys-unknown"]
    assert [dict(notice.fields) for notice in told] == [{"records": 2}]
    assert "(quota, slice)" in told[0].text
    assert not [notice for notice in world.notices if notice.kind == "journal-faulty"]
    keys = {entry.key for entry in world.log.read()}
    for _ in range(2):
        assert set(later) <= set(world.log.read())
        world.feed(JournalLost())
        world.advance(2.0)
    assert {entry.key for entry in world.log.read()} == keys | {"routers"}
    assert len([notice for notice in world.notices if notice.kind == "journal-keys-unknown"]) == 1


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damaged_entries_never_raise(make_world, data):
    world = make_world("fattree", POLICY)
    shadow = Shadow(world)
    filled(world)
    world.do("switch-drain", dpid=max(world.switches))
    world.advance(1.0)
    entries = []
    for entry in world.log.read():
        text = json.dumps([entry.key, entry.value])
        at = data.draw(st.integers(0, len(text) - 1))
        text = text[:at] + data.draw(st.text('{}[]"0123456789.,:-enull ', max_size=6)) + text[at + 1 :]
        try:
            key, value = json.loads(text)
        except (ValueError, TypeError):
            key, value = entry.key, {}
        entries.append(LogEntry.of_record(entry.kind, str(key), value if isinstance(value, dict) else {}))
    order = [*entries, *world.log.read(), *entries]
    random.Random(data.draw(st.integers(0, 100))).shuffle(order)
    for at in range(0, len(order), 7):
        shadow.handle(LogFollowed(tuple(order[at : at + 7])))
    shadow.handle(LeadTaken())
    while shadow.core.restart.is_under_way:
        shadow.handle(DeadlineReached())
    assert all(isinstance(effect, Notice | SwitchesDrained) for effect in shadow.effects)


def test_ports_that_are_no_longer_there_take_their_members_along(make_world):
    world = make_world("leaf-spine", POLICY)
    world.join("h3", GROUP)
    world.join("h2", GROUP)
    world.advance(1.0)
    shadow = Shadow(world)
    shadow.follow()
    host = world.hosts["h3"]
    world.feed(PortRoleChanged(host.dpid, host.port_no, PortRole.DOWN))
    world.advance(1.0)
    shadow.follow()
    places = {member.host[2:4] for member in shadow.core.memberships.own.members()}
    assert places == {world.hosts["h2"].place}
