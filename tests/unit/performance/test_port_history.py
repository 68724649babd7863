"""The last hour of a port as a series with bounds."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from controller.performance.poller_view import ACTIONS, QuestionInvalid
from controller.performance.port_history import steps
from tests.unit.performance.test_poller_core import EPOCH_S, Fabric


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    """An hour of a port that sends 400 Mbit/s."""
    fabric = Fabric()
    fabric.tx_bps = {(1, 1): 4e8}
    fabric.run(3400.0)
    return fabric


def ask(fabric: Fabric, **asked: Any) -> Any:
    return json.loads(json.dumps(ACTIONS["port-history"](fabric.console, asked), allow_nan=False))


def test_what_was_sent_is_remembered_with_what_is_normal(fabric: Fabric):
    found = ask(fabric, dpid=1, port_no=1, metric="tx_bps")
    assert (found["dpid"], found["port_no"], found["metric"], found["step_s"]) == (1, 1, "tx_bps", 10.0)
    assert 300 <= len(found["points"]) <= 360
    times = [point["time_s"] for point in found["points"]]
    assert times == sorted(set(times))
    assert times[-1] == pytest.approx(EPOCH_S + fabric.now, abs=20)
    for point in found["points"][1:]:
        assert point["value"] == pytest.approx(4e8, rel=0.01)
        assert 0 <= point["lower"] <= point["value"] <= point["upper"]


def test_a_metric_may_be_asked_for_from_a_time_on_and_in_longer_steps(fabric: Fabric):
    since_s = EPOCH_S + fabric.now - 600
    found = ask(fabric, dpid=1, port_no=1, metric="tx_utilisation_pct", since_s=since_s, step_s=60)
    assert found["step_s"] == 60
    assert 9 <= len(found["points"]) <= 11
    assert all(point["time_s"] >= since_s and point["time_s"] % 60 == 0 for point in found["points"])
    assert [point["value"] for point in found["points"]] == pytest.approx([40.0] * len(found["points"]), rel=0.01)
    assert {point["value"] for point in ask(fabric, dpid=1, port_no=1, metric="errors_pps")["points"]} == {0.0}


def test_a_port_without_a_sample_has_no_points():
    assert ask(Fabric(), dpid=1, port_no=1)["points"] == []


def test_steps_are_means_of_what_is_known(fabric: Fabric):
    history = fabric.core.performance.history(1, 1)
    values = np.full(len(history.start_s), np.nan)
    values[-12:] = np.arange(12.0)
    start_s = history.start_s - history.start_s[-12] % 60
    patched = history._replace(start_s=start_s, tx_bytes_per_s=values / 8)
    found = steps(patched, "tx_bps", 0.0, 0.0, 60.0)
    assert [step.value for step in found[-2:]] == [2.5, 8.5]
    assert {step.value for step in found[:-2]} == {None}
    assert [step.value for step in steps(patched, "tx_bps", 0.0, float(start_s[-3]), 10.0)] == [9.0, 10.0, 11.0]
    assert {step.value for step in steps(patched, "tx_utilisation_pct", 0.0, 0.0, 60.0)} == {None}


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"port_no": 1}, "dpid"),
        ({"dpid": 1, "port_no": 9}, "port_no"),
        ({"dpid": "1", "port_no": 1}, "dpid"),
        ({"dpid": 1, "port_no": 1, "metric": "speed"}, "metric"),
        ({"dpid": 1, "port_no": 1, "metric": []}, "metric"),
        ({"dpid": 1, "port_no": 1, "since_s": "now"}, "since_s"),
        ({"dpid": 1, "port_no": 1, "step_s": -1}, "step_s"),
        ({"dpid": 1, "port_no": 1, "step_s": float("nan")}, "step_s"),
    ],
)
def test_the_field_at_fault_is_named(fabric: Fabric, asked: dict, field: str):
    with pytest.raises(QuestionInvalid, match=f"^{field}: "):
        ask(fabric, **asked)
