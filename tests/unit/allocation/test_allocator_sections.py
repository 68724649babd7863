"""What operators follow of the live allocator."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from controller.allocation.events import PortsRated
from controller.allocation.live import AllocatorCore
from controller.allocation.live_sections import ALLOCATIONS_BOUND, AllocatorSections
from controller.allocation.live_view import AllocatorConsole
from controller.config.settings import Allocation, PortParameters
from controller.events import Port, SwitchConnected, SwitchDisconnected

START_S = 1_700_000_000


def rate(core: AllocatorCore, second: int, *busy: float) -> None:
    core.handle(PortsRated(((7, 1), (7, 2)), np.full(2, START_S + second), np.array(busy), {}), 0)


@pytest.fixture
def core() -> AllocatorCore:
    """Switch 7: port 1 is at 40 %, 2 at 10 %, 3 not measured."""
    core = AllocatorCore(Allocation(openflow=PortParameters(days_to_average_utilization=10001)))
    ports = tuple(Port(number, f"eth{number}", bytes(6), True, 1e9) for number in (1, 2, 3))
    core.handle(SwitchConnected(7, 4, ports), 0)
    for second in range(0, 81, 10):
        rate(core, second, 40.0, 10.0)
    return core


def read(sections: AllocatorSections, name: str, version: int, second: int) -> dict[str, Any]:
    sections.refresh((START_S + second) * 1000)
    return json.loads(json.dumps(sections.by_name()[name].changes(version, 1000), allow_nan=False))


def test_ports_tell_their_metric(core: AllocatorCore):
    sections = AllocatorSections(core)
    delta = read(sections, "ports", 0, 80)
    assert delta["put"]["7:1"] == {
        "port_metric": pytest.approx(40.0), "usage": pytest.approx(40.0), "disqualified": False
    }  # fmt: skip
    assert delta["put"]["7:3"] == {"port_metric": None, "usage": None, "disqualified": False}
    for second in range(90, 171, 10):
        rate(core, second, 80.0, 10.0)
    again = read(sections, "ports", delta["version"], 170)
    assert set(again["put"]) == {"7:1"}
    core.handle(SwitchConnected(8, 4, (Port(1, "eth1", bytes(6), True, 1e9),)), 0)
    assert "8:1" in read(sections, "ports", again["version"], 180)["put"]
    core.handle(SwitchDisconnected(8), 0)


def test_allocations_are_kept_with_their_reasons(core: AllocatorCore):
    sections = AllocatorSections(core)
    console = AllocatorConsole(core, lambda: (START_S + 80) * 1000, dict)
    for asked in ({"count": 1, "size_pct": 5}, {"count": 9}):
        sections.decided(asked, console.allocate(asked), START_S + 80.0)
    found = read(sections, "allocations", 0, 80)["put"]
    first, second = found["1"], found["2"]
    assert first["ports"] == ["7:2"]
    assert first["request"] == {"count": 1, "size_pct": 5}
    (step,) = first["steps"]
    assert step["chosen"] == "7:2"
    assert step["reason"]
    assert first["error"] is None
    assert second["error"]["available"] == 3
    assert second["ports"] == []


def test_allocations_are_bounded(core: AllocatorCore):
    sections = AllocatorSections(core)
    version = read(sections, "allocations", 0, 0)["version"]
    for number in range(ALLOCATIONS_BOUND + 50):
        sections.decided({"n": number}, {"ports": []}, float(number))
    delta = read(sections, "allocations", version, 0)
    assert len(delta["put"]) == ALLOCATIONS_BOUND
    assert len(delta["remove"]) == 50
