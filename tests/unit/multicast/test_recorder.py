"""The recorder's file is shared by apps and bounded."""

from __future__ import annotations

import logging

import pytest

from apps.openflow import recorder
from apps.replays import read_lines
from topology.events import SwitchUp

LOGGER = logging.getLogger("recorder")


def test_apps_share_a_file(tmp_path):
    path = str(tmp_path / "run.jsonl")
    one, other = recorder.Recorder(path, "multicast", LOGGER), recorder.Recorder(path, "unicast", LOGGER)
    one.write(1.0, "event", SwitchUp(1, 4))
    other.write(2.0, "event", SwitchUp(1, 4))
    one.write(3.0, "event", SwitchUp(2, 4))
    with (tmp_path / "run.jsonl").open() as file:
        assert [(line.app, line.at_s) for line in read_lines(file)] == [
            ("multicast", 1.0),
            ("unicast", 2.0),
            ("multicast", 3.0),
        ]


def test_a_recording_ends_at_its_bound(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(recorder, "RECORD_BYTES", 500)
    writer = recorder.Recorder(str(tmp_path / "run.jsonl"), "multicast", LOGGER)
    with caplog.at_level(logging.WARNING):
        for dpid in range(100):
            writer.write(1.0, "event", SwitchUp(dpid, 4))
    assert 500 <= (tmp_path / "run.jsonl").stat().st_size < 700
    assert len(caplog.records) == 1


@pytest.mark.parametrize("name", ["/nowhere/at/all.jsonl"])
def test_a_file_that_cannot_be_made_is_told(name):
    with pytest.raises(SystemExit, match="nowhere"):
        recorder.Recorder(name, "multicast", LOGGER)


def test_what_a_crash_tore_is_passed_over_and_cut_off(tmp_path):
    path = tmp_path / "run.jsonl"
    recorder.Recorder(str(path), "multicast", LOGGER).write(1.0, "event", SwitchUp(1, 4))
    whole = path.read_bytes()
    for cut in range(1, len(whole)):
        path.write_bytes(whole + whole[:cut])
        with path.open() as file:
            assert len(list(read_lines(file))) == 1 + (cut == len(whole) - 1)
        recorder.Recorder(str(path), "multicast", LOGGER).write(2.0, "event", SwitchUp(2, 4))
        with path.open() as file:
            assert [line.at_s for line in read_lines(file)] == [1.0, 2.0]
