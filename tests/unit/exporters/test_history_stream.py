"""The history read by slices of time says what it says when it is read whole and sorted."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from apps.cli.perf_history import COLUMNS, rates_between, samples_of
from apps.cli.perf_rates import rates_of
from apps.exporters import history_stream, parts
from apps.exporters.history import read_history
from apps.exporters.history_sink import HistorySink
from apps.exporters.history_stream import NotInOrder, stream_counters
from apps.exporters.journal import SUFFIX
from apps.exporters.schema import RecordKind
from apps.exporters.settings import HistorySettings
from apps.exporters.sink import RatedSamples
from controller.performance.batch import Samples
from controller.performance.ports import PortRows
from controller.performance.rates import RateTable

START_S = 1_700_002_800 - 40
"""Shortly before an hour, in which files begin."""

PORTS = [(dpid, port_no) for dpid in (1, 2, 1 << 63) for port_no in (1, 2, 0xFFFFFFFE)]


def write(
    directory: Path, monitor: str, chance: random.Random, *, has_epochs: bool, ends: bool = True
) -> HistorySink:
    """Write polls of ports at any times and in any epochs, some of which lack what they might tell."""
    ports = PortRows()
    for dpid, port_no in PORTS:
        ports.add(dpid, port_no, "", 1e9)
    rates, settings = RateTable(ports), HistorySettings()
    sink = HistorySink(directory, settings, ports, logging.getLogger(), monitor)
    for poll in range(40):
        rows = np.array(sorted(chance.sample(range(len(PORTS)), chance.randrange(1, len(PORTS)))), np.int32)
        at_s = START_S + 2.0 * poll + np.array([chance.random() * 3 for _ in rows])
        counters = np.zeros((len(rows), 12), np.uint64)
        counters[:, :4] = np.round((at_s - START_S) * 1_000_000)[:, None]
        if chance.random() < 0.05:
            counters[:, 0] = chance.randrange(1000)
        if chance.random() < 0.1:
            counters[:, 1] = (1 << 64) - 1
        lasted_s = at_s - START_S + 1000 if chance.random() < 0.9 else np.full(len(rows), np.nan)
        samples = Samples(rows, at_s, lasted_s, counters)
        epochs = np.array([1 + poll // chance.randrange(5, 20) for _ in rows]) if has_epochs else None
        sink.write(RatedSamples(samples, rates.update(samples), None, epochs))
    sink.close()


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(parts, "ROW_GROUP_ROWS", 30)
    monkeypatch.setattr(history_stream, "SLICE_ROWS", 20)
    yield


def as_journal(part: Path, journal: Path) -> None:
    """Have a file's rows in a journal instead."""
    table = pq.read_table(part)
    with pa.ipc.new_stream(journal, table.schema) as writer:
        writer.write_table(table)
    part.unlink()


def same(found: dict[str, dict[str, Any]], expected: dict[str, dict[str, Any]]) -> bool:
    """Tell whether ports and what is said of them are the same, but for how sums are rounded."""
    assert [*found] == [*expected]
    for port, said in expected.items():
        assert found[port].pop("discontinuities") == said.pop("discontinuities"), port
        assert [*found[port]] == [*said]
        for name, value in said.items():
            assert found[port][name] == (value if value is None else pytest.approx(value, rel=1e-9)), (port, name)
    return True


def whole(places: Sequence[Path], since_s: float, until_s: float) -> dict[str, dict[str, Any]]:
    columns = COLUMNS
    table = read_history(places, RecordKind.COUNTERS, since_s=since_s, until_s=until_s, columns=columns)
    return rates_of(samples_of(table))


@pytest.mark.parametrize("seed", range(8))
def test_rates_are_those_of_the_files_read_whole(seed: int, tmp_path: Path):
    chance = random.Random(seed)
    places = [tmp_path / f"m{number}" for number in range(1 + seed % 4)]
    for place in places:
        write(place, place.name, chance, has_epochs=seed % 2 == 0)
    for since_s, until_s in ((0.0, 1e10), (START_S + 21.5, START_S + 55.25)):
        slices = list(stream_counters(places, COLUMNS, since_s=since_s, until_s=until_s))
        assert len(slices) > 1
        at_us = np.concatenate([each.at_us for each in slices])
        assert (np.diff(at_us) >= 0).all()
        assert same(rates_between(places, since_s, until_s), whole(places, since_s, until_s))


def test_ports_that_nobody_asks_for_are_left_out(tmp_path: Path):
    write(tmp_path, "a", random.Random(1), has_epochs=False)
    found = rates_between([tmp_path], 0.0, 1e10, [(2, None), (1, 2)])
    assert [*found] == ["1:2", "2:1", "2:2", f"2:{0xFFFFFFFE}"]


def test_journals_are_read_too(tmp_path: Path):
    write(tmp_path, "a", random.Random(1), has_epochs=False)
    expected = whole([tmp_path], 0.0, 1e10)
    for part in sorted((tmp_path / "counters").glob("*.parquet")):
        as_journal(part, part.with_suffix(SUFFIX))
    assert same(rates_between([tmp_path], 0.0, 1e10), expected)


def test_where_there_is_nothing_nothing_is_told(tmp_path: Path):
    (tmp_path / "counters").mkdir()
    assert rates_between([tmp_path], 0.0, 1e10) == rates_between([tmp_path, tmp_path / "b"], 0.0, 1e10) == {}


def test_a_file_with_rows_from_before_its_time_has_all_read_whole(tmp_path: Path):
    """A journal says by its name alone when it begins."""
    places = [tmp_path / "a", tmp_path / "b"]
    for place in places:
        write(place, place.name, random.Random(1), has_epochs=True)
    expected = whole(places, 0.0, 1e10)
    early, late = sorted((tmp_path / "a" / "counters").glob("*.parquet"))
    as_journal(early, late.with_name(late.name.replace("-0000.parquet", f"-0001{SUFFIX}")))
    with pytest.raises(NotInOrder):
        list(stream_counters(places, COLUMNS, since_s=0.0, until_s=1e10))
    assert same(rates_between(places, 0.0, 1e10), expected)
