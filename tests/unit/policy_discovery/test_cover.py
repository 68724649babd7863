"""Policies found by the cover, in tables whose policies are known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from generated_changes import ChangedResources, exclusive, none, overlapping_six, published, small, two_types
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from controller.policy_discovery.cover import Block, cover
from controller.policy_discovery.varieties import discovered

Make = Callable[[np.random.Generator], ChangedResources]


def test_one_policy_is_found_exactly_without_noise() -> None:
    table = np.zeros((100, 12), np.bool_)
    table[10:30, 2:6] = True
    (found,) = cover(table)
    assert (found.columns, found.rows) == ((2, 3, 4, 5), tuple(range(10, 30)))
    assert found.bits > 100


def test_two_policies_of_one_property_are_told_apart() -> None:
    table = np.zeros((200, 12), np.bool_)
    table[:60, :4] = True
    table[40:100, 3:8] = True
    assert {block.columns: len(block.rows) for block in cover(table)} == {(0, 1, 2, 3): 60, (3, 4, 5, 6, 7): 60}


def test_properties_that_are_set_everywhere_are_a_policy_of_all() -> None:
    table = np.zeros((50, 6), np.bool_)
    table[:, :3] = True
    (found,) = cover(table)
    assert (found.columns, len(found.rows)) == ((0, 1, 2), 50)


def test_a_policy_is_of_resources_that_can_have_all_of_its_properties() -> None:
    table, able = np.zeros((80, 8), np.bool_), np.ones((80, 8), np.bool_)
    able[:40, 4:], able[40:, :2] = False, False
    table[:15, 0:4] = True
    table[40:60, 2:6] = True
    found = {column for block in cover(table, able) for column in block.columns}
    assert found == set(range(6))
    assert all(able[:, block.columns].all(1)[list(block.rows)].all() for block in cover(table, able))


@pytest.mark.parametrize("seed", range(2))
def test_noise_alone_has_no_policy(seed: int) -> None:
    assert cover(none(np.random.default_rng(seed)).indicator) == []


@pytest.mark.parametrize("make", [exclusive, overlapping_six, published, small])
def test_policies_are_found_through_noise_and_omissions(make: Make) -> None:
    log = make(np.random.default_rng(1))
    found = {block.columns for block in cover(log.indicator, log.applicable)}
    exact = [policy.columns in found for policy in log.policies]
    assert sum(exact) >= 0.8 * len(exact)


@pytest.mark.parametrize("seed", [(20261130, 31), (20261130, 143)])
def test_policies_that_share_most_of_their_properties_are_told_apart(seed: tuple[int, int]) -> None:
    """What two of them have in common was taken for a policy of both, or one of them for a part of the other."""
    log = two_types(np.random.default_rng(seed))
    found = {block.columns for block in cover(log.indicator, log.applicable)}
    assert found == {policy.columns for policy in log.policies}


def test_what_is_set_everywhere_stays_beside_policies_of_some() -> None:
    table = np.zeros((90, 8), np.bool_)
    table[:, :2], table[:20, 2:5], table[20:40, 4:7] = True, True, True
    assert {block.columns for block in cover(table)} == {(0, 1), (2, 3, 4), (4, 5, 6)}


@settings(max_examples=40, deadline=None)
@given(arrays(np.bool_, st.tuples(st.integers(0, 40), st.integers(0, 8))), st.integers(1, 6))
def test_whatever_the_table_policies_are_well_formed_and_their_order_does_not_change(
    table: np.ndarray, least: int
) -> None:
    blocks = cover(table, None, least)
    assert blocks == cover(table, None, least)
    for block in blocks:
        assert len(block.rows) >= least
        assert len(block.columns) >= 2
        assert list(block.rows) == sorted(set(block.rows))


def test_varieties_are_the_values_that_rows_share_and_others_deviate() -> None:
    final = np.full((30, 5), -1)
    final[:12, :3] = (7, 8, 9)
    final[12:20, :3] = (7, 18, 19)
    final[3, 1] = -1
    final[14, 2] = 99
    final[25, :2] = (7, 8)
    (policy,) = discovered(cover(final >= 0), final >= 0, final, np.ones(final.shape, np.bool_))
    assert [(one.values, len(one.rows)) for one in policy.varieties] == [((7, 8, 9), 13), ((7, 18, 19), 8)]
    assert [tuple(one) for one in policy.deviations if one.row < 20] == [(3, (1,), ()), (14, (), (2,))]


def test_who_is_held_to_two_policies_deviates_from_neither() -> None:
    final = np.full((100, 8), -1)
    final[:40, :4] = 1
    final[30:70, 3:7] = 2
    policies = discovered(cover(final >= 0), final >= 0, final, np.ones(final.shape, np.bool_))
    assert {policy.varieties[0].values for policy in policies} == {(1, 1, 1, 1), (2, 2, 2, 2)}
    assert [policy.deviations for policy in policies] == [(), ()]


def test_who_has_all_but_one_property_is_near_and_nobody_else() -> None:
    table, able = np.zeros((20, 6), np.bool_), np.ones((20, 6), np.bool_)
    table[:10, :4] = True
    table[10, 1:4] = True  # lacks the first
    table[11, 2:4] = True  # lacks two
    table[12, 1:4] = True  # cannot have the first
    table[13, :3] = True  # lacks the last, and has another besides
    table[13, 5] = True
    table[14, :4] = True  # lacks nothing
    able[12, 0] = False
    final = np.where(table, 1, -1)
    blocks = [Block((0, 1, 2, 3), tuple(range(10)), 50.0), Block((2, 3), tuple(range(10)), 10.0)]
    four, two = discovered(blocks, table, final, able)
    assert four.near == (10, 13)
    assert two.near == ()  # of two properties one alone says nothing
