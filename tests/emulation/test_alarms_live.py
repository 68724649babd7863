"""Alarms over real switches: a pulled cable, a deleted switch, a restart while they are away, all put back."""

from __future__ import annotations

from typing import Any

import pytest

from apps.status_client import query
from topology.graph import Graph

pytestmark = [pytest.mark.emulation, pytest.mark.unhurried]

SETTLED_S = 60.0


@pytest.fixture(scope="module")
def bench(diamond: Graph) -> tuple[Graph, dict[str, Any]]:
    return diamond, {}


def wait_alarms(live: Any, *kinds: str) -> dict[str, Any]:
    """Wait until alarms of exactly these kinds are open."""
    wanted = sorted(kinds)

    def reached(answer: dict[str, Any]) -> bool:
        return sorted(alarm["kind"] for alarm in answer["alarms"]) == wanted

    found: dict[str, Any] = live.controller.wait_until("alarms", reached, SETTLED_S)
    return found


def shown_links(live: Any) -> list[str]:
    sections = query(live.controller.socket, {"changes": {"links": 0}})["sections"]["links"]
    return sorted(document["state"] for document in sections["alarms"]["put"].values())


def wait_links(live: Any, *states: str) -> None:
    """Wait until links are shown in these states."""
    live.controller.wait_until("alarms", lambda _answer: shown_links(live) == sorted(states), SETTLED_S)


def test_a_pulled_cable_is_one_alarm_that_a_restart_keeps_and_the_cable_clears(live: Any) -> None:
    assert wait_alarms(live)["status"]["fabric"] == "4 of 4 switches, 4 of 4 links"
    live.fabric.link_down("s1", "s3")
    answer = wait_alarms(live, "link-failed")
    (alarm,) = answer["alarms"]
    assert {alarm["dpid_a"], alarm["dpid_b"]} == {live.fabric.dpid("s1"), live.fabric.dpid("s3")}
    assert [each["kind"] for each in alarm["consequences"]][:2] == ["port-down", "port-down"]
    assert (answer["status"]["degraded"], answer["status"]["fabric"]) == (True, "4 of 4 switches, 3 of 4 links")
    wait_links(live, "failed", "up", "up", "up")
    query(live.controller.socket, {"do": "alarm-acknowledge", "key": alarm["key"], "by": "ann"})
    live.controller.stop()
    live.controller.start()
    (kept,) = wait_alarms(live, "link-failed")["alarms"]
    assert (kept["key"], kept["acknowledged_by"], kept["since_s"]) == (
        alarm["key"],
        "ann",
        pytest.approx(alarm["since_s"], abs=0.1),
    )
    wait_links(live, "failed", "up", "up", "up")
    live.fabric.link_up("s1", "s3")
    assert not wait_alarms(live)["status"]["degraded"]
    wait_links(live, "up", "up", "up", "up")


def test_a_deleted_switch_is_one_alarm_also_for_a_controller_that_starts_without_it(live: Any) -> None:
    wait_alarms(live)
    live.fabric.switch_down("s4")
    fabric = "3 of 4 switches, 2 of 4 links"
    live.controller.wait_until("alarms", lambda answer: answer["status"]["fabric"] == fabric, SETTLED_S)
    answer = wait_alarms(live, "switch-down")
    (alarm,) = answer["alarms"]
    assert alarm["severity"] == "critical"
    assert alarm["key"] == f"switch-down:{live.fabric.dpid('s4')}"
    assert [each["kind"] for each in alarm["consequences"]][:2] == ["link-failed", "link-failed"]
    assert answer["status"]["degraded_because"] == alarm["text"]
    live.controller.stop()
    live.controller.start()
    wait_links(live, "failed", "failed", "up", "up")
    (kept,) = wait_alarms(live, "switch-down")["alarms"]
    assert (kept["key"], kept["severity"]) == (alarm["key"], "critical")
    sections = query(live.controller.socket, {"changes": {"switches": 0}})["sections"]["switches"]
    assert [document["connected"] for document in sections["alarms"]["put"].values()] == [False]
    live.fabric.restore()
    wait_links(live, "up", "up", "up", "up")
    assert wait_alarms(live)["status"]["fabric"] == "4 of 4 switches, 4 of 4 links"
