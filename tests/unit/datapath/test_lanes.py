"""Lanes: who is first, and that nobody starves."""

from __future__ import annotations

from collections import Counter

import pytest

from controller.datapath.lanes import Lanes, Urgency

PROMPT, BULK = Urgency.PROMPT, Urgency.BULK


def filled(prompt, bulk):
    lanes = Lanes()
    for number in range(bulk):
        lanes.add(("bulk", number), BULK)
    for number in range(prompt):
        lanes.add(("prompt", number), PROMPT)
    return lanes


def test_what_somebody_waits_for_comes_first_in_the_next_batch():
    lanes = filled(2, 1000)
    assert lanes.take(5) == [("prompt", 0), ("prompt", 1), ("bulk", 0), ("bulk", 1), ("bulk", 2)]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 7, 16, 100])
def test_neither_lane_starves(limit):
    lanes = filled(100_000, 100_000)
    taken = Counter(kind for _ in range(400) for kind, _ in lanes.take(limit))
    assert sum(taken.values()) == 400 * limit
    assert taken["bulk"] == pytest.approx(400 * limit / 4, rel=0.02)


@pytest.mark.parametrize(("prompt", "bulk"), [(1000, 0), (0, 1000), (1000, 3), (3, 1000)])
def test_a_lane_has_what_the_other_leaves(prompt, bulk):
    assert len(filled(prompt, bulk).take(100)) == 100


def test_a_lane_that_was_alone_for_long_has_no_claim_on_the_other():
    lanes = filled(100_000, 100_000)
    for _ in range(500):
        lanes.take(10)
    lanes.prompt.clear()
    for _ in range(500):
        lanes.take(10)
    for number in range(100):
        lanes.add(("prompt", number), PROMPT)
    assert sum(kind == "prompt" for kind, _ in lanes.take(10)) >= 7


def test_first_come_is_first_served_within_a_lane_and_asking_again_changes_no_place():
    lanes = filled(3, 3)
    lanes.add(("prompt", 0), PROMPT)
    lanes.add(("bulk", 0), BULK)
    assert lanes.take(6) == [(kind, number) for kind in ("prompt", "bulk") for number in range(3)]
    assert not lanes


def test_a_key_is_in_one_lane_and_moves_to_where_somebody_waits():
    lanes = filled(1, 3)
    lanes.add(("bulk", 1), PROMPT)
    lanes.add(("prompt", 0), BULK)
    lanes.hurry(("bulk", 2))
    lanes.hurry(("unknown", 0))
    assert list(lanes.prompt) == [("prompt", 0), ("bulk", 1), ("bulk", 2)]
    assert list(lanes.bulk) == [("bulk", 0)]
    assert lanes.keys() == {("prompt", 0), ("bulk", 0), ("bulk", 1), ("bulk", 2)}
    assert ("bulk", 0) in lanes and ("unknown", 0) not in lanes


def test_bulk_is_replaced_as_a_whole_but_for_what_is_prompt():
    lanes = filled(1, 2)
    lanes.set_bulk([("prompt", 0), ("bulk", 7)])
    assert (list(lanes.prompt), list(lanes.bulk)) == ([("prompt", 0)], [("bulk", 7)])
    lanes.clear()
    assert not lanes and lanes.take(5) == []
