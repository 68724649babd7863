"""Roll-ups from the performance core to files, and back."""

from __future__ import annotations

import csv
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from apps.cli.main import main
from apps.exporters.history import read_history
from apps.exporters.history_sink import RollUpSink
from apps.exporters.schema import RecordKind
from apps.exporters.settings import ROLL_UP_DEFAULTS
from controller.events import Port
from controller.performance.batch import Samples
from controller.performance.core import PerformanceCore
from controller.performance.counters import UNSUPPORTED
from controller.performance.effects import RollUpsClosed
from controller.performance.inputs import MonitoredSwitchUp, SamplesReceived, Tick

ROOT = Path(__file__).parents[3]
DAY_S = 1_700_006_400.0
"""2023-11-15 00:00 UTC."""

STEP_S = 10.0
Opener = Callable[..., RollUpSink]


def watched() -> PerformanceCore:
    core = PerformanceCore()
    ports = tuple(Port(number, f"s1-eth{number}", bytes(6), True, 1e9) for number in (1, 2))
    core.handle(MonitoredSwitchUp(1, ports), DAY_S - STEP_S)
    return core


def roll(core: PerformanceCore, sink: RollUpSink, start_s: float, end_s: float) -> None:
    """Samples every 10 s: port 1 receives 1000 octets/s, and 3000 in every sixth step; port 2 has no such counter."""
    total = 0
    for number, at_s in enumerate(np.arange(start_s, end_s, STEP_S)):
        counters = np.zeros((2, 12), np.uint64)
        counters[:, 2] = total, UNSUPPORTED
        counters[0, 4] = number
        samples = Samples(np.arange(2, dtype=np.int32), np.full(2, at_s), np.full(2, at_s - start_s + 1), counters)
        for effect in core.handle(SamplesReceived(samples), at_s):
            if isinstance(effect, RollUpsClosed):
                sink.roll_up(effect.rollups)
        total += 30_000 if number % 6 == 0 else 10_000
    for effect in core.handle(Tick(), end_s + 3600):
        if isinstance(effect, RollUpsClosed):
            sink.roll_up(effect.rollups)


@pytest.fixture
def open_sink(tmp_path: Path, logger: logging.Logger) -> Iterator[tuple[PerformanceCore, Opener]]:
    core, opened = watched(), []

    def make(**settings: object) -> RollUpSink:
        opened.append(RollUpSink(tmp_path, ROLL_UP_DEFAULTS._replace(**settings), core.ports, logger))
        return opened[-1]

    yield core, make
    for sink in opened:
        sink.close()


def names(directory: Path, kind: RecordKind) -> list[str]:
    return sorted(path.name for path in (directory / kind).iterdir())


def test_duckdb_reads_minutes_and_hours(open_sink: Any, tmp_path: Path) -> None:
    core, make = open_sink
    sink = make()
    roll(core, sink, DAY_S - STEP_S, DAY_S + 3 * 3600)
    sink.close()
    assert names(tmp_path, RecordKind.MINUTES) == [f"2023-11-15T0{hour}Z-0000.parquet" for hour in range(3)]
    assert names(tmp_path, RecordKind.HOURS) == ["2023-11-15Z-0000.parquet"]
    columns = (
        "epoch(timestamp), count, covered_s,"
        " rx_bytes_min_per_s, rx_bytes_mean_per_s, rx_bytes_max_per_s, rx_bytes_sum, rx_dropped_sum"
    )
    minutes, hours = (
        duckdb.sql(
            f"SELECT {columns} FROM '{tmp_path}/{kind}/*.parquet' WHERE dpid = 1 AND port_no = 1 ORDER BY 1"
        ).fetchall()
        for kind in (RecordKind.MINUTES, RecordKind.HOURS)
    )
    mean = pytest.approx(80_000 / 60)
    assert minutes == [
        (DAY_S + 60 * number, 6, 60.0, 1000.0, mean, 3000.0, pytest.approx(80_000), pytest.approx(6))
        for number in range(180)
    ]
    assert hours == [
        (DAY_S + 3600 * number, 360, 3600.0, 1000.0, mean, 3000.0, pytest.approx(4.8e6), pytest.approx(360))
        for number in range(3)
    ]


def test_what_was_never_known_is_null(open_sink: Any, tmp_path: Path) -> None:
    core, make = open_sink
    sink = make()
    roll(core, sink, DAY_S - STEP_S, DAY_S + 120)
    sink.close()
    assert duckdb.sql(
        "SELECT DISTINCT rx_bytes_min_per_s, rx_bytes_mean_per_s, rx_bytes_max_per_s, rx_bytes_sum, tx_bytes_sum"
        f" FROM '{tmp_path}/{RecordKind.MINUTES}/*.parquet' WHERE port_no = 2"
    ).fetchall() == [(None, None, None, None, 0.0)]


def test_csv_has_the_same_rows(open_sink: Any, tmp_path: Path) -> None:
    core, make = open_sink
    sink = make(csv=True)
    roll(core, sink, DAY_S - STEP_S, DAY_S + 120)
    sink.close()
    with (tmp_path / RecordKind.HOURS / "2023-11-15Z-0000.csv").open() as file:
        first, second = csv.DictReader(file)
    assert (float(first["timestamp"]), first["port_no"], first["rx_bytes_max_per_s"]) == (DAY_S, "1", "3000")
    assert (second["port_no"], second["rx_bytes_max_per_s"], second["rx_bytes_sum"]) == ("2", "", "")


def show(capsys: pytest.CaptureFixture[str], directory: Path, *arguments: str) -> Any:
    assert main(["perf", "history", "--directory", str(directory), "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_command_reads_parts_and_journals(
    open_sink: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    core, make = open_sink
    sink = make()
    roll(core, sink, DAY_S - STEP_S, DAY_S + 3600)
    assert sink.flush()
    assert names(tmp_path, RecordKind.HOURS) == ["2023-11-15Z-0000.arrows"]
    span = ("--since", str(DAY_S), "--until", str(DAY_S + 120))
    found = show(capsys, tmp_path, "1:1", "--roll-up", "1min", *span)
    assert found["roll_up"] == "1min"
    assert [(period["start_s"], period["dpid"], period["port_no"]) for period in found["periods"]] == [
        (DAY_S, 1, 1),
        (DAY_S + 60, 1, 1),
    ]
    counters = found["periods"][0]["counters"]
    assert counters["rx_bytes"] == {
        "min_per_s": 1000.0,
        "mean_per_s": pytest.approx(80_000 / 60),
        "max_per_s": 3000.0,
        "sum": pytest.approx(80_000),
    }
    sink.close()
    assert show(capsys, tmp_path, "1:1", "--roll-up", "1min", *span) == found
    (hour, unknown) = show(capsys, tmp_path, "--roll-up", "1h", *span)["periods"]
    assert (hour["count"], unknown["counters"]["rx_bytes"]["mean_per_s"]) == (360, None)
    assert main(["perf", "history", "--directory", str(tmp_path), "--roll-up", "1h", *span]) == 0
    title, first, second = capsys.readouterr().out.splitlines()
    assert title.split()[:3] == ["start", "(UTC)", "port"]
    assert first.split()[:6] == ["2023-11-15", "00:00:00", "0000000000000001:1", "360", "3600", "8"]
    assert second.split()[2:7] == ["0000000000000001:2", "360", "3600", "-", "-"]
    assert show(capsys, tmp_path, "--roll-up", "1s", *span)["periods"] == []


def test_whole_days_go_by_age(open_sink: Any, tmp_path: Path) -> None:
    core, make = open_sink
    sink = make(max_age_s=2.01 * 86400)
    for day in range(5):
        roll(core, sink, DAY_S + day * 86400 - STEP_S, DAY_S + day * 86400 + 30)
        assert sink.flush()
    sink.close()
    assert names(tmp_path, RecordKind.HOURS) == [f"2023-11-{day}Z-0000.parquet" for day in (17, 18, 19)]
    assert names(tmp_path, RecordKind.MINUTES) == [f"2023-11-{day}T00Z-0000.parquet" for day in (17, 18, 19)]


def test_minutes_make_room_for_hours(open_sink: Any, tmp_path: Path) -> None:
    core, make = open_sink
    sink = make(max_bytes=1 << 40)
    for day in range(4):
        roll(core, sink, DAY_S + day * 86400 - STEP_S, DAY_S + day * 86400 + 3000)
        assert sink.flush()
    sink.close()
    hours = names(tmp_path, RecordKind.HOURS)
    newest = (tmp_path / RecordKind.MINUTES / names(tmp_path, RecordKind.MINUTES)[-1]).stat().st_size
    room = newest + sum((tmp_path / RecordKind.HOURS / name).stat().st_size for name in hours)
    sink = make(max_bytes=round(1.4 * room))
    roll(core, sink, DAY_S + 4 * 86400 - STEP_S, DAY_S + 4 * 86400 + 3000)
    assert sink.flush()
    sink.close()
    assert names(tmp_path, RecordKind.HOURS) == [*hours, "2023-11-19Z-0000.parquet"]
    assert names(tmp_path, RecordKind.MINUTES)[-1] == "2023-11-19T00Z-0000.parquet"
    assert len(names(tmp_path, RecordKind.MINUTES)) < 5


def test_a_disk_that_refuses_is_told_and_loses_nothing(open_sink: Any, tmp_path: Path) -> None:
    core, make = open_sink
    for kind in (RecordKind.SECONDS, RecordKind.MINUTES, RecordKind.HOURS):
        (tmp_path / kind).write_text("a file where a directory should be")
    sink = make()
    roll(core, sink, DAY_S - STEP_S, DAY_S + 120)
    assert not sink.flush()
    assert "roll-ups" in sink.state().faults[0]
    for kind in (RecordKind.SECONDS, RecordKind.MINUTES, RecordKind.HOURS):
        (tmp_path / kind).unlink()
    sink.close()
    assert read_history(tmp_path, RecordKind.MINUTES, since_s=0, until_s=1e10).num_rows == 4


WRITER = """
import logging, sys
from pathlib import Path
from apps.exporters.history_sink import RollUpSink
from apps.exporters.settings import ROLL_UP_DEFAULTS
from tests.unit.exporters.test_roll_up_files import DAY_S, STEP_S, roll, watched
core = watched()
settings = ROLL_UP_DEFAULTS._replace(part_rows=100)
sink = RollUpSink(Path(sys.argv[1]), settings, core.ports, logging.getLogger())
for number in range(10**6):
    start_s = DAY_S + number * 1200
    roll(core, sink, start_s - STEP_S, start_s + 600)
    if sink.flush():
        print(number + 1, flush=True)
"""


def test_what_was_acknowledged_outlives_a_kill(open_sink: Any, tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writer = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    with writer.stdout:
        try:
            while int(writer.stdout.readline()) < 10:
                pass
        finally:
            os.kill(writer.pid, signal.SIGKILL)
            acknowledged = max([10, *map(int, writer.stdout.read().splitlines())])
            writer.wait()
    _, make = open_sink
    for _ in range(2):
        table = read_history(tmp_path, RecordKind.MINUTES, since_s=0, until_s=1e10, ports=[(1, 1)], columns=["count"])
        minutes = table["timestamp"].to_numpy().astype("datetime64[s]").astype(int).tolist()
        expected = [int(DAY_S) + 1200 * run + 60 * minute for run in range(acknowledged) for minute in range(10)]
        assert minutes[: len(expected)] == expected
        make().close()
    assert {path.suffix for path in tmp_path.glob("*/*")} == {".parquet"}
