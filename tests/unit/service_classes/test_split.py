"""Flows over trees, and queues from which nothing waits for ever."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.service_classes.promotion import TURN, PromotingQueues
from controller.service_classes.split import split


def test_flows_go_largest_first_to_the_least_loaded_tree():
    assert split({"a": 5, "b": 4, "c": 3}, [0, 1]) == {"a": 0, "b": 1, "c": 1}
    assert split({}, [0]) == {}
    with pytest.raises(ValueError, match="no tree"):
        split({"a": 1}, [])


def test_flows_stay_unless_their_tree_goes_or_a_fresh_one_comes():
    held = {"a": 0, "b": 0, "c": 1}
    rates = {"a": 5, "b": 5, "c": 1}
    assert split(rates, [0, 1], held) == held
    assert split(rates, [0], held) == {"a": 0, "b": 0, "c": 0}
    assert split(rates, [0, 1, 2], held, fresh=[2]) == {"a": 2, "b": 0, "c": 1}
    assert split(dict.fromkeys("abcdefgh", 1), [0, 1], dict.fromkeys("abcdefgh", 0), [1]) == {
        **dict.fromkeys("abcd", 1),
        **dict.fromkeys("efgh", 0),
    }


@given(
    st.dictionaries(st.integers(), st.floats(0, 1e9), max_size=20),
    st.lists(st.integers(0, 15), min_size=1, max_size=5, unique=True),
    st.data(),
)
def test_splitting_moves_flows_to_fresh_trees_alone(rates, trees, data):
    held = {flow: data.draw(st.sampled_from([*trees, 99])) for flow in rates}
    fresh = data.draw(st.sampled_from(trees))
    found = split(rates, trees, held, [fresh])
    assert found.keys() == rates.keys() and set(found.values()) <= set(trees)
    for flow, tree in held.items():
        assert tree == 99 or found[flow] in (tree, fresh)


def test_a_queue_that_never_empties_starves_no_other():
    queues = PromotingQueues[str]()
    queues.put(6, "discretionary")
    turns = 0
    while True:
        for _ in range(TURN):
            queues.put(0, "urgent")
        served = queues.turn()
        assert len(served) == TURN
        turns += 1
        if "discretionary" in served:
            break
        assert turns < 8
    assert turns == 8 - 1
    assert len(queues) == 1


def test_work_of_one_importance_stays_in_order_and_turns_are_bounded():
    queues = PromotingQueues[int]()
    for number in range(TURN + 1):
        queues.put(2, number)
    assert queues.turn() == list(range(TURN))
    assert queues.turn() == [TURN]
    assert queues.turn() == []
    with pytest.raises(ValueError, match="importance 7"):
        queues.put(7, 0)
