"""`allocation.paths` in a FatTree: fewer paths to hosts go by a port that is busy, and all hosts are reached."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from apps.emulation.controller import ControllerProcess, Framework
from apps.emulation.namespace import network_of
from apps.emulation.network import EmulatedFabric
from apps.status_client import query
from fat_tree import measured_fat_tree

pytestmark = [pytest.mark.emulation, pytest.mark.each_framework, pytest.mark.unhurried]

CAPACITY_BPS = 3e6
RATE_BPS = 2.4e6
BUSY_PCT = 60
"""A port that is known to be so busy is taken by two fifths of what an idle one is, or by less."""
GROUP = "239.1.1.1"
POLICY = f"""\
version: 1
discovery: {{link_capacity_bps: {CAPACITY_BPS}}}
monitor:
  interval_s: 1
  port_capacity_bps: {CAPACITY_BPS}
  prometheus: {{enabled: false}}
allocation:
  openflow: {{days_to_average_utilization: 10001}}
  paths: true
default: allow
"""
LOCATION_ENTRY = re.compile(r"dl_dst=(?P<label>[0-9a-f:]+)/ff:ff:ff:00:00:00 actions=output:(?P<port>\d+)")


class Uplinks:
    """The ToR of a host that sends to a group all the time, and by which of its uplinks it reaches other switches."""

    def __init__(self, fabric: EmulatedFabric, controller: ControllerProcess) -> None:
        self.fabric = fabric
        self.controller = controller
        (self.tor,) = fabric.graph.neighbours("h1")
        spines = [node for node in fabric.graph.neighbours(self.tor) if node not in fabric.graph.hosts()]
        self.ports = [fabric.graph.port(self.tor, node) for node in spines]

    def labels(self) -> Counter[int]:
        """How many labels of other switches leave by each uplink."""
        entries = LOCATION_ENTRY.findall(self.fabric.ofctl("dump-flows", self.tor, "table=8"))
        return Counter(int(port) for _, port in entries if int(port) in self.ports)

    def told_pct(self) -> dict[int, int]:
        """How busy each uplink is, as paths were told last."""
        asked: dict[str, Any] = {"node": self.fabric.dpid(self.tor), "role": "trunk"}
        found = query(self.controller.socket, {"do": "allocate-watch", **asked})["ports"]
        return {int(port["id"].split(":")[1]): port["told_pct"] or 0 for port in found}


@pytest.fixture(scope="module")
def uplinks(framework: Framework, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Uplinks]:
    with measured_fat_tree(framework, tmp_path_factory.mktemp("paths"), POLICY) as (fabric, controller):
        fabric.join("h16", GROUP)
        yield Uplinks(fabric, controller)


def test_fewer_paths_to_hosts_go_by_a_port_that_is_busy_and_all_hosts_are_reached(uplinks: Uplinks):
    fabric, controller = uplinks.fabric, uplinks.controller
    labels = 2 * (len({near for host in fabric.graph.hosts() for near in fabric.graph.neighbours(host)}) - 1)
    before = controller.wait_for(
        lambda: found if (found := uplinks.labels()).total() == labels else None, "all switches are reached", 60.0
    )
    assert sorted(before.values()) == [labels // 2] * 2, "idle ports are taken alike"
    words = ["iperf", "-u", "-c", GROUP, "-T", "8", "-b", str(int(RATE_BPS)), "-l", "1200", "-t", "600"]
    with ExitStack() as stack:
        with network_of(fabric.pid("h1")):
            client = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        stack.callback(client.wait)
        stack.callback(client.kill)
        told = controller.wait_for(
            lambda: found if max((found := uplinks.told_pct()).values()) >= BUSY_PCT else None, "it is told", 120.0
        )
        busy = max(told, key=lambda port: told[port])
        # As often as it has room, beside one that is idle; a path is a change of its own.
        most = labels * (1 - BUSY_PCT / 100)
        controller.wait_for(lambda: uplinks.labels()[busy] <= most, "paths leave it", 60.0)
    controller.wait_until("status", lambda answer: answer["in_sync"])
    assert uplinks.labels().total() == labels
    for target in ("h5", "h9", "h13", "h16"):
        fabric.run_on("h1", "ping", "-c", "3", "-i", "0.2", "-W", "5", fabric.address(target))
