from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, nullcontext
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from apps.emulation.cluster import EmulatedCluster
from apps.emulation.controller import FRAMEWORKS, ControllerProcess, Framework
from apps.emulation.network import CONTROLLER_PORT, EmulatedFabric
from apps.emulation.processes import EmulationError
from etcd_server import etcd_program
from patience import HeldUp
from several_controllers import Clustered, three_switches
from topology.graph import Graph, NodeId, NodeKind

POLICY = """\
version: 1
tenants: {members: [10.0.0.1, 10.0.0.2, 10.0.0.3]}
rules:
  - {name: receive, groups: [239.9.0.0/16], role: receiver, hosts: [members], action: allow}
  - {name: send, groups: [239.9.0.0/16], role: sender, hosts: [10.0.0.1], action: allow}
  - {name: others, groups: [239.9.0.0/16], role: any, hosts: [10.0.0.0/8], action: deny}
default: allow
multicast: {querier: {response_interval_s: 1, last_member_interval_s: 0.2}}
"""
"""Everybody may do everything, but for 239.9.0.0/16; hosts answer queries soon."""

POLICY_IN_FORCE = "policy.yaml is in force in every app"

Bench: TypeAlias = tuple[Graph, dict[str, Any]]
"""What the tests of a module run on: a graph, and the options of its `EmulatedFabric`."""

BroughtUp: TypeAlias = Callable[[EmulatedFabric], AbstractContextManager[None]]

_numbers = count(1)


class Live:
    """A fabric under a live controller, as one test after the other uses it."""

    def __init__(
        self, fabric: EmulatedFabric, controller: ControllerProcess, policy: Path, policy_between: str = POLICY
    ) -> None:
        self.fabric = fabric
        self.controller = controller
        self.policy = policy
        self._policy_between = policy_between
        self._overruns_before = 0

    def restore(self) -> None:
        """Bring everything back that a test took away, and wait until the controller knows."""
        self.fabric.restore()
        if not self.controller.running:
            self.controller.start()
        self.set_policy(self._policy_between)
        self.controller.wait_discovered(self.fabric)
        self.wait_ready()  # what hosts say goes nowhere while their ports are moved to other VLANs
        self.fabric.announce()
        hosts = len(self.fabric.graph.hosts())
        self.controller.wait_until("status", lambda status: status["hosts"] >= hosts)
        self._overruns_before = self.fabric.overruns()

    def set_policy(self, text: str) -> None:
        """Write the policy file, and wait until every app of the controller goes by it."""
        if text != self.policy.read_text():
            self.change_policy(lambda: self.policy.write_text(text))

    def change_policy(self, change: Callable[[], Any]) -> None:
        """Have the policy file read anew by what `change` does, and wait until every app goes by it."""
        before = self.controller.log().count(POLICY_IN_FORCE)
        change()
        self.controller.wait_log(POLICY_IN_FORCE, count=before + 1)

    def mac(self, host: NodeId) -> str:
        return str(self.fabric.node(host).MAC())

    def document(self, group: str) -> dict[str, Any]:
        """What the controller says of a group; empty lists where it knows none."""
        return _of(self.controller.show("groups"), group)

    def tree(self, group: str) -> list[tuple[NodeId, NodeId]]:
        switches = {self.fabric.dpid(switch): switch for switch in self.fabric.graph.switches()}
        return [(switches[u], switches[v]) for u, v, *_ports in self.document(group)["links"]]

    def wait_ready(self, **wanted: int) -> None:
        """Wait until counts of the status are as wanted, and every switch holds what it shall, and goes by it."""
        self.controller.wait_until(
            "status",
            lambda status: status["in_sync"] and all(status[name] == value for name, value in wanted.items()),
        )
        self.fabric.wait_flows()

    def wait_members(self, group: str, members: set[NodeId], refused: Iterable[NodeId] = ()) -> None:
        """Wait until exactly these hosts are members, and these refused, and switches go by it."""
        wanted = {self.mac(host) for host in members}, {self.mac(host) for host in refused}

        def known(groups: list[dict[str, Any]]) -> bool:
            document = _of(groups, group)
            return wanted == ({m["mac"] for m in document["members"]}, {m["mac"] for m in document["refused"]})

        self.controller.wait_until("groups", known)
        self.wait_ready()

    def join(self, group: str, *hosts: NodeId, **options: Any) -> None:
        """Let hosts join, and wait until they are members."""
        for host in hosts:
            self.fabric.join(host, group, **options)
        self.wait_members(group, set(hosts))

    def stream(self, number: int, host: NodeId, group: str, rate_bps: float = 2e6, **options: Any) -> None:
        """Open a stream that sends (phase 0) until another phase or its halt; its sender is known on return."""
        self.fabric.open_stream(number, host, group, rate_bps, **options)
        self.fabric.send(0, streams=[number])
        sender = self.mac(host)

        def known(groups: list[dict[str, Any]]) -> bool:
            return sender in {found["mac"] for found in _of(groups, group)["senders"]}

        self.controller.wait_until("groups", known)
        self.wait_ready()

    def send(self, phase: int, duration_s: float, *streams: int) -> None:
        """Send one phase to its end."""
        self.fabric.send(phase, duration_s, streams)
        self.fabric.wait_sent(duration_s + 15)

    def held_up(self) -> HeldUp:
        """Begin to count how long the controller and the switches could run and have no processor."""
        return HeldUp(self.controller.pid, self.fabric.ovs.vswitchd_pid)

    def halt(self) -> None:
        """End all streams."""
        self.fabric.sender.ask("halt")

    def counts(self, phase: int, name: str, stream: int = 1) -> tuple[int, int, int]:
        """Packets sent in a phase; received, and received twice, by a socket."""
        ((sent, received, duplicates),) = self._counts(phase, [name], stream)
        return sent, received, duplicates

    def _counts(self, phase: int, names: Iterable[str], stream: int) -> list[tuple[int, int, int]]:
        sent = self.fabric.sent()[str(stream)]["phases"][str(phase)]["sent"]
        seen = self.fabric.settled()
        tallies = [seen[name]["streams"].get(f"{stream}:{phase}", {}) for name in names]
        return [(sent, tally.get("received", 0), tally.get("duplicates", 0)) for tally in tallies]

    def send_both_to(self, group: str, receiver: str) -> None:
        """h1 (stream 1) and h2 (stream 2) send a phase 1, which is tapped at a receiver."""
        for number, host in enumerate(("h1", "h2"), 1):
            self.stream(number, host, group)
        self.halt()
        self.fabric.settled()
        self.fabric.tap(receiver)
        self.send(1, 0.5)

    def assert_seen(self, receiver: str, group: str) -> None:
        """All that reached a tapped receiver is phase 1 of stream 1."""
        sent = self.fabric.sent()["1"]["phases"]["1"]["sent"]
        assert self.fabric.settled()[f"tap {receiver}"]["groups"] == {group: sent}

    def assert_excluded_source_is_kept_away(self, group: str) -> None:
        """h3, which excludes h2, gets what h1 sends and nothing else."""
        self.fabric.join("h3", group, exclude=[self.fabric.address("h2")])
        self.wait_members(group, {"h3"})
        self.send_both_to(group, "h3")
        self.assert_all_received(1, f"h3 {group}")
        self.assert_seen("h3", group)

    def assert_reaches_every_host(self, group: str) -> None:
        """What h1 sends to a link-scope group reaches all, joined or not, once."""
        others = ("h2", "h3", "h4")
        for host in others:
            self.fabric.tap(host)
        self.fabric.open_stream(1, "h1", group, 1e5, ttl=1)
        self.send(0, 0.5)
        sent = self.fabric.sent()["1"]["phases"]["0"]["sent"]
        seen = self.fabric.settled()
        assert sent > 0
        assert [seen[f"tap {host}"]["groups"] for host in others] == [{group: sent}] * 3

    def assert_all_received(self, phase: int, *names: str, stream: int = 1) -> None:
        """Each socket received every packet of a phase that the machine handed to the switches, once."""
        for name, (sent, received, duplicates) in zip(names, self._counts(phase, names, stream), strict=True):
            assert sent > 0
            assert duplicates == 0, name
            assert 0 <= sent - received <= self.overruns(), name

    def overruns(self) -> int:
        """Packets that the machine has lost under load since the test began, before any switch saw them."""
        return self.fabric.overruns() - self._overruns_before


def _of(groups: list[dict[str, Any]], group: str) -> dict[str, Any]:
    nothing: dict[str, Any] = {"links": [], "members": [], "refused": [], "senders": [], "unsupported": None}
    return next((document for document in groups if document["group"] == group), nothing)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Have a module's tests for each framework, or for the one that it names as `FRAMEWORK`.

    A module names one where the framework has no part in what it tests; `--every-framework` overrules it, and so
    does naming a test among the module's `UNDER_EVERY_FRAMEWORK`.
    """
    if "framework" in metafunc.fixturenames:
        one = getattr(metafunc.module, "FRAMEWORK", None)
        by_name = metafunc.function.__name__ in getattr(metafunc.module, "UNDER_EVERY_FRAMEWORK", ())
        every = one is None or by_name or metafunc.config.getoption("every_framework")
        metafunc.parametrize("framework", FRAMEWORKS if every else (one,), indirect=True, scope="module")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run each case under one framework, in turn, unless it is about what frameworks do (`each_framework`).

    All are run with `--every-framework`, and where tests are named by their ids.
    """
    if config.getoption("every_framework") or any("::" in argument for argument in config.args):
        return
    cases: Counter[tuple[object, object]] = Counter()
    kept, left_out = [], []
    for item in items:
        (kept if _in_turn(item, cases) else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def _in_turn(item: pytest.Item, cases: Counter[tuple[object, object]]) -> bool:
    """Tell whether it is a case's turn under its framework; it depends on where the case stands in its module.

    `cases` counts those of each function under each framework.
    """
    if not isinstance(item, pytest.Function) or hasattr(item.module, "FRAMEWORK"):
        return True
    framework = getattr(item, "callspec", None) and item.callspec.params.get("framework")
    if framework is None or item.get_closest_marker("each_framework"):
        return True
    functions = [function for name, function in vars(item.module).items() if name.startswith("test_")]
    place = functions.index(item.obj) + cases[item.obj, framework]
    cases[item.obj, framework] += 1
    return bool(FRAMEWORKS[place % len(FRAMEWORKS)] == framework)


@pytest.fixture(scope="module")
def framework(request: pytest.FixtureRequest) -> Framework:
    found: Framework = request.param
    return found


@pytest.fixture
def start_fabric() -> Iterator[Callable[..., EmulatedFabric]]:
    """Brings up a graph; everything is taken down after the test."""
    with ExitStack() as stack:
        yield lambda graph, **options: stack.enter_context(EmulatedFabric(graph, **options))


class Shared:
    """The one network and controller of a module under one framework: brought up when asked for, anew if broken."""

    def __init__(
        self, bench: Bench, framework: Framework, policy: Path, policy_between: str, brought_up: BroughtUp
    ) -> None:
        self._graph, self._options = bench
        self._brought_up = brought_up
        self._framework = framework
        self._policy = policy
        self._policy_between = policy_between
        self._stack = ExitStack()
        self._live: Live | None = None
        self._attempts = 0

    def get(self) -> Live:
        if self._live is None:
            self._attempts += 1
            assert self._attempts <= 3, "the network and controller were broken too often"
            self._policy.write_text(self._policy_between)
            controller = ControllerProcess(CONTROLLER_PORT, framework=self._framework, policy=self._policy)
            fabric = self._stack.enter_context(EmulatedFabric(self._graph, controller=controller, **self._options))
            self._stack.enter_context(self._brought_up(fabric))
            self._live = Live(fabric, controller, self._policy, self._policy_between)
            fabric.wait_addresses()
            self._live.restore()
        return self._live

    def close(self) -> None:
        self._live = None
        self._stack.close()


@pytest.fixture(scope="module")
def policy_between() -> str:
    """The policy before each test; a module whose fabric needs another one has a fixture of its own."""
    return POLICY


@pytest.fixture(scope="module")
def brought_up() -> BroughtUp:
    """What is done to a fabric that is up, before the first test, and undone before it is taken down: nothing."""
    return nullcontext


@pytest.fixture(scope="module")
def shared(
    bench: Bench,
    framework: Framework,
    policy_between: str,
    brought_up: BroughtUp,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Shared]:
    policy = tmp_path_factory.mktemp("live") / "policy.yaml"
    shared = Shared(bench, framework, policy, policy_between, brought_up)
    yield shared
    shared.close()


@pytest.fixture
def live(shared: Shared) -> Iterator[Live]:
    """The module's network and controller, in order; a module says by its `bench` what they are."""
    live = shared.get()
    try:
        yield live
        live.restore()
    except BaseException:
        shared.close()
        raise


@pytest.fixture
def group() -> str:
    """A group that no other test uses."""
    return f"239.1.{next(_numbers)}.1"


@pytest.fixture(scope="session")
def unanswered() -> Callable[..., list[tuple[str, str]]]:
    """The pairs of hosts between which one ping gets no answer within two seconds.

    Where a cable was pulled a moment ago unicast may not have followed yet when all that multicast wants is in place,
    which is what `Live.wait_ready` waits for: then all are asked up to `rounds` times, until all answer.
    """

    def ask(
        live: Live, pairs: list[tuple[str, str]], *, ipv6: bool = False, rounds: int = 1
    ) -> list[tuple[str, str]]:
        def fails(pair: tuple[str, str]) -> bool:
            address = live.fabric.address(pair[1], ipv6=ipv6)
            try:
                live.fabric.run_on(pair[0], "ping", "-n", "-c", "1", "-W", "2", address)
            except EmulationError:
                return True
            return False

        with ThreadPoolExecutor(4) as pool:
            for _ in range(rounds):
                left = [pair for pair, failed in zip(pairs, pool.map(fails, pairs), strict=True) if failed]
                if not left:
                    break
        return left

    return ask


def _add_hosts(graph: Graph, switch: str, names: list[str], capacity_bps: float) -> None:
    for name in names:
        graph.add_node(name, NodeKind.HOST)
        graph.add_link(switch, name, capacity_bps=capacity_bps)


@pytest.fixture(scope="session")
def make_star() -> Callable[..., Graph]:
    """One switch s1 with hosts h1, h2, ..."""

    def make(host_count: int, capacity_bps: float = 1e9) -> Graph:
        graph = Graph()
        graph.add_node("s1", NodeKind.TOR)
        _add_hosts(graph, "s1", [f"h{number}" for number in range(1, host_count + 1)], capacity_bps)
        return graph

    return make


def _make_diamond(hosts_per_tor: int) -> Graph:
    graph = Graph()
    for name in ("s1", "s2"):
        graph.add_node(name, NodeKind.TOR)
    for name in ("s3", "s4"):
        graph.add_node(name, NodeKind.AGGREGATION)
        for tor in ("s1", "s2"):
            graph.add_link(tor, name)
    for tor, first in (("s1", 1), ("s2", 1 + hosts_per_tor)):
        _add_hosts(graph, tor, [f"h{number}" for number in range(first, first + hosts_per_tor)], 1e9)
    return graph


@pytest.fixture(scope="session")
def diamond() -> Graph:
    """ToRs s1 and s2, joined by s3 and by s4; hosts h1, h2 at s1 and h3, h4 at s2."""
    return _make_diamond(2)


@pytest.fixture(scope="session")
def wide_diamond() -> Graph:
    """ToRs s1 and s2, joined by s3 and by s4; hosts h1 to h4 at s1 and h5 to h8 at s2."""
    return _make_diamond(4)


@pytest.fixture
def clustered(tmp_path: Path, framework: Framework) -> Iterator[Callable[..., Clustered]]:
    """Brings up a fabric under several controllers."""
    etcd_program()
    with ExitStack() as stack:

        def bring_up(count: int = 2, *, of_cluster: Mapping[str, Any] | None = None, **options: Any) -> Clustered:
            cluster = EmulatedCluster(tmp_path, CONTROLLER_PORT, count, framework=framework, **(of_cluster or {}))
            ports = cluster.ports[1:]
            fabric = EmulatedFabric(three_switches(), controller=cluster, more_controller_ports=ports, **options)
            return Clustered(cluster, stack.enter_context(fabric))

        yield bring_up
