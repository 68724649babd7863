"""The allocator's app without switches: what it keeps over a restart, and what it says of a damaged database."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("os_ken")

from os_ken.base import app_manager

from apps.allocator import AllocatorApp
from apps.emulation import status
from apps.openflow.bus import PortsMeasured, TopologyChanged
from controller.allocation.events import PortsRated
from controller.events import Port, SwitchConnected
from topology.events import SwitchUp

POLICY = "version: 1\nallocation: {openflow: {days_to_average_utilization: 10001}, stale_s: 1e9}\n"
START_S = 1_700_000_000


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
def running() -> Iterator[AllocatorApp]:
    """The app on its own loop; the one switch has connected."""
    app = AllocatorApp()
    app_manager.register_app(app)
    try:
        app.start()
        app.ask(lambda: app.feed(SwitchConnected(7, 4, tuple(Port(n, "", bytes(6), True, 1e9) for n in (1, 2)))))
        yield app
        app.stop()
    finally:
        app_manager.unregister_app(app)


def ask(path: Path, **question: Any) -> Any:
    return status.query(path / "vsrt.sock", question)


def measure(app: AllocatorApp) -> None:
    """What the monitor and discovery send over the bus, as the framework hands it on."""
    app.send_event(app.name, TopologyChanged((SwitchUp(7, 4),)))
    for second in range(0, 81, 10):
        at_s = np.full(2, START_S + second)
        rated = PortsRated(((7, 1), (7, 2)), at_s, np.array([40.0, 10.0]), {})
        app.send_event(app.name, PortsMeasured(rated))


def usages(path: Path) -> dict[str, float | None]:
    return {port["id"]: port["usage"] for port in ask(path, do="allocate-watch")["ports"]}


def test_metrics_outlast_a_restart_and_reserve_nothing_then(tmp_path: Path):
    with running() as app:
        measure(app)
        assert usages(tmp_path) == {"7:1": 40, "7:2": 10}
        assert ask(tmp_path, do="allocate", count=1)["ports"] == ["7:2"]
    assert not (tmp_path / "vsrt.sock").exists()
    with running():
        assert usages(tmp_path) == {"7:1": 40, "7:2": 10}
        answer = ask(tmp_path, do="allocate", count=1)
        assert answer["ports"] == ["7:2"]
        assert answer["measured"] == {"ports": 2, "valid": 2, "last_sample_s_ago": None}


def test_a_damaged_database_is_set_aside_said_and_begun_anew(tmp_path: Path):
    (tmp_path / "allocation.sqlite").write_text("nonsense " * 1000)
    with running() as app:
        state = ask(tmp_path, do="allocate-watch")["state"]
        (aside,) = tmp_path.glob("allocation.sqlite.damaged-*")
        assert str(aside) in state["set_aside"]
        assert usages(tmp_path) == {"7:1": None, "7:2": None}
        measure(app)
    with running():
        assert usages(tmp_path) == {"7:1": 40, "7:2": 10}
        assert ask(tmp_path, do="allocate-watch")["state"]["set_aside"] == ""


def test_a_question_that_cannot_be_answered_is_refused(tmp_path: Path):
    with running():
        answer = ask(tmp_path, do="allocate", count=1, ports={"type": "leaf"})
        assert answer["refused"]
        assert answer["error"].startswith("ports.type: 'leaf' is none of")
