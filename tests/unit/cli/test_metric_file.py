from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import numpy as np
import pytest

from apps.cli.common import InputError
from apps.cli.metric_file import MetricFile, read_metric_file
from controller.anomaly.series import RawSeries, SeriesName

SADC = Path("/usr/lib/sysstat/sadc")
AT_S = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()


def written(tmp_path: Path, *lines: str, name: str = "metrics.csv") -> Path:
    path = tmp_path / name
    path.write_text("\n".join((*lines, "")), encoding="utf-8")
    return path


def plain(found: MetricFile) -> dict[tuple[str, ...], list[tuple[float, float]]]:
    return {tuple(one.name): list(zip(one.at_s.tolist(), one.values.tolist(), strict=True)) for one in found.series}


def refused(path: Path, **options: str) -> str:
    with pytest.raises(InputError) as caught:
        read_metric_file(path, **options)
    return str(caught.value).replace(str(path), "FILE")


LONG = (
    "timestamp,member,peer_group,metric,value",
    "1000,p1,up,await,1.5",
    "1000,p2,up,await,2.5",
    "1000,p1,up,tps,10",
    "1015,p1,up,await,",
    "1015,p2,up,await,inf",
)


def test_long_form_is_split_by_group_member_and_metric(tmp_path: Path):
    found = plain(read_metric_file(written(tmp_path, *LONG)))
    assert found.pop(("p1", "up", "await"))[0] == (1000, 1.5)
    assert found == {("p2", "up", "await"): [(1000, 2.5), (1015, np.inf)], ("p1", "up", "tps"): [(1000, 10)]}


def test_an_empty_value_is_kept_as_missing(tmp_path: Path):
    found = {one.name: one for one in read_metric_file(written(tmp_path, *LONG), metric="await").series}
    assert np.isnan(found[SeriesName("p1", "up", "await")].values[1])
    assert len(found) == 2


def test_parquet_and_packed_csv_say_the_same_as_csv(tmp_path: Path):
    path = written(tmp_path, *(line for line in LONG if not line.endswith(",")))
    expected = plain(read_metric_file(path))
    packed = tmp_path / "metrics.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    duckdb.sql(f"copy (select * from '{path}') to '{tmp_path / 'm.parquet'}' (format parquet)")
    assert plain(read_metric_file(packed)) == expected
    assert plain(read_metric_file(tmp_path / "m.parquet")) == expected


@pytest.mark.parametrize(
    ("stamp", "notes"),
    [
        ("2026-03-01T12:00:00Z", 0),
        ("2026-03-01T13:00:00+01:00", 0),
        ("2026-03-01 12:00:00", 1),
        ("2026-03-01T12:00:00.000", 1),
        (f"{AT_S:.1f}", 0),
        (f"{AT_S:.0f}", 0),
    ],
)
@pytest.mark.parametrize("other", ["2026-03-01T11:59:00Z", "2026-03-01 11:59:00", f"{AT_S - 60:.0f}"])
def test_times_of_every_kind_and_mixed(tmp_path: Path, stamp: str, notes: int, other: str):
    found = read_metric_file(written(tmp_path, "timestamp,a", f"{other},1", f"{stamp},2"))
    assert found.series[0].at_s.tolist() == [AT_S - 60, AT_S]
    assert len(found.notes) == max(notes, other.count(" "))


def test_wide_form_has_one_member_per_column(tmp_path: Path):
    found = plain(read_metric_file(written(tmp_path, "timestamp,a,b", "1,2,3", "2,,5")))
    assert list(found) == [("a", "all", "value"), ("b", "all", "value")]
    assert found["b", "all", "value"] == [(1, 3), (2, 5)]


def test_the_peer_group_may_be_another_column(tmp_path: Path):
    path = written(tmp_path, "timestamp,member,tier,value", "1,a,leaf,2", "1,b,spine,3")
    assert [one.name.peer_group for one in read_metric_file(path, peer_group="tier").series] == ["leaf", "spine"]
    assert {one.name.peer_group for one in read_metric_file(path).series} == {"all"}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((), "FILE:1: the file is empty; expected timestamp and values"),
        (("time,a", "1,2"), "FILE:1: timestamp: the column is missing"),
        (("timestamp", "1"), "FILE:1: no column beside timestamp"),
        (("timestamp,a,a", "1,2,3"), "FILE:1: a: the column is there twice"),
        (("timestamp,a", "1,2", "2,x"), "FILE:3: a: expected a number, found 'x'"),
        (("timestamp,a", "1,2", "2"), "FILE:3: 1 fields; the header has 2"),
        (("timestamp,a", "soon,2"), "FILE: row 1: timestamp: expected ISO 8601 or epoch seconds, found 'soon'"),
        (("timestamp,a", "1760000000000,2"), "FILE: row 1: timestamp: 1.76e+12 is out of the range of epoch seconds"),
        (("timestamp,a", "nan,2"), "FILE: row 1: timestamp: expected a time, found nothing"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, lines: tuple[str, ...], message: str):
    path = tmp_path / "metrics.csv"
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    assert refused(path) == message


def test_unknown_metric_group_column_and_file(tmp_path: Path):
    path = written(tmp_path, *LONG)
    assert refused(path, metric="x") == "FILE: metric: no 'x' in the file; it holds await, tps"
    assert refused(path, peer_group="rack") == "FILE:1: rack: the column of peer groups is missing"
    assert refused(tmp_path / "none.csv") == "FILE: No such file or directory"
    assert "not text in UTF-8" in refused_bytes(tmp_path, b"timestamp,a\n1,\xff\n")
    assert refused_bytes(tmp_path, b"PAR1 and no more") != ""


def refused_bytes(tmp_path: Path, content: bytes) -> str:
    path = tmp_path / "odd"
    path.write_bytes(content)
    return refused(path)


SADF = (
    "# hostname;interval;timestamp;DEV;tps;await",
    "io1;15;2026-03-01 12:00:00 UTC;sda;10.00;1.50",
    "io1;15;2026-03-01 12:00:00 UTC;sdb;20.00;2.50",
    "io1;-1;2026-03-01 12:00:07 UTC;LINUX-RESTART\t(4 CPU)",
    "# hostname;interval;timestamp;runq-sz;ldavg-1",
    "io1;15;2026-03-01 12:00:15 UTC;3;0.25",
)


def test_sadf_d_has_a_member_per_host_and_device(tmp_path: Path):
    found = read_metric_file(written(tmp_path, *SADF))
    assert plain(found) == {
        ("io1:sda", "DEV", "tps"): [(AT_S, 10)],
        ("io1:sda", "DEV", "await"): [(AT_S, 1.5)],
        ("io1:sdb", "DEV", "tps"): [(AT_S, 20)],
        ("io1:sdb", "DEV", "await"): [(AT_S, 2.5)],
        ("io1", "host", "runq-sz"): [(AT_S + 15, 3)],
        ("io1", "host", "ldavg-1"): [(AT_S + 15, 0.25)],
    }
    assert len(found.notes) == 1 and "1 restarts" in found.notes[0]


def test_sadf_j_has_a_member_per_host_and_device(tmp_path: Path):
    stamp = {"date": "2026-03-01", "time": "12:00:00", "utc": 1, "interval": 15}
    entry = {
        "timestamp": stamp,
        "disk": [{"disk-device": "sda", "tps": 10.0, "await": 1.5}],
        "network": {"net-dev": [{"iface": "eth0", "rxkB": 2.0}]},
        "queue": {"runq-sz": 3},
    }
    document = {"sysstat": {"hosts": [{"nodename": "io1", "statistics": [entry]}]}}
    assert plain(read_metric_file(written(tmp_path, json.dumps(document), name="sa.json"))) == {
        ("io1:sda", "disk", "tps"): [(AT_S, 10)],
        ("io1:sda", "disk", "await"): [(AT_S, 1.5)],
        ("io1:eth0", "net-dev", "rxkB"): [(AT_S, 2)],
        ("io1", "queue", "runq-sz"): [(AT_S, 3)],
    }


def test_totals_are_no_peers_of_what_they_are_totals_of(tmp_path: Path):
    lines = (
        "# hostname;interval;timestamp;CPU;%usr;%idle",
        "vm;1;2026-03-01 12:00:00 UTC;-1;0.50;99.50",
        "vm;1;2026-03-01 12:00:00 UTC;0;1.00;99.00",
        "# hostname;interval;timestamp;INTR;CPU*",
        "vm;1;2026-03-01 12:00:00 UTC;sum;102.00;70.00;32.00",
        "vm;1;2026-03-01 12:00:00 UTC;24;3.00;2.00;1.00",
    )
    found = plain(read_metric_file(written(tmp_path, *lines)))
    assert {name[:2] for name in found} == {
        ("vm", "CPU:all"),
        ("vm:0", "CPU"),
        ("vm", "INTR:all"),
        ("vm:24", "INTR"),
    }
    assert found["vm:24", "INTR", "total"] == [(AT_S, 3)]
    assert (found["vm", "INTR:all", "cpu0"], found["vm", "INTR:all", "cpu1"]) == ([(AT_S, 70)], [(AT_S, 32)])
    entry = {
        "timestamp": {"date": "2026-03-01", "time": "12:00:00", "utc": 1, "interval": 1},
        "cpu-load": [{"cpu": "all", "idle": 99.5}, {"cpu": "0", "idle": 99.0}],
        "network": {"net-dev": [{"iface": "lo", "rxpck": 1}], "net-sock": {"totsck": 4}},
    }
    document = {"sysstat": {"hosts": [{"nodename": "vm", "statistics": [entry], "restarts": [{"boot": {}}]}]}}
    as_json = read_metric_file(written(tmp_path, json.dumps(document), name="sa.json"))
    assert {tuple(one.name) for one in as_json.series} == {
        ("vm", "cpu-load:all", "idle"),
        ("vm:0", "cpu-load", "idle"),
        ("vm:lo", "net-dev", "rxpck"),
        ("vm", "network", "net-sock.totsck"),
    }
    assert "1 restarts" in as_json.notes[0]


def test_activities_that_share_a_name_are_kept_apart(tmp_path: Path):
    lines = (
        "# hostname;interval;timestamp;call/s;retrans/s",
        "vm;1;2026-03-01 12:00:00 UTC;1;2",
        "# hostname;interval;timestamp;atmptf/s;retrans/s",
        "vm;1;2026-03-01 12:00:00 UTC;3;4",
    )
    found = plain(read_metric_file(written(tmp_path, *lines)))
    assert found["vm", "host", "retrans/s"] == [(AT_S, 2)]
    assert found["vm", "host", "atmptf/s:retrans/s"] == [(AT_S, 4)]


def test_what_is_plugged_in_is_no_measurement(tmp_path: Path):
    found = read_metric_file(
        written(
            tmp_path,
            "# hostname;interval;timestamp;BUS;idvendor;idprod;maxpower;manufact;product",
            "vm;1;2026-03-01 12:00:00 UTC;1;1d6b;2;0;Linux;xHCI Host Controller",
        )
    )
    assert (found.series, len(found.notes)) == ([], 1)


@pytest.mark.skipif(not SADC.exists() or shutil.which("sadf") is None, reason="needs sysstat")
@pytest.mark.parametrize("form", ["-d", "-j"])
@pytest.mark.parametrize("activities", [("-d",), ("-n", "ALL"), ("-u", "ALL", "-P", "ALL"), ("-A",)])
def test_what_sysstat_itself_writes_is_read(activity_file: Path, form: str, activities: tuple[str, ...]):
    words = ["sadf", form, str(activity_file), "--", *activities]
    output = activity_file.with_name("sadf.out")
    output.write_text(subprocess.run(words, capture_output=True, text=True, check=True).stdout, encoding="utf-8")
    found = read_metric_file(output)
    assert found.notes == []
    assert {len(one.values) for one in found.series} <= {2}
    if "-n" in activities:
        assert any(one.name.member.endswith(":lo") for one in found.series)


@pytest.fixture(scope="module")
def activity_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sysstat") / "sa"
    subprocess.run([str(SADC), "-S", "XALL", "1", "3", str(path)], check=True)
    return path


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("io1;15;2026-03-01 12:00:00 UTC;sda;10.00", "FILE:2: 5 fields; the header has 6"),
        ("io1;15;2026-03-01 12:00:00 UTC;sda;x;1", "FILE:2: tps: expected a number, found 'x'"),
        ("io1;15;12h;sda;10;1", "FILE:2: timestamp: expected a time, found '12h'"),
    ],
)
def test_what_is_wrong_in_sadf_is_named(tmp_path: Path, line: str, message: str):
    assert refused(written(tmp_path, SADF[0], line)) == message


def test_series_of_a_file_keep_the_order_of_their_samples(tmp_path: Path):
    path = written(tmp_path, "timestamp,member,value", "3,a,1", "1,b,2", "2,a,3", "2,a,4")
    found = {one.name.member: one for one in read_metric_file(path).series}
    assert isinstance(found["a"], RawSeries)
    assert found["a"].at_s.tolist() == [3, 2, 2]
    assert found["a"].values.tolist() == [1, 3, 4]


def test_a_header_without_rows_has_no_samples(tmp_path: Path):
    assert read_metric_file(written(tmp_path, "timestamp,member,value")).series == []
    (wide,) = read_metric_file(written(tmp_path, "timestamp,a")).series
    assert len(wide.at_s) == len(wide.values) == 0
