from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.cli import diagnose_output, metric_file, metric_file_rows
from apps.cli.metric_file import read_metric_file
from apps.cli.metric_file_rows import CodeNames, SeriesRows
from controller.anomaly.peers.diagnosis import Diagnosis, diagnose
from controller.anomaly.peers.settings import PeerSettings
from controller.anomaly.series import RawSeries, SeriesName

METRICS, GROUPS, MEMBERS = ("await", "tps"), ("g", "h"), ("a", "b", "c")
ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 2), st.integers(0, 20), st.integers(0, 99)),
    max_size=60,
)


@pytest.fixture(autouse=True)
def small_parts() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metric_file_rows, "BLOCK_ROWS", 8)
        patch.setattr(metric_file_rows, "ROWS_AT_ONCE", 3)
        patch.setattr(metric_file, "ROWS_AT_ONCE", 5)
        yield


def by_series(rows: list[tuple[int, ...]]) -> dict[SeriesName, list[tuple[float, float]]]:
    found: dict[SeriesName, list[tuple[float, float]]] = {}
    for metric, group, member, at_s, value in rows:
        name = SeriesName(MEMBERS[member], GROUPS[group], METRICS[metric])
        found.setdefault(name, []).append((at_s, value))
    return found


def plain(series: list[RawSeries]) -> dict[SeriesName, list[tuple[float, float]]]:
    return {one.name: list(zip(one.at_s.tolist(), one.values.tolist(), strict=True)) for one in series}


@given(ROWS, st.lists(st.integers(1, 20), max_size=6), st.booleans())
def test_parts_put_together_hold_every_row_in_its_order(rows: list[tuple[int, ...]], cuts: list[int], sort: bool):
    gathered = SeriesRows()
    start = 0
    with pytest.MonkeyPatch.context() as patch:
        if sort:
            patch.setattr(metric_file_rows, "KEYS_AT_MOST", 0)
        for length in [*cuts, len(rows)]:
            part = np.array(rows[start : start + length], np.int64).reshape(-1, 5)
            start += length
            codes = (part[:, 0], part[:, 1], part[:, 2])
            gathered.add(
                codes, CodeNames(METRICS, GROUPS, MEMBERS), part[:, 3].astype(float), part[:, 4].astype(float)
            )
        found = gathered.series()
    assert plain(found) == by_series(rows)
    order = [(METRICS.index(n.metric), GROUPS.index(n.peer_group), MEMBERS.index(n.member)) for n in plain(found)]
    assert order == sorted(order)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files_of_many_parts_are_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str):
    rng = np.random.default_rng(1)
    rows = [tuple(row) for row in rng.integers(0, (2, 2, 3, 1000, 50), (400, 5)).tolist()]
    columns = list(zip(*rows, strict=True))
    table = pa.table(
        {
            "timestamp": pa.array(columns[3], pa.float64()),
            "member": [MEMBERS[code] for code in columns[2]],
            "peer_group": [GROUPS[code] for code in columns[1]],
            "metric": [METRICS[code] for code in columns[0]],
            "value": pa.array(columns[4], pa.float64()),
        }
    )
    path = tmp_path / f"metrics.{suffix}"
    if suffix == "csv":
        pa.csv.write_csv(table, path)
        monkeypatch.setattr(metric_file, "CSV_BLOCK_BYTES", 500)
    else:
        pa.parquet.write_table(table, path, row_group_size=70)
    assert plain(read_metric_file(path).series) == by_series(rows)
    chosen = read_metric_file(path, metric="tps").series
    assert plain(chosen) == {name: of for name, of in by_series(rows).items() if name.metric == "tps"}


def test_times_that_change_their_form_in_a_later_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(metric_file, "CSV_BLOCK_BYTES", 200)
    lines = [f"{row},a,{row}" for row in range(60)] + ["60.5,a,7", "1970-01-01T00:02:00Z,a,8"]
    path = tmp_path / "metrics.csv"
    path.write_text("\n".join(("timestamp,member,value", *lines, "")), encoding="utf-8")
    (found,) = read_metric_file(path).series
    assert found.at_s[-3:].tolist() == [59, 60.5, 120]


def found_in(samples: int) -> Diagnosis:
    at_s = np.arange(1.0, samples + 1)
    rng = np.random.default_rng(1)
    series = [RawSeries(SeriesName(member, "g", "await"), at_s, rng.gamma(4, 2, samples)) for member in MEMBERS]
    series[1].values[samples // 2 :] += 50
    return diagnose(series, PeerSettings(interval_s=1, window_samples=12, shift_samples=6, smoothing_samples=2))


@pytest.mark.parametrize("samples", [5, 240])
def test_the_document_that_is_written_in_pieces_is_the_whole_one(samples: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(diagnose_output, "WRITTEN_AT_ONCE", 7)
    found = found_in(samples)
    whole = {
        key: list(value) if isinstance(value, Iterator) else value
        for key, value in diagnose_output.document(found).items()
    }
    with redirect_stdout(io.StringIO()) as output:
        diagnose_output.emit_document(found)
    assert output.getvalue() == json.dumps(whole) + "\n"
    assert (len(whole["scores"]) > 0) == (samples > 12)
