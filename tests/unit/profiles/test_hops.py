"""Hops between switches: what is left of a frame's way, and the ways of packets along a tree."""

from __future__ import annotations

import pytest

from controller.profiles import hops as module
from controller.profiles.hops import HopTimes, tree_way


def timed(*frames_ms: float, echo_a_ms: float = 2.0, echo_b_ms: float = 4.0) -> HopTimes:
    """Return the times of frames from port 1 of switch 3 to port 2 of switch 4."""
    times = HopTimes()
    times.echo_took(3, echo_a_ms / 1000)
    times.echo_took(4, echo_b_ms / 1000)
    for number, took_ms in enumerate(frames_ms):
        times.sent(3, 1, b"%d" % number, 10.0 * number)
        times.heard(3, 1, b"%d" % number, (4, 2), 10.0 * number + took_ms / 1000)
    return times


def test_a_hop_is_what_is_left_of_a_frame_s_way() -> None:
    (hop,) = timed(8.0, 9.0, 80.0).document()
    assert (hop["dpid_a"], hop["port_a"], hop["dpid_b"], hop["port_b"], hop["frames"]) == (3, 1, 4, 2, 3)
    assert (hop["frame_ms"], hop["to_ms"], hop["hop_ms"], hop["from_ms"]) == pytest.approx((9.0, 1.0, 6.0, 2.0))


def test_a_hop_too_short_to_be_seen_is_none_and_all_adds_up() -> None:
    (hop,) = timed(1.5).document()
    assert (hop["to_ms"], hop["hop_ms"], hop["from_ms"]) == pytest.approx((0.5, 0.0, 1.0))


def test_frames_that_are_lost_and_switches_without_echoes_have_no_times() -> None:
    times = timed()
    times.sent(3, 1, b"lost", 1.0)
    times.sent(3, 1, b"a", 3.0)
    times.heard(3, 1, b"a", (4, 2), 3.005)
    times.heard(3, 1, b"a", (4, 2), 3.1)
    times.heard(9, 9, b"a", (4, 2), 3.1)
    times.sent(4, 2, b"a", 4.0)
    times.heard(4, 2, b"a", (7, 1), 4.1)
    (hop,) = times.document()
    assert (hop["frames"], hop["frame_ms"]) == (1, pytest.approx(5.0))
    times.sent(3, 1, b"b", 5.0)
    times.disconnected(3)
    times.heard(3, 1, b"b", (4, 2), 5.1)
    assert times.document() == [], "the switch is away, and how far it is nobody knows"


def test_frames_that_follow_before_the_first_is_heard_are_told_apart() -> None:
    times = timed()
    for number in range(4):
        times.sent(3, 1, b"%d" % number, 1.0 + number / 10)
    for number in range(4):
        times.heard(3, 1, b"%d" % number, (4, 2), 1.4 + number / 10)
    (hop,) = times.document()
    assert (hop["frames"], hop["frame_ms"]) == (4, pytest.approx(400.0))


def test_what_has_no_room_is_counted_or_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HOPS_BOUND", 1)
    monkeypatch.setattr(module, "FRAMES_BOUND", 1)
    times = timed(8.0)
    times.sent(4, 2, b"a", 1.0)
    times.sent(4, 3, b"a", 1.0)
    times.heard(4, 2, b"a", (3, 1), 1.1)
    assert times.missed_count == 0, "it was the oldest"
    times.heard(4, 3, b"a", (3, 2), 1.1)
    assert times.missed_count == 1
    assert len(times.document()) == 1


LINKS = [(1, 3), (3, 2), (3, 4)]


def test_a_packet_s_way_is_the_sum_of_its_hops() -> None:
    way = tree_way(LINKS, 1, 2, {(1, 3): 0.5, (3, 2): 0.25, (3, 1): 9.0})
    assert way is not None
    assert way.hops == ((1, 3, 0.5), (3, 2, 0.25))
    assert way.total_ms == 0.75
    at_home = tree_way(LINKS, 1, 1, {})
    assert at_home is not None
    assert (at_home.hops, at_home.total_ms) == ((), 0)


def test_a_hop_that_was_not_timed_leaves_no_sum() -> None:
    way = tree_way(LINKS, 1, 4, {(1, 3): 0.5})
    assert way is not None
    assert way.hops == ((1, 3, 0.5), (3, 4, None))
    assert way.total_ms is None


def test_what_a_tree_does_not_join_has_no_way() -> None:
    assert tree_way([(1, 3), (5, 2)], 1, 2, {}) is None
    assert tree_way([], 1, 2, {}) is None
