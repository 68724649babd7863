"""Mutual information and the dendrogram, against the definition and by hand."""

from __future__ import annotations

from itertools import product
from math import inf, log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from controller.policy_discovery.dependence import (
    distances,
    mutual_information,
    positive_distances,
    single_linkage,
)


def by_definition(x: np.ndarray, y: np.ndarray) -> float:
    found = 0.0
    for a, b in product((False, True), repeat=2):
        both = float(((x == a) & (y == b)).mean())
        if both:
            found += both * log2(both / ((x == a).mean() * (y == b).mean()))
    return found


@given(arrays(np.bool_, st.tuples(st.integers(1, 30), st.integers(1, 5))))
def test_mutual_information_is_that_of_the_definition(table: np.ndarray) -> None:
    found = mutual_information(table)
    for x, y in product(range(table.shape[1]), repeat=2):
        assert found[x, y] == pytest.approx(by_definition(table[:, x], table[:, y]), abs=1e-9)


def test_properties_that_are_set_together_are_as_near_as_those_that_exclude_each_other() -> None:
    together = np.array([1, 1, 0, 0], np.bool_)
    table = np.stack([together, together, ~together], axis=1)
    assert distances(table)[0].tolist() == [1.0, 1.0, 1.0]
    assert positive_distances(table)[0].tolist() == [1.0, 1.0, inf]


def test_a_table_in_which_every_row_is_alike_tells_nothing() -> None:
    assert not mutual_information(np.ones((40, 7), np.bool_)).any()
    assert not mutual_information(np.zeros((0, 3), np.bool_)).any()


def test_the_dendrogram_joins_the_closest_members_first() -> None:
    far = np.array(
        [[0, 1, 5, inf, 9], [1, 0, 2, inf, 9], [5, 2, 0, inf, 3], [inf, inf, inf, 0, inf], [9, 9, 3, inf, 0]]
    )
    joins = single_linkage(far)
    assert [(join.members, join.distance) for join in joins] == [
        ((0, 1), 1.0),
        ((0, 1, 2), 2.0),
        ((0, 1, 2, 4), 3.0),
        ((0, 1, 2, 3, 4), inf),
    ]


@given(arrays(np.bool_, st.tuples(st.integers(0, 20), st.integers(0, 6))))
def test_the_last_join_holds_every_property(table: np.ndarray) -> None:
    joins = single_linkage(distances(table))
    columns = table.shape[1]
    assert len(joins) == max(0, columns - 1)
    assert not joins or joins[-1].members == tuple(range(columns))
