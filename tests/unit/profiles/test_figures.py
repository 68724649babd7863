"""What spans show, beside what is counted span by span."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.profiles.figures import CONCURRENCY_BINS, FEW, compared, figures_of, times_of
from controller.profiles.spans import Operation

SPANS = st.lists(st.tuples(st.floats(0, 100), st.floats(0, 50)), min_size=1, max_size=60)


def test_times_are_those_of_numpy_in_milliseconds() -> None:
    took_ms = np.arange(1.0, 101.0)
    times = times_of(took_ms)
    assert (times.spans, times.mean_ms, times.p50_ms, times.max_ms) == (100, 50.5, 50.5, 100.0)
    assert (times.p95_ms, times.p99_ms) == (pytest.approx(95.05), pytest.approx(99.01))
    assert times_of(np.empty(0)).document() == dict.fromkeys(("mean_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms")) | {
        "count": 0
    }


@given(SPANS)
def test_plots_have_every_span_and_the_most_that_went_on(spans: list[tuple[float, float]]) -> None:
    start_s, took_s = np.array(spans, float).T
    length_s = float((start_s + took_s).max())
    found = figures_of(Operation.JOIN, start_s, took_s, {}, {"done": len(spans)}, length_s)
    assert sum(each.spans for each in found.over_time) == len(spans)
    assert sum(each.spans for each in found.histogram) == len(spans)
    most = max(
        sum(start <= at <= start + took for start, took in zip(start_s, took_s, strict=True)) for at in start_s
    )
    assert max(each.most for each in found.concurrency) == most
    assert len(found.concurrency) == CONCURRENCY_BINS
    for each in found.histogram:
        within = [took for took in 1000 * took_s if each.low_ms * 1.001 <= took < each.high_ms * 0.999]
        assert len(within) <= each.spans


def test_what_goes_on_through_a_bin_without_a_change_counts_in_it() -> None:
    found = figures_of(Operation.POLL, np.array([0.0]), np.array([12.0]), {}, {}, 12.0)
    assert {each.most for each in found.concurrency} == {1}
    later = figures_of(Operation.POLL, np.array([6.0]), np.array([6.0]), {}, {}, 12.0)
    assert [each.most for each in later.concurrency] == [int(each.at_s >= 6.0) for each in later.concurrency]


def test_waits_are_means_over_the_spans_that_have_them() -> None:
    waits = {"loop": np.array([0.001, np.nan, 0.003]), "disk": np.full(3, np.nan)}
    found = figures_of(Operation.JOIN, np.zeros(3), np.ones(3), waits, {"done": 3, "failed": 1}, 2.0)
    assert found.document()["mean_waits_ms"] == {"loop": 2.0}
    assert found.document()["outcomes"] == {"done": 3, "failed": 1}
    assert figures_of(Operation.JOIN, np.empty(0), np.empty(0), {}, {"failed": 1}, 2.0).concurrency == ()


@pytest.mark.parametrize(
    ("factor", "spans", "verdict"),
    [
        (1.2, FEW, "alike"),
        (1.3, FEW, "slower"),
        (0.7, FEW, "faster"),
        (0.85, FEW, "alike"),
        (9.0, FEW - 1, "too-few"),
    ],
)
def test_two_profiles_are_compared_by_the_95th_percentile(factor: float, spans: int, verdict: str) -> None:
    before = np.linspace(1.0, 2.0, spans)
    change = compared("join", times_of(before), times_of(factor * before), 25.0)
    assert change.verdict == verdict
    assert change.change_pct == (None if verdict == "too-few" else pytest.approx(100 * (factor - 1), abs=0.1))
