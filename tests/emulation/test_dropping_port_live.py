"""A port that drops what it is to send gives the groups on it another tree, however little its link carries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from apps.emulation import processes
from apps.emulation.controller import ControllerProcess, Framework
from apps.emulation.network import CONTROLLER_PORT, EmulatedFabric
from topology.generators.draft import Draft
from topology.graph import NodeKind

pytestmark = pytest.mark.emulation

GROUP = "239.1.1.1"
SENDERS = ("h1", "h2", "h3", "h4")
RATE_BPS = 0.2e6
FRAME_BYTES, SMALL_MTU, USUAL_MTU = 1000, 600, 1500
"""A port drops what is longer than the other end of its cable takes."""

POLICY = """\
version: 1
default: allow
discovery: {link_capacity_bps: 10000000}
monitor: {interval_s: 1, port_capacity_bps: 10000000, prometheus: {enabled: false}}
aliases: {mode: dynamic, pace: fast}
"""


@dataclass
class Spines:
    """Four hosts at one leaf and one at another, joined by three spines."""

    fabric: EmulatedFabric
    controller: ControllerProcess

    def document(self) -> dict[str, Any]:
        return next(found for found in self.controller.show("groups") if found["group"] == GROUP)

    def far_end(self) -> str:
        """The interface to the senders' leaf at the spine of the group's own tree."""
        fabric = self.fabric
        named = {fabric.dpid(node): node for node in fabric.graph.switches()}
        (leaf,) = fabric.graph.neighbours(SENDERS[0])
        (spine,) = [
            next(node for node in ends if node != leaf)
            for u, v, *_ports in self.document()["links"]
            if leaf in (ends := (named[u], named[v]))
        ]
        return f"{spine}-eth{fabric.graph.port(spine, leaf)}"


@pytest.fixture(scope="module")
def spines(framework: Framework, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spines]:
    draft = Draft(10e6)
    leaves = [draft.switch(NodeKind.TOR) for _ in range(2)]
    above = [draft.switch(NodeKind.AGGREGATION) for _ in range(3)]
    draft.hosts(leaves[0], len(SENDERS))
    draft.hosts(leaves[1], 1)
    for leaf in leaves:
        for spine in above:
            draft.link(leaf, spine)
    policy: Path = tmp_path_factory.mktemp("dropping") / "policy.yaml"
    policy.write_text(POLICY)
    apps = ("multicast", "unicast", "monitor")
    with ExitStack() as stack:
        fabric = stack.enter_context(EmulatedFabric(draft.graph))
        controller = stack.enter_context(
            ControllerProcess(CONTROLLER_PORT, framework=framework, policy=policy, apps=apps)
        )
        controller.wait_discovered(fabric)
        fabric.wait_addresses()
        fabric.announce()
        yield Spines(fabric, controller)


def test_a_port_that_drops_gives_its_group_a_tree_and_a_port_that_drops_nothing_does_not(spines: Spines):
    fabric, controller = spines.fabric, spines.controller
    fabric.join("h5", GROUP)
    for number, host in enumerate(SENDERS, 1):
        fabric.open_stream(number, host, GROUP, RATE_BPS, frame_bytes=FRAME_BYTES)
    fabric.send(0)
    controller.wait_until("groups", lambda groups: any(len(found["senders"]) == len(SENDERS) for found in groups))

    def is_measured(groups: list[dict[str, Any]]) -> bool:
        return all(sender["rate_bps"] > 0 for found in groups for sender in found["senders"])

    controller.wait_until("groups", is_measured, timeout_s=60)
    controller.wait_until(
        "groups", lambda groups: any(found["queue_packets"] is not None for found in groups), timeout_s=60
    )
    assert spines.document()["aliases"] == []
    assert spines.document()["queue_packets"] < 0.25
    far = spines.far_end()
    processes.run("ip", "link", "set", far, "mtu", str(SMALL_MTU))
    try:
        controller.wait_until("groups", lambda groups: any(found["aliases"] for found in groups), timeout_s=90)
        (alias, *_) = spines.document()["aliases"]
        assert "to wait less" in alias["reason"]
        assert spines.document()["queue_packets"] > 1
    finally:
        processes.run("ip", "link", "set", far, "mtu", str(USUAL_MTU))
        fabric.sender.ask("halt")
