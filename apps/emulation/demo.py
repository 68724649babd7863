"""A demonstration that ends by itself: real hosts, real multicast, one cable pulled, every count checked."""

from __future__ import annotations

import argparse
import socket
import sys
import time
from pathlib import Path
from typing import Any

from apps.emulation import cluster_demo
from apps.emulation.agents import REPOSITORY
from apps.emulation.controller import FRAMEWORKS, ControllerProcess, Framework
from apps.emulation.network import CONTROLLER_PORT, EmulatedFabric
from apps.emulation.page import PageProcess
from apps.emulation.processes import EmulationError
from apps.registry import USUAL_APPS
from apps.status_client import query
from topology.generators import make
from topology.graph import NodeId

APPS = tuple(app for app in USUAL_APPS if app != "dashboard")
"""What runs; the page is served by a process of its own here."""

GROUP = "239.1.1.1"
SOURCE_ADDRESS = "10.0.0.1"
RATE_BPS = 2e6
STEADY_S = 3.0
PULLED_S = 4.0
PULL_AFTER_S = 1.0
SETTLED_S = 2.0
LATEST_S = 15.0
LONGEST_GAP_S = 2.0
SOURCE_STREAM, ROGUE_STREAM = 1, 2
KEPT_PHASE = 4
POLL_INTERVAL_S = 1
"""How often ports are polled here, so that the page soon shows a rate."""


class Demo:
    """The demonstration on a network that is up; `failures` holds what was not as it should be."""

    def __init__(self, fabric: EmulatedFabric, controller: ControllerProcess) -> None:
        self.fabric = fabric
        self.controller = controller
        self.failures: list[str] = []
        self.source = self._require_source()
        others = (host for host in fabric.graph.hosts() if host != self.source)
        self.receivers = sorted(others, key=lambda host: socket.inet_aton(fabric.address(host)))

    def _require_source(self) -> NodeId:
        source = self.fabric.host_with_address(SOURCE_ADDRESS)
        if source is None:
            raise EmulationError(f"no host has the address {SOURCE_ADDRESS}")
        return source

    def run(self) -> None:
        """Show joins and refusals, the tree, delivery, a rogue sender, and a pulled cable."""
        fabric = self.fabric
        found = self.controller.wait_discovered(fabric)
        say(f"The controller has found {found['switches']} switches and {found['links']} links.")
        for knob in ("interval_s", "intervals.tor"):
            query(self.controller.socket, {"do": "perf-set", "knob": knob, "value": POLL_INTERVAL_S})
        fabric.announce()

        title(f"{len(self.receivers)} hosts join {GROUP} by IGMP from their own kernels")
        for host in self.receivers:
            fabric.join(host, GROUP)
        document = self._wait_joined()
        admitted = [host for host in self.receivers if self._is_in(document["members"], host)]
        refused = [host for host in self.receivers if self._is_in(document["refused"], host)]
        say(f"admitted: {self._names(admitted)}")
        say(f"refused:  {self._names(refused)}")
        self._check(bool(admitted), "the policy admits no receiver")
        self._check(bool(refused), "the policy refuses no receiver")

        rogue = refused[0] if refused else self.receivers[0]
        title(
            f"{self._name(self.source)} sends {RATE_BPS / 1e6:g} Mbit/s to {GROUP}; "
            f"{self._name(rogue)}, which may not, sends as well"
        )
        fabric.open_stream(SOURCE_STREAM, self.source, GROUP, RATE_BPS)
        fabric.open_stream(ROGUE_STREAM, rogue, GROUP, RATE_BPS)
        self._send(0, SETTLED_S)
        self._send(1, STEADY_S)
        self._show_delivery(1, admitted, refused)

        title("The tree")
        tree = self._tree()
        for u, v in tree:
            say(f"  {u} - {v}")
        self._check(bool(tree), "there is no tree")

        if tree:
            self._pull(tree[0], admitted, refused)

    def _pull(self, link: tuple[NodeId, NodeId], admitted: list[NodeId], refused: list[NodeId]) -> None:
        title(f"While the stream runs, the cable {link[0]} - {link[1]} is pulled")
        self.fabric.send(2, PULLED_S)
        time.sleep(PULL_AFTER_S)
        self.fabric.link_down(*link)
        self.fabric.wait_sent(LATEST_S)
        worst_s, lost = 0.0, 0
        sent = self._sent(2)
        received = self.fabric.settled()
        for host in admitted:
            tally = self._tally(received, host, 2)
            worst_s = max(worst_s, tally.get("max_gap_s", PULLED_S))
            lost = max(lost, sent - tally.get("received", 0))
        say(f"longest pause at any receiver: {worst_s * 1000:.0f} ms, most packets lost by one: {lost} of {sent}")
        self._check(worst_s < LONGEST_GAP_S, f"a receiver waited {worst_s:.1f} s")
        self._check(link not in self._tree(), "the tree still uses the pulled cable")
        self._send(3, SETTLED_S)
        say("And from then on:")
        self._show_delivery(3, admitted, refused)

    def keep(self) -> None:
        """Send on until interrupted."""
        self.fabric.send(KEPT_PHASE)
        while self.controller.running:
            time.sleep(1)
        self.controller.check_alive()

    def _wait_joined(self) -> dict[str, Any]:
        def joined(groups: list[dict[str, Any]]) -> bool:
            return any(
                document["group"] == GROUP
                and len(document["members"]) + len(document["refused"]) >= len(self.receivers)
                for document in groups
            )

        groups = self.controller.wait_until("groups", joined, LATEST_S)
        return next(document for document in groups if document["group"] == GROUP)

    def _send(self, phase: int, duration_s: float) -> None:
        self.fabric.send(phase, duration_s)
        self.fabric.wait_sent(duration_s + LATEST_S)

    def _sent(self, phase: int) -> int:
        return int(self.fabric.sent()[str(SOURCE_STREAM)]["phases"][str(phase)]["sent"])

    def _tally(self, received: dict[str, Any], host: NodeId, phase: int) -> dict[str, Any]:
        tally: dict[str, Any] = received[f"{host} {GROUP}"]["streams"].get(f"{SOURCE_STREAM}:{phase}", {})
        return tally

    def _show_delivery(self, phase: int, admitted: list[NodeId], refused: list[NodeId]) -> None:
        sent = self._sent(phase)
        received = self.fabric.settled()
        counts = {host: self._tally(received, host, phase).get("received", 0) for host in admitted}
        say(f"{self._name(self.source)} sent {sent} packets.")
        for host in admitted:
            duplicates = self._tally(received, host, phase).get("duplicates", 0)
            say(f"  {self._name(host):<24} received {counts[host]:>5} of {sent}, {duplicates} twice")
            self._check(counts[host] == sent, f"{host} received {counts[host]} of {sent} packets")
            self._check(duplicates == 0, f"{host} received {duplicates} packets twice")
        leaked = 0
        for host in refused:
            count = sum(tally["received"] for tally in received[f"{host} {GROUP}"]["streams"].values())
            self._check(count == 0, f"{host}, which is refused, received {count} packets")
            leaked += count
        say(f"  {len(refused)} hosts that are refused received {leaked} packets in all")
        rogue = sum(
            tally["received"]
            for host in self.receivers
            for name, tally in received[f"{host} {GROUP}"]["streams"].items()
            if name.startswith(f"{ROGUE_STREAM}:")
        )
        say(f"Packets of the sender that is refused, received by anybody: {rogue}")
        self._check(rogue == 0, f"{rogue} packets of a refused sender were delivered")

    def _tree(self) -> list[tuple[NodeId, NodeId]]:
        switches = {self.fabric.dpid(switch): switch for switch in self.fabric.graph.switches()}
        for document in self.controller.show("groups"):
            if document["group"] == GROUP:
                return [(switches[u], switches[v]) for u, v in document["links"]]
        return []

    def _is_in(self, members: list[dict[str, Any]], host: NodeId) -> bool:
        return str(self.fabric.node(host).MAC()) in {member["mac"] for member in members}

    def _name(self, host: NodeId) -> str:
        return f"{host} ({self.fabric.address(host)})"

    def _names(self, hosts: list[NodeId]) -> str:
        return ", ".join(self._name(host) for host in hosts) or "nobody"

    def _check(self, right: bool, otherwise: str) -> None:
        if not right:
            self.failures.append(otherwise)


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


def title(text: str) -> None:
    """Print the heading of a step."""
    say(f"\n== {text}")


def main(arguments: list[str] | None = None) -> int:
    """Run the demonstration; 0 where all counts were right."""
    parser = argparse.ArgumentParser(prog="script/demo", description=__doc__)
    parser.add_argument("--framework", choices=FRAMEWORKS, default="ryu")
    parser.add_argument("--policy", type=Path, default=REPOSITORY / "policies" / "example.yaml")
    parser.add_argument("--keep", action="store_true", help="leave network, stream and page running until Ctrl-C")
    parser.add_argument("--cluster", action="store_true", help="three controllers, of which the leader is killed")
    given = parser.parse_args(arguments)
    started = time.monotonic()
    if given.cluster:
        return show_cluster(given.framework, started)
    graph = make("fattree", {"k": 4})
    title(
        f"A FatTree with k = 4: {len(graph.switches())} switches, {len(graph.hosts())} hosts, "
        f"under {'ryu-manager' if given.framework == 'ryu' else 'os-ken'} with {given.policy.name}"
    )
    controller = ControllerProcess(CONTROLLER_PORT, framework=given.framework, policy=given.policy, apps=APPS)
    try:
        # The page is served out here, the network and its controller are in a network of their own.
        with PageProcess(controller.socket) as page, EmulatedFabric(graph, controller=controller) as fabric:
            demo = Demo(fabric, controller)
            demo.run()
            tell(demo.failures, time.monotonic() - started)
            if not given.keep:
                say(f"The operator's page was at {page.url}: script/demo --keep leaves it running.")
            else:
                say(f"The operator's page is at {page.url} until Ctrl-C; what changes the fabric needs")
                say(f"this token: {page.token}")
                demo.keep()
    except EmulationError as error:
        say(f"\nFAILED: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 1 if demo.failures else 0


def show_cluster(framework: Framework, started: float) -> int:
    """Run the demonstration of several controllers; 0 where nothing was lost and the join was served."""
    try:
        failures = cluster_demo.run(framework, say, title)
    except EmulationError as error:
        say(f"\nFAILED: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    tell(failures, time.monotonic() - started)
    return 1 if failures else 0


def tell(failures: list[str], elapsed_s: float) -> None:
    """Print the result."""
    title("The result")
    for failure in failures:
        say(f"FAILED: {failure}")
    if not failures:
        say(f"Everything was as it should be ({elapsed_s:.0f} s).")


if __name__ == "__main__":
    sys.exit(main())
