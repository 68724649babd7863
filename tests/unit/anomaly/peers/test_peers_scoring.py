from __future__ import annotations

import numpy as np
import pytest

from controller.anomaly.peers.combination import combined, kind_of, verdict
from controller.anomaly.peers.distances import sorted_windows
from controller.anomaly.peers.past import (
    KEPT_QUANTILES,
    KEPT_WINDOWS,
    LEAST_OWN_WINDOWS,
    levelled,
    nearest_distance,
    usual_sizes,
)
from controller.anomaly.peers.resample import moving_average
from controller.anomaly.peers.scoring import (
    DISTANCE_FORMS,
    TRAINED_WINDOWS,
    Distances,
    beyond_shared,
    beyond_usual,
    fences,
    measure,
    rated,
    scored,
    threshold_of,
    thresholds,
    window_count,
    with_second_witness,
)
from controller.anomaly.peers.settings import PeerSettings

SETTINGS = PeerSettings(window_samples=20, shift_samples=10, smoothing_samples=3)
CELLS = 2400
TRAINED = np.arange(window_count(CELLS, SETTINGS)) < 200
LAST = slice(-20, None)


def noise(members: int = 8, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).gamma(4, 2, (members, CELLS))


def scores(values: np.ndarray, settings: PeerSettings = SETTINGS, *, trained: bool = True) -> np.ndarray:
    training = TRAINED if trained else None
    return rated(measure(values, settings, training), settings, training)


@pytest.mark.parametrize("form", DISTANCE_FORMS)
def test_every_form_names_the_one_that_is_slow(form: str):
    values = noise()
    values[3, -220:] += 12
    settings = PeerSettings(window_samples=20, shift_samples=10, smoothing_samples=3, form=form)
    found = scores(values, settings)
    assert (found[LAST, 3] > 1.5).all()
    assert np.mean(np.delete(found, 3, axis=1)[LAST] > 1) < 0.05
    assert (found[TRAINED] <= 1).all()


def test_a_score_above_one_is_more_than_half_of_the_distances_above_the_threshold():
    values = noise()
    values[0, -300:] += 6
    settings = PeerSettings(window_samples=20, shift_samples=10, smoothing_samples=3, own_history=False, margin=0.7)
    distances = measure(values, settings, TRAINED)
    threshold = thresholds(distances.peers, TRAINED, "member") * 0.7
    assert np.array_equal(rated(distances, settings, TRAINED) > 1, distances.peers > threshold)


def test_standing_differences_are_learned_or_removed():
    values = noise() + 30 * np.arange(8)[:, None]
    values[5, -220:] += 12
    for settings in (
        SETTINGS,
        PeerSettings(window_samples=20, shift_samples=10, smoothing_samples=3, offsets="remove"),
    ):
        found = scores(values, settings)
        assert np.mean(found[LAST, :5] > 1) < 0.05
    assert (found[LAST, 5] > 1).all()


def test_a_majority_that_changes_is_blamed_and_not_the_ones_that_stayed():
    values = noise(5)
    values[:3, -220:] += 25
    alone = PeerSettings(window_samples=20, shift_samples=10, smoothing_samples=3, own_history=False)
    assert (scores(values, alone)[LAST, 4] > 1).all()
    found = scores(values)
    assert (found[LAST, :3] > 1).all()
    assert np.mean(found[LAST, 3:] > 1) < 0.1


def test_a_load_that_all_members_share_is_no_fault():
    values = noise()
    values[:, -220:] *= 3
    assert np.mean(scores(values)[LAST] > 1) < 0.1


def unlike_each_other() -> np.ndarray:
    """Return members whose level turns through the day, each at a time of its own, so that peers always differ."""
    hours = np.arange(CELLS) / 240 * 2 * np.pi
    waves = 20 + 10 * np.sin(hours + np.arange(8)[:, None])
    return waves + np.random.default_rng(4).normal(0, 1, (8, CELLS))


def test_what_a_member_never_did_is_told_among_peers_that_always_differ():
    values = unlike_each_other()
    values[3, -220:] = 29 + np.random.default_rng(5).normal(0, 1, 220)
    alone = PeerSettings(window_samples=20, shift_samples=10, smoothing_samples=3, own_history=False)
    settled = slice(-17, None)
    assert (scores(values, alone)[settled, 3] < 1).mean() > 0.5
    values[3, -220:] += 15
    found = scores(values)
    assert (found[settled, 3] > 1).all()
    assert np.mean(np.delete(found, 3, axis=1)[LAST] > 1) < 0.05


def test_windows_of_the_past_are_kept_where_there_are_enough():
    values = noise()
    values[2, :1900] = np.nan
    few = np.arange(len(TRAINED)) < LEAST_OWN_WINDOWS - 1
    assert not measure(values, SETTINGS, few).learnt.past.is_known.any()
    enough = np.arange(len(TRAINED)) < LEAST_OWN_WINDOWS
    known = measure(values, SETTINGS, enough).learnt.past
    assert known.is_known.tolist() == [member != 2 for member in range(8)]
    assert known.quantiles.shape == (LEAST_OWN_WINDOWS, 8, KEPT_QUANTILES)
    many = measure(noise(), SETTINGS, TRAINED).learnt.past
    assert 0.9 * KEPT_WINDOWS < len(many.ends_s) <= KEPT_WINDOWS
    assert not measure(values, SETTINGS).learnt.past.is_known.any()


def test_a_window_is_not_compared_with_those_it_overlaps():
    values = noise(1)
    past = measure(values, SETTINGS, TRAINED).learnt.past
    samples = sorted_windows(values, 20, 10)
    ends_s = SETTINGS.window_s + np.arange(len(samples)) * 10 * SETTINGS.interval_s
    smoothed = sorted_windows(moving_average(values, 3), 20, 10)
    apart = nearest_distance(smoothed, ends_s, past, SETTINGS.window_s)
    among_itself = nearest_distance(smoothed, ends_s, past, 0.0)
    kept = np.isin(ends_s, past.ends_s)
    assert (among_itself[kept] < 1e-5).all()
    assert (apart[kept] > 0.01).all()


DAILY = PeerSettings(interval_s=300.0, window_samples=20, shift_samples=10, smoothing_samples=1)
DAY_CELLS, DAYS = 288, 16


def drifting() -> np.ndarray:
    """Return members with a day and a night, whose levels each grow or fall by up to a tenth a day."""
    days = np.arange(DAYS * DAY_CELLS) / DAY_CELLS
    levels = np.exp(np.linspace(-0.1, 0.1, 6)[:, None] * days) * (1 + 0.3 * np.sin(2 * np.pi * days))
    return 100 * levels * np.exp(np.random.default_rng(7).normal(0, 0.1, levels.shape))


def own_scores(values: np.ndarray) -> np.ndarray:
    trained = np.arange(window_count(values.shape[1], DAILY)) * 10 + 20 <= 10 * DAY_CELLS
    found = measure(values, DAILY, trained)
    return scored(found, DAILY, threshold_of(found, DAILY, trained)).own


def test_a_level_that_drifts_for_days_is_not_unlike_the_own_past():
    trained = np.arange(window_count(DAYS * DAY_CELLS, DAILY)) * 10 + 20 <= 10 * DAY_CELLS
    found = measure(drifting(), DAILY, trained)
    as_it_is = found.own / threshold_of(found, DAILY, trained).own
    assert np.mean(as_it_is[-100:] > 1) > 0.1
    assert np.mean(own_scores(drifting())[-100:] > 1) < 0.02


def test_a_burst_is_unlike_the_own_past_of_a_level_that_drifts():
    values = drifting()
    values[3, 13 * DAY_CELLS + 200 : 13 * DAY_CELLS + 240] *= 10
    found = own_scores(values)[(13 * DAY_CELLS + 200) // 10 + 1 : (13 * DAY_CELLS + 220) // 10]
    assert (found[:, 3] > 1).all()


def test_samples_stand_beside_the_median_of_the_day_before_them():
    values = np.ones((3, 4 * DAY_CELLS))
    values[0, 2 * DAY_CELLS :] = 2
    values[1, : 3 * DAY_CELLS] = np.nan
    reference = np.array([[1.0, 1, 1], [np.nan] * 3, [0, 0, 0]])
    sizes = usual_sizes(reference, 0.5)
    assert sizes.tolist() == [1, 0.5, 0.5]
    values[2] = 0.5
    found = levelled(values, reference, sizes, DAILY)
    assert (found[0, : 2 * DAY_CELLS] == 0).all()
    assert found[0, 2 * DAY_CELLS] == np.arcsinh(2) - np.arcsinh(1)
    assert found[0, 3 * DAY_CELLS] == 0
    assert np.isnan(found[1, : 3 * DAY_CELLS]).all()
    assert (found[1, 3 * DAY_CELLS + DAY_CELLS // 2 :] == 0).all()
    assert (found[2] == 0).all()
    short = levelled(values[:, :100] * 3, reference, sizes, DAILY)
    assert (short[2] == np.arcsinh(3)).all()
    assert np.allclose(short[0], np.arcsinh(3) - np.arcsinh(1))


def test_without_training_a_difference_that_is_always_there_is_none():
    always, fault = np.full((20, 1), 7.0), np.full((20, 1), 7.0)
    fault[12:18] = 9.5
    gone = np.full((20, 1), np.nan)
    found = beyond_usual(np.concatenate([always, fault, gone], axis=1))
    assert (found[:, 0] == 0).all()
    assert found[:, 1].tolist() == [0] * 12 + [2.5] * 6 + [0] * 2
    assert np.isnan(found[:, 2]).all()


def test_a_change_that_most_share_is_counted_in_units_of_theirs():
    own = np.array([[4.0, 4, 2, 12, np.nan], [0.5, 0.2, 0.1, 3, 0.4], [np.nan, np.nan, 5, np.nan, np.nan]])
    found = beyond_shared(own)
    assert found[0, :4].tolist() == [1, 1, 0.5, 3]
    assert found[1, 3] == 3
    assert found[2, 2] == 5


def test_a_member_alone_is_compared_with_its_past():
    values = noise(1)
    values[0, -220:] += 25
    found = scores(values)
    assert (found[LAST] > 1).all()
    assert np.mean(found[TRAINED.nonzero()[0]] > 1) == 0


def test_a_fault_that_lasts_for_most_of_the_time_is_found_without_training():
    values = noise(16)
    values[2, 600:] += 12
    found = scores(values, trained=False)
    assert np.mean(found[70:, 2] > 1) > 0.9
    assert np.mean(np.delete(found, 2, axis=1) > 1) < 0.02


def test_constant_and_idle_members_do_not_stand_out():
    assert (scores(np.zeros((4, CELLS))) < 1).all()
    idle = np.zeros((6, CELLS))
    idle[:, ::97] = 1
    idle[1, 1000] = 2
    assert np.mean(scores(idle) > 1) < 0.05
    idle[4, -220:] = 5
    assert (scores(idle)[LAST, 4] > 1).all()


def test_members_that_are_not_there_have_no_score_and_change_nobody_else_s():
    values = noise(6)
    gone = values.copy()
    gone[5, 1200:] = np.nan
    found = scores(gone)
    assert np.isnan(found[LAST, 5]).all()
    assert not np.isnan(found[:, :5]).any()
    assert np.mean(found[LAST, :5] > 1) < 0.05


def test_few_training_windows_have_not_seen_the_largest_deviation():
    distances = np.random.default_rng(3).exponential(10, (400, 500))
    few = thresholds(distances, np.arange(400) < 10, "member")
    many = thresholds(distances, np.arange(400) < TRAINED_WINDOWS, "member")
    assert np.median(few) == pytest.approx(np.median(many), rel=0.25)


def test_scopes_share_the_largest_threshold():
    distances = np.array([[5.0, 8, np.nan], [6, 2, np.nan]])
    training = np.ones(TRAINED_WINDOWS, bool)
    distances = np.vstack([distances, np.full((TRAINED_WINDOWS - 2, 3), [2.0, 2, np.nan])])
    assert thresholds(distances, training, "member").tolist() == [6, 8, 7]
    assert thresholds(distances, training, "group").tolist() == [8, 8, 8]
    both = Distances(distances, distances)
    peers = PeerSettings(own_history=False)
    assert rated(both, peers, training, pooled=16.0)[0, :2].tolist() == [5 / 16, 0.5]


def test_one_of_three_is_named():
    values = noise(3)
    values[1, -220:] += 30
    found = scores(values)
    assert (found[LAST, 1] > 1).all()
    assert np.mean(found[LAST][:, [0, 2]] > 1) < 0.05


def test_fences_know_members_without_any_distance():
    found = fences(np.array([[1.0, np.nan], [2, np.nan], [1, np.nan]]))
    assert found[0] <= 2
    assert np.isnan(found[1])


def test_the_second_witness_needs_a_majority_and_an_unchanged_one_that_is_accused():
    peers = np.array([[0.5, 0.5, 0.5, 3.0], [0.5, 0.5, 0.5, 3.0], [0.5, 0.5, 0.5, 0.5]])
    own = np.array([[4.0, 4, 4, 0.2], [4, 0.1, 0.1, 0.2], [4, 4, 4, 4]])
    assert with_second_witness(peers, own).tolist() == [own[0].tolist(), peers[1].tolist(), peers[2].tolist()]
    higher = with_second_witness(np.array([[9.0, 0.5, 0.5, 3.0]]), own[:1])
    assert higher.tolist() == [[9, 4, 4, 0.2]]


def test_between_two_halves_the_one_that_changed_is_at_fault():
    peers = np.array([[3.0, 3, 5, 5], [3, 3, 5, 5], [3, 3, 5, 5]])
    own = np.array([[4.0, 4, 0.2, 0.3], [4, 0.4, 0.2, 0.3], [4, 4, 4, 4]])
    assert with_second_witness(peers, own).tolist() == [own[0].tolist(), peers[1].tolist(), peers[2].tolist()]


def test_of_two_the_one_that_changed_is_at_fault():
    peers, own = np.array([[3.0, 3.0], [3.0, 3.0], [0.5, 0.5]]), np.array([[4.0, 0.2], [0.5, 0.2], [4.0, 0.2]])
    assert with_second_witness(peers, own).tolist() == [[4, 0.2], [3, 3], [0.5, 0.5]]
    of_three = np.full((1, 3), np.nan)
    of_three[0, :2] = 3
    beside = np.array([[4.0, 0.2, np.nan]])
    assert with_second_witness(of_three, beside)[0, :2].tolist() == [4, 0.2]


@pytest.mark.parametrize("seed", range(5))
def test_the_ill_one_of_a_pair_is_named(seed: int):
    rng = np.random.default_rng(seed)
    settings = PeerSettings(window_samples=20, shift_samples=10, smoothing_samples=1)
    values = rng.gamma(4, 2, (2, 1000))
    ill = int(rng.integers(2))
    values[ill, 700:] += 30
    training = np.zeros(99, np.bool_)
    training[:60] = True
    scores = rated(measure(values, settings, training), settings, training)
    assert np.all(scores[72:, ill] > 1)
    assert np.mean(scores[72:, 1 - ill] > 1) < 0.2


def test_few_metrics_count_by_their_maximum_and_many_by_the_ones_furthest_out():
    three = [np.array([[0.5]]), np.array([[2.0]]), np.array([[np.nan]])]
    assert combined(three, 0.05, 30)[0, 0] == 2
    many = [np.array([[0.5]])] * 99 + [np.array([[1000.0]])]
    assert combined(many, 0.05, 30)[0, 0] == pytest.approx((30 + 4 * 0.5) / 5)
    assert np.isnan(combined([np.array([[np.nan]])] * 2, 0.05, 30)[0, 0])


def test_a_member_with_few_metrics_is_not_furthest_out_by_counting_alone():
    rng = np.random.default_rng(1)
    named = []
    for _ in range(50):
        ratios = rng.exponential(0.2, (259, 6))
        ratios[72:, 5] = np.nan
        ratios[:10, 2] = rng.uniform(4, 6, 10)
        ratios[:4, 5] = rng.uniform(4, 6, 4)
        named.append(int(combined([row[None] for row in ratios], 0.05, 30)[0].argmax()))
    assert named == [2] * 50


def test_a_member_with_one_metric_alone_is_judged_by_it():
    ratios = np.full((40, 3), 0.5)
    ratios[1:, 2] = np.nan
    ratios[0, 2] = 4
    assert combined([row[None] for row in ratios], 0.05, 30).tolist() == [[0.5, 0.5, 4]]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("await", "latency"),
        ("r_await", "latency"),
        ("svctm", "latency"),
        ("rtt_ms", "latency"),
        ("tps", "throughput"),
        ("rkB/s", "throughput"),
        ("rx_bytes", "throughput"),
        ("output-data-rate", "throughput"),
        ("input-drops-rate", "other"),
        ("configuration-items", "other"),
        ("temperature", "other"),
    ],
)
def test_names_of_metrics_tell_what_they_measure(name: str, kind: str):
    assert kind_of(name) == kind


@pytest.mark.parametrize(
    ("peaks", "expected"),
    [
        ({"await": 3.0, "tps": 0.5}, "component fault"),
        ({"await": 3.0, "tps": 1.5}, "load difference"),
        ({"await": 0.5, "tps": 1.5}, "load difference"),
        ({"await": 3.0}, "not told"),
        ({"tps": 3.0}, "not told"),
        ({"await": 0.5, "tps": 0.5, "errors": 4.0}, "not told"),
    ],
)
def test_latency_without_throughput_is_a_fault_of_the_component(peaks: dict[str, float], expected: str):
    assert verdict(peaks) == expected
