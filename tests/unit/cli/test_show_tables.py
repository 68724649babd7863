"""`vsrt show` by the socket of a running controller, and by the API of its dashboard: the same answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("os_ken")

from apps.cli.main import main
from apps.cli.show_cells import role
from apps.cli.show_tables import TABLES
from fed_controller import (
    FedController,
    anomaly_documents,
    monitor_documents,
    multicast_documents,
    pool_documents,
    queue_documents,
    run_documents,
    scaling_documents,
    table_documents,
)
from served_dashboard import served

Show = Callable[..., str]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("controller") / "vsrt.sock"
    apps = [
        FedController(path, {**multicast_documents(), **table_documents(), **pool_documents(), **run_documents()}),
        FedController(path, {**monitor_documents(), **scaling_documents()}, "monitor"),
        FedController(path, anomaly_documents(), "anomaly"),
        FedController(path, queue_documents(), "queues"),
    ]
    for app in apps:
        app.start()
    yield path
    for app in apps:
        app.stop()


@pytest.fixture(scope="module")
def url(path: Path) -> Iterator[str]:
    with served(path) as address:
        yield address


@pytest.fixture(params=["socket", "url"])
def source(request: pytest.FixtureRequest, path: Path) -> list[str]:
    return ["--socket", str(path)] if request.param == "socket" else ["--url", request.getfixturevalue("url")]


@pytest.fixture
def show(source: list[str], capsys: pytest.CaptureFixture[str]) -> Show:
    def run(*words: str, status: int = 0) -> str:
        assert main(["show", *words, *source]) == status
        captured = capsys.readouterr()
        return captured.out if status == 0 else captured.err

    return run


@pytest.fixture
def documents(show: Show) -> Callable[..., Any]:
    return lambda *words: json.loads(show(*words, "--json"))


@pytest.mark.parametrize("what", TABLES)
def test_every_table_has_its_documents_as_json_and_as_rows(show: Show, documents: Callable[..., Any], what: str):
    words = (what, "239.1.1.1") if what == "group" else (what,)
    lines = show(*words).splitlines()
    assert lines[0].strip().split("  ")[0] == TABLES[what].titles[0]
    assert len(lines) > 1
    found = documents(*words)
    assert isinstance(found, dict if TABLES[what].one or what == "routers" else list)
    assert found


def test_a_cluster_says_who_leads_and_what_this_one_is_about(show: Show):
    leader, follower = (line.split("  ") for line in show("cluster").splitlines()[1:])
    assert [cell.strip() for cell in leader if cell] == ["one", "leads", "7", "10.0.0.1:7000", "-", "-", "-"]
    assert [cell.strip() for cell in follower if cell][:2] == ["two (this one)", "follows"]
    assert [cell.strip() for cell in follower if cell][-3:] == ["answers", "0 of 4", "-"]


def test_intervals_of_a_pool_are_a_row_each_and_the_advice_a_sentence(
    show: Show, source: list[str], capsys: pytest.CaptureFixture[str]
):
    gap, said = (line.split("  ") for line in show("scaling").splitlines()[1:])
    assert [cell.strip() for cell in gap if cell][-2:] == ["-", "m2 told nothing of the interval."]
    cells = [cell.strip() for cell in said if cell]
    assert cells[1:] == ["3", "2.85", "0.181", "0", "met", "4 (ordered)", "the load now takes 4"]
    assert main(["scaling", "history", "--limit", "1", *source]) == 0
    assert "the load now takes 4" in capsys.readouterr().out.splitlines()[1]
    assert main(["scaling", "advise", *source]) == 0
    first, _, titles, *rows = capsys.readouterr().out.splitlines()
    assert "Advice: 4 monitors in the place of 3" in first
    assert titles.split() == ["LEARNER", "MONITORS", "CHANGE"]
    assert [row.split() for row in rows] == [["yesterday", "4", "+1"], ["threshold", "5", "+2"]]
    assert main(["scaling", "advise", "--json", *source]) == 0
    assert json.loads(capsys.readouterr().out)["wanted"] == 4


def test_status_is_one_document_with_its_counters(show: Show, documents: Callable[..., Any]):
    assert documents("status")["counters"] == {"joins": 7}
    assert ["counters.joins", "7"] in [line.split() for line in show("status").splitlines()]


def test_documents_of_several_apps_are_one(documents: Callable[..., Any]):
    port = next(port for port in documents("ports") if port["id"] == "3:1")
    assert (port["role"], port["name"], port["tx_bps"]) == ("trunk", "s3-eth1", 25e6)


def test_a_group_is_shown_with_all_that_concerns_it(show: Show, documents: Callable[..., Any]):
    shown = show("group", "239.1.1.1")
    for words in (
        ["tree", "2 links"],
        ["link", "0000000000000001 - 0000000000000003"],
        ["member", "0000000000000003:2", "any source"],
        ["static member", "0000000000000003:5"],
        ["refused member", "4:7", "rule others: the rule is about 239.1.0.0/16 (include 10.0.0.1)"],
        ["sender", "1:1", "2 Mbit/s, rule feed, DSCP 46"],
        ["refused sender", "4:9", "rule default"],
    ):
        assert any(all(word in line for word in words) for line in shown.splitlines()), words
    assert documents("group", "239.1.1.1")["size"] == 1
    assert documents("group", "FF0E::0001")["group"] == "ff0e::1"


def test_classes_are_those_of_whom_sends_and_those_with_queues(show: Show, documents: Callable[..., Any]):
    backup, market = (line.split() for line in show("classes").splitlines()[1:])
    assert market[:8] == ["market", "46", "1", "1", "2", "Mbit/s", "6", "delay_ms"]
    assert market[8:] == ["2", "1.25", "0000000000000003:1", "400", "kbit/s"]
    assert backup[:7] == ["backup", "-", "-", "-", "-", "1", "-"]
    assert [document.get("rate_bps") for document in documents("classes")] == [None, 2_000_000]


def test_a_queue_is_shown_with_what_it_is_sure_of(show: Show):
    assert show("queues", "--port", "3:1").splitlines()[1].split() == [
        *("0000000000000003:1", "6", "market", "2.1", "Mbit/s", "2", "Mbit/s", "1.5", "1.25", "400", "kbit/s"),
    ]
    assert len(show("queues", "--port", "3:2").splitlines()) == 1


def test_openflow_is_told_by_its_version_and_a_refusal_by_its_rule(show: Show):
    assert " 1.3 " in show("switches", "--switch", "3")
    assert "rule others: the rule is about 239.1.0.0/16" in show("refusals")


def test_members_and_refusals_are_lists_of_their_own(documents: Callable[..., Any]):
    members = documents("members")
    assert [(member["group"], member["port_no"], member["static"]) for member in members] == [
        ("239.1.1.1", 2, False),
        ("239.1.1.1", 5, True),
    ]
    assert [(sender["rule"], sender["rate_bps"]) for sender in documents("senders")] == [("feed", 2_000_000)]
    refusals = documents("refusals")
    assert [(refused["role"], refused["dpid"], refused["port_no"]) for refused in refusals] == [
        ("receiver", 4, 7),
        ("sender", 4, 9),
    ]


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        (["switches"], ["1", "3", "4", "10"]),
        (["switches", "--switch", "0x3"], ["3"]),
        (["ports", "--switch", "3"], ["3:1", "3:2", "3:10"]),
        (["ports", "--port", "3:10"], ["3:10"]),
        (["ports", "--sort", "tx_bps", "--reverse"], ["3:1", "3:2", "1:3", "3:10"]),
        (["ports", "--sort", "tx_bps", "--limit", "1"], ["3:2"]),
        (["ports", "--search", "S3-ETH edge"], ["3:2"]),
        (["links", "--switch", "3"], ["1:3-3:1"]),
        (["links", "--port", "1:3"], ["1:3-3:1"]),
        (["links", "--port", "1:4"], []),
        (["groups", "--switch", "4"], ["239.1.1.1", "239.1.1.2", "ff0e::1"]),
        (["groups", "--port", "4:9"], ["239.1.1.1"]),
        (["groups", "--group", "ff0e:0::1"], ["ff0e::1"]),
        (["hosts", "--search", "fe80::2"], ["00:00:00:00:00:02"]),
        (["events"], ["multicast-9", "multicast-10"]),
        (["events", "--limit", "1"], ["multicast-10"]),
        (["events", "--group", "239.1.1.1"], ["multicast-10"]),
        (["events", "--port", "3:2"], ["multicast-9"]),
        (["cleared-alarms"], ["9", "10"]),
        (["cleared-alarms", "--limit", "1"], ["10"]),
        (["cleared-alarms", "--severity", "critical"], ["10"]),
        (["cleared-alarms", "--switch", "4"], []),
        (["anomalies", "--switch", "3"], ["a1"]),
        (["anomalies", "--switch", "4"], []),
        (["allocations", "--limit", "1"], ["2"]),
        (["rules", "--sort", "deny", "--reverse"], ["default", "zebra"]),
        (["unused"], ["address/video/cam1", "address/video/cam2"]),
        (["unused", "--search", "cam2"], ["address/video/cam2"]),
    ],
)
def test_documents_are_chosen_sorted_and_counted(documents: Callable[..., Any], words: list[str], ids: list[str]):
    assert [document["id"] for document in documents(*words)] == ids


def test_versions_are_told_where_they_are_in_force(show: Show, documents: Callable[..., Any]):
    assert [each["igmp_version"] for each in documents("versions")] == [3, None]
    told = show("versions", "--switch", "3")
    assert "v3; v2 of 10.0.0.9 in VLAN 20; hosts of v2 at port 7" in told
    assert "v1 of fe80::9" in told
    assert "Open vSwitch" in told
    assert "\\x1b[31mleaf3" in told
    assert "nobody asks" in show("versions", "--switch", "4")


def test_routers_keep_their_shape(show: Show, documents: Callable[..., Any]):
    found = documents("routers")
    assert [querier["family"] for querier in found["queriers"]] == [4, 6]
    ports = [(port["dpid"], port["port_no"], port["family"], port["vlan"]) for port in found["router_ports"]]
    assert sorted(ports, key=str) == [(3, 2, 4, 20), (3, 2, 6, None)]
    assert "this controller" in show("routers")
    assert "router port of IPv4 in VLAN 20" in show("routers")


def test_a_port_is_shown_with_its_vlans(show: Show, documents: Callable[..., Any]):
    assert "storage + 20,30-35 tagged" in show("ports", "--port", "3:10")
    (port,) = documents("ports", "--port", "3:10")
    assert port["vlans"] == {"untagged": 10, "tagged": "20,30-35", "names": {"10": "storage"}}


def test_a_leg_is_shown_with_its_group():
    legs = [{"dpid": 1, "port_no": 3, "works": True}, {"dpid": 2, "port_no": 3, "works": False}]
    port = {"role": "edge", "link_aggregation": {"name": "server7", "mode": "lacp", "legs": legs}}
    assert role(port) == "edge, leg of server7"
    assert role({"role": "trunk", "link_aggregation": None}) == "trunk"


def test_a_host_is_shown_with_its_vlan():
    table, called = TABLES["hosts"], SimpleNamespace(label=lambda dpid, port_no: f"{dpid}:{port_no}")
    host = {"mac": "02:00:00:00:00:0b", "dpid": 4, "port_no": 8, "ips": ["10.0.0.2"]}
    rows = [dict(zip(table.titles, *table.rows({**host, "vlan": vlan}, called), strict=True)) for vlan in (20, None)]
    assert rows[0] == {"MAC": "02:00:00:00:00:0b", "PORT": "4:8", "VLAN": 20, "IP": "10.0.0.2"}
    assert rows[1]["VLAN"] == "-"


def test_a_group_that_comes_from_another_vlan_is_shown_with_both():
    names = {"vlan_name": "home", "source_vlan_name": "tv"}
    asked_for = {"group": "239.5.1.1@20", "vlan": 20, "source_vlan": 100, **names}
    carrier = {"group": "239.5.1.1@100", "vlan": 100, "links": [[1, 2]], "source_vlan": None}
    carrier["receiver_vlans"] = [{"vlan": None, "ports": 2}, {"vlan": 20, "vlan_name": "home", "ports": 1}]
    assert [next(iter(TABLES["groups"].rows(group, None)))[-1] for group in (asked_for, carrier)] == [
        "of VLAN tv",
        "1 links",
    ]
    assert list(TABLES["group"].rows(asked_for, None)) == [("tree", "-", "-", "-", "of VLAN tv")]
    assert [row for row in TABLES["group"].rows({**carrier, "links": []}, None) if row[0] == "receivers"] == [
        ("receivers", "2 ports", "-", "-", "VLAN untagged"),
        ("receivers", "1 port", "-", "-", "VLAN home"),
    ]


def test_a_rule_keeps_the_place_that_the_policy_gives_it(documents: Callable[..., Any]):
    assert [rule["rule"] for rule in documents("rules")] == ["zebra", "default"]


def test_a_cleared_alarm_is_shown_with_its_times_and_who_acknowledged_it(show: Show):
    times = "1970-01-01 00:01:00", "1970-01-01 00:03:20"
    line = next(line for line in show("cleared-alarms").splitlines() if "ann" in line)
    assert all(word in line for word in ("critical", *times, "link-failed:1:4-3:3", "It came 2 times."))
    assert line.index(times[0]) < line.index(times[1])


def test_a_shortage_of_ports_is_told_in_words(show: Show):
    assert "requested: 9, allocated: 1" in show("allocations")


def test_the_policy_is_shown_with_its_lines(show: Show):
    assert ["2", "default: deny"] in [line.split(maxsplit=1) for line in show("policy").splitlines()]


def test_names_from_the_network_do_not_reach_the_terminal_as_commands(show: Show):
    shown = show("events")
    assert "\x1b" not in shown
    assert "<b>bold</b>" in shown


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["rules", "--switch", "3"], "--switch: not with rules"),
        (["unused", "--switch", "3"], "--switch: not with unused"),
        (["unused", "--sort", "speed"], "--sort: no document has the field 'speed'; there are address"),
        (["switches", "--port", "3:1"], "--port: not with switches"),
        (["status", "--group", "239.1.1.1"], "--group: not with status"),
        (["ports", "--switch", "x"], "--switch: 'x' is no datapath id"),
        (["ports", "--switch", "0"], "--switch: '0' is no datapath id"),
        (["ports", "--port", "3"], "--port: '3' is no port"),
        (["ports", "--port", "3:0"], "--port: '3:0' is no port"),
        (["groups", "--group", "10.0.0.1"], "--group: 10.0.0.1 is not within the multicast addresses"),
        (["groups", "--group", "x"], "--group: 'x' is no IP address"),
        (["ports", "--sort", "speed"], "--sort: no document has the field 'speed'; there are dpid"),
        (["ports", "--sort", "speed", "--search", "no such words"], "--sort: no document has the field 'speed'"),
        (["ports", "--sort", "speed", "--switch", "77"], "--sort: no document has the field 'speed'"),
        (
            ["cleared-alarms", "--sort", "speed"],
            "--sort: no document has the field 'speed'; there are acknowledged_by",
        ),
        (["ports", "--limit", "0"], "--limit: 0"),
        (["ports", "--reverse"], "--reverse: only with --sort"),
        (["group"], "ADDRESS: missing"),
        (["groups", "239.1.1.1"], "ADDRESS: not with groups"),
        (["group", "1.2.3"], "ADDRESS: '1.2.3' is no IP address"),
        (["group", "239.1.1.1@4095"], "ADDRESS: '239.1.1.1@4095' is no IP address, nor one in a VLAN"),
        (["everything"], "invalid choice: 'everything'"),
    ],
)
def test_bad_input_is_told_with_its_field(show: Show, words: list[str], told: str):
    assert told in show(*words, status=2)


@pytest.mark.parametrize("words", [["ports", "--sort", "score"], ["cleared-alarms", "--sort", "part_of"]])
def test_a_field_that_no_app_has_filled_yet_is_none_to_complain_of(show: Show, words: list[str]):
    show(*words)


def test_a_group_that_is_not_there_is_told(show: Show):
    assert "there is no group 239.9.9.9" in show("group", "239.9.9.9", status=1)
    assert "there is no group 239.1.1.1@20" in show("group", "239.1.1.1@20", status=1)


def test_more_documents_than_one_answer_holds_are_all_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    ports = {
        f"{dpid}:{port_no}": {"dpid": dpid, "port_no": port_no} for dpid in range(1, 51) for port_no in range(1, 91)
    }
    controller = FedController(tmp_path / "vsrt.sock", {"ports": ports})
    controller.start()
    try:
        assert main(["show", "ports", "--socket", str(controller.path), "--json"]) == 0
        assert [port["id"] for port in json.loads(capsys.readouterr().out)] == list(ports)
    finally:
        controller.stop()


@pytest.mark.parametrize("called", ["leaf10", "10", "0xa", "000000000000000a", "00:00:00:00:00:00:00:0a"])
def test_a_switch_is_shown_and_asked_for_by_its_name(show: Show, documents: Callable[..., Any], called: str):
    assert [switch["dpid"] for switch in documents("switches", "--switch", called)] == [10]
    assert show("switches", "--switch", called).splitlines()[1].startswith("leaf10 ")


def test_a_port_is_asked_for_by_the_names_of_switch_and_port(documents: Callable[..., Any]):
    assert [port["id"] for port in documents("ports", "--port", "3:s3-eth2")] == ["3:2"]
    assert documents("ports", "--port", "leaf10:7") == []


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("--switch", "leaf11"), "--switch: 'leaf11' is no datapath id"),
        (("--switch", "0"), "--switch: '0' is no datapath id"),
        (("--port", "leaf10:eth9"), "--port: switch leaf10 has no port named 'eth9'"),
        (("--port", "leaf10"), "--port: 'leaf10' is no port, such as leaf1:49 or 3:1"),
    ],
)
def test_a_switch_that_nobody_knows_is_bad_input(show: Show, words: tuple[str, str], fault: str):
    assert fault in show("ports", *words, status=2)


def test_switches_ports_links_and_hosts_are_chosen_by_labels(documents: Callable[..., Any], show: Show):
    def ids(what: str, selector: str) -> list[str]:
        return [found["id"] for found in documents(what, "--select", selector)]

    assert ids("switches", "pod=2") == ["3"]
    assert ids("switches", "pod!=2,state!=drained") == ["1", "10"]
    assert ids("ports", "pod=2,state=edge") == ["3:2", "3:10"]
    assert ids("links", "pod=2,tier=core") == ["1:3-3:1"]
    assert len(ids("hosts", "pod=2")) == 1
    (line,) = show("switches", "--select", "pod=2").splitlines()[1:]
    assert line.endswith("pod=2")


def test_a_selector_that_is_wrong_or_chooses_nothing_is_told(
    source: list[str], show: Show, capsys: pytest.CaptureFixture[str]
):
    told = show("switches", "--select", "pod=2,rack", status=2)
    assert "--select: position 11: expected = or != and a value" in told
    assert "--select: not with groups" in show("groups", "--select", "pod=2", status=2)
    assert main(["show", "switches", "--select", "rakc=b7", "--json", *source]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == []
    assert captured.err == "vsrt: of 4 switches none fits rakc=b7: none has a label 'rakc'\n"


def test_half_of_what_there_is_to_show_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    controller = FedController(tmp_path / "vsrt.sock", {"switches": {"1": {"dpid": 1}}})
    controller.busy = "the controller is busy"
    controller.start()
    try:
        assert main(["show", "switches", "--socket", str(controller.path)]) == 1
    finally:
        controller.stop()
    told = capsys.readouterr()
    assert told.out == ""
    assert "the app multicast does not answer: TimeoutError: the controller is busy" in told.err


def test_a_staged_policy_that_is_not_there_or_faulty_has_no_numbers():
    summary = {"would_be": "alike", "count": 0, "path": "staged.yaml", "loaded_s": None, "errors": []}
    assert list(TABLES["staged"].rows(summary, None)) == [("no file", "staged.yaml")]
    assert list(TABLES["staged"].rows({**summary, "errors": ["line 2"]}, None)) == [("fault", "line 2")]
    both = TABLES["staged"].rows({**summary, "loaded_s": 9.0, "errors": ["line 2"]}, None)
    assert [row[0] for row in both] == ["alike", "fault"]


@pytest.mark.parametrize(
    ("what", "document", "told"),
    [
        ("staged", {"would_be": "alike", "loaded_s": None, "path": "staged.yaml"}, "no file   staged.yaml"),
        ("staged", {"would_be": "alike", "errors": ["staged.yaml:2: no"]}, "fault     staged.yaml:2: no"),
        ("candidates", {"state": "search", "path": "changes.jsonl"}, "no search yet  changes.jsonl"),
    ],
)
def test_what_is_told_instead_of_rows_takes_the_rest_of_the_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str, document: dict[str, Any], told: str
):
    controller = FedController(tmp_path / "vsrt.sock", {what: {"one": document}})
    controller.start()
    try:
        assert main(["show", what, "--socket", str(controller.path)]) == 0
    finally:
        controller.stop()
    assert capsys.readouterr().out.splitlines()[1] == told


def test_candidates_are_shown_with_where_they_are_and_why_there_are_none(show: Show):
    row = [cell.strip() for cell in show("candidates").splitlines()[1].split("  ") if cell]
    assert row == ["00112233aabb", "new", "labels.guard, labels.mtu", "1:1, 1:2, 1:3 and 2 more", "5", "1", "0"]
    waiting = {"state": "search", "path": "changes.jsonl", "searched_s": None, "fault": "it is full"}
    assert list(TABLES["candidates"].rows(waiting, None)) == [
        ("fault", "it is full"),
        ("no search yet", "changes.jsonl"),
    ]
