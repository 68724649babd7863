from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[4] / "benchmarks" / "nab_scorer.py"
SPEC = importlib.util.spec_from_file_location("nab_scorer", PATH)
assert SPEC is not None and SPEC.loader is not None
nab = importlib.util.module_from_spec(SPEC)
sys.modules["nab_scorer"] = nab
SPEC.loader.exec_module(nab)
REWARD_LOW_FN, STANDARD, Profile = nab.REWARD_LOW_FN, nab.STANDARD, nab.Profile
probation, row_weights, score, sigmoid = nab.probation, nab.row_weights, nab.score, nab.sigmoid


def scored(rows: int, windows: list[tuple[int, int]], *detections: int) -> object:
    scores = np.zeros(rows)
    scores[list(detections)] = 1.0
    return nab.ScoredFile(scores, windows)


def test_the_weight_falls_from_one_at_the_windows_start_to_minus_one_behind_it():
    assert sigmoid(-1.0) == pytest.approx(0.98661, abs=1e-5)
    assert sigmoid(0.0) == 0.0
    assert sigmoid(1.0) == pytest.approx(-0.98661, abs=1e-5)
    assert sigmoid(3.1) == -1.0


def test_a_detector_that_finds_every_window_at_its_start_has_100():
    assert score([scored(1000, [(400, 499), (700, 799)], 400, 700)], threshold=0.5).score == pytest.approx(100)


def test_a_detector_that_says_nothing_has_0():
    assert score([scored(1000, [(400, 499)])], threshold=0.5).score == 0.0


def test_only_the_earliest_detection_in_a_window_counts():
    one = score([scored(1000, [(400, 499)], 450)], threshold=0.5)
    many = score([scored(1000, [(400, 499)], *range(450, 500))], threshold=0.5)
    assert many.score == one.score
    assert (many.found, many.false_positives) == (1, 0)
    assert 50 < one.score < 100


def test_a_false_alarm_costs_its_weight_and_less_shortly_behind_a_window():
    windows = [(400, 499)]
    none = score([scored(1000, windows, 400)], threshold=0.5).score
    before = score([scored(1000, windows, 300, 400)], threshold=0.5).score
    behind = score([scored(1000, windows, 400, 505)], threshold=0.5).score
    far = score([scored(1000, windows, 400, 999)], threshold=0.5).score
    assert none - before == pytest.approx(100 * STANDARD.false_positive / 2)
    assert none - far == pytest.approx(100 * STANDARD.false_positive / 2)
    assert 0 < none - behind < (none - before) / 2


def test_a_missed_window_costs_a_full_point():
    found = score([scored(1000, [(400, 499), (700, 799)], 400)], threshold=0.5)
    assert found.score == pytest.approx(50)
    low_fn = score([scored(1000, [(400, 499), (700, 799)], 400)], REWARD_LOW_FN, threshold=0.5)
    assert low_fn.score == pytest.approx(50)


def test_the_first_rows_are_not_scored():
    assert (probation(1000), probation(5000), probation(20_000)) == (150, 750, 750)
    assert score([scored(1000, [(400, 499)], *range(150))], threshold=0.5).score == 0.0
    assert score([scored(1000, [(400, 499)], 150)], threshold=0.5).score < 0.0


def test_one_threshold_for_all_files_is_the_best_one():
    good = nab.ScoredFile(np.zeros(1000), [(400, 499)])
    good.scores[400], good.scores[600] = 0.8, 0.3
    other = nab.ScoredFile(np.zeros(1000), [(400, 499)])
    other.scores[450], other.scores[200] = 0.5, 0.4
    best = score([good, other])
    assert best.threshold == pytest.approx(0.5)
    assert (best.found, best.false_positives) == (2, 0)


def test_nothing_is_detected_where_every_threshold_loses():
    bad = nab.ScoredFile(np.tile([0.0, 1.0], 500), [(997, 999)])
    assert score([bad]) == score([bad], threshold=math.inf)
    assert score([bad]).score == 0.0


def test_weights_of_rows():
    weights, windows = row_weights(scored(10, [(4, 5)]), Profile())
    assert windows.tolist() == [-1] * 4 + [0, 0] + [-1] * 4
    assert weights[:4].tolist() == [-0.11] * 4
    assert weights[4] == pytest.approx(1.0)
    assert weights[5] == pytest.approx(sigmoid(-0.5) / sigmoid(-1.0))
    assert weights[6] == pytest.approx(0.11 * sigmoid(1.0))
    assert weights[9] == pytest.approx(-0.11)


def test_files_without_any_window_have_no_score():
    with pytest.raises(ValueError, match="no labelled windows"):
        score([scored(100, [])])


def test_a_held_out_folder_has_no_part_in_its_threshold():
    high, low = (nab.ScoredFile(np.zeros(1000), [(400, 499)]) for _ in range(2))
    high.scores[400], high.scores[990] = 0.8, 0.5
    low.scores[400], low.scores[990] = 0.4, 0.1
    assert score([high]).threshold == 0.8
    assert score([low]).threshold == 0.4
    at_lower, nothing = 1 - STANDARD.false_positive, -1
    assert nab.held_out_score([[high], [low]]) == pytest.approx(nab.normalised(at_lower + nothing, 2))


def test_the_scale_is_from_nothing_found_to_all_found_at_once():
    assert nab.normalised(-4, 4) == 0
    assert nab.normalised(4, 4) == 100
    assert nab.normalised(-8, 4, REWARD_LOW_FN) == 0
