"""Drawn streams: their rates, their order, their bounds, and that they repeat under a seed."""

from __future__ import annotations

from itertools import pairwise
from math import inf, nan

import numpy as np
import pytest

from controller.simulation.churn import (
    STORM_PEAK,
    STORM_SIGMAS,
    in_order,
    join_storm,
    link_failures,
    poisson_churn,
    storm_sigma_s,
    storm_times_s,
)
from controller.simulation.dynamics import EventKind, GroupEvent


def generator(seed=1):
    return np.random.default_rng(seed)


def test_a_storm_peaks_at_two_fifths_of_its_joins_over_the_window():
    window_s, count = 10.0, 400_000
    times_s = storm_times_s(count, window_s, generator())
    middle_s = STORM_SIGMAS * storm_sigma_s(window_s)
    width_s = window_s / 10
    near = np.count_nonzero(np.abs(times_s - middle_s) < width_s / 2)
    assert near / width_s == pytest.approx(STORM_PEAK * count / window_s, rel=0.02)
    assert times_s[0] >= 0 and times_s[-1] <= 2 * middle_s
    assert np.all(np.diff(times_s) >= 0)
    assert np.median(times_s) == pytest.approx(middle_s, rel=0.01)


def test_a_storm_holds_every_join_once_with_the_groups_interleaved():
    joins = [(group, host) for group in range(50) for host in range(8)]
    events = list(join_storm(joins, 5.0, generator()))
    assert sorted((event.group, event.member) for event in events) == joins
    assert all(event.kind is EventKind.JOIN for event in events)
    together = sum(a.group == b.group for a, b in pairwise(events))
    assert together < 40
    assert events == list(join_storm(joins, 5.0, generator()))
    assert events != list(join_storm(joins, 5.0, generator(2)))


def test_churn_holds_rate_and_population_and_nobody_joins_twice():
    events = list(poisson_churn(range(20), range(1000), 200.0, 5.0, 100.0, generator()))
    joins = sum(event.kind is EventKind.JOIN for event in events)
    assert joins == pytest.approx(20_000, rel=0.06)
    present, population = set(), []
    for event in events:
        one = (event.group, event.member)
        if event.kind is EventKind.JOIN:
            assert one not in present
            present.add(one)
        else:
            present.remove(one)
        population.append((event.time_s, len(present)))
    late = [count for time_s, count in population if time_s > 30]
    assert np.mean(late) == pytest.approx(1000, rel=0.1)
    times_s = [event.time_s for event in events]
    assert times_s == sorted(times_s) and times_s[-1] <= 100.0
    assert events == list(poisson_churn(range(20), range(1000), 200.0, 5.0, 100.0, generator()))


def test_those_who_are_there_at_the_beginning_leave_too():
    present = [("g", member) for member in range(500)]
    events = list(poisson_churn(["g"], range(500), 0.0, 10.0, 10.0, generator(), present))
    assert {event.kind for event in events} == {EventKind.LEAVE}
    assert len(events) == pytest.approx(500 * (1 - np.exp(-1)), rel=0.1)


def test_links_fail_once_each_and_return_after_their_failure():
    links = [(i, i + 1) for i in range(40)]
    events = link_failures(links, 30, 100.0, 20.0, generator())
    down = [event for event in events if event.kind is EventKind.LINK_DOWN]
    up = {(event.u, event.v): event.time_s for event in events if event.kind is EventKind.LINK_UP}
    assert len({(event.u, event.v) for event in down}) == len(down) == 30
    assert up and all(up[event.u, event.v] > event.time_s for event in down if (event.u, event.v) in up)
    assert all(0 <= event.time_s <= 100 for event in events)
    assert link_failures(links, 0, 100.0, 20.0, generator()) == []


def test_streams_are_merged_by_time_the_first_one_first():
    one = [GroupEvent(time_s, EventKind.JOIN, "a") for time_s in (1.0, 2.0)]
    other = [GroupEvent(time_s, EventKind.JOIN, "b") for time_s in (0.5, 2.0, 3.0)]
    assert [(event.time_s, event.group) for event in in_order(one, other)] == [
        (0.5, "b"),
        (1.0, "a"),
        (2.0, "a"),
        (2.0, "b"),
        (3.0, "b"),
    ]


@pytest.mark.parametrize("bad", [0.0, -1.0, nan, inf])
def test_times_and_rates_that_cannot_be_are_refused(bad):
    with pytest.raises(ValueError, match="window_s"):
        storm_sigma_s(bad)
    with pytest.raises(ValueError, match="holding_s"):
        poisson_churn(["g"], ["h"], 1.0, bad, 1.0, generator())
    with pytest.raises(ValueError, match="repair_s"):
        link_failures([(1, 2)], 1, 1.0, bad, generator())


def test_more_failures_than_links_and_churn_of_nobody_are_refused():
    with pytest.raises(ValueError, match="2 links shall fail, and there are 1"):
        link_failures([(1, 2)], 2, 1.0, 1.0, generator())
    with pytest.raises(ValueError, match="groups"):
        poisson_churn([], ["h"], 10.0, 1.0, 10.0, generator())
    with pytest.raises(ValueError, match="joins_per_s"):
        poisson_churn(["g"], ["h"], -1.0, 1.0, 10.0, generator())
