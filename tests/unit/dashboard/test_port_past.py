"""The history of a port from the monitor's files, with the bounds that were learnt of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from apps.dashboard.answers import Problem
from apps.dashboard.past import MOST_POINTS, PastFiles, Stretch, with_learnt_bounds
from apps.exporters.schema import RecordKind
from roll_up_files import write_roll_ups

START_S = 1_763_164_800.0  # 2025-11-15T00:00Z
SPEED_BPS = 1e9
LEVEL = 1e6


RATES = {"tx_bytes": LEVEL, "rx_bytes": LEVEL / 10, "rx_errors": 0.5}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    write_roll_ups(tmp_path, RecordKind.MINUTES, (3, 1), START_S, 60, **RATES)
    write_roll_ups(tmp_path, RecordKind.HOURS, (3, 1), START_S, 24, **RATES)
    return tmp_path


def history(directory: Path, metric: str = "tx_bps", hours: float = 1.0, step_s: float = 0.0) -> dict[str, Any]:
    asked = Stretch(3, 1, metric, START_S, START_S + 3600 * hours, step_s)
    return asyncio.run(PastFiles(directory).history(asked, SPEED_BPS))


@pytest.mark.parametrize(
    ("metric", "value"),
    [("tx_bps", 8 * LEVEL), ("rx_bps", 0.8 * LEVEL), ("tx_utilisation_pct", 0.8), ("errors_pps", 0.5)],
)
def test_a_stretch_of_an_hour_is_made_of_minutes(files: Path, metric: str, value: float) -> None:
    found = history(files, metric)
    assert (found["step_s"], len(found["points"])) == (60.0, 60)
    assert [point["time_s"] for point in found["points"][:2]] == [START_S, START_S + 60]
    assert [point["value"] for point in found["points"]] == pytest.approx([value] * 60)


def test_a_stretch_of_days_is_made_of_hours(files: Path) -> None:
    found = history(files, hours=24 * 7)
    assert (found["step_s"], len(found["points"])) == (3600.0, 24)


def test_where_minutes_are_gone_hours_stand_for_them(tmp_path: Path) -> None:
    write_roll_ups(tmp_path, RecordKind.HOURS, (3, 1), START_S, 24, **RATES)
    assert len(history(tmp_path, hours=12)["points"]) == 12


def test_an_answer_has_a_bounded_number_of_points(tmp_path: Path) -> None:
    found = history(tmp_path, hours=24 * 365)
    assert found["points"] == []
    assert 24 * 365 * 3600 / found["step_s"] <= MOST_POINTS and found["step_s"] % 3600 == 0
    assert history(tmp_path, step_s=600.0)["step_s"] == 600.0


def test_a_file_that_is_none_is_told(files: Path) -> None:
    (files / RecordKind.MINUTES / "2025-11-15T00Z-0000.parquet").write_bytes(b"no Parquet")
    with pytest.raises(Problem, match=r"2025-11-15T00Z-0000\.parquet") as problem:
        history(files)
    assert problem.value.status == 409


def learnt(document: dict[str, Any], bounds: Any, speed_bps: float = SPEED_BPS) -> tuple[dict[str, Any], list[Any]]:
    """The document with bounds of a controller that answers `bounds`, and what it was asked."""
    asked: list[Any] = []

    async def ask(question: dict[str, Any]) -> Any:
        asked.append(question)
        if isinstance(bounds, Problem):
            raise bounds
        return {"bounds": bounds}

    return asyncio.run(with_learnt_bounds(document, speed_bps, ask)), asked


def test_bounds_that_were_learnt_take_the_place_of_those_of_the_stretch(files: Path) -> None:
    document = history(files)
    found, (asked,) = learnt(document, [[LEVEL / 2, 2 * LEVEL]] * 59 + [[None, None]])
    assert (asked["metric"], asked["times_s"][0]) == ("tx_bytes_per_s", START_S + 30)
    assert (found["points"][0]["lower"], found["points"][0]["upper"]) == (4 * LEVEL, 16 * LEVEL)
    assert (found["points"][59]["lower"], found["points"][59]["value"]) == (None, 8 * LEVEL)


def test_bounds_of_a_utilisation_are_shares_of_the_speed_and_never_below_0(files: Path) -> None:
    document = history(files, "tx_utilisation_pct")
    found, _ = learnt(document, [[-5.0, 2 * LEVEL]] * 60)
    assert found["points"][0]["upper"] == pytest.approx(1.6) and found["points"][0]["lower"] == 0.0
    assert learnt(document, [], 0.0) == (document, [])


@pytest.mark.parametrize("answer", [Problem(409, "no bounds are learnt"), [[None, None]] * 60])
def test_without_learnt_bounds_those_of_the_stretch_stay(files: Path, answer: Any) -> None:
    document = history(files)
    assert learnt(document, answer)[0] == document


def test_what_is_asked_of_the_server(files: Path, start: Any, controller: Any) -> None:
    dashboard = start(history=str(files))
    place = f"/ports/3/1/history?metric=tx_bps&until_s={START_S + 3600}"
    assert len(dashboard.get(f"{place}&since_s={START_S}")["points"]) == 60
    for query in ("", f"&since_s={START_S + 7200}"):
        answer = dashboard.client.get(f"{place}{query}")
        assert (answer.status_code, answer.json()["field"]) == (422, "since_s")


def test_a_server_without_files_says_so(dashboard: Any) -> None:
    answer = dashboard.client.get("/ports/3/1/history?since_s=1&until_s=2")
    assert answer.status_code == 501
