"""A demonstration of several controllers: the one that leads is killed while a stream runs and a host joins."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from apps.emulation.cluster import EmulatedCluster
from apps.emulation.controller import Framework
from apps.emulation.network import CONTROLLER_PORT, EmulatedFabric
from apps.emulation.take_over import Ending, TakeOverBench
from topology.generators import make

MEMBERS = 3
GROUP = "239.1.1.1"
RATE_BPS = 4e6
SERVED_S = 5.0
"""A join is served within a second on a quiet machine; one that is busy has this long."""


def run(framework: Framework, say: Callable[[str], None], title: Callable[[str], None]) -> list[str]:
    """Show it; return what was not as it should be. EmulationError where it cannot be shown."""
    graph = make("fattree", {"k": 4})
    title(f"A FatTree with k = 4 under {MEMBERS} controllers that share one etcd")
    with tempfile.TemporaryDirectory(prefix="vsrt-demo-") as directory:
        cluster = EmulatedCluster(Path(directory), CONTROLLER_PORT, MEMBERS, framework=framework)
        with EmulatedFabric(graph, controller=cluster, more_controller_ports=cluster.ports[1:]) as fabric:
            hosts = sorted(graph.hosts(), key=str)
            names = f"{hosts[0]} ({fabric.address(hosts[0])})", f"{hosts[5]} ({fabric.address(hosts[5])})"
            bench = TakeOverBench(cluster, fabric, GROUP, (hosts[0], hosts[5], hosts[-1]), RATE_BPS)
            leader = bench.begin()
            say(f"{leader} leads; {', '.join(name for name in cluster.members if name != leader)} follow.")
            say(f"{names[0]} sends {RATE_BPS / 1e6:g} Mbit/s to {GROUP}, {names[1]} receives.")
            title(f"{leader} is killed, and {hosts[-1]} ({fabric.address(hosts[-1])}) joins at that moment")
            found = bench.run(Ending.KILL)
            say(f"{found.leader} leads, and every switch is as it wants it.")
            say(f"{hosts[-1]} received its first packet {found.served_s * 1000:.0f} ms after {leader} was killed.")
            say(f"{hosts[5]}: {found.lost} of {found.sent} packets lost, {found.duplicated} received twice.")
    failures = []
    if found.lost or found.duplicated:
        failures.append(f"{found.lost} packets were lost, {found.duplicated} came twice")
    if found.served_s > SERVED_S:
        failures.append(f"the join was served after {found.served_s:.1f} s")
    return failures
