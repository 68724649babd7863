"""Every cell of the state-change tables of RFC 9776, 6.4, on sets that have a member in each intersection."""

from __future__ import annotations

import pytest

from controller.membership.events import FilterMode, HostRef, Interest
from controller.membership.older_reports import OlderReports
from controller.membership.tables import HostMembership, MemberHost, MemberPort, PortGroup
from controller.wire.packets import RecordType

NOW = 1000.0
GMI = 260.0
FULL = NOW + GMI
GROUP_TIMER = NOW + 77.0
SOURCE_TIMER = NOW + 33.0
INCLUDE, EXCLUDE = FilterMode.INCLUDE, FilterMode.EXCLUDE
T = RecordType


def names(*texts: str) -> frozenset[bytes]:
    return frozenset(bytes((10, 0, 0, ord(text))) for text in texts)


def state(mode: FilterMode, timed: str, excluded: str = "") -> HostMembership:
    made = HostMembership(
        PortGroup(MemberPort(1, 1, OlderReports()), b"\xef\x00\x00\x01"),
        MemberHost(HostRef(bytes(6), bytes(4), 1, 1)),
        NOW,
    )
    made.mode = mode
    made.timers = dict.fromkeys(names(*timed), SOURCE_TIMER)
    made.excluded = names(*excluded)
    if mode is EXCLUDE:
        made.group_expiry = GROUP_TIMER
    return made


# kind, (expected mode, {source: timer}, Y, group timer), (asks for the group, for sources); the record is {b, c}
INCLUDING = [
    (T.MODE_IS_INCLUDE, (INCLUDE, {"a": SOURCE_TIMER, "b": FULL, "c": FULL}, "", None), (False, "")),
    (T.MODE_IS_EXCLUDE, (EXCLUDE, {"b": SOURCE_TIMER}, "c", FULL), (False, "")),
    (T.ALLOW_NEW_SOURCES, (INCLUDE, {"a": SOURCE_TIMER, "b": FULL, "c": FULL}, "", None), (False, "")),
    (T.BLOCK_OLD_SOURCES, (INCLUDE, {"a": SOURCE_TIMER, "b": SOURCE_TIMER}, "", None), (False, "b")),
    (T.CHANGE_TO_EXCLUDE, (EXCLUDE, {"b": SOURCE_TIMER}, "c", FULL), (False, "b")),
    (T.CHANGE_TO_INCLUDE, (INCLUDE, {"a": SOURCE_TIMER, "b": FULL, "c": FULL}, "", None), (False, "a")),
]
# from X = {x, p}, Y = {y, q}; the record is {x, y, n}: one in X, one in Y, one in neither
EXCLUDING = [
    (
        T.MODE_IS_INCLUDE,
        (EXCLUDE, {"x": FULL, "p": SOURCE_TIMER, "y": FULL, "n": FULL}, "q", GROUP_TIMER),
        (False, ""),
    ),
    (T.MODE_IS_EXCLUDE, (EXCLUDE, {"x": SOURCE_TIMER, "n": FULL}, "y", FULL), (False, "")),
    (
        T.ALLOW_NEW_SOURCES,
        (EXCLUDE, {"x": FULL, "p": SOURCE_TIMER, "y": FULL, "n": FULL}, "q", GROUP_TIMER),
        (False, ""),
    ),
    (
        T.BLOCK_OLD_SOURCES,
        (EXCLUDE, {"x": SOURCE_TIMER, "p": SOURCE_TIMER, "n": GROUP_TIMER}, "yq", GROUP_TIMER),
        (False, "xn"),
    ),
    (T.CHANGE_TO_EXCLUDE, (EXCLUDE, {"x": SOURCE_TIMER, "n": GROUP_TIMER}, "y", FULL), (False, "xn")),
    (
        T.CHANGE_TO_INCLUDE,
        (EXCLUDE, {"x": FULL, "p": SOURCE_TIMER, "y": FULL, "n": FULL}, "q", GROUP_TIMER),
        (True, "p"),
    ),
]


def check(made: HostMembership, expected: tuple[FilterMode, dict[str, float], str, float | None]) -> None:
    mode, timers, excluded, group_timer = expected
    assert made.mode is mode
    assert made.timers == {next(iter(names(name))): at for name, at in timers.items()}
    assert made.excluded == names(*excluded)
    if group_timer is not None:
        assert made.group_expiry == group_timer


@pytest.mark.parametrize(("kind", "expected", "asked"), INCLUDING, ids=lambda v: getattr(v, "name", ""))
def test_router_state_include(kind, expected, asked):
    made = state(INCLUDE, "ab")
    ask = made.apply(kind, names("b", "c"), NOW, GMI)
    check(made, expected)
    assert ask == (asked[0], names(*asked[1]))


@pytest.mark.parametrize(("kind", "expected", "asked"), EXCLUDING, ids=lambda v: getattr(v, "name", ""))
def test_router_state_exclude(kind, expected, asked):
    made = state(EXCLUDE, "xp", "yq")
    ask = made.apply(kind, names("x", "y", "n"), NOW, GMI)
    check(made, expected)
    assert ask == (asked[0], names(*asked[1]))


@pytest.mark.parametrize("kind", list(T))
def test_nothing_is_made_of_nothing(kind):
    made = state(INCLUDE, "")
    ask = made.apply(kind, (), NOW, GMI)
    joins = kind in (T.MODE_IS_EXCLUDE, T.CHANGE_TO_EXCLUDE)
    assert made.is_empty is not joins
    assert not ask


@pytest.mark.parametrize(
    ("mode", "timed", "excluded", "kind", "record", "left"),
    [
        (INCLUDE, "ab", "", T.BLOCK_OLD_SOURCES, "bc", (INCLUDE, "a", "")),
        (INCLUDE, "ab", "", T.CHANGE_TO_INCLUDE, "bc", (INCLUDE, "bc", "")),
        (INCLUDE, "ab", "", T.CHANGE_TO_INCLUDE, "", (INCLUDE, "", "")),
        (INCLUDE, "ab", "", T.CHANGE_TO_EXCLUDE, "bc", (EXCLUDE, "", "bc")),
        (EXCLUDE, "xp", "yq", T.BLOCK_OLD_SOURCES, "xyn", (EXCLUDE, "p", "xyqn")),
        (EXCLUDE, "xp", "yq", T.CHANGE_TO_EXCLUDE, "xyn", (EXCLUDE, "", "xyn")),
        (EXCLUDE, "xp", "yq", T.CHANGE_TO_INCLUDE, "xyn", (INCLUDE, "xyn", "")),
        (EXCLUDE, "xp", "yq", T.CHANGE_TO_INCLUDE, "", (INCLUDE, "", "")),
    ],
)
def test_settling_leaves_exactly_what_the_record_says(mode, timed, excluded, kind, record, left):
    made = state(mode, timed, excluded)
    made.settle(made.apply(kind, names(*record), NOW, GMI))
    assert (made.mode, made.timers.keys(), made.excluded) == (left[0], names(*left[1]), names(*left[2]))


def test_a_source_timer_ends_in_the_include_list():
    made = state(INCLUDE, "ab")
    made.timers[bytes((10, 0, 0, ord("a")))] = NOW
    made.expire(NOW)
    assert made.timers.keys() == names("b")
    assert made.excluded == frozenset()


def test_a_requested_source_moves_to_the_excluded_when_its_timer_ends():
    made = state(EXCLUDE, "xp", "y")
    made.timers[bytes((10, 0, 0, ord("x")))] = NOW
    made.expire(NOW)
    assert (made.mode, made.timers.keys(), made.excluded) == (EXCLUDE, names("p"), names("x", "y"))


def test_the_requested_list_becomes_the_include_list_when_the_group_timer_ends():
    made = state(EXCLUDE, "xp", "y")
    made.group_expiry = NOW
    made.expire(NOW)
    assert (made.mode, made.timers.keys(), made.excluded) == (INCLUDE, names("x", "p"), frozenset())


def test_an_exclude_host_without_requested_sources_ends_with_its_group_timer():
    made = state(EXCLUDE, "", "y")
    made.group_expiry = NOW
    made.expire(NOW)
    assert made.is_empty


@pytest.mark.parametrize(
    ("interest", "wanted", "unwanted"),
    [
        (Interest(INCLUDE, names("a")), "a", "b"),
        (Interest(EXCLUDE, names("a")), "b", "a"),
        (Interest(EXCLUDE, names()), "ab", ""),
    ],
)
def test_an_interest_tells_which_sources_it_wants(interest, wanted, unwanted):
    assert all(interest.wants(source) for source in names(*wanted))
    assert not any(interest.wants(source) for source in names(*unwanted))
