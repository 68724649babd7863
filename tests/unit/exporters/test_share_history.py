"""The history of monitors that share the switches: each octet counts once, rates go on where a switch moves."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from apps.cli.main import main
from apps.exporters.history import read_history
from apps.exporters.history_sink import HistorySink
from apps.exporters.schema import RecordKind
from apps.exporters.settings import HistorySettings
from apps.exporters.share_epochs import counted_rows
from apps.exporters.sink import RatedSamples
from controller.performance.batch import Samples
from controller.performance.ports import PortRows
from controller.performance.rates import RateTable

START_S = 1_700_002_800
OCTETS_PER_S = 125_000


def write(directory: Path, monitor: str, polls: Iterable[tuple[int, int]]) -> Path:
    """Write the files of a monitor that polled port 7 of switch 5, which carries 1 Mbit/s: seconds and epochs."""
    ports = PortRows()
    ports.add(5, 7, "a", 10e6)
    rates, sink = RateTable(ports), HistorySink(directory, HistorySettings(), ports, logging.getLogger(), monitor)
    for second, epoch in polls:
        counters = np.zeros((1, 12), np.uint64)
        counters[:, 2] = OCTETS_PER_S * second
        at_s, lasted_s = np.array([START_S + float(second)]), np.array([1000.0 + second])
        samples = Samples(np.zeros(1, np.int32), at_s, lasted_s, counters)
        sink.write(RatedSamples(samples, rates.update(samples), None, np.array([epoch])))
    sink.close()
    return directory


def seconds(table: pa.Table) -> list[int]:
    return [int(at.timestamp()) - START_S for at in table.column("timestamp").to_pylist()]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Of monitor a, and of b, which had the switch from second 33 to 63; a did not know it up to 40."""
    a = write(tmp_path / "a", "a", [(0, 1), (10, 1), (20, 1), (30, 1), (40, 1), (65, 3), (75, 3)])
    return a, write(tmp_path / "b", "b", [(33, 2), (43, 2), (53, 2), (63, 2), (73, 2)])


def read(*directories: Path, since_s: float = 0.0, until_s: float = 1e10) -> pa.Table:
    return read_history(directories, RecordKind.COUNTERS, since_s=since_s, until_s=until_s)


def test_rows_of_an_epoch_count_up_to_the_first_of_the_next(files: tuple[Path, Path]):
    table = read(*files)
    assert seconds(table) == [0, 10, 20, 30, 33, 43, 53, 63, 65, 75]
    assert table.column("monitor").to_pylist() == [*"aaaa", *"bbbb", *"aa"]
    assert table.column("share_epoch").to_pylist() == [1, 1, 1, 1, 2, 2, 2, 2, 3, 3]


def test_the_files_of_one_monitor_are_as_they_are(files: tuple[Path, Path]):
    assert seconds(read(files[0])) == [0, 10, 20, 30, 40, 65, 75]


def test_what_came_before_the_time_asked_for_tells_too(files: tuple[Path, Path]):
    assert seconds(read(*files, since_s=START_S + 38, until_s=START_S + 42)) == []
    assert seconds(read(*files, since_s=START_S + 38, until_s=START_S + 60)) == [43, 53]


def test_rates_are_known_across_the_change(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]):
    places = [word for place in files for word in ("--directory", str(place))]
    assert main(["perf", "history", *places, "--since", "0", "--json"]) == 0
    (port,) = json.loads(capsys.readouterr().out)["ports"].values()
    assert port["rx_bps"] == pytest.approx(8 * OCTETS_PER_S)
    assert port["discontinuities"] == []


def test_roll_ups_are_those_of_one_monitor(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]):
    places = [word for place in files for word in ("--directory", str(place))]
    assert main(["perf", "history", *places, "--roll-up", "1min"]) == 2
    assert "--roll-up: roll-ups are those of one monitor" in capsys.readouterr().err


def test_of_several_directories_one_that_is_missing_is_named(files: tuple[Path, Path], capsys):
    assert main(["perf", "history", "--directory", str(files[0]), "--directory", str(files[1] / "x")]) == 2
    assert f"{files[1] / 'x'}: there is no such directory" in capsys.readouterr().err


@pytest.mark.parametrize("seed", range(20))
def test_as_many_rows_count_as_the_rule_says(seed: int):
    chance = random.Random(seed)
    rows = [
        (chance.randrange(60), chance.choice((1, 2, 1 << 63)), chance.choice((None, 1, 2, 3, 4)))
        for _ in range(chance.randrange(1, 200))
    ]
    table = pa.table(
        {
            "timestamp": pa.array([at * 1_000_000 for at, _, _ in rows]).cast(pa.timestamp("us", tz="UTC")),
            "dpid": pa.array([dpid for _, dpid, _ in rows], pa.uint64()),
            "share_epoch": pa.array([epoch for _, _, epoch in rows], pa.int64()),
        }
    )
    expected = [
        epoch is None or not any(d == dpid and (e or 0) > epoch and t <= at for t, d, e in rows)
        for at, dpid, epoch in rows
    ]
    assert counted_rows(table).tolist() == expected
