from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from apps.cli.main import main

MEMBERS = ("p1", "p2", "p3", "p4", "p5")
TRAIN = "1767225600:1767231600"
START_S = 1_767_225_600
SAMPLES = 600
CHAIN = ("--interval", "15", "--window", "20", "--shift", "10", "--smoothing", "3")


def values(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).gamma(4, 2, (SAMPLES, len(MEMBERS)))


def long_file(tmp_path: Path, *, tps_too: bool = False) -> Path:
    """Five ports of which p3 waits long from the 450th sample on."""
    await_ms, tps = values(1), values(2)
    await_ms[450:, 2] += 30
    tps[450:, 2] += 30 * tps_too
    lines = ["timestamp,member,peer_group,tier,metric,value"]
    for row in range(SAMPLES):
        for column, member in enumerate(MEMBERS):
            for metric, matrix in (("await", await_ms), ("tps", tps)):
                lines.append(
                    f"{START_S + 15 * (row + 1)},{member},up,t{column % 2},{metric},{matrix[row, column]:.4f}"
                )
    path = tmp_path / "metrics.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def diagnosed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert main(["diagnose", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["diagnose", *arguments, "--json"]) == 2
    found = capsys.readouterr()
    assert found.out == ""
    return found.err.strip()


def test_the_document_has_a_score_for_every_member_and_window(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    found = diagnosed(capsys, "--input", str(long_file(tmp_path)), "--metric", "all", "--train", TRAIN, *CHAIN)
    assert found["windows"] == 59
    assert len(found["scores"]) == 59 * 5 and found["unscored"] == []
    assert set(found["scores"][0]) == {"t", "member", "peer_group", "score"}
    assert found["scores"][0]["t"] == START_S + 20 * 15
    (fault,) = found["faulty"]
    assert (fault["member"], fault["peer_group"], fault["verdict"]) == ("p3", "up", "component fault")
    assert START_S + 450 * 15 < fault["first"] <= START_S + 480 * 15
    assert fault["last"] == START_S + SAMPLES * 15
    assert found["persistent"][-1]["hour"] == "20260101.02"
    assert found["persistent"][-1]["ranking"][0]["member"] == "p3"
    late = [one for one in found["scores"] if one["t"] > START_S + 480 * 15]
    assert all((one["score"] > 2) == (one["member"] == "p3") for one in late)


def test_one_metric_is_judged_and_throughput_tells_the_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = long_file(tmp_path, tps_too=True)
    found = diagnosed(capsys, "--input", str(path), "--metric", "await", "--train", TRAIN, *CHAIN)
    assert [(one["member"], one["verdict"]) for one in found["faulty"]] == [("p3", "load difference")]


def test_iso_times_and_another_column_of_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    train = "2026-01-01T00:00:00Z:2026-01-01T01:40:00+00:00"
    found = diagnosed(capsys, "--input", str(long_file(tmp_path)), "--peer-group", "tier", "--train", train, *CHAIN)
    assert {one["peer_group"] for one in found["scores"]} == {"t0", "t1"}
    assert [one["member"] for one in found["faulty"]] == ["p3"]


def test_a_wide_file_without_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    matrix = values(3)
    matrix[500:, 4] += 30
    path = tmp_path / "wide.csv"
    rows = [f"{START_S + 15 * row}," + ",".join(f"{v:.3f}" for v in matrix[row]) for row in range(SAMPLES)]
    path.write_text("\n".join(["timestamp," + ",".join(MEMBERS), *rows]) + "\n", encoding="utf-8")
    found = diagnosed(capsys, "--input", str(path), "--metric", "await", *CHAIN)
    assert all(set(one["metrics"]) == {"await"} for one in found["faulty"])
    (lasting,) = (one for one in found["faulty"] if one["member"] == "p5")
    assert lasting["last"] == START_S + 15 * (SAMPLES - 1) and lasting["verdict"] == "not told"
    assert found["persistent"][-1]["ranking"][0]["member"] == "p5"
    assert max(found["scores"], key=lambda one: one["score"])["member"] == "p5"


def test_a_member_that_vanishes_is_listed_as_unscored(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = long_file(tmp_path)
    lines = path.read_text(encoding="utf-8").splitlines()
    kept = [line for number, line in enumerate(lines) if ",p5," not in line or number < len(lines) // 2]
    path.write_text("\n".join(kept) + "\n", encoding="utf-8")
    found = diagnosed(capsys, "--input", str(path), "--train", TRAIN, *CHAIN)
    (unscored,) = found["unscored"]
    assert unscored["member"] == "p5" and 25 <= unscored["windows"] <= 31
    assert [one["member"] for one in found["faulty"]] == ["p3"]


def test_people_get_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["diagnose", "--input", str(long_file(tmp_path)), "--train", TRAIN, *CHAIN]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "5 members in 1 groups, 59 windows of 20 samples of 15 s"
    fault = next(line for line in lines if line.startswith("p3"))
    assert "component fault" in fault and "await" in fault
    assert any(line.startswith("20260101.02: ") and " up:p3" in line for line in lines)


def test_the_same_input_gives_the_same_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    arguments = ("--input", str(long_file(tmp_path)), "--train", TRAIN)
    assert diagnosed(capsys, *arguments) == diagnosed(capsys, *arguments)


def test_plots_are_whole_files_that_name_the_faulty(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = tmp_path / "plots"
    diagnosed(capsys, "--input", str(long_file(tmp_path)), "--train", TRAIN, "--plot", str(folder), *CHAIN)
    assert {path.name for path in folder.iterdir()} == {
        f"{kind}-up.{suffix}" for kind in ("peers", "persistence") for suffix in ("png", "svg")
    }
    for path in folder.glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
    for path in folder.glob("*.svg"):
        assert "p3" in "".join(element.text or "" for element in ET.parse(path).iter()) or b"p3" in path.read_bytes()


def test_plots_that_cannot_be_written_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = long_file(tmp_path)
    assert main(["diagnose", "--input", str(path), "--plot", str(path / "plots"), *CHAIN, "--json"]) == 1
    assert "Not a directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--metric", "rtt"), "metric: no 'rtt' in the file; it holds await, tps"),
        (("--peer-group", "rack"), "rack: the column of peer groups is missing"),
        (("--train", "yesterday"), "--train: expected START:END in ISO 8601 or epoch seconds, found 'yesterday'"),
        (("--train", "20:10"), "--train: '20:10' ends before it starts"),
        (("--train", "10:20"), "--train: the file has no sample in that time; it spans 1767225615:1767234600"),
        (
            ("--train", "1767225600:1767225700", *CHAIN),
            "metrics.csv: the training period holds no whole window of 300 s",
        ),
        (("--interval", "0.00001"), "metrics.csv: 0 days of 5 members at 1e-05 s are too much at once"),
        (("--window", "1"), "--window: expected at least 2, found 1"),
        (("--margin", "0"), "--margin: expected a positive number, found 0.0"),
        (("--interval", "nan"), "--interval: expected a positive number, found nan"),
        (("--interval", "0"), "--interval: expected a positive number, found 0.0"),
        (("--ranking", "0"), "--ranking: expected at least 1, found 0"),
    ],
)
def test_bad_options_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
):
    path = long_file(tmp_path)
    assert refused(capsys, "--input", str(path), *arguments).endswith(message)


def test_a_newcomer_is_drawn_and_compared_with_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = long_file(tmp_path)
    late = [f"{START_S + 15 * (row + 1)},p9,up,t0,await,{row % 7}" for row in range(450, SAMPLES)]
    with path.open("a", encoding="utf-8") as file:
        file.write("\n".join(late) + "\n")
    folder = tmp_path / "plots"
    found = diagnosed(capsys, "--input", str(path), "--train", TRAIN, "--plot", str(folder), *CHAIN)
    assert [one["member"] for one in found["faulty"]] == ["p3"]
    assert {one["peer_group"] for one in found["scores"] if one["member"] == "p9"} == {"new in up"}
    assert any(note.startswith("up: p9 came after the training period") for note in found["notes"])
    assert (folder / "peers-new-in-up.png").stat().st_size > 1000


@pytest.mark.parametrize("rows", [0, 3])
def test_too_little_to_compare_is_said_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: int):
    path = tmp_path / "short.csv"
    path.write_text("timestamp,a,b\n" + "".join(f"{START_S + 15 * n},1,2\n" for n in range(rows)), encoding="utf-8")
    found = diagnosed(capsys, "--input", str(path), "--plot", str(tmp_path / "plots"))
    assert (found["windows"], found["faulty"], found["scores"]) == (0, [], [])
    assert found["notes"] != []


def test_the_limit_of_a_file_without_training_is_told_beside_an_empty_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    await_ms = values(1)
    await_ms[450:, 2] *= 1.6
    rows = [",".join(("timestamp", *MEMBERS))]
    rows += [
        f"{START_S + 15 * (row + 1)}," + ",".join(f"{value:.4f}" for value in await_ms[row]) for row in range(SAMPLES)
    ]
    path = tmp_path / "metrics.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    assert main(["diagnose", "--input", str(path), "--metric", "await", *CHAIN]) == 0
    told = capsys.readouterr().out
    assert "no member passed its threshold" in told
    assert "a fault that lasts for more than a fifth of them is not seen" in told
    assert "name a time without faults with --train" in told


def test_both_ends_of_a_cable_are_told_as_one_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    lines = long_file(tmp_path).read_text(encoding="utf-8").splitlines()
    other_end = [line.replace(",p", ",q").replace(",up,", ",down,") for line in lines[1:]]
    (tmp_path / "both.csv").write_text("\n".join([*lines, *other_end]) + "\n", encoding="utf-8")
    cables = tmp_path / "cables.csv"
    cables.write_text("member,other_end\np3,q3\nq1,p1\np5,host5\n", encoding="utf-8")
    arguments = ("--input", str(tmp_path / "both.csv"), "--train", TRAIN, *CHAIN)
    assert len(diagnosed(capsys, *arguments)["faulty"]) == 2
    (fault,) = diagnosed(capsys, *arguments, "--cables", str(cables))["faulty"]
    assert (fault["member"], fault["other_end"], fault["incident"], fault["rank"]) == ("p3", "q3", 1, 1)
    assert main(["diagnose", *arguments, "--cables", str(cables)]) == 0
    assert "p3 and q3" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a,b\n", "line 1: expected member,other_end, found 'a,b'"),
        ("member,other_end\np1\n", "line 2: expected two ends, found 'p1'"),
        ("member,other_end\np1,p1\n", "line 2: 'p1' is at both ends of a cable"),
        ("member,other_end\n\np1,p2\np2,p3\n", "line 4: 'p2' is at two cables, to 'p1' and to 'p3'"),
        ("member,other_end\nx,y\n", "line 2: neither 'x' nor 'y' is a member in the metric file"),
    ],
)
def test_a_file_of_cables_is_refused_with_its_line(
    text: str, error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    cables = tmp_path / "cables.csv"
    cables.write_text(text, encoding="utf-8")
    told = refused(capsys, "--input", str(long_file(tmp_path)), "--cables", str(cables))
    assert told.endswith(f"cables.csv: {error}")
