"""Admission: refused hosts get and deliver nothing, decisions are written down, a new policy counts at once."""

from __future__ import annotations

from dataclasses import replace

from controller.config.policy import Policy, Role, Rule
from controller.config.settings import Limits, Multicast
from controller.config.terms import parse_prefix
from controller.events import DeadlineReached
from controller.multicast.events import PolicyLoaded
from controller.rules.pipeline import PRIORITY_SENDER
from controller.wire.addresses import parse_ip
from controller.wire.packets import RecordType
from topology.events import HostLearnt

GROUP = parse_ip("239.1.2.3")
OTHER = parse_ip("239.9.9.9")
SSM = parse_ip("232.1.1.1")
OPEN = Policy(
    default_allow=True,
    limits=Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6),
    multicast=Multicast(fast_leave=True),
)


def only(*hosts, role=None, name="only", allow=True, sources=()):
    terms = tuple(parse_prefix(host) for host in hosts)
    roles = frozenset(Role) if role is None else frozenset({role})
    prefixes = tuple(parse_prefix(source) for source in sources)
    return Rule(name, (parse_prefix("224.0.0.0/4"),), roles, allow, hosts=terms, sources=prefixes)


def policy(*rules):
    return replace(OPEN, default_allow=False, rules=rules)


RECEIVERS = only("10.0.0.2", "10.0.0.9", role=Role.RECEIVER, name="receivers")
SENDERS = only("10.0.0.1", role=Role.SENDER, name="senders")


def test_refused_hosts_neither_get_nor_deliver(make_world, version):
    world = make_world("fattree", policy(RECEIVERS, SENDERS), version)
    for name in ("h2", "h9", "h3", "h16"):
        world.join(name)
    world.settle()
    for _ in range(3):
        assert world.send("h1") == {"h2": 1, "h9": 1}
        assert world.send("h3") == {}
        world.settle()
    outs = len(world.packet_outs)
    assert world.send("h3") == {}
    assert len(world.packet_outs) == outs
    rules = world.rules()[world.hosts["h3"].dpid].values()
    assert [rule.actions for rule in rules if rule.key.priority == PRIORITY_SENDER] == [()]


def test_decisions_are_told_once_with_their_rule(make_world):
    world = make_world("fattree", policy(RECEIVERS, SENDERS))
    for _ in range(3):
        world.join("h2")
        world.join("h3")
        world.send("h1")
        world.send("h3")
    told = [(a.host.mac[-1], str(a.role), a.decision.admit, a.decision.rule) for a in world.audits]
    assert told == [
        (2, "receiver", True, "receivers"),
        (3, "receiver", False, "default"),
        (1, "sender", True, "senders"),
        (3, "sender", False, "default"),
    ]
    counts = world.core.admission.counters()
    assert counts["receivers"] == {"allow": 1, "deny": 0}
    assert counts["default"] == {"allow": 0, "deny": 2}


def test_a_source_may_be_refused_to_a_member(make_world):
    rule = only("10.0.0.9", role=Role.RECEIVER, sources=["10.0.0.1"])
    world = make_world("fattree", policy(rule, only("10.0.0.0/8", role=Role.SENDER, name="send")))
    sources = [world.hosts[name].v4 for name in ("h1", "h2")]
    world.record("h9", RecordType.ALLOW_NEW_SOURCES, SSM, *sources)
    world.settle()
    assert world.send("h1", SSM) == {"h9": 1}
    assert world.send("h2", SSM) == {}


def test_a_new_policy_takes_members_and_senders_off_and_on(make_world, version):
    world = make_world("fattree", OPEN, version)
    for name in ("h2", "h3", "h9"):
        world.join(name)
    for name in ("h1", "h4"):
        world.send(name)
    world.settle()
    assert world.send("h4") == {"h2": 1, "h3": 1, "h9": 1}
    world.feed(PolicyLoaded(policy(RECEIVERS, SENDERS)))
    for _ in world.steps():
        got = world.send("h1")
        assert {name: got[name] for name in ("h2", "h9")} == {"h2": 1, "h9": 1}, "steady members go on"
    assert world.send("h1") == {"h2": 1, "h9": 1}
    assert world.send("h4") == {}
    world.feed(PolicyLoaded(OPEN))
    world.settle()
    assert world.send("h1") == {"h2": 1, "h3": 1, "h9": 1}
    assert world.send("h4") == {"h2": 1, "h3": 1, "h9": 1}


def test_members_refused_at_first_are_served_once_the_policy_admits_them(make_world, version):
    world = make_world("fattree", policy(SENDERS), version)
    world.join("h2")
    world.send("h1")
    world.settle()
    assert world.send("h1") == {}
    assert set(world.core.plane.groups) == {GROUP}
    world.feed(PolicyLoaded(policy(RECEIVERS, SENDERS)))
    world.settle()
    assert world.send("h1") == {"h2": 1}


def test_a_group_of_refused_members_only_costs_no_entries(make_world, version):
    world = make_world("fattree", policy(), version)
    plain = world.rules()
    for name in ("h2", "h9"):
        world.join(name)
    world.settle()
    assert world.rules() == plain
    assert not world.core.plane.groups


def test_false_senders_stay_refused_under_an_open_policy(make_world):
    world = make_world("fattree", policy(SENDERS))
    world.join("h9")
    world.send("h3", source=world.hosts["h1"].v4)
    world.feed(PolicyLoaded(OPEN))
    world.settle()
    assert world.send("h3", source=world.hosts["h1"].v4) == {}


def test_another_algorithm_takes_over_without_loss(make_world):
    world = make_world("avalanche24", OPEN)
    members = ["h9", "h13", "h17", "h24"]
    for name in members:
        world.join(name)
    world.send("h1")
    world.settle()
    for tree in ("pim-sm-fixed-core", "steiner", "source-tree", "vsrt"):
        world.feed(PolicyLoaded(replace(OPEN, multicast=Multicast(fast_leave=True, tree=tree))))
        for _ in world.steps():
            assert world.send("h1") == dict.fromkeys(members, 1)
    assert world.refused_edits() == []


def test_other_limits_count_from_then_on(make_world):
    world = make_world("leaf-spine", OPEN)
    world.feed(PolicyLoaded(replace(OPEN, limits=Limits(senders_per_port=2, groups_per_port=1))))
    for n in range(5):
        world.send("h1", source=bytes((11, 0, 0, n)))
    assert len(world.core.plane.groups[GROUP].senders) == 2
    world.join("h3")
    world.join("h3", OTHER)
    assert set(world.core.plane.groups) == {GROUP}


ALL = only("10.0.0.0/8", name="all")
COUNT = 40


def crowd(make_world, monkeypatch, in_force):
    """Return a fabric whose hosts have many groups and send, and whose slices are small."""
    monkeypatch.setattr("controller.multicast.reconsideration.SLICE_STEPS", 4)
    monkeypatch.setattr("controller.multicast.reconsideration.CHANGE_STEPS", 3)
    world = make_world("leaf-spine", in_force)
    for number in range(COUNT):
        world.join("h3", group_of(number))
        world.join("h5", group_of(number))
        world.send("h1", group_of(number))
    world.settle()
    assert len(world.core.plane.groups) == COUNT
    world.audits.clear()
    return world


def group_of(number):
    return bytes((239, 3, number % 2, number))


def told(world):
    return sorted((a.group, a.host.mac[-1], str(a.role), a.decision.admit) for a in world.audits)


def served(world, number):
    return dict(world.inject(world.hosts["h1"].place, world.data("h1", group_of(number))))


def test_the_same_policy_and_one_that_reads_otherwise_alone_judge_nobody(make_world, monkeypatch):
    lines = [replace(ALL, line=line) for line in (1, 1, 9)]
    world = crowd(make_world, monkeypatch, policy(lines[0]))
    counts = world.core.admission.counters()
    before = world.applied
    other = replace(policy(lines[2]), check=replace(OPEN.check, interval_s=5.0))
    for one in (policy(lines[1]), other):
        world.feed(PolicyLoaded(one))
        world.settle()
        assert world.audits == []
        assert world.core.admission.counters() == counts
        assert world.applied == before
    host = next(world.core.membership.members()).host
    assert "line 9" in world.core.admission.explain(host, GROUP, Role.RECEIVER).reason


def test_only_decisions_that_come_out_otherwise_are_told(make_world, monkeypatch):
    world = crowd(make_world, monkeypatch, policy(ALL))
    barred = replace(only("10.0.0.3", name="barred", allow=False), groups=(parse_prefix("239.3.1.0/24"),))
    world.feed(PolicyLoaded(policy(barred, ALL)))
    world.settle()
    assert told(world) == [(group_of(n), 3, "receiver", False) for n in sorted(range(1, COUNT, 2))]
    assert [served(world, n) for n in (0, 1)] == [{"h3": 1, "h5": 1}, {"h5": 1}]
    world.audits.clear()
    world.feed(PolicyLoaded(policy(ALL)))
    world.settle()
    assert told(world) == [(group_of(n), 3, "receiver", True) for n in sorted(range(1, COUNT, 2))]
    assert served(world, 1) == {"h3": 1, "h5": 1}


def test_senders_are_judged_anew_by_groups_that_are_concerned(make_world, monkeypatch):
    world = crowd(make_world, monkeypatch, policy(ALL))
    barred = only("10.0.0.1", role=Role.SENDER, name="barred", allow=False)
    barred = replace(barred, groups=(parse_prefix("239.3.0.0/24"),))
    world.feed(PolicyLoaded(policy(barred, ALL)))
    world.settle()
    assert told(world) == [(group_of(n), 1, "sender", False) for n in range(0, COUNT, 2)]
    assert [served(world, n) for n in (0, 1)] == [{}, {"h3": 1, "h5": 1}]


def test_another_rule_with_the_same_verdict_is_shown_and_not_told(make_world, monkeypatch):
    world = crowd(make_world, monkeypatch, policy(ALL))
    world.feed(PolicyLoaded(policy(replace(ALL, name="other"))))
    world.settle()
    assert world.audits == []
    rules = {sender.rule for group in world.core.plane.groups.values() for sender in group.senders.values()}
    assert rules == {"other"}


def test_nobody_whom_both_policies_admit_is_cut_off_while_a_new_one_is_taken_over(make_world, monkeypatch):
    world = crowd(make_world, monkeypatch, policy(ALL))
    world.feed(PolicyLoaded(policy(only("10.0.0.1", "10.0.0.5", name="all"))))
    assert served(world, COUNT - 1) == {"h3": 1, "h5": 1}, "those who wait for their slice keep what they have"
    turns = 0
    for _ in world.steps():
        turns += 1
        for number in (0, 1, COUNT - 1):
            assert served(world, number).get("h5") == 1
    assert turns > COUNT / 2
    assert all(served(world, number) == {"h5": 1} for number in range(COUNT))


def test_a_join_in_the_midst_of_a_new_policy_is_judged_by_it(make_world, monkeypatch):
    world = crowd(make_world, monkeypatch, policy(ALL))
    world.feed(PolicyLoaded(policy(only("10.0.0.1", "10.0.0.5", name="all"))))
    world.join("h4", GROUP)
    world.join("h5", GROUP)
    assert [(a.host.mac[-1], a.decision.admit) for a in world.audits if a.group == GROUP] == [(4, False), (5, True)]
    world.settle()
    assert world.send("h1") == {"h5": 1}


def test_a_policy_in_the_midst_of_another_begins_anew(make_world, monkeypatch):
    world = crowd(make_world, monkeypatch, policy(ALL))
    world.feed(PolicyLoaded(policy(only("10.0.0.1", "10.0.0.5", name="all"))))
    barred = replace(only("10.0.0.5", name="barred", allow=False), groups=(parse_prefix("239.3.1.0/24"),))
    world.feed(PolicyLoaded(policy(barred, ALL)))
    world.settle()
    assert [served(world, n) for n in (0, 1, COUNT - 2, COUNT - 1)] == [{"h3": 1, "h5": 1}, {"h3": 1}] * 2
    assert {m.host.mac[-1]: m.admitted for m in world.core.membership.members() if m.group[2] == 1} == {
        3: True,
        5: False,
    }


def test_what_the_first_of_two_policies_concerns_is_judged_although_the_second_does_not_name_it(
    make_world, monkeypatch
):
    world = crowd(make_world, monkeypatch, policy(ALL))
    odd, even = (
        replace(only("10.0.0.5", name=prefix, allow=False), groups=(parse_prefix(prefix),))
        for prefix in ("239.3.1.0/24", "239.3.0.0/24")
    )
    world.feed(PolicyLoaded(policy(odd, ALL)))
    world.feed(PolicyLoaded(policy(odd, even, ALL)))
    world.settle()
    assert all(served(world, number) == {"h3": 1} for number in range(COUNT))


def test_a_host_that_takes_another_address_in_the_midst_of_a_new_policy_is_judged_by_it(make_world, monkeypatch):
    world = crowd(make_world, monkeypatch, policy(only("10.0.0.1", "10.0.0.3", "10.0.0.5", name="all")))
    world.feed(PolicyLoaded(policy(only("10.0.0.1", "10.9.9.9", "10.0.0.5", name="all"))))
    host = world.hosts["h3"]
    while world.core.membership.is_admitted(host.dpid, host.port_no, host.mac, group_of(0)):
        world.feed(DeadlineReached())
    assert world.core.membership.is_admitted(host.dpid, host.port_no, host.mac, group_of(COUNT - 1))
    world.feed(HostLearnt(host.mac, host.dpid, host.port_no, (parse_ip("10.9.9.9"),)))
    world.settle()
    assert all(served(world, number) == {"h3": 1, "h5": 1} for number in range(COUNT))


def test_after_a_new_policy_hosts_are_known_by_it(make_world, monkeypatch):
    world = crowd(make_world, monkeypatch, policy(ALL))
    world.feed(PolicyLoaded(policy(replace(ALL, name="other"))))
    world.settle()
    host = world.hosts["h3"]
    world.feed(HostLearnt(host.mac, host.dpid, host.port_no, (host.v4, host.v6, parse_ip("10.0.0.77"))))
    world.settle()
    assert world.audits == []


def test_who_waits_to_be_served_by_a_new_policy_is_shown_to(make_world, monkeypatch):
    world = crowd(make_world, monkeypatch, policy(only("10.0.0.1", "10.0.0.5", name="all")))
    world.feed(PolicyLoaded(policy(ALL)))
    last = next(member for member in world.core.membership.members_of(group_of(COUNT - 1)) if not member.admitted)
    assert "served in a moment" in world.core.gate.refusal(last.host, last.group, None).reason
    world.settle()
    assert all(member.admitted for member in world.core.membership.members())
    assert world.core.gate.refusal(last.host, last.group, None).rule == "limits.groups"
