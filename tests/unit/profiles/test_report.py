"""`vsrt profile report`: tables, JSON, pages and comparisons of files, and files that are none."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from apps.cli.main import main
from apps.profile_file import KEY, SCHEMA, ProfileFile
from controller.profiles.spans import Operation, Span, SpanOutcome, SpanWaits

OFFSET_S = 1_700_000_000.0


def span(number: int, took_s: float, operation: Operation = Operation.JOIN, **fields: Any) -> Span:
    waits = SpanWaits(0.001, 0.002, took_s - 0.003) if operation is Operation.JOIN else SpanWaits()
    begun_s = number * 0.1
    made = Span(operation, f"239.1.1.{number} at 3:7", begun_s, begun_s + took_s, waits, SpanOutcome.DONE)
    return made._replace(**fields)


def write(path: Path, spans: list[Span], about: dict[str, Any] | None = None, missed: int = 0) -> Path:
    file = ProfileFile(path, {"name": path.stem, "begun_s": OFFSET_S, **(about or {})}, OFFSET_S)
    for first in range(0, len(spans), 10):
        file.write(spans[first : first + 10])
    file.close({"ended_s": OFFSET_S + 60, "ended": "it was stopped", "missed": missed})
    return path


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    spans = [span(number, 0.01 * (number + 1)) for number in range(30)]
    spans += [span(1, 0.5, outcome=SpanOutcome.NO_EDITS), span(2, 60.0, outcome=SpanOutcome.UNFINISHED)]
    spans += [span(40, 2.0, Operation.REPAIR, subject="<1:2-3:4>")]
    return write(tmp_path / "now.parquet", spans)


def test_columns_have_their_units(profile: Path) -> None:
    table = pq.read_table(profile)
    assert table.schema.names == [
        *("operation", "object", "start_s", "took_s"),
        *("wait_loop_s", "wait_controller_s", "wait_switch_s", "wait_disk_s", "outcome"),
    ]
    first = table.slice(0, 1).to_pylist()[0]
    assert (first["operation"], first["object"], first["outcome"]) == ("join", "239.1.1.0 at 3:7", "done")
    assert (first["start_s"], first["took_s"]) == (OFFSET_S, pytest.approx(0.01))
    assert (first["wait_switch_s"], first["wait_disk_s"]) == (pytest.approx(0.007), None)


def test_what_is_done_is_told_by_operation(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "report", str(profile), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    join, repair = told["operations"]
    assert (told["name"], told["ended"]) == ("now", "it was stopped")
    assert (join["operation"], join["count"], join["mean_ms"], join["p50_ms"]) == ("join", 30, 155.0, 155.0)
    assert join["outcomes"] == {"done": 30, "no-edits": 1, "unfinished": 1}
    assert join["mean_waits_ms"] == {"loop": 1.0, "controller": 2.0, "switch": 152.0}
    assert (repair["operation"], repair["count"], repair["p99_ms"]) == ("repair", 1, 2000.0)
    assert main(["profile", "report", str(profile)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("profile now of 2023-11-14 22:13:20 UTC, 60.0 s long: it was stopped")
    assert re.fullmatch(
        r"join +30 +155\.0 .*loop 1\.0, controller 2\.0, switch 152\.0 +1 no-edits, 1 unfinished", lines[2]
    )


def test_what_found_no_room_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "full.parquet", [span(1, 0.1)], missed=1234)
    assert main(["profile", "report", str(path)]) == 0
    assert "1,234 spans found no room and are not in it" in capsys.readouterr().out
    empty = write(tmp_path / "empty.parquet", [])
    assert main(["profile", "report", str(empty), "--html", str(tmp_path / "empty.html")]) == 0
    assert "no operation ended while it ran" in capsys.readouterr().out
    assert "No operation ended" in (tmp_path / "empty.html").read_text()


@pytest.mark.parametrize(("factor", "status", "verdict"), [(1.1, 0, "alike"), (2.0, 1, "slower"), (0.5, 0, "faster")])
def test_a_run_that_is_slower_has_status_1(
    factor: float, status: int, verdict: str, tmp_path: Path, profile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spans = [span(number, factor * 0.01 * (number + 1)) for number in range(30)]
    now = write(tmp_path / "later.parquet", spans)
    assert main(["profile", "report", str(now), "--against", str(profile)]) == status
    told = capsys.readouterr().out
    assert re.search(rf"^join +30 +30 .*{verdict}$", told, re.MULTILINE)
    assert re.search(r"^repair +1 +0 .*too-few$", told, re.MULTILINE)
    words = ["profile", "report", str(now), "--against", str(profile), "--json", "--tolerance", "150%"]
    assert main(words) == 0
    changes = {each["operation"]: each for each in json.loads(capsys.readouterr().out)["changes"]}
    assert changes["join"]["change_pct"] == pytest.approx(100 * (factor - 1), abs=0.2)
    assert changes["join"]["before"]["count"] == 30


def test_the_page_needs_nothing_else_and_takes_names_as_text(tmp_path: Path, profile: Path) -> None:
    path = write(tmp_path / "odd.parquet", [span(1, 0.1)], {"name": "<script>alert(1)</script>"})
    html = tmp_path / "page.html"
    assert main(["profile", "report", str(path), "--against", str(profile), "--html", str(html)]) == 0
    text = html.read_text()
    assert "<script" not in text
    assert not re.search(r"(src|href)=\"(?!#)|url\(|@import", text)
    assert 'name="viewport"' in text
    assert text.count("<svg") == 3


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-200])


def cut_in_the_middle(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:1000])


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4:2000] = bytes(1996)
    path.write_bytes(data)


def change_an_octet(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[data.index(b"239.1.1.1")] ^= 1
    path.write_bytes(data)


def of_another_version(path: Path) -> None:
    table = pq.read_table(path)
    text = json.dumps({"version": 9, "controller": "9.1"}).encode()
    pq.write_table(table.replace_schema_metadata({KEY: text}), path)


def without_metadata(path: Path) -> None:
    pq.write_table(pq.read_table(path).replace_schema_metadata({}), path)


def with_a_column_of_text(path: Path) -> None:
    table = pq.read_table(path)
    column = pa.array(["long"] * table.num_rows)
    pq.write_table(table.set_column(SCHEMA.names.index("took_s"), "took_s", column), path)


def no_parquet(path: Path) -> None:
    path.write_text("operation,took_s\n")


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (cut, "the file is cut, or damaged"),
        (cut_in_the_middle, "the file is cut, or damaged"),
        (damage, "damaged"),
        (change_an_octet, "damaged"),
        (
            of_another_version,
            "a profile of version 9, written by version 9.1 of the controller; this command reads 1",
        ),
        (without_metadata, "a Parquet file, and no profile"),
        (with_a_column_of_text, "columns are missing or of another type: took_s"),
        (no_parquet, "no Parquet file"),
        (empty, "no Parquet file"),
        (Path.unlink, "No such file or directory"),
    ],
)
def test_files_that_are_none_are_told_with_their_name(
    spoil: Any, told: str, profile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(profile)
    assert main(["profile", "report", str(profile)]) == 2
    error = capsys.readouterr().err
    assert str(profile) in error
    assert told in error
    assert len(error.splitlines()) == 1


def test_one_that_is_still_written_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = ProfileFile(tmp_path / "p.parquet", {"name": "p", "begun_s": OFFSET_S}, OFFSET_S)
    file.write([span(1, 0.1)])
    assert main(["profile", "report", str(file.part)]) == 2
    assert "it is still written, or the controller ended before it was whole" in capsys.readouterr().err
    file.close({})


def test_a_page_that_cannot_be_written_is_status_1(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    html = profile.parent / "none" / "page.html"
    assert main(["profile", "report", str(profile), "--html", str(html)]) == 1
    assert f"{html}: No such file or directory" in capsys.readouterr().err
