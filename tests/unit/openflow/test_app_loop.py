"""What an app does on its loop beside what switches tell: deadlines, files, failures, and its words to other apps."""

from __future__ import annotations

import struct
import threading
import time
from typing import Any, ClassVar

import pytest

pytest.importorskip("os_ken")

from apps.openflow import app as app_module
from apps.openflow import fabric_app
from apps.openflow.bus import TableSuspected, TopologyChanged
from apps.openflow.fabric_app import FabricApp
from apps.openflow.framework import SWITCHES
from controller.effects import EntriesLost, Notice, SendPacket
from controller.events import (
    CheckRequested,
    DeadlineReached,
    PacketReceived,
    SwitchConnected,
    SwitchDescription,
    SwitchDisconnected,
)
from served_app import (
    DESC,
    PACKET_IN,
    PACKET_OUT,
    STATS_REPLY,
    STATS_REQUEST,
    TIMEOUT_S,
    NotingApp,
    Switch,
    packet_in,
    serving,
    told_until,
)
from topology.events import LinkDown, SwitchUp

SOON_S = 0.05
FAULT = "a fault of ours"


class Another(NotingApp):
    """Another app, on the same loop."""


def want(app: NotingApp, deadline_s: float | None) -> None:
    """Have the core want to be woken at a time."""

    def change() -> None:
        app.core.deadline_s = deadline_s

    app.ask(change)


# Deadlines


def test_a_core_is_told_of_its_deadline_when_it_has_come_and_once() -> None:
    with serving(NotingApp) as (app,):
        due_s = time.monotonic() + SOON_S
        want(app, due_s)
        assert told_until(app.core, DeadlineReached) == [DeadlineReached()]
        assert time.monotonic() >= due_s
        want(app, None)
        assert app.core.told.empty()


def test_a_sooner_deadline_counts_and_one_that_is_taken_back_does_not() -> None:
    with serving(NotingApp, Another) as (app, other):
        want(app, time.monotonic() + SOON_S)
        want(app, None)
        want(other, time.monotonic() + 1000)
        want(other, time.monotonic() + 2 * SOON_S)
        assert told_until(other.core, DeadlineReached) == [DeadlineReached()]
        assert app.core.told.empty()


def test_a_core_that_has_a_deadline_from_the_start_is_told_of_it() -> None:
    class Eager(NotingApp):
        def __init__(self) -> None:
            super().__init__()
            self.core.deadline_s = time.monotonic()

    with serving(Eager) as (app,):
        assert told_until(app.core, DeadlineReached) == [DeadlineReached()]


def test_a_failure_costs_one_event_and_no_deadline(caplog: pytest.LogCaptureFixture) -> None:
    with serving(NotingApp, Another) as (app, other), Switch(9, 4) as switch:
        told_until(app.core, SwitchConnected)
        app.core.effects[PacketReceived] = LookupError(FAULT)
        app.core.deadline_s = time.monotonic() + SOON_S
        switch.send(PACKET_IN, 0, packet_in(4, 1, bytes(60)))
        assert len(told_until(app.core, DeadlineReached)) == 2
        assert len(told_until(other.core, PacketReceived)) == 2, "others are told all the same"
        assert app.ask(lambda: app.notices["handler-failed"]) == 1
    assert "Noting: The handling of PacketReceived failed." in caplog.text and FAULT in caplog.text


def test_packets_that_came_together_fail_one_by_one_in_one_turn() -> None:
    with serving(NotingApp) as (app,):
        app.core.effects[PacketReceived] = LookupError(FAULT)
        packets = [PacketReceived(9, port_no, bytes(60)) for port_no in range(1, 4)]

        def take() -> tuple[int, int]:
            turns, failures = sum(app.turns.reading().counts), app.notices["handler-failed"]
            app.packets_received(packets)
            return sum(app.turns.reading().counts) - turns, app.notices["handler-failed"] - failures

        assert app.ask(take) == (1, 3)
        told = [app.core.told.get_nowait() for _ in range(app.core.told.qsize())]
        assert [event for event in told if isinstance(event, PacketReceived)] == packets


class Asked(NotingApp):
    """An app that counts how often its core is asked for its next deadline."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_count = 0
        ask = self.core.next_deadline

        def next_deadline() -> float | None:
            self.asked_count += 1
            return ask()

        self.core.next_deadline = next_deadline  # type: ignore[method-assign]


def test_a_core_is_asked_for_its_deadline_once_for_all_that_one_turn_of_the_loop_brought() -> None:
    messages = 50
    with serving(Asked) as (app,), Switch(9, 4) as switch:
        told_until(app.core, SwitchConnected)
        is_held, may_go_on = threading.Event(), threading.Event()
        app.reactor.call(lambda: (is_held.set(), may_go_on.wait(TIMEOUT_S)))
        assert is_held.wait(TIMEOUT_S)
        for _ in range(messages):
            switch.send(PACKET_IN, 0, packet_in(4, 1, bytes(60)))
        before = app.asked_count
        due_s = time.monotonic() + SOON_S
        app.core.deadline_s = due_s
        may_go_on.set()
        events = told_until(app.core, DeadlineReached)
        assert time.monotonic() >= due_s
        assert sum(isinstance(event, PacketReceived) for event in events) == messages
        assert app.asked_count - before < messages / 2


def test_a_core_that_cannot_tell_its_deadline_is_asked_again_after_the_next_event(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serving(Asked) as (app,), Switch(9, 4) as switch:
        told_until(app.core, SwitchConnected)
        ask = app.core.next_deadline

        def fail() -> float | None:
            app.core.next_deadline = ask  # type: ignore[method-assign]
            raise LookupError(FAULT)

        app.core.next_deadline = fail  # type: ignore[method-assign]
        switch.send(PACKET_IN, 0, packet_in(4, 1, bytes(60)))
        told_until(app.core, PacketReceived)
        want(app, time.monotonic())
        told_until(app.core, DeadlineReached)
        assert app.ask(lambda: app.notices["handler-failed"]) == 1
    assert "The handling of its next deadline failed." in caplog.text and FAULT in caplog.text


# Files


class Ticking(NotingApp):
    """An app that looks after files, and fails at it."""

    def __init__(self) -> None:
        super().__init__()
        self.tick_s: list[float] = []
        self.thrice = threading.Event()

    def ticked(self) -> None:
        self.tick_s.append(time.monotonic())
        if len(self.tick_s) == 3:
            self.core.deadline_s = time.monotonic()
            self.thrice.set()
        raise LookupError(FAULT)


def test_files_are_looked_after_now_and_then_whatever_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_module, "TICK_S", SOON_S)
    began_s = time.monotonic()
    with serving(Ticking, Another) as (app, other):
        want(app, time.monotonic() + 1000)
        assert app.thrice.wait(TIMEOUT_S)
        assert told_until(app.core, DeadlineReached) == [DeadlineReached()], "what it did there may be due"
        assert app.notices["handler-failed"] >= 3
        assert all(
            later - sooner >= SOON_S for sooner, later in zip([began_s, *app.tick_s], app.tick_s, strict=False)
        )
        assert other.core.told.empty() and not other.notices


# Begin and end


class Faulty(NotingApp):
    """An app that begins and ends badly, and notes when."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[str] = []

    def begin(self) -> None:
        self.steps.append("begin")
        self.core.deadline_s = time.monotonic()
        raise LookupError(FAULT)

    def feed(self, event: Any) -> None:
        self.steps.append(type(event).__name__)
        super().feed(event)

    def end(self) -> None:
        self.steps.append("end")
        raise LookupError(FAULT)


def test_an_app_that_begins_and_ends_badly_works_in_between(caplog: pytest.LogCaptureFixture) -> None:
    with serving(Faulty, Another) as (app, other):
        told_until(app.core, DeadlineReached)
        with Switch(9, 4) as switch:
            told_until(app.core, SwitchConnected)
            app.stop()
            switch.send(PACKET_IN, 0, packet_in(4, 1, bytes(60)))
            assert len(told_until(other.core, PacketReceived)) == 2
            want(other, time.monotonic())
            told_until(other.core, DeadlineReached)
    assert app.steps == ["begin", "DeadlineReached", "SwitchConnected", "end"]
    assert app.notices["handler-failed"] == 2
    assert "The handling of begin failed." in caplog.text and "The handling of end failed." in caplog.text


# What apps tell, and each other


class Monitor(NotingApp):
    """Goes by the name of an app whose notices operators see."""


@pytest.mark.parametrize(("kinds", "teller"), [((Another, NotingApp), 0), ((Another, Monitor), 1)])
def test_one_app_tells_that_a_connection_was_cut(kinds: tuple[type[NotingApp], ...], teller: int) -> None:
    with serving(*kinds) as apps, Switch(9, 4) as switch:
        for app in apps:
            told_until(app.core, SwitchConnected)
        SWITCHES.call(switch.datapath.connection.cut, "it took nothing for 5 s")
        for app in apps:
            told_until(app.core, SwitchDisconnected)
        text = (
            "The connection of switch 9 was cut: it took nothing for 5 s. The switch is read afresh when it is back."
        )
        assert [app.texts for app in apps] == [[text] if app is apps[teller] else [] for app in apps]
        assert apps[teller].notices == {"switch-cut-off": 1}


class Losing(NotingApp):
    """An app that finds entries missing where a frame comes in."""

    _EVENTS: ClassVar[list[type]] = [TableSuspected]

    def __init__(self) -> None:
        super().__init__()
        self.core.effects[PacketReceived] = [EntriesLost(9)]


def test_an_app_that_lost_entries_has_the_others_look_and_not_itself() -> None:
    with serving(Losing, Another) as (app, other), Switch(9, 4) as switch:
        switch.send(PACKET_IN, 0, packet_in(4, 1, bytes(60)))
        assert told_until(other.core, CheckRequested)[-1] == CheckRequested(9)
        told = told_until(app.core, PacketReceived)
        app.ask(lambda: None)
        assert app.core.told.empty() and not any(isinstance(event, CheckRequested) for event in told)


class Following(FabricApp, NotingApp):
    """An app that follows the fabric and shows switches."""

    _EVENTS: ClassVar[list[type]] = [TopologyChanged]

    def __init__(self) -> None:
        super().__init__()
        self.descriptions: list[tuple[int, SwitchDescription]] = []
        self.followed: list[Any] = []

    def follow(self, change: Any) -> None:
        self.followed.append(change)
        super().follow(change)

    def described(self, dpid: int, description: SwitchDescription) -> None:
        self.descriptions.append((dpid, description))


class FollowingToo(Following):
    """Another one."""

    _EVENTS: ClassVar[list[type]] = []


def test_every_change_of_the_fabric_is_told_in_its_order() -> None:
    changes = (SwitchUp(1, 4), SwitchUp(2, 4), LinkDown(1, 1, 2, 1))
    with serving(Following, FollowingToo) as apps:
        apps[0].send_event_to_observers(TopologyChanged(changes))
        for app in apps:
            assert tuple(told_until(app.core, LinkDown)) == changes


def test_changes_that_take_long_leave_the_loop_to_others_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fabric_app, "FOLLOW_S", 0.0)
    first, later = (SwitchUp(1, 4), SwitchUp(2, 4), SwitchUp(3, 4)), (LinkDown(1, 1, 2, 1),)
    with serving(Following) as (app,):
        turns: list[int] = []

        def both() -> None:
            app.send_event_to_observers(TopologyChanged(first))
            app.send_event_to_observers(TopologyChanged(later))
            for _ in range(3):
                app.reactor.call(lambda: turns.append(len(app.followed)))

        app.reactor.call(both)
        assert tuple(told_until(app.core, LinkDown)) == (*first, *later)
        assert turns[0] == 1, "the first change, and then others on the loop"


def test_a_change_that_cannot_be_followed_costs_no_other_one() -> None:
    with serving(Following) as (app,):
        app.core.effects[SwitchUp] = LookupError(FAULT)
        app.send_event_to_observers(TopologyChanged((SwitchUp(1, 4), SwitchUp(2, 4), LinkDown(1, 1, 2, 1))))
        assert len(told_until(app.core, LinkDown)) == 3
        assert app.ask(lambda: app.notices["handler-failed"]) == 2


def test_an_app_that_ends_has_followed_all_it_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fabric_app, "FOLLOW_S", 0.0)
    changes = tuple(SwitchUp(dpid, 4) for dpid in range(1, 9))
    with serving(Following) as (app,):
        app.send_event_to_observers(TopologyChanged(changes))
        app.stop()
        assert app.core.told.qsize() == len(changes)


@pytest.mark.parametrize("version", [1, 4], ids=["OpenFlow 1.0", "OpenFlow 1.3"])
def test_a_switch_is_asked_once_per_connection_what_it_calls_itself(version: int) -> None:
    with serving(Following, FollowingToo) as apps:
        for number in (1, 2):
            with Switch(9, version) as switch:
                for app in apps:
                    told_until(app.core, SwitchConnected)
                xid = switch.receive_stats_request(DESC)
                words = (b"maker\0rest", b"\x1b[31mred\n", bytes(range(128, 256)) * 2, b"7" * 32, b"leaf %d" % number)
                body = struct.pack("!256s256s256s32s256s", *words)
                head = struct.pack("!HH", DESC, 0) + bytes(0 if version == 1 else 4)
                switch.send(STATS_REPLY[version], xid, head + body)
                apps[0].ask(lambda: apps[0].perform([SendPacket(9, (1,), b"last")]))
                kinds = [switch.receive()[0]]
                while kinds[-1] != PACKET_OUT:
                    kinds.append(switch.receive()[0])
                assert STATS_REQUEST[version] not in kinds
                switch.send(PACKET_IN, 0, packet_in(version, 1, bytes(60)))
                for app in apps:
                    told_until(app.core, PacketReceived)
        told = "maker", "\\x1b[31mred", "\ufffd" * 256, "7" * 32
        assert [app.descriptions for app in apps] == [
            [(9, SwitchDescription(*told, "leaf 1")), (9, SwitchDescription(*told, "leaf 2"))]
        ] * 2


def test_what_an_app_has_no_way_to_do_is_a_fault_of_ours() -> None:
    with serving(NotingApp) as (app,), Switch(9, 4) as switch:
        app.core.effects[PacketReceived] = [Notice("told", "Something."), object()]
        switch.send(PACKET_IN, 0, packet_in(4, 1, bytes(60)))
        told_until(app.core, PacketReceived)
        assert app.ask(lambda: app.notices) == {"told": 1, "handler-failed": 1}
