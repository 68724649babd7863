"""What live tests of multicast routers share: a fabric with routers at its edge, and waiting for what they do."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from topology.graph import Graph, NodeKind

WAIT_S = 60.0
POLL_S = 0.1


def two_switches(hosts: Mapping[str, str]) -> tuple[Graph, dict[str, Any]]:
    """Return a bench of the switches s1 and s2 with these hosts and routers, each by its switch."""
    graph = Graph()
    for name in ("s1", "s2"):
        graph.add_node(name, NodeKind.TOR)
    graph.add_link("s1", "s2")
    for name, switch in hosts.items():
        graph.add_node(name, NodeKind.HOST)
        graph.add_link(switch, name, capacity_bps=1e9)
    return graph, {}


def wait(reached: Callable[[], Any]) -> Any:
    """Return what `reached` finds as soon as it finds something."""
    deadline = time.monotonic() + WAIT_S
    while not (found := reached()):
        assert time.monotonic() < deadline, reached
        time.sleep(POLL_S)
    return found
