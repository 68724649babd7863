"""The questions of the guide, asked while there happens what they are about: the answers are such as it shows."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from controllers import OPEN_POLICY, controller

from apps.emulation.controller import ControllerProcess
from apps.simulated_fabric.fabric import SimulatedFabric
from apps.simulated_fabric.hosts import SimulatedHosts
from apps.simulated_fabric.lone import SPEED_BPS, unconnected_switches
from apps.simulated_fabric.switch import Service
from apps.status_client import query
from controller.probes.library import library
from how_to import GUIDES, blocks

GUIDE = "ask-the-controller.md"
TIMEOUT_S = 60.0
PORTS = 11
TRUNK = PORTS + 1
JOINS = 12
SLOW = Service(barrier_s=0.02)
POLICY = OPEN_POLICY.replace("224.0.0.0/4", "239.1.0.0/16") + "probes: {scripts: 16, budget_pct: 50}\n"

_ANSWERED = re.compile(r"^```sh\n([^\n]*)\n```\n+```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SIGNS = (
    (re.compile(r"[\w.]+( < [\w.]+)+"), "STACK"),
    (re.compile(r"\b[0-9a-f]{2}(:[0-9a-f]{2}){5}\b"), "MAC"),
    (re.compile(r"\b\d+(\.\d+){3}\b"), "IP"),
    (re.compile(r"\b\d[\d,]*(\.\d+)?\b"), "N"),
    (re.compile(r"#+"), "#"),
    (re.compile(r"\s+"), " "),
)


def shapes(text: str) -> set[str]:
    """Return the lines of an answer, with signs in place of what is another one each time."""
    found = set()
    for line in text.splitlines():
        shape = line.strip()
        for pattern, sign in _SIGNS:
            shape = pattern.sub(sign, shape)
        found.add(shape)
    return found - {""}


class Site:
    """A controller with two switches, their hosts, and a cable between the switches."""

    def __init__(self, process: ControllerProcess) -> None:
        self.process = process
        graph = unconnected_switches((3, 4), PORTS)
        graph.add_link("s3", "s4", TRUNK, TRUNK, SPEED_BPS)
        self.fabric = SimulatedFabric(graph, ("127.0.0.1", process.port))
        self.hosts = SimulatedHosts(self.fabric)
        self.fabric.connect()
        self.until(lambda: self.status("links") == 1 and self.status("edge_ports") == 2 * PORTS)

    def status(self, what: str) -> Any:
        return query(self.process.socket, {"show": "status"})[what]

    def probes(self) -> dict[str, str]:
        """Return the texts of the scripts that run, by id."""
        return {probe["id"]: probe["script"] for probe in query(self.process.socket, {"show": "probes"})["probes"]}

    def count(self, number: str, aggregate: str | None = None) -> int:
        """Return how many samples a script has in an aggregate, or in the one that has fewest."""
        found = query(self.process.socket, {"do": "probe-look", "id": number})["aggregates"]
        counts = {name: sum(row["count"] for row in rows) for name, rows in found.items()}
        return min(counts.values()) if aggregate is None else counts[aggregate]

    def until(self, reached: Callable[[], object]) -> None:
        assert self.fabric.run_until(reached, TIMEOUT_S)

    def live(self) -> None:
        """Have happen what the guide asks about, and go on until each script has counted something of it."""
        fabric, hosts = self.fabric, self.hosts
        numbers = {script: number for number, script in self.probes().items()}
        here = [host for host in hosts.all if host.end[0] == 3]
        for host in hosts.all:
            hosts.speak(host)
        self.until(lambda: self.status("hosts") == len(hosts.all))
        for number in range(JOINS):
            fabric.set_service(SLOW if number % 2 else Service())
            hosts.join(here[number % 8], bytes((239, 1, 1, 1 + number)))
            self.until(lambda number=number: self.status("groups") == 1 + number)
            assert fabric.wait_taken(TIMEOUT_S)
        hosts.join(here[0], bytes((239, 2, 1, 1)))
        hosts.send(here[0], bytes((239, 1, 2, 1)), bytes(600))
        moves = numbers[library()["host-moves"].text]
        mover = here[8]
        for moved, port_no in enumerate((10, 9), 1):
            mover.end = (3, port_no)
            hosts.speak(mover)
            self.until(lambda moved=moved: self.count(moves, "moves") == moved)
        fabric.set_link((3, TRUNK), False)
        self.until(lambda: self.status("links") == 0)
        fabric.set_link((3, TRUNK), True)
        self.until(lambda: self.status("links") == 1)
        fabric.blink(4)
        self.until(lambda: all(self.count(number) for number in numbers.values()))


@pytest.fixture(scope="module", params=["vsrt", "vsrt-os-ken"])
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    pytest.importorskip("ryu" if request.param == "vsrt" else "os_ken")
    with controller(request.param, POLICY) as process:
        site = Site(process)
        yield site
        site.fabric.close()


def test_each_question_has_an_answer_such_as_the_guide_shows(site: Site):
    text = (GUIDES / GUIDE).read_text(encoding="utf-8")
    shown = {tuple(shlex.split(asked)[1:]): answer for asked, answer in _ANSWERED.findall(text)}
    assert [[asked] for asked in text.splitlines() if asked.startswith("vsrt ")] == [
        block.splitlines() for block in blocks(GUIDE)
    ]
    assert len(shown) == len(blocks(GUIDE)) and {asked[3] for asked in shown} == set(library())
    (own,) = blocks(GUIDE, "probe")
    running = {}
    for asked in (*shown, ("probe", "run", "--text", own)):
        command = [sys.executable, "-m", "apps.cli.main", *asked, "--socket", str(site.process.socket)]
        running[asked] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    site.until(lambda: len(site.probes()) == len(running))
    site.live()
    for each in running.values():
        each.send_signal(signal.SIGTERM)
    for asked, each in running.items():
        out, err = each.communicate(timeout=TIMEOUT_S)
        assert (each.returncode, err) == (0, ""), asked
        assert out.strip() and shapes(shown.get(asked, "")) <= shapes(out), asked
