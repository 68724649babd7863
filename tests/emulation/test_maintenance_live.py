"""Every switch of a FatTree is restarted by a campaign while streams run, and the controller and the command die."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from apps.emulation.processes import EmulationError
from apps.status_client import query
from topology.generators import make
from topology.graph import Graph

pytestmark = [pytest.mark.emulation, pytest.mark.timeout(600)]

MAINTENANCE = "maintenance: {quiet_s: 0.5, soak_s: 0.5, quiet_limit_s: 60, back_limit_s: 60}\n"
RATE_BPS = 2e6
"""200 packets/s."""

PINGS_PER_S = 50


@pytest.fixture(scope="module")
def bench() -> tuple[Graph, dict[str, Any]]:
    return make("fattree", {"k": 4}), {}


EVERY = 20
"""The switches of the fabric."""


class Upgrader:
    """Restarts the switches that hooks ask for: one leaves a file with the datapath id, and waits till it is gone.

    `most` is how many are restarted, after which hooks wait until it is raised; `before` is told which is next.
    """

    def __init__(self, live: Any, directory: Path) -> None:
        self.live = live
        self.asked = directory / "asked"
        self.asked.mkdir()
        self.hook = directory / "upgrade"
        self.hook.write_text(
            f'#!/bin/sh\necho "$1" > {self.asked}/$$.new && mv {self.asked}/$$.new {self.asked}/$$\n'
            f"while [ -e {self.asked}/$$ ]; do sleep 0.05; done\n"
        )
        self.hook.chmod(0o755)
        self.restarted: list[int] = []
        self.most = EVERY
        self.before: Callable[[int], None] = lambda _dpid: None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Upgrader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        fabric = self.live.fabric
        while not self._over.wait(0.05):
            for path in self.asked.glob("[0-9]*"):
                if path.suffix or len(self.restarted) >= self.most:
                    continue
                dpid = int(path.read_text(), 16)
                switch = fabric.switch_with_dpid(dpid)
                self.before(dpid)
                fabric.switch_down(switch)
                fabric.switch_up(switch)
                self.restarted.append(dpid)
                path.unlink()


def vsrt(live: Any, *words: str) -> list[str]:
    return [str(Path(sys.executable).parent / "vsrt"), "maintain", *words, "--socket", str(live.controller.socket)]


def campaign(live: Any) -> dict[str, Any]:
    """What the controller says of the campaign and its switches, by id."""
    told = query(live.controller.socket, {"changes": {"maintenance": 0}})
    found: dict[str, Any] = told["sections"]["maintenance"]["multicast"]["put"]
    return found


KEEP_NEIGHBOURS = "for file in /proc/sys/net/ipv4/neigh/*/base_reachable_time_ms; do echo 3600000 > $file; done"


@contextmanager
def pings(live: Any, pairs: list[tuple[str, str]]) -> Iterator[dict[tuple[str, str], int]]:
    """Ping all the while; afterwards the dictionary has how many were not answered, or were twice.

    Hosts keep each other's address: who asks again while no controller runs has no answer, whatever a campaign does.
    """
    lost: dict[tuple[str, str], int] = {}
    running = []
    for host in {host for pair in pairs for host in pair}:
        subprocess.run(["mnexec", "-a", str(live.fabric.pid(host)), "sh", "-c", KEEP_NEIGHBOURS], check=True)
    for source, to in pairs:
        command = ["mnexec", "-a", str(live.fabric.pid(source)), "ping", "-n", "-q", "-i", str(1 / PINGS_PER_S)]
        running.append(subprocess.Popen([*command, live.fabric.address(to)], stdout=subprocess.PIPE, text=True))
    try:
        yield lost
    finally:
        for pair, process in zip(pairs, running, strict=True):
            process.send_signal(signal.SIGINT)
            told, _ = process.communicate(timeout=20)
            found = re.search(r"(\d+) packets transmitted, (\d+) received(?:, \+(\d+) duplicates)?", told)
            assert found is not None, told
            sent, received, twice = (int(number or 0) for number in found.groups())
            assert sent > 100
            lost[pair] = max(0, sent - received - 1) + twice  # the last one may be under way


@pytest.fixture
def upgrader(live: Any, tmp_path: Path) -> Iterator[Upgrader]:
    live.set_policy(live.policy.read_text() + MAINTENANCE)
    with Upgrader(live, tmp_path) as found:
        yield found


def streams_on(live: Any, group: str) -> None:
    live.join(group, "h5", "h9", "h16")
    live.stream(1, "h1", group, RATE_BPS)
    live.halt()
    live.fabric.settled()
    live.fabric.send(1)


def assert_nothing_lost(live: Any, group: str, lost: dict[tuple[str, str], int]) -> None:
    live.halt()
    live.assert_all_received(1, *(f"{host} {group}" for host in ("h5", "h9", "h16")))
    assert set(lost.values()) == {0}, lost


PAIRS = [("h1", "h16"), ("h5", "h9"), ("h3", "h2"), ("h12", "h7")]


def upper_switches(live: Any) -> list[str]:
    """The cores and aggregations, which no host is at."""
    graph = live.fabric.graph
    return [f"{live.fabric.dpid(node):#x}" for node in graph.switches() if graph.level(node) > 1]


def test_cores_and_aggregations_are_restarted_and_nothing_is_lost(
    live: Any, group: str, upgrader: Upgrader, unanswered: Any
) -> None:
    assert unanswered(live, PAIRS) == []
    streams_on(live, group)
    with pings(live, PAIRS) as lost:
        command = vsrt(live, "start", *upper_switches(live), "--hook", str(upgrader.hook), "--restarts", "--json")
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=400)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["campaign"]["state"] == "done"
    assert {fields["step"] for fields in told["switches"]} == {"done"}
    assert len(upgrader.restarted) == 12
    assert_nothing_lost(live, group, lost)
    assert live.controller.show("status")["in_sync"]


def test_whoever_dies_in_the_middle_the_campaign_comes_to_its_end(
    live: Any, group: str, upgrader: Upgrader, unanswered: Any
) -> None:
    assert unanswered(live, PAIRS) == []
    streams_on(live, group)
    upgrader.most = 6
    former = campaign(live).get("campaign", {}).get("runner")
    with pings(live, PAIRS) as lost:
        start = vsrt(live, "start", *upper_switches(live), "--hook", str(upgrader.hook), "--restarts")
        resume = vsrt(live, "resume", "--hook", str(upgrader.hook), "--json")
        with subprocess.Popen(start, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as command:
            wait_done(live, 2, former)
            live.controller.kill()
            live.controller.start()
            wait_done(live, 4, former)
            live.controller.wait_for(lambda: campaign(live)["campaign"]["hook"], "a switch is upgraded", 60)
            command.kill()
        upgrader.most = EVERY
        done = subprocess.run(resume, capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["campaign"]["done"] == 12
    assert_nothing_lost(live, group, lost)


def wait_done(live: Any, switches: int, former: str | None) -> None:
    """Wait until so many switches of a campaign are done that is not the former one."""

    def reached() -> bool:
        try:
            told = campaign(live).get("campaign")
            return told is not None and told["runner"] != former and told["done"] >= switches
        except (OSError, KeyError, EmulationError):
            return False

    try:
        live.controller.wait_for(reached, f"{switches} switches are done", 120)
    except EmulationError as error:
        raise EmulationError(f"{error}\ncampaign: {json.dumps(campaign(live))}") from error


def test_tors_are_disrupted_where_that_is_declared_and_only_their_hosts_lose_packets(
    live: Any, group: str, upgrader: Upgrader, unanswered: Any
) -> None:
    assert unanswered(live, PAIRS) == []
    graph = live.fabric.graph
    (tor,) = (node for node in graph.neighbours("h7") if graph.level(node) == 1)
    words = ("start", f"{live.fabric.dpid(tor):#x}", "--hook", str(upgrader.hook), "--restarts")
    refused = subprocess.run(vsrt(live, *words), capture_output=True, text=True, check=False, timeout=60)
    assert refused.returncode == 1
    assert "the hosts of 1 switches have no other" in refused.stderr
    streams_on(live, group)
    others = [pair for pair in PAIRS if "h7" not in pair]
    with pings(live, others) as lost:
        done = subprocess.run(
            vsrt(live, *words, "--disruptive"), capture_output=True, text=True, check=False, timeout=200
        )
    assert done.returncode == 0, done.stderr
    assert len(upgrader.restarted) == 1
    assert_nothing_lost(live, group, lost)
    assert unanswered(live, [("h12", "h7")], rounds=5) == []


def test_every_switch_is_restarted_in_one_campaign_and_only_hosts_at_a_tor_lose_packets_while_it_is_away(
    live: Any, group: str, upgrader: Upgrader, unanswered: Any
) -> None:
    assert unanswered(live, PAIRS) == []
    live.set_policy(live.policy.read_text().replace("maintenance: {", "maintenance: {max_concurrent: 1, "))
    graph = live.fabric.graph
    tors = {node: live.fabric.dpid(node) for node in graph.switches() if graph.level(node) == 1}
    tor_of = {host: tors[node] for host in ("h1", "h5", "h9", "h16") for node in graph.neighbours(host)}
    streams_on(live, group)
    away: dict[int, int] = {}

    def begin_phase(dpid: int) -> None:
        """Send what follows in a phase of its own, when a ToR is next; the one before is back by then."""
        if dpid in tors.values():
            phase = 2 + len(away)
            away[phase] = dpid
            live.fabric.send(phase, streams=[1])

    upgrader.before = begin_phase
    command = vsrt(live, "start", "--disruptive", "--hook", str(upgrader.hook), "--restarts", "--json")
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    live.halt()
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["campaign"]["done"] == len(upgrader.restarted) == EVERY
    assert sorted(away.values()) == sorted(tors.values())
    live.assert_all_received(1, *(f"{host} {group}" for host in ("h5", "h9", "h16")))
    for phase, dpid in away.items():
        for host in ("h5", "h9", "h16"):
            sent, received, duplicates = live.counts(phase, f"{host} {group}")
            assert (sent > 0, duplicates) == (True, 0)
            lost = sent - received
            may_lose = dpid in (tor_of[host], tor_of["h1"])
            assert may_lose or 0 <= lost <= live.overruns(), (phase, dpid, host, sent, received)
    assert unanswered(live, PAIRS, rounds=5) == []
