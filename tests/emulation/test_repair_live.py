"""Links, switches, connections and the controller itself fail and come back under traffic."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import pytest

from apps.status_client import query
from topology.graph import Graph

pytestmark = pytest.mark.emulation

RATE_BPS, PACKETS_PER_S = 10e6, 1000
ALLOW_ALL = "version: 1\ndefault: allow\n"
WITHOUT_H3 = """\
version: 1
rules: [{name: away, groups: [239.0.0.0/8], role: receiver, hosts: [10.0.0.3], action: deny}]
default: allow
"""


@pytest.fixture(scope="module")
def bench(diamond: Graph) -> tuple[Graph, dict[str, Any]]:
    return diamond, {}


def start_stream(live: Any, group: str, *receivers: str) -> str:
    """Have h1 send to receivers; return the switch in the middle of their tree."""
    live.join(group, *receivers)
    live.stream(1, "h1", group, RATE_BPS, pattern="constant")
    (middle,) = {end for link in live.tree(group) for end in link} - {"s1", "s2"}
    return str(middle)


def hosts_of(live: Any) -> list[dict[str, Any]]:
    answer = query(live.controller.socket, {"changes": {"hosts": 0}})
    return list(answer["sections"]["hosts"]["multicast"]["put"].values())


def test_stream_survives_a_pulled_cable(live: Any, group: str) -> None:
    start_stream(live, group, "h3")
    link = live.tree(group)[0]
    live.fabric.send(1)
    held_up = live.held_up()
    live.fabric.link_down(*link)
    live.wait_ready(links=3)
    live.halt()
    assert link not in live.tree(group)
    sent, received, duplicates = live.counts(1, f"h3 {group}")
    assert duplicates == 0
    # A second's worth; the median is in docs/benchmarks.md.
    assert sent - received < (1 + held_up.seconds()) * PACKETS_PER_S
    live.send(2, 0.5)
    live.assert_all_received(2, f"h3 {group}")
    live.fabric.link_up(*link)
    live.wait_ready(links=4)
    live.send(3, 0.5)
    live.assert_all_received(3, f"h3 {group}")


@pytest.mark.parametrize("failure", ["switch", "link", "direction"])
def test_what_fails_in_silence_costs_less_than_three_seconds(live: Any, group: str, failure: str) -> None:
    """Every port keeps its carrier; a switch that dies takes its connection along."""
    middle = start_stream(live, group, "h3")
    live.fabric.send(1)
    held_up = live.held_up()
    if failure == "switch":
        live.fabric.kill_switch(middle)
    else:
        live.fabric.deafen("s2", middle)
    if failure == "link":
        live.fabric.deafen(middle, "s2")
    live.controller.wait_until("status", lambda status: status["links"] < 4)
    live.wait_ready()
    live.fabric.wait_flows()
    live.halt()
    assert middle not in {end for link in live.tree(group) for end in link}
    sent, received, duplicates = live.counts(1, f"h3 {group}")
    print(failure, sent - received, "lost of", sent)
    assert duplicates == 0
    assert 0 < sent - received < (3 + held_up.seconds()) * PACKETS_PER_S
    live.send(2, 0.5)
    live.assert_all_received(2, f"h3 {group}")


def test_a_switch_is_drained_and_taken_up_again_without_loss(live: Any, group: str) -> None:
    middle = start_stream(live, group, "h3")
    dpid, seen = live.fabric.dpid(middle), query(live.controller.socket, {"changes": {"switches": 0}})
    live.fabric.send(1)
    answer = query(live.controller.socket, {"do": "switch-drain", "dpid": dpid})
    assert (answer["drained"], answer["transit"]) == (True, [])
    live.wait_ready()
    assert {end for link in live.tree(group) for end in link} == {"s1", "s2", "s3", "s4"} - {middle}
    versions = {name: delta["version"] for name, delta in seen["sections"]["switches"].items()}
    told = query(live.controller.socket, {"changes": {"switches": versions}, "epoch": seen["epoch"]})
    assert told["sections"]["switches"]["multicast"]["put"][str(dpid)]["drained"]
    assert query(live.controller.socket, {"do": "switch-undrain", "dpid": dpid})["drained"] is False
    live.wait_ready()
    live.halt()
    live.assert_all_received(1, f"h3 {group}")


def test_what_an_operator_sets_is_served_logged_and_outlasts_the_controller(live: Any, group: str) -> None:
    live.stream(1, "h1", group)
    (host,) = (h for h in hosts_of(live) if h["mac"] == live.mac("h4"))
    place = {"group": group, "dpid": host["dpid"], "port_no": host["port_no"]}
    assert query(live.controller.socket, {"do": "static-member-add", **place, "by": "me"})["served"]
    assert query(live.controller.socket, {"do": "switch-drain", "dpid": 99})["field"] == "dpid"
    live.wait_ready()
    live.halt()
    live.controller.stop()
    live.controller.start()
    live.controller.wait_discovered(live.fabric)
    live.wait_ready()
    live.fabric.tap("h4")
    live.send(1, 0.5)
    sent = live.fabric.sent()["1"]["phases"]["1"]["sent"]
    assert live.fabric.settled()["tap h4"]["groups"] == {group: sent}
    query(live.controller.socket, {"do": "static-member-remove", **place})
    log = live.controller.directory / "state" / "actions.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    found = [
        (line["action"], line["verdict"], line["by"]) for line in lines if line["asked"] in (place, {"dpid": 99})
    ]
    assert found == [
        ("static-member-add", "done", "me"),
        ("switch-drain", "refused", None),
        ("static-member-remove", "done", None),
    ]


def test_members_cut_off_come_back(live: Any, group: str) -> None:
    start_stream(live, group, "h3")
    live.halt()
    for middle in ("s3", "s4"):
        live.fabric.link_down("s2", middle)
    live.wait_ready(links=2)
    live.send(1, 0.3)
    assert live.counts(1, f"h3 {group}")[1] == 0
    live.fabric.link_up("s2", "s4")
    live.wait_ready(links=3)
    live.wait_members(group, {"h3"})
    live.send(2, 0.5)
    live.assert_all_received(2, f"h3 {group}")


def test_a_switch_on_the_way_fails_and_comes_back_empty(live: Any, group: str) -> None:
    middle = start_stream(live, group, "h3")
    live.fabric.switch_down(middle)
    live.wait_ready(switches=3)
    live.send(1, 0.5)
    live.assert_all_received(1, f"h3 {group}")
    live.fabric.switch_up(middle)
    live.controller.wait_discovered(live.fabric)
    live.wait_ready()
    live.send(2, 0.5)
    live.assert_all_received(2, f"h3 {group}")


def test_the_switch_of_members_fails_and_comes_back(live: Any, group: str) -> None:
    start_stream(live, group, "h2", "h3", "h4")
    live.fabric.switch_down("s2")
    live.wait_ready(switches=3)
    live.send(1, 0.3)
    live.assert_all_received(1, f"h2 {group}")
    live.fabric.switch_up("s2")
    live.controller.wait_discovered(live.fabric)
    live.wait_members(group, {"h2", "h3", "h4"})
    live.send(2, 0.5)
    live.assert_all_received(2, f"h2 {group}", f"h3 {group}", f"h4 {group}")


def test_a_switch_vanishes_amid_a_hundred_joins(live: Any, group: str) -> None:
    middle = start_stream(live, group, "h2", "h3")
    live.fabric.send(1)
    stem = group.rpartition(".")[0]
    more = [f"{stem}.{number}" for number in range(2, 52)]
    for number, other in enumerate(more):
        if number == len(more) // 2:
            held_up = live.held_up()
            live.fabric.switch_down(middle)
        for host in ("h3", "h4"):
            live.fabric.join(host, other)
    live.fabric.switch_up(middle)
    live.controller.wait_discovered(live.fabric)
    live.controller.wait_until(
        "groups",
        lambda groups: sum(len(found["members"]) for found in groups if found["group"] in more) == 2 * len(more),
    )
    live.wait_ready()
    live.halt()
    live.assert_all_received(1, f"h2 {group}")
    sent, received, duplicates = live.counts(1, f"h3 {group}")
    assert duplicates == 0
    assert sent - received < (1 + held_up.seconds()) * PACKETS_PER_S
    live.stream(2, "h1", more[-1])
    live.send(2, 0.3, 2)
    live.assert_all_received(2, f"h3 {more[-1]}", f"h4 {more[-1]}", stream=2)


def test_connections_that_blink_interrupt_nothing(live: Any, group: str) -> None:
    middle = start_stream(live, group, "h3", "h4")
    tree = live.tree(group)
    live.fabric.send(1)
    for switch in (middle, "s2"):
        live.fabric.control_down(switch)
    live.controller.wait_until("status", lambda status: not status["ready"])
    live.fabric.join("h2", group)
    live.controller.wait_until(
        "groups", lambda groups: any(d["group"] == group and len(d["members"]) == 3 for d in groups)
    )
    status = live.controller.show("status")
    assert (status["switches"], status["links"], status["hosts"]) == (4, 4, 4)
    for switch in (middle, "s2"):
        live.fabric.control_up(switch)
    live.wait_members(group, {"h2", "h3", "h4"})
    live.halt()
    live.assert_all_received(1, f"h3 {group}", f"h4 {group}")
    assert live.tree(group) == tree


def test_a_switch_that_lost_its_entries_without_a_connection_is_filled(live: Any, group: str) -> None:
    middle = start_stream(live, group, "h3")
    live.fabric.control_down(middle)
    live.controller.wait_until("status", lambda status: not status["ready"])
    live.fabric.ofctl("del-flows", middle)
    live.fabric.wait_flows()
    live.send(1, 0.3)
    assert live.counts(1, f"h3 {group}")[1] == 0
    live.fabric.control_up(middle)
    live.wait_ready()
    live.send(2, 0.5)
    live.assert_all_received(2, f"h3 {group}")


def test_a_lost_switch_whose_cables_die_is_gone_at_once(live: Any, group: str) -> None:
    middle = start_stream(live, group, "h3")
    live.fabric.control_down(middle)
    live.controller.wait_until("status", lambda status: not status["ready"])
    live.fabric.link_down("s1", middle)
    live.fabric.link_down("s2", middle)
    live.wait_ready(switches=3)
    live.send(1, 0.5)
    live.assert_all_received(1, f"h3 {group}")


@pytest.mark.parametrize("end", [pytest.param("stop", marks=pytest.mark.each_framework), "kill"])
def test_restart_of_the_controller_interrupts_nothing(live: Any, group: str, end: str) -> None:
    start_stream(live, group, "h3")
    before = live.document(group)
    live.fabric.send(1)
    getattr(live.controller, end)()
    live.controller.start()
    live.controller.wait_discovered(live.fabric)
    live.wait_members(group, {"h3"})
    live.halt()
    live.assert_all_received(1, f"h3 {group}")
    after = live.document(group)
    for old, new in zip(before["members"], after["members"], strict=True):
        assert old.pop("since_s") <= new.pop("since_s"), "when the log told of it last"
    assert (after["members"], after["links"]) == (before["members"], before["links"])
    live.fabric.join("h4", group)
    live.wait_members(group, {"h3", "h4"})
    live.send(2, 0.5)
    live.assert_all_received(2, f"h3 {group}", f"h4 {group}")


def test_policy_edit_takes_members_off_and_on(live: Any, group: str) -> None:
    start_stream(live, group, "h3")
    live.policy.write_text(WITHOUT_H3.partition("action")[0])
    live.controller.wait_log("the running policy stays")
    live.wait_members(group, {"h3"})
    live.set_policy(WITHOUT_H3)
    live.wait_members(group, set(), {"h3"})
    live.fabric.tap("h3")
    live.send(1, 0.3)
    assert live.fabric.settled()["tap h3"]["groups"] == {}
    live.set_policy(ALLOW_ALL)
    live.wait_members(group, {"h3"})
    live.send(2, 0.5)
    live.assert_all_received(2, f"h3 {group}")


@pytest.mark.each_framework
def test_sighup_reads_a_policy_whose_change_does_not_show(live: Any, group: str) -> None:
    live.set_policy(ALLOW_ALL)
    live.join(group, "h3")
    stamp = live.policy.stat().st_mtime_ns
    with live.policy.open("r+") as file:
        file.write(ALLOW_ALL.replace("allow\n", "deny \n"))
    os.utime(live.policy, ns=(stamp, stamp))
    live.change_policy(lambda: os.kill(live.controller.pid, signal.SIGHUP))
    live.wait_members(group, set(), {"h3"})


def test_a_host_that_moves_is_served_where_it_is(live: Any, group: str) -> None:
    start_stream(live, group, "h2", "h4")
    live.fabric.move_host("h4", "s1")
    dpid, mac = live.fabric.dpid("s1"), live.mac("h4")

    def moved(groups: list[dict[str, Any]]) -> bool:
        members = [m for document in groups if document["group"] == group for m in document["members"]]
        return [member["dpid"] for member in members if member["mac"] == mac] == [dpid]

    live.controller.wait_until("groups", moved)
    live.wait_ready()
    live.send(1, 0.5)
    live.assert_all_received(1, f"h2 {group}", f"h4 {group}")
    assert live.tree(group) == []
    live.fabric.run_on("h3", "ping", "-n", "-c", "3", "-i", "0.2", "-W", "2", live.fabric.address("h4"))
