"""`vsrt allocate`: its documents, its tables, and what it says of bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from apps.cli.main import main

PORTS = [
    {"id": "a1", "usage": 10, "components": {"pod": "a"}},
    {"id": "a2", "usage": 1, "components": {"pod": "a"}},
    {"id": "b1", "usage": 30, "components": {"pod": "b"}},
    {"id": "off", "usage": 0, "connected": False, "components": {"pod": "c"}},
]
REQUEST = {"levels": ["pod"], "ports": PORTS, "count": 2}


@pytest.fixture
def write(tmp_path: Path):
    def file(content: Any, name: str = "input.json") -> Path:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return file


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]):
    def command(*words: object, status: int = 0) -> tuple[Any, str]:
        found = main(["allocate", *map(str, words)])
        out, err = capsys.readouterr()
        assert found == status, err
        return (json.loads(out) if "--json" in words and out else out), err

    return command


def test_ports_are_printed_with_every_step(call, write):
    document, _ = call("ports", "--input", write(REQUEST), "--json")
    assert document["ports"] == ["a2", "b1"]
    assert [set(step) >= {"chosen", "candidates", "tied", "reason"} for step in document["steps"]] == [True, True]
    assert document["steps"][1]["candidates"] == {"pod": ["b1"]}
    table, _ = call("ports", "--input", write(REQUEST))
    assert "least usage (1 %)" in table
    full = {"id": "full", "usage": 0, "disqualified": True}
    assert "over a ceiling" in call("ports", "--input", write({**REQUEST, "ports": [*PORTS, full]}))[0]


def test_too_few_ports_are_a_document_and_exit_1(call, write):
    document, err = call("ports", "--input", write({**REQUEST, "count": 9}), "--json", status=1)
    assert document == {"error": {"requested": 9, "allocated": 3, "available": 3}}
    assert "9 ports requested" in err
    assert call("ports", "--input", write({**REQUEST, "count": 9, "allow_fewer": True}), "--json")[0]["ports"] == [
        "a2",
        "b1",
        "a1",
    ]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "input.json:1:"),
        ('{"levels": NaN}', "NaN"),
        ("[]", "request: expected an object"),
        ({**REQUEST, "count": -1}, "count: -1 is below 1"),
        ({**REQUEST, "ports": [*PORTS, PORTS[0]]}, "ports[4].id: 'a1' is there twice"),
        ({**REQUEST, "levels": ["pod", "pod"]}, "levels[1]: 'pod' is there twice"),
    ],
)
def test_bad_requests_name_the_file_and_the_field(call, write, content: Any, words: str):
    for command in (("ports",), ("explain", "--port", "a1")):
        _, err = call(command[0], "--input", write(content), *command[1:], "--json", status=2)
        assert "input.json" in err
        assert words in err


def test_a_missing_file_is_bad_input(call, tmp_path: Path):
    _, err = call("ports", "--input", tmp_path / "none.json", status=2)
    assert "No such file" in err


PATHS = {
    "levels": ["pod"],
    "networks": [{"name": "f", "ports": PORTS}, {"name": "g", "ports": [{"id": "g1", "usage": 5}]}],
    "hosts": [{"name": "h", "initiators": [{"id": "i1", "network": "f"}, {"id": "i2", "network": "g"}]}],
    "max_paths": 2,
}


def test_paths_over_several_networks(call, write):
    document, _ = call("ports", "--input", write(PATHS), "--json")
    assert document["paths"] == [
        {"host": "h", "initiator": "i1", "port": "a2"},
        {"host": "h", "initiator": "i2", "port": "g1"},
    ]
    assert document["ports"] == ["a2", "g1"]
    table, _ = call("ports", "--input", write(PATHS))
    assert "network g" in table
    few, _ = call("ports", "--input", write({**PATHS, "max_paths": 3, "min_paths": 3}), "--json", status=1)
    assert few["error"]["host"] == "h"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"max_paths": 0}, "max_paths"),
        ({"min_paths": 3}, "min_paths"),
        ({"hosts": [{"name": "h", "initiators": [{"id": "i", "network": "x"}]}]}, "hosts[0].initiators[0].network"),
        ({"networks": [{"name": "f"}]}, "networks[0].ports"),
    ],
)
def test_a_faulty_request_for_paths_names_the_field(call, write, change: dict[str, Any], field: str):
    _, err = call("ports", "--input", write({**PATHS, **change}), status=2)
    assert f"{field}:" in err


def test_explain_tells_what_spoke_against_a_port(call, write):
    document, _ = call("explain", "--input", write(REQUEST), "--port", "a1", "--json")
    assert document["chosen"] is False
    assert [step["level"] for step in document["steps"]] == [None, "pod"]
    assert "usage 10 %; a2 has 1 %" in document["steps"][0]["reason"]
    table, _ = call("explain", "--input", write(REQUEST), "--port", "a1")
    assert "pod a left out" in table
    off, _ = call("explain", "--input", write(REQUEST), "--port", "off", "--json")
    assert "not connected" in off["reason"]
    assert "not among the ports" in call("explain", "--input", write(REQUEST), "--port", "zz", status=2)[1]


def test_explain_knows_the_ports_of_every_network_and_too_few_of_them(call, write):
    document, _ = call("explain", "--input", write(PATHS), "--port", "a1", "--json")
    assert "a2 has 1 %" in document["steps"][0]["reason"]
    assert call("explain", "--input", write(PATHS), "--port", "g1", "--json")[0]["chosen"] is True
    few, _ = call("explain", "--input", write({**REQUEST, "count": 9}), "--port", "a1", "--json")
    assert (few["chosen"], few["note"]) == (True, "9 ports requested, 3 allocated")


STATE = {
    "family": "vmax",
    "parameters": {},
    "port_percent_busy": 50,
    "cpu_percent_busy": 8,
    "initiators": 2,
    "volumes": 1024,
    "valid": True,
}


def test_the_metric_of_a_state(call, write):
    document, _ = call("metric", "--input", write(STATE), "--json")
    assert (document["port_metric"], document["usage"], document["disqualified"]) == (29, 79, False)
    assert document["reasons"] == []
    full, _ = call("metric", "--input", write({**STATE, "parameters": {"volume_ceiling": 1024}}), "--json")
    assert full["disqualified"] is True
    assert "volume_ceiling" in full["reasons"][0]
    stale, _ = call("metric", "--input", write({**STATE, "valid": False}), "--json")
    assert (stale["port_metric"], stale["usage"]) == (None, None)
    assert "port metric 29 %" in call("metric", "--input", write(STATE))[0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"family": "tape"}, "family: expected one of vmax"),
        (
            {"parameters": {"port_utilization_floor": 101}},
            "parameters.port_utilization_floor: 101 is not within 0 and 100",
        ),
        ({"parameters": {"days_to_average_utilization": 31}}, "31 is not within 1 and 30 (days)"),
        ({"port_percent_busy": None}, "port_percent_busy: missing"),
        ({"cpu_percent_busy": 120}, "cpu_percent_busy: 120 is not within 0 and 100"),
        ({"volumes": -1}, "volumes: -1 is below 0"),
        ({"valid": "yes"}, "valid: expected true or false"),
    ],
)
def test_a_faulty_state_names_the_field(call, write, change: dict[str, Any], words: str):
    _, err = call("metric", "--input", write({**STATE, **change}), "--json", status=2)
    assert words in err


POOLS = {
    "size_gb": 100,
    "max_paths": 2,
    "levels": ["engine"],
    "arrays": [
        {"id": "busy", "ports": [{"id": n, "usage": 60, "network": "f", "components": {"engine": n}} for n in "12"]},
        {"id": "idle", "ports": [{"id": n, "usage": 5, "network": "f", "components": {"engine": n}} for n in "12"]},
        {"id": "lone", "ports": [{"id": "1", "usage": 0, "network": "f"}]},
    ],
    "pools": [
        {"id": "p1", "array": "busy", "free_gb": 900},
        {"id": "p2", "array": "idle", "free_gb": 500},
        {"id": "p3", "array": "lone", "free_gb": 800},
    ],
}


def test_the_pool_with_room_on_the_least_loaded_array(call, write):
    document, _ = call("pool", "--input", write(POOLS), "--json")
    assert (document["pool"], document["array"]) == ("p2", "idle")
    assert [(each["id"], each["fits"]) for each in document["pools"]] == [("p1", True), ("p3", False), ("p2", True)]
    assert "1 usable ports, 2 needed" in call("pool", "--input", write(POOLS))[0]
    none, _ = call("pool", "--input", write({**POOLS, "size_gb": 1e6}), "--json", status=1)
    assert none["pool"] is None
    assert "pools[0].array" in call("pool", "--input", write({**POOLS, "arrays": []}), status=2)[1]


VMAX = """sampleTime,port,portSpeedGbitPerSec,kbytesTransferred,iops,cpu,ticks,idle,initiators,volumes
20260101000000.000000+000,FA-1,8,1000,5,FA,1000,100,2,64
20260101010000.000000+000,FA-1,8,1888437800,9,FA,2000,850,2,64
20260101030001.000000+060,FA-1,8,3776875600,12,FA,3000,1600,3,1024
"""
"""Ports at 50 % from 0 to 1 h and to 2 h UTC (the last time is written in UTC+1), CPU at 25 %."""


def minutes(write, n: int) -> Path:
    return write(f"version: 1\nallocation: {{vmax: {{days_to_average_utilization: {10000 + n}}}}}\n", "policy.yaml")


def test_raw_counters_become_the_six_fields(call, write):
    words = (
        "metric",
        "--input",
        write(VMAX, "vmax.csv"),
        "--family",
        "vmax",
        "--config",
        minutes(write, 119),
        "--json",
    )
    (port,) = call(*words)[0]["ports"].values()
    assert port["port_percent_busy"] == pytest.approx(50, abs=0.05)
    assert port["cpu_percent_busy"] == pytest.approx(25)
    assert port["port_allocation_metric"] == pytest.approx(37.5, abs=0.05)
    assert port["usage"] == pytest.approx(87.5, abs=0.05)
    assert (port["initiator_load"], port["volume_load"], port["allocation_disqualified"]) == (3, 1024, False)
    assert port["samples"] == {"first": 1, "measured": 2}


def test_without_a_whole_period_the_metric_is_not_available(call, write):
    words = ("metric", "--input", write(VMAX, "vmax.csv"), "--family", "vmax")
    assert call(*words, "--json")[0]["ports"]["FA-1"]["port_allocation_metric"] is None
    assert "N/A" in call(*words)[0]


def test_json_lines_say_the_same(call, write):
    header, *lines = VMAX.splitlines()
    names = header.split(",")
    text = "\n".join(json.dumps(dict(zip(names, line.split(","), strict=True))) for line in lines)
    config = minutes(write, 119)
    both = [
        call("metric", "--input", write(content, name), "--family", "vmax", "--config", config, "--json")[0]
        for content, name in ((VMAX, "vmax.csv"), (text, "vmax.jsonl"))
    ]
    assert both[0] == both[1]


def test_vnx_idle_ticks_are_100_ms(call, write):
    text = "sampleTime,cpu,port,kbytesTransferred,idle\n" + "".join(
        f"2026010100{minute:02}00.000000+000,SPA,SPA-0,{minute * 1000},{minute * 450}\n" for minute in (0, 1, 2)
    )
    config = write("version: 1\nallocation: {vnx: {days_to_average_utilization: 10001}}\n", "policy.yaml")
    words = ("metric", "--input", write(text, "vnx.csv"), "--family", "vnx", "--config", config, "--speed-gbps", 8)
    (port,) = call(*words, "--json")[0]["ports"].values()
    assert port["cpu_percent_busy"] == pytest.approx(25)


VPLEX = """Time,director,director.busy (%),director.fe-ops (counts/s),fe-prt.read A0 (KB/s),fe-prt.write A0 (KB/s)
2026-01-01 00:00:00,d1,40,900,65536,0
2026-01-01 00:00:30,d1,60,900,131072,65536
2026-01-01 00:05:00,d1,50,900,131072,0
"""


def test_vplex_rates_are_averaged_between_collections_and_never_differenced(call, write):
    config = write("version: 1\nallocation: {vplex: {days_to_average_utilization: 10004}}\n", "policy.yaml")
    words = (
        "metric",
        "--input",
        write(VPLEX, "vplex.csv"),
        "--family",
        "vplex",
        "--config",
        config,
        "--speed-gbps",
        2,
    )
    port = call(*words, "--json")[0]["ports"]["A0"]
    assert port["port_percent_busy"] == pytest.approx(50)
    assert port["cpu_percent_busy"] == pytest.approx(50)
    assert port["samples"] == {"measured": 2}


def test_openflow_counters_are_those_of_perf_rates(call, write):
    lines = [f"{at},1,2,{at * 50_000_000},0,0,0,,1000000000\n" for at in range(0, 130, 10)]
    text = "timestamp,dpid,port_no,rx_bytes,tx_bytes,rx_packets,tx_packets,duration_s,speed_bps\n" + "".join(lines)
    config = write("version: 1\nallocation: {openflow: {days_to_average_utilization: 10001}}\n", "policy.yaml")
    words = ("metric", "--input", write(text, "of.csv"), "--family", "openflow", "--config", config)
    port = call(*words, "--json")[0]["ports"]["1:2"]
    assert port["port_allocation_metric"] == pytest.approx(40)
    assert port["samples"] == {"first": 1, "measured": 12}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "bad.csv:1: the file is empty"),
        ("sampleTime,port,port\n", "port: the column is there twice"),
        ("sampleTime,port\n1,2,3\n", "bad.csv:2: 3 fields"),
        ("sampleTime,port,kbytesTransferred\nnoon,p,1\n", "bad.csv:2: sampleTime: expected yyyyMMddHHmmss"),
        ("sampleTime,port\n20260101000000.000000+000,p\n", "bad.csv:2: kbytesTransferred: missing"),
        (
            "sampleTime,port,kbytesTransferred\n20260101000000.000000+000,p,-1\n",
            "kbytesTransferred: expected a whole",
        ),
        ("sampleTime,port,kbytesTransferred\n20260101000000.000000+000,p,1\n", "portSpeedGbitPerSec: missing"),
        ("sampleTime,port,cpu\n20260101000000.000000+000,,\n", "port: missing, and so is cpu"),
        ("sampleTime,port,cpu\n20260101000000.000000+000,,c\n", "ticks: missing"),
    ],
)
def test_faulty_samples_name_file_line_and_field(call, write, text: str, words: str):
    _, err = call("metric", "--input", write(text, "bad.csv"), "--family", "vmax", status=2)
    assert words in err


def test_resets_clocks_that_jump_and_speeds_of_zero_are_named_outcomes(call, write):
    text = "sampleTime,port,portSpeedGbitPerSec,kbytesTransferred\n" + "".join(
        f"202601010000{second:02}.000000+000,p,{speed},{kbytes}\n"
        for second, speed, kbytes in ((10, 8, 100), (20, 8, 50), (15, 8, 60), (30, 0, 70), (40, 8, 80))
    )
    document, _ = call("metric", "--input", write(text, "odd.csv"), "--family", "hds", "--json")
    assert document["ports"]["p"]["samples"] == {
        "first": 1,
        "reset": 1,
        "time-backwards": 1,
        "no-speed": 1,
        "measured": 1,
    }


def test_a_faulty_policy_is_told_with_its_line(call, write):
    config = write("version: 1\nallocation: {vmax: {days_to_average_utilization: 31}}\n", "policy.yaml")
    _, err = call("metric", "--input", write(VMAX, "v.csv"), "--family", "vmax", "--config", config, status=2)
    assert "policy.yaml:2: allocation.vmax.days_to_average_utilization: 31 is not within 1 and 30" in err


def test_what_if_spreads_a_skewed_day_at_least_a_quarter_better_than_counts(call, tmp_path: Path):
    document, _ = call("whatif", "--json", "--plot", tmp_path / "plots")
    found = document["policies"]
    assert found["metric"]["p99_pct"] <= 0.75 * found["count"]["p99_pct"]
    assert found["metric"]["gini"] < found["random"]["gini"] < found["count"]["gini"]
    assert [Path(path).name for path in document["plots"]] == ["port-spread.png", "port-spread.svg"]
    assert all(Path(path).stat().st_size > 1000 for path in document["plots"])


def test_where_load_follows_attachments_counts_do_better_than_chance_and_metrics_best(call):
    found = {
        name: figures["p99_pct"] for name, figures in call("whatif", "--json")[0]["attached_day"]["policies"].items()
    }
    assert found["metric"] < found["count"] < found["random"]


def test_what_if_replays_files(call, write):
    samples = "timestamp,port,utilisation_pct,attached\n" + "".join(
        f"{at},{port},{busy},{attached}\n"
        for at in range(0, 14400, 300)
        for port, busy, attached in (("a", 60, 0), ("b", 5, 9))
    )
    requests = "timestamp,count,load_pct,duration_s\n7200,1,20,3600\n"
    ports = {"levels": ["pod"], "ports": [{"id": "a", "usage": 0, "components": {"pod": "x"}}]}
    words = ("--samples", write(samples, "s.csv"), "--requests-file", write(requests, "r.csv"), "--json")
    for more in ((), ("--ports-file", write(ports))):
        found = call("whatif", *words, *more)[0]["policies"]
        assert (found["metric"]["p99_pct"], found["count"]["p99_pct"]) == (60, 80)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--policies", "best"), "unknown policy 'best'"),
        (("--samples", "x"), "one needs the other"),
        (("--interval-s", "0"), "--interval-s"),
        (("--average-minutes", "0"), "--average-minutes"),
        (("--samples", "none.csv", "--requests-file", "none.csv"), "none.csv: No such file"),
    ],
)
def test_bad_words_of_what_if(call, words: tuple[str, ...], message: str):
    assert message in call("whatif", *words, status=2)[1]
