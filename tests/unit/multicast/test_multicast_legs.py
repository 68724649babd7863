"""Hosts behind link aggregation groups: one copy by whichever leg works, and none of what they send themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from controller.config.policy import LinkAggregation, Policy, Role, Rule
from controller.config.settings import Multicast, Querier, RouterPorts
from controller.config.terms import SwitchPort, parse_prefix
from controller.events import PacketReceived
from controller.multicast.events import PolicyLoaded
from controller.wire.addresses import parse_ip
from controller.wire.encode import encode
from controller.wire.packets import GroupRecord, Query, RecordType, Report
from controller.wire.udp import encode_udp
from topology.events import HostGone, HostLearnt, PortRole, PortRoleChanged

from .conftest import GROUP, GROUP_V6, OPEN, Place, World

ONE_SWITCH = ((1, 10), (1, 11))
TWO_SWITCHES = ((1, 10), (2, 10))
THREE_LEGS = ((1, 10), (2, 10), (2, 11))
SENDS = frozenset({Role.SENDER})
LINK_SCOPE = parse_ip("224.0.0.251")
LINK_SCOPE_V6 = parse_ip("ff02::fb")


def with_legs(*legs: Place, policy: Policy = OPEN) -> Policy:
    ports = tuple(SwitchPort(*leg) for leg in legs)
    return replace(policy, link_aggregations=(LinkAggregation("bond", "static", ports),))


class Bonded:
    """A fabric of two ToRs and two spines in which `h1` is behind several legs; others are as they were.

    `host` stands for the bonded host at whichever leg it was last made to speak by.
    """

    def __init__(self, make_world: Callable[..., World], legs: tuple[Place, ...], **options: Any) -> None:
        self.legs = legs
        self.world = world = make_world("leaf-spine", with_legs(*legs), start=False, **options)
        self.host = world.hosts.pop("h1")
        for dpid, port_no in legs:
            world.switches[dpid].ports.add(port_no)  # type: ignore[union-attr]
        world.connect_all()
        for leg in legs:
            self.up(leg)
        world.feed(HostLearnt(self.host.mac, *legs[0], (self.host.v4, self.host.v6)))
        world.settle()
        world.notices.clear()

    def up(self, leg: Place) -> None:
        self.world.feed(PortRoleChanged(*leg, PortRole.EDGE))

    def down(self, leg: Place) -> None:
        self.world.feed(PortRoleChanged(*leg, PortRole.DOWN))

    def speak_by(self, leg: Place) -> None:
        """Have what the host does from now on come by a leg."""
        self.world.hosts["h1"] = self.host._replace(dpid=leg[0], port_no=leg[1])

    def copies(self, got: Counter[str | Place]) -> Counter[Place]:
        """Return how many copies went out of which leg."""
        found = {host.name: host.place for host in self.world.hosts.values()}
        return Counter(
            {
                place: count
                for place, count in ((found.get(to, to), count) for to, count in got.items())  # type: ignore[call-overload]
                if place in self.legs
            }
        )


@pytest.fixture(params=[ONE_SWITCH, TWO_SWITCHES, THREE_LEGS], ids=["one-switch", "two-switches", "three-legs"])
def bonded(make_world: Callable[..., World], request: pytest.FixtureRequest) -> Bonded:
    return Bonded(make_world, request.param)


@pytest.mark.parametrize("group", [GROUP, GROUP_V6], ids=["v4", "v6"])
def test_a_member_gets_one_copy_by_whichever_leg_works(bonded: Bonded, group: bytes):
    world, left = bonded.world, list(bonded.legs)
    bonded.speak_by(left[-1])
    world.join("h1", group)
    world.settle()
    while left:
        got = bonded.copies(world.send("h5", group))
        assert got.total() == 1
        (leg,) = got
        assert leg in left
        bonded.down(leg)
        left.remove(leg)
        world.settle()
    assert bonded.copies(world.send("h5", group)).total() == 0


def test_a_leg_that_fails_loses_no_membership_and_asks_nobody(bonded: Bonded):
    world = bonded.world
    bonded.speak_by(bonded.legs[0])
    world.join("h1")
    world.settle()
    (leg,) = bonded.copies(world.send("h5"))
    first = len(world.packet_outs)
    bonded.down(leg)
    world.settle()
    assert world.queries(first) == []
    assert world.core.memberships.admitted_count() == 1
    assert bonded.copies(world.send("h5")).total() == 1


def test_a_leg_that_is_back_changes_nothing_for_members(bonded: Bonded):
    world = bonded.world
    bonded.speak_by(bonded.legs[0])
    world.join("h1")
    world.settle()
    (failed,) = bonded.copies(world.send("h5"))
    bonded.down(failed)
    world.settle()
    before = bonded.copies(world.send("h5"))
    bonded.up(failed)
    for _ in world.steps():
        assert bonded.copies(world.send("h5")) == before
    assert bonded.copies(world.send("h5")) == before


def test_groups_spread_over_legs(bonded: Bonded):
    world = bonded.world
    bonded.speak_by(bonded.legs[0])
    groups = [parse_ip(f"239.1.1.{number}") for number in range(1, 41)]
    for group in groups:
        world.join("h1", group)
    world.settle()
    by_leg: Counter[Place] = Counter()
    for group in groups:
        got = bonded.copies(world.send("h5", group))
        assert got.total() == 1
        by_leg += got
    assert set(by_leg) == set(bonded.legs)


def test_all_legs_gone_ends_memberships_and_a_report_by_any_leg_brings_them_back(bonded: Bonded):
    world = bonded.world
    bonded.speak_by(bonded.legs[0])
    world.join("h1")
    world.settle()
    for leg in bonded.legs:
        bonded.down(leg)
    world.settle()
    assert world.core.memberships.admitted_count() == 0
    bonded.up(bonded.legs[-1])
    bonded.speak_by(bonded.legs[-1])
    world.join("h1")
    world.settle()
    assert bonded.copies(world.send("h5")) == {bonded.legs[-1]: 1}


def test_a_leave_by_one_leg_ends_a_membership_reported_by_another(bonded: Bonded):
    world = bonded.world
    bonded.speak_by(bonded.legs[0])
    world.join("h1")
    bonded.speak_by(bonded.legs[-1])
    world.leave("h1")
    world.advance(5.0)
    assert world.core.memberships.admitted_count() == 0
    assert bonded.copies(world.send("h5")).total() == 0


def test_a_sender_is_let_in_by_every_leg_from_its_first_packet_on(bonded: Bonded):
    world = bonded.world
    world.join("h5")
    world.settle()
    bonded.speak_by(bonded.legs[0])
    assert world.send("h1")["h5"] == 1
    world.settle()
    for leg in bonded.legs:
        bonded.speak_by(leg)
        first = len(world.packet_outs)
        assert world.send("h1") == {"h5": 1}
        assert len(world.packet_outs) == first, "a switch had no entry for the sender at another leg"


def test_a_leg_that_is_back_lets_a_sender_in_before_anything_is_done(bonded: Bonded):
    world = bonded.world
    world.join("h5")
    bonded.speak_by(bonded.legs[0])
    world.send("h1")
    world.settle()
    for role in (PortRole.DOWN, PortRole.UNKNOWN):
        world.feed(PortRoleChanged(*bonded.legs[0], role))
        world.settle()
        bonded.speak_by(bonded.legs[0])
        assert world.send("h1") == {"h5": 1}
    bonded.up(bonded.legs[0])
    for _ in world.steps():
        assert world.send("h1") == {"h5": 1}


def test_a_member_that_sends_gets_nothing_of_it_and_others_all(bonded: Bonded):
    world = bonded.world
    bonded.speak_by(bonded.legs[0])
    world.join("h1")
    world.join("h5")
    world.settle()
    for leg in bonded.legs:
        bonded.speak_by(leg)
        for _ in range(2):
            got = world.send("h1")
            assert (bonded.copies(got).total(), got["h5"]) == (0, 1)
            world.settle()
    assert bonded.copies(world.send("h5")).total() == 1


def test_a_sender_is_shown_once_with_what_it_sends_by_all_legs(bonded: Bonded):
    world = bonded.world
    world.join("h5")
    bonded.speak_by(bonded.legs[1])
    world.send("h1")
    world.settle()
    for rate_bps, leg in enumerate(bonded.legs, 1):
        key = next(key for key in world.core.plane.groups[GROUP].senders if (key.dpid, key.port_no) == leg)
        world.core.plane.groups[GROUP].senders[key].rate_bps = 1000.0 * rate_bps
    (shown,) = world.core.group_view.group(GROUP)["senders"]
    assert (shown["dpid"], shown["port_no"]) == bonded.legs[0]
    assert shown["rate_bps"] == sum(leg["rate_bps"] for leg in shown["legs"])
    assert [(leg["dpid"], leg["port_no"], leg["rate_bps"]) for leg in shown["legs"]] == [
        (*leg, 1000 * rate_bps) for rate_bps, leg in enumerate(bonded.legs, 1)
    ]


def test_each_decision_about_a_sender_is_one_line_of_the_audit_log(bonded: Bonded):
    world = bonded.world

    def audits() -> list[tuple[bool, Place]]:
        found = [(audit.decision.admit, (audit.host.dpid, audit.host.port_no)) for audit in world.audits]
        world.audits.clear()
        return found

    world.join("h5")
    audits()
    bonded.speak_by(bonded.legs[-1])
    world.send("h1")
    assert audits() == [(True, bonded.legs[0])]
    denied = replace(world.policy, rules=(Rule("no", (parse_prefix("239.1.2.3"),), SENDS, False, any_host=True),))
    for policy, admit in ((denied, False), (world.policy, True)):
        world.feed(PolicyLoaded(policy))
        world.settle()
        assert audits() == [(admit, bonded.legs[0])]
        verdicts = {sender.admitted for sender in world.core.plane.groups[GROUP].senders.values()}
        assert verdicts == {admit}, "the same by every leg"
    world.advance(1.0)
    world.restart()
    senders = [line for line in audits() if line[1] in bonded.legs]
    assert senders == [(True, bonded.legs[0])]


def test_a_sender_that_is_silent_by_all_legs_is_forgotten_at_all(bonded: Bonded):
    world, host = bonded.world, bonded.world.hosts["h5"]
    world.do("static-member-add", group="239.1.2.3", dpid=host.dpid, port_no=host.port_no)
    bonded.speak_by(bonded.legs[0])
    world.send("h1")
    world.settle()
    assert len(world.core.plane.groups[GROUP].senders) == len(bonded.legs)
    timeout_s = world.policy.multicast.sender_timeout_s
    for _ in range(4):
        bonded.speak_by(bonded.legs[-1])
        world.send("h1")
        world.advance(timeout_s / 2)
    assert len(world.core.plane.groups[GROUP].senders) == len(bonded.legs)
    world.advance(2 * timeout_s)
    assert not world.core.plane.groups[GROUP].senders


@pytest.mark.parametrize("group", [LINK_SCOPE, LINK_SCOPE_V6], ids=["v4", "v6"])
def test_link_scope_groups_are_flooded_once_and_not_back(bonded: Bonded, group: bytes):
    world = bonded.world
    assert bonded.copies(world.send("h5", group)).total() == 1
    for leg in bonded.legs:
        bonded.speak_by(leg)
        got = world.send("h1", group)
        assert bonded.copies(got).total() == 0
        assert (got["h5"], got["h2"]) == (1, 1)


def test_link_scope_groups_with_members_reach_them_once_and_not_back(bonded: Bonded):
    world = bonded.world
    bonded.speak_by(bonded.legs[0])
    for name in ("h1", "h5"):
        world.join(name, LINK_SCOPE_V6)
    world.settle()
    assert bonded.copies(world.send("h6", LINK_SCOPE_V6)).total() == 1
    for leg in bonded.legs:
        bonded.speak_by(leg)
        got = world.send("h1", LINK_SCOPE_V6)
        assert (bonded.copies(got).total(), got["h5"]) == (0, 1)


def test_what_floods_goes_by_another_leg_when_one_fails(bonded: Bonded):
    world, left = bonded.world, list(bonded.legs)
    while left:
        (leg,) = bonded.copies(world.send("h5", LINK_SCOPE))
        bonded.down(leg)
        left.remove(leg)
        world.settle()
    assert bonded.copies(world.send("h5", LINK_SCOPE)).total() == 0


def test_hosts_are_asked_by_one_leg(bonded: Bonded):
    world = bonded.world
    first = len(world.packet_outs)
    world.advance(130.0)
    asked = Counter((place, query.family) for place, query in world.queries(first) if place in bonded.legs)
    assert {family for _, family in asked} == {4, 6}
    assert len({place for place, _ in asked}) == 1


def test_a_host_that_is_announced_at_another_leg_has_not_moved(bonded: Bonded):
    world, host = bonded.world, bonded.host
    bonded.speak_by(bonded.legs[0])
    world.join("h1")
    world.settle()
    world.feed(HostLearnt(host.mac, *bonded.legs[-1], (host.v4, host.v6)))
    world.settle()
    assert world.core.memberships.admitted_count() == 1
    bonded.speak_by(bonded.legs[0])
    world.join("h1", GROUP_V6)
    world.send("h1", LINK_SCOPE)
    assert world.core.memberships.admitted_count() == 2
    assert not world.core.counters["report-elsewhere"]


def test_another_host_is_not_believed_to_be_the_one_behind_the_legs(bonded: Bonded):
    world, host = bonded.world, bonded.host
    record = GroupRecord(RecordType.CHANGE_TO_EXCLUDE, GROUP, ())
    world.report("h2", Report(4, 3, host.mac, host.v4, (record,)))
    world.join("h5")
    world.settle()
    assert world.core.counters["report-elsewhere"] == 1
    got = world.inject(world.hosts["h2"].place, encode_udp(host.mac, host.v4, GROUP, b"false"))
    assert got["h5"] == 0


def test_a_switch_that_is_gone_leaves_its_leg_to_the_others(make_world: Callable[..., World]):
    bonded = Bonded(make_world, TWO_SWITCHES)
    world = bonded.world
    bonded.speak_by((2, 10))
    groups = [parse_ip(f"239.1.1.{number}") for number in range(1, 9)]
    for group in groups:
        world.join("h1", group)
    world.settle()
    world.hosts.pop("h1")
    world.disconnect(1)
    world.feed(HostLearnt(bonded.host.mac, 2, 10, (bonded.host.v4, bonded.host.v6)))
    world.settle()
    for group in groups:
        assert bonded.copies(world.send("h5", group)) == {(2, 10): 1}
    assert world.core.memberships.admitted_count() == len(groups)


def test_a_static_member_is_given_its_group_by_one_leg(bonded: Bonded):
    world = bonded.world
    dpid, port_no = bonded.legs[-1]
    world.do("static-member-add", group="239.7.7.7", dpid=dpid, port_no=port_no)
    world.settle()
    (leg,) = bonded.copies(world.send("h5", parse_ip("239.7.7.7")))
    bonded.down(leg)
    world.settle()
    assert bonded.copies(world.send("h5", parse_ip("239.7.7.7"))).total() == 1


def test_a_router_behind_legs_is_refused_and_told_once(bonded: Bonded):
    world, host = bonded.world, bonded.host
    query = encode(Query(4, 3, host.mac, host.v4, None, (), 10.0, False, 2, 125.0))
    for _ in range(2):
        world.feed(PacketReceived(*bonded.legs[0], query))
    assert world.core.counters["router-at-aggregation"] == 2
    assert [notice.kind for notice in world.notices] == ["router-at-aggregation"]


def test_a_policy_that_makes_a_group_of_ports_and_one_that_ends_it(make_world: Callable[..., World]):
    world = make_world("leaf-spine", OPEN)
    host = world.hosts["h1"]
    other = world.hosts["h3"].place
    world.join("h1")
    world.settle()
    assert world.send("h5")["h1"] == 1
    world.feed(HostGone(world.hosts.pop("h3").mac, *other))
    world.feed(PolicyLoaded(with_legs(host.place, other)))
    world.join("h1")
    world.settle()
    got = world.send("h5")
    assert got["h1"] + got[other] == 1
    world.feed(PolicyLoaded(OPEN))
    world.join("h1")
    world.settle()
    assert world.send("h5") == {"h1": 1}


def test_the_document_of_a_port_tells_of_all_legs_and_changes_with_any(bonded: Bonded):
    world, sections = bonded.world, bonded.world.core.sections
    places = [f"{dpid}:{port_no}" for dpid, port_no in bonded.legs]

    told = sections.ports.changes(0, 1000)
    for place in places:
        group = told["put"][place]["link_aggregation"]
        assert (group["name"], group["mode"]) == ("bond", "static")
        assert [(leg["dpid"], leg["port_no"], leg["works"]) for leg in group["legs"]] == [
            (*leg, True) for leg in bonded.legs
        ]
    host = world.hosts["h5"]
    assert told["put"][f"{host.dpid}:{host.port_no}"]["link_aggregation"] is None
    bonded.down(bonded.legs[0])
    news = sections.ports.changes(told["version"], 1000)["put"]
    for place in places:
        first = news[place]["link_aggregation"]["legs"][0]
        assert first["works"] is False


def test_after_a_restart_members_have_their_leg_and_nothing_is_sent_anew(bonded: Bonded):
    world = bonded.world
    bonded.speak_by(bonded.legs[0])
    world.join("h1")
    world.send("h5")
    world.settle()
    world.advance(1.0)
    before = bonded.copies(world.send("h5"))
    world.restart()
    world.connect_all()
    for leg in bonded.legs:
        bonded.up(leg)
    world.settle()
    assert bonded.copies(world.send("h5")) == before
    assert world.core.memberships.admitted_count() == 1


def test_a_queriers_question_about_a_group_goes_by_the_leg_of_that_group(bonded: Bonded):
    world = bonded.world
    routed = Multicast(querier=Querier(accept_others=True), router_ports=RouterPorts(learn=True))
    world.feed(PolicyLoaded(with_legs(*bonded.legs, policy=replace(OPEN, multicast=routed))))
    bonded.speak_by(bonded.legs[0])
    router = world.hosts["h5"]
    groups = [parse_ip(f"239.1.1.{number}") for number in range(1, 6)]

    def ask(group: bytes | None) -> None:
        query = Query(4, 3, router.mac, router.v4, group, (), 1.0, False, 2, 125.0)
        world.feed(PacketReceived(*router.place, encode(query)))

    ask(None)
    for group in groups:
        world.join("h1", group)
    world.settle()
    for group in groups:
        (leg,) = bonded.copies(world.send("h6", group))
        first = len(world.packet_outs)
        ask(group)
        assert [place for place, query in world.queries(first) if query.group == group] == [leg]
