"""A switch whose flow entries somebody deleted is looked at when it shows, not when its turn comes."""

from __future__ import annotations

import pytest

from controller.effects import RequestFlows
from controller.events import PacketReceived
from controller.rules.check import SUSPICION_PAUSE_S
from topology.events import LinkDown

MAC = bytes.fromhex("0200000000aa")
ROUND_S = 2.3
"""A round of LLDP and the wait for its answer."""


@pytest.fixture
def world(make_world):
    """Two switches with a cable, whose turn to be checked comes twice a minute."""
    world = make_world()
    world.cable((1, 2), (2, 1))
    world.connect(1)
    world.connect(2)
    world.run(2 * SUSPICION_PAUSE_S)
    assert world.links() == {(1, 2)}
    del world.events[:]
    return world


@pytest.mark.parametrize("after_s", [0.0, 0.5, 1.0, 1.5])
def test_a_switch_that_lost_its_whole_table_has_it_back_after_a_round_of_lldp_and_keeps_its_links(world, after_s):
    world.run(after_s)
    whole = dict(world.rules[2])
    world.rules[2].clear()
    world.run(ROUND_S)
    assert world.rules[2] == whole
    assert world.lost == [2], "other apps look too"
    world.run(60.0)
    assert not [event for event in world.events if isinstance(event, LinkDown)]
    assert world.lost == [2]


def test_a_frame_that_no_entry_sent_has_the_switch_looked_at_at_once(world):
    whole = dict(world.rules[1])
    world.rules[1].clear()
    world.feed(PacketReceived(1, 3, bytes(60), unmatched=True))
    assert world.rules[1] == whole
    assert world.lost == [1]


def test_a_port_that_is_taken_out_has_its_switch_looked_at(world):
    whole = dict(world.rules[1])
    world.rules[1].clear()
    world.port((1, 4), up=False, deleted=True)
    assert world.rules[1] == whole


def test_frames_that_no_entry_sent_have_no_switch_read_more_than_once_in_some_seconds(world):
    asked = []
    perform = world.perform

    def watched(outputs):
        outputs = tuple(outputs)
        asked.extend(output.dpid for output in outputs if isinstance(output, RequestFlows))
        perform(outputs)

    world.perform = watched
    for _ in range(200):
        world.feed(PacketReceived(1, 3, bytes(60), unmatched=True))
        world.run(0.1)
    assert 4 <= asked.count(1) <= 20 / SUSPICION_PAUSE_S + 1


def test_a_packet_of_a_known_host_that_no_entry_sent_counts_as_well(world):
    world.host(MAC, (1, 3), b"\x0a\0\0\1")
    world.say(MAC, b"\x0a\0\0\1")
    frames = []
    feed = world.feed
    world.feed = lambda event: (frames.append(event), feed(event))
    world.say(MAC, b"\x0a\0\0\1")
    world.feed = feed
    whole = dict(world.rules[1])
    world.rules[1].clear()
    world.feed(frames[-1]._replace(unmatched=True))
    assert world.rules[1] == whole
