"""A running controller under each framework looks for policies where its policy file asks for that, and not else."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.emulation.agents import REPOSITORY
from apps.emulation.controller import FRAMEWORKS, ControllerProcess
from apps.emulation.free_ports import free_port
from apps.simulated_fabric.lone import LoneSwitch
from apps.status_client import query

PORTS = 30
TIMEOUT_S = 60.0
GUARDED = range(2, PORTS + 1, 3)
LABELS = "".join(f"  1:{number}: {{guard: on, mtu: 9000, leave: fast}}\n" for number in GUARDED)
OPEN = f"version: 1\ndefault: allow\nlabels:\n{LABELS}"
SEARCHING = f"{OPEN}policy_discovery: {{enabled: true, interval_s: 1}}\n"


@pytest.fixture(params=FRAMEWORKS)
def running(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ControllerProcess]:
    pytest.importorskip("ryu" if request.param == "ryu" else "os_ken")
    policy = tmp_path / "policy.yaml"
    policy.write_text(OPEN)
    with ControllerProcess(free_port(), framework=request.param, policy=policy, apps=("multicast",)) as process:
        yield process


def vsrt(running: ControllerProcess, *words: str) -> str:
    command = [sys.executable, "-m", "apps.cli.main", *words, "--socket", str(running.socket)]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout


def test_policies_are_found_told_and_accepted(running: ControllerProcess, tmp_path: Path) -> None:
    switch = LoneSwitch(1, PORTS, ("127.0.0.1", running.port))

    def documents(section: str) -> dict[str, Any]:
        sections = query(running.socket, {"changes": {section: 0}, "limit": 2000}, TIMEOUT_S)["sections"]
        assert "multicast" in sections[section], sections
        found: dict[str, Any] = sections[section]["multicast"]["put"]
        return found

    def told() -> dict[str, Any]:
        return {id_: document for id_, document in documents("candidates").items() if id_ != "search"}

    try:
        assert switch.run_until(lambda: len(documents("ports")) >= PORTS, TIMEOUT_S)
        assert told() == {} and "no search" not in vsrt(running, "show", "candidates")
        (tmp_path / "policy.yaml").write_text(SEARCHING)
        assert switch.run_until(told, TIMEOUT_S)
        ((id_, candidate),) = told().items()
        assert candidate["properties"] == ["labels.guard", "labels.leave", "labels.mtu"]
        assert sorted(candidate["resources"]) == sorted(f"1:{number}" for number in GUARDED)
        assert id_ in vsrt(running, "show", "candidates")
        said = vsrt(running, "do", "candidate", "accept", id_)
        path = Path(said.strip().rpartition("it is in ")[2])
        assert json.loads(path.read_text())["policies"][0]["properties"] == candidate["properties"]
        assert "accepted" in vsrt(running, "show", "candidates")
    finally:
        switch.close()
