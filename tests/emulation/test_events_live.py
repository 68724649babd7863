"""What an operator reads of real switches: a line for each thing that happened, whichever apps run."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apps.cli.snapshot_socket import SocketSource
from apps.emulation.controller import ControllerProcess
from apps.emulation.network import CONTROLLER_PORT, EmulatedFabric
from topology.graph import Graph

pytestmark = [pytest.mark.emulation, pytest.mark.unhurried]

APPS = ("multicast", "unicast", "monitor")
SETTLED_S = 60.0
LASTING_S = 3.0
"""What lasts so long is an alarm in whichever order the apps are told of it."""


def events(controller: ControllerProcess) -> dict[str, tuple[str, str]]:
    """Return kind and state of every event by its id."""
    snapshot = next(SocketSource(controller.socket).follow(("events",)))
    found = snapshot.section("events").documents
    return {id_: (document.fields["kind"], document.fields["state"]) for id_, document in found.items()}


def wait_alarms(controller: ControllerProcess, *kinds: str) -> None:
    """Wait until alarms of exactly these kinds are open."""
    controller.wait_until(
        "alarms", lambda answer: [alarm["kind"] for alarm in answer["alarms"]] == list(kinds), SETTLED_S
    )


def test_a_pulled_cable_and_a_switch_that_dies_are_one_line_each_and_one_more_when_they_are_back(
    start_fabric: Callable[..., EmulatedFabric], diamond: Graph, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\ndefault: allow\nmonitor: {interval_s: 1}\n")
    controller = ControllerProcess(CONTROLLER_PORT, policy=policy, apps=APPS)
    fabric = start_fabric(diamond, controller=controller)
    controller.wait_discovered(fabric)

    def told(kind: str, pull: Callable[..., Any], put_back: Callable[..., Any], *nodes: str) -> list[tuple[str, str]]:
        wait_alarms(controller)
        before = events(controller)
        pull(*nodes)
        wait_alarms(controller, kind)
        controller.wait_until(
            "alarms", lambda answer: time.time() > answer["alarms"][0]["since_s"] + LASTING_S, SETTLED_S
        )
        put_back(*nodes)
        wait_alarms(controller)
        controller.wait_discovered(fabric)
        return sorted(what for id_, what in events(controller).items() if id_ not in before)

    for kind, pull, put_back, nodes in (
        ("link-failed", fabric.link_down, fabric.link_up, ("s1", "s3")),
        ("switch-down", fabric.switch_down, fabric.switch_up, ("s4",)),
    ):
        assert told(kind, pull, put_back, *nodes) == [(kind, "cleared"), (kind, "raised")]
