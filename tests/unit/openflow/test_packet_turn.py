"""An app's core is given packet-ins that came together in one go, unless somebody is to see each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from apps.openflow.app_watch import AppWatch
from apps.openflow.packet_turn import PacketTaker, feed_packets
from controller.events import PacketReceived

EVENTS = [PacketReceived(1, number, b"") for number in range(4)]


class NotedCore:
    """Asks for what it is given, the event itself; fails at some."""

    def __init__(self, failing: Iterable[PacketReceived]) -> None:
        self.failing = set(failing)
        self.turns: list[int] = []

    def packets_received(self, events: Iterator[PacketReceived], now: float, effects: list[Any]) -> None:
        self.turns.append(0)
        for event in events:
            self.turns[-1] += 1
            if event in self.failing:
                raise RuntimeError("a defect")
            effects.append(event)

    def handle(self, event: PacketReceived) -> list[Any]:
        effects: list[Any] = []
        self.packets_received(iter([event]), 0.0, effects)
        return effects


class PacketApp(PacketTaker):
    """What `feed_packets` wants of an app."""

    takes_events = takes_packets_together = True
    is_recorded = False

    def __init__(self, failing: Iterable[PacketReceived] = ()) -> None:
        self.core = NotedCore(failing)
        self.performed: list[Any] = []
        self.failed_at: list[str] = []

    def feed(self, event: Any) -> None:
        self.perform(self.core.handle(event))

    def perform(self, effects: Iterable[Any]) -> None:
        self.performed += effects

    def failed(self, what: str) -> None:
        self.failed_at.append(what)


def test_they_are_given_in_one_go():
    app = PacketApp()
    feed_packets(app, EVENTS)
    assert (app.core.turns, app.performed, app.failed_at) == ([4], EVENTS, [])


@pytest.mark.parametrize("is_recorded", [False, True])
def test_those_behind_one_that_fails_are_taken(is_recorded):
    app = PacketApp(failing=[EVENTS[1], EVENTS[3]])
    app.is_recorded = is_recorded
    feed_packets(app, EVENTS)
    assert app.performed == [EVENTS[0], EVENTS[2]]
    assert app.failed_at == ["PacketReceived"] * 2


def test_a_core_that_fails_behind_the_last_is_asked_no_more_than_there_are_packets():
    class FailingCore(NotedCore):
        def packets_received(self, events: Iterator[PacketReceived], now: float, effects: list[Any]) -> None:
            super().packets_received(events, now, effects)
            raise RuntimeError("a defect")

    app = PacketApp()
    app.core = FailingCore(())
    feed_packets(app, EVENTS)
    assert app.core.turns[0] == len(EVENTS)
    assert len(app.core.turns) <= len(EVENTS)
    assert app.performed == EVENTS


def test_those_behind_one_at_which_somebody_fails_are_taken():
    def look(event: PacketReceived) -> None:
        if event is EVENTS[1]:
            raise ValueError("no")

    app = PacketApp()
    AppWatch(app).watch("event", PacketReceived, look)
    feed_packets(app, EVENTS)
    assert app.performed == [EVENTS[0], *EVENTS[2:]]
    assert app.failed_at == ["PacketReceived"]


def test_who_looks_has_each_when_the_core_comes_to_it():
    app, seen = PacketApp(), []
    end = AppWatch(app).watch("event", PacketReceived, lambda event: seen.append((event, sum(app.core.turns))))
    feed_packets(app, EVENTS)
    assert (app.core.turns, app.performed) == ([4], EVENTS)
    assert seen == [(event, number) for number, event in enumerate(EVENTS)]
    end()
    feed_packets(app, EVENTS)
    assert len(seen) == 4


def test_who_looks_at_effects_too_has_those_of_each_before_the_next():
    app, seen = PacketApp(), []
    watched = AppWatch(app)
    ends = [
        watched.watch(what, PacketReceived, lambda each, what=what: seen.append((what, each)))
        for what in ("event", "effect")
    ]
    feed_packets(app, EVENTS)
    assert seen == [(what, event) for event in EVENTS for what in ("event", "effect")]
    assert (app.core.turns, app.performed) == ([4], EVENTS)
    app.perform(EVENTS[:1])
    assert seen[8:] == [("effect", EVENTS[0])]
    for end in ends:
        end()
    feed_packets(app, EVENTS)
    assert app.core.turns == [4, 4]
    assert set(vars(app)) == {"core", "performed", "failed_at"}


def test_of_effects_that_nobody_has_seen_none_is_left_out_where_one_packet_fails():
    app, seen = PacketApp(failing=[EVENTS[1]]), []
    watched = AppWatch(app)
    watched.watch("event", PacketReceived, lambda event: None)
    watched.watch("effect", PacketReceived, seen.append)
    for _ in range(2):
        feed_packets(app, EVENTS)
    assert seen == app.performed == [EVENTS[0], *EVENTS[2:]] * 2


def test_a_core_that_takes_one_at_a_time_is_given_each():
    app = PacketApp()
    app.takes_packets_together = False
    feed_packets(app, EVENTS)
    assert (app.core.turns, app.performed) == ([1] * 4, EVENTS)
