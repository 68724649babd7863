"""Who leaves a table that is full, and who comes in for it."""

from __future__ import annotations

from math import isclose
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from controller.overcommit.residence import (
    LEAST_READING_INTERVAL_S,
    READING_INTERVAL_S,
    RISE_WEIGHT,
    Residence,
    TableGroups,
)


class OneTable(Residence[str]):
    """The groups of one table."""

    def __init__(self, remembered: int = 100) -> None:
        super().__init__(Random(1), remembered)
        self.at: TableGroups[str] = TableGroups()

    def came_in(self, group: str, now_s: float) -> None:
        super().came_in(group, now_s)
        self.at.urn.add(group)

    def went_out(self, group: str) -> None:
        super().went_out(group)
        self.at.urn.remove(group)

    def forget(self, group: str) -> None:
        super().forget(group)
        self.at.urn.remove(group)


GROUPS = "abcdefghij"


def residence(*inside: str, remembered: int = 100) -> OneTable:
    found = OneTable(remembered)
    found.read({}, 0.0)
    for group in inside:
        found.came_in(group, 0.0)
    return found


def read_steadily(found: OneTable, rates: dict[str, float], start_s: float, end_s: float) -> None:
    now_s = start_s
    while now_s < end_s:
        now_s += 2.0
        found.read({group: round(2 * rate) for group, rate in rates.items() if rate}, now_s)


def test_a_group_that_has_fallen_silent_leaves_before_slow_ones_that_go_on():
    found = residence("fast", "slow", "ended")
    read_steadily(found, {"fast": 50, "slow": 0.5, "ended": 50}, 0, 20)
    read_steadily(found, {"fast": 50, "slow": 0.5}, 20, 24)
    assert found.take_ended(found.at) == "ended"
    found.went_out("ended")
    assert found.take_ended(found.at) is None


def test_a_newcomer_gets_the_place_of_a_group_that_has_ended():
    found = residence("a", "ended")
    read_steadily(found, {"a": 5, "ended": 5}, 0, 10)
    read_steadily(found, {"a": 5}, 10, 16)
    assert found.missed("new", 16.1)
    assert found.find_leaving("new", 16.1, found.at) == "ended"


def test_a_newcomer_that_sends_less_than_all_others_stays_out():
    found = residence("a", "b")
    read_steadily(found, {"a": 5, "b": 5}, 0, 20)
    assert found.missed("new", 20.1)
    assert found.find_leaving("new", 20.1, found.at) is None
    assert "new" not in found and len(found) == 2


def test_a_newcomer_that_sends_more_than_the_slowest_takes_its_place():
    found = residence("fast", "slow")
    read_steadily(found, {"fast": 100, "slow": 1}, 0, 20)
    for number in range(60):
        found.missed("new", 20 + number / 100)
    assert found.find_leaving("new", 20.6, found.at) == "slow"


class Hashed(str):
    """A name whose place in a set hangs on `turn`, as that of any other does on the run."""

    turn = 1

    def __hash__(self) -> int:
        return ord(self) * self.turn % 31


def test_who_leaves_of_equals_is_the_same_in_every_run():
    def chosen(turn: int) -> list[str | None]:
        names = [Hashed(name) for name in GROUPS]
        for name in names:
            name.turn = turn
        found = residence(*names)
        read_steadily(found, dict.fromkeys(names, 1), 0, 20)
        for number in range(60):
            found.missed("new", 20 + number / 100)
        return [found.find_leaving("new", 20.6, found.at) for _ in range(20)]

    first = chosen(1)
    assert len(set(first)) > 3 and None not in first
    assert all(chosen(turn) == first for turn in (5, 7, 11, 13))


def test_the_rate_of_a_group_is_kept_while_it_is_out():
    found = residence("known", "slow")
    read_steadily(found, {"known": 20, "slow": 2}, 0, 20)
    found.went_out("known")
    assert found.missed("known", 20.1)
    assert found.find_leaving("known", 20.1, found.at) == "slow"


def test_a_group_of_one_packet_needs_two_to_come_in_again():
    found = residence("once", "often")
    read_steadily(found, {"often": 3}, 0, 4)
    for group in ("once", "often"):
        found.went_out(group)
    assert found.missed("often", 30.0)
    assert not found.missed("once", 30.0)
    assert not found.missed("once", 36.0)
    assert found.missed("once", 40.9)


def test_of_groups_that_have_ended_the_one_that_frees_most_leaves_and_none_that_frees_nothing():
    found = residence("a", "b", "c")
    read_steadily(found, {"a": 9, "b": 9, "c": 9}, 0, 10)
    read_steadily(found, {}, 10, 20)
    frees = {"a": 1, "b": 3, "c": 0}
    assert found.take_ended(found.at, frees.__getitem__) == "b"
    found.went_out("b")
    assert found.take_ended(found.at, frees.__getitem__) == "a"
    found.went_out("a")
    assert found.take_ended(found.at, frees.__getitem__) is None
    assert found.take_ended(found.at) == "c"


def test_counters_are_read_sooner_while_that_finds_groups_that_have_ended():
    sending = [str(number) for number in range(100)]
    found = residence(*sending)
    read_steadily(found, dict.fromkeys(sending, 20.0), 0, 10)
    assert found.next_reading_s() == 10 + READING_INTERVAL_S
    now_s, intervals_s = 10.0, []
    for _ in range(5):
        ended = {sending.pop() for _ in range(10)}
        found.missed("new", now_s)
        assert found.find_leaving("new", now_s, found.at) is None, "all are taken to send on"
        intervals_s.append(found.next_reading_s() - now_s)
        now_s = found.next_reading_s()
        found.read(dict.fromkeys(sending, 40), now_s)
        taken = {found.take_ended(found.at) for _ in ended}
        assert taken == ended
        for group in ended:
            found.went_out(group)
    assert intervals_s == [2.0, 1.0, 0.5, LEAST_READING_INTERVAL_S, LEAST_READING_INTERVAL_S]


def test_sooner_readings_that_find_nothing_end():
    found = residence("a", "b")
    now_s = 0.0
    for _ in range(20):
        found.read({"a": 100, "b": 100}, now_s)
        found.missed("new", now_s)
        assert found.find_leaving("new", now_s, found.at) is None
        now_s = found.next_reading_s()
    assert now_s == 20 * READING_INTERVAL_S


def test_what_is_known_of_groups_that_are_out_is_bounded():
    found = residence(remembered=3)
    for number in range(10):
        found.missed(str(number), float(number))
    found.came_in("once", 10.0)
    found.went_out("once")
    assert not found.missed("once", 11.0)
    for number in range(3):
        found.missed(str(number), 12.0)
    assert found.missed("once", 30.0), "what was known of it is forgotten"


def test_a_group_that_is_no_more_is_not_chosen():
    found = residence("a", "b")
    read_steadily(found, {}, 0, 30)
    found.forget("a")
    assert found.take_ended(found.at) == "b"
    found.forget("b")
    assert found.take_ended(found.at) is None
    assert found.find_leaving("new", 30.0, found.at) is None


class AnyOrder(RuleBasedStateMachine):
    """Whatever comes in which order, who leaves is in, and nobody is chosen twice."""

    def __init__(self) -> None:
        super().__init__()
        self.found = OneTable(5)
        self.inside: set[str] = set()
        self.now_s = 0.0

    @rule(group=st.sampled_from(GROUPS), after_s=st.floats(0.01, 5))
    def packet(self, group: str, after_s: float) -> None:
        self.now_s += after_s
        if group in self.inside or not self.found.missed(group, self.now_s):
            return
        if len(self.inside) == 4:
            leaving = self.found.find_leaving(group, self.now_s, self.found.at)
            if leaving is None:
                return
            assert leaving in self.inside
            self.inside.remove(leaving)
            self.found.went_out(leaving)
        self.inside.add(group)
        self.found.came_in(group, self.now_s)

    @rule(packets=st.dictionaries(st.sampled_from(GROUPS), st.integers(1, 50)))
    def reading(self, packets: dict[str, int]) -> None:
        self.now_s = max(self.now_s, self.found.next_reading_s()) if self.inside else self.now_s + 1
        self.found.read({group: count for group, count in packets.items() if group in self.inside}, self.now_s)

    @rule()
    def ahead(self) -> None:
        leaving = self.found.take_ended(self.found.at)
        if leaving is not None:
            self.inside.remove(leaving)
            self.found.went_out(leaving)

    @precondition(lambda self: self.inside)
    @rule()
    def gone(self) -> None:
        self.found.forget(self.inside.pop())

    @invariant()
    def same(self) -> None:
        assert len(self.found) == len(self.inside)
        assert all(group in self.found for group in self.inside)


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=20, stateful_step_count=30)


READING = st.dictionaries(st.sampled_from(GROUPS), st.integers(1, 500))


@given(st.lists(st.tuples(READING, st.booleans()), min_size=1, max_size=30))
def test_silent_groups_that_are_read_later_are_as_if_they_were_read(readings):
    whole, later = residence(*GROUPS), residence(*GROUPS)
    now_s = 0.0
    for packets, is_whole in [*readings, ({}, True)]:
        now_s += 2.0
        whole.read(packets, now_s)
        (later.read if is_whole else later.read_active)(packets, now_s)
    for group in GROUPS:
        one, other = whole._inside[group], later._inside[group]
        assert (one.active_s, one.packets, one.read_s) == (other.active_s, other.packets, other.read_s)
        assert isclose(one.rate, other.rate, rel_tol=1e-9)


def test_who_is_not_short_of_room_is_read_no_sooner_than_every_2_s():
    found = residence("a", "b")
    found.missed("new", 0.5)
    assert found.find_leaving("new", 0.5, found.at) is None
    found.read_active({}, 1.0)
    assert found.next_reading_s() == 1.0 + READING_INTERVAL_S


SINCE_S = 24.25


def known_newcomers(rate: float) -> OneTable:
    """Return a full table whose groups sent at a rate at first and 2 packets/s then; one is silent since a moment."""
    found = residence()
    for group in "abcd":
        found.came_in(group, 4.0)
    found.read(dict.fromkeys("abcd", round(2 * rate)), 6.0)
    read_steadily(found, dict.fromkeys("abcd", 2.0), 6, 24)
    found.read(dict.fromkeys("abc", 1), SINCE_S)
    found.missed("new", SINCE_S)
    return found


def test_a_group_of_which_nothing_is_known_is_taken_to_send_what_such_groups_sent():
    """It has the place of one that is silent for a moment, and may go on, if those before it sent more than that."""
    for rate, left in ((5.0, "d"), (0.5, None)):
        found = known_newcomers(rate)
        assert found.find_leaving("new", SINCE_S, found.at) == left, rate


def test_a_group_of_which_nothing_is_known_leaves_those_alone_that_send_on():
    found = known_newcomers(50.0)
    found.read(dict.fromkeys("abcd", 2), SINCE_S + 1)
    assert found.find_leaving("new", SINCE_S + 1, found.at) is None


def test_where_those_have_to_leave_that_may_go_on_counters_are_read_sooner():
    """Some group has ended, but frees nothing of what is wanted: to know of such ones soon is worth a reading."""
    found = known_newcomers(5.0)
    found.came_in("ended", SINCE_S)
    found.read(dict.fromkeys("abc", 2), SINCE_S + 1)
    found.read(dict.fromkeys("abcd", 40), SINCE_S + 21)
    waits_s: list[float] = []
    for number in range(3):
        now_s = found.next_reading_s()
        found.read(dict.fromkeys("abc", 2), now_s)
        found.missed("new", now_s)
        left = found.find_leaving("new", now_s, found.at, lambda group: int(group == "d"))
        assert left == "d", number
        found.stays(left, found.at)
        waits_s.append(found.next_reading_s() - now_s)
        found.read(dict.fromkeys("abcd", 1), now_s)
    assert waits_s == [READING_INTERVAL_S, READING_INTERVAL_S / 2, READING_INTERVAL_S / 4]


# Readings that do not tell of all


def test_a_group_of_which_a_reading_tells_nothing_is_as_it_was():
    found = residence("late", "ended")
    read_steadily(found, {"late": 5, "ended": 5}, 0, 10)
    for now_s in (16.0, 30.0, 60.0):
        found.read({}, now_s, late={"late": 10.0})
    assert found.take_ended(found.at) == "ended"
    found.went_out("ended")
    assert found.take_ended(found.at) is None
    assert list(found.silent(found.at)) == []
    assert found.active(60.0) == ["late"]
    found.read({"late": 250}, 60.5)
    assert isclose(found._inside["late"].rate, 5.0, rel_tol=0.1), "all of the time counts that it may have sent in"


def test_a_group_that_was_known_for_less_long_has_been_silent_for_less_long():
    found = residence("early", "late")
    read_steadily(found, {"early": 1, "late": 1}, 0, 10)
    found.read({}, 20.0, late={"late": 12.0})
    assert found.silence_s("early", 20.0) == 10.0
    assert found.silence_s("late", 20.0) == 2.0


def test_a_group_that_came_in_after_switches_were_asked_is_not_silent():
    found = residence("a")
    found.missed("new", 5.0)
    found.came_in("new", 5.0)
    found.read({}, 40.0, known_s=4.0)
    assert list(found.silent(found.at)) == ["a"]
    found.read({"new": 100}, 42.0, known_s=41.0)
    assert isclose(found._inside["new"].rate, RISE_WEIGHT * 100 / 37)
