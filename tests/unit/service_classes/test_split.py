"""Flows over trees."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
