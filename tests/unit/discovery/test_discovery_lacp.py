"""LACP at the legs of link aggregation groups: ends that agree, and that go silent, differ or say nonsense."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from controller.config.policy import LinkAggregation
from controller.config.terms import SwitchPort
from controller.discovery.lacp import RETURNS_AT_ONCE, RETURNS_PER_S, SENT_AT_ONCE, SHORT_TIMEOUT_S, Lacp
from controller.discovery.settings import DiscoveryChanged, DiscoverySettings
from controller.effects import SendPacket
from controller.events import PacketReceived
from controller.kernel.ports import End
from controller.rules.model import OFPP_CONTROLLER, Output
from controller.wire.frame import decode
from controller.wire.lacp import (
    ACTIVITY,
    AGGREGATION,
    COLLECTING,
    DEFAULTED,
    DISTRIBUTING,
    EXPIRED,
    SYNCHRONIZATION,
    TIMEOUT,
    encode_lacpdu,
)
from controller.wire.packets import Lacpdu, LacpEnd
from topology.events import HostLearnt, PortRole

from .conftest import World

LEGS = ((1, 3), (2, 3))
HOST, OTHER = bytes.fromhex("020000000a00"), bytes.fromhex("020000000b00")
MAC, ADDRESS = b"\x02\0\0\0\0\x0a", b"\x0a\0\0\x0a"
UP = ACTIVITY | AGGREGATION | SYNCHRONIZATION | COLLECTING | DISTRIBUTING
NOBODY = LacpEnd(0, bytes(6), 0, 0, 0, 0)


def group(name: str = "bond", *legs: End) -> LinkAggregation:
    return LinkAggregation(name, "lacp", tuple(SwitchPort(*leg) for leg in legs or LEGS))


@dataclass
class Bench:
    """The machines alone; `sent` has what they send, `works` what they say of legs."""

    now: float = 100.0
    sent: list[tuple[End, Lacpdu]] = field(default_factory=list)
    works: dict[End, bool] = field(default_factory=dict)
    due: dict[End, float] = field(default_factory=dict)
    counts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.lacp = Lacp((group(),), self)
        for end in LEGS:
            self.lacp.up(end, self.now)

    def send_lacpdu(self, end: End, frame: bytes) -> None:
        pdu = decode(frame)
        assert isinstance(pdu, Lacpdu)
        self.sent.append((end, pdu))

    def wake_lacp(self, end: End, due_s: float) -> None:
        self.due[end] = due_s

    def leg_works(self, end: End, works: bool, now: float) -> None:
        self.works[end] = works

    def counted(self, kind: str, end: End, does: str, now: float) -> None:
        self.counts.append(kind)

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while (soonest := min(self.due.values())) <= until:
            self.now = max(self.now, soonest)
            for end in [end for end, due_s in self.due.items() if due_s <= self.now]:
                self.due[end] = float("inf")
                self.lacp.due(end, self.now)
        self.now = until

    def last(self, end: End) -> LacpEnd:
        return next(pdu.actor for at, pdu in reversed(self.sent) if at == end)

    def say(
        self, end: End, state: int = UP, system: bytes = HOST, key: int = 9, known: LacpEnd | None = None
    ) -> None:
        """Have the other end of a leg speak; `known` is what it knows of us, what was sent last where it is None."""
        if known is None:
            known = next((pdu.actor for at, pdu in reversed(self.sent) if at == end), NOBODY)
        actor = LacpEnd(0xFFFF, system, key, 0xFF, LEGS.index(end) + 1, state)
        self.lacp.received(end, Lacpdu(system, actor, known), self.now)

    def agree(self, end: End) -> None:
        self.say(end, ACTIVITY | AGGREGATION)
        self.say(end)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_two_ends_that_speak_agree_and_each_leg_works(bench: Bench):
    for end in LEGS:
        bench.say(end, ACTIVITY | AGGREGATION)
        assert bench.works == dict.fromkeys(LEGS[: LEGS.index(end)], True)
        assert bench.last(end).state & SYNCHRONIZATION
        bench.say(end)
        assert bench.works[end]
        assert bench.last(end).state & UP == UP


def test_a_host_sees_one_system_at_all_legs_and_another_port_at_each(bench: Bench):
    for end in LEGS:
        bench.agree(end)
    ends = [bench.last(end) for end in LEGS]
    assert len({(end.system_priority, end.system, end.key) for end in ends}) == 1
    assert [end.port for end in ends] == [1, 2]


def test_groups_are_systems_of_their_own():
    lacp = Lacp((group("one", (1, 1), (1, 2)), group("two", (1, 3), (1, 4))), Bench())
    assert len({place.system for place in lacp.places.values()}) == 2
    assert all(place.system[0] & 3 == 2 for place in lacp.places.values())


def test_a_static_group_speaks_no_lacp():
    ports = (SwitchPort(1, 3), SwitchPort(1, 4))
    assert not Lacp((LinkAggregation("bond", "static", ports),), Bench()).places


def test_an_end_that_knows_us_otherwise_is_not_in_step(bench: Bench):
    bench.say(LEGS[0], known=NOBODY)
    assert not bench.works.get(LEGS[0])
    bench.say(LEGS[0], known=bench.last(LEGS[0])._replace(port=7))
    assert not bench.works.get(LEGS[0])
    bench.say(LEGS[0])
    assert bench.works[LEGS[0]]


def test_an_end_out_of_sync_takes_its_leg_out(bench: Bench):
    bench.agree(LEGS[0])
    bench.say(LEGS[0], ACTIVITY | AGGREGATION)
    assert not bench.works[LEGS[0]]
    assert not bench.last(LEGS[0]).state & (COLLECTING | DISTRIBUTING)


def test_an_end_that_does_not_aggregate_is_no_leg(bench: Bench):
    bench.say(LEGS[0], ACTIVITY | SYNCHRONIZATION)
    bench.say(LEGS[0], ACTIVITY | SYNCHRONIZATION)
    assert not bench.works.get(LEGS[0])


def test_another_system_at_a_leg_is_refused_and_told(bench: Bench):
    bench.agree(LEGS[0])
    bench.say(LEGS[1], ACTIVITY | AGGREGATION, system=OTHER)
    bench.say(LEGS[1], system=OTHER)
    assert (bench.works[LEGS[0]], bench.works.get(LEGS[1], False)) == (True, False)
    assert not bench.last(LEGS[1]).state & SYNCHRONIZATION
    assert "lacp-partner-differs" in bench.counts
    bench.say(LEGS[1], key=10)
    assert not bench.works.get(LEGS[1], False)
    bench.agree(LEGS[1])
    assert bench.works == dict.fromkeys(LEGS, True)


def test_a_leg_is_taken_by_another_system_once_the_first_is_gone(bench: Bench):
    bench.agree(LEGS[0])
    bench.say(LEGS[1], ACTIVITY | AGGREGATION, system=OTHER)
    for _ in range(8):
        bench.run(1.0)
        bench.say(LEGS[1], system=OTHER)
    assert bench.works == {LEGS[0]: False, LEGS[1]: True}


def test_silence_ends_a_leg_after_three_seconds_and_one_word_brings_it_back(bench: Bench):
    bench.agree(LEGS[0])
    bench.run(SHORT_TIMEOUT_S - 0.1)
    assert bench.works[LEGS[0]]
    bench.run(0.2)
    assert not bench.works[LEGS[0]]
    assert bench.last(LEGS[0]).state & EXPIRED
    assert "lacp-expired" in bench.counts
    bench.run(SHORT_TIMEOUT_S + 30.0)
    assert bench.last(LEGS[0]).state & DEFAULTED
    bench.agree(LEGS[0])
    assert bench.works[LEGS[0]]


def test_a_partner_is_told_each_second_where_it_wants_that_and_else_every_thirty(bench: Bench):
    for state, count in ((UP | TIMEOUT, 10), (UP, 0)):
        bench.agree(LEGS[0])
        bench.run(1.0)
        bench.say(LEGS[0], state)
        first = len(bench.sent)
        for _ in range(10):
            bench.run(1.0)
            bench.say(LEGS[0], state)
        assert abs(len([1 for end, _ in bench.sent[first:] if end == LEGS[0]]) - count) <= 1


def test_nobody_makes_it_send_more_than_three_in_a_second(bench: Bench):
    bench.agree(LEGS[0])
    bench.run(5.0)
    first = len(bench.sent)
    for _ in range(200):
        bench.run(0.01)
        bench.say(LEGS[0], known=NOBODY)
    assert len([1 for end, _ in bench.sent[first:] if end == LEGS[0]]) <= 3 * SENT_AT_ONCE


def test_a_controller_that_was_away_goes_on_without_a_word_out_of_step():
    before = Bench()
    for end in LEGS:
        before.agree(end)
    known = {end: before.last(end) for end in LEGS}
    after = Bench()
    after.run(0.9)
    assert after.sent == []
    for end in LEGS:
        after.say(end, known=known[end])
    after.run(1.0)
    assert after.works == dict.fromkeys(LEGS, True)
    assert all(pdu.actor.state & UP == UP for _, pdu in after.sent)


def test_what_it_sent_itself_is_no_other_end(bench: Bench):
    bench.run(2.0)
    for end, pdu in list(bench.sent):
        bench.lacp.received(end, pdu, bench.now)
    assert not any(bench.works.values())
    assert "lacp-returned" in bench.counts


def test_a_port_that_is_no_leg_is_not_heard(bench: Bench):
    bench.lacp.received((9, 9), Lacpdu(HOST, NOBODY, NOBODY), bench.now)
    assert bench.sent == []


# In discovery


class Bonded:
    """A host behind LACP legs of a discovery world, which answers as 802.1AX has it, by a few lines of its own."""

    def __init__(self, world: World, timeout: int = 0) -> None:
        self.world = world
        self.timeout = timeout
        self.heard: dict[End, Lacpdu] = {}
        self.state: dict[End, int] = {}
        self.is_deaf = False
        self._take(0)

    def _take(self, first: int) -> Iterator[tuple[End, Lacpdu]]:
        for packet in self.world.sent[first:]:
            end, pdu = (packet.dpid, packet.ports[0]), decode(packet.data)
            if isinstance(pdu, Lacpdu):
                yield end, pdu

    def speak(self, end: End) -> None:
        """Tell the other end of itself, and answer until both are in step."""
        for _ in range(4):
            known = self.heard[end].actor if end in self.heard else NOBODY
            state = ACTIVITY | AGGREGATION | self.timeout | (SYNCHRONIZATION if known is not NOBODY else 0)
            if known.state & SYNCHRONIZATION:
                state |= COLLECTING | DISTRIBUTING
            first = len(self.world.sent)
            actor = LacpEnd(0xFFFF, HOST, 9, 0xFF, LEGS.index(end) + 1, state)
            self.world.feed(PacketReceived(*end, encode_lacpdu(Lacpdu(HOST, actor, known))))
            self.heard.update(dict(self._take(first)))

    def live(self, seconds: float, *ends: End) -> None:
        """Let time pass in which the host speaks by legs once a second."""
        for _ in range(round(seconds)):
            self.world.run(1.0)
            for end in ends or LEGS:
                self.speak(end)


def started(make_world: Callable[..., World], *groups: LinkAggregation) -> World:
    world = make_world(DiscoverySettings(link_aggregations=groups))
    world.cable((1, 1), (2, 1))
    for dpid in (1, 2):
        world.connect(dpid)
    world.run(1.0)
    return world


def roles(world: World) -> list[PortRole]:
    return [world.fabric.role(*leg) for leg in LEGS]


def punted(world: World, end: End) -> bool:
    rules = world.rules[end[0]].values()
    return any(
        rule.key.match.in_port == end[1]
        and rule.key.match.eth_type == 0x8809
        and rule.actions == (Output(OFPP_CONTROLLER),)
        for rule in rules
    )


def test_legs_lead_to_hosts_while_both_ends_are_in_step(make_world: Callable[..., World]):
    world = started(make_world, group())
    bonded = Bonded(world)
    assert all(punted(world, leg) for leg in LEGS)
    assert roles(world) == [PortRole.UNKNOWN] * 2
    bonded.live(1.0)
    assert roles(world) == [PortRole.EDGE] * 2
    assert {notice.kind for notice in world.notices} == {"lacp-leg-up"}
    bonded.live(5.0, LEGS[0])
    assert roles(world) == [PortRole.EDGE, PortRole.UNKNOWN]
    assert {"lacp-leg-down", "lacp-expired"} <= {notice.kind for notice in world.notices}
    bonded.live(1.0)
    assert roles(world) == [PortRole.EDGE] * 2


@pytest.mark.parametrize("timeout", [0, TIMEOUT])
def test_a_host_that_gives_legs_up_within_seconds_is_told_of(make_world: Callable[..., World], timeout: int):
    world = started(make_world, group())
    Bonded(world, timeout).live(1.0)
    told = [notice.text for notice in world.notices if notice.kind == "lacp-leg-up"]
    assert len(told) == len(LEGS)
    assert [text.endswith("with LACP's slow rate it does not.") for text in told] == [bool(timeout)] * len(LEGS)


def test_a_leg_in_another_fabric_is_told_to_be_out_of_step(make_world: Callable[..., World]):
    world = started(make_world, group())
    bonded = Bonded(world)
    bonded.live(1.0)
    world.port((1, 1), False)
    bonded.live(6.0)
    assert roles(world) == [PortRole.EDGE, PortRole.UNKNOWN]
    assert not bonded.heard[LEGS[1]].actor.state & SYNCHRONIZATION, "the host is to use it for nothing"
    assert bonded.heard[LEGS[0]].actor.state & SYNCHRONIZATION
    assert world.core.counters["aggregation-leg-elsewhere"] == 1
    world.port((1, 1), True)
    bonded.live(6.0)
    assert roles(world) == [PortRole.EDGE] * 2


def test_a_leg_that_is_refused_is_told_so_before_the_host_speaks_again(make_world: Callable[..., World]):
    world = started(make_world, group())
    bonded = Bonded(world)
    bonded.live(1.0)
    world.port((1, 1), False)
    bonded.live(2.0)
    assert roles(world) == [PortRole.EDGE] * 2
    del world.sent[:]
    world.run(1.05)
    assert world.core.counters["aggregation-leg-elsewhere"] == 1
    said = [(packet.dpid, pdu.actor.state) for packet in world.sent if isinstance(pdu := decode(packet.data), Lacpdu)]
    assert not [state for dpid, state in said if dpid == LEGS[1][0]][-1] & SYNCHRONIZATION


def test_a_host_is_announced_by_a_leg_that_works(make_world: Callable[..., World]):
    world = started(make_world, group())
    bonded = Bonded(world)
    bonded.live(1.0)
    (learnt,) = world.say(MAC, ADDRESS, LEGS[0])
    assert isinstance(learnt, HostLearnt)
    (other,) = set(LEGS) - {learnt[1:3]}
    bonded.live(5.0, other)
    assert world.fabric.host(MAC)[1:3] == other


def test_a_port_that_goes_down_ends_its_leg_at_once_and_begins_anew(make_world: Callable[..., World]):
    world = started(make_world, group())
    bonded = Bonded(world)
    bonded.live(1.0)
    world.port(LEGS[0], up=False)
    assert roles(world) == [PortRole.DOWN, PortRole.EDGE]
    world.port(LEGS[0], up=True)
    assert roles(world) == [PortRole.UNKNOWN, PortRole.EDGE]
    bonded.heard.clear()
    bonded.live(1.0)
    assert roles(world) == [PortRole.EDGE] * 2


def test_only_legs_that_speak_lacp_cost_entries_and_frames(make_world: Callable[..., World]):
    static = LinkAggregation("bond", "static", tuple(SwitchPort(*leg) for leg in LEGS))
    for groups in ((), (static,)):
        world = started(make_world, *groups)
        world.run(40.0)
        assert not any(punted(world, leg) for leg in LEGS)
        assert not any(isinstance(decode(packet.data), Lacpdu) for packet in world.sent)


def test_another_policy_begins_and_ends_lacp(make_world: Callable[..., World]):
    world = started(make_world)
    assert roles(world) == [PortRole.EDGE] * 2
    world.feed(DiscoveryChanged(DiscoverySettings(link_aggregations=(group(),))))
    assert roles(world) == [PortRole.UNKNOWN] * 2
    Bonded(world).live(1.0)
    assert roles(world) == [PortRole.EDGE] * 2
    world.feed(DiscoveryChanged(DiscoverySettings()))
    assert roles(world) == [PortRole.EDGE] * 2
    assert not any(punted(world, leg) for leg in LEGS)


def test_a_flood_of_lacp_is_kept_away_for_a_while(make_world: Callable[..., World]):
    world = started(make_world, group())
    bonded = Bonded(world)
    bonded.live(1.0)
    pdu = encode_lacpdu(Lacpdu(HOST, LacpEnd(1, HOST, 9, 1, 1, 0), NOBODY))
    sent = len(world.sent)
    for _ in range(1000):
        world.feed(PacketReceived(*LEGS[0], pdu))
    drops = [rule for rule in world.rules[1].values() if rule.key.match.eth_type == 0x8809 and not rule.actions]
    assert len(drops) == 1 and drops[0].hard_timeout_s == 1
    assert len([packet for packet in world.sent[sent:] if isinstance(packet, SendPacket)]) <= 2 * SENT_AT_ONCE


def test_a_host_whose_lacp_flaps_is_held_out_for_a_while_and_costs_no_other_leg(make_world: Callable[..., World]):
    world = started(make_world, group())
    bonded = Bonded(world)
    bonded.live(1.0)
    first, seconds = len(world.notices), 20
    for number in range(10 * seconds):
        world.run(0.1)
        state = ACTIVITY | AGGREGATION | (SYNCHRONIZATION | COLLECTING | DISTRIBUTING if number % 2 else 0)
        pdu = Lacpdu(HOST, LacpEnd(0xFFFF, HOST, 9, 0xFF, 1, state), bonded.heard[LEGS[0]].actor)
        sent = len(world.sent)
        world.feed(PacketReceived(*LEGS[0], encode_lacpdu(pdu)))
        bonded.heard.update(dict(bonded._take(sent)))
        if number % 10 == 0:
            bonded.speak(LEGS[1])
        assert world.fabric.role(*LEGS[1]) is PortRole.EDGE
    told = Counter(notice.kind for notice in world.notices[first:])
    most = RETURNS_AT_ONCE + RETURNS_PER_S * seconds
    assert 0 < told["lacp-leg-up"] <= most and told["lacp-leg-down"] <= most + 1
    assert told["aggregation-degraded"] <= most + 1
    assert "goes into step and out of it" in next(n.text for n in world.notices if n.kind == "lacp-flapping")
    assert told["lacp-flapping"] < 5, "it is told now and then"
    bonded.live(1 / RETURNS_PER_S + 1.0)
    assert roles(world) == [PortRole.EDGE] * 2


def test_a_leg_that_is_moved_to_a_port_of_no_group_is_told_with_its_group_and_costs_no_other_leg(
    make_world: Callable[..., World],
):
    world = started(make_world, group())
    bonded = Bonded(world)
    bonded.live(1.0)
    moved_to = (LEGS[1][0], LEGS[1][1] + 1)
    world.port(LEGS[1], up=False)
    world.run(1.0)
    pdu = Lacpdu(HOST, LacpEnd(0xFFFF, HOST, 9, 0xFF, 2, ACTIVITY | AGGREGATION), NOBODY)
    world.feed(PacketReceived(*moved_to, encode_lacpdu(pdu)))
    bonded.live(3.0, LEGS[0])
    assert roles(world)[0] is PortRole.EDGE
    (text,) = (notice.text for notice in world.notices if notice.kind == "lacp-undeclared")
    name = group().name
    assert (
        text.startswith(f"Port {moved_to[0]}:{moved_to[1]} receives LACP")
        and f"legs of the group {name} lead" in text
    )
    (found,) = world.core.lacp_legs.undeclared.findings(world.now)
    assert (found["dpid"], found["port_no"]) == moved_to and f"legs of the group {name} lead" in found["text"]
