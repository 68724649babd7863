"""What operators follow of the monitor is what its core knows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from controller.effects import Notice
from controller.events import Port, PortChanged, SwitchDisconnected
from controller.performance import poller_sections
from controller.performance.effects import EventsRaised, SamplesRated
from controller.performance.events import EventState, PortEvent, PortSeverity
from controller.performance.poller import SwitchTurned
from controller.performance.poller_sections import MonitorSections
from controller.snapshot.names import Names
from tests.unit.performance.test_poller_core import EPOCH_S, Fabric
from topology.events import PortRole, PortRoleChanged


class Followed(Fabric):
    """The fabric of the core's tests, with what its shell tells the sections."""

    def __init__(self) -> None:
        self.sections: MonitorSections | None = None
        super().__init__()
        self.sections = MonitorSections(self.core, lambda: {1: (12.5, 30.0)}, self.now, Names())
        self.versions: dict[str, int] = {}
        self.known: dict[str, dict[str, Any]] = {}

    def feed(self, event: Any) -> None:
        first = len(self.effects)
        super().feed(event)
        if self.sections is None:
            return
        for effect in self.effects[first:]:
            if isinstance(effect, SamplesRated):
                self.sections.rated(effect.rates)
            elif isinstance(effect, EventsRaised):
                self.sections.raised(effect)
            elif isinstance(effect, SwitchTurned):
                self.sections.turned(effect.dpid, effect.up, EPOCH_S + self.now)
        self.sections.happened(event)

    def read(self, section: str) -> dict[str, Any]:
        """Return what changed since the last reading."""
        assert self.sections is not None
        self.sections.refresh(self.now)
        found = self.sections.by_name()[section].changes(self.versions.get(section, 0), 1000)
        delta = json.loads(json.dumps(found, allow_nan=False))
        known = {} if delta["whole"] else self.known.get(section, {})
        gone = delta["remove"]
        self.known[section] = {i: doc for i, doc in (known | delta["put"]).items() if i not in gone}
        self.versions[section] = delta["version"]
        return delta["put"]


@pytest.fixture
def followed() -> Followed:
    fabric = Followed()
    fabric.tx_bps = {(1, 1): 4e8, (3, 2): 3e8}
    fabric.read("ports")
    fabric.run(35.0)
    return fabric


def test_ports_tell_their_rates(followed: Followed):
    assert set(followed.read("ports")) == {f"{dpid}:{port}" for dpid in (1, 2, 3) for port in (1, 2, 3)}
    port = followed.known["ports"]["1:1"]
    assert port["tx_bps"] == pytest.approx(4e8, rel=0.001)
    assert port["tx_utilisation_pct"] == pytest.approx(40, rel=0.001)
    assert port["rx_bps"] == 0
    assert port["name"] == "p1"
    assert port["sampled_s"] == pytest.approx(EPOCH_S + followed.now, abs=10)


def test_only_ports_whose_rates_changed_are_told_again(followed: Followed, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(poller_sections, "TOLD_AGAIN_S", 1000.0)
    followed.read("ports")
    followed.tx_bps[2, 2] = 1e8
    followed.run(40.0)
    assert set(followed.read("ports")) == {"2:2"}
    monkeypatch.undo()
    followed.run(40.0)
    assert len(followed.read("ports")) == 9


def test_ports_that_go_are_removed(followed: Followed):
    followed.read("ports")
    followed.feed(PortChanged(2, Fabric.port(2), True))
    assert followed.read("ports") == {}
    assert "2:2" not in followed.known["ports"]
    followed.feed(PortChanged(2, Fabric.port(2), False))
    assert set(followed.read("ports")) == {"2:2"}


def test_switches_tell_how_they_fare(followed: Followed):
    assert followed.read("switches")["1"] == {
        "dpid": 1,
        "name": None,
        "ofp_version": 4,
        "connected": True,
        "up": True,
        "answered_s": pytest.approx(EPOCH_S + followed.now, abs=10),
        "cpu_pct": 12.5,
        "memory_pct": 30.0,
    }
    followed.silent.add(3)
    followed.run(20.0)
    assert followed.read("switches")["3"]["up"] is False
    (event,) = [event for event in followed.read("events").values() if event["kind"] == "switch-silent"]
    assert (event["dpid"], event["state"], event["severity"]) == (3, "raised", "critical")
    followed.silent.discard(3)
    followed.run(20.0)
    (event,) = [event for event in followed.read("events").values() if event["kind"] == "switch-silent"]
    assert (event["dpid"], event["state"], event["severity"]) == (3, "cleared", "info")
    followed.feed(SwitchDisconnected(2))
    followed.run(30.0)
    assert followed.read("switches")["3"]["up"] is True


def test_events_and_notices_are_told(followed: Followed):
    followed.tx_bps[1, 1] = 9.9e8
    followed.run(60.0)
    events = followed.read("events").values()
    (event,) = [event for event in events if event["kind"] == "tx-utilisation"]
    assert (event["dpid"], event["port_no"], event["state"], event["source"]) == (1, 1, "raised", "monitor")
    assert event["time_s"] == pytest.approx(EPOCH_S + followed.now, abs=60)
    assert followed.sections is not None
    followed.sections.noticed(Notice("stats-unsupported", "text", (("dpid", 2),)), EPOCH_S)
    assert [event["dpid"] for event in followed.read("events").values()] == [2]


def test_events_speak_of_ports_by_their_names(followed: Followed):
    event = PortEvent(EPOCH_S, 9, 1, "link_down", PortSeverity.CRITICAL, 0.0, 0.0, EventState.CLEARED, lasted_s=12.0)
    assert followed.sections is not None
    followed.sections.raised(EventsRaised((event,)))
    (told,) = followed.read("events").values()
    assert told["text"] == "The link of port 0000000000000009:1 is up again after 12 s."


def port_event(number: int, up: bool) -> PortChanged:
    return PortChanged(1, Port(number, f"p{number}", bytes(6), up, 1e9), False)


@pytest.mark.parametrize("alarms_tell", [True, False])
def test_of_links_between_switches_the_alarms_tell_where_there_are_any(alarms_tell: bool):
    followed = Followed()
    followed.sections = MonitorSections(
        followed.core, lambda: {}, followed.now, followed.sections.names, lambda: alarms_tell
    )
    followed.feed(PortRoleChanged(1, 1, PortRole.TRUNK))
    followed.feed(PortRoleChanged(1, 2, PortRole.EDGE))
    followed.feed(PortRoleChanged(1, 3, PortRole.UNKNOWN))
    for number in (1, 2, 3):
        followed.feed(port_event(number, False))
        followed.feed(PortRoleChanged(1, number, PortRole.DOWN))
    for number in (1, 2, 3):
        followed.feed(port_event(number, True))
    told = [(event["kind"], event["port_no"], event["state"]) for event in followed.read("events").values()]
    links = [("link-down", number, state) for state in ("raised", "cleared") for number in (1, 2, 3)]
    assert told == [each for each in links if each[1] == 2 or not alarms_tell]


@pytest.mark.parametrize("alarms_tell", [True, False])
def test_of_a_switch_that_is_gone_the_alarms_tell_and_of_a_silent_one_the_monitor(alarms_tell: bool):
    followed = Followed()
    followed.sections = MonitorSections(
        followed.core, lambda: {}, followed.now, followed.sections.names, lambda: alarms_tell
    )
    followed.feed(SwitchDisconnected(2))
    followed.silent.add(3)
    followed.run(20.0)
    followed.sections.noticed(Notice("switch-silent", "Switch 3 does not answer polls.", (("dpid", 3),)), EPOCH_S)
    silent = [event["dpid"] for event in followed.read("events").values() if event["kind"] == "switch-silent"]
    assert silent == ([3] if alarms_tell else [2, 3])
