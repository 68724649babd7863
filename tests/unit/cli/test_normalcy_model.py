from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from apps.cli.main import main
from apps.cli.normalcy_model import read_model
from controller.anomaly.normalcy.rolling import RollingNormalcy
from controller.anomaly.series import SeriesName

DAY_S, PER_DAY = 86_400, 96
START_S = 1_767_225_600
DAYS = 22
WEEKLY, STATES, RISING, GAPS = "weekly", "states", "rising", "gaps"


def day_values(day: int, member: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng((day, len(member)))
    at_s = START_S + DAY_S * day + 900.0 * np.arange(PER_DAY)
    share = np.arange(PER_DAY) / PER_DAY
    values = {
        WEEKLY: 50 + 20 * np.sin(2 * np.pi * share) + rng.normal(size=PER_DAY),
        STATES: np.where(share < 0.5, 2.0, 9.0),
        RISING: 3.0 * (day + share) + rng.normal(size=PER_DAY),
        GAPS: np.where(share < 0.2, rng.normal(100, 5, PER_DAY), np.nan),
    }[member]
    return at_s, np.round(values, 4)


def day_file(folder: Path, first: int, last: int, members: tuple[str, ...] = (WEEKLY, STATES, RISING, GAPS)) -> Path:
    lines = ["timestamp,member,value"]
    for day in range(first, last):
        for member in members:
            at_s, values = day_values(day, member)
            lines += [f"{at:.0f},{member},{value:.4f}" for at, value in zip(at_s, values, strict=True)]
    path = folder / f"days-{first}-{last}.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def normalcy(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict:
    assert main(["normalcy", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["normalcy", *map(str, arguments)]) == 2
    return capsys.readouterr().err.strip()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    path = folder / "normalcy.model"
    assert main(["normalcy", "fit", "--input", str(day_file(folder, 0, DAYS)), "-o", str(path), "--json"]) == 0
    return path


def test_a_kept_fit_says_what_a_fit_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path, kept = day_file(tmp_path, 0, DAYS), tmp_path / "normalcy.model"
    plain = normalcy(capsys, "fit", "--input", path)
    assert normalcy(capsys, "fit", "--input", path, "-o", kept) == plain
    assert {one["category"] for one in plain["series"]} >= {"multinomial", "trendy", "low-variability"}


def test_days_added_through_files_give_what_one_process_gives(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    kept = tmp_path / "later.model"
    kept.write_bytes(model.read_bytes())
    rolling = {}
    for member in (WEEKLY, STATES, RISING, GAPS):
        days = [day_values(day, member) for day in range(DAYS)]
        rolling[member] = RollingNormalcy()
        rolling[member].add(np.concatenate([at for at, _ in days]), np.concatenate([values for _, values in days]))
    for day in range(DAYS, DAYS + 3):
        documents = normalcy(capsys, "update", "--model", kept, "--input", day_file(tmp_path, day, day + 1))["series"]
        for document in documents:
            expected = rolling[document["member"]].add(*day_values(day, document["member"]))
            assert (document["category"], document["reason"]) == (expected.category, expected.reason)
            at_s = np.array([bound["t"] for bound in document["bounds"]])
            lower, upper = expected.project(at_s[0], at_s[-1] + 1)[1:]
            assert [bound["lower"] for bound in document["bounds"]] == lower.tolist()
            assert [bound["upper"] for bound in document["bounds"]] == upper.tolist()
    assert [one.fits for one in rolling.values()] == [1, 1, 1, 1]


def test_a_new_day_moves_bounds_without_fitting_the_past(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = day_file(tmp_path, DAYS, DAYS + 1, (WEEKLY,))
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[1 + 48] = lines[1 + 48].rpartition(",")[0] + ",62"
    path.write_text("\n".join(lines), encoding="utf-8")
    before = read_model(model).series[SeriesName(WEEKLY, "all", "value")]
    kept = tmp_path / "later.model"
    found = normalcy(capsys, "update", "--model", model, "--input", path, "-o", kept)
    after = read_model(kept).series[SeriesName(WEEKLY, "all", "value")]
    assert before.normalcy.bounds.at(np.array([START_S + DAY_S / 2]))[1] < 60
    assert next(bound["upper"] for bound in found["bounds"] if bound["t"] % DAY_S == DAY_S / 2) == 62
    assert (after.fitted_s, len(after.at_s)) == (before.fitted_s, len(before.at_s) + PER_DAY)
    assert read_model(kept).series.keys() == read_model(model).series.keys()


def test_points_that_are_known_and_series_that_are_not_are_told(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = day_file(tmp_path, DAYS - 1, DAYS + 1, (WEEKLY,))
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(f"{START_S + 900 * row},other,{row % 3}\n" for row in range(400)))
    kept = tmp_path / "later.model"
    assert main(["normalcy", "update", "--model", str(model), "--input", str(path), "-o", str(kept), "--json"]) == 0
    found = capsys.readouterr()
    assert f"{PER_DAY} points are not later than the model's; they are left out" in found.err
    assert "1 series are not in the model; they are fitted anew" in found.err
    assert [one["member"] for one in json.loads(found.out)["series"]] == [WEEKLY, "other"]
    assert len(read_model(kept).series) == 5


def test_the_model_keeps_its_parameters(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    kept = tmp_path / "normalcy.model"
    normalcy(
        capsys, "fit", "--input", day_file(tmp_path, 0, 10), "-o", kept, "--set", "refit_s=0", "--set", "whisker=2.5"
    )
    normalcy(capsys, "update", "--model", kept, "--input", day_file(tmp_path, 10, 11))
    found = read_model(kept)
    assert (found.settings.refit_s, found.settings.whisker) == (0, 2.5)
    newest = {state.fitted_s for state in found.series.values()}
    assert min(newest) > START_S + 10 * DAY_S


def test_an_empty_series_is_kept_and_carried_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    empty, kept = tmp_path / "empty.csv", tmp_path / "normalcy.model"
    empty.write_text("timestamp,weekly\n1767225600,\n", encoding="utf-8")
    assert normalcy(capsys, "fit", "--input", empty, "-o", kept)["reason"].startswith("start-up mode") is False
    wide = tmp_path / "wide.csv"
    at_s, values = day_values(0, WEEKLY)
    rows = [f"{at:.0f},{value:.4f}" for at, value in zip(at_s, values, strict=True)]
    wide.write_text("\n".join(("timestamp,weekly", *rows)), encoding="utf-8")
    found = normalcy(capsys, "update", "--model", kept, "--input", wide)
    assert (found["points"], found["left_out"]["not_a_number"]) == (PER_DAY, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "format: expected 'vsrt-normalcy-model', found 'other'"),
        ({"version": 1}, "version: expected 2, found '1'"),
        ({"settings": {}}, "settings: alarm_score is missing or unknown"),
        ({"series": [{}]}, "series[0]: member is missing"),
        (
            {"series": [{"member": "a", "peer_group": "b", "metric": "c", "points": 10**9, "left_out": [0] * 5}]},
            f"series[0]: at_s: 1000000000 values expected, {3 * DAYS * PER_DAY + DAYS * 20} found",
        ),
    ],
)
def test_what_is_wrong_in_a_model_is_named(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict, message: str
):
    with np.load(model) as file:
        arrays = dict(file)
    header = json.loads(str(arrays.pop("model")))
    broken = tmp_path / "broken.model"
    with broken.open("wb") as file:
        np.savez(file, model=np.array(json.dumps({**header, **change})), **arrays)
    found = refused(capsys, "update", "--model", broken, "--input", day_file(tmp_path, 22, 23))
    assert found == f"vsrt: {broken}: {message}"


def test_what_is_no_model_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = day_file(tmp_path, 0, 1)
    assert "no model of `vsrt normalcy fit -o`" in refused(capsys, "update", "--model", path, "--input", path)
    assert "No such file" in refused(capsys, "update", "--model", tmp_path / "none", "--input", path)
