"""The API over a real connection, before a controller's real socket."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import pytest

from apps.dashboard.lists import GRAVITIES
from apps.dashboard.reads import Gravity, Metric
from controller.maintenance.model import USUAL
from controller.performance.port_history import METRICS

CONTENT = {"content-type": "application/problem+json"}

ORDER_QUERY = "switches=2,1&disruptive=true&window=79200,21600&expected_s=90&hook_limit_s=30&restarts=true"
ORDER = {
    "switches": [2, 1],
    "disruptive": True,
    "window": [79200, 21600],
    "expected_s": 90.0,
    "hook_limit_s": 30.0,
    "restarts": True,
}


def test_what_several_apps_tell_of_one_thing_is_one_document(dashboard: Any) -> None:
    assert dashboard.get("/switches/2") == {
        "id": "2",
        "dpid": 2,
        "dpid_hex": "0000000000000002",
        "ofp_version": "1.3",
        "tier": "tor",
        "labels": {"pod": "2"},
        "connected": True,
        "drained": False,
        "up": True,
        "cpu_pct": None,
    }
    port = dashboard.get("/ports/1/3")
    assert (port["role"], port["name"], port["rx_bps"]) == ("edge", "s1-eth3", 300.0)


def test_lists_are_in_the_order_of_their_ids_and_cut_to_a_page(dashboard: Any) -> None:
    whole = dashboard.get("/ports")
    assert whole["total"] == len(whole["items"]) == 24
    assert [port["id"] for port in whole["items"]][8:12] == ["1:9", "1:10", "1:11", "1:12"]
    page = dashboard.get("/ports", params={"limit": 5, "offset": 22})
    assert [port["id"] for port in page["items"]] == ["2:11", "2:12"]
    assert page["total"] == 24
    assert dashboard.get("/ports", params={"limit": 0}) == {"items": [], "total": 24}


def test_lists_are_sorted_by_any_field(dashboard: Any) -> None:
    down = dashboard.get("/ports", params={"sort": "-rx_bps", "limit": 3})["items"]
    assert [port["rx_bps"] for port in down] == [1200.0, 1200.0, 1100.0]
    up = dashboard.get("/ports", params={"sort": "name", "limit": 2})["items"]
    assert [port["name"] for port in up] == ["s1-eth1", "s1-eth10"]


def test_a_list_is_searched_in_values_and_not_in_names_of_fields(dashboard: Any) -> None:
    found = dashboard.get("/ports", params={"search": "S1-ETH1"})
    assert [port["id"] for port in found["items"]] == ["1:1", "1:10", "1:11", "1:12"]
    assert dashboard.get("/ports", params={"search": "eth7 s2"})["total"] == 1
    assert dashboard.get("/ports", params={"search": "port_no"})["total"] == 0


def test_switches_ports_links_and_hosts_are_chosen_by_labels(dashboard: Any) -> None:
    def ids(path: str, selector: str) -> list[str]:
        return [found["id"] for found in dashboard.get(path, params={"select": selector, "limit": 3})["items"]]

    assert ids("/switches", "pod=2,tier=tor") == ["2"]
    assert ids("/ports", "pod!=1") == ["2:1", "2:2", "2:3"]
    assert ids("/links", "pod=1,pod=2") == ["1:1-2:1"]
    assert ids("/links", "pod=3") == []
    assert dashboard.get("/switches/2")["labels"] == {"pod": "2"}


def test_members_senders_and_refusals_are_those_of_all_groups(dashboard: Any) -> None:
    members = dashboard.get("/members")["items"]
    assert [(member["group"], member["port_no"], member["static"]) for member in members] == [
        ("239.1.1.1", 2, False),
        ("239.1.1.1", 5, True),
    ]
    assert [sender["port_no"] for sender in dashboard.get("/senders")["items"]] == [2]
    refusals = dashboard.get("/refusals")["items"]
    assert [(found["role"], found["port_no"]) for found in refusals] == [("receiver", 3), ("sender", 4)]


def test_lists_of_tenants_are_made_by_the_policy_that_the_controller_tells(dashboard: Any, controller: Any) -> None:
    before = controller.documents["multicast", "policy"]["policy"]
    text = "version: 1\ntenants: {video: [0.0.0.0/0], lab: [10.99.0.0/16]}\n"
    controller.put("multicast", "policy", "policy", **{**before, "text": text})
    dashboard.wait_until(lambda: dashboard.get("/policy")["text"] == text)
    found = dashboard.get("/connections", params={"search": "video"})["items"]
    assert [(one["tenant"], one["dpid"], one["dpid_hex"]) for one in found] == [
        ("video", 1, "0000000000000001"),
        ("video", 2, "0000000000000002"),
    ]
    assert {group["group"] for one in found for group in (*one["receives"], *one["sends"])} == {"239.1.1.1"}
    unused = dashboard.get("/unused", params={"sort": "-kind"})["items"]
    assert (unused[0]["kind"], unused[0]["name"], unused[0]["line"]) == ("tenant", "lab", 2)
    controller.put("multicast", "policy", "policy", **{**before, "text": "version: 1\nmystery: 7\n"})
    dashboard.wait_until(lambda: dashboard.client.get("/unused").status_code == 503)
    assert "policy:2" in dashboard.client.get("/connections").json()["detail"]
    controller.put("multicast", "policy", "policy", **before)
    dashboard.wait_until(lambda: dashboard.client.get("/unused").status_code == 200)


def test_events_come_newest_first_and_since_a_time(dashboard: Any) -> None:
    assert [event["time_s"] for event in dashboard.get("/events")["items"]] == [102.0, 101.0, 100.0]
    assert [event["id"] for event in dashboard.get("/events", params={"since": 101})["items"]] == ["monitor-2"]


def test_events_are_those_that_are_at_least_so_grave(dashboard: Any) -> None:
    found = {name: dashboard.get("/events", params={"severity": name})["items"] for name in GRAVITIES}
    assert [event["severity"] for event in found["info"]] == ["info", "warning", "info"]
    assert [event["severity"] for event in found["warning"]] == ["warning"]
    assert found["critical"] == []
    assert dashboard.get("/alarms", params={"severity": "critical"}) == {"items": [], "total": 0}


def test_a_check_of_a_switch_that_nobody_knows_is_not_begun(dashboard: Any, controller: Any) -> None:
    controller.asked.clear()
    answer = dashboard.write("POST", "/checks/multicast?dpid=77")
    assert (answer.status_code, answer.json()["detail"]) == (404, "there is no switch 77")
    assert controller.asked == []
    assert dashboard.write("POST", "/checks/multicast?dpid=2").status_code == 200
    assert controller.asked.pop()["dpid"] == 2


def test_metrics_of_a_history_are_those_that_the_monitor_remembers() -> None:
    assert get_args(Metric) == tuple(METRICS)


def test_severities_are_those_of_events() -> None:
    assert get_args(Gravity) == GRAVITIES


def test_a_group_is_found_however_its_address_is_written(dashboard: Any, controller: Any) -> None:
    controller.put("multicast", "groups", "ff1e::1", group="ff1e::1", members=[])
    dashboard.wait_until(lambda: dashboard.client.get("/groups/ff1e::1").status_code == 200)
    assert dashboard.get("/groups/FF1E:0:0::0001")["group"] == "ff1e::1"
    controller.remove("multicast", "groups", "ff1e::1")
    dashboard.wait_until(lambda: dashboard.client.get("/groups/ff1e::1").status_code == 404)


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        ("/switches/7", 404, "there is no switch 7"),
        ("/switches/x", 404, "there is no switch 'x': "),
        ("/switches/18446744073709551616", 404, "there is no switch "),
        ("/ports/1/99", 404, "switch 1 has no port 99"),
        ("/groups/239.1.1.2", 404, "there is no group 239.1.1.2"),
        ("/groups/nonsense", 422, "address: 'nonsense' is no IP address"),
        ("/ports?limit=10001", 422, "limit: "),
        ("/ports?offset=-1", 422, "offset: "),
        ("/ports?select=pod", 422, "select: position 4: expected = or != and a value"),
        ("/ports?sort=colour", 422, "sort: 'colour' is no field here"),
        ("/events?since=never", 422, "since: "),
        *(
            (f"/{name}?severity=minor", 422, "severity: Input should be 'info', 'warning' or 'critical'")
            for name in ("events", "alarms", "cleared-alarms")
        ),
        ("/ports?severity=info", 422, "severity: no parameter here; there are limit, offset, "),
        ("/status?verbose=1", 422, "verbose: no parameter here; there is none"),
        ("/ports/1/3/history?metric=colour", 422, "metric: Input should be 'rx_bps', 'tx_bps', "),
        ("/stream?sections=ports,colours", 422, "sections: 'colours' is none of status, switches"),
        ("/nothing", 404, "Not Found"),
    ],
)
def test_what_is_wrong_is_told_by_a_problem_document(dashboard: Any, path: str, status: int, told: str) -> None:
    answer = dashboard.client.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    problem = answer.json()
    assert (problem["type"], problem["status"]) == ("about:blank", status)
    assert problem["detail"].startswith(told)


@pytest.mark.parametrize(
    ("method", "path", "asked"),
    [
        ("POST", "/policy/reload", {"do": "policy-reload"}),
        (
            "PUT",
            "/groups/239.1.1.1/static-members/1/7",
            {"do": "static-member-add", "group": "239.1.1.1", "dpid": 1, "port_no": 7},
        ),
        (
            "DELETE",
            "/groups/FF1E::01/static-members/1/7",
            {"do": "static-member-remove", "group": "ff1e::1", "dpid": 1, "port_no": 7},
        ),
        ("PUT", "/routers/1/7/4", {"do": "router-port-add", "dpid": 1, "port_no": 7, "family": 4}),
        ("DELETE", "/routers/1/7/6", {"do": "router-port-remove", "dpid": 1, "port_no": 7, "family": 6}),
        ("DELETE", "/switches/2/drain", {"do": "switch-undrain", "dpid": 2}),
        ("DELETE", "/switches/2", {"do": "switch-forget", "dpid": 2}),
        ("DELETE", "/links/1:3-2:1", {"do": "link-forget", "link": "1:3-2:1"}),
        (
            "PUT",
            "/alarms/link-failed:1:3-2:1/acknowledgement",
            {"do": "alarm-acknowledge", "key": "link-failed:1:3-2:1"},
        ),
        ("POST", "/groups/239.1.1.1/rebuild", {"do": "group-rebuild", "group": "239.1.1.1"}),
        ("POST", "/groups/239.1.1.1/aliases", {"do": "alias-add", "group": "239.1.1.1"}),
        ("DELETE", "/groups/239.1.1.1/aliases", {"do": "alias-remove", "group": "239.1.1.1"}),
        ("POST", "/groups/239.1.1.1/entries", {"do": "group-swap-in", "group": "239.1.1.1"}),
        ("DELETE", "/groups/239.1.1.1/entries", {"do": "group-swap-out", "group": "239.1.1.1"}),
        ("PUT", "/groups/239.1.1.1/pin", {"do": "group-pin", "group": "239.1.1.1"}),
        ("DELETE", "/groups/239.1.1.1/pin", {"do": "group-unpin", "group": "239.1.1.1"}),
        ("POST", "/counters/reset", {"do": "counters-reset"}),
        ("PUT", "/pools/video/addresses/cam7", {"do": "address-take", "pool": "video", "name": "cam7"}),
        ("DELETE", "/pools/video/addresses/cam7", {"do": "address-release", "pool": "video", "name": "cam7"}),
        (
            "PUT",
            "/switches/2/labels/rack?value=b7",
            {"do": "switch-label-add", "dpid": 2, "key": "rack", "value": "b7"},
        ),
        ("DELETE", "/switches/0x2/labels/rack", {"do": "switch-label-remove", "dpid": 2, "key": "rack"}),
        (
            "PUT",
            "/ports/1/7/labels/room?value=a.1",
            {"do": "port-label-add", "dpid": 1, "port_no": 7, "key": "room", "value": "a.1"},
        ),
        (
            "DELETE",
            "/ports/1/7/labels/room",
            {"do": "port-label-remove", "dpid": 1, "port_no": 7, "key": "room"},
        ),
        (
            "POST",
            f"/maintenance/plan?{ORDER_QUERY}",
            {"do": "maintenance-plan", **ORDER},
        ),
        (
            "POST",
            f"/maintenance/start?{ORDER_QUERY}&runner=r1",
            {"do": "maintenance-start", **ORDER, "runner": "r1"},
        ),
        (
            "POST",
            "/maintenance/plan?switches=2",
            {"do": "maintenance-plan", **USUAL._asdict(), "switches": [2]},
        ),
        *(
            ("POST", f"/candidates/00112233aabb/{verb}", {"do": f"candidate-{verb}", "id": "00112233aabb"})
            for verb in ("accept", "ignore", "consider")
        ),
        ("POST", "/maintenance/pause", {"do": "maintenance-pause"}),
        ("POST", "/maintenance/resume?runner=r2", {"do": "maintenance-resume", "runner": "r2"}),
        ("POST", "/maintenance/resume", {"do": "maintenance-resume", "runner": ""}),
        ("POST", "/maintenance/abort", {"do": "maintenance-abort"}),
        ("POST", "/maintenance/skip?dpid=0x2", {"do": "maintenance-skip", "dpid": 2}),
        (
            "POST",
            "/maintenance/hook-begin?dpid=2&runner=r1",
            {"do": "maintenance-hook-begin", "dpid": 2, "runner": "r1"},
        ),
        (
            "POST",
            "/maintenance/hook-end?dpid=2&runner=r1&fault=status+3",
            {"do": "maintenance-hook-end", "dpid": 2, "runner": "r1", "fault": "status 3"},
        ),
        (
            "POST",
            "/maintenance/hook-end?dpid=2&runner=r1",
            {"do": "maintenance-hook-end", "dpid": 2, "runner": "r1", "fault": ""},
        ),
    ],
)
def test_a_write_asks_the_controller(
    dashboard: Any, controller: Any, method: str, path: str, asked: dict[str, Any]
) -> None:
    answer = dashboard.write(method, path)
    assert (answer.status_code, answer.json()) == (200, {"done": True})
    assert controller.asked.pop() == {**asked, "by": "operator"}


@pytest.mark.parametrize(
    ("path", "status", "field"),
    [
        ("/maintenance/start?runner=r1", 422, "switches"),
        ("/maintenance/start?switches=1,leaf&runner=r1", 422, "switches"),
        ("/maintenance/start?switches=1", 422, "runner"),
        ("/maintenance/start?switches=1&runner=r1&window=22:00-06:00", 422, "window"),
        ("/maintenance/start?switches=1&runner=r1&expected_s=0", 422, "expected_s"),
        ("/maintenance/hook-kill?dpid=1&runner=r1", 422, "what"),
        ("/maintenance/hook-begin?dpid=1", 422, "runner"),
        ("/maintenance/hook-begin?dpid=77&runner=r1", 404, "77"),
        ("/maintenance/skip?dpid=77", 404, "77"),
        (f"/maintenance/hook-end?dpid=1&runner=r1&fault={'x' * 501}", 422, "fault"),
    ],
)
def test_what_maintenance_cannot_be_asked_never_comes_to_the_controller(
    dashboard: Any, controller: Any, path: str, status: int, field: str
) -> None:
    controller.asked.clear()
    answer = dashboard.write("POST", path)
    assert (answer.status_code, field in answer.text) == (status, True)
    assert controller.asked == []


def test_who_only_reads_begins_no_campaign_and_ends_no_upgrade(dashboard: Any, controller: Any) -> None:
    controller.asked.clear()
    for path in (f"start?{ORDER_QUERY}&runner=r1", "hook-end?dpid=1&runner=r1"):
        assert dashboard.client.post(f"/maintenance/{path}").status_code == 401
    assert controller.asked == []


def test_an_allocation_is_asked_with_its_own_fields_only(dashboard: Any, controller: Any) -> None:
    assert dashboard.write("POST", "/allocations", json={"count": 2}).status_code == 200
    assert controller.asked.pop() == {"do": "allocate", "count": 2}
    for reserved in ("do", "show", "changes"):
        assert dashboard.write("POST", "/allocations", json={reserved: "policy-reload"}).status_code == 422
    assert dashboard.write("POST", "/allocations", json=[1]).status_code == 422
    nan = dashboard.client.post(
        "/allocations",
        content='{"count": NaN}',
        headers={"Authorization": "Bearer correct-horse-battery-staple", "Content-Type": "application/json"},
    )
    assert nan.status_code == 422
    assert controller.asked == []


def test_what_the_controller_refuses_is_a_conflict_and_what_it_does_is_seen_at_once(
    dashboard: Any, controller: Any
) -> None:
    answer = dashboard.write("PUT", "/switches/77/drain")
    assert (answer.status_code, answer.json()["detail"]) == (409, "there is no switch 77")
    assert answer.json()["field"] == "dpid"
    assert dashboard.write("PUT", "/switches/1/drain").status_code == 200
    dashboard.wait_until(lambda: dashboard.get("/switches/1")["drained"])


def test_history_is_asked_of_the_controller(dashboard: Any, controller: Any) -> None:
    history = dashboard.get("/ports/1/2/history?metric=tx_bps&since_s=5&step_s=10")
    assert history["points"] == [{"time_s": 10.0, "value": 1.5}, {"time_s": 20.0, "value": None}]
    assert controller.asked.pop() == {"dpid": 1, "port_no": 2, "metric": "tx_bps", "since_s": 5.0, "step_s": 10.0}


def test_a_controller_that_goes_away_and_comes_back(
    start: Callable[..., Any], controller: Any, cable: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    dashboard = start(socket=str(cable.path))
    dashboard.wait_until(lambda: dashboard.get("/status")["connected"])
    cable.pull()
    status = dashboard.wait_until(lambda: (found := dashboard.get("/status")) and not found["connected"] and found)
    assert status["disconnected_reason"]
    assert status["switches"] == dashboard.get("/switches")["total"] == 2
    answer = dashboard.write("POST", "/policy/reload")
    assert (answer.status_code, answer.json()["reason"]) == (503, "disconnected")

    monkeypatch.setattr("apps.status_server.EPOCH", "another process")
    controller.remove("multicast", "switches", "2")
    controller.remove("monitor", "switches", "2")
    cable.plug()
    dashboard.wait_until(lambda: dashboard.get("/status")["connected"])
    assert [switch["id"] for switch in dashboard.get("/switches")["items"]] == ["1"]
    assert dashboard.get("/status")["disconnected_reason"] is None


def test_without_a_token_nobody_writes(start: Callable[..., Any]) -> None:
    dashboard = start(token_file="")
    answer = dashboard.write("POST", "/policy/reload")
    assert (answer.status_code, answer.json()["reason"]) == (403, "read-only")
    assert dashboard.get("/status")["dashboard"]["writes"] is False


def test_a_switch_that_only_the_monitor_remembers_is_none(dashboard, controller):
    told = dict(controller.documents["multicast", "switches"]["1"])
    before = dashboard.get("/switches")["total"]
    controller.remove("multicast", "switches", "1")
    dashboard.wait_until(lambda: dashboard.get("/switches")["total"] == before - 1)
    assert dashboard.client.get("/switches/1").status_code == 404
    controller.put("multicast", "switches", "1", **told)
    dashboard.wait_until(lambda: dashboard.get("/switches")["total"] == before)
    assert dashboard.get("/switches/1") == {
        **{"id": "1", "dpid_hex": "0000000000000001", **told, "up": True, "cpu_pct": None}
    }


LEAF = 0x0000A2F1C3D4E5F6


@pytest.mark.parametrize(
    "called", ["leaf1", "0000a2f1c3d4e5f6", "00:00:a2:f1:c3:d4:e5:f6", "0xA2F1C3D4E5F6", str(LEAF)]
)
def test_a_switch_is_found_by_its_name_and_by_its_id_in_any_spelling(dashboard, controller, called):
    controller.put("multicast", "switches", str(LEAF), dpid=LEAF, name="leaf1", tier="tor", connected=True)
    controller.put("multicast", "ports", f"{LEAF}:49", dpid=LEAF, port_no=49, name="uplink", role="trunk")
    dashboard.wait_until(lambda: dashboard.client.get("/switches/leaf1").status_code == 200)
    found = dashboard.get(f"/switches/{called}")
    assert (found["id"], found["dpid"], found["dpid_hex"]) == (str(LEAF), LEAF, "0000a2f1c3d4e5f6")
    assert dashboard.get(f"/ports/{called}/uplink") == dashboard.get(f"/ports/{called}/49")
    assert dashboard.write("DELETE", f"/switches/{called}/drain").status_code == 200
    assert controller.asked[-1]["dpid"] == LEAF
    assert dashboard.client.get(f"/ports/{called}/downlink").status_code == 404
    controller.remove("multicast", "switches", str(LEAF))
    controller.remove("multicast", "ports", f"{LEAF}:49")
    dashboard.wait_until(lambda: dashboard.client.get("/switches/leaf1").status_code == 404)


def test_while_an_app_does_not_answer_what_is_shown_is_said_to_be_old(dashboard: Any, controller: Any):
    controller.busy = "its loop is held up"
    try:
        status = dashboard.wait_until(
            lambda: (found := dashboard.get("/status")) and not found["connected"] and found
        )
        assert "does not answer: TimeoutError: its loop is held up" in status["disconnected_reason"]
    finally:
        controller.busy = None
    dashboard.wait_until(lambda: dashboard.get("/status")["connected"])


def test_scripts_are_begun_looked_at_and_ended(dashboard: Any, controller: Any) -> None:
    begun = dashboard.write("POST", "/probes", json={"script": "begin { }", "for_s": 5})
    assert (begun.status_code, begun.json()["id"]) == (200, "1")
    assert controller.asked[-1] == {"script": "begin { }", "for_s": 5.0, "by": "operator"}
    assert [probe["id"] for probe in dashboard.get("/probes")["probes"]] == ["1"]
    found = dashboard.get("/probes/1", params={"lines": "1,0"})
    assert controller.asked[-1] == {"id": "1", "lines": [1, 0]}
    assert found["aggregates"]["wait"][0]["histogram"] == [[1, 2], [4, 1]]
    assert dashboard.write("DELETE", "/probes/1").json()["fired"] == 3
    assert controller.asked[-1] == {"id": "1", "by": "operator"}


def test_a_script_that_is_refused_is_told_with_its_place(dashboard: Any, controller: Any) -> None:
    refused = dashboard.write("POST", "/probes", json={"script": "x"})
    assert (refused.status_code, refused.headers["content-type"]) == (409, "application/problem+json")
    assert (refused.json()["detail"], refused.json()["field"]) == (
        "line 1, column 1: 'x' is not expected here",
        "script",
    )
    before = len(controller.asked)
    assert dashboard.write("POST", "/probes", json={"script": "x", "for_s": 0}).status_code == 422
    assert dashboard.write("POST", "/probes", json={"script": "\u00e9" * 12_000}).status_code == 413
    assert dashboard.write("POST", "/probes", token="wrong" * 4, json={"script": "begin { }"}).status_code == 401
    assert len(controller.asked) == before


def test_the_scripts_that_are_shipped_are_told_with_their_questions(dashboard: Any) -> None:
    scripts = {each["name"]: each for each in dashboard.get("/probes/library")["scripts"]}
    assert scripts["barrier-latency"]["question"].endswith("?")
    assert "BarrierReplied" in scripts["barrier-latency"]["script"]
