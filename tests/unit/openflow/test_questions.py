"""Questions to an app whose loop is busy: what is refused is not done later, and what is under way is told to be."""

from __future__ import annotations

import gc
import json
import logging
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("os_ken")

from os_ken.base import app_manager

from apps.openflow import questions
from apps.openflow.app import App
from apps.openflow.framework import EventBase, set_ev_cls
from apps.openflow.questions import Unanswered
from apps.policy_file import PolicyFile, PolicyReading
from apps.status_server import StatusServer
from controller.config.policy import Policy
from controller.config.settings import Monitor, PrometheusEndpoint

TIMEOUT_S = 20.0


class Idle:
    xid_tag = 0

    def handle(self, _event: Any, _now: float) -> tuple[Any, ...]:
        return ()

    def next_deadline(self) -> float | None:
        return None


class Poked(EventBase):
    """An event from another app."""


class Watchful(App):
    """Gives its core each event from another app."""

    @set_ev_cls(Poked)
    def poked(self, event: Poked) -> None:
        self.feed(event)


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    monkeypatch.setattr(questions, "BEGIN_S", 0.3)
    monkeypatch.setattr(questions, "END_S", 0.8)
    thresholds = gc.get_threshold()
    app = Watchful()
    app.core = Idle()
    app.policy_file = PolicyFile(app.logger)
    app.policy_file.reading = PolicyReading(Policy(monitor=Monitor(prometheus=PrometheusEndpoint(port=0))))
    app_manager.register_app(app)
    try:
        app.start()
        yield app
        app.stop()
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
        app_manager.unregister_app(app)


class Busy:
    """Keeps an app's loop from its other events while the context lasts."""

    def __init__(self, app: App) -> None:
        self._began, self._end = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._occupy, args=(app,))

    def _occupy(self, app: App) -> None:
        with suppress(Unanswered):
            app.ask(self._wait)

    def _wait(self) -> None:
        self._began.set()
        self._end.wait(TIMEOUT_S)

    def __enter__(self) -> None:
        self._thread.start()
        assert self._began.wait(TIMEOUT_S)

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()


def test_what_has_not_begun_is_taken_back(app: App) -> None:
    done: list[int] = []
    with Busy(app), pytest.raises(Unanswered, match=r"did not begin within 0\.3 s: nothing was done") as refused:
        app.ask(lambda: done.append(1))
    assert not refused.value.begun
    app.ask(lambda: done.append(2))
    assert done == [2]


def test_a_full_queue_holds_nobody_up_for_ever(app: App) -> None:
    done: list[int] = []
    with Busy(app):
        for _ in range(128):
            app.send_event(app.name, Poked())
        with pytest.raises(Unanswered, match="nothing was done"):
            app.ask(lambda: done.append(1))
    app.ask(lambda: done.append(2))
    assert done == [2]


def scrape(app: App) -> str:
    (endpoint,) = [app._endpoint]
    assert endpoint is not None
    return "".join(endpoint.text())


def test_prometheus_is_told_of_a_loop_that_is_held_up_without_waiting_for_it(app: App) -> None:
    (turns,) = re.findall(r'^vsrt_app_turn_seconds_count\{app="watchful"\} (\d+)$', scrape(app), re.M)
    with Busy(app):
        for _ in range(200):
            if app.reactor.backlog >= 5:
                break
            app.send_event(app.name, Poked())
        held_up = scrape(app)
        for _ in range(200):
            if app.reactor.backlog >= 128:
                break
            app.send_event(app.name, Poked())
        full = scrape(app)
    for page, least in ((held_up, 5), (full, 128)):
        (backlog,) = re.findall(r'^vsrt_app_backlog_events\{app="watchful"\} (\d+)$', page, re.M)
        assert int(backlog) >= least
        assert f'vsrt_app_turn_seconds_count{{app="watchful"}} {turns}\n' in page
    app.ask(lambda: None)
    page = scrape(app)
    (after,) = re.findall(r'^vsrt_app_turn_seconds_count\{app="watchful"\} (\d+)$', page, re.M)
    assert int(after) >= int(turns) + 128
    assert 'vsrt_app_turn_seconds_bucket{app="watchful",le="0.25"}' in page


def test_what_has_begun_is_told_to_go_on(app: App) -> None:
    begun, end = threading.Event(), threading.Event()
    done: list[int] = []

    def work() -> None:
        begun.set()
        end.wait(TIMEOUT_S)
        done.append(1)

    with pytest.raises(Unanswered, match="may still take effect") as unanswered:
        app.ask(work)
    assert unanswered.value.begun and begun.is_set() and not done
    end.set()
    app.ask(lambda: None)
    assert done == [1]


def test_the_socket_says_what_became_of_it(app: App, tmp_path: Path) -> None:
    done: list[int] = []
    actions = {"act": lambda _asked: done.append(1)}
    server = StatusServer(tmp_path / "status.sock", {}, app.ask, logging.getLogger("status"), actions)
    server.start()
    with Busy(app), socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(TIMEOUT_S)
        connection.connect(str(tmp_path / "status.sock"))
        connection.sendall(b'{"do": "act"}\n')
        answer = json.loads(connection.makefile().readline())
    server.stop()
    app.ask(lambda: None)
    assert (answer["unanswered"], done) == ("not-begun", [])
    assert answer["error"].endswith("nothing was done")


def test_an_app_outlives_the_failure_of_a_handler(app: App, caplog: pytest.LogCaptureFixture) -> None:
    class Faulty(Idle):
        def handle(self, _event: Any, _now: float) -> tuple[Any, ...]:
            raise LookupError("a fault of ours")

    app.core = Faulty()
    with caplog.at_level(logging.ERROR):
        app.send_event(app.name, Poked())
        assert app.ask(lambda: "alive") == "alive"
    assert "The handling of Poked failed." in caplog.text and "a fault of ours" in caplog.text
    assert app.notices["handler-failed"] == 1
