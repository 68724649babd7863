"""A killed process and a full disk: nothing is lost that was acknowledged, and writing resumes."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from apps.exporters.history import read_history
from apps.exporters.history_sink import HistorySink
from apps.exporters.journal import LockedJournal, read_journal
from apps.exporters.schema import SCHEMAS, RecordKind

HOUR_S = 1_700_002_800.0
ROOT = Path(__file__).parents[3]
MNT_DETACH = 2
WAIT_S = 20.0

WRITER = """
import logging, sys
import numpy as np
from pathlib import Path
from apps.exporters.history_sink import HistorySink
from apps.exporters.settings import HistorySettings
from apps.exporters.sink import RatedSamples
from controller.performance.batch import SampleRates, Samples
from controller.performance.ports import PortRows
ports = PortRows()
ports.add(1, 1, "eth1", 1e9)
sink = HistorySink(Path(sys.argv[1]), HistorySettings(part_rows=40), ports, logging.getLogger())
rows, mask = np.zeros(1, np.int32), np.zeros(1, np.uint16)
for number in range(10**9):
    at = np.full(1, 1_700_002_800.0 + number)
    counters = np.full((1, 12), number, np.uint64)
    rates = SampleRates(rows, at, at, np.ones((1, 12)), np.ones((1, 2)), np.zeros(1, np.uint8), mask, mask)
    sink.write(RatedSamples(Samples(rows, at, at, counters), rates))
    if number % 10 == 9 and sink.flush():
        print(number + 1, flush=True)
"""


def counters_read(directory: Path, column: str = "rx_packets") -> list[int]:
    table = read_history(directory, RecordKind.COUNTERS, since_s=0, until_s=1e10, ports=[(1, 1)], columns=[column])
    found: list[int] = table[column].to_pylist()
    return found


def test_what_was_acknowledged_outlives_a_kill(tmp_path: Path, open_history: Callable[..., HistorySink]) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    try:
        acknowledged = 0
        while acknowledged < 130:
            acknowledged = int(writer.stdout.readline())
    finally:
        os.kill(writer.pid, signal.SIGKILL)
        rest = writer.stdout.read()
        writer.wait()
        writer.stdout.close()
    acknowledged = max([acknowledged, *map(int, rest.splitlines())])
    found = counters_read(tmp_path)
    assert found[:acknowledged] == list(range(acknowledged))
    assert found == list(range(len(found)))
    open_history().close()
    assert counters_read(tmp_path) == found
    assert {path.suffix for path in tmp_path.glob("*/*")} == {".parquet"}


def test_a_journal_in_use_is_left_to_its_writer(
    fabric: Any, tmp_path: Path, open_history: Callable[..., HistorySink]
) -> None:
    first = open_history()
    first.write(fabric.batch(HOUR_S, 1))
    assert first.flush()
    open_history().close()
    assert (tmp_path / "counters" / "2023-11-14T23Z-0000.arrows").exists()
    first.write(fabric.batch(HOUR_S + 1, 2))
    first.close()
    assert counters_read(tmp_path) == [1, 2]


def test_a_part_whose_journal_is_still_there_is_counted_once(
    fabric: Any, tmp_path: Path, open_history: Callable[..., HistorySink]
) -> None:
    sink = open_history()
    sink.write(fabric.batch(HOUR_S, 1))
    assert sink.flush()
    journal = tmp_path / "counters" / "2023-11-14T23Z-0000.arrows"
    content = journal.read_bytes()
    sink.close()
    journal.write_bytes(content)
    assert counters_read(tmp_path) == [1]
    open_history().close()
    assert not journal.exists()
    assert counters_read(tmp_path) == [1]


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.6, 0.999])
def test_a_torn_journal_gives_its_whole_batches(tmp_path: Path, kept: float) -> None:
    path = tmp_path / "2023-11-14T23Z-0000.arrows"
    schema = pa.schema([("x", pa.int64())])
    journal = LockedJournal.create(path, schema)
    ends = []
    for number in range(3):
        journal.append(pa.record_batch([[number] * 50], schema=schema))
        ends.append(path.stat().st_size)
    journal.close()
    length = int(ends[-1] * kept)
    os.truncate(path, length)
    whole = sum(end <= length for end in ends)
    assert [batch.column(0)[0].as_py() for batch in read_journal(path)] == list(range(whole))


def test_a_batch_that_does_not_fit_leaves_the_journal_as_it_was(small_disk: Path) -> None:
    schema = pa.schema([("x", pa.int64())])
    journal = LockedJournal.create(small_disk / "j", schema)
    journal.append(pa.record_batch([[1]], schema=schema))
    before = (small_disk / "j").read_bytes()
    with pytest.raises(OSError, match="No space"):
        journal.append(pa.record_batch([list(range(1_000_000))], schema=schema))
    assert (small_disk / "j").read_bytes() == before
    journal.append(pa.record_batch([[2]], schema=schema))
    journal.close()
    assert [batch.column(0)[0].as_py() for batch in read_journal(small_disk / "j")] == [1, 2]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    directory = tmp_path / "disk"
    directory.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    target = str(directory).encode()
    if libc.mount(b"tmpfs", target, b"tmpfs", 0, b"size=1m") != 0:
        pytest.skip(f"cannot mount a tmpfs: {os.strerror(ctypes.get_errno())}")
    yield directory
    libc.umount2(target, MNT_DETACH)


def wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not reached():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def test_a_full_disk_is_shown_and_writing_resumes_when_there_is_room(
    fabric: Any, small_disk: Path, open_history: Callable[..., HistorySink], caplog: pytest.LogCaptureFixture
) -> None:
    sink = open_history(small_disk)
    sink.write(fabric.batch(HOUR_S, 0))
    assert sink.flush()
    ballast = small_disk / "ballast"
    with ballast.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        while True:
            file.write(bytes(4096))
    number = 0
    while not sink.state().faults:
        number += 1
        sink.write(fabric.batch(HOUR_S + number, number))
        sink.flush()
    assert "No space left" in sink.state().faults[0]
    acknowledged = sink.state().totals["acknowledged"]
    assert counters_read(small_disk)[: acknowledged // 12] == list(range(acknowledged // 12))
    ballast.unlink()
    wait_until(lambda: not sink.state().faults)
    assert sink.flush()
    assert counters_read(small_disk) == list(range(number + 1))
    assert sink.state().totals["dropped"] == 0
    sink.close()
    assert counters_read(small_disk) == list(range(number + 1))
    levels = [record.levelname for record in caplog.records]
    assert 1 <= levels.count("ERROR") == levels.count("WARNING") <= 2, "told once when it begins, once when it ends"


def test_a_part_that_finds_no_room_is_finished_later(
    fabric: Any, small_disk: Path, open_history: Callable[..., HistorySink]
) -> None:
    sink = open_history(small_disk, part_rows=60)
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(960 << 10))
    number = 0
    while not any("finished" in fault for fault in sink.state().faults) and number < 400:
        sink.write(fabric.batch(HOUR_S + number, number))
        number += 1
        sink.flush()
    assert any("finished" in fault for fault in sink.state().faults)
    ballast.unlink()
    wait_until(lambda: not sink.state().faults)
    assert sink.flush()
    sink.close()
    assert counters_read(small_disk) == list(range(number))


def test_an_empty_journal_leaves_no_part(tmp_path: Path, open_history: Callable[..., HistorySink]) -> None:
    directory = tmp_path / "counters"
    directory.mkdir()
    LockedJournal.create(directory / "2023-11-14T23Z-0000.arrows", SCHEMAS[RecordKind.COUNTERS]).close()
    (directory / "2023-11-14T23Z-0001.arrows").write_bytes(b"")
    open_history().close()
    assert list(directory.iterdir()) == []
