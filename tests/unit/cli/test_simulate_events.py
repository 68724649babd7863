"""`vsrt simulate` over time: events from files and drawn ones, the rows it writes, and what it refuses."""

import csv
import json

import duckdb
import pytest

from apps.cli.main import main
from topology.files.node_link import write
from topology.generators import make
from topology.graph import NodeKind

SMALL = ("--topology", "avalanche24", "--vms", "100", "--groups", "20", "--group-size", "3:6", "--algorithms", "vsrt")
GRAPH = make("avalanche24")
HOSTS = GRAPH.hosts()
CORE = GRAPH.nodes(NodeKind.CORE)[0]
AGGREGATION = GRAPH.neighbours(CORE)[0]


def call(capsys, *words):
    status = main(["simulate", *(str(word) for word in words)])
    out, err = capsys.readouterr()
    return status, out, err


def dynamics(capsys, *words):
    status, out, err = call(capsys, *words, "--json")
    assert (status, err) == (0, "")
    return json.loads(out)["dynamics"]


def untimed(document):
    for found in document["algorithms"].values():
        assert found.pop("run_s") >= 0
        assert found.pop("events_per_s") >= 0
    return document


@pytest.fixture
def events(tmp_path):
    file = tmp_path / "events.csv"
    file.write_text(
        "time_s,event,group,member,u,v,rate_bps\n"
        f"0,join,a,{HOSTS[0]},,,4e6\n"
        f"1,join,a,{HOSTS[-1]},,,\n"
        f"2,switch_down,,,{CORE},,\n"
        f"3,switch_up,,,{CORE},,\n"
        f"4,link_down,,,{CORE},{AGGREGATION},\n"
        f"5,leave,a,{HOSTS[0]},,,\n"
        f"6,leave,a,{HOSTS[0]},,,\n"
    )
    return file


def test_events_of_a_file_are_played_over_an_empty_fabric(capsys, events):
    found = dynamics(capsys, *SMALL, "--events", events)
    assert (found["events"], found["members_before"], found["end_s"]) == (7, 0, 6.0)
    vsrt = found["algorithms"]["vsrt"]
    assert vsrt["loads_exact"] is True
    assert (vsrt["groups"], vsrt["members"], vsrt["members_cut_off"], vsrt["end_max_pct"]) == (1, 1, 0, 0.0)
    assert vsrt["peak_max_pct"] == pytest.approx(40.0)
    kinds = vsrt["kinds"]
    assert set(kinds) == {"join", "leave", "switch_down", "switch_up", "link_down"}
    assert kinds["join"]["links_added"]["total"] == 4
    assert (kinds["leave"]["count"], kinds["leave"]["ignored"]) == (2, 1)
    assert set(kinds["join"]["rules_put"]) == {"total", "max", "p99", "mean"}
    assert [sample["time_s"] for sample in vsrt["over_time"]] == [0, 1, 2, 3, 4, 5, 6]


def test_a_storm_brings_every_member_of_the_groups(capsys):
    found = dynamics(capsys, *SMALL, "--storm", "10", "--seed", "4")
    assert found["members_before"] == 0
    assert found["algorithms"]["vsrt"]["groups"] == 20
    assert found["algorithms"]["vsrt"]["members"] == found["events"]
    assert 40 < found["end_s"] < 61
    again = dynamics(capsys, *SMALL, "--storm", "10", "--seed", "4")
    assert untimed(found) == untimed(again)
    assert untimed(dynamics(capsys, *SMALL, "--storm", "10", "--seed", "5")) != again


def test_churn_and_failures_change_the_groups_that_are_there(capsys):
    found = dynamics(
        capsys, *SMALL, "--algorithms", "vsrt,pim-sm-fixed-core,steiner", "--churn", "20", "--duration-s", "10",
        "--holding-s", "5", "--fail-links", "6", "--repair-s", "2",
    )  # fmt: skip
    assert found["members_before"] > 50
    assert list(found["algorithms"]) == ["vsrt", "pim-sm-fixed-core", "steiner"]
    for one in found["algorithms"].values():
        assert one["loads_exact"] is True
        assert one["kinds"]["link_down"]["count"] == 6
        assert one["kinds"]["leave"]["count"] > 20
        assert one["peak_max_pct"] >= max(sample["max_pct"] for sample in one["over_time"])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_rows_hold_every_event_of_every_algorithm(capsys, tmp_path, events, suffix):
    file = tmp_path / f"rows.{suffix}"
    words = (*SMALL, "--algorithms", "vsrt,source-tree", "--events", events, "--event-rows", file)
    found = dynamics(capsys, *words)
    rows = duckdb.sql(f"select algorithm, event, applied, links_added, \"group\" from '{file}'").fetchall()
    assert len(rows) == 2 * found["events"]
    ours = [row for row in rows if row[0] == "vsrt"]
    assert ours[1] == ("vsrt", "join", True, 4, "a")
    assert ours[2][4] is None
    assert ours[-1][:3] == ("vsrt", "leave", False)
    assert [path.name for path in tmp_path.glob("*rows*")] == [file.name]


def test_rows_stay_as_they_were_where_the_stream_is_bad(capsys, tmp_path, events):
    file = tmp_path / "rows.csv"
    file.write_text("mine")
    events.write_text(events.read_text() + "7,join,a,nobody,,,\n")
    status, out, err = call(capsys, *SMALL, "--events", events, "--event-rows", file)
    assert (status, out) == (2, "")
    assert f"{events}:9: member: 'nobody' is not in the topology" in err
    assert file.read_text() == "mine"


def test_people_get_a_table(capsys, events):
    status, out, _ = call(capsys, *SMALL, "--events", events)
    assert status == 0
    assert "7 events until 6.0 s" in out
    assert any(line.split()[:3] == ["vsrt", "join", "2"] for line in out.splitlines())
    assert "busiest link 40.0 % at its peak" in out


def test_numbers_of_a_topology_file_are_found_by_name(capsys, tmp_path):
    fabric = tmp_path / "fabric.json"
    fabric.write_text(write(GRAPH))
    rows = [{"time_s": i, "event": "join", "group": "g", "member": host} for i, host in enumerate(HOSTS)]
    events = tmp_path / "events.jsonl"
    events.write_text("\n".join(map(json.dumps, rows)))
    found = dynamics(capsys, *SMALL, "--topology", fabric, "--events", events)
    assert found["algorithms"]["vsrt"]["members"] == len(HOSTS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--storm", "0"), "no positive number"),
        (("--churn", "many"), "no positive number"),
        (("--churn", "1e9"), "--churn: joins_per_s: 6e+10 joins in all are more than"),
        (("--churn", "1", "--holding-s", "nan"), "no positive number"),
        (("--fail-links", "-1"), "no whole number"),
        (("--fail-links", "10000"), "--fail-links: 10000 links shall fail, and there are 24"),
        (("--event-rows", "rows.csv"), "--event-rows: needs --events"),
        (("--storm", "1", "--event-rows", "rows.txt"), "ends in none of .csv, .parquet"),
        (("--storm", "1", "--event-rows", "nowhere/rows.csv"), "no folder"),
        (("--events", "nowhere.csv"), "nowhere.csv: No such file"),
        (("--events", "x", "--storm", "1"), "--storm: not together with --events"),
    ],
)
def test_what_cannot_be_is_refused(capsys, words, message):
    try:
        status, out, err = call(capsys, *SMALL, *words)
    except SystemExit as leaving:
        status, (out, err) = leaving.code, capsys.readouterr()
    assert (status, out) == (2, "")
    assert message in err


def test_the_state_of_switches_is_told_per_algorithm(capsys):
    status, out, _ = call(capsys, *SMALL, "--algorithms", "vsrt,pim-sm-fixed-core,steiner", "--json")
    assert status == 0
    document = json.loads(out)
    for name, state in document["switch_state"].items():
        links = document["algorithms"][name]["links_per_group"] * document["groups"]
        assert state["entries_total"] == pytest.approx(links + document["groups"])
        assert state["group_entries"] == 0
        assert state["flow_entries"]["max"] <= document["groups"]
        assert state["flow_entries"]["mean"] <= state["flow_entries"]["p99"] <= state["flow_entries"]["max"]


def test_rows_are_readable_by_spreadsheets(capsys, tmp_path, events):
    file = tmp_path / "rows.csv"
    dynamics(capsys, *SMALL, "--events", events, "--event-rows", file)
    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert rows[0]["event"] == "join" and rows[0]["rules_put"] == "1"
