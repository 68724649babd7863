"""Every kind of odd input of docs/anomaly-input.md has the outcome that stands there, for both commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from apps.cli.main import main

START_S, STEP_S, ROWS = 1_767_225_600, 1800, 400
MEMBERS = "abcd"
ODD = ROWS // 40
"""How many samples are odd where single ones are."""
DOCS = Path(__file__).parents[3] / "docs" / "anomaly-input.md"

Row = tuple[str, str, str]
"""Time, member, value."""


def calm_rows() -> list[Row]:
    values = 20 + np.random.default_rng(1).normal(size=(ROWS, len(MEMBERS)))
    return [
        (str(START_S + STEP_S * (row + 1)), member, f"{values[row, column]:.4f}")
        for row in range(ROWS)
        for column, member in enumerate(MEMBERS)
    ]


def of_member(name: str, change: Callable[[int, Row], list[Row]]) -> list[Row]:
    """Return the calm rows with those of one member, numbered in time, changed."""
    found, number = [], 0
    for row in calm_rows():
        if row[1] == name:
            found += change(number, row)
            number += 1
        else:
            found.append(row)
    return found


class Found:
    """What both commands say of a file."""

    def __init__(self, folder: Path, rows: list[Row], capsys: pytest.CaptureFixture[str]) -> None:
        path = folder / "odd.csv"
        path.write_text("timestamp,member,value\n" + "".join(",".join(row) + "\n" for row in rows), encoding="utf-8")
        chain = ("--interval", str(STEP_S), "--window", "24", "--shift", "12", "--smoothing", "2")
        self.peers, self.peers_said = self._run(capsys, "diagnose", "--input", path, *chain)
        fitted, self.said = self._run(capsys, "normalcy", "fit", "--input", path)
        of_series = fitted.get("series", [fitted])
        self.normal = {one["member"]: one for one in of_series}
        self.left_out = {name: one["left_out"] for name, one in self.normal.items()}
        self.notes = " | ".join(self.peers["notes"])
        self.unscored = {one["member"]: one["windows"] for one in self.peers["unscored"]}

    @staticmethod
    def _run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[dict, str]:
        assert main([*map(str, words), "--json"]) == 0
        found = capsys.readouterr()
        return json.loads(found.out), found.err

    def scores(self, member: str) -> list[float]:
        return [one["score"] for one in self.peers["scores"] if one["member"] == member]


@pytest.fixture
def look(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[list[Row]], Found]:
    return lambda rows: Found(tmp_path, rows, capsys)


_calm: list[Found] = []


@pytest.fixture
def calm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Found:
    if not _calm:
        _calm.append(Found(tmp_path, calm_rows(), capsys))
    return _calm[0]


Look = Callable[[list[Row]], Found]


def test_calm_rows_are_calm(calm: Found):
    found = calm
    (note,) = found.peers["notes"]
    assert "had no training period" in note
    assert (found.peers["faulty"], found.unscored, found.said) == ([], {}, "")
    assert all(set(counts.values()) == {0} for counts in found.left_out.values())


@pytest.mark.parametrize("text", ["NaN", ""])
def test_no_number(look: Look, text: str):
    found = look(of_member("c", lambda n, row: [(row[0], row[1], text if n % 40 == 7 else row[2])]))
    assert f"{ODD} samples without a value are left out (1 series)" in found.notes
    assert (found.left_out["c"]["not_a_number"], found.normal["c"]["points"]) == (ODD, ROWS - ODD)
    assert found.peers["faulty"] == [] and found.unscored == {}


@pytest.mark.parametrize("text", ["inf", "-inf", "1e200"])
def test_infinite(look: Look, text: str):
    found = look(of_member("c", lambda n, row: [(row[0], row[1], text if n % 40 == 7 else row[2])]))
    assert f"{ODD} infinite values, or beyond 1e100, are taken as missing (1 series)" in found.notes
    assert (found.left_out["c"]["infinite"], found.normal["c"]["points"]) == (ODD, ROWS - ODD)
    assert found.peers["faulty"] == [] and found.unscored == {}
    assert max(bound["upper"] for bound in found.normal["c"]["bounds"]) < 30


def test_a_time_twice(look: Look, calm: Found):
    found = look(of_member("c", lambda n, row: [(row[0], row[1], "9999"), row] if n % 40 == 7 else [row]))
    assert f"{ODD} samples repeat a time; the last one written counts (1 series)" in found.notes
    assert found.peers["scores"] == calm.peers["scores"]
    assert found.left_out["c"]["duplicated"] == ODD
    assert found.normal["c"]["bounds"] == calm.normal["c"]["bounds"]


def test_out_of_order(look: Look, calm: Found):
    rows = calm_rows()
    found = look([row for start in range(0, len(rows), 50) for row in reversed(rows[start : start + 50])])
    assert "samples are earlier than the one before them; they are put in order (4 series)" in found.notes
    scores = {(one["t"], one["member"]): one["score"] for one in found.peers["scores"]}
    assert scores == {(one["t"], one["member"]): one["score"] for one in calm.peers["scores"]}
    assert found.left_out["c"]["out_of_order"] > 0
    assert found.normal["c"]["bounds"] == calm.normal["c"]["bounds"]


def test_no_time_zone(look: Look, calm: Found):
    def zoneless(text: str) -> str:
        return str(np.datetime64(int(text), "s")).replace("T", " ")

    found = look([(zoneless(at), *rest) for at, *rest in calm_rows()])
    assert "times without a zone are taken as UTC" in found.notes
    assert "times without a zone are taken as UTC" in found.said
    assert found.peers["scores"] == calm.peers["scores"]
    assert found.normal["c"]["bounds"] == calm.normal["c"]["bounds"]


def test_a_gap(look: Look):
    found = look(of_member("c", lambda n, row: [] if 150 <= n < 190 else [row]))
    assert 3 <= found.unscored.pop("c") <= 5
    assert found.unscored == {}
    assert found.normal["c"]["points"] == ROWS - 40
    assert found.normal["c"]["reason"].startswith("10.3 % of the time is gaps")


def test_a_constant_series(look: Look):
    rows = [(at, member, "20" if member == "c" else value) for at, member, value in calm_rows()]
    found = look(rows)
    assert len(found.scores("c")) == found.peers["windows"]
    assert found.normal["c"]["category"] == "semi-constant"
    assert {(bound["lower"], bound["upper"]) for bound in found.normal["c"]["bounds"]} == {(20, 20)}


def test_all_series_constant(look: Look):
    found = look([(at, member, "20") for at, member, _ in calm_rows()])
    assert (found.peers["faulty"], {one["score"] for one in found.peers["scores"]}) == ([], {0})


def test_an_empty_series(look: Look):
    found = look([(at, member, "" if member == "c" else value) for at, member, value in calm_rows()])
    assert "1 series without any value: c/all/value" in found.notes
    assert found.scores("c") == [] and found.unscored == {"c": found.peers["windows"]}
    assert len(found.scores("d")) == found.peers["windows"]
    assert (found.normal["c"]["category"], found.normal["c"]["bounds"]) == ("corrupted", [])


def test_no_series_at_all(look: Look):
    found = look([])
    assert (found.peers["windows"], found.peers["scores"]) == (0, [])
    assert "no series holds a value" in found.notes
    assert found.normal == {} or set(found.normal) == {""}


def test_one_member_alone(look: Look):
    found = look([row for row in calm_rows() if row[1] == "a"])
    assert "a has no peer; it is compared with its own past alone" in found.notes
    assert len(found.scores("a")) == found.peers["windows"]
    assert found.normal["a"]["points"] == ROWS


def test_a_member_that_appears(look: Look):
    found = look(of_member("c", lambda n, row: [row] if n >= 200 else []))
    windows = found.peers["windows"]
    assert windows // 2 <= found.unscored["c"] <= windows // 2 + 3
    assert len(found.scores("c")) + found.unscored["c"] == windows
    assert len(found.scores("d")) == windows
    assert found.normal["c"]["start_up"] is True


def test_a_member_that_vanishes(look: Look):
    found = look(of_member("c", lambda n, row: [row] if n < 200 else []))
    windows = found.peers["windows"]
    assert windows // 2 - 3 <= found.unscored["c"] <= windows // 2
    assert len(found.scores("d")) == windows
    assert found.normal["c"]["bounds"][0]["t"] <= START_S + STEP_S * 201 + 7200


def test_a_member_that_is_there_for_less_than_half_of_a_window(look: Look):
    found = look(of_member("c", lambda n, row: [row] if 194 <= n < 202 else []))
    assert found.unscored == {"c": found.peers["windows"]}
    assert found.normal["c"]["category"] == "corrupted"


@pytest.mark.parametrize("command", [("diagnose",), ("normalcy", "fit"), ("normalcy", "score", "-o", "scores.csv")])
@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("soon", "a", "1"), "timestamp: expected ISO 8601 or epoch seconds, found 'soon'"),
        (("inf", "a", "1"), "timestamp: inf is out of the range of epoch seconds"),
        (("1e15", "a", "1"), "timestamp: 1e+15 is out of the range of epoch seconds"),
        (("1767225600", "a", "much"), "value: expected a number, found 'much'"),
        (("1767225600", "a"), ":1602: 2 fields; the header has 3"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    row: tuple[str, ...],
    message: str,
):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "odd.csv"
    rows = [("timestamp", "member", "value"), *calm_rows(), row]
    path.write_text("".join(",".join(one) + "\n" for one in rows), encoding="utf-8")
    assert main([*command, "--input", str(path)]) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert message in found.err
    assert str(len(rows)) in found.err or str(len(rows) - 1) in found.err
    assert not (tmp_path / "scores.csv").exists()


KINDS: dict[str, Callable[..., None]] = {
    "NaN, no value": test_no_number,
    "infinite, beyond 1e100": test_infinite,
    "a time twice": test_a_time_twice,
    "out of order": test_out_of_order,
    "no time zone": test_no_time_zone,
    "a gap": test_a_gap,
    "a constant series": test_a_constant_series,
    "an empty series": test_an_empty_series,
    "no series at all": test_no_series_at_all,
    "one member alone in its group": test_one_member_alone,
    "a member that appears": test_a_member_that_appears,
    "a member that vanishes": test_a_member_that_vanishes,
    "a member there for less than half of a window": test_a_member_that_is_there_for_less_than_half_of_a_window,
    "a field that is no number or time, a row with fields missing": test_what_cannot_be_read_is_named_with_its_line,
}


def test_every_outcome_in_the_document_is_tested():
    table = DOCS.read_text(encoding="utf-8").partition("| input |")[2].partition("\n\n")[0].splitlines()[2:]
    assert [line.split("|")[1].strip() for line in table] == list(KINDS)
