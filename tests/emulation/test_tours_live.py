"""A fabric with more ports than the budget of frames allows to ask singly: tours find what fails in silence."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from topology.graph import Graph

pytestmark = pytest.mark.emulation
FRAMEWORK = "ryu"

POLICY = """\
version: 1
default: allow
multicast: {querier: {response_interval_s: 1, last_member_interval_s: 0.2}}
discovery: {idle_frames_per_s: 3}
"""
RATE_BPS, PACKETS_PER_S = 10e6, 1000
MIDDLE = ("s3", "s4")
TURNED = "dl_dst=02:56:53:52:54:03"


@pytest.fixture(scope="module")
def bench(diamond: Graph) -> tuple[Graph, dict[str, Any]]:
    """One ToR and one aggregation speak OpenFlow 1.0."""
    return diamond, {"old_switches": ("s1", "s3")}


def packets(live: Any, switch: str, match: str) -> int:
    """How many packets met the entries with this match, which may have more to it."""
    flows = live.fabric.ofctl("dump-flows", switch, match).splitlines()
    return sum(int(found[1]) for flow in flows if match in flow and (found := re.search(r"n_packets=(\d+)", flow)))


def wait_tours(live: Any, rounds: int) -> None:
    """Wait until both ToRs' tours have gone round so many times."""
    live.set_policy(POLICY)
    before = {switch: packets(live, switch, TURNED) for switch in MIDDLE}
    deadline_s = time.monotonic() + 60.0
    while any(packets(live, switch, TURNED) < before[switch] + 2 * rounds for switch in MIDDLE):
        assert time.monotonic() < deadline_s, live.fabric.ofctl("dump-flows", "s1")
        time.sleep(0.1)


def test_tours_of_two_links_go_round_at_their_interval(live: Any) -> None:
    wait_tours(live, 5)
    held_up = live.held_up()
    began_s, before = time.monotonic(), {switch: packets(live, switch, TURNED) for switch in MIDDLE}
    wait_tours(live, 6)
    took_s = time.monotonic() - began_s
    for switch in MIDDLE:
        turned = packets(live, switch, TURNED) - before[switch]
        least = (took_s - held_up.seconds()) / 1.4 - 2
        assert least <= turned / 2 <= took_s / 1.4 + 2, "each ToR's tour, at its interval"
    assert live.controller.show("status")["links"] == 4


@pytest.mark.parametrize("failure", ["switch", "link", "direction"])
def test_what_fails_in_silence_is_found_by_tours_as_soon(live: Any, group: str, failure: str) -> None:
    """Every port keeps its carrier; a switch that dies takes its connection along."""
    live.join(group, "h3")
    live.stream(1, "h1", group, RATE_BPS, pattern="constant")
    (middle,) = {end for link in live.tree(group) for end in link} - {"s1", "s2"}
    wait_tours(live, 3)
    live.fabric.send(1)
    held_up = live.held_up()
    if failure == "switch":
        live.fabric.kill_switch(middle)
    else:
        live.fabric.deafen("s2", middle)
    if failure == "link":
        live.fabric.deafen(middle, "s2")
    live.controller.wait_until("status", lambda status: status["links"] < 4)
    live.wait_ready()
    live.halt()
    sent, received, duplicates = live.counts(1, f"h3 {group}")
    print(failure, sent - received, "lost of", sent)
    assert duplicates == 0
    assert 0 < sent - received < (3 + held_up.seconds()) * PACKETS_PER_S
    live.send(2, 0.5)
    live.assert_all_received(2, f"h3 {group}")
