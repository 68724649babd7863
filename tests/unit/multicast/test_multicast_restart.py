"""A new controller on switches that go on forwarding: with its journal it edits nothing, else it waits first."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.config.policy import Policy
from controller.config.settings import Limits, Multicast, RouterPorts
from controller.config.terms import SwitchPort
from controller.events import DeadlineReached, JournalLost, PacketReceived
from controller.log import LogEntry, LogEntryKind, MemoryLog, WriteLog
from controller.multicast.core import MulticastCore
from controller.multicast.events import JournalRead, LogRead, PolicyLoaded
from controller.multicast.pending_writes import JOURNAL_INTERVAL_S
from controller.wire.addresses import format_ip, parse_ip
from controller.wire.encode import encode
from controller.wire.packets import PimHello, RecordType
from topology.events import PortRole, PortRoleChanged

GROUP = parse_ip("239.1.2.3")
SSM = parse_ip("232.1.2.3")
GROUP_V6 = parse_ip("ff0e::1:2:3")
MDNS_V6 = parse_ip("ff02::fb")
POLICY = Policy(
    default_allow=True,
    limits=Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6),
    multicast=Multicast(fast_leave=True),
)
MEMBERS = ["h2", "h6", "h9", "h16"]


def check(world, members=MEMBERS, sender="h1", group=GROUP):
    assert world.send(sender, group) == {name: 1 for name in members if name != sender}


def filled(world):
    for name in MEMBERS:
        world.join(name)
        world.join(name, GROUP_V6)
    world.record("h9", RecordType.ALLOW_NEW_SOURCES, SSM, world.hosts["h5"].v4)
    for name in ("h1", "h12"):
        world.send(name)
    world.send("h1", GROUP_V6)
    world.send("h5", SSM)
    world.send("h3", source=world.hosts["h4"].v4)
    world.feed(PolicyLoaded(replace(POLICY, multicast=replace(POLICY.multicast, seed=77))))
    world.advance(1.0)


@pytest.mark.parametrize("graph", ["fattree", "avalanche24", "tree"])
def test_with_its_journal_a_restart_edits_nothing(make_world, graph, version):
    world = make_world(graph if graph != "tree" else "fattree", POLICY, version)
    if version == 1:
        for name in MEMBERS:
            world.join(name)
        world.send("h1")
        world.advance(1.0)
    else:
        filled(world)
        world.join("h9", MDNS_V6)
        world.advance(1.0)
    before = world.rules()
    world.restart(policy=replace(POLICY, multicast=replace(POLICY.multicast, seed=77)))
    for dpid in world.switches:
        world.connect(dpid)
        check(world)
    for ends in world.links.values():
        world.link_up(*ends)
        check(world)
    for host in world.hosts.values():
        world.feed(PortRoleChanged(host.dpid, host.port_no, PortRole.EDGE))
        world.learn(host)
    world.settle()
    check(world)
    assert world.applied == 0
    assert world.rules() == before
    outs = len(world.packet_outs)
    world.advance(14.0)
    assert world.applied == 0
    assert world.rules() == before
    asked = {place for place, query in world.queries() if query.group is None}
    assert asked >= {host.place for host in world.hosts.values()}
    assert len(world.packet_outs) >= outs
    world.leave("h9")
    world.settle()
    check(world, ["h2", "h6", "h16"])


def test_hosts_are_asked_once_discovery_has_found_them_again(make_world):
    world = make_world("leaf-spine", POLICY)
    world.join("h3")
    world.advance(1.0)
    world.restart()
    for dpid in world.switches:
        world.connect(dpid)
    outs = len(world.packet_outs)
    world.connect_all()
    asked = {(place, query.family) for place, query in world.queries(outs) if query.group is None}
    assert asked == {(host.place, family) for host in world.hosts.values() for family in (4, 6)}


def test_routers_are_remembered(make_world, version):
    static = make_world("fattree", POLICY).hosts["h12"].place
    ports = RouterPorts(learn=True, static=frozenset({SwitchPort(*static)}))
    policy = replace(POLICY, multicast=Multicast(fast_leave=True, router_ports=ports))
    world = make_world("fattree", policy, version)
    router = world.hosts["h16"]
    world.feed(PacketReceived(*router.place, encode(PimHello(4, router.mac, router.v4, 105.0))))
    world.join("h2")
    world.send("h1")
    world.advance(1.0)
    check(world, ["h2", "h12", "h16"])
    world.restart()
    for dpid in world.switches:
        world.connect(dpid)
    world.settle()
    assert world.applied == 0
    check(world, ["h2", "h12", "h16"])
    world.connect_all()
    world.advance(30.0)
    assert world.applied == 0
    check(world, ["h2", "h12", "h16"])


def test_what_happened_meanwhile_is_made_good(make_world, version):
    """While nobody was there a link failed and a host was unplugged."""
    world = make_world("fattree", POLICY, version)
    for name in MEMBERS:
        world.join(name)
    world.send("h1")
    world.advance(1.0)
    link = sorted(next(iter(world.core.forest.tree(GROUP).links())))
    ends = world.links[frozenset(link)]
    world.restart()
    world.fabric.cut(ends[0])
    world.down_links.add(frozenset(link))
    unplugged = world.hosts.pop("h16")
    for dpid in world.switches:
        world.connect(dpid)
    for pair, both in world.links.items():
        if pair not in world.down_links:
            world.link_up(*both)
    for host in world.hosts.values():
        world.feed(PortRoleChanged(host.dpid, host.port_no, PortRole.EDGE))
        world.learn(host)
    world.advance(14.0)
    world.settle()
    check(world, ["h2", "h6", "h9"])
    assert unplugged.dpid not in world.core.plane.groups[GROUP].interests


def test_without_its_journal_forwarding_goes_on_until_hosts_have_answered(make_world, version):
    world = make_world("fattree", POLICY, version)
    for name in MEMBERS:
        world.join(name)
    world.send("h1")
    world.advance(1.0)
    world.restart(journal=False, policy=replace(POLICY, multicast=replace(POLICY.multicast, seed=5)))
    world.connect_all()
    for late, name in enumerate(MEMBERS):
        for _ in world.steps(0.5):
            check(world)
        world.now += 2.0 + late / 10
        world.record(name, RecordType.MODE_IS_EXCLUDE)
        world.settle()
        check(world)
    world.record("h12", RecordType.MODE_IS_EXCLUDE)
    end_s = world.now + 20.0
    while world.now < end_s:
        for _ in world.steps(0.3):
            check_steady(world)
        world.now += 0.3
    check(world, [*MEMBERS, "h12"])
    world.send("h1")
    world.settle()
    outs = len(world.packet_outs)
    check(world, [*MEMBERS, "h12"])
    assert len(world.packet_outs) == outs, "the sender has entries again"


def check_steady(world):
    got = world.send("h1")
    assert {name: got[name] for name in MEMBERS} == dict.fromkeys(MEMBERS, 1)
    assert set(got.values()) == {1}


def test_without_its_journal_what_nobody_wants_any_more_goes(make_world, version):
    policy = replace(POLICY, multicast=replace(POLICY.multicast, sender_timeout_s=20))
    world = make_world("fattree", policy, version)
    plain = world.rules()
    for name in MEMBERS:
        world.join(name)
    world.send("h1")
    world.advance(1.0)
    world.restart(journal=False)
    world.connect_all()
    world.advance(30.0)
    assert world.rules() == plain


def test_a_new_group_need_not_wait_for_the_old_ones(make_world):
    world = make_world("fattree", POLICY)
    world.join("h9")
    world.advance(1.0)
    world.restart(journal=False)
    world.connect_all()
    world.settle()
    other = parse_ip("239.5.5.5")
    world.join("h9", other)
    world.send("h1", other)
    world.settle()
    check(world, ["h9"], group=other)


def test_the_grace_lasts_until_late_switches_hosts_have_answered(make_world):
    world = make_world("fattree", POLICY)
    for name in MEMBERS:
        world.join(name)
    world.send("h1")
    world.advance(1.0)
    world.restart(journal=False)
    world.advance(8.0)
    world.connect_all()
    world.advance(10.0)
    check(world)
    for name in MEMBERS:
        world.record(name, RecordType.MODE_IS_EXCLUDE)
    world.advance(5.0)
    check(world)


def test_the_log_holds_what_there_is_and_nothing_of_what_was(make_world):
    world = make_world("leaf-spine", POLICY)
    for n in range(2500):
        group = bytes((239, 3, n % 60 >> 8, n % 60))
        (world.join if n // 60 % 2 == 0 else world.leave)("h3", group)
        if n % 60 == 59:
            world.advance(0.2)
    for name in ("h3", "h5"):
        world.join(name)
    world.advance(1.0)
    groups = {entry.value["group"] for entry in world.log.read() if entry.subject == "heard"}
    assert groups == {format_ip(group) for group in world.core.plane.groups} > {"239.1.2.3"}
    assert [entry.value["group"] for entry in world.log.read() if entry.subject == "tree"] == ["239.1.2.3"]
    world.restart()
    world.connect_all()
    world.settle()
    assert world.applied == 0


def test_the_log_has_a_tree_while_something_of_it_was_chosen(make_world):
    world = make_world("leaf-spine", POLICY)

    def trees():
        world.advance(1.0)
        return [len(entry.value["links"]) for entry in world.log.read() if entry.subject == "tree"]

    world.join("h3")
    assert trees() == []
    world.join("h5")
    assert trees() == [2]
    world.leave("h5")
    assert trees() == []
    world.restart()
    world.connect_all()
    world.settle()
    assert world.applied == 0 and trees() == []


def test_a_tree_that_a_version_before_wrote_of_a_group_at_one_switch_leaves_the_log(make_world):
    world = make_world("leaf-spine", POLICY)
    world.join("h3")
    world.advance(1.0)
    value = {"group": "239.1.2.3", "tree_version": 0, "links": []}
    former = LogEntry.of_record(LogEntryKind.DECISION, "tree/239.1.2.3", value)
    world.log = MemoryLog([*world.log.read(), former])
    world.restart()
    world.connect_all()
    world.settle()
    assert world.applied == 0
    assert [entry.subject for entry in world.log.read() if entry.key.endswith("239.1.2.3")] == []
    assert any(entry.key.startswith("heard/239.1.2.3/") for entry in world.log.read())


def test_a_group_of_the_log_that_nobody_wants_any_more_leaves_it(make_world):
    world = make_world("leaf-spine", POLICY)
    world.join("h3")
    world.advance(1.0)
    entries = [entry for entry in world.log.read() if entry.subject != "heard"]
    world.log = MemoryLog(
        [*entries, LogEntry.of_record(LogEntryKind.OBSERVATION, "heard/239.1.2.3/9", {"group": "239.1.2.3"})]
    )
    world.restart()
    world.advance(1.0)
    assert {"tree", "heard"}.isdisjoint(entry.subject for entry in world.log.read())


def test_what_of_the_log_cannot_be_read_is_told_and_leaves_it_but_for_keys_of_another_version(make_world):
    world = make_world("leaf-spine", POLICY)
    world.join("h3")
    world.advance(1.0)
    before = {entry.key for entry in world.log.read()}
    odd = [
        LogEntry.of_record(LogEntryKind.DECISION, key, {})
        for key in ("tree/1.2.3", "heard/239.1.1.1/x", "odd/1", "drain/1", "odd")
    ]
    world.log = MemoryLog([*world.log.read(), *odd])
    world.restart()
    (notice,) = (notice for notice in world.notices if notice.kind == "journal-faulty")
    assert notice.fields == (("records", 3),)
    world.advance(1.0)
    assert {entry.key for entry in world.log.read()} - {"routers"} == before | {"odd/1", "odd"}
    (notice,) = (notice for notice in world.notices if notice.kind == "journal-keys-unknown")
    assert notice.fields == (("records", 2),)


def test_a_log_that_lost_writes_is_written_anew(make_world):
    world = make_world("leaf-spine", POLICY)
    for number in range(60):
        world.join("h3", bytes((239, 3, 0, number)))
    world.do("switch-drain", dpid=max(world.switches))
    world.join("h4", MDNS_V6)
    world.advance(1.0)
    before = {entry.key: entry.kind for entry in world.log.read()}
    world.log = MemoryLog([LogEntry.of_record(LogEntryKind.DECISION, "drain/77", {"dpid": 77})])
    world.feed(JournalLost())
    world.advance(JOURNAL_INTERVAL_S)
    assert 0 < len(world.log.read()) < len(before), "in steps"
    world.join("h4", bytes((239, 3, 0, 59)))
    world.advance(1.0)
    after = {entry.key: entry.kind for entry in world.log.read()}
    assert {**before, **after} == after
    assert set(after) - set(before) == {"routers"}


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_damaged_log_never_raises(make_world, data):
    world = make_world("leaf-spine", POLICY)
    world.join("h3")
    world.send("h1")
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
    core = MulticastCore(POLICY, 5.0)
    core.handle(LogRead(tuple(entries)), 5.0)
    while core.restart.is_under_way:
        core.handle(DeadlineReached(), 5.0)


def test_a_log_is_put_back_in_slices_and_is_whole_meanwhile(make_world):
    world = make_world("fattree", POLICY)
    for number in range(60):
        for name in ("h3", "h6"):
            world.join(name, bytes((239, 7, 0, number)))
        world.advance(0.1)
    world.advance(1.0)
    entries = world.log.read()
    core, kept = MulticastCore(POLICY, world.now), MemoryLog(entries)
    slices = [core.handle(LogRead(entries), world.now)]
    while core.restart.is_under_way:
        assert core.next_deadline() == world.now
        core.handle(JournalLost(), world.now)
        core.handle(JournalLost(), world.now)
        slices.append(core.handle(DeadlineReached(), world.now))
        for effect in slices[-1]:
            if isinstance(effect, WriteLog):
                kept.write(effect)
        held = {entry.key: entry.value for entry in kept.read()}
        assert {entry.key for entry in entries} <= held.keys()
    assert len(slices) > 3
    assert core.plane.groups.keys() == world.core.plane.groups.keys()
    assert core.memberships.admitted_count() == world.core.memberships.admitted_count()


# The journal of a version before

FORMER = [json.loads(line) for line in Path(__file__).with_name("former-journal.jsonl").read_text().splitlines()]
"""What that version wrote of the world that `former` makes."""


def former(make_world):
    world = make_world("fattree", POLICY, 4)
    for name in MEMBERS:
        world.join(name)
        world.join(name, GROUP_V6)
    world.record("h9", RecordType.ALLOW_NEW_SOURCES, SSM, world.hosts["h5"].v4)
    for name in ("h1", "h12"):
        world.send(name)
    world.send("h1", GROUP_V6)
    world.send("h5", SSM)
    world.join("h9", MDNS_V6)
    host = world.hosts["h3"]
    world.do("static-member-add", dpid=host.dpid, port_no=host.port_no, group="239.9.9.9")
    world.do("router-port-add", dpid=host.dpid, port_no=host.port_no, family=4)
    world.do("switch-drain", dpid=max(world.switches))
    cut = min(tuple(sorted(pair)) for pair in world.links)
    world.cut(*cut)
    world.advance(1.0)
    world.mend(*cut)
    world.advance(2.0)
    return world


def test_the_journal_of_a_version_before_is_taken_over_without_one_edit(make_world):
    world = former(make_world)
    keys = {entry.key for entry in world.log.read()}
    world.restart(journal=False)
    world.feed(JournalRead(tuple(FORMER)))
    world.connect_all()
    world.settle()
    assert world.applied == 0
    check(world, [*MEMBERS, "h3"])
    world.advance(1.0)
    assert {entry.key for entry in world.log.read()} == keys
    assert not [notice for notice in world.notices if notice.kind == "journal-faulty"]
    world.restart()
    world.connect_all()
    world.settle()
    assert world.applied == 0


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_damaged_journal_of_a_version_before_never_raises(data):
    records = []
    for text in map(json.dumps, FORMER):
        at = data.draw(st.integers(0, len(text) - 1))
        text = text[:at] + data.draw(st.text('{}[]"0123456789.,:-enull ', max_size=6)) + text[at + 1 :]
        try:
            record = json.loads(text)
        except ValueError:
            record = {}
        records.append(record if isinstance(record, dict) else {})
    core = MulticastCore(POLICY, 5.0)
    core.handle(JournalRead(tuple(records)), 5.0)


def test_a_storm_of_joins_has_members_written_first_and_each_tree_seldom(make_world, monkeypatch):
    monkeypatch.setattr("controller.multicast.journal.GROUPS_PER_WRITE", 8)
    monkeypatch.setattr("controller.multicast.journal.TREES_PER_WRITE", 2)
    world = make_world("fattree", POLICY)
    world.advance(1.0)
    writes: list[WriteLog] = []
    handle = world.handle

    def noted(event):
        effects = handle(event)
        writes.extend(effect for effect in effects if isinstance(effect, WriteLog))
        return effects

    world.handle = noted
    groups = [bytes((239, 9, 9, number)) for number in range(20)]
    for group in groups:
        for name in ("h2", "h9"):
            world.join(name, group)
    world.advance(1.0)
    kinds = [[entry.subject for entry in write.entries] for write in writes]
    heard = [subjects.count("heard") for subjects in kinds]
    trees = [subjects.count("tree") for subjects in kinds]
    assert heard[:5] == [8] * 5 and sum(heard) == 40, "40 groups at a switch"
    assert trees == [2] * 5 + [8, 2], "what members leave of a write is for trees"
    assert {entry.key for write in writes for entry in write.entries} >= {f"tree/{format_ip(g)}" for g in groups}
