"""The table of a log, and the files that it is read from."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from apps.cli.change_file import read_baseline, read_changes
from apps.cli.common import InputError
from controller.policy_discovery.change_table import ChangeTable, tabulate

HEADER = "time,resource,type,property,old,new\n"
ALL = HEADER.strip().encode() + b",value\n"
PACKED = gzip.compress(ALL + b"".join(b"%d,a,port,mtu,1,2,3\n" % number for number in range(9999)))


def table_of(folder: Path, *lines: str, **asked: object) -> ChangeTable:
    path = folder / "changes.csv"
    path.write_text(HEADER + "".join(f"{line}\n" for line in lines))
    return tabulate(read_changes([path]).changes, **asked)  # type: ignore[arg-type]


def cells(table: ChangeTable) -> dict[tuple[str, str], str]:
    return {
        (name, prop): table.values[table.final[row, column]]
        for row, name in enumerate(table.resources)
        for column, prop in enumerate(table.properties)
        if table.indicator[row, column]
    }


def test_the_last_value_counts_and_the_first_old_one_is_the_baseline(tmp_path: Path) -> None:
    table = table_of(tmp_path, "3,a,port,mtu,9000,1500", "1,a,port,mtu,1500,9000", "2,b,port,mtu,1500,9000")
    assert cells(table) == {("b", "mtu"): "9000"}
    assert table.counted == {"lines": 3, "out_of_order": 1, "repeated": 0, "contradicting": 0}


def test_a_baseline_that_is_given_goes_before(tmp_path: Path) -> None:
    table = table_of(tmp_path, "1,a,port,mtu,1500,9000", "2,b,port,mtu,9000,1500", baseline={("port", "mtu"): "9000"})
    assert cells(table) == {("b", "mtu"): "1500"}


def test_only_the_window_counts_but_baselines_are_older(tmp_path: Path) -> None:
    table = table_of(tmp_path, "1,a,port,mtu,1500,9000", "900,b,port,mtu,4000,9000", window_s=100)
    assert (table.resources, cells(table)) == (("b",), {("b", "mtu"): "9000"})
    assert table.counted["before_window"] == 1


def test_lines_that_repeat_or_contradict_are_counted(tmp_path: Path) -> None:
    lines = ("1,a,port,mtu,1500,9000", "1,a,port,mtu,1500,9000", "2,a,port,mtu,1234,4000")
    assert table_of(tmp_path, *lines).counted == {
        "lines": 3,
        "out_of_order": 0,
        "repeated": 1,
        "contradicting": 1,
    }


def test_what_is_no_column_is_named(tmp_path: Path) -> None:
    lines = [f"1,r{n},port,serial,,s{n}" for n in range(20)] + [f"1,r{n},port,mtu,1,2" for n in range(20)]
    table = table_of(tmp_path, *lines, "1,r0,port,back,1,1", "1,r0,port,noise,1,2", ignored=["noise"])
    assert table.properties == ("mtu",)
    assert table.left_out == {"ignored": ["noise"], "identifiers": ["serial"], "unchanged": ["back"]}


def test_an_inventory_has_resources_that_did_not_change_and_types_what_applies(tmp_path: Path) -> None:
    table = table_of(
        tmp_path, "1,a,port,mtu,1,2", "1,s,switch,mode,1,2", inventory={"b": "port", "s": "switch", "x": "fan"}
    )
    assert table.resources == ("a", "b", "s", "x")
    assert table.applicable[:, table.properties.index("mtu")].tolist() == [True, True, False, False]


def test_every_format_says_the_same(tmp_path: Path) -> None:
    rows = [
        ["2026-01-02T03:04:05Z", "a\u0007<b>", "port", "mtu", "", "9000"],
        ["2026-01-02T03:04:06Z", "b", "port", "mtu", "1500", "NaN"],
    ]
    names = HEADER.strip().split(",")
    text = HEADER + "".join(",".join(row) + "\n" for row in rows)
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
    pa.parquet.write_table(
        pa.table({name: [row[n] for row in rows] for n, name in enumerate(names)}), tmp_path / "a.parquet"
    )
    told = []
    for name in ("a.csv", "a.csv.gz", "a.jsonl", "a.parquet"):
        log = read_changes([tmp_path / name])
        told.append((cells(tabulate(log.changes)), log.changes.time_s.tolist()))
    assert told[0][0] == {("a\u0007<b>", "mtu"): "9000", ("b", "mtu"): "NaN"}
    assert all(one == told[0] for one in told)


def test_files_that_overlap_count_once(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(HEADER + "1,a,port,mtu,1,2\n")
    log = read_changes([tmp_path / "a.csv", tmp_path / "a.csv"])
    assert tabulate(log.changes).counted["repeated"] == 1


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("time,resource\n", ":1: type: the column is missing"),
        (HEADER + "1,a,port,mtu,1,2\n5,short\n2,a,port,mtu,1,2\n", ":3: 2 fields"),
        (HEADER + "yesterday,a,port,mtu,1,2\n", "time: expected ISO 8601"),
        (HEADER + "9e15,a,port,mtu,1,2\n", "out of the range"),
        (HEADER + "nan,a,port,mtu,1,2\n", "time: nan is out of the range"),
        (HEADER + "1,a,port,mtu,1,2\n,a,port,mtu,1,2\n", "time: expected ISO 8601 or epoch seconds, found ''"),
        ('{"time": 1}\n', ":1: resource: the field is missing"),
        ('{"time": 1\n{}\n', ":1: the line is no JSON object"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_place(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "changes"
    path.write_text(text)
    with pytest.raises(InputError) as told:
        read_changes([path])
    assert str(told.value).startswith(str(path))
    assert fault in str(told.value)


@pytest.mark.parametrize(
    "text",
    [
        HEADER + "1,a,port,mtu,1,2\n2,b,po",
        '{"time": 1, "resource": "a", "type": "port", "property": "mtu", "old": 1, "new": 2}\n{"time": 2, "res',
    ],
)
def test_a_last_line_that_is_torn_is_left_out_with_a_note(tmp_path: Path, text: str) -> None:
    path = tmp_path / "changes"
    path.write_text(text)
    log = read_changes([path])
    assert len(log.changes.time_s) == 1
    assert log.notes[0].startswith(f"{path}:3: " if text.startswith("time") else f"{path}:2: ")
    assert log.notes[0].endswith(", and is left out")


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("a.csv", ALL + b"1,\xff,port,mtu,1,2,3\n", ": the file is not text in UTF-8"),
        ("a.csv", ALL + b'1,a,port,"' + bytes(200_000), ": field larger than field limit"),
        ("a.csv.gz", PACKED[:-12], ": (the compressed file ends too early|Truncated compressed stream)$"),
        ("a.csv.gz", PACKED[:10] + b"\xff" * 20 + PACKED[30:], ": the compressed file is damaged$"),
        ("a.csv.gz", b"no gzip", ": Not a gzipped file"),
        ("a.csv", None, ": No such file"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, content: bytes | None, fault: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    for read in (lambda: read_changes([path]), lambda: read_baseline(path)):
        with pytest.raises(InputError) as told:
            read()
        assert re.match(re.escape(str(path)) + "(:[0-9]+)?" + fault, str(told.value))


def test_times_without_a_zone_are_utc_with_a_note(tmp_path: Path) -> None:
    path = tmp_path / "changes.csv"
    path.write_text(HEADER + "1970-01-01 00:01:00,a,port,mtu,1,2\n")
    log = read_changes([path])
    assert log.changes.time_s.tolist() == [60.0]
    assert log.notes == [f"{path}: times without a zone are taken as UTC"]
