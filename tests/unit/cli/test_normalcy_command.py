from __future__ import annotations

import csv
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from apps.cli.batch import on_cores
from apps.cli.main import main
from apps.cli.normalcy_batch import fit_many
from controller.anomaly.normalcy.settings import Settings

START = datetime(2026, 3, 2, tzinfo=UTC)


def wave(days: int) -> tuple[list[datetime], np.ndarray]:
    hours = np.arange(24 * days)
    noise = np.random.default_rng(1).normal(size=len(hours))
    return [START + timedelta(hours=int(hour)) for hour in hours], 50 + 20 * np.sin(2 * np.pi * hours / 24) + noise


def series_file(tmp_path: Path, days: int = 28, stamp: str = "%Y-%m-%dT%H:%M:%SZ") -> Path:
    path = tmp_path / "series.csv"
    at, values = wave(days)
    rows = [f"{when:{stamp}},{value:.3f}" for when, value in zip(at, values, strict=True)]
    path.write_text("\n".join(("timestamp,value", *rows, "")), encoding="utf-8")
    return path


def fitted(capsys: pytest.CaptureFixture[str], path: Path, *options: str) -> dict:
    assert main(["normalcy", "fit", "--input", str(path), "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["normalcy", *words]) == 2
    found = capsys.readouterr()
    assert found.out == ""
    return found.err


def score_rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_fit_gives_category_period_and_bounds_of_the_next_day(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    found = fitted(capsys, series_file(tmp_path))
    assert found["category"] in ("low-variability", "high-variability")
    assert (found["periodic"], found["period_s"], found["start_up"]) == (True, 86400, False)
    end_s = (START + timedelta(days=28)).timestamp()
    assert found["bounds"][0]["t"] == end_s
    assert found["bounds"][-1]["t"] < end_s + 86400
    assert all(bound["lower"] < bound["upper"] for bound in found["bounds"])
    assert max(bound["upper"] for bound in found["bounds"]) == pytest.approx(72, abs=4)
    assert found["reason"]


def test_bounds_go_as_far_ahead_as_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = series_file(tmp_path)
    one, three = fitted(capsys, path), fitted(capsys, path, "--ahead-s", str(3 * 86400))
    assert len(three["bounds"]) == 3 * len(one["bounds"])
    assert [b["upper"] for b in three["bounds"][: len(one["bounds"])]] == [b["upper"] for b in one["bounds"]]


def test_all_that_is_normal_is_told_where_bounds_say_too_little(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "states.csv"
    at, _ = wave(28)
    rows = [f"{when.timestamp():.0f},{9 if 8 <= when.hour < 16 else 2}" for when in at]
    path.write_text("\n".join(("timestamp,value", *rows)), encoding="utf-8")
    found = fitted(capsys, path)
    assert (found["category"], found["period_s"]) == ("multinomial", 86400)
    assert [bound["normal"] for bound in found["bounds"]].count([9.0]) == 2
    path = series_file(tmp_path)
    assert "normal" not in fitted(capsys, path)["bounds"][0]


def test_short_series_say_that_they_are_in_start_up_mode(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    found = fitted(capsys, series_file(tmp_path, days=3))
    assert found["start_up"] is True
    assert found["reason"].startswith("start-up mode, 3 of 7 days")


def test_parameters_are_settable(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = series_file(tmp_path)
    assert fitted(capsys, path, "--set", "min_similarity_pct=100")["periodic"] is False
    assert fitted(capsys, path, "--set", "categories=trendy", "--set", "whisker=3")["category"] != "transient"


def test_an_empty_file_has_no_bounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "empty.csv"
    path.write_text("timestamp,value\n", encoding="utf-8")
    found = fitted(capsys, path)
    assert (found["category"], found["bounds"], found["reason"]) == ("corrupted", [], "no points")
    out = tmp_path / "scores.csv"
    assert main(["normalcy", "score", "--input", str(path), "-o", str(out)]) == 0
    assert score_rows(out) == [["timestamp", "value", "anomaly_score"]]


def test_times_without_a_zone_are_utc_and_it_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = series_file(tmp_path, stamp="%Y-%m-%d %H:%M:%S")
    assert main(["normalcy", "fit", "--input", str(path), "--json"]) == 0
    found = capsys.readouterr()
    assert json.loads(found.out)["bounds"][0]["t"] == (START + timedelta(days=28)).timestamp()
    assert "without a zone are taken as UTC" in found.err


def test_what_is_no_number_or_twice_or_late_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = series_file(tmp_path)
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[10] = lines[10].partition(",")[0] + ",NaN"
    lines[11] = lines[11].partition(",")[0] + ",inf"
    lines[12], lines[13] = lines[13], lines[12]
    lines.insert(20, lines[19])
    path.write_text("\n".join(lines), encoding="utf-8")
    found = fitted(capsys, path)
    assert found["left_out"] == {
        "not_a_number": 1,
        "infinite": 1,
        "duplicated": 1,
        "out_of_order": 1,
        "too_old": 0,
    }
    out = tmp_path / "scores.csv"
    assert main(["normalcy", "score", "--input", str(path), "-o", str(out)]) == 0
    assert [row[:2] for row in score_rows(out)[1:]] == [line.split(",") for line in lines[1:]]


def test_scores_are_one_per_row_with_the_texts_of_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = series_file(tmp_path, stamp="%Y-%m-%d %H:%M:%S")
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[600] = lines[600].partition(",")[0] + ",140"
    path.write_text("\n".join(lines), encoding="utf-8")
    out = tmp_path / "scores.csv"
    assert main(["normalcy", "score", "--input", str(path), "-o", str(out), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    rows = score_rows(out)
    assert rows[0] == ["timestamp", "value", "anomaly_score"]
    assert [row[:2] for row in rows[1:]] == [line.split(",") for line in lines[1:]]
    scores = [float(row[2]) for row in rows[1:]]
    assert all(0 <= score <= 1 for score in scores)
    assert max(range(len(scores)), key=scores.__getitem__) == 599
    assert summary["rows"] == len(lines) - 1
    assert any(event["points"] == 1 and event["score"] == pytest.approx(scores[599]) for event in summary["events"])


def test_rows_added_at_the_end_change_no_score_before(tmp_path: Path):
    whole, part = series_file(tmp_path), tmp_path / "part.csv"
    lines = whole.read_text(encoding="utf-8").splitlines()
    part.write_text("\n".join(lines[:400]), encoding="utf-8")
    for path in (whole, part):
        assert main(["normalcy", "score", "--input", str(path), "-o", f"{path}.scores"]) == 0
    assert score_rows(Path(f"{whole}.scores"))[:400] == score_rows(Path(f"{part}.scores"))


def test_scores_go_to_standard_output_without_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = series_file(tmp_path, days=2)
    assert main(["normalcy", "score", "--input", str(path)]) == 0
    assert capsys.readouterr().out.startswith("timestamp,value,anomaly_score\n2026-03-02T00:00:00Z,")
    assert "-o" in refused(capsys, "score", "--input", str(path), "--json")


def test_files_with_many_series(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    at, values = wave(10)
    path = tmp_path / "many.parquet"
    table = pyarrow.table({"timestamp": pyarrow.array(at), "eth1": values, "eth2": np.full(len(values), 3.0)})
    pyarrow.parquet.write_table(table, path)
    found = fitted(capsys, path)["series"]
    assert [(one["member"], one["category"]) for one in found][1] == ("eth2", "semi-constant")
    assert fitted(capsys, path, "--member", "eth2")["bounds"][0]["upper"] == 3
    assert main(["normalcy", "fit", "--input", str(path)]) == 0
    assert "semi-constant" in capsys.readouterr().out
    assert "2 series" in refused(capsys, "score", "--input", str(path), "-o", str(tmp_path / "out.csv"))
    out = tmp_path / "out.csv"
    assert main(["normalcy", "score", "--input", str(path), "--member", "eth2", "-o", str(out)]) == 0
    assert score_rows(out)[1] == ["2026-03-02T00:00:00+00:00", "3.0", "0"]


def test_many_processes_find_what_one_finds():
    at_s = START.timestamp() + 3600.0 * np.arange(240)
    series = [(at_s, np.random.default_rng(seed).normal(size=240)) for seed in range(20)]
    one, two = fit_many(series, Settings(), map), fit_many(series, Settings(), on_cores(2))
    assert [found.reason for found in one] == [found.reason for found in two]
    assert [found.project(at_s[-1], at_s[-1] + 7200)[2].tolist() for found in one] == [
        found.project(at_s[-1], at_s[-1] + 7200)[2].tolist() for found in two
    ]


def test_plots_are_png_and_svg(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path, folder = series_file(tmp_path), tmp_path / "plots"
    fitted(capsys, path, "--plot", str(folder))
    out = str(tmp_path / "s.csv")
    assert main(["normalcy", "score", "--input", str(path), "-o", out, "--plot", str(folder)]) == 0
    names = sorted(each.name for each in folder.iterdir())
    assert names == ["normalcy-series.png", "normalcy-series.svg", "scores-series.png", "scores-series.svg"]
    assert (folder / "normalcy-series.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / "scores-series.svg").read_text(encoding="utf-8")


ODD_ROWS = ["2026-01-01T00:00:00Z,NaN", "2026-01-01T01:00:00Z,inf", "2026-01-01T02:00:00Z,1"]


@pytest.mark.parametrize("rows", [[], ODD_ROWS])
def test_plots_of_next_to_nothing(tmp_path: Path, rows: list[str]):
    path, folder = tmp_path / "few.csv", tmp_path / "plots"
    path.write_text("\n".join(("timestamp,value", *rows)), encoding="utf-8")
    words = ["--input", str(path), "--plot", str(folder)]
    assert main(["normalcy", "fit", "--json", *words]) == 0
    assert main(["normalcy", "score", "-o", str(tmp_path / "scores.csv"), *words]) == 0
    assert len(list(folder.iterdir())) == 4


def test_bad_input_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = series_file(tmp_path)
    assert "nowhere.csv" in refused(capsys, "fit", "--input", str(tmp_path / "nowhere.csv"))
    assert "no member 'eth9'" in refused(capsys, "fit", "--input", str(path), "--member", "eth9")
    assert "--set closeness" in refused(capsys, "fit", "--input", str(path), "--set", "closeness=near")
    assert "nearness" in refused(capsys, "fit", "--input", str(path), "--set", "nearness=1")
    assert "quality_pct" in refused(capsys, "score", "--input", str(path), "--set", "quality_pct=120")
    assert "categories" in refused(capsys, "fit", "--input", str(path), "--set", "categories=spiky")
    assert "--ahead-s" in refused(capsys, "fit", "--input", str(path), "--ahead-s", "-1")
    assert "--jobs" in refused(capsys, "fit", "--input", str(path), "--jobs", "0")
    bad = tmp_path / "bad.csv"
    bad.write_text("timestamp,value\n2026-01-01T00:00:00Z,1\nyesterday,2\n", encoding="utf-8")
    assert "yesterday" in refused(capsys, "score", "--input", str(bad), "-o", str(tmp_path / "out.csv"))
    assert not (tmp_path / "out.csv").exists()


def test_a_day_that_jumps_up_is_found(tmp_path: Path):
    at, values = wave(28)
    jumped = slice(24 * 20 + 9, 24 * 20 + 18)
    values[jumped] += 60
    path, out = tmp_path / "series.csv", tmp_path / "scores.csv"
    rows = [f"{when:%Y-%m-%d %H:%M:%S},{value:.3f}" for when, value in zip(at, values, strict=True)]
    path.write_text("\n".join(("timestamp,value", *rows, "")), encoding="utf-8")
    assert main(["normalcy", "score", "--input", str(path), "-o", str(out)]) == 0
    scored = score_rows(out)[1:]
    best = max(scored[24 * 7 :], key=lambda row: float(row[2]))
    assert f"{at[jumped][0]:%Y-%m-%d %H:%M:%S}" <= best[0] <= f"{at[jumped][-1]:%Y-%m-%d %H:%M:%S}"
