"""`vsrt overcommit`: its documents, its tables, and what it says of bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from apps.cli.main import main

TABLE: dict[str, Any] = {
    "table": 60,
    "tax_pct": 75,
    "tenants": [{"name": "busy", "active": 60}, {"name": "idle", "active": 0, "reservation": 5, "limit": 40}],
}
PACKETS = "time_s,group\n0,a\n1,b\n1.5,a\n2,b\n"


def run(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> tuple[str, str]:
    found = main(["overcommit", *words])
    out, err = capsys.readouterr()
    assert found == status, err
    return out, err


@pytest.fixture
def written(tmp_path: Path):
    def write(content: str | dict[str, Any], name: str = "input") -> str:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    return write


def test_shares(capsys: pytest.CaptureFixture[str], written):
    path = written(TABLE)
    document = json.loads(run(capsys, "shares", "--input", path, "--json")[0])
    assert document == {
        "tenants": {"busy": {"entitled": 48, "swap_slots": 60}, "idle": {"entitled": 12, "swap_slots": 35}}
    }
    lines = run(capsys, "shares", "--input", path)[0].splitlines()
    assert lines[0].split() == ["tenant", "entitled", "to", "swap", "slots"]
    assert lines[1].split() == ["busy", "48.0", "60"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tax_pct": 100}, "tax_pct: 100 is not from 0 to 99"),
        ({"table": -1}, "table: -1 is not a number from 0 on"),
        (
            {"tenants": [{"name": "a", "active": 1, "reservation": 61, "limit": 70}]},
            "tenants: the reservations are 61",
        ),
        (
            {"tenants": [{"name": "a", "active": 1, "reservation": 9, "limit": 8}]},
            "tenants[0].reservation: 9 is above",
        ),
        ({"tenants": [{"name": "a", "active": 1, "shares": 0}]}, "tenants[0].shares: 0 is not above 0"),
        ({"tenants": [{"name": "a", "active": 1}] * 2}, "tenants[1].name: 'a' is the name of another tenant"),
        ({"tenants": [{"name": "a"}]}, "tenants[0].active: missing"),
        ({"tenants": [{"name": "a", "active": 1, "wight": 1}]}, "tenants[0].wight: unknown field"),
        ({"tenants": {}}, "tenants: expected a list"),
    ],
)
def test_faults_of_shares_are_told_with_their_place(capsys, written, change: dict[str, Any], said: str):
    path = written(TABLE | change)
    _, err = run(capsys, "shares", "--input", path, status=2)
    assert f"{path}: {said}" in err


def test_simulate(capsys: pytest.CaptureFixture[str], written, tmp_path: Path):
    path = written(PACKETS)
    document = json.loads(run(capsys, "simulate", "--trace", path, "--table", "2", "--json")[0])
    assert document == {
        "packets": 4,
        "misses": 2,
        "swaps_in": 2,
        "swaps_out": 0,
        "readings": 2,
        "max_resident": 2,
    }
    table = pa.table({"group": [7, 8, 7, 8], "time_s": [100, 101, 102, 103]})
    pyarrow.parquet.write_table(table, tmp_path / "packets.parquet")
    words = ("--trace", str(tmp_path / "packets.parquet"), "--table", "1", "--policy", "lru")
    assert json.loads(run(capsys, "simulate", *words, "--json")[0])["misses"] == 4
    # The warm-up is counted from the first packet on.
    warm = json.loads(run(capsys, "simulate", *words, "--warmup-s", "2", "--json")[0])
    assert (warm["packets"], warm["misses"]) == (2, 2)
    assert run(capsys, "simulate", *words)[0].splitlines()[1].split()[:2] == ["4", "4"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", ":1: no column time_s; expected time_s, group, found none"),
        ("time_s,groups\n0,a\n", ":1: no column group; expected time_s, group, found time_s, groups"),
        ("time_s,group\n0,a\nsoon,a\n", ":3: time_s: 'soon' is no number of seconds"),
        ("time_s,group\n0,a\n,b\n", ":3: time_s: '' is no number of seconds"),
        ("time_s,group\n0,a\nnan,b\n", ":3: time_s: nan is no number of seconds"),
        ("time_s,group\n5,a\n4,a\n", ":3: time_s: 4 is before the packet in front of it"),
        ("time_s,group\n0,a\n1\n", "Expected 2 columns, got 1"),
    ],
)
def test_faults_of_traces_are_told_with_their_line(capsys, written, content: str, said: str):
    _, err = run(capsys, "simulate", "--trace", written(content), "--table", "2", status=2)
    assert said in err


def test_a_row_of_a_parquet_file_is_told(capsys, tmp_path: Path):
    path = tmp_path / "packets.parquet"
    pyarrow.parquet.write_table(pa.table({"group": ["a", None], "time_s": [1.0, 2.0]}), path)
    _, err = run(capsys, "simulate", "--trace", str(path), "--table", "2", status=2)
    assert f"{path}: row 2: group: missing" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--table", "0"), "--table: 0 is not a whole number from 1"),
        (("--table", "1", "--latency-ms", "-1"), "--latency-ms: -1 is not a number from 0 on"),
        (("--table", "1", "--warmup-s", "inf"), "--warmup-s: inf is not a number from 0 on"),
    ],
)
def test_faults_of_options_are_told(capsys, written, words: tuple[str, ...], said: str):
    assert said in run(capsys, "simulate", "--trace", written(PACKETS), *words, status=2)[1]


def test_a_trace_without_packets_is_one_without_misses(capsys, written):
    path = written("time_s,group\n")
    assert json.loads(run(capsys, "simulate", "--trace", path, "--table", "1", "--json")[0])["packets"] == 0
    assert "No such file" in run(capsys, "simulate", "--trace", f"{path}x", "--table", "1", status=2)[1]


def shared_trace() -> str:
    """Return 80 groups of `idle` that send for 20 s, then 80 of `busy` and 5 of nobody that send on for a minute."""
    rows = [(second, f"i{number}") for second in range(20) for number in range(80)]
    sending = [*(f"b{number}" for number in range(80)), *(f"n{number}" for number in range(5))]
    rows += [(60 + second / 2, name) for second in range(120) for name in sending]
    return "time_s,group\n" + "".join(f"{at_s},{name}\n" for at_s, name in rows)


SHARING: dict[str, Any] = {
    "tax_pct": 75,
    "tenants": [
        {"name": "idle", "groups": [f"i{number}" for number in range(80)], "reservation": 9},
        {"name": "busy", "shares": 2, "groups": [f"b{number}" for number in range(80)]},
    ],
}


def test_tenants_of_a_trace_end_with_what_they_are_entitled_to(capsys, written):
    trace, sharing = written(shared_trace(), "trace"), written(SHARING, "sharing")
    words = ("simulate", "--trace", trace, "--table", "60", "--tenants", sharing, "--json")
    found = json.loads(run(capsys, *words)[0])
    tenants = found["tenants"]
    assert list(tenants) == ["", "busy", "idle"]
    assert sum(each["packets"] for each in tenants.values()) == found["packets"]
    assert sum(each["misses"] for each in tenants.values()) == found["misses"]
    assert {name: each["resident"] for name, each in tenants.items()} == {"": 5, "busy": 46, "idle": 9}
    assert tenants["idle"]["entitled"] == 9
    assert tenants["busy"]["entitled"] < 46 < tenants["busy"]["entitled"] + tenants[""]["entitled"]
    without = json.loads(run(capsys, *words, "--policy", "lru")[0])["tenants"]
    assert without["idle"]["resident"] == 0
    assert without["busy"]["entitled"] is None


def test_a_tenant_of_a_trace_has_no_more_than_its_limit_though_there_is_room(capsys, written):
    sharing = written({"tax_pct": 0, "tenants": [{**SHARING["tenants"][1], "limit": 7}]}, "sharing")
    trace = written(shared_trace(), "trace")
    lines = run(capsys, "simulate", "--trace", trace, "--table", "500", "--tenants", sharing)[0].splitlines()
    rows = [line.split() for line in lines[2:]]
    assert rows[0] == ["tenant", "packets", "misses", "resident", "entitled"]
    assert [row[:1] + row[3:4] for row in rows[1:]] == [["(none)", "85"], ["busy", "7"]]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tax_pct": 100}, "tax_pct: 100 is not from 0 to 99"),
        ({"tenants": [{"name": "a", "groups": ["x"], "reservation": 61, "limit": 70}]}, "the reservations are 61"),
        ({"tenants": [{"name": "a"}]}, "tenants[0].groups: missing"),
        (
            {"tenants": [{"name": n, "groups": ["x"]} for n in "ab"]},
            "tenants[1].groups: 'x' is of tenant 'a' already",
        ),
        ({"tenants": [{"name": "a", "groups": []}] * 2}, "tenants[1].name: 'a' is the name of another tenant"),
    ],
)
def test_faults_of_tenants_of_a_trace_are_told_with_their_place(capsys, written, change: dict[str, Any], said: str):
    path = written(SHARING | change, "sharing")
    words = ("--trace", written(PACKETS), "--table", "60", "--tenants", path)
    assert f"{path}: " in (err := run(capsys, "simulate", *words, status=2)[1])
    assert said in err
