"""`vsrt actions`: who asked the controller for what."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from apps.cli.main import main
from apps.state_dir import ActionLog


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory whose log of actions was turned over once."""
    monkeypatch.setenv("VSRT_STATE_DIR", str(tmp_path))
    monkeypatch.delenv("VSRT_TIME", raising=False)
    log = ActionLog(tmp_path / "actions.jsonl", logging.getLogger("actions"))
    log.add("switch-drain", {"dpid": 3}, "ann", None)
    (tmp_path / "actions.jsonl").rename(tmp_path / "actions.1.jsonl")
    log.add("switch-undrain", {"dpid": 3}, "bob", "switch 3 is not drained")
    log.add("perf-set", {"knob": "interval_s", "value": "5\x1b[31m"}, "ann", None)
    log.add("policy-reload", {}, None, None)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(["actions", *words, "--json"]) == 0
    return [line["action"] for line in json.loads(capsys.readouterr().out)]


@pytest.mark.parametrize(
    ("words", "actions"),
    [
        ([], ["switch-drain", "switch-undrain", "perf-set", "policy-reload"]),
        (["--by", "ann"], ["switch-drain", "perf-set"]),
        (["--by", "a*", "--action", "perf-*"], ["perf-set"]),
        (["--action", "switch-*"], ["switch-drain", "switch-undrain"]),
        (["--refused"], ["switch-undrain"]),
        (["--limit", "2"], ["perf-set", "policy-reload"]),
        (["--since", "2999-01-01"], []),
        (["--until", "2999-01-01", "--by", ""], ["policy-reload"]),
    ],
)
def test_lines_are_chosen_by_who_what_and_when(
    state: Path, capsys: pytest.CaptureFixture[str], words: list[str], actions: list[str]
) -> None:
    assert told(capsys, *words) == actions


def test_a_row_says_who_asked_for_what_and_why_it_was_refused(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["actions"]) == 0
    titles, drain, undrain, knob, reload = capsys.readouterr().out.splitlines()
    assert titles.split() == ["TIME", "(UTC)", "BY", "ACTION", "ASKED", "VERDICT", "REASON"]
    assert drain.split()[2:] == ["ann", "switch-drain", "dpid=3", "done", "-"]
    assert undrain.endswith("refused  switch 3 is not drained")
    assert "knob=interval_s value=5\ufffd[31m" in knob
    assert reload.split()[2:5] == ["-", "policy-reload", "-"]


def test_what_a_crash_cut_is_left_out_with_a_note(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (state / "actions.jsonl").open("a") as file:
        file.write('{"time":"2026-')
    assert main(["actions", "--limit", "1"]) == 0
    out, err = capsys.readouterr()
    assert "policy-reload" in out
    assert "actions.jsonl:4" in err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--since", "yesterday"], "--since: expected ISO 8601 or epoch seconds, found 'yesterday'"),
        (["--limit", "0"], "--limit: 0 is not at least 1"),
        (["audit.jsonl"], "audit.jsonl:1: no line of a log of actions"),
        (["absent.jsonl"], "absent.jsonl: No such file or directory"),
    ],
)
def test_what_makes_no_sense_is_told_with_its_place(
    state: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    why: str,
) -> None:
    (state / "audit.jsonl").write_text('{"time": "2026-11-22T00:00:00Z", "verdict": "allow"}\n')
    monkeypatch.chdir(state)
    assert main(["actions", *words]) == 2
    assert why in capsys.readouterr().err


def test_no_log_at_all_is_told_with_where_it_was_looked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VSRT_STATE_DIR", str(tmp_path / "empty"))
    assert main(["actions"]) == 2
    assert f"{tmp_path}/empty: there is no actions.jsonl; VSRT_STATE_DIR says where" in capsys.readouterr().err
