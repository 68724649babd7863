"""`vsrt probe`, and `vsrt replay --probe`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from apps.cli.main import main

CASE = Path(__file__).parents[2] / "conformance" / "multicast" / "link-fails-and-returns"
DOCS = Path(__file__).parents[3] / "docs" / "probes.md"


def call(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    status = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return status, out, err


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    path.write_text("".join(each.read_text() for each in sorted(CASE.glob("*-input.jsonl"))))
    return path


@pytest.fixture
def documented(tmp_path: Path) -> Path:
    """The script that the documents show."""
    lines = DOCS.read_text().split("## An example\n")[1].split("\nThe terminal")[0].splitlines()
    path = tmp_path / "wait.probe"
    path.write_text("".join(f"{line[4:]}\n" for line in lines))
    return path


def counted(recording: Path, kind: str) -> int:
    events = (json.loads(line).get("event", {}) for line in recording.read_text().splitlines())
    return sum(event.get("$") == kind for event in events)


def test_the_script_of_the_documents_finds_what_is_in_a_recording(
    capsys: pytest.CaptureFixture[str], recording: Path, documented: Path
):
    assert call(capsys, "probe", "check", documented)[0] == 0
    status, out, err = call(capsys, "replay", recording, "--probe", documented, "--json")
    found = json.loads(out)
    assert (status, err, found["faults"], found["lost_keys"]) == (0, "", {}, 0)
    waits = sum(row["count"] for row in found["aggregates"]["wait"])
    assert 0 < waits <= counted(recording, "BarrierReplied")
    effects = call(capsys, "replay", recording)[1].splitlines()
    edits = [edit["$"] for line in effects for edit in json.loads(line)["effect"].get("edits", ())]
    rows = {row["keys"][0]: row["count"] for row in found["aggregates"]["edits_of"]}
    assert rows == {kind: edits.count(kind) for kind in set(edits)}
    shown = call(capsys, "replay", recording, "--probe", documented)[1]
    assert "wait:" in shown and "edits_of:" in shown and f"{rows['Put']:,}" in shown


def test_histograms_are_drawn_and_what_is_lost_is_told(
    capsys: pytest.CaptureFixture[str], recording: Path, tmp_path: Path
):
    script = tmp_path / "sizes.probe"
    script.write_text(
        'aggr size[0][0]; multicast:event:PacketReceived { size <- len(data); size <- 1; print("\x1b[31mred"); }'
        ' multicast:event:PacketReceived { print("%d", u32(data, 9999)); }'
    )
    status, out, err = call(capsys, "replay", recording, "--probe", script)
    count = counted(recording, "PacketReceived")
    assert status == 0 and f"{count} firings ended by a fault (offset beyond the data)" in err
    lines = out.splitlines()
    assert lines[0] == "\ufffd[31mred" and "\x1b" not in out
    assert sum("|" in line and "#" in line for line in lines) >= 2


def test_a_fault_of_a_script_is_told_with_its_place(
    capsys: pytest.CaptureFixture[str], recording: Path, tmp_path: Path
):
    script = tmp_path / "bad.probe"
    script.write_text("begin {\n  x = 1;\n}\n")
    status, out, err = call(capsys, "probe", "check", script)
    assert (status, out, err) == (2, "", f"{script}:2:3: x is no variable\n")
    status, out, err = call(capsys, "probe", "check", script, "--json")
    assert json.loads(out) == {"ok": False, "errors": [{"line": 2, "column": 3, "message": "x is no variable"}]}
    status, out, err = call(capsys, "replay", recording, "--probe", script)
    assert (status, out, err) == (2, "", f"vsrt: {script}:2:3: x is no variable\n")
    assert call(capsys, "probe", "check", tmp_path / "none.probe")[0] == 2


def test_points_are_listed_with_their_arguments(capsys: pytest.CaptureFixture[str]):
    status, out, _ = call(capsys, "probe", "list", "*:effect:SendPacket", "--json")
    points = json.loads(out)["points"]
    assert status == 0 and {point["name"].split(":")[0] for point in points} >= {"multicast", "discovery"}
    assert points[0]["arguments"] == {"dpid": "int", "ports": "list of int", "data": "octets"}
    assert (
        call(capsys, "probe", "list", "multicast:event:Port*")[1].splitlines()[1].startswith("multicast:event:Port")
    )
    status, _, err = call(capsys, "probe", "list", "multicast:event:PacketRecieved")
    assert (status, "did you mean multicast:event:PacketReceived?" in err) == (2, True)
