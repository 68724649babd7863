"""The anomaly app without switches: what it keeps over a restart, and what it says of a damaged database."""

from __future__ import annotations

import gc
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sampled_fabric import SampledFabric

pytest.importorskip("os_ken")

from os_ken.base import app_manager

from apps.anomaly import AnomalyApp
from apps.cli.main import main
from apps.emulation import status
from apps.openflow.bus import CountersMeasured, RollUpsMeasured, TopologyChanged
from controller.anomaly.live_normalcy_core import PortsRolledUp
from controller.events import DeadlineReached

POLICY = """\
version: 1
monitor: {interval_s: 1}
anomaly:
  {interval_s: 1, smoothing_samples: 4, window_samples: 12, shift_samples: 4, confirm_windows: 2,
   learning_windows: 15}
"""


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "policy.yaml").write_text(POLICY)
    monkeypatch.setenv("VSRT_CONFIG", str(tmp_path / "policy.yaml"))
    monkeypatch.setenv("VSRT_STATE_DIR", str(tmp_path))
    monkeypatch.delenv("VSRT_SOCKET", raising=False)
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


@contextmanager
def running(fabric: SampledFabric) -> Iterator[AnomalyApp]:
    """The app on its own loop, told of the fabric as discovery does."""
    app = AnomalyApp()
    app_manager.register_app(app)
    try:
        app.start()
        app.send_event(app.name, TopologyChanged(tuple(fabric.events())))
        yield app
        app.stop()
    finally:
        app_manager.unregister_app(app)


def measure(app: AnomalyApp, fabric: SampledFabric, duration_s: float) -> None:
    """What the monitor sends over the bus; each sample is judged before the next."""
    for sample in fabric.samples(duration_s):
        app.ask(lambda sample=sample: app._counters_measured(CountersMeasured(sample)))
        while app.core.next_deadline() is not None:
            app.ask(lambda: app.feed(DeadlineReached()))


def ask(path: Path, **question: Any) -> Any:
    return status.query(path / "vsrt.sock", question)


def named(path: Path) -> list[str]:
    return [found["member"] for found in ask(path, show="anomalies")["anomalies"]]


def test_open_anomalies_and_thresholds_outlast_a_restart_and_retraining_is_asked_for(tmp_path: Path):
    fabric = SampledFabric(leaves=3)
    with running(fabric) as app:
        measure(app, fabric, 80)
        fabric.lossy[2, 1] = 0.1
        measure(app, fabric, 30)
        assert named(tmp_path) == ["2:1"]
        changes = ask(tmp_path, changes={"anomalies": {"anomaly": 0}, "events": {"anomaly": 0}})["sections"]
        assert set(changes["anomalies"]["anomaly"]["put"]) == {"2:1"}
        assert [found["state"] for found in changes["events"]["anomaly"]["put"].values()] == ["raised"]
    with running(fabric) as app:
        assert named(tmp_path) == ["2:1"]
        assert app.core.learning.windows[app.core.members.row((1, 1))].max() == 15
        fabric.lossy.clear()
        measure(app, fabric, 60)
        assert named(tmp_path) == []
        answer = ask(tmp_path, do="anomaly-retrain", peer_group="tor uplinks", by="ann")
        assert answer["learnt_anew"] == ["tor uplinks"]
        refused = ask(tmp_path, do="anomaly-retrain", peer_group="uplinks")
        assert refused["refused"] and "tor uplinks" in refused["error"]
        lines = [json.loads(line) for line in (tmp_path / "actions.jsonl").read_text().splitlines()]
        assert [(line["by"], line["verdict"]) for line in lines] == [("ann", "done"), (None, "refused")]


@pytest.mark.parametrize("damage", ["nonsense", "blob"])
def test_a_damaged_database_is_set_aside_said_and_begun_anew(tmp_path: Path, damage: str):
    fabric = SampledFabric(leaves=3)
    path = tmp_path / "anomaly.sqlite"
    if damage == "nonsense":
        path.write_text("nonsense " * 1000)
    else:
        with running(fabric) as app:
            measure(app, fabric, 40)
        with closing(sqlite3.connect(path)) as database, database:
            assert database.execute("UPDATE members SET learnt = x'00'").rowcount > 0
    with running(fabric) as app:
        state = ask(tmp_path, show="anomalies")["state"]
        (aside,) = tmp_path.glob("anomaly.sqlite.damaged-*")
        assert str(aside) in state["set_aside"]
        assert app.core.open == {}
        assert app.core.learning.windows.sum() == 0


def rolled_up(second: int, scale: float = 1.0) -> RollUpsMeasured:
    values = np.array([[1e6, 2e6, 1000.0, 2000.0, 0.0, 0.0]]) * scale
    return RollUpsMeasured(1, PortsRolledUp(((1, 1),), np.array([1000.0 + second]), values))


def test_bounds_of_a_port_are_shown_raise_events_and_outlast_a_restart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    learnt_s = 72
    normalcy = "normalcy: {enabled: true, day_s: 24, least_days: 1, confirm_points: 2}"
    (tmp_path / "policy.yaml").write_text(f"{POLICY}\n".replace("learning_windows: 15}", f"{normalcy}}}"))
    fabric = SampledFabric(leaves=3)
    with running(fabric) as app:
        refused = ask(tmp_path, do="normalcy", dpid=1, port_no=1)
        assert refused["refused"] and refused["error"] == "no minute of port 1:1 was measured yet"
        for second in range(learnt_s):
            app.ask(lambda second=second: app._roll_ups_measured(rolled_up(second)))
        for second in range(learnt_s, learnt_s + 3):
            app.ask(lambda second=second: app._roll_ups_measured(rolled_up(second, 4.0)))
        changes = ask(tmp_path, changes={"normalcy": {"anomaly": 0}, "events": {"anomaly": 0}})["sections"]
        assert changes["normalcy"]["anomaly"]["put"]["1:1:rx_bytes_per_s"]["score"] > 0.2
        events = list(changes["events"]["anomaly"]["put"].values())
        assert [event["kind"] for event in events] == ["normalcy"] * 4
        assert {event["state"] for event in events} == {"raised"}
    with running(fabric) as app:
        assert app.ask(lambda: len(app.normalcy.core.open)) == 4
        app.ask(lambda: app._roll_ups_measured(rolled_up(learnt_s + 4)))
        assert main(["normalcy", "--live", "1:1", "--socket", str(tmp_path / "vsrt.sock")]) == 0
        table = capsys.readouterr().out
        assert "rx_bytes_per_s" in table and "1 M" in table
    (tmp_path / "normalcy.sqlite").write_text("nonsense " * 1000)
    with running(fabric) as app:
        assert app.ask(lambda: app.normalcy.core.ports) == []
        assert list(tmp_path.glob("normalcy.sqlite.damaged-*"))


def test_bounds_are_not_learnt_unless_the_policy_says_so(tmp_path: Path):
    with running(SampledFabric(leaves=3)) as app:
        app.ask(lambda: app._roll_ups_measured(rolled_up(0)))
        assert app.normalcy.core.ports == []
        assert "anomaly.normalcy.enabled is false" in ask(tmp_path, do="normalcy")["error"]
    assert not (tmp_path / "normalcy.sqlite").exists()
