"""Apps that tell each other: no loop waits for another, however much waits for it."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip("os_ken")

from os_ken.base import app_manager

from apps.alarms import AlarmsApp
from apps.multicast import MulticastApp
from apps.openflow import reactor
from apps.openflow.app import App
from apps.openflow.bus import SwitchForgotten
from apps.openflow.framework import EventBase, set_ev_cls
from apps.policy_file import PolicyFile, PolicyReading
from apps.status_client import query
from controller.alarms.events import ConditionReported
from controller.config.policy import Policy
from controller.config.settings import Monitor, PrometheusEndpoint
from controller.snapshot.events import Severity

TIMEOUT_S = 10.0
MUCH = 1000
"""More than the framework's own queue of an app holds."""


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "policy.yaml").write_text("version: 1\nmonitor: {prometheus: {enabled: false}}\n")
    monkeypatch.setenv("VSRT_CONFIG", str(tmp_path / "policy.yaml"))
    monkeypatch.setenv("VSRT_STATE_DIR", str(tmp_path))
    for name in ("VSRT_SOCKET", "VSRT_AUDIT_LOG"):
        monkeypatch.delenv(name, raising=False)
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


@contextmanager
def running(*kinds: type[App]) -> Iterator[tuple[Any, ...]]:
    """Apps on their loops, which know of each other."""
    manager = app_manager.AppManager.get_instance()
    apps = [manager.instantiate(kind) for kind in kinds]
    try:
        for app in apps:
            app.start()
        yield tuple(apps)
    finally:
        for app in apps:
            app.stop()
            del manager.applications[app.name]
            app_manager.unregister_app(app)


class Held:
    """Keeps a loop from its events, of which many wait, and has it do `then` before it goes on."""

    def __init__(self, app: App, then: Callable[[], None]) -> None:
        self._app = app
        self._then: Callable[[], None] | None = then
        self._begun, self._released, self._done = threading.Event(), threading.Event(), threading.Event()

    def __enter__(self) -> Held:
        threading.Thread(target=self._app.ask, args=(self._hold, TIMEOUT_S)).start()
        assert self._begun.wait(TIMEOUT_S)
        for _ in range(MUCH):
            self._app.reactor.call(int)
        return self

    def _hold(self) -> None:
        self._begun.set()
        self._released.wait()
        if self._then is not None:
            self._then()
        self._done.set()

    def goes_on(self) -> bool:
        """Let the loop do what it is to, and tell whether it is done with it."""
        self._released.set()
        return self._done.wait(TIMEOUT_S)

    def __exit__(self, failure: object, *_: object) -> None:
        if failure is not None:
            self._then = None
        self._released.set()


def test_two_loops_that_tell_each_other_go_on_though_much_waits_for_both(tmp_path: Path) -> None:
    report = ConditionReported("multicast", "test", "1", Severity.WARNING, "A report.", 1)
    with running(AlarmsApp, MulticastApp) as (alarms, multicast):
        tell = partial(alarms.send_event_to_observers, SwitchForgotten(9))
        with Held(multicast, partial(multicast.report, report)) as multicasts, Held(alarms, tell) as alarms_s:
            assert alarms_s.goes_on(), "the alarms wait for multicast, which will report to them"
            assert multicasts.goes_on()
        assert multicast.ask(lambda: "alive") == alarms.ask(lambda: "alive") == "alive"
        assert "test:1" in {alarm["key"] for alarm in query(tmp_path / "vsrt.sock", {"show": "alarms"})["alarms"]}


class Word(EventBase):
    """Something that an app tells another."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class Idle:
    xid_tag = 0

    def handle(self, _event: Any, _now: float) -> tuple[Any, ...]:
        return ()

    def next_deadline(self) -> float | None:
        return None


class Teller(App):
    _EVENTS: ClassVar[list[type]] = [Word]

    def __init__(self) -> None:
        super().__init__()
        self.core = Idle()
        self.policy_file = PolicyFile(self.logger)
        self.policy_file.reading = PolicyReading(
            Policy(monitor=Monitor(prometheus=PrometheusEndpoint(enabled=False)))
        )


class Listener(Teller):
    _EVENTS: ClassVar[list[type]] = []

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[int] = []
        self.is_last = threading.Event()

    @set_ev_cls(Word)
    def _told(self, event: Word) -> None:
        self.heard.append(event.number)
        if event.number < 0:
            self.is_last.set()


def test_what_a_busy_app_is_told_comes_in_its_order_when_it_is_free() -> None:
    with running(Teller, Listener) as (teller, listener):
        with Held(listener, lambda: None):
            for number in range(200):
                teller.send_event_to_observers(Word(number))
        teller.send_event_to_observers(Word(-1))
        assert listener.is_last.wait(TIMEOUT_S)
        assert listener.heard == [*range(200), -1]
        assert listener.notices["event-dropped"] == 0


def test_no_more_than_a_bound_waits_for_a_busy_app_and_what_is_dropped_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reactor, "WAITING_BOUND", MUCH + 10)
    with running(Teller, Listener) as (teller, listener):
        with Held(listener, lambda: None):
            for number in range(100):
                teller.send_event_to_observers(Word(number))
            assert listener.notices["event-dropped"] == 90
        text = f"Word is not taken in: {MUCH + 10} events wait already (1 were not so far)."
        assert caplog.text.count(text) == caplog.text.count("is not taken in") == 1
        while listener.reactor.backlog:
            time.sleep(0.001)
        teller.send_event_to_observers(Word(-1))
        assert listener.is_last.wait(TIMEOUT_S)
        assert listener.heard == [*range(10), -1]
