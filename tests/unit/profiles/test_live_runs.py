"""Runs as readers follow them: what changes, what is lost, and what is not taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.openflow import live_runs
from apps.openflow.live_runs import MOST_STORMS, PLAYING, LiveRuns
from apps.status_server import QuestionRefused
from controller.profiles.live_figures import LiveFigures
from controller.profiles.spans import Operation, Span, SpanOutcome, SpanWaits
from fed_controller import run_documents


def storm(**fields: Any) -> dict[str, Any]:
    return {**run_documents()["runs"]["storm"], "state": PLAYING, **fields}


def test_readers_are_told_what_changed() -> None:
    profile: dict[str, Any] | None = None
    runs = LiveRuns(lambda: profile)
    runs.refresh()
    assert runs.section.changes(0, 10)["put"] == {}
    profile = {"run": "profile", "spans": 1}
    runs.told_storm({"storm": storm(done=5), "by": "me"})
    runs.refresh()
    told = runs.section.changes(0, 10)
    assert told["put"]["profile"] == profile
    assert (told["put"]["storm"]["done"], told["put"]["storm"]["by"]) == (5, "me")
    runs.refresh()
    assert runs.section.changes(told["version"], 10)["put"] == {}
    profile = {"run": "profile", "spans": 2}
    runs.refresh()
    assert list(runs.section.changes(told["version"], 10)["put"]) == ["profile"]


def test_a_storm_that_nobody_tells_of_is_lost_and_one_that_ended_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = LiveRuns(lambda: None)
    monkeypatch.setattr(live_runs, "LOST_S", -1.0)
    runs.told_storm({"storm": storm()})
    runs.refresh()
    assert runs.section.changes(0, 10)["put"]["storm"]["state"] == "lost"
    runs.told_storm({"storm": storm(state="ended")})
    runs.refresh()
    assert runs.section.changes(0, 10)["put"]["storm"]["state"] == "ended"


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({}, "storm: must be an object"),
        ({"storm": [1]}, "storm: must be an object"),
        ({"storm": storm(done="5")}, "storm.done: is missing, or not what it has to be"),
        ({"storm": storm(done=True)}, "storm.done"),
        ({"storm": storm(stage="x" * 201)}, "storm.stage"),
        ({"storm": storm(state="won")}, "storm.state: must be playing or ended"),
        ({"storm": storm(storms=[{}] * (MOST_STORMS + 1))}, f"storm.storms: must be a list of {MOST_STORMS} at most"),
        ({"storm": storm(storms=[{"joins": 5}])}, "storm.storms[0].unserved"),
    ],
)
def test_what_is_told_otherwise_is_refused(asked: dict[str, Any], told: str) -> None:
    runs = LiveRuns(lambda: None)
    with pytest.raises(QuestionRefused, match=r"storm") as refused:
        runs.told_storm(asked)
    assert told in str(refused.value)
    runs.refresh()
    assert runs.section.changes(0, 10)["put"] == {}


@given(st.lists(st.floats(1e-4, 100.0), min_size=1, max_size=200))
def test_quantiles_of_a_profile_that_runs_are_those_of_numpy_to_some_percent(took_s: list[float]) -> None:
    figures = LiveFigures()
    spans = [Span(Operation.JOIN, "", 1.0, 1.0 + each, SpanWaits(), SpanOutcome.DONE) for each in took_s]
    figures.add(spans)
    figures.add([spans[0]._replace(outcome=SpanOutcome.FAILED)])
    (told,) = figures.document()
    assert (told["count"], told["others"]) == (len(took_s), 1)
    assert told["max_ms"] == pytest.approx(1000 * max(took_s), abs=0.01)
    assert told["mean_ms"] == pytest.approx(1000 * float(np.mean(took_s)), abs=0.01)
    for quantile in (50, 95, 99):
        exact = 1000 * float(np.percentile(took_s, quantile, method="inverted_cdf"))
        assert told[f"p{quantile}_ms"] == pytest.approx(exact, rel=0.07)
