"""Admission: refused hosts get and deliver nothing, decisions are written down, a new policy counts at once."""

from __future__ import annotations

from dataclasses import replace

from controller.config.policy import Policy, Role, Rule
from controller.config.settings import Limits, Multicast
from controller.config.terms import parse_prefix
from controller.multicast.events import PolicyLoaded
from controller.rules.pipeline import PRIORITY_SENDER
from controller.wire.addresses import parse_ip
from controller.wire.packets import RecordType

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
