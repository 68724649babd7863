"""What is in the files of the history, and what becomes of them."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from apps.exporters.history import read_history
from apps.exporters.history_sink import HistorySink
from apps.exporters.parts import FilePeriod, list_parts, remove_old
from apps.exporters.schema import SCHEMAS, HistoryFileError, RecordKind
from controller.performance.batch import Discontinuity
from controller.performance.counters import COUNTERS, UNSUPPORTED

HOUR_S = 1_700_002_800.0
"""2023-11-14 23:00 UTC."""

Opener = Callable[..., HistorySink]


def names(directory: Path, kind: RecordKind = RecordKind.COUNTERS) -> list[str]:
    return sorted(path.name for path in (directory / kind).iterdir())


def read(directory: Path | list[Path], kind: RecordKind = RecordKind.COUNTERS, **options: Any) -> pa.Table:
    return read_history(directory, kind, **({"since_s": 0, "until_s": 1e10} | options))


def test_duckdb_reads_counters_and_rates(fabric: Any, open_history: Opener, tmp_path: Path) -> None:
    sink = open_history()
    sink.write(fabric.batch(HOUR_S + 1.25, 7, unsupported=(8, 11)))
    sink.write(fabric.batch(HOUR_S + 11.25, 8, kind=Discontinuity.RESET))
    sink.close()
    assert duckdb.sql(
        "SELECT epoch(timestamp), dpid, port_no, duration_s, speed_bps, rx_packets, rx_frame_err, collisions"
        f" FROM '{tmp_path}/counters/*.parquet' WHERE dpid = 2 AND port_no = 3 ORDER BY ALL"
    ).fetchall() == [
        (HOUR_S + 1.25, 2, 3, 60.0, 1e9, 7 + 5, None, None),
        (HOUR_S + 11.25, 2, 3, 60.0, 1e9, 8 + 5, 8 + 5 + 800, 8 + 5 + 1100),
    ]
    found = duckdb.sql(
        "SELECT interval_s, tx_bytes_per_s, rx_frame_err_per_s, rx_utilisation_pct, tx_utilisation_pct, discontinuity"
        f" FROM '{tmp_path}/rates/*.parquet' WHERE dpid = 1 AND port_no = 1 ORDER BY timestamp"
    ).fetchall()
    assert found[0] == (10.0, pytest.approx(0.7), None, 12.5, 50.0, None)
    assert found[1] == (10.0, pytest.approx(0.8), pytest.approx(0.8), None, None, "reset")


def test_counters_keep_all_their_64_bits(fabric: Any, open_history: Opener, tmp_path: Path) -> None:
    sink, batch = open_history(), fabric.batch(HOUR_S)
    batch.samples.counters[:, 2] = UNSUPPORTED - 1
    batch.samples.counters[:, 3] = (1 << 63) + 1
    sink.write(batch)
    sink.close()
    table = pq.read_table(tmp_path / "counters")
    assert table["rx_bytes"].to_pylist() == [UNSUPPORTED - 1] * 6
    assert table["tx_bytes"].to_pylist() == [(1 << 63) + 1] * 6


def test_columns_have_plain_types_and_encodings_that_others_read(
    fabric: Any, open_history: Opener, tmp_path: Path
) -> None:
    sink = open_history()
    sink.write(fabric.batch(HOUR_S))
    sink.close()
    for kind in (RecordKind.COUNTERS, RecordKind.RATES):
        (path,) = (tmp_path / kind).iterdir()
        file = pq.ParquetFile(path)
        assert {str(field.type) for field in file.schema_arrow} <= {
            "timestamp[us, tz=UTC]", "uint64", "int64", "uint32", "double", "float", "string",
        }  # fmt: skip
        columns = [file.metadata.row_group(0).column(i) for i in range(file.metadata.num_columns)]
        assert {column.compression for column in columns} == {"ZSTD"}
        encodings = {encoding for column in columns for encoding in column.encodings}
        assert encodings <= {"PLAIN", "RLE", "RLE_DICTIONARY", "DELTA_BINARY_PACKED"}


def test_files_are_named_by_the_hour_in_utc_of_their_samples(
    fabric: Any, open_history: Opener, tmp_path: Path
) -> None:
    sink, batch = open_history(), fabric.batch(HOUR_S)
    batch.samples.at_s[:3] = HOUR_S - 0.001
    sink.write(batch)
    sink.close()
    assert names(tmp_path) == ["2023-11-14T22Z-0000.parquet", "2023-11-14T23Z-0000.parquet"]
    assert pq.read_table(tmp_path / "counters" / "2023-11-14T22Z-0000.parquet").num_rows == 3
    assert names(tmp_path, RecordKind.RATES) == ["2023-11-14T22Z-0000.parquet", "2023-11-14T23Z-0000.parquet"]


def test_only_significant_rates_are_kept_but_all_counters(fabric: Any, open_history: Opener, tmp_path: Path) -> None:
    sink, batch = open_history(), fabric.batch(HOUR_S)
    sink.write(batch._replace(significant=np.arange(6) % 2 == 0))
    sink.close()
    assert read(tmp_path).num_rows == 6
    assert read(tmp_path, RecordKind.RATES)["port_no"].to_pylist() == [1, 3, 2]


@pytest.mark.parametrize("step_s", [-7200.0, -3599.0, 0.0, 3600.0, 86400.0])
def test_a_clock_that_steps_overwrites_nothing(
    fabric: Any, open_history: Opener, tmp_path: Path, step_s: float
) -> None:
    sink = open_history()
    times = [HOUR_S + 10, HOUR_S + 10 + step_s, HOUR_S + 20, HOUR_S + 20 + step_s]
    for at_s in times:
        sink.write(fabric.batch(at_s))
        assert sink.flush()
    sink.close()
    again = open_history()
    again.write(fabric.batch(HOUR_S + 30))
    again.close()
    stamps = read(tmp_path, ports=[(1, 1)])["timestamp"].cast(pa.int64()).to_numpy() / 1e6
    assert sorted([*times, HOUR_S + 30]) == stamps.tolist()
    assert all(path.suffix == ".parquet" for path in (tmp_path / "counters").iterdir())


def test_what_is_flushed_is_read_back_before_a_part_is_finished(
    fabric: Any, open_history: Opener, tmp_path: Path
) -> None:
    sink = open_history()
    sink.write(fabric.batch(HOUR_S + 5, 1))
    sink.write(fabric.batch(HOUR_S + 15, 2))
    assert sink.flush()
    assert names(tmp_path) == ["2023-11-14T23Z-0000.arrows"]
    table = read(tmp_path, since_s=HOUR_S + 5, until_s=HOUR_S + 15, ports=[(2, 1), (1, 3)], columns=["rx_packets"])
    assert table.to_pydict() == {
        "timestamp": [datetime.fromtimestamp(HOUR_S + 5, UTC)] * 2,
        "dpid": [1, 2],
        "port_no": [3, 1],
        "rx_packets": [3, 4],
    }
    assert sink.state().totals == {"acknowledged": 24, "dropped": 0}


def test_a_part_is_finished_when_its_rows_are_reached(fabric: Any, open_history: Opener, tmp_path: Path) -> None:
    sink = open_history(part_rows=12)
    for number in range(4):
        sink.write(fabric.batch(HOUR_S + number))
        assert sink.flush()
    sink.close()
    assert names(tmp_path) == ["2023-11-14T23Z-0000.parquet", "2023-11-14T23Z-0001.parquet"]


def test_csv_beside_parquet_has_the_same_rows(fabric: Any, open_history: Opener, tmp_path: Path) -> None:
    sink = open_history(csv=True)
    sink.write(fabric.batch(HOUR_S + 0.123456, 7, unsupported=(9,)))
    sink.close()
    with (tmp_path / "counters" / "2023-11-14T23Z-0000.csv").open() as file:
        lines = list(csv.DictReader(file))
    owners = ["monitor", "share_epoch"]
    assert list(lines[0]) == ["timestamp", "dpid", "port_no", "duration_s", "speed_bps", *COUNTERS, *owners]
    assert float(lines[0]["timestamp"]) == HOUR_S + 0.123456
    assert lines[5]["rx_bytes"] == str(7 + 200 + 5)
    assert lines[5]["rx_over_err"] == str(UNSUPPORTED)
    with (tmp_path / "rates" / "2023-11-14T23Z-0000.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert float(lines[0]["tx_bytes_per_s"]) == pytest.approx(0.7)
    assert (lines[0]["rx_over_err_per_s"], lines[0]["discontinuity"]) == ("", "")
    assert "2023-11-14T23Z-0000.parquet" in names(tmp_path)


def test_a_full_backlog_drops_the_oldest_and_counts_them(fabric: Any, open_history: Opener, tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a directory should be")
    sink = open_history(blocked, backlog_rows=24)
    for number in range(4):
        sink.write(fabric.batch(HOUR_S + number))
    assert not sink.flush()
    state = sink.state()
    assert (state.totals["acknowledged"], state.totals["dropped"]) == (0, 24)
    assert state.failures > 0
    assert str(blocked) in state.faults[0]
    blocked.unlink()
    sink.close()
    stamps = read(blocked, ports=[(1, 1)])["timestamp"].cast(pa.int64()).to_pylist()
    assert stamps == [(int(HOUR_S) + 2) * 1_000_000, (int(HOUR_S) + 3) * 1_000_000]


@pytest.mark.parametrize("no_time_s", [1e12, float("nan")])
def test_rows_of_no_time_are_counted_and_others_go_on(
    fabric: Any, open_history: Opener, tmp_path: Path, no_time_s: float
) -> None:
    sink = open_history()
    sink.write(fabric.batch(no_time_s))
    sink.write(fabric.batch(HOUR_S))
    sink.flush()
    assert sink.state().totals == {"acknowledged": 12, "dropped": 12}
    assert sink.state().failures == 2
    sink.write(fabric.batch(HOUR_S + 1))
    assert sink.flush()
    sink.close()
    assert read(tmp_path).num_rows == 12


def write_file(path: Path, table: pa.Table, version: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {} if version is None else {"vsrt.schema_version": str(version)}
    pq.write_table(table.replace_schema_metadata(metadata), path)


def columns(*without: str) -> pa.Table:
    schema = SCHEMAS[RecordKind.COUNTERS]
    values = {"timestamp": datetime.fromtimestamp(HOUR_S, UTC), "dpid": 1, "port_no": 2, "monitor": "m1"}
    return pa.table(
        {
            field.name: pa.array([values.get(field.name, 5)], field.type)
            for field in schema
            if field.name not in without
        }
    )


def test_what_a_file_of_an_older_version_lacks_is_null(tmp_path: Path) -> None:
    lacking = columns("collisions", "speed_bps", "monitor", "share_epoch")
    write_file(tmp_path / "counters" / "2023-11-14T23Z-0000.parquet", lacking, 0)
    (row,) = read(tmp_path).to_pylist()
    assert (row["rx_bytes"], row["collisions"], row["speed_bps"]) == (5, None, None)
    assert (row["monitor"], row["share_epoch"]) == (None, None)
    assert read([tmp_path, tmp_path]).num_rows == 2


@pytest.mark.parametrize(
    ("without", "version", "words"),
    [
        ((), 3, "version 3.*up to 2"),
        ((), None, "no history file"),
        ((), "x", "no history file"),
        (("port_no",), 0, "port_no is missing"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, without: tuple[str, ...], version: object, words: str
) -> None:
    path = tmp_path / "counters" / "2023-11-14T23Z-0000.parquet"
    write_file(path, columns(*without), version)
    with pytest.raises(HistoryFileError, match=f"{path}: .*{words}"):
        read(tmp_path)


def test_a_damaged_file_is_named(fabric: Any, open_history: Opener, tmp_path: Path) -> None:
    sink = open_history()
    sink.write(fabric.batch(HOUR_S))
    sink.close()
    (path,) = (tmp_path / "counters").iterdir()
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(HistoryFileError, match=str(path)):
        read(tmp_path)


def hours_of(directory: Path, *ages_h: int, size_bytes: int = 100) -> None:
    directory.mkdir()
    for age in ages_h:
        stamp = datetime.fromtimestamp(HOUR_S - age * 3600, UTC)
        (directory / f"{stamp:%Y-%m-%dT%H}Z-0000.parquet").write_bytes(bytes(size_bytes))


def ages(directory: Path) -> list[int]:
    return [int(HOUR_S) // 3600 - part.period.hour for part in list_parts(directory)]


def test_retention_by_size_takes_the_oldest_hours_first(tmp_path: Path) -> None:
    counters, rates = tmp_path / "counters", tmp_path / "rates"
    hours_of(counters, 0, 1, 2, 3)
    hours_of(rates, 0, 1, 2, 3)
    assert remove_old([counters, rates], now_s=HOUR_S, max_age_s=1e9, max_bytes=450) == 4
    assert ages(counters) == ages(rates) == [1, 0]


def test_retention_never_takes_the_newest_hour_nor_one_in_use_nor_files_of_others(tmp_path: Path) -> None:
    counters = tmp_path / "counters"
    hours_of(counters, 0, 1, 2)
    other = counters / "notes.parquet"
    other.write_text("not ours")
    remove_old([counters], now_s=HOUR_S + 1e9, max_age_s=0, max_bytes=0, keep={FilePeriod(int(HOUR_S) // 3600 - 2)})
    assert ages(counters) == [2, 0]
    assert other.exists()


def test_retention_by_age_survives_a_clock_that_jumps_ahead(tmp_path: Path) -> None:
    counters = tmp_path / "counters"
    hours_of(counters, 0, 1, 2, 3, 4)
    assert remove_old([counters], now_s=HOUR_S + 1800, max_age_s=2.7 * 3600, max_bytes=1 << 30) == 1
    assert ages(counters) == [3, 2, 1, 0]
    assert remove_old([counters], now_s=HOUR_S + 1e8, max_age_s=2 * 3600, max_bytes=1 << 30) == 2
    assert ages(counters) == [1, 0]


def test_the_sink_keeps_to_its_age(fabric: Any, open_history: Opener, tmp_path: Path) -> None:
    sink = open_history(max_age_s=3600)
    for hour in range(4):
        sink.write(fabric.batch(HOUR_S + hour * 3600))
        assert sink.flush()
    sink.close()
    assert names(tmp_path) == ["2023-11-15T01Z-0000.parquet", "2023-11-15T02Z-0000.parquet"]


def test_the_sink_keeps_to_its_size(fabric: Any, open_history: Opener, tmp_path: Path) -> None:
    sink = open_history(max_bytes=1)
    for hour in range(3):
        sink.write(fabric.batch(HOUR_S + hour * 3600))
        assert sink.flush()
    sink.close()
    assert names(tmp_path) == ["2023-11-15T01Z-0000.parquet"]


def test_a_row_given_to_another_port_keeps_its_old_samples(fabric: Any, open_history: Opener, tmp_path: Path) -> None:
    ports = type(fabric.ports)(max_ports=1)
    fabric.ports = ports
    ports.add(1, 1, "old", 1e9)
    sink = open_history()
    sink.write(fabric.batch(HOUR_S))
    ports.remove(1, 1)
    ports.add(9, 4, "new", 1e9)
    sink.write(fabric.batch(HOUR_S + 1))
    sink.close()
    table = read(tmp_path)
    assert list(zip(table["dpid"].to_pylist(), table["port_no"].to_pylist(), strict=True)) == [(1, 1), (9, 4)]
