"""Receivers: who asks is checked by MAC address, IP address and port, and looked at again when addresses move."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.config.policy import Policy, Role, Rule
from controller.config.settings import Limits
from controller.config.terms import parse_host_term, parse_prefix
from controller.wire.addresses import parse_ip
from controller.wire.packets import GroupRecord, RecordType, Report
from topology.events import HostGone, HostLearnt

GROUP, OTHER, GROUP_V6 = parse_ip("239.1.2.3"), parse_ip("239.1.2.4"), parse_ip("ff0e::1:2:3")
NOBODY = {4: bytes(4), 6: bytes(16)}
GLOBAL_V6 = parse_ip("fd00::9")
STRANGER = b"\x02\0\0\0\x01\x01"
IS_EX, TO_EX, TO_IN = RecordType.MODE_IS_EXCLUDE, RecordType.CHANGE_TO_EXCLUDE, RecordType.CHANGE_TO_INCLUDE
OPEN = Policy(
    default_allow=True, limits=Limits(reports_per_second_per_port=1e6, unknown_packets_per_second_per_port=1e6)
)


def receivers(*hosts):
    """A policy that lets these hosts receive, everybody send, and nobody else receive."""
    anything = (parse_prefix("224.0.0.0/4"), parse_prefix("ff00::/8"))
    terms = tuple(map(parse_host_term, hosts))
    return replace(
        OPEN,
        default_allow=False,
        rules=(
            Rule("members", anything, frozenset({Role.RECEIVER}), True, hosts=terms),
            Rule("senders", anything, frozenset({Role.SENDER}), True, any_host=True),
        ),
    )


MEMBER_ONLY = receivers("10.0.0.9", "fe80::9")


def claim(world, name, kind, group=GROUP, owner="h9", source=None):
    """Have a host report with the address of another one."""
    host, family = world.hosts[name], 4 if len(group) == 4 else 6
    address = world.hosts[owner].address(group) if source is None else source
    report = Report(family, 3 if family == 4 else 2, host.mac, address, (GroupRecord(kind, group, ()),))
    world.report(name, report)
    world.settle()


def refusals(world):
    return [
        (a.host.mac[-1], a.decision.rule) for a in world.audits if a.role is Role.RECEIVER and not a.decision.admit
    ]


@pytest.mark.parametrize("policy", [MEMBER_ONLY, OPEN], ids=["deny", "allow"])
@pytest.mark.parametrize("group", [GROUP, GROUP_V6], ids=["igmp", "mld"])
def test_a_join_with_the_address_of_a_member_is_refused(make_world, policy, group):
    world = make_world("fattree", policy)
    world.join("h9", group)
    for kind in (TO_EX, IS_EX, IS_EX):
        claim(world, "h2", kind, group)
    assert world.send("h1", group) == {"h9": 1}
    assert refusals(world) == [(2, "(spoofed)")]
    reason = next(a.decision.reason for a in world.audits if not a.decision.admit)
    assert "belongs to 02:00:00:00:00:09 at port" in reason
    assert world.core.membership.counters["spoofed-report"] == 3
    (refused,) = world.core.group_view.group(group)["refused"]
    assert (refused["mac"], refused["rule"]) == ("02:00:00:00:00:02", "(spoofed)")
    assert "belongs to 02:00:00:00:00:09" in refused["reason"]
    assert "membership-spoofed-report" in [notice.kind for notice in world.notices]


@pytest.mark.parametrize("group", [GROUP, GROUP_V6], ids=["igmp", "mld"])
def test_a_refused_host_does_not_pass_by_a_later_report_or_by_turns(make_world, group):
    world = make_world("fattree", MEMBER_ONLY)
    world.join("h9", group)
    world.join("h2", group)
    for _ in range(3):
        claim(world, "h2", TO_EX, group)
        assert world.send("h1", group) == {"h9": 1}
        world.record("h2", IS_EX, group)
        world.settle()
        assert world.send("h1", group) == {"h9": 1}
    assert {mac for mac, _ in refusals(world)} == {2}


def test_a_false_report_changes_nothing_of_a_true_membership(make_world):
    world = make_world("fattree", OPEN)
    for name in ("h2", "h9"):
        world.join(name)
    world.settle()
    outs, edits = len(world.packet_outs), world.applied
    claim(world, "h2", TO_IN)
    claim(world, "h2", IS_EX)
    claim(world, "h2", TO_EX, OTHER)
    assert world.queries(outs) == [] and world.applied == edits
    assert world.send("h1") == {"h2": 1, "h9": 1}
    assert world.send("h1", OTHER) == {}
    assert refusals(world) == [(2, "(spoofed)")]


def test_a_false_report_does_not_keep_a_membership_alive(make_world):
    world = make_world("fattree", OPEN)
    for name in ("h2", "h9"):
        world.join(name)
    for _ in range(8):
        world.advance(50.0)
        claim(world, "h2", IS_EX)
        world.record("h9", IS_EX)
    assert world.send("h1") == {"h9": 1}


@pytest.mark.parametrize("group", [GROUP, GROUP_V6], ids=["igmp", "mld"])
def test_a_leave_with_the_address_of_a_member_ends_nothing(make_world, group):
    world = make_world("fattree", OPEN)
    world.join("h9", group)
    world.settle()
    outs = len(world.packet_outs)
    claim(world, "h2", TO_IN, group)
    assert world.queries(outs) == []
    world.advance(30.0)
    assert world.send("h1", group) == {"h9": 1}


@pytest.mark.parametrize("policy", [MEMBER_ONLY, OPEN], ids=["deny", "allow"])
def test_a_false_receiver_loses_the_feed_when_the_owner_is_learnt(make_world, policy):
    world = make_world("fattree", policy)
    owner = world.hosts["h9"]
    world.feed(HostGone(owner.mac, owner.dpid, owner.port_no))
    claim(world, "h2", TO_EX)
    assert world.send("h1") == {"h2": 1}
    world.learn(owner)
    world.settle()
    assert world.send("h1") == {}
    assert refusals(world) == [(2, "(spoofed)")]


def test_a_refused_receiver_is_served_once_the_address_is_its_own(make_world):
    world = make_world("fattree", MEMBER_ONLY)
    taker, giver = world.hosts["h2"], world.hosts["h9"]
    claim(world, "h2", TO_EX)
    assert world.send("h1") == {}
    world.feed(HostGone(giver.mac, giver.dpid, giver.port_no))
    world.settle()
    assert world.send("h1") == {}, "an address that nobody holds is not the claimant's own"
    claim(world, "h2", IS_EX)
    assert world.send("h1") == {}, "nor does a refresh make it so"
    world.feed(HostLearnt(taker.mac, taker.dpid, taker.port_no, (taker.v4, giver.v4)))
    world.settle()
    assert world.send("h1") == {"h2": 1}


def test_hosts_without_an_address_are_judged_by_what_is_known_of_them(make_world):
    world = make_world("fattree", receivers("10.0.0.9", "02:00:00:00:00:02"))
    claim(world, "h9", TO_EX, source=NOBODY[4])  # its IPv4 address is known
    claim(world, "h9", TO_EX, GROUP_V6, source=NOBODY[6])
    claim(world, "h2", TO_EX, source=NOBODY[4])  # its MAC address is named
    claim(world, "h3", TO_EX, source=NOBODY[4])
    assert world.send("h1") == {"h2": 1, "h9": 1}
    assert world.send("h1", GROUP_V6) == {"h9": 1}
    assert refusals(world) == [(3, "default")]


def test_an_address_learnt_after_the_first_report_counts(make_world):
    world = make_world("fattree", receivers("10.0.0.9"))
    host = world.hosts["h9"]
    world.feed(HostGone(host.mac, host.dpid, host.port_no))
    claim(world, "h9", TO_EX, source=NOBODY[4])
    assert world.send("h1") == {}
    world.learn(host)
    world.settle()
    assert world.send("h1") == {"h9": 1}


def test_a_host_never_seen_before_is_judged_by_its_report(make_world):
    world = make_world("fattree", MEMBER_ONLY)
    host = world.hosts["h9"]
    world.feed(HostGone(host.mac, host.dpid, host.port_no))
    world.join("h9")
    world.settle()
    assert world.send("h1") == {"h9": 1}


def test_any_address_of_a_host_makes_it_a_rules_host(make_world):
    world = make_world("fattree", receivers("fd00::9"))
    host = world.hosts["h9"]
    world.join("h9", GROUP_V6)  # from its link-local address
    world.settle()
    assert world.send("h1", GROUP_V6) == {}
    world.feed(HostLearnt(host.mac, host.dpid, host.port_no, (host.v4, host.v6, GLOBAL_V6)))
    world.settle()
    assert world.send("h1", GROUP_V6) == {"h9": 1}
    world.join("h9")
    world.settle()
    assert world.send("h1") == {"h9": 1}, "by the same name it may have IPv4 groups"
    world.feed(HostLearnt(host.mac, host.dpid, host.port_no, (host.v4, host.v6)))
    world.settle()
    assert world.send("h1", GROUP_V6) == {}


def test_addresses_that_change_no_rule_lead_to_no_decision(make_world):
    world = make_world("fattree", MEMBER_ONLY)
    host = world.hosts["h9"]
    world.join("h9")
    world.settle()
    audits = len(world.audits)
    for n in range(50):
        world.feed(
            HostLearnt(host.mac, host.dpid, host.port_no, (host.v4, host.v6, b"\xfd" + bytes(14) + bytes((n,))))
        )
    assert len(world.audits) == audits


def test_verdicts_outlive_a_restart(make_world):
    world = make_world("fattree", receivers("10.0.0.9", "10.0.0.1", "fd00::9"))
    host, near = world.hosts["h9"], world.hosts["h1"]
    world.feed(HostLearnt(host.mac, host.dpid, host.port_no, (host.v4, host.v6, GLOBAL_V6)))
    world.join("h9", GROUP_V6)
    world.join("h9")
    world.join("h1")
    stranger = Report(4, 3, STRANGER, host.v4, (GroupRecord(TO_EX, GROUP, ()),))
    world.report("h1", stranger)  # behind the port of h1
    world.advance(1.0)
    world.restart()
    for dpid in world.switches:
        world.connect(dpid)
    world.settle()
    assert world.applied == 0
    assert world.send("h2") == {"h9": 1, "h1": 1}
    assert world.send("h2", GROUP_V6) == {"h9": 1}
    world.feed(HostGone(near.mac, near.dpid, near.port_no))
    world.feed(HostLearnt(host.mac, host.dpid, host.port_no, (host.v6, GLOBAL_V6)))
    (refused,) = world.core.group_view.group(GROUP)["refused"]
    assert (refused["mac"], refused["rule"]) == ("02:00:00:00:01:01", "(spoofed)")


def test_a_false_report_goes_to_no_router(make_world):
    world = make_world("fattree", OPEN)
    router = world.hosts["h5"]
    world.do("router-port-add", dpid=router.dpid, port_no=router.port_no, family=4)
    for name in ("h2", "h9"):
        world.join(name)
    world.settle()
    outs = len(world.packet_outs)
    claim(world, "h2", TO_IN)
    assert [place for place, _ in world.packet_outs[outs:]] == []
    world.leave("h2")
    assert router.place in [place for place, _ in world.packet_outs[outs:]]


def test_a_port_is_asked_about_by_its_own_hosts_alone(make_world):
    """Two hosts behind one port: the false one of them adds nothing to the port's interest."""
    world = make_world("fattree", MEMBER_ONLY)
    near = world.hosts["h2"]
    report = Report(4, 3, STRANGER, world.hosts["h9"].v4, (GroupRecord(TO_EX, GROUP, ()),))
    world.report("h2", report)
    world.settle()
    assert world.send("h1") == {}
    assert world.core.membership.interest(near.dpid, near.port_no, GROUP) is None
