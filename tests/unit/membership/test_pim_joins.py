"""Joins of PIM routers, read along: which groups, of which sources, the ports of a domain are in, and until when."""

from __future__ import annotations

import pytest

from controller.membership.core import MembershipCore
from controller.membership.events import ANY_SOURCE, FilterMode, Interest, RouterJoined, RouterPortChanged
from controller.membership.pim_joins import OVERRIDE_S
from controller.membership.settings import MembershipLimits, MembershipSettings
from controller.wire.addresses import parse_ip
from controller.wire.packets import PimGroup, PimHello, PimJoinPrune, PimSource

GROUP, SOURCE, OTHER_SOURCE = parse_ip("239.1.2.3"), parse_ip("10.9.0.1"), parse_ip("10.9.0.2")
PORTS = {"r1": 1, "r2": 2, "r3": 3}
ADDRESSES = {"r1": parse_ip("10.0.0.1"), "r2": parse_ip("10.0.0.2"), "r3": parse_ip("10.0.0.3")}
ANY, BY_SOURCE = PimSource(ADDRESSES["r1"], True, True), PimSource(SOURCE)
FROM_TREE = PimSource(SOURCE, False, True)
HOLD_S = 210.0
JOINS_HEARD_S = MembershipSettings().joins_heard_s


def including(*sources):
    return Interest(FilterMode.INCLUDE, frozenset(sources))


def excluding(*sources):
    return Interest(FilterMode.EXCLUDE, frozenset(sources))


class Segment:
    """A switch of three ports with a router at each, unless told otherwise."""

    def __init__(self, limits: MembershipLimits | None = None, **settings: object) -> None:
        wanted = MembershipSettings(learn_router_ports=True, router_ports_on_join=True, **settings)
        self.core = MembershipCore(wanted, limits or MembershipLimits(), lambda *_: True)
        self.now = 0.0
        self.ports = dict(PORTS)
        self.joined: dict[tuple[int, bytes], Interest] = {}
        self.unasked: set[int] = set()
        for port_no in (1, 2, 3):
            self.take(self.core.port_added(1, port_no, self.now))

    def take(self, effects):
        for effect in effects:
            if isinstance(effect, RouterJoined):
                place = (effect.port_no, effect.group)
                assert self.joined.pop(place, None) != effect.interest, "nothing is said that was said already"
                if effect.interest is not None:
                    self.joined[place] = effect.interest
            elif isinstance(effect, RouterPortChanged):
                gets_all = effect.present and not effect.on_request
                (self.unasked.add if gets_all else self.unasked.discard)(effect.port_no)

    def hello(self, *routers, priority=None, holdtime_s=600.0):
        for name in routers:
            hello = PimHello(4, bytes((2, 0, 0, 0, 0, PORTS[name])), ADDRESSES[name], holdtime_s, priority)
            self.take(self.core.pim_hello_received(1, self.ports[name], hello, self.now))

    def say(self, router, upstream, joins=(), prunes=(), holdtime_s=HOLD_S, group=GROUP, prefix_bits=32):
        groups = (PimGroup(group, prefix_bits, tuple(joins), tuple(prunes)),)
        message = PimJoinPrune(4, bytes(6), ADDRESSES[router], ADDRESSES[upstream], holdtime_s, groups)
        self.take(self.core.pim_join_received(1, self.ports[router], message, self.now))

    def wait(self, seconds):
        self.now += seconds
        self.take(self.core.on_deadline(self.now))

    def gets(self, port_no):
        return self.joined.get((port_no, GROUP))

    def at(self):
        return sorted(port_no for port_no, group in self.joined if group == GROUP)


@pytest.fixture
def segment():
    segment = Segment()
    segment.hello("r1", "r2", "r3")
    return segment


@pytest.mark.parametrize("source", [ANY, BY_SOURCE])
def test_a_join_puts_the_router_and_the_one_that_it_asks_into_the_group(segment, source):
    segment.say("r2", "r1", joins=[source])
    assert segment.at() == [1, 2]
    segment.say("r2", "r1", prunes=[source])
    assert segment.at() == []
    assert not list(segment.core.pim_joins)


def test_a_join_ends_with_its_holdtime_and_no_holdtime_is_believed_for_ever(segment):
    segment.say("r2", "r1", joins=[ANY])
    segment.wait(HOLD_S - 1.0)
    assert segment.at() == [1, 2]
    segment.wait(1.0)
    assert segment.at() == []
    segment.hello("r1", "r2")
    segment.say("r2", "r1", joins=[ANY], holdtime_s=float("inf"))
    segment.wait(599.0)
    assert segment.at() == [1, 2]
    segment.hello("r1", "r2")
    segment.wait(1.0)
    assert segment.at() == []


def test_a_join_with_a_holdtime_of_0_is_a_prune(segment):
    segment.say("r2", "r1", joins=[ANY])
    segment.say("r2", "r1", joins=[ANY], holdtime_s=0.0)
    assert segment.at() == []


def test_prunes_of_one_source_leave_others(segment):
    segment.say("r2", "r1", joins=[BY_SOURCE, PimSource(OTHER_SOURCE)])
    segment.say("r2", "r1", prunes=[BY_SOURCE])
    assert segment.at() == [1, 2]
    segment.say("r2", "r1", prunes=[PimSource(OTHER_SOURCE)])
    assert segment.at() == []


def test_a_port_gets_the_sources_that_were_joined_there_and_every_source_with_a_join_of_any(segment):
    segment.say("r2", "r1", joins=[BY_SOURCE])
    assert segment.gets(1) == segment.gets(2) == including(SOURCE)
    segment.say("r3", "r1", joins=[PimSource(OTHER_SOURCE)])
    assert segment.gets(1) == including(SOURCE, OTHER_SOURCE), "the router that both ask"
    assert (segment.gets(2), segment.gets(3)) == (including(SOURCE), including(OTHER_SOURCE))
    segment.say("r2", "r1", joins=[ANY])
    assert (segment.gets(1), segment.gets(2), segment.gets(3)) == (ANY_SOURCE, ANY_SOURCE, including(OTHER_SOURCE))
    segment.say("r2", "r1", prunes=[ANY])
    assert (segment.gets(1), segment.gets(2)) == (including(SOURCE, OTHER_SOURCE), including(SOURCE))


def test_a_source_pruned_from_the_shared_tree_is_left_out_while_the_tree_is_joined(segment):
    segment.say("r2", "r1", joins=[ANY], prunes=[FROM_TREE])
    assert segment.gets(2) == excluding(SOURCE)
    assert segment.gets(1) == ANY_SOURCE, "others may still ask the router for the source"
    segment.wait(OVERRIDE_S)
    assert segment.gets(1) == excluding(SOURCE)
    segment.say("r2", "r1", prunes=[ANY])
    assert segment.at() == []
    segment.say("r2", "r1", joins=[ANY])
    assert segment.gets(2) == ANY_SOURCE


def test_a_source_pruned_from_the_shared_tree_and_joined_by_its_own_is_had(segment):
    segment.say("r2", "r1", joins=[ANY], prunes=[FROM_TREE])
    segment.say("r2", "r3", joins=[BY_SOURCE])
    segment.wait(OVERRIDE_S)
    assert (segment.gets(1), segment.gets(2), segment.gets(3)) == (
        excluding(SOURCE),
        ANY_SOURCE,
        including(SOURCE),
    )


@pytest.mark.parametrize(
    "over",
    [
        {"joins": [ANY]},
        {"joins": [ANY], "prunes": [PimSource(OTHER_SOURCE, False, True)]},
        {"joins": [PimSource(SOURCE, False, True)]},
    ],
)
def test_a_join_takes_the_prune_of_a_source_back(segment, over):
    segment.say("r2", "r1", joins=[ANY], prunes=[FROM_TREE])
    segment.wait(OVERRIDE_S)
    segment.say("r2", "r1", **over)
    for port_no in (1, 2):
        wanted = segment.gets(port_no)
        assert wanted.mode is FilterMode.EXCLUDE
        assert wanted.wants(SOURCE)


def test_a_prune_of_a_source_ends_with_its_holdtime(segment):
    segment.say("r2", "r1", joins=[ANY], prunes=[FROM_TREE], holdtime_s=100.0)
    segment.say("r3", "r1", joins=[ANY])
    segment.wait(99.0)
    assert segment.gets(2) == excluding(SOURCE)
    segment.wait(1.0)
    assert segment.gets(2) == ANY_SOURCE, "the join is kept by the other router's"


@pytest.mark.parametrize("upstream", ["r1", "r3"])
def test_a_prune_of_a_source_without_a_join_of_the_shared_tree_is_passed_over(segment, upstream):
    segment.say("r2", "r1", joins=[ANY] if upstream == "r3" else [BY_SOURCE])
    before = segment.gets(2)
    segment.say("r2", upstream, prunes=[FROM_TREE])
    assert segment.gets(2) == before
    segment.wait(OVERRIDE_S)
    assert segment.gets(2) == before


def test_another_router_behind_the_port_has_time_to_keep_a_source_that_one_prunes():
    segment = Segment()
    segment.ports["r3"] = segment.ports["r2"]
    segment.hello("r1", "r2", "r3")
    segment.say("r2", "r1", joins=[ANY], prunes=[FROM_TREE])
    segment.wait(OVERRIDE_S - 0.5)
    assert segment.gets(2) == ANY_SOURCE
    segment.say("r3", "r1", joins=[FROM_TREE])
    segment.wait(OVERRIDE_S)
    assert segment.gets(2) == ANY_SOURCE
    segment.say("r2", "r1", joins=[ANY], prunes=[FROM_TREE])
    segment.wait(OVERRIDE_S)
    assert segment.gets(2) == excluding(SOURCE)
    segment.say("r3", "r1", joins=[ANY])
    assert segment.gets(2) == ANY_SOURCE


def test_a_group_of_more_sources_than_the_limit_is_had_whole():
    segment = Segment(MembershipLimits(sources_per_group=2))
    segment.hello("r1", "r2")
    sources = [PimSource(parse_ip(f"10.9.1.{number}")) for number in range(3)]
    segment.say("r2", "r1", joins=sources[:2])
    assert segment.gets(2) == including(*(source.address for source in sources[:2]))
    segment.say("r2", "r1", joins=sources[2:])
    assert segment.gets(2) == ANY_SOURCE
    segment.say("r2", "r1", joins=[ANY], prunes=[source._replace(is_rpt=True) for source in sources])
    assert segment.gets(2) == ANY_SOURCE


def test_a_join_that_another_router_holds_back_for_it_is_kept(segment):
    segment.say("r2", "r1", joins=[ANY])
    segment.say("r3", "r1", joins=[ANY])
    for _ in range(10):
        segment.wait(60.0)
        segment.hello("r1", "r2", "r3")
        segment.say("r2", "r1", joins=[ANY])
    assert segment.at() == [1, 2, 3]
    segment.say("r2", "r1", prunes=[ANY])
    assert segment.at() == [1, 3]
    segment.wait(HOLD_S)
    assert segment.at() == []


def test_a_join_to_another_neighbour_keeps_none(segment):
    segment.say("r3", "r2", joins=[ANY])
    for _ in range(4):
        segment.wait(60.0)
        segment.say("r1", "r3", joins=[ANY])
    assert segment.at() == [1, 3], "r2 is asked by nobody any more"


def test_two_routers_behind_one_port_have_time_to_override_a_prune():
    segment = Segment()
    segment.ports["r3"] = segment.ports["r2"]
    segment.hello("r1", "r2", "r3")
    segment.say("r2", "r1", joins=[ANY])
    segment.say("r2", "r1", prunes=[ANY])
    segment.wait(2.0)
    assert segment.at() == [1, 2]
    segment.say("r3", "r1", joins=[ANY])
    segment.wait(5.0)
    assert segment.at() == [1, 2]
    segment.say("r3", "r1", prunes=[ANY])
    segment.wait(3.0)
    assert segment.at() == []


def test_what_a_port_has_joined_goes_with_it(segment):
    segment.say("r2", "r1", joins=[ANY])
    segment.take(segment.core.port_removed(1, 2, segment.now))
    assert segment.at() == [1], "the router that was asked may still think so"


def test_joins_of_strangers_and_of_prefixes_count_for_nothing(segment):
    joins = (PimGroup(GROUP, 32, (ANY,), ()),)
    stranger = PimJoinPrune(4, bytes(6), parse_ip("10.0.0.9"), ADDRESSES["r1"], HOLD_S, joins)
    segment.take(segment.core.pim_join_received(1, 2, stranger, segment.now))
    segment.take(segment.core.pim_join_received(1, 3, stranger._replace(source=ADDRESSES["r2"]), segment.now))
    segment.say("r2", "r1", joins=[ANY], group=parse_ip("224.0.0.0"), prefix_bits=4)
    assert not segment.joined
    assert segment.core.counters["pim-join-of-stranger"] == 2
    assert segment.core.counters["pim-join-of-prefix"] == 1


def test_joins_are_bounded():
    segment = Segment(MembershipLimits(joins_per_port=3))
    segment.hello("r1", "r2")
    for number in range(10):
        segment.say("r2", "r1", joins=[ANY], group=parse_ip(f"239.1.2.{number}"))
    assert len(segment.joined) == 6
    assert segment.core.counters["limit-joins"] == 14
    segment.say("r2", "r1", prunes=[ANY], group=parse_ip("239.1.2.0"))
    segment.say("r2", "r1", joins=[ANY], group=parse_ip("239.1.2.9"))
    assert (2, parse_ip("239.1.2.9")) in segment.joined


def test_prunes_of_sources_take_room_as_joins_do_and_give_it_back():
    segment = Segment(MembershipLimits(joins_per_port=3))
    segment.hello("r1", "r2")
    sources = [PimSource(parse_ip(f"10.9.1.{number}"), False, True) for number in range(4)]
    segment.say("r2", "r1", joins=[ANY], prunes=sources)
    assert segment.gets(2) == excluding(sources[0].address, sources[1].address)
    assert segment.core.counters["limit-joins"] == 2
    segment.say("r2", "r1", joins=[ANY], prunes=sources[2:])
    assert segment.gets(2) == excluding(sources[2].address, sources[3].address)
    segment.say("r2", "r1", prunes=[ANY])
    for number in range(3):
        segment.say("r2", "r1", joins=[ANY], group=parse_ip(f"239.1.2.{number}"))
    assert segment.core.counters["limit-joins"] == 2


def test_a_port_gets_every_group_until_its_routers_had_time_to_say_what_they_joined(segment):
    assert segment.unasked == {1, 2, 3}
    segment.wait(JOINS_HEARD_S)
    assert segment.unasked == {3}, "the designated router, by its address"


def test_a_port_gets_every_group_for_as_long_as_its_routers_take_to_repeat_their_joins():
    segment = Segment(pim_join_interval_s=5.0)
    segment.hello("r1", "r2", "r3")
    segment.wait(14.9)
    assert segment.unasked == {1, 2, 3}
    segment.wait(0.1)
    assert segment.unasked == {3}


@pytest.mark.parametrize(("interval_s", "believed_s"), [(5.0, 600.0), (60.0, 600.0), (300.0, 1050.0)])
def test_a_join_is_believed_until_further_ones_were_due(interval_s, believed_s):
    segment = Segment(pim_join_interval_s=interval_s)
    segment.hello("r1", "r2")
    segment.say("r2", "r1", joins=[ANY], holdtime_s=65535.0)
    segment.wait(believed_s - 0.1)
    assert (2, GROUP) in segment.joined
    segment.wait(0.1)
    assert (2, GROUP) not in segment.joined


@pytest.mark.parametrize("interval_s", [0.0, 601.0])
def test_an_interval_of_joins_out_of_range_is_refused(interval_s):
    with pytest.raises(ValueError, match="pim_join_interval_s must be above 0 and at most 600"):
        MembershipSettings(pim_join_interval_s=interval_s)


def test_the_designated_router_is_that_of_the_highest_priority_where_all_have_one(segment):
    segment.wait(JOINS_HEARD_S)
    segment.hello("r1", priority=9)
    assert segment.unasked == {3}
    segment.hello("r2", "r3", priority=1)
    assert segment.unasked == {1}
    segment.hello("r1", holdtime_s=0.0)
    assert segment.unasked == {3}


@pytest.mark.parametrize("elapsed_s", [0.0, 100.0])
def test_joins_are_in_the_journal(segment, elapsed_s):
    segment.say("r2", "r1", joins=[ANY])
    segment.say("r3", "r1", joins=[BY_SOURCE])
    segment.say("r3", "r1", joins=[BY_SOURCE], holdtime_s=50.0)
    records = segment.core.routers_snapshot(segment.now)
    fresh = Segment()
    fresh.take(fresh.core.restore(records, 0.0, elapsed_s))
    assert fresh.at() == ([1, 2, 3] if elapsed_s == 0.0 else [1, 2])
    assert fresh.gets(3) == (including(SOURCE) if elapsed_s == 0.0 else None)
    fresh.wait(HOLD_S - elapsed_s)
    assert fresh.at() == []


def test_prunes_are_in_the_journal_those_too_that_another_router_may_override(segment):
    segment.say("r2", "r1", joins=[ANY], prunes=[FROM_TREE])
    segment.wait(OVERRIDE_S)
    assert (segment.gets(2), segment.gets(1)) == (excluding(SOURCE), excluding(SOURCE))
    for waited_s in (0.0, 1.0):
        fresh = Segment()
        fresh.take(fresh.core.restore(segment.core.routers_snapshot(segment.now), 0.0, 0.0))
        assert (fresh.gets(2), fresh.gets(1)) == (excluding(SOURCE), excluding(SOURCE))
        segment.wait(waited_s)
    segment.say("r3", "r1", joins=[ANY], prunes=[PimSource(OTHER_SOURCE, False, True)])
    fresh = Segment()
    fresh.take(fresh.core.restore(segment.core.routers_snapshot(segment.now), 0.0, 0.0))
    assert fresh.gets(3) == excluding(OTHER_SOURCE)
    assert fresh.gets(1) == ANY_SOURCE, "each router pruned another source"
    fresh.wait(HOLD_S)
    assert fresh.at() == []


def test_what_is_restored_beyond_the_bound_is_left_out():
    segment = Segment()
    segment.hello("r1", "r2")
    segment.say("r2", "r1", joins=[ANY], prunes=[FROM_TREE])
    fresh = Segment(MembershipLimits(joins_per_port=1))
    fresh.take(fresh.core.restore(segment.core.routers_snapshot(segment.now), 0.0, 0.0))
    assert fresh.gets(2) == ANY_SOURCE


@pytest.mark.parametrize(
    "change",
    [{"joins": [{}]}, {"group": "10.0.0.1"}, {"dpid": None}, {"joins": None}, {"prunes": [{"router": "10.0.0.1"}]}],
)
def test_records_that_say_what_cannot_be_are_passed_over(segment, change):
    segment.say("r2", "r1", joins=[ANY])
    records = segment.core.routers_snapshot(segment.now)
    broken = [{**record, **change} if record["record"] == "pim-joins" else record for record in records]
    fresh = Segment()
    fresh.take(fresh.core.restore(broken, 0.0, 0.0))
    assert not fresh.joined
    assert fresh.core.counters["journal-record"] == 2
