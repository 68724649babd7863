"""Entries that somebody changes by hand, under all three apps: a check finds all and invents none, and cures them.

While it does, receivers of groups whose packets meet none of the changed entries get each packet once.
"""

from __future__ import annotations

from collections import Counter

import pytest
from corruption import KINDS, CorruptedFabric

AT_A_TIME = 40


@pytest.fixture(params=range(3), ids=lambda seed: f"seed-{seed}")
def fabric(request: pytest.FixtureRequest) -> CorruptedFabric:
    fabric = CorruptedFabric(request.param)
    assert not fabric.differences()
    fabric.survey()
    fabric.settle()
    assert not fabric.reported()
    return fabric


def assert_whole(fabric: CorruptedFabric) -> None:
    """All entries are as they shall be, and all members get their group once."""
    assert not fabric.differences()
    for group in fabric.groups:
        sender = fabric.senders[group]
        wanted = {(host.dpid, host.port_no) for host in fabric.members[group] if host != sender}
        assert fabric.receivers(group) == Counter(wanted)


def test_all_are_found_none_invented_and_a_repair_takes_nothing_from_anybody(fabric: CorruptedFabric) -> None:
    for kind in (*KINDS, None):
        ways = fabric.ways()
        changed = Counter(fabric.corrupt(kind) for _ in range(AT_A_TIME))
        assert len(changed) == AT_A_TIME
        assert fabric.differences() == changed
        edits = fabric.edit_count
        fabric.survey()
        fabric.settle(0.1)
        assert fabric.reported() == changed
        assert fabric.edit_count == edits, "a report alone changes nothing"
        untouched = [group for group, way in fabric.ways().items() if way == ways[group]]
        before = {group: fabric.receivers(group) for group in untouched}
        assert any(before.values())
        fabric.survey(repair=True)
        for number, _ in enumerate(fabric.steps(0.5)):
            for group in untouched[number % 3 :: 3]:
                assert fabric.receivers(group) == before[group]
        assert fabric.reported() == changed
        assert fabric.edit_count - edits <= 2 * AT_A_TIME
        assert_whole(fabric)


def test_all_are_found_and_cured_beside_joins_and_leaves(fabric: CorruptedFabric) -> None:
    changed = Counter(fabric.corrupt() for _ in range(AT_A_TIME))
    before = fabric.differences()
    fabric.survey(repair=True)
    more: Counter[object] = Counter()
    for number, _ in enumerate(fabric.steps(0.5)):
        if number % 7 == 0 and number < 400:
            fabric.churn()
        if number % 11 == 0 and number < 220:
            more[fabric.corrupt()] += 1
    assert not fabric.reported() - (changed + before + more), "none is invented"
    left = fabric.differences()
    assert not left - more, "what was there before is cured"
    fabric.survey(repair=True)
    fabric.settle()
    assert fabric.reported() == left
    fabric.advance(3.0)
    assert_whole(fabric)


def test_what_is_foreign_is_counted_and_stays(fabric: CorruptedFabric) -> None:
    added = [fabric.add_foreign() for _ in range(20)]
    fabric.corrupt("missing")
    fabric.survey(repair=True)
    fabric.settle()
    assert fabric.foreign_count() == 20
    assert all(fabric.switches[dpid].rules[rule.key] == rule for dpid, rule in added)
    assert not fabric.differences()
