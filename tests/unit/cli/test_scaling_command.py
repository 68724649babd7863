"""`vsrt scaling simulate`: its document, its table, and what it says of bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from apps.cli.main import BAD_INPUT, DONE, main
from controller.simulation.scaling import diurnal


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "loads.csv"
    rows = [f"{number},{load:.3f}" for number, load in enumerate(diurnal(1, days=1, intervals=96).loads)]
    path.write_text("\n".join(["time,load", *rows]) + "\n")
    return path


def test_learners_stand_beside_each_other(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["scaling", "simulate", "--trace", str(trace), "--repeat", "3", "--learners", "yesterday,threshold"]
    assert main([*words, "--json"]) == DONE
    found = json.loads(capsys.readouterr().out)
    assert (found["intervals"], found["period"], list(found["learners"])) == (288, 96, ["yesterday", "threshold"])
    yesterday = found["learners"]["yesterday"]
    assert yesterday["slo_met_last_period_pct"] >= yesterday["slo_met_pct"] > 95
    assert 1 < yesterday["mean_members"] < 20 and yesterday["changes"] > 10
    assert main(words) == DONE
    out = capsys.readouterr().out
    assert "SLO met %" in out and "threshold" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--learners", "clever"), "--learners: there is no 'clever'; there are yesterday"),
        (("--repeat", "0"), "--repeat: 0 is not from 1"),
        (("--period", "97"), "--period: 97 is not from 1 to the 96 intervals"),
        (("--slo", "0"), "--slo: 0 is not above 0"),
        (("--slo", "nan"), "--slo: nan is not above 0"),
        (("--least", "9", "--limit", "8"), "--least: 9 is not from 1 to --limit, 8"),
    ],
)
def test_bad_options_are_refused(
    trace: Path, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scaling", "simulate", "--trace", str(trace), *words]) == BAD_INPUT
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("time,loads\n1,2\n", "loads.csv:1: no column load; found time, loads"),
        ("", "loads.csv:1: no column load; found none"),
        ("load,load\n1,2\n", "loads.csv:1: more than one column load; found load, load"),
        ("load\n1\nmany\n", "loads.csv:3: load: 'many' is not a number of members from 0 to 1000000"),
        ("load\n1_0\n", "loads.csv:2: load: '1_0' is not a number"),
        ("load\n1e300\n", "loads.csv:2: load: '1e300' is not a number"),
        ("load\n2,5\n", "loads.csv:2: 2 cells, and 1 in the first line"),
        ("time,load\n1,2\n2\n", "loads.csv:3: 1 cell, and 2 in the first line"),
        ("load\n1\n\n2\n", "loads.csv:3: 0 cells, and 1 in the first line"),
        ("load\n-1\n", "loads.csv:2: load: '-1' is not a number"),
        ("load\ninf\n", "loads.csv:2: load: 'inf' is not a number"),
        ("load\n", "loads.csv: there is no interval"),
    ],
)
def test_bad_files_are_refused_with_their_line(
    tmp_path: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "loads.csv"
    path.write_text(text)
    assert main(["scaling", "simulate", "--trace", str(path)]) == BAD_INPUT
    assert said in capsys.readouterr().err


def test_a_file_that_is_not_there_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scaling", "simulate", "--trace", "none.csv"]) == BAD_INPUT
    assert "none.csv: No such file" in capsys.readouterr().err
