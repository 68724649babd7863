"""Least rates of queues, worked by hand and for any classes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controller.service_classes.goals import GOAL_BOUNDS, Goal, GoalKind
from controller.service_classes.rates import PortClass, is_to_be_written, need_of, needed_bps, queue_rates

CAPACITY = 10_000_000


def port_class(
    name: str, importance: int, offered: float, goal: Goal | None = None, octets: float = 1500
) -> PortClass:
    return PortClass(name, importance, offered, octets, goal)


def test_needs_by_hand():
    def need(kind: GoalKind, value: float, offered_bps: float = 1_000_000) -> int:
        return needed_bps((need_of(Goal(kind, value)),), offered_bps, 1500, CAPACITY)

    assert need(GoalKind.LOSS, 10) == 945_000
    assert need(GoalKind.DELAY, 2) == 1_100_000 + 6_000_000
    # Velocity 20 %: waits four times as long as it sends.
    assert need(GoalKind.VELOCITY, 20) == 1_100_000 + 2_500_000
    assert need(GoalKind.RATE, 500_000) == 525_000
    assert need(GoalKind.RATE, 5_000_000) == 1_050_000
    assert needed_bps((), 1_000_000, 1500, CAPACITY) == 0
    assert need(GoalKind.DELAY, 2, 0) == 0


def test_of_several_goals_the_most_demanding_counts():
    needs = [need_of(Goal(GoalKind.LOSS, 10)), need_of(Goal(GoalKind.DELAY, 2)), need_of(Goal(GoalKind.RATE, 1e6))]
    assert needed_bps(needs, 1_000_000, 1500, CAPACITY) == 7_100_000


def test_importance_goes_first_and_the_order_of_the_file_decides_ties():
    rate = Goal(GoalKind.RATE, 6_000_000)
    classes = [
        port_class("late", 2, 9e6, rate),
        port_class("first", 1, 9e6, rate),
        port_class("later", 2, 9e6, rate),
        port_class("rest", 6, 9e6),
    ]
    found = queue_rates(CAPACITY, 1, classes)
    assert found.min_rate_bps == {"late": 3_500_000, "first": 6_300_000, "later": 100_000, "rest": 100_000}
    assert found.infeasible == {"late": 2_800_000, "later": 6_200_000}


def test_floors_that_do_not_fit_are_shared():
    assert queue_rates(900, 50, [port_class(name, 6, 1) for name in "abc"]).min_rate_bps == dict.fromkeys("abc", 300)
    assert queue_rates(900, 50, []) == ({}, {})


GOALS = st.none() | st.one_of(
    [st.builds(Goal, st.just(kind), st.floats(*bounds)) for kind, bounds in GOAL_BOUNDS.items()]
)


@st.composite
def ports(draw: st.DrawFn) -> list[PortClass]:
    count = draw(st.integers(1, 12))
    return [
        port_class(str(number), importance, draw(st.floats(0, 1e11)), draw(GOALS) if importance < 6 else None)
        for number, importance in enumerate(draw(st.lists(st.integers(1, 6), min_size=count, max_size=count)))
    ]


@given(st.floats(1, 1e11), st.floats(0, 100), ports())
def test_rates_fit_and_everyone_has_the_floor(capacity: float, floor_pct: float, classes: list[PortClass]):
    found = queue_rates(capacity, floor_pct, classes)
    assert sum(found.min_rate_bps.values()) <= capacity
    floor = min(int(capacity * floor_pct / 100), int(capacity / len(classes)))
    for class_ in classes:
        needs = () if class_.goal is None else (need_of(class_.goal),)
        need = needed_bps(needs, class_.offered_bps, class_.packet_bytes, capacity)
        rate = found.min_rate_bps[class_.name]
        assert rate >= floor
        assert found.infeasible.get(class_.name, 0) == max(0, need - rate)
    short = [class_.importance for class_ in classes if class_.name in found.infeasible]
    if short:
        less_important = (class_ for class_ in classes if class_.importance > min(short))
        assert all(found.min_rate_bps[class_.name] == floor for class_ in less_important)


def test_small_changes_are_not_written():
    before = {"a": 100, "b": 900}
    assert not is_to_be_written(before, {"a": 149, "b": 851}, 1000)
    assert is_to_be_written(before, {"a": 150, "b": 850}, 1000)
    assert is_to_be_written(before, {"a": 100}, 1000)
    assert is_to_be_written({}, {"a": 1}, 1000)
