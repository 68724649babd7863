"""The states of a table: entered below one bound, left above another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.overcommit.states import ENTERED_BELOW_PCT, LEFT_ABOVE_PCT, TableRoom, next_room


@pytest.mark.parametrize(
    ("before", "free", "after"),
    [
        (TableRoom.HIGH, 40, TableRoom.HIGH),
        (TableRoom.HIGH, 39, TableRoom.SOFT),
        (TableRoom.SOFT, 60, TableRoom.SOFT),
        (TableRoom.SOFT, 61, TableRoom.HIGH),
        (TableRoom.HIGH, 19, TableRoom.HARD),
        (TableRoom.HARD, 30, TableRoom.HARD),
        (TableRoom.HARD, 31, TableRoom.SOFT),
        (TableRoom.HARD, 61, TableRoom.HIGH),
        (TableRoom.HIGH, 9, TableRoom.LOW),
        (TableRoom.LOW, 15, TableRoom.LOW),
        (TableRoom.LOW, 16, TableRoom.HARD),
        (TableRoom.LOW, 0, TableRoom.LOW),
    ],
)
def test_bounds_of_a_table_of_a_thousand(before: TableRoom, free: int, after: TableRoom):
    assert next_room(before, free, 1000) is after


@given(st.sampled_from(TableRoom), st.integers(0, 1000))
def test_a_state_holds_while_nothing_changes_and_keeps_its_bounds(before: TableRoom, free: int):
    room = next_room(before, free, 1000)
    assert next_room(room, free, 1000) is room
    for state in (TableRoom.SOFT, TableRoom.HARD, TableRoom.LOW):
        if free / 10 < ENTERED_BELOW_PCT[state]:
            assert room >= state
        if free / 10 > LEFT_ABOVE_PCT[state]:
            assert room < state


def test_a_table_without_entries_has_no_room():
    assert next_room(TableRoom.HIGH, 0, 0) is TableRoom.LOW
