"""How much groups wait and how full they are; goals; clusters."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.service_classes.clusters import clusters
from controller.service_classes.elephants import LargeFlows, least_loaded
from controller.service_classes.goals import Goal, GoalKind, performance_index, queue_of
from controller.service_classes.measures import (
    MAX_QUEUE,
    LinkUse,
    acceptable_utilisation,
    can_spare_tree,
    group_queue,
    group_utilisation,
    is_gain,
    link_queue,
    waiting_probability,
)


def test_the_wait_at_a_link_grows_with_its_load_up_to_a_bound():
    assert link_queue(0, 100) == 0
    assert link_queue(50, 100) == pytest.approx(0.5)
    assert link_queue(99.99, 100) == MAX_QUEUE
    assert link_queue(100, 100) == link_queue(10, 100, is_dropping=True) == MAX_QUEUE


def test_the_queue_of_a_group_is_a_sum_so_that_one_hot_link_shows():
    cold = [LinkUse(1, 1, 100)] * 50
    assert group_queue([*cold, LinkUse(40, 80, 100)]) == pytest.approx(1.6, abs=0.01)
    assert group_queue([LinkUse(0, 0, 100)]) == 0


def test_the_utilisation_of_a_group_is_the_greatest_of_what_others_leave():
    assert group_utilisation([LinkUse(10, 10, 100), LinkUse(10, 90, 100)]) == pytest.approx(0.5)
    assert group_utilisation([LinkUse(0, 120, 100)]) == 0


def test_a_link_that_others_fill_says_of_a_group_only_how_much_it_sends_itself():
    assert group_utilisation([LinkUse(10, 109, 100)]) == pytest.approx(10)
    assert group_utilisation([LinkUse(10, 110, 100)]) == group_utilisation([LinkUse(10, 220, 100)]) == 0.1
    # so who cooled down can spare trees although hot groups share its links, and who needs them cannot
    assert can_spare_tree(5, group_utilisation([LinkUse(1, 221, 100), LinkUse(1, 10, 100)]))
    assert not can_spare_tree(2, group_utilisation([LinkUse(50, 250, 100), LinkUse(50, 50, 100)]))
    assert group_utilisation([LinkUse(10, 10, 0)]) == inf


def test_limits_are_those_of_erlang_c():
    # By hand: one server waits for its utilisation, two for 2u^2 / (1 + u).
    assert acceptable_utilisation(1) == pytest.approx(0.2)
    assert acceptable_utilisation(2) == pytest.approx((0.2 + (0.04 + 1.6) ** 0.5) / 4)
    assert [round(100 * acceptable_utilisation(c), 1) for c in (1, 2, 3, 4)] == [20.0, 37.0, 46.4, 52.6]
    with pytest.raises(ValueError, match="0 servers"):
        acceptable_utilisation(0)


@given(st.integers(1, 200), st.floats(0.01, 0.99))
def test_more_servers_wait_less(servers: int, utilisation: float):
    assert 0 <= waiting_probability(servers + 1, utilisation) <= waiting_probability(servers, utilisation) <= 1


def test_a_donor_keeps_a_tree_and_hardly_waits():
    assert not can_spare_tree(1, 0.0)
    assert can_spare_tree(2, 0.099)
    assert not can_spare_tree(2, 0.1)
    assert can_spare_tree(3, 0.24)
    assert not can_spare_tree(3, 0.25)


def test_a_gain_is_a_twentieth():
    assert is_gain(1.0, 0.95)
    assert not is_gain(1.0, 0.96)


def test_an_index_above_1_is_a_missed_goal():
    assert performance_index(Goal(GoalKind.LOSS, 0.1), 0.2) == 2
    assert performance_index(Goal(GoalKind.LOSS, 0), 0) == 0
    assert performance_index(Goal(GoalKind.LOSS, 0), 0.1) == inf
    assert performance_index(Goal(GoalKind.DELAY, 2), 1) == 0.5
    assert performance_index(Goal(GoalKind.VELOCITY, 50), 25) == 2
    assert performance_index(Goal(GoalKind.RATE, 1e6), 5e5) == 2
    assert performance_index(Goal(GoalKind.RATE, 1e6), 5e5, offered_bps=5e5) == 1
    assert performance_index(Goal(GoalKind.RATE, 1e6), 0) == inf


def test_queues_follow_importance():
    assert [queue_of(importance) for importance in range(7)] == [7, 6, 5, 4, 3, 2, 1]
    with pytest.raises(ValueError, match="importance 7"):
        queue_of(7)


TABLE_3 = {
    "Class 1": {"200": 100, "201": 150, "202": 150},
    "Class 2": {"201": 90, "202": 100},
    "Class 3": {"201": 100, "202": 100, "500": 5},
    "Class 4": {"500": 100, "501": 100, "502": 100, "503": 100},
    "Class 5": {"501": 150, "503": 150},
}


def test_clusters_of_table_3():
    assert clusters(TABLE_3) == [["Class 1", "Class 2", "Class 3"], ["Class 4", "Class 5"]]
    joined = {**TABLE_3, "Class 3": {"201": 100, "202": 100, "500": 10}}
    assert clusters(joined) == [list(TABLE_3)]


def test_a_class_that_uses_nothing_is_alone():
    assert clusters({"a": {}, "b": {"x": 0}, "c": {"x": 1}}) == [["a"], ["b"], ["c"]]
    assert clusters({}) == []


def test_a_flow_is_large_in_two_polls_one_after_the_other():
    flows = LargeFlows[str]()
    capacity = {"a": 100.0, "b": 100.0}
    assert flows.polled({"a": 11, "b": 10}, capacity) == []
    assert flows.polled({"a": 11, "b": 30}, capacity) == ["a"]
    assert flows.polled({"b": 30}, capacity) == ["b"]
    assert flows.polled({"a": 50, "b": 30}, capacity) == ["b"]


def test_the_least_loaded_path_is_that_whose_fullest_link_is_least_full():
    capacity = dict.fromkeys("abcd", 100.0)
    assert least_loaded([["a", "b"], ["c", "d"]], {"a": 50, "c": 40, "d": 40}, capacity) == 1
    assert least_loaded([["a", "b"], ["c", "d"]], {"a": 40, "c": 40, "d": 10}, capacity) == 0
    assert [least_loaded([["a"], ["b"], ["c"]], {"b": 1}, capacity, draw) for draw in range(3)] == [0, 2, 0]
