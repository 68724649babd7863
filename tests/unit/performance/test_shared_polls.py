"""The monitor's core where monitors share the switches: what it polls, for how long, and what it tells of it."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from controller.config.settings import Monitor
from controller.events import DeadlineReached, Port, PortChanged, SwitchConnected, SwitchDisconnected
from controller.performance.effects import EventsRaised, SamplesRated
from controller.performance.poller_core import MonitorCore
from controller.performance.requests import RequestStats, StatsReceived
from controller.performance.shared_polls import (
    PollsStopped,
    SharedMonitorCore,
    SharesConfirmed,
    SharesLeft,
    SharesTaken,
    SwitchesHeld,
)

AT_S = 1_700_000_000.0
INTERVAL_S = 10
PORTS = tuple(Port(number, f"p{number}", bytes(6), True, 1e9) for number in (1, 2))


class Driven:
    """A core, and what came of it as time went on."""

    def __init__(self) -> None:
        self.now = 100.0
        self.core = SharedMonitorCore(Monitor(interval_s=INTERVAL_S, share="cluster"), self.now, AT_S)
        self.out: list[Any] = []

    def feed(self, event: Any) -> list[Any]:
        found = self.core.handle(event, self.now)
        self.out += found
        for effect in found:
            if isinstance(effect, RequestStats):
                self.answer(effect)
        return found

    def answer(self, request: RequestStats) -> None:
        """Answer as a switch does, with counters that go with the time."""
        xid = struct.unpack_from("!I", request.message, 4)[0]
        octets = int(self.now * 1000)
        body = b"".join(
            struct.pack("!I4x12QII", port.port_no, 0, 0, octets, octets, *[0] * 8, int(self.now), 0) for port in PORTS
        )
        message = struct.pack("!BBHIHH4x", 4, 19, 16 + len(body), xid, 4, 0) + body
        self.out += self.core.handle(StatsReceived(request.dpid, 4, xid, message, AT_S + self.now - 100.0), self.now)

    def run(self, until_s: float) -> None:
        while (due_s := self.core.next_deadline()) is not None and due_s <= until_s:
            self.now = max(self.now, due_s)
            self.feed(DeadlineReached())
        self.now = until_s

    def taken(self, kind: type) -> list[Any]:
        found = [effect for effect in self.out if isinstance(effect, kind)]
        self.out = []
        return found

    def polled(self) -> list[int]:
        return [request.dpid for request in self.taken(RequestStats)]


@pytest.fixture
def driven() -> Driven:
    """Switches 1 to 3 are connected, nothing is shared out yet."""
    driven = Driven()
    for dpid in (1, 2, 3):
        driven.feed(SwitchConnected(dpid, 4, (*PORTS, Port(0xFFFFFFFE, "local", bytes(6), True, 0.0))))
    return driven


def test_what_is_connected_is_told_soon_and_nothing_is_polled(driven: Driven):
    driven.run(130.0)
    held = driven.out
    assert [effect.switches for effect in held if isinstance(effect, SwitchesHeld)][-1] == tuple(
        (dpid, 2, INTERVAL_S) for dpid in (1, 2, 3)
    )
    assert driven.polled() == []


def test_the_share_is_polled_when_it_is_due_and_then_in_turn(driven: Driven):
    driven.feed(SharesConfirmed(1000.0))
    driven.feed(SharesTaken(((1, 5, 0.0), (2, 6, 4.0))))
    driven.run(101.0)
    assert driven.polled() == [1]
    driven.run(105.0)
    assert 2 in driven.polled()
    driven.run(125.0)
    assert set(driven.polled()) == {1, 2}


def test_rows_have_the_epoch_of_the_share(driven: Driven):
    driven.feed(SharesConfirmed(1000.0))
    driven.feed(SharesTaken(((1, 5, 0.0), (3, 7, 0.0))))
    driven.run(102.0)
    rated = driven.taken(SamplesRated)
    rows = np.concatenate([effect.samples.rows for effect in rated])
    dpids = [driven.core.ports.name(int(row)).dpid for row in rows]
    assert sorted(zip(dpids, driven.core.epochs_of(rows).tolist(), strict=True)) == [(1, 5), (1, 5), (3, 7), (3, 7)]


def test_what_is_left_is_polled_no_more_and_the_rest_of_its_time_is_told(driven: Driven):
    driven.feed(SharesConfirmed(1000.0))
    driven.feed(SharesTaken(((1, 5, 0.0),)))
    driven.run(102.0)
    driven.taken(RequestStats)
    (stopped,) = [each for each in driven.feed(SharesLeft((1, 2))) if isinstance(each, PollsStopped)]
    (first, first_due_s), (second, second_due_s) = stopped.due_in_s
    assert (first, second, second_due_s) == (1, 2, 0.0) and 0.0 < first_due_s <= INTERVAL_S
    driven.run(140.0)
    assert driven.polled() == []


def test_what_waits_is_rated_with_its_epoch_before_the_switch_is_left(driven: Driven):
    driven.feed(SharesConfirmed(1000.0))
    driven.feed(SharesTaken(((1, 5, 0.0),)))
    driven.run(100.0)
    assert driven.polled() == [1]
    (rated,) = [each for each in driven.feed(SharesLeft((1,))) if isinstance(each, SamplesRated)]
    assert set(driven.core.epochs_of(rated.samples.rows).tolist()) == {5}


def test_nothing_is_polled_beyond_the_time_that_was_confirmed(driven: Driven):
    driven.feed(SharesConfirmed(105.0))
    driven.feed(SharesTaken(((1, 5, 0.0),)))
    driven.run(104.9)
    driven.taken(RequestStats)
    driven.now = 131.0  # a pause of the whole process
    driven.feed(DeadlineReached())
    driven.run(140.0)
    assert driven.polled() == []
    driven.feed(SharesConfirmed(200.0))
    driven.run(141.0)
    assert driven.polled() == [1]


def test_the_first_sample_after_another_had_a_switch_is_compared_with_none(driven: Driven):
    driven.feed(SharesConfirmed(1000.0))
    driven.feed(SharesTaken(((1, 5, 0.0),)))
    driven.run(125.0)
    driven.feed(SharesLeft((1,)))
    driven.run(160.0)
    driven.taken(SamplesRated)
    driven.feed(SharesTaken(((1, 7, 0.0),)))
    driven.run(162.0)
    (rated,) = driven.taken(SamplesRated)
    assert np.isnan(rated.rates.interval_s).all()
    driven.run(182.0)
    assert not np.isnan(driven.taken(SamplesRated)[-1].rates.interval_s).any()


def test_a_switch_that_connects_again_is_polled_again(driven: Driven):
    driven.feed(SharesConfirmed(1000.0))
    driven.feed(SharesTaken(((1, 5, 0.0),)))
    driven.feed(SwitchDisconnected(1))
    driven.taken(RequestStats)
    driven.run(130.0)
    assert [held.switches for held in driven.taken(SwitchesHeld)][-1] == tuple((d, 2, INTERVAL_S) for d in (2, 3))
    driven.feed(SwitchConnected(1, 4, PORTS))
    driven.run(131.0)
    assert driven.polled() == [1]


def test_links_of_switches_that_others_poll_are_no_events_here(driven: Driven):
    down = PORTS[0]._replace(up=False)
    driven.feed(SharesConfirmed(1000.0))
    driven.feed(SharesTaken(((1, 5, 0.0),)))
    driven.feed(PortChanged(1, down, False))
    assert driven.taken(EventsRaised)
    driven.feed(PortChanged(2, down, False))
    driven.feed(PortChanged(9, down, False))
    driven.run(101.0)
    assert not driven.taken(EventsRaised)


def test_ports_that_come_and_go_are_counted(driven: Driven):
    driven.run(101.0)
    driven.out = []
    driven.feed(PortChanged(1, Port(3, "p3", bytes(6), True, 1e9), False))
    driven.feed(PortChanged(2, PORTS[0], True))
    driven.run(103.0)
    assert driven.taken(SwitchesHeld)[-1].switches == ((1, 3, 10), (2, 1, 10), (3, 2, 10))


def test_a_monitor_that_shares_nothing_has_another_core():
    from apps.registry import APPS

    spec = APPS["monitor"].core
    assert spec is not None
    starts = ({"monitor": Monitor(share=share), "at_s": AT_S} for share in ("none", "cluster"))
    assert [type(spec().make(start, 0.0, None)) for start in starts] == [MonitorCore, SharedMonitorCore]
