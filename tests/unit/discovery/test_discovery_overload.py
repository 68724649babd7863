"""A fabric that comes up faster than its controller takes in what switches say."""

from __future__ import annotations

import pytest

from controller.discovery.budget import LEAST_SHARE, PROMPT_ANSWER_S, FrameBudget, FramePurpose, FrameUrgency
from controller.discovery.settings import DiscoverySettings
from controller.events import PacketReceived
from controller.kernel.deadlines import Deadlines
from controller.wire.lldp import NEAREST_BRIDGE_MAC
from tests.unit.discovery.test_discovery_liveness import BusyWorld
from topology.events import LinkDown, PortRole, PortRoleChanged

CABLES = 4


class SlowWorld(BusyWorld):
    """A controller that takes `event_s` for each event; switches are joined with the four next ones."""

    def __init__(self, event_s: float, count: int) -> None:
        super().__init__(DiscoverySettings())
        self.EVENT_S = event_s
        for dpid in range(1, count + 1):
            for step in range(1, CABLES + 1):
                self.cable((dpid, 2 * step), ((dpid + step - 1) % count + 1, 2 * step - 1))
        for dpid in range(1, count + 1):
            self.connect(dpid, ports=range(1, 13))


@pytest.mark.parametrize(("event_s", "count"), [(0.0005, 60), (0.003, 100), (0.006, 60)])
def test_all_is_found_and_no_port_is_mistaken_however_late_it_is(event_s, count):
    world = SlowWorld(event_s, count)
    world.run_busy(25.0)
    assert len(world.links()) == CABLES * count
    edges = {(dpid, port_no) for dpid in range(1, count + 1) for port_no in world.fabric.edge_ports(dpid)}
    assert edges == {(dpid, port_no) for dpid in range(1, count + 1) for port_no in range(9, 13)}
    told = [event for event in world.events if isinstance(event, PortRoleChanged) and event.role is PortRole.EDGE]
    assert len(told) == len(edges)
    assert not any(isinstance(event, LinkDown) for event in world.events)


def test_tours_are_not_taken_apart_while_nobody_is_heard():
    """A burst of other packets keeps the controller from all answers: 80 hubs are no more frozen than one another."""
    world = SlowWorld(0.0002, 100)
    world.run_busy(25.0)
    before = world.core.pace.sent_counts
    assert before["suspect"] == 0
    world.burst_at, world.burst_s = world.now, 1.5
    world.run_busy(6.0)
    assert world.longest_s > 1.4
    assert world.core.pace.sent_counts["suspect"] <= 2 * CABLES * 100, "each link twice at most"
    assert not any(isinstance(event, LinkDown) for event in world.events)


def test_frames_are_fewer_while_answers_are_late_and_as_many_again_when_they_are_not():
    budget = FrameBudget(1600.0, 400.0, Deadlines())
    assert budget.share == 1.0
    budget.answers_take(PROMPT_ANSWER_S, 0.0)
    assert budget.share == 1.0
    budget.answers_take(4 * PROMPT_ANSWER_S, 0.0)
    assert budget.share == 0.25
    budget.answers_take(1e6, 0.0)
    assert budget.share == LEAST_SHARE
    assert budget.idle_frames_per_s == 400.0
    budget.answers_take(0.0, 0.0)
    assert budget.share == 1.0


@pytest.mark.parametrize(("answer_s", "frames_per_s"), [(0.01, 320.0), (1.0, 80.0)])
def test_what_leaves_follows_from_how_long_answers_take(answer_s, frames_per_s):
    deadlines: Deadlines = Deadlines()
    budget = FrameBudget(320.0, 320.0, deadlines)
    sent = []

    def send(subject, now):
        sent.append((now, subject))
        budget.answers_take(answer_s, now)
        return 1

    budget.granted[FramePurpose.PROBE] = send
    budget.answers_take(answer_s, 0.0)
    for subject in range(5000):
        budget.ask(FrameUrgency.NEW, FramePurpose.PROBE, subject, 0.0)
    while (at := deadlines.next()) is not None and at <= 10.0:
        for timer in deadlines.due(at):
            budget.on_deadline(timer.subject, at)
    late = sum(1 for at, _ in sent if at > 2.0)
    assert late == pytest.approx(8.0 * frames_per_s, rel=0.02)


def test_ports_that_never_answer_are_not_asked_slowly_for_the_sake_of_those_that_did():
    deadlines: Deadlines = Deadlines()
    budget = FrameBudget(320.0, 320.0, deadlines)
    sent = []
    budget.granted[FramePurpose.PROBE] = lambda subject, now: sent.append(now) or 1
    budget.answers_take(1e6, 0.0)
    for subject in range(5000):
        budget.ask(FrameUrgency.AGAIN, FramePurpose.PROBE, subject, 0.0)
    while (at := deadlines.next()) is not None and at <= 10.0:
        for timer in deadlines.due(at):
            budget.on_deadline(timer.subject, at)
    assert sum(1 for at in sent if at <= 0.4) <= 32 + 0.4 * 20
    assert sum(1 for at in sent if 4.0 < at <= 9.0) == pytest.approx(5 * 320, rel=0.02)


def test_what_waits_leaves_as_soon_as_answers_are_prompt_again():
    deadlines: Deadlines = Deadlines()
    budget = FrameBudget(320.0, 320.0, deadlines)
    budget.granted[FramePurpose.PROBE] = lambda _subject, _now: 20
    budget.answers_take(1e6, 0.0)
    for subject in range(4):
        budget.ask(FrameUrgency.NEW, FramePurpose.PROBE, subject, 0.0)
    assert deadlines.next() > 0.3
    budget.answers_take(0.01, 0.1)
    assert deadlines.next() <= 0.2


def test_a_frame_that_waits_is_the_answer_to_the_other_end_s(make_world):
    """Ports whose frames wait, since others have taken all that may leave at once, send one each and no more."""
    world = make_world(DiscoverySettings(frames_per_s=40.0))
    count = 20
    world.connect(1000, ports=range(1, 41))
    for dpid in range(1, 2 * count, 2):
        world.cable((dpid, 1), (dpid + 1, 1))
    for dpid in range(1, 2 * count + 1):
        world.connect(dpid, ports=(1,))
    while len(world.links()) < count:
        world.run(0.1)
        assert world.now < 110.0
    world.run(0.5)
    sent = [packet for packet in world.sent if packet.dpid < 1000 and packet.data[:6] == NEAREST_BRIDGE_MAC]
    assert len(sent) <= 2 * count + 4


def test_a_frame_that_is_older_than_answers_are_makes_no_link(make_world):
    """A frame that somebody kept back is told from one that waits as all others do."""
    world = make_world(DiscoverySettings())
    world.cable((1, 1), (2, 1))
    for dpid in (1, 2):
        world.connect(dpid, ports=(1, 2, 3))
    world.run(3.0)
    world.run(2.0)
    kept = [packet for packet in world.sent if packet.dpid == 1 and packet.ports == (2,)][-1]
    world.run(3.0 * world.settings.lldp_interval_s)
    assert world.frame((2, 3), kept.data) == []
    world.feed(PacketReceived(2, 3, kept.data))
    assert world.links() == {(1, 2)}
