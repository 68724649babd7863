"""Settings that stand in databases of switches: recorded, found to follow a policy, held to it by a template."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("os_ken")

from apps.cli.change_recorder import ChangeRecorder
from apps.cli.database_follower import DatabaseFollower
from apps.cli.main import main
from controller.policy_discovery.configuration import Configuration
from ovsdb_server import OvsdbServer

WAIT_S = 30.0
PORTS = 30
GUARDED = range(3, PORTS + 1, 3)
FORGOTTEN = 9


class Recorder(ChangeRecorder):
    """A recorder that a test waits for: `until` returns the lines that it wrote."""

    def __init__(self, path: Path, configuration: Configuration, controller_text: str, *targets: str) -> None:
        self.follower = DatabaseFollower(lambda told: self.take(told), targets)
        super().__init__(path, configuration, (self.follower,))
        self.path = path
        self._wrote = threading.Condition(self.lock)
        self.follower.start()
        self.policy(controller_text)

    def policy(self, text: str) -> None:
        """A policy is in force."""
        with self.lock:
            self.follower.put("policy", {"text": text})

    def write(self) -> None:
        with self.lock:
            super().write()
            self._wrote.notify_all()

    def until(self, reached: Callable[[list[tuple[str, ...]]], Any]) -> list[tuple[str, ...]]:
        """Wait for lines; each is its resource, property, old and new value."""
        with self._wrote:
            assert self._wrote.wait_for(lambda: reached(self.lines()), WAIT_S), self.lines()
            return self.lines()

    def lines(self) -> list[tuple[str, ...]]:
        text = self.path.read_text() if self.path.exists() else ""
        found = map(json.loads, text.splitlines())
        return [tuple(line[name] for name in ("resource", "property", "old", "new")) for line in found]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[OvsdbServer]:
    with OvsdbServer(tmp_path) as server:
        server.bridge("br1a", 0x1A, PORTS)
        yield server


@pytest.fixture
def recorder_of(tmp_path: Path) -> Iterator[Callable[..., Recorder]]:
    with ExitStack() as stack:

        def make(from_nothing: bool, text: str = "version: 1\n", *targets: str) -> Recorder:
            made = Recorder(tmp_path / "changes.jsonl", Configuration({}, from_nothing), text, *targets)
            stack.callback(made.follower.end)
            return made

        yield make


def policy_of(server: OvsdbServer) -> str:
    return f'version: 1\nmonitor: {{ovsdb: "{server.target}"}}\n'


def guard(server: OvsdbServer) -> None:
    """Set what guarded ports have, in one transaction; one of them is forgotten in part."""
    words: list[str] = []
    for number in GUARDED:
        name = f"br1a-{number}"
        words += ["--", "set", "Port", name, "other_config:edge=true", "vlan_mode=access", "trunks=1,2"]
        words += ["--", "set", "Interface", name, 'options:guard="on: yes"']
        if number != FORGOTTEN:
            words += ["mtu_request=9000"]
    server.vsctl(*words[1:])


def test_what_the_policy_s_database_has_is_recorded_and_nothing_that_ports_count(server, recorder_of):
    server.vsctl("set", "Interface", "br1a-1", "mtu_request=1500")
    recorder = recorder_of(True, policy_of(server))
    assert recorder.until(len) == [("26:1", "interface.mtu_request", "", "1500")]
    server.vsctl("set", "Interface", "br1a-1", "statistics:rx_bytes=7", "link_state=up", "mtu=9000")
    server.vsctl("set-controller", "br1a", "tcp:192.0.2.1:6653", "--", "set", "Bridge", "br1a", "fail_mode=secure")
    lines = recorder.until(lambda lines: len(lines) >= 3)
    assert lines[1:] == [
        ("26", "bridge.fail_mode", "", "secure"),
        ("26", "controller.target", "", "tcp:192.0.2.1:6653"),
    ]
    recorder.policy("version: 1\n")
    server.vsctl("set", "Interface", "br1a-1", "mtu_request=2000")
    recorder.policy(policy_of(server))
    assert recorder.until(lambda lines: len(lines) > 3)[3:] == [("26:1", "interface.mtu_request", "1500", "2000")]


def test_a_database_that_goes_away_and_comes_back_loses_nothing_and_invents_nothing(server, recorder_of, capfd):
    recorder = recorder_of(False, "version: 1\n", server.target)
    server.vsctl("set", "Port", "br1a-3", "tag=5")
    server.vsctl("set", "Port", "br1a-4", "tag=5")
    known = recorder.until(lambda lines: any(line[0] == "26:4" for line in lines))
    server.kill()
    server.start()
    server.vsctl("set", "Port", "br1a-3", "tag=6")  # a bridge has no datapath id after a start of its database
    server.bridge_is_up("br1a", 0x1A)
    assert recorder.until(lambda lines: len(lines) > len(known))[len(known) :] == [("26:3", "port.tag", "5", "6")]
    server.vsctl("set", "Port", "br1a-4", "tag=7")
    assert recorder.until(lambda lines: len(lines) > len(known) + 1)[-1] == ("26:4", "port.tag", "5", "7")
    server.vsctl("del-port", "br1a-5", "--", "set", "Port", "br1a-6", "tag=8")
    lines = recorder.until(lambda lines: lines[-1][0] == "26:6")
    assert len(lines) == len(known) + 3, "what is gone was not set otherwise"
    assert "it ended the connection; trying again" in capfd.readouterr().err


def test_a_policy_over_settings_of_databases_is_found_and_the_fabric_held_to_it(
    server, recorder_of, tmp_path, capsys
):
    recorder = recorder_of(True, policy_of(server))
    guard(server)
    log = recorder.until(lambda lines: len(lines) >= 5 * len(GUARDED) - 1) and recorder.path
    ports = tmp_path / "ports.csv"
    named = [f"26:{number}" for number in range(1, PORTS + 1)]
    ports.write_text("resource,type\n" + "".join(f"{name},port\n" for name in named))
    template = tmp_path / "found.yaml"
    words = ["policy", "discover", "--log", str(log), "--inventory", str(ports), "-o", str(template), "--json"]
    assert main(words) == 0
    (policy,) = json.loads(capsys.readouterr().out)["policies"]
    assert policy["properties"] == [
        *("interface.mtu_request", "interface.options:guard"),
        *("port.other_config:edge", "port.trunks", "port.vlan_mode"),
    ]
    assert policy["deviations"] == [{"resource": "26:9", "missing": ["interface.mtu_request"], "other": {}}]

    check = ["template", "check", "policy-1", "-f", str(template), "--db", server.target, "--json"]
    assert main(check) == 1
    changes = json.loads(capsys.readouterr().out)["changes"]
    assert [(change["name"], change["setting"], change["after"]) for change in changes] == [
        ("br1a-9", "mtu_request", [9000])
    ]
    server.vsctl("set", "Interface", "br1a-9", "mtu_request=9000")
    assert main(check) == 0
