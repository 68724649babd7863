"""What a table takes is found by what it refuses: soon where it takes ever fewer, and anew where it takes more."""

from __future__ import annotations

from itertools import pairwise

import pytest

from controller.overcommit.found_room import GROWS_FIRST_S, GROWS_LAST_S, FoundRoom


@pytest.mark.parametrize("takes", [1, 40, 1000, 1900])
def test_a_table_that_holds_more_than_it_takes_by_now_is_found_out_soon(takes):
    room, refusals = FoundRoom(2000, 0.0), 1
    while (held := room.entries - 1) >= takes:  # somebody left for who is to come in, and is refused nevertheless
        room.refused(held, 0.0)
        refusals += 1
    assert refusals <= 16
    assert 1 <= room.entries <= takes
    assert room.entries >= takes - (2000 - takes) - 1


def test_the_same_number_each_time_is_taken_as_it_is():
    room = FoundRoom(500, 0.0)
    for second in range(20):
        room.refused(500, second)
    assert room.entries == 500


def test_a_table_that_has_more_room_by_now_is_used_to_its_full():
    room, now_s = FoundRoom(500, 0.0), 0.0
    while room.entries < 2000:
        now_s += 1.0
        room.grow(2000, now_s)
        assert now_s < 10 * GROWS_FIRST_S
    assert room.entries == 2000
    assert not room.grow(2000, now_s + GROWS_LAST_S)


def test_a_table_that_never_takes_more_is_asked_ever_more_seldom():
    room, now_s, asked_s = FoundRoom(500, 0.0), 0.0, []
    while now_s < 86400:
        now_s += 1.0
        if room.grow(2000, now_s):
            asked_s.append(now_s)
            room.refused(500, now_s)
            assert room.entries == 500
    gaps = [later - sooner for sooner, later in pairwise(asked_s)]
    assert asked_s[0] == GROWS_FIRST_S and gaps == sorted(gaps) and gaps[-1] == GROWS_LAST_S
    assert len(asked_s) < 24 + 7


def test_nothing_is_tried_right_after_a_refusal():
    room = FoundRoom(500, 0.0)
    room.refused(500, GROWS_FIRST_S - 1)
    assert not room.grow(2000, GROWS_FIRST_S + 1)
    assert room.grow(2000, 2 * GROWS_FIRST_S)
