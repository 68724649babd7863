from __future__ import annotations

import json
from pathlib import Path

import pytest

from apps.cli.main import main

HEADER = "timestamp,dpid,port_no,rx_bytes,tx_bytes,rx_packets,tx_packets,duration_s,speed_bps"


def rates(tmp_path: Path, capsys: pytest.CaptureFixture[str], *lines: str, header: str = HEADER) -> dict:
    path = tmp_path / "samples.csv"
    path.write_text("\n".join((header, *lines, "")), encoding="utf-8")
    assert main(["perf", "rates", "--input", str(path), "--json"]) == 0
    return json.loads(capsys.readouterr().out)["ports"]


def refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> str:
    path = tmp_path / "samples.csv"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert main(["perf", "rates", "--input", str(path), "--json"]) == 2
    found = capsys.readouterr()
    assert found.out == ""
    return found.err.removeprefix(f"vsrt: {path}").strip()


def test_means_are_over_the_measured_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    found = rates(
        tmp_path,
        capsys,
        "1000,1,2,0,0,0,0,50,1000000000",
        "1010,1,2,125000000,12500000,1000,100,60,1000000000",
        "1030,1,2,375000000,37500000,3000,300,80,1000000000",
    )
    assert found == {
        "1:2": {
            "rx_bps": 1e8,
            "tx_bps": 1e7,
            "rx_pps": 100,
            "tx_pps": 10,
            "utilisation_pct": pytest.approx(10),
            "discontinuities": [],
        }
    }


def test_discontinuities_are_left_out_and_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    found = rates(
        tmp_path,
        capsys,
        "0,1,1,4294967000,0,1000000,0,,1000000000",
        "10,1,1,704,0,1000010,0,,1000000000",
        "20,1,1,1704,0,1000020,0,,1000000000",
        "30,1,1,300,0,3,0,,1000000000",
        "40,1,1,1300,0,13,0,,1000000000",
        "35,1,1,900,0,9,0,,1000000000",
        "50,1,1,2300,0,23,0,,1000000000",
    )["1:1"]
    assert found["rx_bps"] == 800 and found["rx_pps"] == 1
    assert [(entry["time"], entry["kind"]) for entry in found["discontinuities"]] == [
        (10, "wrap-32"),
        (30, "reset"),
        (35, "time-backwards"),
    ]


def test_a_port_created_again_and_a_64_bit_wrap(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    top = (1 << 64) - 1000
    found = rates(
        tmp_path,
        capsys,
        f"0,1,1,{top},5,100,5,1000,1000000000",
        "10,1,1,0,5,110,5,1010,1000000000",
        "20,1,1,9000,7,990,9,4,1000000000",
        "30,1,1,10000,7,1000,9,14,1000000000",
    )["1:1"]
    assert found["rx_bps"] == 800
    assert [entry["kind"] for entry in found["discontinuities"]] == ["wrap-64", "recreated"]


def test_what_is_unsupported_or_unknown_is_null(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    top = (1 << 64) - 1
    found = rates(tmp_path, capsys, f"0,1,1,0,{top},0,0,,", f"10,1,1,1000,{top},0,0,,", "0,2,1,7,7,7,7,,1000")
    assert found["1:1"]["tx_bps"] is None and found["1:1"]["rx_bps"] == 800
    assert found["1:1"]["utilisation_pct"] is None, "its capacity is not known"
    assert found["1:1"]["discontinuities"] == [{"time": 0, "kind": "unsupported", "counters": ["tx_bytes"]}]
    assert found["2:1"]["rx_bps"] is None and found["2:1"]["utilisation_pct"] is None


def test_utilisation_is_that_of_the_busier_direction(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    found = rates(tmp_path, capsys, "0,1,1,0,0,0,0,,8000", "10,1,1,1000,4000,0,0,,8000")
    assert found["1:1"]["utilisation_pct"] == pytest.approx(40)


def test_optional_columns_may_be_missing_and_columns_in_any_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    found = rates(
        tmp_path,
        capsys,
        "0,x,1,0x10,0,0,0,0",
        "10,x,1,16,0,0,1000,0",
        header="timestamp,note,port_no,dpid,tx_bytes,tx_packets,rx_bytes,rx_packets",
    )
    assert list(found) == ["16:1"] and found["16:1"]["rx_bps"] == 800


def test_a_file_without_samples_has_no_ports(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert rates(tmp_path, capsys) == {}


def test_the_table_shows_every_port(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "samples.csv"
    path.write_text(f"{HEADER}\n0,1,1,0,0,0,0,,\n10,1,1,1000,0,0,0,,\n", encoding="utf-8")
    assert main(["perf", "rates", "--input", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:3] == ["0000000000000001:1", "800", "0"]


GOOD = "0,1,1,0,0,0,0,,1000"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("10,1,1,x,0,0,0,,1000", ":3: rx_bytes: expected a whole number, found 'x'"),
        ("10,1,1,1.5,0,0,0,,1000", ":3: rx_bytes: expected a whole number, found '1.5'"),
        ("10,1,1,-5,0,0,0,,1000", ":3: rx_bytes: -5 is out of range"),
        ("10,1,1,18446744073709551616,0,0,0,,1000", ":3: rx_bytes: 18446744073709551616 is out of range"),
        (",1,1,0,0,0,0,,1000", ":3: timestamp: expected a number, found nothing"),
        ("nan,1,1,0,0,0,0,,1000", ":3: timestamp: nan is out of range"),
        ("inf,1,1,0,0,0,0,,1000", ":3: timestamp: inf is out of range"),
        ("10,,1,0,0,0,0,,1000", ":3: dpid: expected a number, found nothing"),
        ("10,1,4294967296,0,0,0,0,,1000", ":3: port_no: 4294967296 is out of range"),
        ("10,1,1,0,0,0,0,,-1", ":3: speed_bps: -1 is out of range"),
        ("10,1,1,0,0,0,0,nan,1000", ":3: duration_s: nan is out of range"),
        ("10,1,1,0,0,0,0,fast,1000", ":3: duration_s: expected a number, found 'fast'"),
        ("10,1,1,0,0,0", ":3: 6 fields; the header has 9"),
    ],
)
def test_a_bad_line_is_named_with_its_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, message: str
):
    assert refused(tmp_path, capsys, f"{HEADER}\n{GOOD}\n{line}\n") == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ":1: the file is empty"),
        ("timestamp,dpid\n", ":1: port_no: the column is missing"),
        (f"{HEADER},dpid\n", ":1: dpid: the column is there twice"),
        (f"{HEADER}\n\udcff\n", ": the file is not text in UTF-8"),
        ("\udcff\n", ": the file is not text in UTF-8"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str):
    assert refused(tmp_path, capsys, text).startswith(message)


def test_a_missing_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["perf", "rates", "--input", str(tmp_path / "none.csv")]) == 2
    assert "none.csv: No such file" in capsys.readouterr().err
