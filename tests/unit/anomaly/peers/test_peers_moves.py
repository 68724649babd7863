from __future__ import annotations

import numpy as np
import pytest

from controller.anomaly.peers.diagnosis import Diagnosis, TimeSpan, diagnose
from controller.anomaly.peers.moves import blamed_by_way, moved
from controller.anomaly.peers.settings import PeerSettings
from controller.anomaly.series import RawSeries, SeriesName

PAST = np.array([[90.0, 100, 110]] * 4)
CHAIN = PeerSettings(window_samples=20, shift_samples=10, smoothing_samples=3)
STEP_S, SAMPLES = 15.0, 600
FIRST = 500


def test_who_carries_what_others_lost_took_it_over():
    found = moved(np.array([[20.0, 20, 20, 340]]), PAST)
    assert found.taken.tolist() == [[0, 0, 0, 1]]
    assert found.has_lost.tolist() == [[True, True, True, False]]


def test_as_much_is_taken_over_as_was_lost():
    found = moved(np.array([[60.0, 100, 100, 200]]), PAST)
    assert found.taken.tolist() == [[0, 0, 0, pytest.approx(0.4)]]
    assert not found.has_lost.any()


def test_what_is_left_is_as_the_past_was():
    assert moved(np.array([[10.0, 100, 100, 195]]), PAST).taken[0, 3] == 1


@pytest.mark.parametrize(
    "level",
    [
        [20.0, 20, 20, 20],
        [300.0, 300, 300, 300],
        [100.0, 100, 100, 300],
        [20.0, 100, 100, 100],
        [91.0, 95, 109, 105],
        [np.nan, np.nan, np.nan, 300],
    ],
)
def test_nothing_moved_where_all_changed_alike_or_one_alone_did(level: list[float]):
    found = moved(np.array([level]), PAST)
    assert not found.taken.any()
    assert not found.has_lost.any()


def test_in_a_large_group_two_that_changed_say_nothing_of_each_other():
    level = np.full((1, 10), 100.0)
    level[0, :2] = 20, 180
    assert not moved(level, np.array([[90.0, 100, 110]] * 10)).taken.any()


def test_members_without_a_past_neither_lost_nor_gained():
    past = PAST.copy()
    past[3] = np.nan
    assert not moved(np.array([[20.0, 20, 20, 340]]), past).taken.any()


def test_who_lost_is_blamed_and_who_took_over_is_excused():
    way = moved(np.array([[20.0, 20, 100, 260], [60, 100, 100, 200]]), PAST)
    scores, own = np.array([[0.4, 9, 0.6, 7], [2, 1, 1, 5]]), np.array([[6.0, 6, 0.2, 8], [3, 1, 1, 5]])
    assert blamed_by_way(scores, own, way).tolist() == [[6, 9, 0.6, 0], [2, 1, 1, pytest.approx(3)]]


def uplinks(members: int, silent: int, metric: str = "tx_bytes", trained: int = 300) -> Diagnosis:
    """Return what is found of uplinks of which some fall silent and the others take over what these carried."""
    rates = np.random.default_rng(4).gamma(50, 2, (members, SAMPLES))
    rates[:silent, FIRST:] = 0.1
    rates[silent:, FIRST:] *= members / (members - silent)
    at_s = STEP_S * np.arange(1, SAMPLES + 1)
    series = [RawSeries(SeriesName(f"up{number + 1}", "up", metric), at_s, one) for number, one in enumerate(rates)]
    return diagnose(series, CHAIN, TimeSpan(0, STEP_S * trained))


@pytest.mark.parametrize("trained", [150, 490])
@pytest.mark.parametrize(("members", "silent"), [(2, 1), (3, 1), (3, 2), (4, 1), (4, 2), (4, 3), (5, 4), (6, 4)])
def test_those_that_fell_silent_are_told_however_many_they_are(members: int, silent: int, trained: int):
    found = uplinks(members, silent, trained=trained)
    assert {one.member.name for one in found.faulty} == {f"up{number + 1}" for number in range(silent)}
    assert all(one.first_s > STEP_S * FIRST for one in found.faulty)


def test_of_what_is_no_throughput_it_does_not_count_which_way_it_changed():
    assert "up3" in {one.member.name for one in uplinks(3, 2, metric="sessions").faulty}
