"""Entries that somebody deletes or alters by hand come back within the interval of the check, and the event tells.

A whole table that is gone shows in the next round of LLDP and is back then.

OpenFlow 1.0 gives an altered entry another cookie: there it counts as missing.
"""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from apps.status_client import query
from controller.discovery.liveness import LONGEST_WAIT_S
from controller.discovery.settings import DiscoverySettings
from controller.rules.check import SUSPICION_PAUSE_S
from controller.rules.pipeline import FORWARD, PRIORITY_LLDP
from controller.snapshot.events import EVENTS_BOUND
from tests.emulation.conftest import POLICY
from topology.graph import Graph

pytestmark = pytest.mark.emulation
FRAMEWORK = "os-ken"

INTERVAL_S = 2.0
LONG_INTERVAL_S = 6.0
LOAD_S = 2.0
"""What a busy machine may add, beside the time for which the controller and the switches have no processor."""

LLDP_ENTRY = f"priority={PRIORITY_LLDP},"
MISSED_S = DiscoverySettings().lldp_interval_s * DiscoverySettings().missed_count
"""A link would be lost in this time if its frames were not heard."""

ROUND_S = DiscoverySettings().lldp_interval_s + LONGEST_WAIT_S
"""A round of LLDP and the wait for its answer, after which a switch is looked at."""

APPS = ("discovery", "multicast", "unicast")


@pytest.fixture(scope="module", params=["OpenFlow13", "OpenFlow10"])
def bench(request: pytest.FixtureRequest, diamond: Graph) -> tuple[Graph, dict[str, Any]]:
    return diamond, {"protocols": request.param, "patch_links": True}


def counted(live: Any, kind: str) -> int:
    return int(live.controller.show("status")["counters"].get(f"entries-{kind}", 0))


def wait_repaired(live: Any, kind: str, before: int, timeout_s: float = 5 * INTERVAL_S) -> None:
    live.controller.wait_until(
        "status", lambda status: status["counters"].get(f"entries-{kind}", 0) > before, timeout_s=timeout_s
    )
    live.wait_ready()


def assert_stream_goes_on(live: Any, phase: int, group: str) -> None:
    live.send(phase, 0.3)
    live.assert_all_received(phase, f"h3 {group}")


def checked(live: Any, interval_s: float) -> None:
    """Have all apps check, and wait until they do."""
    live.set_policy(POLICY + f"check: {{interval_s: {interval_s}}}\n")
    before = checks(live)
    live.controller.wait_until("status", lambda status: status["counters"].get("checks", 0) >= before + 4)


def checks(live: Any) -> int:
    return int(live.controller.show("status")["counters"].get("checks", 0))


def entries(live: Any, switch: str) -> set[str]:
    """Everything in a switch's tables, without what is counted."""
    lines = live.fabric.ofctl("dump-flows", switch, "--no-stats").splitlines()
    return {re.sub(r"(hard|idle)_age=\d+, ", "", line).strip() for line in lines if "actions=" in line}


def told(live: Any, dpid: int) -> dict[str, float]:
    """When (seconds) each app last told that it put missing entries of a switch right."""
    answer = query(live.controller.socket, {"changes": {"events": 0}, "limit": EVENTS_BOUND})
    found = [event for part in answer["sections"]["events"].values() for event in part["put"].values()]
    found.sort(key=lambda event: event["time_s"])
    return {
        event["source"]: event["time_s"]
        for event in found
        if (event["kind"], event["dpid"]) == ("entries-repaired", dpid) and re.search(r"\b\d+ missing", event["text"])
    }


def wait_entries(live: Any, switch: str, wanted: set[str], timeout_s: float) -> None:
    deadline, held_up = time.monotonic() + timeout_s, live.held_up()
    while entries(live, switch) != wanted:
        assert time.monotonic() < deadline + held_up.seconds(), "\n".join(
            [*(wanted ^ entries(live, switch)), live.controller.log()[-4000:]]
        )
        time.sleep(0.05)
    live.fabric.wait_flows()


def test_a_switch_that_lost_its_whole_table_has_it_back_within_an_interval(live: Any, group: str) -> None:
    live.join(group, "h3")
    live.stream(1, "h1", group)
    live.fabric.run_on("h1", "ping", "-c", "1", "-W", "2", live.fabric.address("h3"))
    checked(live, LONG_INTERVAL_S)
    live.wait_ready()
    whole, dpid = entries(live, "s2"), live.fabric.dpid("s2")
    held_up = live.held_up()
    live.fabric.ofctl("del-flows", "s2")
    wait_entries(live, "s2", whole, LONG_INTERVAL_S + LOAD_S)
    at = told(live, dpid)
    assert sorted(at) == sorted(APPS)
    assert max(at.values()) - min(at.values()) < LOAD_S + held_up.seconds()
    assert_stream_goes_on(live, 1, group)
    live.halt()


def test_a_switch_that_lost_its_whole_table_has_it_back_long_before_its_turn(live: Any, group: str) -> None:
    live.join(group, "h3")
    live.stream(1, "h1", group)
    live.fabric.run_on("h1", "ping", "-c", "1", "-W", "2", live.fabric.address("h3"))
    checked(live, INTERVAL_S)
    live.set_policy(POLICY + f"check: {{interval_s: {60 * INTERVAL_S}}}\n")
    time.sleep(SUSPICION_PAUSE_S)
    live.wait_ready()
    links = live.controller.show("status")["links"]
    whole, dpid = entries(live, "s1"), live.fabric.dpid("s1")
    before = told(live, dpid)
    live.fabric.ofctl("del-flows", "s1")
    begun_s = time.monotonic()
    wait_entries(live, "s1", whole, ROUND_S + LOAD_S)
    assert_stream_goes_on(live, 1, group)
    assert {app for app, at in told(live, dpid).items() if at != before.get(app)} == set(APPS)
    while time.monotonic() < begun_s + MISSED_S:
        assert live.controller.show("status")["links"] == links
        time.sleep(0.05)
    live.halt()


def test_links_outlive_the_loss_of_the_entry_that_finds_them(live: Any) -> None:
    checked(live, INTERVAL_S)
    whole, dpid = entries(live, "s3"), live.fabric.dpid("s3")
    (punt,) = (entry for entry in whole if LLDP_ENTRY in entry)
    match = re.sub(r"cookie=\S+, | actions=.*", "", punt)
    live.fabric.ofctl("del-flows", "s3", "--strict", match)
    assert entries(live, "s3") == whole - {punt}
    wait_entries(live, "s3", whole, INTERVAL_S + LOAD_S)
    assert sorted(told(live, dpid)) == ["discovery"]
    links, begun_s, held_up = live.fabric.switch_link_count(), time.monotonic(), live.held_up()
    while heard(live, "s3") < 4 or time.monotonic() < begun_s + MISSED_S:
        assert time.monotonic() < begun_s + MISSED_S + LOAD_S + held_up.seconds()
        assert live.controller.show("status")["links"] == links
        time.sleep(0.05)


def heard(live: Any, switch: str) -> int:
    """How many frames the entry for LLDP has met."""
    (entry,) = (line for line in live.fabric.ofctl("dump-flows", switch).splitlines() if LLDP_ENTRY in line)
    return int(re.findall(r"n_packets=(\d+)", entry)[0])


def test_entries_of_a_group_come_back(live: Any, group: str) -> None:
    live.join(group, "h3")
    live.stream(1, "h1", group)
    checked(live, INTERVAL_S)
    ofctl = live.fabric.ofctl

    before = counted(live, "missing")
    ofctl("del-flows", "s1", f"ip,nw_dst={group}")
    wait_repaired(live, "missing", before)
    assert_stream_goes_on(live, 1, group)

    new = live.fabric.protocols == "OpenFlow13"
    kind = "altered" if new else "missing"  # OpenFlow 1.0 changes the cookie too
    before = counted(live, kind)
    ofctl("mod-flows", "s2", f"table={FORWARD if new else 0},ip,nw_dst={group},actions=drop")
    wait_repaired(live, kind, before)
    assert_stream_goes_on(live, 2, group)
    live.halt()
    live.join(f"{group[:-1]}2", "h4")
