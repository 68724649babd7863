"""Lanes: who is first, and that nobody starves."""

from __future__ import annotations

from collections import Counter

import pytest

from controller.datapath.lanes import BatchShares, Lanes, Urgency

PROMPT, BULK = Urgency.PROMPT, Urgency.BULK


def filled(prompt, bulk):
    lanes = Lanes()
    for number in range(bulk):
        lanes.add(("bulk", number), BULK)
    for number in range(prompt):
        lanes.add(("prompt", number), PROMPT)
    return lanes


def taken(lanes, limit, shares=None):
    """Take from the lanes of the only app that has something to send to a switch."""
    (keys,) = (BatchShares() if shares is None else shares).take([lanes], limit)
    return keys


def test_what_somebody_waits_for_comes_first_in_the_next_batch():
    lanes = filled(2, 1000)
    assert taken(lanes, 5) == [("prompt", 0), ("prompt", 1), ("bulk", 0), ("bulk", 1), ("bulk", 2)]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 7, 16, 100])
def test_neither_lane_starves(limit):
    lanes, shares = filled(100_000, 100_000), BatchShares()
    kinds = Counter(kind for _ in range(400) for kind, _ in taken(lanes, limit, shares))
    assert sum(kinds.values()) == 400 * limit
    assert kinds["bulk"] == pytest.approx(400 * limit / 4, rel=0.02)


@pytest.mark.parametrize(("prompt", "bulk"), [(1000, 0), (0, 1000), (1000, 3), (3, 1000)])
def test_a_lane_has_what_the_other_leaves(prompt, bulk):
    assert len(taken(filled(prompt, bulk), 100)) == 100


def test_a_lane_that_was_alone_for_long_has_no_claim_on_the_other():
    lanes, shares = filled(100_000, 100_000), BatchShares()
    for _ in range(500):
        taken(lanes, 10, shares)
    lanes.prompt.clear()
    for _ in range(500):
        taken(lanes, 10, shares)
    for number in range(100):
        lanes.add(("prompt", number), PROMPT)
    assert sum(kind == "prompt" for kind, _ in taken(lanes, 10, shares)) >= 7


def test_first_come_is_first_served_within_a_lane_and_asking_again_changes_no_place():
    lanes = filled(3, 3)
    lanes.add(("prompt", 0), PROMPT)
    lanes.add(("bulk", 0), BULK)
    assert taken(lanes, 6) == [(kind, number) for kind in ("prompt", "bulk") for number in range(3)]
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
    assert not lanes and taken(lanes, 5) == []


def counted(apps, limit, shares):
    return [len(keys) for keys in shares.take(apps, limit)]


def test_apps_have_equal_shares_and_what_one_leaves_the_others_have():
    assert counted([filled(0, 100), filled(0, 100), filled(0, 100)], 30, BatchShares()) == [10, 10, 10]
    assert counted([filled(0, 100), filled(0, 4), filled(0, 100)], 30, BatchShares()) == [13, 4, 13]
    assert counted([filled(3, 0), filled(0, 2), filled(1, 0)], 30, BatchShares()) == [3, 2, 1]
    assert counted([filled(0, 100), filled(0, 0)], 30, BatchShares()) == [30, 0]


def test_what_hosts_wait_for_is_first_whichever_app_has_it():
    programming, joins = filled(0, 1000), filled(20, 0)
    assert counted([programming, joins], 16, BatchShares()) == [4, 12]
    assert taken(joins, 100) == [("prompt", number) for number in range(12, 20)]
    assert counted([filled(0, 1000), filled(5, 0)], 16, BatchShares()) == [11, 5]


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 16])
def test_no_app_starves(limit):
    apps, shares = [filled(100_000, 0), filled(0, 100_000), filled(100_000, 100_000)], BatchShares()
    counts = [0, 0, 0]
    for _ in range(600):
        counts = [before + count for before, count in zip(counts, counted(apps, limit, shares), strict=True)]
    assert sum(counts) == 600 * limit
    assert min(counts) >= 600 * limit / 10
