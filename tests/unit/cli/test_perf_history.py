"""`vsrt perf history`: the monitor's files, by span of time and port."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.cli import perf_history
from apps.cli.main import main
from apps.exporters.history_sink import HistorySink
from apps.exporters.settings import HistorySettings
from apps.exporters.sink import RatedSamples
from controller.performance.batch import Samples
from controller.performance.counters import UNSUPPORTED
from controller.performance.ports import PortRows
from controller.performance.rates import RateTable

START_S = 1_700_002_800
SAMPLES = 12


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Two hours' files: every 10 minutes a sample; port 1:1 carries 1 Mbit/s, then 2; 2:7 was created anew once."""
    ports = PortRows()
    ports.add(1, 1, "a", 10e6)
    ports.add(2, 7, "b", 0)
    table, sink = RateTable(ports), HistorySink(tmp_path, HistorySettings(), ports, logging.getLogger())
    octets = 0
    for number in range(SAMPLES):
        at = np.full(2, START_S + 600.0 * number)
        counters = np.zeros((2, 12), np.uint64)
        counters[0, 2] = octets
        counters[1, 2] = 1000 * number if number < 8 else 500 * number
        counters[1, 3] = UNSUPPORTED
        alive = np.array([600.0 * number, 600.0 * (number if number < 8 else number - 7.5)])
        samples = Samples(np.arange(2, dtype=np.int32), at, alive, counters)
        sink.write(RatedSamples(samples, table.update(samples)))
        octets += 75_000_000 * (1 if number < 6 else 2)
    sink.close()
    return tmp_path


def history(directory: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["perf", "history", "--directory", str(directory), "--json", *arguments]) == 0
    ports: dict[str, Any] = json.loads(capsys.readouterr().out)["ports"]
    return ports


def test_means_are_over_the_span_asked_for(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = history(directory, capsys, "--since", "2023-11-14T23:00:00Z", "--until", "2023-11-15T02:00")
    assert whole["1:1"]["rx_bps"] == pytest.approx((6 * 1e6 + 5 * 2e6) / 11)
    assert whole["1:1"]["utilisation_pct"] == pytest.approx((6 * 10 + 5 * 20) / 11)
    late = history(directory, capsys, "1", "--since", str(START_S + 3600), "--until", str(START_S + 2 * 3600))
    assert list(late) == ["1:1"]
    assert late["1:1"]["rx_bps"] == pytest.approx(2e6)


def test_a_port_created_anew_and_a_counter_that_is_not_there_are_told(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = history(directory, capsys, "2:7", "--since", "0", "--until", "0s")
    port = found["2:7"]
    assert {entry["kind"] for entry in port["discontinuities"]} == {"recreated", "unsupported"}
    assert (port["tx_bps"], port["utilisation_pct"]) == (None, None)
    assert list(found) == ["2:7"]


def test_nothing_in_the_span_is_nothing(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert history(directory, capsys) == {}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--since", "yesterday"], "--since: 'yesterday' is no time"),
        (["--until", "nan"], "--until: 'nan'"),
        (["--since", "1m", "--until", "2m"], "--since"),
        (["one:two"], "'one:two'"),
        (["leaf1:2"], "NODE: the files know no names: 'leaf1' must be a datapath id"),
    ],
)
def test_a_bad_question_is_named(
    directory: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main(["perf", "history", "--directory", str(directory), *arguments]) == 2
    assert words in capsys.readouterr().err


def test_files_are_found_where_a_controllers_socket_would_be(
    directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    service = tmp_path / "service"
    service.mkdir()
    (service / "history").symlink_to(directory)
    monkeypatch.delenv("VSRT_STATE_DIR", raising=False)
    monkeypatch.setattr(perf_history, "SOCKETS", (tmp_path / "here" / "vsrt.sock", service / "vsrt.sock"))
    assert main(["perf", "history", "2:7", "--since", "0"]) == 0
    assert "0000000000000002:7" in capsys.readouterr().out


def test_a_missing_directory_and_a_bad_file_are_named(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["perf", "history", "--directory", str(directory / "elsewhere")]) == 2
    assert "elsewhere" in capsys.readouterr().err
    bad = directory / "counters" / "2023-11-14T23Z-0009.parquet"
    bad.write_text("no Parquet")
    assert main(["perf", "history", "--directory", str(directory), "--since", "0"]) == 2
    assert str(bad) in capsys.readouterr().err
