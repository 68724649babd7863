"""How soon a link or switch that fails without a word is given up, and that none is given up falsely."""

from __future__ import annotations

from collections import defaultdict, deque

import pytest

from controller.discovery.liveness import LONGEST_WAIT_S, SHORTEST_WAIT_S, AnswerTime
from controller.discovery.settings import DiscoverySettings
from controller.effects import RequestFlows, RequestRole
from controller.events import ControllerRole, DeadlineReached, PacketReceived, RoleReplied, RoleWanted
from controller.rules.pipeline import OPENFLOW_1_0, OPENFLOW_1_3
from controller.wire.lldp import ECHO_MAC, NEAREST_BRIDGE_MAC, SEGMENT_MAC
from topology.events import LinkDown, PortRole, SwitchDown

from .conftest import World


def chain(make_world, count=3, settings=None, version=OPENFLOW_1_3):
    """Switches 1, 2, ... each cabled from its port 2 to port 1 of the next."""
    world = make_world(settings)
    for dpid in range(1, count):
        world.cable((dpid, 2), (dpid + 1, 1))
    for dpid in range(1, count + 1):
        world.connect(dpid, version=version)
    world.run(8.0)
    return world


@pytest.mark.parametrize("directions", [{(1, 2)}, {(2, 1)}, {(1, 2), (2, 1)}])
@pytest.mark.parametrize("after_s", [0.0, 0.3, 0.7, 1.1, 1.5, 1.9])
def test_a_link_that_dies_in_silence_is_down_within_three_seconds(make_world, directions, after_s):
    world = chain(make_world, 2)
    world.run(after_s)
    world.cut |= directions
    world.run(2.8)
    assert world.links() == set()
    assert world.core.counters["link-timeout"] >= 1


def test_two_frames_missed_are_no_failure(make_world):
    world = chain(make_world, 2)
    sent = len(world.sent)
    world.cut |= {(1, 2), (2, 1)}
    while not world.core.counters["link-suspected"]:
        world.run(0.01)
    world.run(SHORTEST_WAIT_S)
    world.cut.clear()
    events = world.run(20.0)
    assert events == []
    assert len(world.sent) > sent


def test_at_rest_a_port_sends_one_frame_an_interval(make_world):
    world = chain(make_world, 2)
    world.run(8.0)
    del world.sent[:]
    world.run(10 * world.settings.lldp_interval_s)
    assert len(world.sent) == 10 * 8
    assert {packet.data[:6] for packet in world.sent} == {NEAREST_BRIDGE_MAC, SEGMENT_MAC}
    assert len([packet for packet in world.sent if packet.data[:6] == SEGMENT_MAC]) == 5 * 6, "at edge ports by turns"


def test_a_switch_that_dies_is_given_up_though_its_cables_keep_their_carrier(make_world):
    world = chain(make_world)
    del world.events[:]
    world.dead.add(2)
    world.disconnect(2)
    world.run(0.9)
    assert world.events == []
    world.run(0.4)
    assert [event for event in world.events if not hasattr(event, "role")] == [
        LinkDown(1, 2, 2, 1),
        LinkDown(2, 2, 3, 1),
        SwitchDown(2),
    ]
    world.run(60.0)
    assert world.fabric.role(1, 2) is PortRole.TRUNK, "the cable leads to a switch that may come back"
    world.dead.clear()
    world.connect(2)
    world.run(1.0)
    assert world.links() == {(1, 2), (2, 3)}


def test_a_switch_that_is_frozen_loses_its_links_while_its_connection_lasts(make_world):
    world = chain(make_world)
    world.dead.add(2)
    world.run(2.8)
    assert world.links() == set()
    assert SwitchDown(2) not in world.events
    world.disconnect(2)
    assert world.events[-1] == SwitchDown(2)


def test_a_lost_switch_that_forwards_is_kept_for_the_grace_and_asked_at_the_regular_pace(make_world):
    world = chain(make_world)
    del world.events[:], world.sent[:]
    world.disconnect(2)
    world.run(world.settings.switch_grace_s - 0.1)
    assert world.events == []
    echoes = [packet for packet in world.sent if packet.data[:6] == ECHO_MAC]
    assert 2 <= len(echoes) <= 2 * (2 + world.settings.switch_grace_s / world.settings.lldp_interval_s)
    world.dead.add(2)
    world.connect(2)
    world.dead.clear()
    world.run(30.0)
    assert world.events == []


def test_a_lost_switch_that_dies_later_is_given_up_then(make_world):
    world = chain(make_world, settings=DiscoverySettings(switch_grace_s=60.0))
    world.disconnect(2)
    world.run(20.0)
    assert world.links() == {(1, 2), (2, 3)}
    world.dead.add(2)
    world.run(3.5)
    assert world.events[-1] == SwitchDown(2)


def test_a_cable_of_a_lost_switch_that_dies_takes_its_own_link_alone(make_world):
    world = chain(make_world)
    world.disconnect(2)
    world.run(0.5)
    world.cut.add((3, 1))
    world.run(3.5)
    assert world.links() == {(1, 2)}
    assert SwitchDown(2) not in world.events


def test_a_switch_without_the_echo_entry_has_the_whole_grace(make_world):
    world = make_world()
    world.without_echo = True
    world.cable((1, 2), (2, 1))
    world.connect(1)
    world.connect(2)
    world.run(8.0)
    assert world.links() == {(1, 2)}
    world.disconnect(2)
    world.run(world.settings.switch_grace_s - 0.1)
    assert world.links() == {(1, 2)}
    world.run(0.2)
    assert world.links() == set()


def test_a_link_whose_switches_hand_no_lldp_on_stays_while_echo_frames_return(make_world):
    world = chain(make_world, 2)
    world.deaf = True
    assert world.run(60.0) == []
    world.cut.add((1, 2))
    world.run(4.0)
    assert world.links() == set()


def test_a_switch_that_says_nothing_is_no_proof_against_its_neighbours(make_world):
    """Neither end answers barriers: nothing is known of what waits for the controller."""
    world = chain(make_world, 2)
    world.mute = True
    assert world.run(60.0) == []


def test_barriers_that_a_connection_took_along_are_asked_for_again(make_world):
    world = chain(make_world, 2)
    world.mute = True
    world.run(4.0)
    world.mute = False
    world.connect(1)
    world.connect(2)
    world.cut |= {(1, 2), (2, 1)}
    world.run(3.0)
    assert world.links() == set()


def test_the_wait_for_an_answer_follows_what_answers_take():
    wait = AnswerTime()
    for _ in range(50):
        wait.measured(0.002)
    assert wait.wait_s == SHORTEST_WAIT_S
    for _ in range(50):
        wait.measured(0.4)
    assert 0.4 < wait.wait_s < 0.6
    wait.measured(30.0)
    assert wait.wait_s == LONGEST_WAIT_S


class BusyWorld(World):
    """What a switch says waits in its connection until the controller reads it; every event takes its time.

    Deadlines wait for nothing but the event that is being handled, so they find what waits unread.
    """

    EVENT_S = 0.002

    def __init__(self, settings=None):
        super().__init__(settings)
        self.unread = defaultdict(deque)
        self.burst_at = float("inf")
        self.burst_s = self.longest_s = 0.0

    def take(self, event):
        self.unread[event.dpid].append((self.now, event))

    def run_busy(self, seconds):
        until = self.now + seconds
        while self.now < until:
            if self.burst_at <= self.now:
                self.burst_at += 2 * self.burst_s
                for dpid in self.connected:
                    noise = (self.now, PacketReceived(dpid, 3, bytes(60)))
                    self.unread[dpid].extend([noise] * int(self.burst_s / self.EVENT_S / len(self.connected)))
            deadline = self.core.next_deadline()
            if deadline is not None and deadline <= self.now:
                self.feed(DeadlineReached())
            elif waiting := [queue for queue in self.unread.values() if queue]:
                for queue in waiting:
                    since, event = queue.popleft()
                    self.longest_s = max(self.longest_s, self.now - since)
                    self.feed(event)
                    self.now += self.EVENT_S
            else:
                self.now = min(until, self.burst_at, deadline)


@pytest.mark.parametrize("burst_s", [0.5, 4.0])
def test_a_controller_behind_its_input_gives_up_no_link(burst_s):
    """A ring of twenty switches; a flood keeps the controller busy for `burst_s` again and again."""
    world = BusyWorld()
    for dpid in range(1, 21):
        world.cable((dpid, 2), (dpid % 20 + 1, 1))
    for dpid in range(1, 21):
        world.connect(dpid, ports=(1, 2, 3))
    world.run_busy(10.0)
    assert len(world.links()) == 20
    del world.events[:]
    world.burst_at, world.burst_s = world.now, burst_s
    world.run_busy(60.0)
    assert world.longest_s >= 0.9 * burst_s
    assert [event for event in world.events if isinstance(event, LinkDown | SwitchDown)] == []
    assert world.core.counters["link-suspected"] > 0, "frames were missed for a while"


def take_role(world: World, dpids: tuple[int, ...], role: ControllerRole) -> None:
    """Have a role asked for at switches, which say that they have it."""
    datapath = world.core._installer._datapath
    for dpid in dpids:
        for effect in datapath.handle(RoleWanted(role, 1, dpid), world.now):
            if isinstance(effect, RequestRole):
                told = datapath.handle(RoleReplied(dpid, effect.xid, role, 1), world.now)
                world.perform(each for each in told if isinstance(each, RequestFlows))


@pytest.mark.parametrize("closed", [(1,), (2,), (1, 2)], ids=["one end", "the other", "both"])
def test_no_link_is_given_up_by_a_switch_whose_slave_the_controller_is(make_world, closed):
    """It takes no frame of the controller's, and does not say what arrives."""
    world = chain(make_world, 2, version=OPENFLOW_1_0)
    links = world.links()
    del world.events[:]
    cut = {(dpid, port_no) for dpid in closed for port_no in (1, 2, 3, 4)} | {(1, 2), (2, 1)}
    world.run(0.3)
    take_role(world, closed, ControllerRole.SLAVE)
    world.cut |= cut
    del world.sent[:]
    world.run(30.0)
    assert world.links() == links and not world.events and not world.core.counters["link-timeout"]
    assert not any(packet.dpid in closed and packet.data[:6] == NEAREST_BRIDGE_MAC for packet in world.sent)
    take_role(world, closed, ControllerRole.MASTER)
    world.cut -= cut
    world.run(10.0)
    assert world.links() == links and not world.events
    world.cut |= {(1, 2), (2, 1)}
    world.run(2.8)
    assert world.links() == set()


def test_a_link_that_fails_meanwhile_is_found_when_the_switch_is_ours_again(make_world):
    world = chain(make_world, 2, version=OPENFLOW_1_0)
    take_role(world, (1, 2), ControllerRole.SLAVE)
    world.cut |= {(1, 2), (2, 1)}
    world.run(10.0)
    assert world.links()
    take_role(world, (1, 2), ControllerRole.MASTER)
    world.run(2.8)
    assert world.links() == set()
