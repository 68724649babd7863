"""Hosts behind link aggregation groups: known at their group, announced at a leg that works, and never moved."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from controller.config.policy import LinkAggregation
from controller.config.terms import SwitchPort
from controller.discovery.settings import DiscoveryChanged, DiscoverySettings
from controller.wire.frame import decode
from controller.wire.packets import Arp
from topology.events import HostGone, HostLearnt, PortRole, PortRoleChanged

from .conftest import End, World

MACS = tuple(b"\x02\0\0\0\0" + bytes((number,)) for number in range(1, 17))
A, B = MACS[0], MACS[-1]
IP_A, IP_B = b"\x0a\0\0\x0a", b"\x0a\0\0\x0b"
LEGS = ((1, 3), (2, 3))
SAME_SWITCH = ((1, 3), (1, 4))


def settings(*legs: End) -> DiscoverySettings:
    ports = tuple(SwitchPort(*leg) for leg in legs)
    return DiscoverySettings(link_aggregations=(LinkAggregation("bond", "static", ports),) if legs else ())


def started(make_world: Callable[..., World], *legs: End) -> World:
    world = make_world(settings(*legs))
    world.cable((1, 1), (2, 1))
    for dpid in (1, 2):
        world.connect(dpid)
    world.run(1.0)
    del world.events[:], world.notices[:], world.sent[:]
    return world


@pytest.fixture(params=[LEGS, SAME_SWITCH], ids=["two-switches", "one-switch"])
def legs(request: pytest.FixtureRequest) -> tuple[End, End]:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def world(make_world: Callable[..., World], legs: tuple[End, End]) -> World:
    return started(make_world, *legs)


def place(world: World, mac: bytes) -> End | None:
    host = world.fabric.host(mac)
    return None if host is None else (host.dpid, host.port_no)


def test_frames_by_any_leg_are_of_one_host_at_one_place(world: World, legs: tuple[End, End]):
    (learnt,) = world.say(A, IP_A, legs[1])
    assert isinstance(learnt, HostLearnt)
    where = place(world, A)
    assert where in legs
    for leg in (*legs, *legs):
        assert world.say(A, IP_A, leg) == []
    world.run(5.0)
    assert place(world, A) == where
    assert world.notices == []


def test_hosts_behind_one_group_spread_over_its_legs(world: World, legs: tuple[End, End]):
    for mac in MACS:
        world.say(mac, b"\x0a\0\1" + mac[-1:], legs[0])
    assert {place(world, mac) for mac in MACS} == set(legs)


def test_hosts_of_a_leg_that_fails_are_at_another_at_once_and_stay(world: World, legs: tuple[End, End]):
    world.say(A, IP_A, legs[0])
    failed = place(world, A)
    (other,) = set(legs) - {failed}
    events = world.port(failed, up=False)
    assert events == [PortRoleChanged(*failed, PortRole.DOWN), HostLearnt(A, *other, (IP_A,))]
    assert world.port(failed, up=True) == [PortRoleChanged(*failed, PortRole.EDGE)]
    world.run(5.0)
    assert place(world, A) == other


def test_hosts_go_with_the_last_leg_and_come_back_with_the_first(world: World, legs: tuple[End, End]):
    world.host(A, legs[1], IP_A)
    world.say(A, IP_A)
    world.port(legs[0], up=False)
    events = world.port(legs[1], up=False)
    assert HostGone(A, *legs[1]) in events
    assert place(world, A) is None
    world.port(legs[1], up=True)
    world.say(A, IP_A)
    assert place(world, A) == legs[1]


def test_a_leg_leads_to_hosts_as_soon_as_it_is_up(world: World, legs: tuple[End, End]):
    world.port(legs[0], up=False)
    assert world.port(legs[0], up=True) == [PortRoleChanged(*legs[0], PortRole.EDGE)]
    world.port((2, 2), up=False)
    assert world.port((2, 2), up=True) == [PortRoleChanged(2, 2, PortRole.UNKNOWN)]


def test_another_host_with_the_same_address_is_looked_into_by_asking_at_one_leg(world: World, legs: tuple[End, End]):
    world.host(A, legs[0], IP_A)
    world.say(A, IP_A)
    del world.sent[:]
    world.say(B, IP_A, (2, 2))
    asked = [packet for packet in world.sent if isinstance(decode(packet.data), Arp)]
    assert [(packet.dpid, *packet.ports) in legs for packet in asked] == [True]


def test_a_host_that_moves_into_a_group_is_asked_for_at_its_old_place(world: World, legs: tuple[End, End]):
    world.say(A, IP_A, (2, 2))
    world.say(A, IP_A, legs[0])
    world.run(2.0)
    assert place(world, A) in legs


def test_a_host_that_answers_by_another_leg_keeps_its_addresses(world: World, legs: tuple[End, End]):
    world.say(A, IP_A, legs[0])
    asked_at = place(world, A)
    (other,) = set(legs) - {asked_at}
    for _ in range(40):
        world.run(10.0)
        for packet in world.sent:
            asked = decode(packet.data)
            if isinstance(asked, Arp) and asked.target_ip == IP_A:
                assert (packet.dpid, *packet.ports) in legs
                world.say(A, IP_A, other)
        del world.sent[:]
    assert place(world, A) == asked_at


def test_a_group_that_lacks_legs_is_told_once_it_was_whole(make_world: Callable[..., World], legs: tuple[End, End]):
    world = make_world(settings(*legs))
    world.cable((1, 1), (2, 1))
    for dpid in (1, 2):
        world.connect(dpid)
    world.run(1.0)
    assert not [notice for notice in world.notices if notice.kind.startswith("aggregation")]
    world.port(legs[0], up=False)
    world.port(legs[1], up=False)
    world.port(legs[1], up=True)
    world.port(legs[0], up=True)
    told = [(notice.kind, notice.text[:6]) for notice in world.notices]
    degraded = "aggregation-degraded"
    assert told == [(degraded, "1 of 2"), (degraded, "0 of 2"), (degraded, "1 of 2"), ("aggregation-whole", "All le")]


def test_what_a_group_lacked_is_over_when_the_policy_has_another(world: World, legs: tuple[End, End]):
    world.port(legs[0], up=False)
    world.feed(DiscoveryChanged(settings()))
    assert [notice.kind for notice in world.notices] == ["aggregation-degraded", "aggregation-whole"]


def test_a_quiet_host_behind_legs_ages(world: World, legs: tuple[End, End]):
    world.say(A, IP_A, legs[0])
    world.port(legs[0], up=False)
    world.run(310.0)
    assert place(world, A) is None


def test_a_leg_that_leads_to_a_switch_is_none_and_told(make_world: Callable[..., World]):
    world = make_world(settings(*LEGS))
    world.cable((1, 1), (2, 1))
    world.cable((1, 3), (2, 4))
    for dpid in (1, 2):
        world.connect(dpid)
    world.run(1.0)
    assert world.fabric.role(1, 3) is PortRole.TRUNK
    (told,) = [notice for notice in world.notices if notice.kind == "aggregation-leg-trunk"]
    assert "1:3" in told.text
    world.say(A, IP_A, (2, 3))
    assert place(world, A) == (2, 3)


def test_a_switch_that_is_gone_leaves_hosts_at_the_other_leg(make_world: Callable[..., World]):
    world = started(make_world, *LEGS)
    for mac in MACS:
        world.say(mac, b"\x0a\0\1" + mac[-1:], LEGS[0])
    world.dead.add(1)
    world.cut |= {(1, 1), (2, 1)}
    world.disconnect(1)
    world.run(15.0)
    assert {place(world, mac) for mac in MACS} == {LEGS[1]}
    world.dead.discard(1)
    world.cut.clear()
    world.connect(1)
    world.run(3.0)
    assert {place(world, mac) for mac in MACS} == {LEGS[1]}


def test_hosts_of_a_journal_are_announced_when_any_leg_works(make_world: Callable[..., World]):
    world = started(make_world, *LEGS)
    other = make_world(settings(*LEGS))
    world.say(A, IP_A, LEGS[0])
    home = world.core._hosts.hosts[A].end
    other.connect(2)
    other.run(1.0)
    other.perform(other.core.restore([HostLearnt(A, *home, (IP_A,))], other.now))
    assert place(other, A) == LEGS[1]


def test_another_policy_makes_a_group_and_ends_it(make_world: Callable[..., World]):
    world = started(make_world)
    world.say(A, IP_A, LEGS[0])
    world.say(B, IP_B, (2, 2))
    world.feed(DiscoveryChanged(settings(*LEGS)))
    assert (place(world, A), place(world, B)) == (None, (2, 2))
    world.say(A, IP_A, LEGS[1])
    assert place(world, A) in LEGS
    world.feed(DiscoveryChanged(settings()))
    assert (place(world, A), place(world, B)) == (None, (2, 2))
    world.say(A, IP_A, LEGS[1])
    assert place(world, A) == LEGS[1]


# Hosts that use one leg at a time


def one_at_a_time(*legs: End) -> DiscoverySettings:
    ports = tuple(SwitchPort(*leg) for leg in legs)
    return DiscoverySettings(link_aggregations=(LinkAggregation("bond", "active-backup", ports),))


@pytest.fixture
def backed(make_world: Callable[..., World], legs: tuple[End, End]) -> World:
    """A host of which a leg works at a time; A is at the first."""
    world = make_world(one_at_a_time(*legs))
    world.cable((1, 1), (2, 1))
    for dpid in (1, 2):
        world.connect(dpid)
    for leg in legs:
        world.port(leg, True)
    world.run(1.0)
    world.say(A, IP_A, legs[0])
    world.run(1.0)
    del world.events[:], world.notices[:], world.sent[:]
    return world


def active(world: World, legs: tuple[End, ...]) -> list[End]:
    return [leg for leg in legs if world.fabric.role(*leg) is PortRole.EDGE]


def test_the_first_leg_that_comes_up_is_the_active_one(backed: World, legs: tuple[End, End]):
    assert active(backed, legs) == [legs[0]]
    assert place(backed, A) == legs[0]
    assert backed.notices == []


def test_the_leg_is_active_by_which_the_host_speaks(backed: World, legs: tuple[End, End]):
    backed.say(A, IP_A, legs[1])
    assert active(backed, legs) == [legs[1]]
    assert place(backed, A) == legs[1]
    assert not [event for event in backed.events if isinstance(event, HostGone)], "it is the same host"
    assert [notice.kind for notice in backed.notices] == ["aggregation-leg-active"]
    backed.run(5.0)
    assert active(backed, legs) == [legs[1]]


def test_a_lost_leg_hands_over_to_the_other_before_it_is_gone(backed: World, legs: tuple[End, End]):
    backed.host(A, legs[1], IP_A)
    events = backed.port(legs[0], False)
    roles = [event for event in events if isinstance(event, PortRoleChanged)]
    assert roles[0] == PortRoleChanged(*legs[1], PortRole.EDGE)
    assert roles[-1] == PortRoleChanged(*legs[0], PortRole.DOWN)
    assert not [event for event in events if isinstance(event, HostGone)]
    assert place(backed, A) == legs[1]
    backed.port(legs[0], True)
    backed.run(2.0)
    assert active(backed, legs) == [legs[1]], "a leg that is back changes nothing"


def test_a_switch_that_is_gone_hands_over_to_another(make_world: Callable[..., World]):
    world = make_world(one_at_a_time(*LEGS))
    world.cable((1, 1), (2, 1))
    for dpid in (1, 2):
        world.connect(dpid)
    for leg in LEGS:
        world.port(leg, True)
    world.run(1.0)
    world.say(A, IP_A, LEGS[0])
    world.host(A, LEGS[1], IP_A)
    world.disconnect(1)
    world.run(30.0)
    assert active(world, LEGS) == [LEGS[1]]
    assert place(world, A) == LEGS[1]


def test_a_host_that_flaps_between_legs_is_followed_five_times_a_second(backed: World, legs: tuple[End, End]):
    for turn in range(200):
        backed.say(A, IP_A, legs[turn % 2])
        backed.run(0.01)
    changes = [event for event in backed.events if isinstance(event, PortRoleChanged)]
    assert 2 <= len(changes) <= 2 * 2.0 / 0.2 + 2
    assert len(active(backed, legs)) == 1


def test_questions_reach_the_host_whichever_leg_it_uses(backed: World, legs: tuple[End, End]):
    """It moved to the other leg without a word; what asks whether it is there finds it."""
    backed.host(A, legs[1], IP_A)
    backed.run(330.0)
    assert place(backed, A) == legs[1]
    assert active(backed, legs) == [legs[1]]


def test_a_backup_leg_that_is_down_is_told_of(backed: World, legs: tuple[End, End]):
    backed.port(legs[1], False)
    (notice,) = backed.notices
    assert notice.kind == "aggregation-degraded" and "1 of 2 legs" in notice.text
    backed.port(legs[1], True)
    backed.run(1.0)
    assert backed.notices[-1].kind == "aggregation-whole"


def test_another_mode_is_gone_by_at_once(backed: World, legs: tuple[End, End]):
    backed.feed(DiscoveryChanged(settings(*legs)))
    backed.run(0.5)
    assert active(backed, legs) == list(legs)
    backed.feed(DiscoveryChanged(one_at_a_time(*legs)))
    backed.run(0.5)
    assert len(active(backed, legs)) == 1


# Legs in two fabrics

MODES = ["static", "active-backup"]


def apart(make_world: Callable[..., World], mode: str) -> World:
    """A host with a leg at each of two switches that a cable joins, and another at one of them alone."""
    ports = tuple(SwitchPort(*leg) for leg in LEGS)
    world = make_world(DiscoverySettings(link_aggregations=(LinkAggregation("bond", mode, ports),)))
    world.cable((1, 1), (2, 1))
    for dpid in (1, 2):
        world.connect(dpid)
    for leg in (*LEGS, (2, 5)):
        world.port(leg, True)
    world.run(1.0)
    world.say(A, IP_A, LEGS[0])
    world.say(B, IP_B, (2, 5))
    world.run(1.0)
    del world.events[:], world.notices[:], world.sent[:]
    return world


def refused(world: World) -> list[str]:
    return [notice.text for notice in world.notices if notice.kind == "aggregation-leg-elsewhere"]


@pytest.mark.parametrize("mode", MODES)
def test_a_leg_in_another_fabric_is_refused_with_its_place_until_a_link_joins_them(
    make_world: Callable[..., World], mode: str
):
    world = apart(make_world, mode)
    world.port((1, 1), False)
    world.run(1.0)
    assert refused(world) == [], "a link that blinks refuses nobody"
    world.run(5.0)
    (text,) = refused(world)
    assert text.startswith("Port 2:3 is in another fabric than port 1:3, and both are legs of bond: ")
    assert world.core.counters["aggregation-leg-elsewhere"] == 1
    assert active(world, LEGS) == [LEGS[0]]
    world.say(A, IP_A, LEGS[1])
    assert active(world, LEGS) == [LEGS[0]]
    assert place(world, A) == LEGS[0]
    assert place(world, B) == (2, 5), "nobody else is disturbed"
    world.port((1, 1), True)
    world.run(6.0)
    assert LEGS[0] in active(world, LEGS)
    assert len(active(world, LEGS)) == (2 if mode == "static" else 1)


@pytest.mark.parametrize("mode", MODES)
def test_a_refused_leg_is_taken_at_once_where_the_others_are_lost(make_world: Callable[..., World], mode: str):
    world = apart(make_world, mode)
    world.port((1, 1), False)
    world.run(6.0)
    world.host(A, LEGS[1], IP_A)
    world.port(LEGS[0], False)
    world.say(A, IP_A, LEGS[1])
    assert active(world, LEGS) == [LEGS[1]]
    assert place(world, A) == LEGS[1]
    world.port(LEGS[0], True)
    world.run(6.0)
    assert len(active(world, LEGS)) == 1


def test_a_fabric_that_comes_up_refuses_no_leg(make_world: Callable[..., World]):
    world = apart(make_world, "static")
    world.run(10.0)
    assert refused(world) == [] and active(world, LEGS) == list(LEGS)


def test_a_policy_without_the_group_refuses_no_port(make_world: Callable[..., World]):
    world = apart(make_world, "static")
    world.port((1, 1), False)
    world.run(6.0)
    world.feed(DiscoveryChanged(settings()))
    world.run(1.0)
    assert active(world, LEGS) == list(LEGS)


def test_a_policy_that_names_legs_of_two_fabrics_refuses_one_at_once(make_world: Callable[..., World]):
    world = apart(make_world, "static")
    world.feed(DiscoveryChanged(settings()))
    world.port((1, 1), False)
    world.run(6.0)
    assert (refused(world), active(world, LEGS)) == ([], list(LEGS))
    world.feed(DiscoveryChanged(settings(*LEGS)))
    assert (len(refused(world)), active(world, LEGS)) == (1, [LEGS[0]])


def test_a_leg_that_is_down_is_not_told_to_be_in_another_fabric(make_world: Callable[..., World]):
    world = apart(make_world, "static")
    world.port(LEGS[1], False)
    world.port((1, 1), False)
    world.run(6.0)
    assert refused(world) == []
    world.port(LEGS[1], True)
    world.run(6.0)
    assert len(refused(world)) == 1


@pytest.mark.parametrize("mode", MODES)
def test_a_refused_leg_that_comes_back_after_the_others_were_lost_is_taken_at_once(
    make_world: Callable[..., World], mode: str
):
    world = apart(make_world, mode)
    world.port((1, 1), False)
    world.run(6.0)
    for leg in LEGS[::-1]:
        world.port(leg, False)
    world.port(LEGS[1], True)
    world.host(A, LEGS[1], IP_A)
    world.say(A, IP_A, LEGS[1])
    assert (active(world, LEGS), place(world, A)) == ([LEGS[1]], LEGS[1])
