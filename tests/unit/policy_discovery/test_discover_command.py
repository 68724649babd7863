"""`vsrt policy discover` from a log to policies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from apps.cli.main import main


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Twelve storage ports with jumbo frames and a guard, one of which lacks the guard, and 30 others."""
    lines = ["time,resource,type,property,old,new"]
    for number in range(12):
        lines.append(f"1,leaf1:{number},port,mtu,1500,9000")
        lines.append(f"1,leaf1:{number},port,fast-leave,false,true")
        if number != 5:
            lines.append(f"1,leaf1:{number},port,guard,false,true")
    lines += [f"1,leaf2:{number},port,speed,10,25" for number in range(3)]
    path = tmp_path / "changes.csv"
    path.write_text("\n".join(lines) + "\n")
    (tmp_path / "ports.csv").write_text(
        "resource,type,rack\n"
        + "".join(f"leaf1:{number},port,storage\n" for number in range(12))
        + "".join(f"leaf2:{number},port,video\n" for number in range(30))
    )
    return path


def asked(capsys: pytest.CaptureFixture[str], *words: object) -> dict:
    assert main(["policy", "discover", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_habit_is_found_told_by_its_rack_and_its_gap_named(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = asked(capsys, "--log", log, "--inventory", log.with_name("ports.csv"))
    (policy,) = found["policies"]
    assert policy["properties"] == ["fast-leave", "guard", "mtu"]
    assert policy["told_by"] == ["rack=storage"]
    assert policy["varieties"][0]["values"] == {"fast-leave": "true", "guard": "true", "mtu": "9000"}
    assert policy["deviations"] == [{"resource": "leaf1:5", "missing": ["guard"], "other": {}}]


def test_the_published_method_gives_its_dendrogram_uncut(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = asked(capsys, "--log", log, "--inventory", log.with_name("ports.csv"), "--method", "seed")
    assert found["dendrogram"][0]["properties"] == ["fast-leave", "mtu"]
    assert len(found["dendrogram"]) == 3


def test_people_read_who_deviates(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "discover", "--log", str(log), "--inventory", str(log.with_name("ports.csv"))]) == 0
    told = capsys.readouterr().out
    assert "1. fast-leave, guard, mtu" in told
    assert "leaf1:5 deviates: lacks guard" in told


def test_the_document_is_written_where_asked(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = asked(capsys, "--log", log, "-o", log.with_name("found.json"))
    assert json.loads(log.with_name("found.json").read_text()) == found


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["--window", "soon"], "--window 'soon'"),
        (["--min-resources", "0"], "--min-resources 0"),
        (["--baseline", "missing.csv"], "missing.csv: No such file"),
    ],
)
def test_bad_words_are_named(log: Path, words: list[str], fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "discover", "--log", str(log), *words]) == 2
    assert fault in capsys.readouterr().err
