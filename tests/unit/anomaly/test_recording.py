from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from controller.anomaly.recording import Recording, end_of_day_s, plan, wait_s

DAY_S = 86_400.0


def at(text: str) -> float:
    return datetime.fromisoformat(f"{text}+00:00").timestamp()


@pytest.mark.parametrize(
    ("now", "end"),
    [
        ("2026-03-01 00:00:05", "2026-03-02 00:00:05"),
        ("2026-03-01 00:00:00", "2026-03-02 00:00:05"),
        ("2026-02-28 23:59:59.9", "2026-03-01 00:00:05"),
        ("2028-02-28 12:00:00", "2028-02-29 00:00:05"),
        ("2026-12-31 00:00:04", "2027-01-01 00:00:05"),
    ],
)
def test_a_file_ends_five_seconds_into_the_next_day(now: str, end: str):
    assert end_of_day_s(at(now)) == at(end)


@pytest.mark.parametrize(
    ("now", "interval_s", "records"),
    [
        ("2026-03-01 00:00:05", 1, 86_401),
        ("2026-03-01 00:00:05", 15, 5_761),
        ("2026-03-01 18:00:05", 15, 1_441),
        ("2026-03-01 23:59:00", 7, 10),
    ],
)
def test_records_fill_the_rest_of_the_day(now: str, interval_s: float, records: int):
    found = plan(at(now), interval_s)
    assert found.records == records
    last_s = found.start_s + (found.records - 1) * interval_s
    assert found.end_s - interval_s < last_s <= found.end_s


def test_the_name_is_the_start_in_iso_8601():
    found = plan(at("2026-03-01 00:00:05.25"), 1)
    assert found.name == "20260301T000005Z"
    assert datetime.fromisoformat(found.name) == datetime(2026, 3, 1, 0, 0, 5, tzinfo=UTC)


def test_no_file_of_one_record():
    assert wait_s(at("2026-03-01 23:59:58"), 15) == 7
    assert wait_s(at("2026-03-01 23:59:58"), 7) == 0


def recorded(start: str, days: int, clock: Callable[[float], float], interval_s: float) -> Iterator[Recording]:
    """Yield the files of a recorder whose clock is `clock` of the seconds that really passed."""
    passed_s, began_s = 0.0, at(start)
    before = None
    while passed_s < days * DAY_S:
        now_s = clock(began_s + passed_s)
        left_s = wait_s(now_s, interval_s, before)
        if left_s > 0:
            passed_s += min(1.0, left_s)
            continue
        before = plan(now_s, interval_s)
        yield before
        passed_s += (before.records - 1) * interval_s


def days_of(files: list[Recording]) -> list[str]:
    return [one.name[:8] for one in files]


def test_a_good_clock_gives_a_file_a_day_at_the_same_time():
    files = list(recorded("2026-03-01 14:30:00", 4, lambda real_s: real_s, 1))
    assert [one.name for one in files] == [
        "20260301T143000Z",
        "20260302T000005Z",
        "20260303T000005Z",
        "20260304T000005Z",
        "20260305T000005Z",
    ]


@pytest.mark.parametrize("drift", [-3e-4, -5e-5, 5e-5, 3e-4])
@pytest.mark.parametrize("interval_s", [1, 15, 60])
def test_a_clock_that_is_corrected_all_day_gives_a_file_a_day(drift: float, interval_s: float):
    start_s = at("2026-03-01 00:00:05")
    files = list(recorded("2026-03-01 00:00:05", 20, lambda real_s: real_s + drift * (real_s - start_s), interval_s))
    assert len(set(days_of(files))) == len(files)
    late_s = [one.start_s - (end_of_day_s(one.start_s) - DAY_S) for one in files[1:]]
    assert min(late_s) >= 0
    assert max(late_s) <= abs(drift) * DAY_S + interval_s + 1


@pytest.mark.parametrize("back_s", [1, 4.9, 30])
def test_a_clock_set_back_as_the_day_ends_opens_no_second_file(back_s: float):
    change_s = at("2026-03-02 00:00:04")
    files = list(recorded("2026-03-01 12:00:00", 2, lambda real_s: real_s - back_s * (real_s > change_s), 1))
    assert days_of(files) == ["20260301", "20260302", "20260303"]
    assert files[1].name == "20260302T000005Z"


def test_a_clock_set_back_by_hours_is_followed_at_once():
    change_s = at("2026-03-01 18:00:00")
    files = list(recorded("2026-03-01 12:00:00", 2, lambda real_s: real_s - 7200 * (real_s > change_s), 1))
    assert [one.name for one in files[:3]] == ["20260301T120000Z", "20260301T220005Z", "20260302T000005Z"]


def test_a_clock_set_forward_does_not_lengthen_the_next_file():
    change_s = at("2026-03-01 18:00:00")
    files = list(recorded("2026-03-01 12:00:00", 2, lambda real_s: real_s + 7200 * (real_s > change_s), 1))
    assert [one.name for one in files[:3]] == ["20260301T120000Z", "20260302T020005Z", "20260303T000005Z"]
