"""Whose frames leave when there are fewer than would be due."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.discovery.budget import SLOTS_PER_S, FrameBudget, FramePurpose, FrameUrgency, slots_later
from controller.discovery.settings import DiscoverySettings
from controller.discovery.timers import Timer
from controller.kernel.deadlines import Deadlines
from controller.wire.frame import decode
from controller.wire.packets import Lldp

IDLE = (FrameUrgency.TOUR, FrameUrgency.QUICK, FrameUrgency.SLOW)


class Sender:
    """A budget and what it let go; each subject sends as many frames as `sizes` has."""

    def __init__(self, frames_per_s, idle_frames_per_s):
        self.deadlines: Deadlines[Timer] = Deadlines()
        self.budget = FrameBudget(frames_per_s, idle_frames_per_s, self.deadlines)
        self.sizes = defaultdict(lambda: 1)
        self.sent = []
        for purpose in FramePurpose:
            self.budget.granted[purpose] = self.send
        self.wakes = 0

    def send(self, subject, now):
        self.sent += [(now, subject)] * self.sizes[subject]
        return self.sizes[subject]

    def run(self, until):
        while (at := self.deadlines.next()) is not None and at <= until:
            self.wakes += 1
            for timer in self.deadlines.due(at):
                self.budget.on_deadline(timer.subject, at)


def test_while_there_are_frames_they_leave_at_once():
    sender = Sender(100, 50)
    for subject in range(10):
        sender.budget.ask(FrameUrgency.NEW, FramePurpose.PROBE, subject, 1.0)
    assert sender.sent == [(1.0, subject) for subject in range(10)]
    assert sender.deadlines.next() is None


def test_the_more_urgent_comes_first_and_what_waits_longest_next():
    sender = Sender(64, 64)
    for n in range(32):
        sender.budget.ask(FrameUrgency.NEW, FramePurpose.PROBE, n, 0.0)
    for urgency in reversed(FrameUrgency):
        for n in range(3):
            sender.budget.ask(urgency, FramePurpose.CHECK, (urgency, n), 0.0)
    assert len(sender.sent) == 32
    sender.run(10.0)
    late = [subject for _now, subject in sender.sent[32:]]
    firm = [urgency for urgency in FrameUrgency if urgency < FrameUrgency.QUICK]
    assert late[: 3 * len(firm)] == [(urgency, n) for urgency in firm for n in range(3)]
    assert [subject for subject in late if subject[0] is FrameUrgency.QUICK] == [
        (FrameUrgency.QUICK, n) for n in range(3)
    ]
    assert sender.sent[34][0] <= 1 / SLOTS_PER_S


def test_what_is_suspect_waits_for_nothing_new():
    sender = Sender(64, 64)
    for n in range(1000):
        sender.budget.ask(FrameUrgency.NEW, FramePurpose.PROBE, n, 0.0)
    sender.run(5.0)
    sender.budget.ask(FrameUrgency.SUSPECT, FramePurpose.CHECK, "suspect", 5.01)
    sender.run(20.0)
    ((at, _subject),) = (entry for entry in sender.sent if entry[1] == "suspect")
    assert at <= 5.01 + 2 / SLOTS_PER_S


def test_an_ask_that_waits_is_not_asked_twice():
    sender = Sender(10, 10)
    for n in range(32):
        sender.budget.ask(FrameUrgency.NEW, FramePurpose.REPLY, n, 0.0)
    del sender.sent[:]
    for _ in range(3):
        for subject in range(50):
            sender.budget.ask(FrameUrgency.NEW, FramePurpose.PROBE, subject, 0.0)
    sender.run(20.0)
    assert Counter(subject for _now, subject in sender.sent) == Counter(
        {n: 3 if n < 10 else 1 for n in range(50)}
    ) or (len(sender.sent) <= 50 + 2 * 32)


def test_what_is_slow_gets_a_quarter_of_what_is_left_and_waits_for_ever_for_nobody():
    sender = Sender(1000, 40)
    for n in range(400):
        sender.budget.ask(FrameUrgency.QUICK, FramePurpose.PROBE, ("quick", n), 0.0)
        sender.budget.ask(FrameUrgency.SLOW, FramePurpose.PROBE, ("slow", n), 0.0)
    sender.run(10.0)
    counts = Counter(subject[0] for _now, subject in sender.sent)
    assert counts["slow"] == pytest.approx(100, abs=12)
    assert counts["quick"] == pytest.approx(300, abs=12)


def test_frames_beyond_the_average_are_made_up_for():
    sender = Sender(100, 100)
    sender.sizes["large"] = 80
    sender.budget.ask(FrameUrgency.NEW, FramePurpose.PROBE, "large", 0.0)
    for n in range(10):
        sender.budget.ask(FrameUrgency.NEW, FramePurpose.PROBE, n, 0.0)
    sender.run(10.0)
    assert [subject for _now, subject in sender.sent[80:]] == list(range(10))
    assert sender.sent[80][0] >= 0.3


def test_other_rates_hold_at_once():
    sender = Sender(10, 10)
    for n in range(200):
        sender.budget.ask(FrameUrgency.SLOW, FramePurpose.PROBE, n, 0.0)
    sender.budget.change(1000, 500)
    sender.run(1.0)
    assert len(sender.sent) == 200


def test_a_thousand_turns_a_second_wake_as_often_as_there_are_slots():
    sender = Sender(1000, 1000)
    for n in range(3000):
        sender.budget.ask(FrameUrgency.SLOW, FramePurpose.PROBE, n, 0.0)
    sender.run(10.0)
    assert len(sender.sent) == 3000
    assert sender.wakes <= 3 * SLOTS_PER_S + 1


@pytest.mark.parametrize("interval_s", [0.1, 0.5, 2.0, 7.3])
def test_turns_by_slots_are_regular(interval_s):
    at = slots_later(12.34, interval_s)
    times = [at]
    for _ in range(50):
        times.append(slots_later(times[-1] + 0.001, interval_s))
    gaps = {round(later - now, 9) for now, later in pairwise(times)}
    assert len(gaps) == 1
    assert gaps.pop() == pytest.approx(interval_s, abs=0.5 / SLOTS_PER_S)


@settings(max_examples=100, deadline=None)
@given(
    st.floats(10, 300),
    st.floats(0.05, 1.0),
    st.lists(
        st.tuples(st.sampled_from(FrameUrgency), st.integers(0, 40), st.integers(1, 3), st.floats(0, 0.5)),
        max_size=150,
    ),
)
def test_the_budget_is_a_bound_whatever_is_asked_and_everything_comes_to_its_turn(rate, share, asks):
    sender = Sender(rate, rate * share)
    now = 0.0
    asked = set()
    urgency_of = {}
    for urgency, number, size, pause_s in asks:
        now += pause_s
        sender.run(now)
        subject = (urgency, number)
        sender.sizes[subject] = size
        urgency_of[subject] = urgency
        asked.add(subject)
        sender.budget.ask(urgency, FramePurpose.PROBE, subject, now)
    sender.run(now + 1000.0)
    assert {subject for _now, subject in sender.sent} == asked
    assert sender.budget.waiting_count == 0
    idle = [at for at, subject in sender.sent if urgency_of[subject] in IDLE]
    every = [at for at, _subject in sender.sent]
    for times, per_s, burst in ((every, rate, max(32.0, rate / 2)), (idle, rate * share, max(4.0, rate * share / 4))):
        for first in range(0, len(times), 7):
            for last in range(first, len(times), 7):
                assert last - first + 1 <= burst + 3 + (times[last] - times[first]) * per_s + 1e-6


@pytest.mark.parametrize("idle_per_s", [3.0, 10.0])
def test_a_fabric_at_rest_and_one_that_starts_keep_within_the_budget(make_world, idle_per_s):
    """A ring of ten switches with ten ports each; LLDP is all that leaves."""
    world = make_world(DiscoverySettings(frames_per_s=60.0, idle_frames_per_s=idle_per_s))
    for dpid in range(1, 11):
        world.cable((dpid, 1), (dpid % 10 + 1, 2))
    for dpid in range(1, 11):
        world.connect(dpid, ports=range(1, 11))
    before = len(world.sent)
    for _ in range(20):
        world.run(1.0)
        assert len(world.sent) - before <= 60 + 32
        before = len(world.sent)
    assert len(world.links()) == 10
    world.run(60.0)
    before = len(world.sent)
    world.run(60.0)
    assert len(world.sent) - before <= 60 * idle_per_s + 4
    assert {type(decode(packet.data)) for packet in world.sent} == {Lldp}


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 12), st.floats(20, 200))
def test_edge_ports_are_edge_however_long_their_frames_waited(make_world, count, frames_per_s):
    """No port leads to hosts before the frames have left that would have shown a switch."""
    world = make_world(DiscoverySettings(frames_per_s=frames_per_s, idle_frames_per_s=10.0))
    world.cable((1, 1), (2, 1))
    for dpid in range(1, count + 2):
        world.connect(dpid, ports=range(1, 13))
    world.run(60.0)
    roles = [event for event in world.events if getattr(event, "role", None) == "edge"]
    assert (1, 1) not in {(event.dpid, event.port_no) for event in roles}
    assert len(roles) == 12 * (count + 1) - 2


def test_who_asks_meanwhile_does_not_keep_the_others_waiting():
    """A controller that is a little late with a slot has taken in further asks by then."""
    sender = Sender(320, 160)
    for subject in range(1000):
        sender.budget.ask(FrameUrgency.NEW, FramePurpose.PROBE, subject, 0.0)
    at_once = len(sender.sent)
    for slot in range(1, SLOTS_PER_S + 1):
        now = slot / SLOTS_PER_S + 0.001
        sender.budget.ask(FrameUrgency.QUICK, FramePurpose.CHECK, slot, now)
        for timer in sender.deadlines.due(now):
            sender.budget.on_deadline(timer.subject, now)
    assert len(sender.sent) - at_once == pytest.approx(320, rel=0.05)
