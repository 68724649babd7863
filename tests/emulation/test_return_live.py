"""Cables that come back, and a controller that starts without its state, interrupt no stream that was whole."""

from __future__ import annotations

import shutil
import time
from typing import Any

import pytest

from controller.multicast.due import RESTART_GRACE_S
from topology.graph import Graph, NodeKind

pytestmark = pytest.mark.emulation

RATE_BPS = 10e6  # 1,000 packets/s
SPARSE_RATE_BPS = 0.5e6  # 50 packets/s
GRACE_TIMEOUT_S = 40.0
SOON_S = 2.0
"""This long before the time of grace can end packets are dense again."""

LEAVES, SPINES = ("s1", "s2", "s3"), ("s4", "s5")

FRAMEWORK = "ryu"
OPTIONS: dict[str, dict[str, Any]] = {
    "of13": {},
    "of10": {"protocols": "OpenFlow10"},
    "mixed": {"old_switches": SPINES},
}


@pytest.fixture(scope="module", params=OPTIONS)
def bench(request: pytest.FixtureRequest) -> tuple[Graph, dict[str, Any]]:
    """Three ToRs with two hosts each under two spines."""
    graph = Graph()
    for name in LEAVES:
        graph.add_node(name, NodeKind.TOR)
    for name in SPINES:
        graph.add_node(name, NodeKind.AGGREGATION)
        for leaf in LEAVES:
            graph.add_link(leaf, name)
    for number in range(1, 7):
        graph.add_node(f"h{number}", NodeKind.HOST)
        graph.add_link(LEAVES[(number - 1) // 2], f"h{number}")
    return graph, OPTIONS[request.param]


@pytest.fixture
def names(live: Any, group: str) -> list[str]:
    """The sockets of members at every ToR, to which h1 has sent."""
    members = ("h2", "h3", "h5")
    live.join(group, *members)
    live.stream(1, "h1", group, RATE_BPS, pattern="constant")
    live.halt()
    return [f"{host} {group}" for host in members]


def begin(live: Any, phase: int, names: list[str]) -> None:
    """Have h1 begin a phase, and wait until it is received by all."""
    live.fabric.send(phase)
    give_up_s = time.monotonic() + 10.0
    while not all(f"1:{phase}" in live.fabric.received()[name]["streams"] for name in names):
        assert time.monotonic() < give_up_s, f"phase {phase} does not reach {names}"


def test_cables_pulled_one_after_the_other_come_back_together(live: Any, names: list[str]) -> None:
    pulled = [("s1", "s4"), ("s2", "s5"), ("s3", "s4")]
    for count, link in enumerate(pulled, 1):
        live.fabric.link_down(*link)
        live.wait_ready(links=6 - count)
    live.fabric.link_up(*pulled.pop())
    live.wait_ready(links=4)
    for link in pulled:
        live.fabric.link_down(*link)
    live.wait_ready(links=4)
    begin(live, 1, names)
    for link in pulled:
        live.fabric.link_up(*link)
    live.wait_ready(links=6)
    live.halt()
    live.assert_all_received(1, *names)


def test_each_cable_may_come_back(live: Any, names: list[str]) -> None:
    phase = 0
    for first, second in [(("s1", "s4"), ("s2", "s5")), (("s2", "s4"), ("s3", "s5"))]:
        live.fabric.link_down(*first)
        live.wait_ready(links=5)
        live.fabric.link_down(*second)
        live.wait_ready(links=4)
        for count, link in enumerate((first, second), 5):
            phase += 1
            begin(live, phase, names)
            live.fabric.link_up(*link)
            live.wait_ready(links=count)
            live.halt()
    for number in range(1, phase + 1):
        live.assert_all_received(number, *names)


def test_a_controller_that_was_cut_off_from_all_switches_for_long(live: Any, names: list[str]) -> None:
    """Its time for switches that are away is over when they return; until then nothing could be done for them."""
    live.set_policy("version: 1\ndefault: allow\ndiscovery: {switch_grace_s: 1}\n")
    begin(live, 1, names)
    live.fabric.control_down(*LEAVES, *SPINES)  # one that is alone away would be given up after the grace
    live.controller.wait_until("alarms", lambda found: len(found["alarms"]) == len((*LEAVES, *SPINES)))
    time.sleep(2.0)  # twice the grace: what is asserted is that its end has no effect
    live.fabric.control_up(*LEAVES, *SPINES)
    live.wait_ready(links=6)
    live.halt()
    live.assert_all_received(1, *names)


def test_a_start_without_the_state_directory(live: Any, names: list[str], group: str) -> None:
    """Packets are dense around the start and the end of the time of grace, and do not cease between."""
    entries = live.fabric.ofctl("dump-flows", "s1")
    former = next(line for line in entries.splitlines() if f"nw_dst={group}" in line and "in_port" not in line)
    mark = former[former.index("dl_dst=") :].split()[0]
    live.fabric.open_stream(2, "h1", group, SPARSE_RATE_BPS, pattern="constant")
    begin(live, 1, names)
    live.controller.stop()
    shutil.rmtree(live.controller.directory / "state")
    started_s = time.monotonic()
    live.controller.start()
    live.controller.wait_discovered(live.fabric)
    live.fabric.sender.ask("halt", streams=[1])
    is_dense = False
    while mark in live.fabric.ofctl("dump-flows", "s1"):
        if not is_dense and time.monotonic() > started_s + RESTART_GRACE_S - SOON_S:
            live.fabric.send(2, streams=[1])
            is_dense = True
        assert time.monotonic() < started_s + GRACE_TIMEOUT_S, "the entries of the earlier run stay"
        time.sleep(0.2)
    live.wait_ready(links=6)
    live.halt()
    for stream, phase in ((1, 1), (2, 1), (1, 2)):
        live.assert_all_received(phase, *names, stream=stream)
