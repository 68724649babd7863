"""Classes wait in queues at real ports: who keeps a goal there, and what becomes of queues when something fails."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from apps.emulation import processes
from apps.emulation.controller import ControllerProcess, Framework
from apps.emulation.network import CONTROLLER_PORT, EmulatedFabric
from topology.graph import Graph, NodeKind

pytestmark = pytest.mark.emulation

CAPACITY_BPS = 10_000_000
FEW_WAITING = 50
"""Packets that wait at a port that is not full, at most."""

FLOOD_BPS = 12e6
POLICY = """\
version: 1
default: allow
discovery: {{link_capacity_bps: 10000000}}
monitor: {{port_capacity_bps: 10000000, prometheus: {{enabled: false}}}}
classes:
  - {{name: control, importance: 1, groups: [239.1.0.0/16], dscp: ef, goal: {{rate_bps: 3000000}}}}
  - {{name: market, importance: 2, groups: [239.2.0.0/16], dscp: af41, goal: {{loss_pct: 0.1}}}}
  - {{name: backup, importance: 6, groups: [239.3.0.0/16], dscp: le}}
  - {{name: board, importance: 1, hosts: [{board}], dscp: cs5}}
queues: {{mode: {mode}, interval_s: 0.5, floor_pct: {floor_pct}, ovsdb: ["unix:{server}"]}}
"""
QUEUES = {46: 6, 40: 6, 34: 5, 1: 1}
ALL_QUEUES = {0, 1, 5, 6, 7}
_numbers = count(1)


def policy_of(fabric: EmulatedFabric, mode: str, floor_pct: float) -> str:
    """The policy, which has h1 in a class of its own for what it sends to one host."""
    server, board = fabric.ovs.directory / "db.sock", fabric.address("h1")
    return POLICY.format(mode=mode, floor_pct=floor_pct, server=server, board=board)


class Queued:
    """Two switches with a cable between them, and the queues of their ports."""

    def __init__(self, fabric: EmulatedFabric, controller: ControllerProcess, policy: Path) -> None:
        self.fabric = fabric
        self.controller = controller
        self.policy = policy
        self.phase = 0

    def set_policy(self, mode: str = "static", floor_pct: float = 1) -> None:
        text = policy_of(self.fabric, mode, floor_pct)
        if text != self.policy.read_text():
            before = self.controller.log().count("is in force in every app")
            self.policy.write_text(text)
            self.controller.wait_log("is in force in every app", count=before + 1)

    def rows(self, table: str, *columns: str) -> list[dict[str, Any]]:
        """The rows of a table of the switches' database, with maps and sets as such."""
        text = processes.run(
            "ovs-vsctl", "--timeout=10", "--format=json", f"--columns={','.join(columns)}", "list", table
        )
        found = json.loads(text)
        return [
            {name: _plain(value) for name, value in zip(found["headings"], row, strict=True)} for row in found["data"]
        ]

    def ports(self) -> dict[str, dict[int, dict[str, str]] | None]:
        """By port, its queues and what they are set up with; None where it has none."""
        queues = {row["_uuid"]: row["other_config"] for row in self.rows("Queue", "_uuid", "other_config")}
        qos = {row["_uuid"]: row for row in self.rows("QoS", "_uuid", "queues")}
        found: dict[str, dict[int, dict[str, str]] | None] = {}
        for port in self.rows("Port", "name", "qos"):
            if "-" in port["name"]:
                here = qos.get(port["qos"]) if port["qos"] else None
                found[port["name"]] = here and {n: queues[q] for n, q in here["queues"].items() if q in queues}
        return found

    def wait(self, reached: Callable[[], Any], what: str, timeout_s: float = 30.0) -> Any:
        deadline = time.monotonic() + timeout_s
        while not (found := reached()):
            assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}\n{self.controller.log()[-3000:]}"
            time.sleep(0.1)
        return found

    def wait_queues(self) -> dict[str, dict[int, dict[str, str]]]:
        """Wait until every port has all queues, and sort packets into them."""

        def reached() -> Any:
            ports = self.ports()
            return (
                len(ports) == 6
                and all(queues is not None and set(queues) == ALL_QUEUES for queues in ports.values())
                and ports
            )

        found = self.wait(reached, "every port has its queues")
        self.wait(lambda: all(self._has_classes(name) for name in found), "every port has its shaper")
        self.fabric.sort_by_dscp(QUEUES)
        return found

    def _has_classes(self, name: str) -> bool:
        shown = processes.run("tc", "class", "show", "dev", name)
        return all(f"htb 1:{queue_id + 1:x} " in shown for queue_id in ALL_QUEUES)

    def min_rate_bps(self, port: str, queue_id: int) -> int:
        queues = self.ports()[port]
        return 0 if queues is None else int(queues[queue_id]["min-rate"])

    def onward_counts(self, switch: str) -> dict[tuple[int, int], int]:
        """How many IPv4 packets a switch has put into a queue by their code point: by that and the queue."""
        told = self.fabric.ofctl("dump-flows", switch, "table=1")
        found = re.findall(r"n_packets=(\d+),.*,ip,nw_tos=(\d+) actions=set_queue:(\d+),goto_table", told)
        return {(int(tos) >> 2, int(queue_id)): int(packets) for packets, tos, queue_id in found}

    def waiting_count(self, port: str, queue_id: int) -> int:
        """Return how many packets wait in a queue of a port."""
        shown = processes.run("tc", "-s", "class", "show", "dev", port)
        found = re.search(rf"class htb 1:{queue_id + 1:x} .*?backlog \S+ (\d+)p", shown, re.DOTALL)
        assert found is not None, shown
        return int(found[1])

    def stream(self, host: str, group: str, rate_bps: float) -> int:
        """Have h4 receive a group that a host sends to; return the number of the stream, which begins to send."""
        number = next(_numbers)
        self.fabric.join("h4", group)
        self.fabric.open_stream(number, host, group, rate_bps, frame_bytes=1000)
        self.fabric.send(0, streams=[number])

        def is_known(groups: list[dict[str, Any]]) -> bool:
            found = [each for each in groups if each["group"] == group]
            return bool(found and found[0]["senders"] and found[0]["members"])

        self.controller.wait_until("groups", is_known)
        self.controller.wait_until("status", lambda status: status["in_sync"])
        return number

    def lost_pct(self, duration_s: float, *streams: tuple[int, str]) -> list[float]:
        """Have streams send together for a while; return how much of each is lost, in percent."""
        self.phase += 1
        self.fabric.wait_flows()
        self.fabric.send(self.phase, duration_s, [number for number, _ in streams])
        self.fabric.wait_sent(duration_s + 15)
        sent, seen = self.fabric.sent(), self.fabric.settled()
        found = []
        for number, group in streams:
            count_sent = sent[str(number)]["phases"][str(self.phase)]["sent"]
            tally = seen[f"h4 {group}"]["streams"].get(f"{number}:{self.phase}", {})
            assert tally.get("duplicates", 0) == 0
            found.append(100 * (1 - tally.get("received", 0) / count_sent))
        return found


def _plain(value: Any) -> Any:
    """A value of the database as Python has it: maps, sets, UUIDs."""
    if not isinstance(value, list):
        return value
    kind, content = value
    if kind == "map":
        return {key: _plain(each) for key, each in content}
    if kind == "set":
        return [_plain(each) for each in content]
    return content


def dumbbell() -> Graph:
    graph = Graph()
    for switch in ("s1", "s2"):
        graph.add_node(switch, NodeKind.TOR)
    graph.add_link("s1", "s2", capacity_bps=CAPACITY_BPS)
    for host, switch in (("h1", "s1"), ("h2", "s1"), ("h3", "s1"), ("h4", "s2")):
        graph.add_node(host, NodeKind.HOST)
        graph.add_link(host, switch, capacity_bps=CAPACITY_BPS)
    return graph


@pytest.fixture(scope="module")
def queued(framework: Framework, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queued]:
    policy = tmp_path_factory.mktemp("queues") / "policy.yaml"
    apps = ("multicast", "unicast", "queues")
    with ExitStack() as stack:
        fabric = stack.enter_context(EmulatedFabric(dumbbell(), bounded_queues=True))
        policy.write_text(policy_of(fabric, "static", 1))
        controller = stack.enter_context(
            ControllerProcess(CONTROLLER_PORT, framework=framework, policy=policy, apps=apps)
        )
        controller.wait_discovered(fabric)
        fabric.wait_addresses()
        fabric.announce()
        yield Queued(fabric, controller, policy)


@pytest.fixture
def group() -> Callable[[int], str]:
    """Groups of the classes of importance 1, 2 and 6 (239.1, 239.2, 239.3) that no other test uses."""
    number = next(_numbers)
    return lambda second: f"239.{second}.{number}.1"


def test_every_port_has_its_queues_with_the_floor(queued: Queued) -> None:
    queued.set_policy()
    ports = queued.wait_queues()
    for queues in ports.values():
        rates = {queue_id: int(config["min-rate"]) for queue_id, config in queues.items()}
        assert rates == {0: 12_000, 1: 100_000, 5: 100_000, 6: 100_000, 7: 100_000}
        assert {queue_id: int(config["priority"]) for queue_id, config in queues.items()} == {
            0: 7,
            1: 6,
            5: 2,
            6: 1,
            7: 0,
        }
    assert {row["other_config"]["max-rate"] for row in queued.rows("QoS", "other_config")} == {str(CAPACITY_BPS)}
    queued.controller.wait_log("queues-without-effect", count=2)


def test_an_important_class_loses_nothing_while_a_discretionary_one_floods(
    queued: Queued, group: Callable[[int], str]
) -> None:
    queued.set_policy()
    queued.wait_queues()
    feed = queued.stream("h1", group(2), 2e6)
    flood = queued.stream("h2", group(3), FLOOD_BPS)
    feed_lost_pct, flood_lost_pct = queued.lost_pct(5.0, (feed, group(2)), (flood, group(3)))
    assert flood_lost_pct > 20, "the port is not full"
    assert feed_lost_pct < 1
    # The same without queues of any effect: all wait together.
    queued.fabric.sort_by_dscp({})
    feed_lost_pct, flood_lost_pct = queued.lost_pct(5.0, (feed, group(2)), (flood, group(3)))
    assert feed_lost_pct > 10
    queued.fabric.sender.ask("halt")


def test_packets_to_one_host_wait_in_the_queue_of_their_class_at_further_switches_too(queued: Queued) -> None:
    """Counted are those that s2, to which they come from another switch, puts into a queue by their code point."""
    queued.set_policy()
    queued.wait_queues()
    queued.wait(lambda: set(queued.onward_counts("s2")) == {(0, 1), (40, 6)}, "the switch knows the code points")
    before = queued.onward_counts("s2")
    for host in ("h1", "h2"):
        queued.fabric.run_on(host, "ping", "-c", "5", "-i", "0.05", "-W", "5", queued.fabric.address("h4"))

    def came() -> bool:
        now = queued.onward_counts("s2")
        return all(now[key] >= before[key] + 5 for key in before)

    queued.wait(came, "packets of both classes came")
    queued.set_policy("mark")
    queued.wait(lambda: not queued.onward_counts("s2"), "no queue is named any more")


def test_a_goal_holds_against_a_more_important_class_that_offers_too_much(
    queued: Queued, group: Callable[[int], str]
) -> None:
    queued.set_policy("static")
    queued.wait_queues()
    control = queued.stream("h1", group(1), FLOOD_BPS)
    market = queued.stream("h2", group(2), 3e6)
    backup = queued.stream("h3", group(3), 4e6)
    streams = ((control, group(1)), (market, group(2)), (backup, group(3)))
    _, market_lost_pct, _ = queued.lost_pct(5.0, *streams)
    assert market_lost_pct > 50, "strict priority leaves something to the second class"
    queued.set_policy("goal")
    queued.wait_queues()
    queued.fabric.send(0, streams=[control, market, backup])
    port = queued.wait(
        lambda: next((name for name in queued.ports() if queued.min_rate_bps(name, 5) > 3_000_000), None),
        "the rate of the class follows its need",
    )
    assert queued.min_rate_bps(port, 6) > 3_000_000
    # What has waited since the time without a goal fills the queue, so that a packet too many is lost.
    queued.fabric.sender.ask("halt", streams=[control])
    queued.wait(lambda: queued.waiting_count(port, 5) < FEW_WAITING, "what has waited is sent")
    control_lost_pct, market_lost_pct, backup_lost_pct = queued.lost_pct(10.0, *streams)
    assert market_lost_pct < 2
    assert backup_lost_pct < 99.5, "the discretionary class gets nothing at all"
    assert control_lost_pct > 20
    queued.fabric.sender.ask("halt")
    queued.wait(lambda: queued.min_rate_bps(port, 5) == 100_000, "a class that sends no more has the floor again")


def test_a_port_with_foreign_qos_is_left_alone_and_told_of(queued: Queued) -> None:
    queued.set_policy("off")
    queued.wait(lambda: not any(queued.ports().values()), "no port has queues")
    made = ("--", "--id=@q", "create", "QoS", "type=linux-htb", "external_ids:mine=yes")
    processes.run("ovs-vsctl", "--timeout=10", "set", "Port", "s1-eth1", "qos=@q", *made)
    before = queued.controller.log().count("qos-foreign")
    queued.set_policy()
    queued.wait(
        lambda: sum(queues is not None for queues in queued.ports().values()) == 6, "the other ports have queues"
    )
    queued.controller.wait_log("qos-foreign", count=before + 1)
    (foreign,) = [row for row in queued.rows("QoS", "external_ids", "queues") if "mine" in row["external_ids"]]
    assert foreign["queues"] == {}
    processes.run("ovs-vsctl", "--timeout=10", "clear", "Port", "s1-eth1", "qos")
    assert set(queued.wait_queues()["s1-eth1"]) == ALL_QUEUES
    queued.set_policy("off")
    queued.wait(lambda: not any(queued.ports().values()), "no port has queues")
    (left,) = queued.rows("QoS", "external_ids")
    assert left["external_ids"] == {"mine": "yes"}
    assert queued.rows("Queue", "_uuid") == []
    processes.run("ovs-vsctl", "--timeout=10", "--all", "destroy", "QoS")


def test_a_server_that_is_killed_and_comes_back_finds_its_queues_as_they_are_to_be(queued: Queued) -> None:
    queued.set_policy()
    before = queued.wait_queues()
    lost = queued.controller.log().count("ovsdb-lost")
    queued.fabric.ovs.kill_database()
    queued.controller.wait_log("ovsdb-lost", count=lost + 1)
    queued.set_policy(floor_pct=2)
    queued.fabric.ovs.start_database()
    queued.controller.wait_log("ovsdb-back")

    def has_new_floor() -> bool:
        ports = queued.ports()
        return all(queues is not None and queues[6]["min-rate"] == "200000" for queues in ports.values())

    queued.wait(has_new_floor, "the ports have the new floor")
    assert ports_of_rows(queued) == 6
    assert set(queued.ports()) == set(before)


def ports_of_rows(queued: Queued) -> int:
    """How many QoS there are, with five queues each."""
    qos = queued.rows("QoS", "_uuid")
    assert len(queued.rows("Queue", "_uuid")) == len(ALL_QUEUES) * len(qos)
    return len(qos)


def test_a_stopped_server_holds_up_nobody(queued: Queued) -> None:
    queued.set_policy()
    queued.wait_queues()
    lost = queued.controller.log().count("ovsdb-lost")
    os.kill(queued.fabric.ovs.database_pid, signal.SIGSTOP)
    try:
        queued.set_policy(floor_pct=3)
        began_s = time.monotonic()
        queued.controller.show("status")
        assert time.monotonic() - began_s < 2
        queued.controller.wait_log("ovsdb-lost", 30.0, count=lost + 1)
    finally:
        os.kill(queued.fabric.ovs.database_pid, signal.SIGCONT)
    queued.wait(lambda: queued.min_rate_bps("s1-eth1", 6) == 300_000, "the ports have the new floor")


def test_a_switch_that_starts_anew_has_its_queues_again_and_leaves_no_rows(queued: Queued) -> None:
    queued.set_policy()
    queued.wait_queues()
    queued.fabric.switch_down("s1")
    queued.fabric.switch_up("s1")
    queued.controller.wait_discovered(queued.fabric)
    queued.wait_queues()
    queued.wait(lambda: ports_of_rows(queued) == 6, "rows of former ports are gone")


def test_without_queues_nothing_of_them_is_left_and_no_entry_names_one(queued: Queued) -> None:
    queued.set_policy("off")
    queued.wait(lambda: not any(queued.ports().values()), "no port has queues")
    assert queued.rows("QoS", "_uuid") == queued.rows("Queue", "_uuid") == []
    queued.controller.wait_until("status", lambda status: status["in_sync"])
    for switch in ("s1", "s2"):
        assert "set_queue" not in queued.fabric.ofctl("dump-flows", switch)
