"""A controller process and the simulated fabric that it drives, and waiting for either."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple

from controllers import OPEN_POLICY

from apps.emulation.controller import ControllerProcess, Framework
from apps.emulation.free_ports import free_port
from apps.simulated_fabric.fabric import SimulatedFabric
from apps.simulated_fabric.hosts import SimulatedHost, SimulatedHosts
from apps.simulated_fabric.watch import SwitchWatch
from fabric_simulator.process import Page, Questions, Usage
from topology.graph import Graph

ASK_S = 0.1
QUIET_S = 0.2
"""No edit for so long, and idle loops, say that the controller is done."""

IPV4_GROUPS = 239 << 24


class TookTooLong(TimeoutError):  # noqa: N818
    """The controller did not come where it was waited for; the text says how far it came."""


def group_address(number: int) -> bytes:
    """Return the n-th group, an IPv4 address."""
    return (IPV4_GROUPS + (1 << 16) + number).to_bytes(4, "big")


def format_group(group: bytes) -> str:
    """Return an address as people write it."""
    return str(ip_address(group))


class PolicyText(NamedTuple):
    """A policy file: rules and limits, which may change, and what else is in it."""

    path: Path
    rest: str

    def write(self, rules: str) -> None:
        """Replace the file by a whole one."""
        new = self.path.with_suffix(".new")
        new.write_text(rules + self.rest)
        new.replace(self.path)


class LiveRun:
    """One controller with its fabric; parts of a measurement follow each other on it."""

    def __init__(
        self,
        process: ControllerProcess,
        fabric: SimulatedFabric,
        policy: PolicyText,
        metrics_port: int,
        timeout_s: float,
        seed: int,
    ) -> None:
        self.process = process
        self._policy = policy
        self.fabric = fabric
        self.hosts = SimulatedHosts(fabric)
        self.questions = Questions(process.socket, metrics_port)
        self.timeout_s = timeout_s
        self.random = random.Random(seed)
        self.members: dict[bytes, list[SimulatedHost]] = {}
        self.senders: dict[bytes, SimulatedHost] = {}

    @property
    def watch(self) -> SwitchWatch:
        """What the switches saw."""
        return self.fabric.watch

    def set_rules(self, rules: str) -> None:
        """Replace what the policy file says of rules and limits."""
        self._policy.write(rules)

    def usage(self) -> Usage:
        """Begin to measure processor time."""
        return Usage(self.process.pid)

    def answer(self, future: Future[Any]) -> Any:
        """Go on until a question is answered; an answer that is no JSON object of the kind asked for is an error."""
        if not self.fabric.run_until(future.done, self.timeout_s):
            raise TookTooLong(f"no answer within {self.timeout_s:g} s")
        return future.result()

    def page(self) -> Page:
        """Return the controller's Prometheus page."""
        page: Page = self.answer(self.questions.page())
        return page

    def status(self) -> dict[str, Any]:
        """Return the multicast app's status; empty while it does not answer."""
        try:
            found: dict[str, Any] = self.answer(self.questions.ask({"show": "status"}))
        except (OSError, ValueError):
            return {}
        return found

    def found(self, status: dict[str, Any], missing_links: int = 0, missing_switches: int = 0) -> bool:
        """Tell whether a status knows all switches, links and host ports."""
        fabric = self.fabric
        return (
            status.get("switches") == len(fabric.switches) - missing_switches
            and status.get("links") == fabric.link_count - missing_links
            and (missing_switches > 0 or status.get("edge_ports") == len(fabric.host_ports))
        )

    def wait_found(self, missing_links: int = 0, missing_switches: int = 0, timeout_s: float | None = None) -> float:
        """Go on until the controller says that it knows the fabric, and return when it said so."""
        return self._wait(lambda status: self.found(status, missing_links, missing_switches), timeout_s)

    def wait_in_sync(self, timeout_s: float | None = None) -> float:
        """Go on until the controller says that all switches hold what they should, and return when it said so."""
        return self._wait(lambda status: status.get("ready") and status.get("in_sync"), timeout_s)

    def _wait(self, reached: Any, timeout_s: float | None) -> float:
        end_s = time.monotonic() + (timeout_s or self.timeout_s)
        while True:
            asked_s = time.monotonic()
            status = self.status()
            now = time.monotonic()
            if reached(status):
                return now
            if now > end_s:
                self.process.check_alive()
                raise TookTooLong(self._progress(status))
            self.fabric.run_for(max(ASK_S, 4 * (now - asked_s)))

    def _progress(self, status: dict[str, Any]) -> str:
        fabric = self.fabric
        told = {name: status.get(name) for name in ("switches", "links", "edge_ports", "in_sync", "not_ready_reason")}
        return (
            f"of {len(fabric.switches)} switches, {fabric.link_count} links and {len(fabric.host_ports)} host ports: "
            f"{told}; {fabric.connected_count} connections, {fabric.lost_connections} lost; so far "
            f"{self.watch.edit_count()} flow-mods, {self.watch.lldp_frames} LLDP frames and "
            f"{self.watch.readings} readings"
        )

    def wait_quiet(self, timeout_s: float | None = None) -> None:
        """Go on until all loops are idle, all that switches said is taken, and every edit confirmed, none being new.

        The controller is asked no sooner than its switches are at rest, for its answer costs it some milliseconds. A
        loop answers before it sends what its turn made, so none may follow either, for `QUIET_S`.
        """
        watch = self.watch
        end_s = time.monotonic() + (timeout_s or self.timeout_s)
        was_idle = False
        while True:
            edits = watch.edit_count()
            self.fabric.run_for(QUIET_S)
            is_still = watch.settled and watch.edit_count() == edits
            if is_still and was_idle:
                return
            was_idle = is_still and self.fabric.wait_taken(self.timeout_s) and self.page().idle
            if time.monotonic() > end_s:
                self.process.check_alive()
                waits = {app: count for app, count in self.page().backlog.items() if count}
                raise TookTooLong(f"events wait: {waits}; edits: {edits}; confirmed: {watch.settled}")

    def speak(self, hosts: Sequence[SimulatedHost], per_turn: int = 16) -> None:
        """Have hosts announce themselves, some in each turn of the fabric's loop."""
        for number, host in enumerate(hosts):
            self.hosts.speak(host)
            if number % per_turn == per_turn - 1:
                self.fabric.turn(0.001)

    def new_member(self, group: bytes) -> SimulatedHost | None:
        """Choose a host that is not in a group yet, None where all are."""
        members = self.members.setdefault(group, [])
        if len(members) >= len(self.hosts.all):
            return None
        while True:
            host = self.random.choice(self.hosts.all)
            if host not in members:
                members.append(host)
                return host

    def populate(self, groups: int, members: int, per_turn: int = 16) -> int:
        """Give each of the first groups a sender and so many members, and return how many hosts joined for it."""
        joins = 0
        for number in range(groups):
            group = group_address(number)
            if group not in self.members:
                self.senders[group] = self.random.choice(self.hosts.all)
                self.hosts.send(self.senders[group], group)
            while len(self.members.setdefault(group, [])) < members:
                host = self.new_member(group)
                if host is None:
                    break
                self.hosts.join(host, group)
                joins += 1
                if joins % per_turn == 0:
                    self.fabric.turn(0.001)
        return joins


@contextmanager
def live_run(
    graph: Graph,
    *,
    framework: Framework = "os-ken",
    apps: Sequence[str] = ("multicast", "unicast"),
    policy: str = "",
    timeout_s: float = 120.0,
    seed: int = 1,
    controller: type[ControllerProcess] = ControllerProcess,
) -> Iterator[LiveRun]:
    """Run a controller and make a fabric for it, whose switches are not connected yet."""
    metrics_port = free_port()
    rest = f"monitor: {{prometheus: {{port: {metrics_port}}}}}\n{policy}"
    # The fabric is made first: what it allows itself to open, its child may open too.
    fabric = SimulatedFabric(graph, ("127.0.0.1", free_port()))
    try:
        with tempfile.TemporaryDirectory(prefix="vsrt-fabric-") as directory:
            text = PolicyText(Path(directory) / "policy.yaml", rest)
            text.write(OPEN_POLICY)
            with controller(fabric.address[1], framework=framework, policy=text.path, apps=apps) as process:
                run = LiveRun(process, fabric, text, metrics_port, timeout_s, seed)
                try:
                    yield run
                finally:
                    run.questions.close()
    finally:
        fabric.close()
