from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from controller.anomaly.peers.distances import (
    bin_sizes,
    binned_distances,
    majority_distance,
    median_distance,
    pair_distances,
    reference_distance,
    sorted_windows,
)

SAMPLES = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 3), st.integers(1, 6), st.integers(2, 20)),
    elements=st.floats(0, 1000).map(lambda x: round(x, 3)),
)


def area_between(left: np.ndarray, right: np.ndarray) -> float:
    """The area between two empirical distribution functions, by summing over the steps."""
    points = np.sort(np.concatenate([left, right]))
    p, q = ((sample[:, None] <= points).mean(axis=0) for sample in (left, right))
    return float(np.sum(np.abs(p - q)[:-1] * np.diff(points)))


@given(SAMPLES)
def test_pair_distances_are_areas_between_distribution_functions(samples: np.ndarray):
    found = pair_distances(np.sort(samples, axis=-1))
    for window in range(samples.shape[0]):
        for left in range(samples.shape[1]):
            for right in range(samples.shape[1]):
                if left == right:
                    assert np.isnan(found[window, left, right])
                else:
                    expected = area_between(samples[window, left], samples[window, right])
                    assert found[window, left, right] == pytest.approx(expected, abs=1e-8)


@given(SAMPLES)
def test_the_binned_reference_differs_by_less_than_a_bin(samples: np.ndarray):
    ordered = np.sort(samples, axis=-1)
    sizes = bin_sizes(ordered, 1000)
    exact = pair_distances(ordered) / sizes[:, None, None]
    binned = binned_distances(ordered, sizes)
    assert np.array_equal(np.isnan(exact), np.isnan(binned))
    assert np.nanmax(np.abs(exact - binned), initial=0) <= 1 + 1e-6


@given(SAMPLES)
def test_both_forms_are_equal_where_bins_hold_one_value_each(samples: np.ndarray):
    whole = np.sort(np.floor(samples / 50), axis=-1)
    above = np.full((len(whole), 1, whole.shape[2]), whole.max() + 1)
    whole = np.concatenate([whole, above], axis=1)
    binned = binned_distances(whole, np.ones(len(whole)))
    assert binned[:, :-1, :-1] == pytest.approx(pair_distances(whole)[:, :-1, :-1], abs=1e-9, nan_ok=True)


@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 3), st.integers(1, 7)).map(lambda s: (*s, s[1])),
        elements=st.integers(0, 9),
    ),
    st.integers(-1, 10),
    st.randoms(use_true_random=False),
)
def test_the_order_statistic_decides_as_more_than_half_do(distances: np.ndarray, threshold: int, random: object):
    members = distances.shape[1]
    distances[:, range(members), range(members)] = np.nan
    gone = random.randrange(members)  # type: ignore[attr-defined]
    distances[0, gone, :] = distances[0, :, gone] = np.nan
    found = majority_distance(distances)
    for window in range(len(distances)):
        for member in range(members):
            known = distances[window, member][~np.isnan(distances[window, member])]
            if not len(known):
                assert np.isnan(found[window, member])
            else:
                assert (found[window, member] > threshold) == ((known > threshold).sum() * 2 > len(known))


def test_bin_size_is_that_of_freedman_and_diaconis():
    samples = np.random.default_rng(1).normal(50, 5, (1, 8, 60))
    lower, upper = np.percentile(samples, (25, 75))
    assert bin_sizes(samples, 1000)[0] == pytest.approx(2 * (upper - lower) * 60 ** (-1 / 3), rel=0.02)


def test_bins_are_capped_and_have_a_floor():
    samples = np.zeros((1, 4, 60))
    assert bin_sizes(samples, 1000)[0] > 0
    samples[0, 0, 0] = 5000
    assert bin_sizes(samples, 1000)[0] == 5
    assert bin_sizes(samples, 100)[0] == 50
    assert bin_sizes(np.full((1, 4, 60), 200.0), 1000)[0] == pytest.approx(0.2)
    assert np.isnan(bin_sizes(np.full((1, 2, 4), np.nan), 1000)[0])


def test_bins_are_a_thousandth_of_the_level_that_was_taken_off_too():
    offsets = np.array([200.0, 300, 400])
    assert bin_sizes(np.zeros((2, 3, 60)), 1000, offsets=offsets) == pytest.approx([0.3, 0.3])
    assert bin_sizes(np.zeros((2, 3, 60)), 1000, least=5.0, offsets=offsets).tolist() == [5, 5]


@pytest.mark.parametrize("members", [2, 3, 4])
@pytest.mark.parametrize("further", [100, -40])
def test_one_of_few_does_not_widen_the_bins_that_show_it(members: int, further: float):
    samples = np.random.default_rng(5).normal(50, 5, (4, members, 60))
    usual = bin_sizes(samples, 1000)
    samples[:, 1] += further
    assert (bin_sizes(samples, 1000, small_group=members) < 1.5 * usual).all()


@pytest.mark.parametrize("members", [3, 4])
def test_bins_as_the_article_has_them_are_widened_by_one_of_few(members: int):
    samples = np.random.default_rng(5).normal(50, 5, (4, members, 60))
    usual = bin_sizes(samples, 1000)
    samples[:, 1] += 100
    assert (bin_sizes(samples, 1000) > 5 * usual).all()


def test_one_of_five_widens_no_bins():
    samples = np.random.default_rng(5).normal(50, 5, (4, 5, 60))
    usual = bin_sizes(samples, 1000)
    samples[:, 1] += 100
    assert (bin_sizes(samples, 1000) < 2 * usual).all()


def test_the_median_form_singles_out_the_same_member():
    samples = np.random.default_rng(2).gamma(2, 3, (5, 40, 60))
    samples[:, 7] *= 3
    ordered = np.sort(samples, axis=-1)
    assert median_distance(ordered).argmax(axis=1).tolist() == [7] * 5
    assert majority_distance(pair_distances(ordered)).argmax(axis=1).tolist() == [7] * 5


def test_a_member_alone_has_no_distance():
    samples = np.sort(np.random.default_rng(3).normal(size=(2, 1, 10)))
    assert np.isnan(median_distance(samples)).all()
    assert np.isnan(majority_distance(pair_distances(samples))).all()


def test_windows_need_half_of_their_samples():
    values = np.arange(20.0)[None].repeat(2, axis=0)
    values[1, 3:9] = np.nan
    found = sorted_windows(values, 10, 5)
    assert found.shape == (3, 2, 10)
    assert found[0, 0].tolist() == list(range(10))
    assert np.isnan(found[0, 1]).all()
    assert found[1, 1, 0] == 9
    assert found[1, 1, -1] == 14
    assert sorted_windows(values, 21, 5).shape == (0, 2, 21)


def test_distance_to_a_reference_is_that_to_a_peer_like_it():
    samples = np.sort(np.random.default_rng(4).normal(size=(3, 2, 12)))
    expected = [pair_distances(samples[[0, w]][:, [1]].swapaxes(0, 1))[0, 0, 1] for w in (1, 2)]
    assert reference_distance(samples, samples[0])[1:, 1] == pytest.approx(expected)


@pytest.mark.parametrize("members", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("windows", [0, 1, 2, 30, 183])
@pytest.mark.parametrize("window", [1, 5, 12, 60, 200])
def test_the_compiled_kernel_gives_the_same_distances_to_the_bit(members: int, windows: int, window: int):
    pytest.importorskip("numba")
    samples = np.sort(np.random.default_rng((members, windows)).gamma(2, 3, (windows, members, window)), axis=-1)
    samples[::3, ::2] = np.nan
    plain, compiled = (pair_distances(samples, compiled=choice) for choice in (False, True))
    assert np.array_equal(plain, compiled, equal_nan=True)


def test_the_compiled_kernel_is_bit_equal_where_a_window_fills_the_cache():
    pytest.importorskip("numba")
    samples = np.sort(np.random.default_rng(1).gamma(2, 3, (4, 600, 60)), axis=-1)
    plain, compiled = (pair_distances(samples, compiled=choice) for choice in (False, True))
    assert np.array_equal(plain, compiled, equal_nan=True)
