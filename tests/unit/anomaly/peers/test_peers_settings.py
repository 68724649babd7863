from __future__ import annotations

import pytest

from controller.anomaly.peers.settings import PeerSettings, fitted

DAY_S = 86_400


def test_a_day_of_fine_samples_gets_the_values_of_the_source():
    assert fitted({}, 1, DAY_S) == fitted({}, 15, DAY_S, DAY_S) == PeerSettings()


def test_coarse_samples_keep_the_span_of_the_moving_average():
    found = fitted({}, 300, 30 * DAY_S, 20 * DAY_S)
    assert (found.interval_s, found.window_samples, found.shift_samples, found.smoothing_samples) == (300, 60, 30, 1)
    assert fitted({}, 60, 30 * DAY_S).smoothing_samples == 4


def test_a_short_recording_gets_shorter_windows():
    found = fitted({}, 1, 600)
    assert (found.interval_s, found.window_samples, found.shift_samples, found.smoothing_samples) == (1, 12, 6, 3)
    assert fitted({}, 1, DAY_S, 3600).window_s == pytest.approx(600)


def test_what_is_given_is_taken():
    found = fitted({"window_samples": 60, "interval_s": 5.0, "scope": "group"}, 1, 600)
    assert (found.window_samples, found.shift_samples, found.interval_s, found.scope) == (60, 30, 5, "group")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("window_samples", 1),
        ("shift_samples", 0),
        ("smoothing_samples", 0),
        ("bins_max", 0),
        ("confirm_windows", 0),
        ("interval_s", -1.0),
        ("margin", float("inf")),
        ("combined_share", 0.0),
        ("ratio_max", 0.0),
        ("windows", 3),
    ],
)
def test_settings_out_of_range_are_refused_by_name(field: str, value: float):
    with pytest.raises(ValueError, match=f"^{field}: "):
        fitted({field: value}, 15, DAY_S)
