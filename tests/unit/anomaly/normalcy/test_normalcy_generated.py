from __future__ import annotations

import generated_series as made
import nab_scorer as nab
import numpy as np
import pytest

from controller.anomaly.normalcy.score import Scorer


@pytest.mark.parametrize("kind", list(made.KINDS))
def test_a_series_is_that_of_its_seed_and_its_windows_are_in_order(kind: str):
    for seed in range(8):
        one, again, other = made.generated(kind, seed), made.generated(kind, seed), made.generated(kind, seed + 100)
        assert one.values.tolist() == again.values.tolist()
        assert one.values.tolist() != other.values.tolist()
        assert np.all(np.diff(one.at_s) > 0)
        assert np.all(np.isfinite(one.values))
        assert len(one.windows) == len(one.onsets) == len(one.faults)
        edges = [edge for window in one.windows for edge in window]
        assert edges == sorted(edges)
        assert all(first >= nab.probation(len(one.values)) for first, _ in one.windows)
        assert all(first <= onset <= last for onset, (first, last) in zip(one.onsets, one.windows, strict=True))


@pytest.mark.parametrize("seed", [11, 12])
def test_most_faults_of_generated_series_are_found_at_the_documented_threshold(seed: int):
    found = []
    for one in made.collection(seed, 2):
        found.append(nab.ScoredFile(Scorer().extend(one.at_s, one.values), one.windows))
    result = nab.score(found, threshold=0.2)
    assert result.score > 50
    assert result.found > 0.7 * result.windows


def test_bursts_that_counts_have_all_the_time_are_seldom_alarms():
    alarms = found = windows = 0
    for seed in range(10):
        one = made.generated("tails", seed)
        scores = Scorer().extend(one.at_s, one.values)
        late = np.arange(len(scores)) >= nab.probation(len(scores))
        inside = np.zeros(len(scores), bool)
        for first, last in one.windows:
            inside[first : last + 1] = True
            found += bool((scores[first : last + 1] >= 0.2).any())
        windows += len(one.windows)
        alarms += int(np.count_nonzero((scores >= 0.2) & late & ~inside))
    assert alarms < 30
    assert found >= 0.8 * windows
