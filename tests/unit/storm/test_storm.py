"""Storms: when hosts join, how attempts go on, and what outcomes say; no clock and no network."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import inf, isclose, pi, sqrt
from statistics import NormalDist
from typing import Any

import pytest

from controller.storm.attempts import HostTurn, HostVerb, RequestState, StormRequests
from controller.storm.outcome import outcome_of, room_needed, waits_of
from controller.storm.plan import StormOrder, StormShape, peak_per_s, plan_storm


def test_the_peak_of_a_normal_storm_is_that_of_the_distribution_cut_at_three_sigma():
    cut = NormalDist()
    peak = 1 / sqrt(2 * pi) / (cut.cdf(3) - cut.cdf(-3))
    assert isclose(peak_per_s(StormOrder(3600, 600.0)), 3600 / 600 * peak)
    assert round(peak, 5) == 0.40002


def test_normal_joins_come_as_the_distribution_has_them():
    planned = plan_storm(StormOrder(100_000, 10.0), 1000, 1000)
    times_s = [join.at_s for join in planned]
    assert times_s == sorted(times_s)
    assert times_s[0] >= 0 and times_s[-1] <= 60
    for sigmas, share in ((1, 0.6845), (2, 0.9571)):  # of what is within three
        within = sum(abs(at_s - 30) <= 10 * sigmas for at_s in times_s) / len(times_s)
        assert abs(within - share) < 0.005
    at_peak = sum(29 <= at_s < 31 for at_s in times_s) / 2
    assert abs(at_peak / peak_per_s(StormOrder(100_000, 10.0)) - 1) < 0.03


def test_uniform_joins_and_bursts():
    uniform = StormOrder(60_000, 10.0, StormShape.UNIFORM)
    assert peak_per_s(uniform) == 1000
    per_s = Counter(int(join.at_s) for join in plan_storm(uniform, 1000, 100))
    assert set(per_s) == set(range(60))
    assert all(850 < count < 1150 for count in per_s.values())
    burst = StormOrder(100, 10.0, StormShape.BURST)
    assert peak_per_s(burst) == inf
    assert {join.at_s for join in plan_storm(burst, 10, 10)} == {0.0}


@pytest.mark.parametrize(("joins", "hosts", "groups"), [(1, 1, 1), (100, 10, 10), (777, 100, 9), (50, 100, 1)])
def test_no_host_joins_a_group_twice_and_joins_are_spread_over_hosts(joins: int, hosts: int, groups: int):
    planned = plan_storm(StormOrder(joins, 1.0), hosts, groups)
    pairs = {(join.host, join.group) for join in planned}
    assert len(pairs) == len(planned) == joins
    assert all(0 <= host < hosts and 0 <= group < groups for host, group in pairs)
    per_host = Counter(host for host, _ in pairs)
    assert max(per_host.values()) - (min(per_host.values()) if len(per_host) == hosts else 0) <= 1


def test_more_joins_than_there_are_pairs_are_refused():
    with pytest.raises(ValueError, match="10 hosts and 3 groups have 30 joins, not 31"):
        plan_storm(StormOrder(31, 1.0), 10, 3)


def test_ports_that_are_off_come_up_with_their_first_join():
    planned = plan_storm(StormOrder(300, 1.0, off_pct=20), 100, 10)
    assert len({join.host for join in planned if join.is_off}) == 20
    firsts: dict[int, int] = {}
    for number, join in enumerate(planned):
        firsts.setdefault(join.host, number)
    assert all(firsts[join.host] == number for number, join in enumerate(planned) if join.is_off)


def test_the_same_seed_plays_the_same_storm():
    order = StormOrder(200, 1.0, off_pct=10)
    assert plan_storm(order, 50, 10, 7) == plan_storm(order, 50, 10, 7) != plan_storm(order, 50, 10, 8)


# Attempts


def play(
    requests: StormRequests, served: dict[int, tuple[int, float]], tick_s: float = 1 / 1024
) -> list[tuple[float, HostTurn]]:
    """Go on till the end: who is in `served` is done so long after which attempt."""
    now, log, done = 0.0, [], list[tuple[float, int]]()
    while not requests.is_over:
        assert now < 1000
        for turn in requests.turns(now):
            log.append((now, turn))
            attempt, after_s = served.get(turn.number, (0, 0.0))
            if turn.verb is HostVerb.REPORT and requests.states[turn.number].attempts == attempt:
                done.append((now + after_s, turn.number))
        for at_s, number in list(done):
            if at_s <= now:
                requests.done(number, now)
                done.remove((at_s, number))
        now += 1 / 1024
    return log


def test_each_is_asked_at_its_time_and_again_until_it_is_served():
    requests = StormRequests([(0.5, False), (0.0, False), (0.25, True)], 3, 1.0)
    log = play(requests, {0: (1, 0.010), 1: (3, 0.020), 2: (2, 0.0)})
    assert [(at_s, turn.verb, turn.number) for at_s, turn in log] == [
        (0.0, HostVerb.REPORT, 1),
        (0.25, HostVerb.COME_UP, 2),
        (0.25, HostVerb.REPORT, 2),
        (0.5, HostVerb.REPORT, 0),
        (1.0, HostVerb.REPORT, 1),
        (1.25, HostVerb.REPORT, 2),
        (2.0, HostVerb.REPORT, 1),
    ]
    took = [round(state.took_s or 0.0, 2) for state in requests.states]
    assert took == [0.01, 2.02, 1.0]
    assert [state.attempts for state in requests.states] == [1, 3, 2]


def test_who_is_never_served_is_given_up_after_the_last_attempt_and_counts_no_more():
    requests = StormRequests([(0.0, False), (0.0, False)], 2, 0.5)
    log = play(requests, {1: (1, 0.0)})
    assert [turn.number for _, turn in log] == [0, 1, 0]
    assert [state.is_given_up for state in requests.states] == [True, False]
    requests.done(0, 99.0)
    assert requests.states[0].took_s is None
    assert requests.next_s() is None


def test_what_is_done_twice_counts_once():
    requests = StormRequests([(0.0, False), (5.0, False)], 2, 0.5)
    requests.turns(0.0)
    requests.done(0, 0.1)
    requests.done(0, 0.2)
    assert (requests.left, requests.states[0].done_s) == (1, 0.1)
    assert requests.next_s() == 5.0


def test_who_plays_late_is_told_of_and_the_wait_counts_from_when_it_was_due():
    requests = StormRequests([(1.0, False)], 3, 1.0)
    requests.turns(1.25)
    requests.done(0, 1.3)
    (state,) = requests.states
    assert (state.late_s, round(state.took_s or 0, 3)) == (0.25, 0.3)


# Outcomes


def states(*took_ms: float | None, **fields: Any) -> list[RequestState]:
    made = (RequestState(0.0, False, 1, 0.0, None if took is None else took / 1000, took is None) for took in took_ms)
    return [replace(state, **fields) for state in made]


def test_waits_are_those_of_who_was_served():
    waits = waits_of(states(*range(1, 101), None))
    assert (waits.requests, waits.unserved, waits.mean_ms, waits.p50_ms, waits.max_ms) == (101, 1, 50.5, 50.5, 100.0)
    assert waits.p99_ms == pytest.approx(99.01)
    assert waits_of(states(None))[:3] == (1, 1, None)
    assert waits_of([])[:2] == (0, 0)


@pytest.mark.parametrize(
    ("made", "keeps"),
    [
        (states(*[10] * 99, 49), True),
        (states(*[10] * 98, 500, 500), False),
        (states(*[10] * 99, None), False),
        (states(*[10] * 10) + states(2000, is_off=True), True),
        (states(*[10] * 10) + states(None, is_off=True), False),
        (states(2000, is_off=True), True),
    ],
)
def test_a_goal_is_kept_when_all_are_served_and_those_whose_port_was_up_soon(made: list[RequestState], keeps: bool):
    assert outcome_of(made).keeps(50) is keeps


def test_how_many_are_under_way_and_how_often_they_asked():
    made = [
        RequestState(0.0, False, 1, 0.0, 0.3),
        RequestState(0.1, False, 2, 0.0, 0.2),
        RequestState(0.2, False, 1, 0.0, 0.4),
        RequestState(0.3, False, 3, 0.0, None, True),
    ]
    found = outcome_of(made)
    assert (found.busiest, found.attempts, found.unserved) == (3, {1: 2, 2: 1, 3: 1}, 1)


def test_room_is_what_each_takes_times_how_many_come():
    assert room_needed(0.02, 2400) == 48
