"""Policies by what was set and to what: whose rows and properties are whose, and what the values alone tell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from controller.policy_discovery.cover import Block, cover
from controller.policy_discovery.value_cover import cover_by_values
from controller.policy_discovery.varieties import discovered

Table = np.ndarray


def found_in(final: Table, least: int = 4) -> list[Block]:
    able = np.ones(final.shape, np.bool_)
    return cover_by_values(cover(final >= 0, able, least), final, able, least)


def noisy(rows: int, columns: int, seed: int, share: float = 0.05) -> Table:
    """A table in which a few cells are set, to one of five values."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random((rows, columns)) < share, rng.integers(0, 5, (rows, columns)), -1)


def test_who_has_the_properties_with_other_values_is_no_member_and_who_lacks_some_is() -> None:
    final = noisy(300, 12, 1)
    final[:40, :5] = (10, 11, 12, 13, 14)
    final[:6, 0], final[:6, 1] = -1, -1  # three of five properties, as the policy has them
    final[60:70, :3] = np.random.default_rng(2).integers(0, 5, (10, 3))  # three of five, set to anything
    final[60:70, 3:5] = -1
    (policy,) = found_in(final)
    assert policy.columns == (0, 1, 2, 3, 4)
    assert policy.rows == tuple(range(40))


def test_who_was_set_all_properties_otherwise_is_a_member_that_deviates() -> None:
    final = noisy(300, 12, 3, 0.01)
    final[:40, :6] = (10, 11, 12, 13, 14, 15)
    final[40, :6] = (0, 1, 2, 3, 4, 0)
    blocks = found_in(final)
    assert [block.rows for block in blocks] == [tuple(range(41))]
    (policy,) = discovered(blocks, final >= 0, final, np.ones(final.shape, np.bool_))
    assert (40, (), (0, 1, 2, 3, 4, 5)) in [tuple(one) for one in policy.deviations]


def test_a_property_that_members_have_by_chance_is_none_of_the_policy_s() -> None:
    final = np.full((300, 12), -1)
    final[:30, :4] = (10, 11, 12, 13)
    final[:17, 4] = np.arange(17) % 5
    rng = np.random.default_rng(4)
    final[30:, 4] = np.where(rng.random(270) < 0.5, rng.integers(0, 5, 270), -1)
    (policy,) = found_in(final)
    assert policy.columns == (0, 1, 2, 3)


def test_a_property_whose_value_is_each_resource_s_own_stays() -> None:
    final = noisy(300, 12, 5, 0.01)
    final[:30, :4] = (10, 11, 12, 13)
    final[:30, 3] = np.arange(100, 130)
    (policy,) = found_in(final)
    assert (policy.columns, policy.rows) == ((0, 1, 2, 3), tuple(range(30)))


def test_policies_of_which_one_has_the_properties_of_the_other_are_told_apart_by_their_values() -> None:
    final = noisy(400, 30, 6, 0.02)
    final[:90, [2, 10, 13, 18, 23]] = (10, 11, 12, 13, 14)
    final[80:160, [2, 10, 18]] = (20, 21, 22)
    found = {block.columns: block.rows for block in found_in(final)}
    assert set(found) == {(2, 10, 13, 18, 23), (2, 10, 18)}
    assert set(range(90, 160)) <= set(found[2, 10, 18]) <= set(range(80, 160))
    assert set(range(80)) <= set(found[2, 10, 13, 18, 23]) <= set(range(90))


def test_a_property_goes_to_the_policy_whose_resources_have_it_though_most_are_the_other_one_s_too() -> None:
    final = np.full((45, 11), -1)
    final[:6, 4:8] = (20, 21, 22, 23)
    final[np.ix_((0, 1, 2, 3, 6, 7, 8, 9), range(4))] = (10, 11, 12, 13)
    final[8:10, 0] = -1
    begun = [Block((0, 4, 5, 6, 7), tuple(range(6)), 1.0), Block((1, 2, 3), (0, 1, 2, 3, 6, 7, 8, 9), 1.0)]
    found = cover_by_values(begun, final, np.ones(final.shape, np.bool_))
    assert {block.columns: block.rows for block in found} == {
        (0, 1, 2, 3): (0, 1, 2, 3, 6, 7, 8, 9),
        (4, 5, 6, 7): tuple(range(6)),
    }


def test_rows_that_have_a_policy_s_properties_by_another_one_of_several_varieties_are_the_other_one_s() -> None:
    final = np.full((400, 12), -1)
    final[:60, :3] = (10, 11, 12)
    for variety in range(3):
        final[60 + 20 * variety : 80 + 20 * variety, :7] = np.arange(7) + 20 + 10 * variety
    found = {block.columns: block.rows for block in found_in(final)}
    assert found == {(0, 1, 2): tuple(range(60)), tuple(range(7)): tuple(range(60, 120))}


def test_a_row_with_other_values_is_left_where_the_others_have_a_property_that_it_lacks() -> None:
    final = np.full((44, 11), -1)
    final[:6, 6:10] = (20, 21, 22, 23)
    final[4:6, 8] = -1
    final[20:23, 8] = (4, 5, 6)
    final[6, 6:8] = (3, 5)
    begun = [Block((6, 7, 9), tuple(range(7)), 1.0)]
    (policy,) = cover_by_values(begun, final, np.ones(final.shape, np.bool_))
    assert (policy.columns, policy.rows) == ((6, 7, 8, 9), tuple(range(6)))


def test_a_policy_that_stands_out_by_its_values_alone_is_found() -> None:
    rng = np.random.default_rng(7)
    final = np.where(rng.random((400, 10)) < 0.5, rng.integers(0, 40, (400, 10)), -1)
    final[:25, 2:5] = (50, 51, 52)
    assert found_in(final)[0].columns == (2, 3, 4)
    assert found_in(final)[0].rows == tuple(range(25))
    assert cover(final >= 0) == []


def test_varieties_are_told_though_no_resource_has_all_of_their_values() -> None:
    final = np.full((60, 6), -1)
    final[:20] = np.arange(6)
    final[20:40] = np.arange(10, 16)
    for row in range(20, 40):
        final[row, row % 6] = -1
    blocks = found_in(final)
    (policy,) = discovered(blocks, final >= 0, final, np.ones(final.shape, np.bool_))
    assert [one.values for one in policy.varieties] == [tuple(range(6)), tuple(range(10, 16))]


@pytest.mark.parametrize("seed", range(3))
def test_noise_alone_has_no_policy_whatever_its_values(seed: int) -> None:
    assert found_in(noisy(600, 40, seed, 0.15)) == []


def test_rows_that_cannot_have_a_property_are_no_members() -> None:
    final, able = np.full((80, 6), -1), np.ones((80, 6), np.bool_)
    final[:20, :4] = 7
    final[40:60, :3] = 7
    able[40:, 3] = False
    for block in cover_by_values(cover(final >= 0, able), final, able):
        assert able[np.ix_(block.rows, block.columns)].all()


@settings(max_examples=40, deadline=None)
@given(
    arrays(np.int64, st.tuples(st.integers(0, 40), st.integers(0, 8)), elements=st.integers(-1, 2)), st.integers(1, 6)
)
def test_whatever_the_values_policies_are_well_formed_and_the_same_again(final: Table, least: int) -> None:
    blocks = found_in(final, least)
    assert blocks == found_in(final, least)
    for block in blocks:
        assert len(block.rows) >= least
        assert len(block.columns) >= 2
        assert block.bits > 0
        assert list(block.rows) == sorted(set(block.rows))
        assert list(block.columns) == sorted(set(block.columns))
