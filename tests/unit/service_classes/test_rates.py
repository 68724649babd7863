"""Least rates of queues, worked by hand and for any classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from controller.service_classes.goals import GOAL_BOUNDS, Goal, GoalKind
from controller.service_classes.rates import GoalNeeds, PortClass, are_short, are_to_be_written, queue_rates

CAPACITY = 10_000_000


def port_class(
    name: str, importance: int, offered: float, goal: Goal | None = None, octets: float = 1500
) -> PortClass:
    return PortClass(name, importance, offered, octets, goal)


def needed_bps(
    goals: Sequence[Goal], offered_bps: float, packet_bytes: float = 1500, capacity_bps: float = CAPACITY
) -> float:
    values = (offered_bps, packet_bytes, capacity_bps)
    return float(GoalNeeds([goals]).bps(*(np.array([[value]], dtype=float) for value in values))[0, 0])


def test_needs_by_hand():
    def need(kind: GoalKind, value: float, offered_bps: float = 1_000_000) -> float:
        return needed_bps((Goal(kind, value),), offered_bps)

    assert need(GoalKind.LOSS, 10) == 945_000
    assert need(GoalKind.DELAY, 2) == 1_100_000 + 6_000_000
    # Velocity 20 %: waits four times as long as it sends.
    assert need(GoalKind.VELOCITY, 20) == 1_100_000 + 2_500_000
    assert need(GoalKind.RATE, 500_000) == 525_000
    assert need(GoalKind.RATE, 5_000_000) == 1_050_000
    assert needed_bps((), 1_000_000) == 0
    assert need(GoalKind.DELAY, 2, 0) == 0


def test_of_several_goals_the_most_demanding_counts():
    goals = [Goal(GoalKind.LOSS, 10), Goal(GoalKind.DELAY, 2), Goal(GoalKind.RATE, 1e6)]
    assert needed_bps(goals, 1_000_000) == 7_100_000
    # each queue goes by its own goals, however many others have
    offered = np.full((2, 3), 1e6)
    found = GoalNeeds([goals, [], goals[2:]]).bps(offered, np.full((2, 3), 1500.0), np.array([[1e7], [2e7]]))
    assert found.tolist() == [[7_100_000, 0, 1_050_000]] * 2


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
        goals = () if class_.goal is None else (class_.goal,)
        need = needed_bps(goals, class_.offered_bps, class_.packet_bytes, capacity)
        rate = found.min_rate_bps[class_.name]
        assert rate >= floor
        assert found.infeasible.get(class_.name, 0) == max(0, need - rate)
    short = [class_.importance for class_ in classes if class_.name in found.infeasible]
    if short:
        less_important = (class_ for class_ in classes if class_.importance > min(short))
        assert all(found.min_rate_bps[class_.name] == floor for class_ in less_important)


def test_small_changes_are_not_written():
    before = np.array([[100.0, 900.0]] * 4)
    wanted = np.array([[149.0, 851.0], [150.0, 850.0], [100.0, 849.0], [100.0, 900.0]])
    assert are_to_be_written(before, wanted, 1000).tolist() == [False, True, True, False]
    assert are_to_be_written(before, wanted, np.array([[900.0], [1100.0], [1000.0], [1.0]])).tolist() == [
        *(True, False, True, False)
    ]


def test_a_queue_is_short_that_gets_less_than_comes_to_it_and_could_have_more():
    written = np.array([[100.0, 900.0]] * 5)
    wanted = np.array([[105.0, 895.0], [105.0, 895.0], [100.5, 899.5], [90.0, 910.0], [100.0, 900.0]])
    offered = np.array([[100.0, 0.0], [98.0, 9000.0], [9000.0, 0.0], [0.0, 900.0], [9000.0, 9000.0]])
    assert are_short(written, wanted, offered).tolist() == [True, False, False, True, False]
