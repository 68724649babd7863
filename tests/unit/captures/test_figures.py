"""What a capture holds, by group."""

from __future__ import annotations

import random
from itertools import pairwise
from statistics import quantiles

import pytest

from capture_files import data, report
from controller.captures import figures as module
from controller.captures.arrivals import MOST_STEPS, ArrivalTally
from controller.captures.capture_file import CapturedFrame
from controller.captures.figures import CaptureFigures
from controller.wire.addresses import parse_ip
from controller.wire.igmp import encode_igmp_query
from controller.wire.packets import Query, RecordType

SECOND_NS = 1_000_000_000


def figures_of(*frames: tuple[float, bytes]) -> CaptureFigures:
    figures = CaptureFigures()
    for number, (at_s, frame) in enumerate(frames, 1):
        figures.count(CapturedFrame(number, round(at_s * SECOND_NS), frame, len(frame)))
    return figures


def arrivals(times_s: list[float], size_bytes: int = 1000) -> ArrivalTally:
    tally = ArrivalTally()
    for at_s in times_s:
        tally.count(round(at_s * SECOND_NS), size_bytes)
    return tally


def test_a_constant_rate_has_no_dispersion_and_one_gap() -> None:
    told = arrivals([100 + number / 1000 for number in range(5000)], 1246).document()
    assert (told["frames"], told["bytes"], told["first_s"]) == (5000, 5000 * 1246, 100.0)
    assert told["rate_pps"] == pytest.approx(1000)
    assert told["rate_bps"] == pytest.approx(1246 * 8000)
    assert told["peak_bps"]["0.1"] == pytest.approx(1246 * 8000)
    assert told["dispersion"] == {"0.01": 0.0, "0.1": 0.0, "1": None}
    assert told["gaps"]["p50_ms"] == pytest.approx(1, rel=0.03)
    assert told["gaps"]["max_ms"] == pytest.approx(1)
    assert told["gaps"]["variation"] == pytest.approx(0, abs=0.001)
    assert told["size_bytes"]["up_to"]["1518"] == 5000


def test_poisson_arrivals_have_a_dispersion_of_one_and_bursts_a_higher_one() -> None:
    chance = random.Random(1)
    at_s, times_s = 0.0, []
    for _ in range(50_000):
        at_s += chance.expovariate(1000)
        times_s.append(at_s)
    told = arrivals(times_s).document()
    for found in (told["dispersion"]["0.01"], told["dispersion"]["0.1"]):
        assert found == pytest.approx(1, abs=0.15)
    assert told["gaps"]["variation"] == pytest.approx(1, abs=0.05)
    gaps_ms = [1000 * (later - sooner) for sooner, later in pairwise(times_s)]
    cuts = quantiles(gaps_ms, n=100)
    for quantile in (50, 95, 99):
        assert told["gaps"][f"p{quantile}_ms"] == pytest.approx(cuts[quantile - 1], rel=0.04)
    bursts = arrivals([second + number / 10_000 for second in range(30) for number in range(100)]).document()
    assert bursts["dispersion"]["0.1"] == pytest.approx(90, rel=0.05)
    assert bursts["peak_bps"]["0.01"] == pytest.approx(100 * 8000 / 0.01)


def test_a_time_that_goes_back_is_counted_and_makes_no_negative_gap() -> None:
    told = arrivals([1.0, 3.0, 2.0, 4.0]).document()
    assert told["backward"] == 1
    assert told["gaps"]["max_ms"] == 2000.0
    assert told["lasted_s"] == 3.0


def test_the_course_of_a_rate_has_bounded_steps_that_carry_every_byte() -> None:
    tally = arrivals([float(second) for second in range(20_000)], 500)
    course = tally.rate_course()
    width_s = course[1][0] - course[0][0]
    assert len(course) <= MOST_STEPS
    assert sum(rate_bps for _, rate_bps in course) * width_s / 8 == pytest.approx(20_000 * 500)


def test_groups_have_senders_members_joins_and_leaves() -> None:
    join, leave, state = RecordType.CHANGE_TO_EXCLUDE, RecordType.CHANGE_TO_INCLUDE, RecordType.MODE_IS_EXCLUDE
    figures = figures_of(
        (10.0, report(state, "239.1.1.1", 7)),
        (10.1, report(join, "239.1.1.1", 8)),
        (10.1, report(join, "239.1.1.1", 8)),
        (10.2, data("239.1.1.1", 1)),
        (10.3, data("239.1.1.1", 2, 500)),
        (10.4, data("ff1e::7", 3)),
        (11.0, report(leave, "239.1.1.1", 8)),
        (11.0, report(join, "239.9.9.9", 8)),
        (11.2, data("239.1.1.1", 1)),
        (11.3, b"\xff" * 6 + bytes(6) + b"\x88\xb5" + bytes(46)),
        (11.4, b"\0" * 8),
    )
    told = figures.document()
    first, second, third = told["groups"]
    assert (first["group"], second["group"], third["group"]) == ("239.1.1.1", "ff1e::7", "239.9.9.9")
    assert [(each["address"], each["frames"]) for each in first["senders"]] == [("10.0.0.2", 1), ("10.0.0.1", 2)]
    assert (first["hosts"], first["standing"], first["joins"], first["leaves"]) == (2, 1, 1, 1)
    assert (third["frames"], third["joins"], third["gaps"]) == (0, 1, None)
    assert (told["reports"], told["other"], told["malformed"]) == (5, 1, {"eth-truncated": 1})
    assert (told["frames"], told["lasted_s"]) == (11, 1.4)


def test_older_reports_that_answer_a_query_are_of_standing_members() -> None:
    query = encode_igmp_query(
        Query(4, 2, b"\0" * 5 + b"\x63", parse_ip("10.0.0.99"), None, (), 10.0, False, None, None)
    )
    say = RecordType.MODE_IS_EXCLUDE
    figures = figures_of(
        (1.0, report(say, "239.1.1.1", 6, version=2)),
        (2.0, query),
        (5.0, report(say, "239.1.1.1", 7, version=2)),
        (30.0, report(say, "239.1.1.1", 8, version=2)),
        (31.0, report(RecordType.CHANGE_TO_INCLUDE, "239.1.1.1", 8, version=2)),
    )
    assert [each.kind.value for each in figures.interests] == ["join", "standing", "join", "leave"]


def test_source_filters_are_followed() -> None:
    allow, block = RecordType.ALLOW_NEW_SOURCES, RecordType.BLOCK_OLD_SOURCES
    figures = figures_of(
        (1.0, report(allow, "232.1.1.1", 7, ["10.0.0.1"])),
        (2.0, report(allow, "232.1.1.1", 7, ["10.0.0.2"])),
        (3.0, report(block, "232.1.1.1", 7, ["10.0.0.1"])),
        (4.0, report(block, "232.1.1.1", 7, ["10.0.0.2"])),
    )
    assert [(each.kind.value, each.at_ns // SECOND_NS) for each in figures.interests] == [("join", 1), ("leave", 4)]
    assert figures.interests[0].sources == (parse_ip("10.0.0.1"),)


def test_groups_in_vlans_are_told_apart() -> None:
    frame = data("239.1.1.1")
    tagged = frame[:12] + b"\x81\x00\x60\x0a" + frame[12:]
    twice = frame[:12] + b"\x88\xa8\x00\x63\x81\x00\x00\x0b" + frame[12:]
    told = figures_of((1, frame), (2, tagged), (3, twice)).document()["groups"]
    assert [(each["group"], each["bytes"]) for each in told] == [
        ("239.1.1.1@11", len(frame) + 8),
        ("239.1.1.1@10", len(frame) + 4),
        ("239.1.1.1", len(frame)),
    ]


def test_what_finds_no_room_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GROUPS_BOUND", 2)
    monkeypatch.setattr(module, "SENDERS_BOUND", 2)
    monkeypatch.setattr(module, "CHANGES_BOUND", 1)
    join = RecordType.CHANGE_TO_EXCLUDE
    told = figures_of(
        *((1, data(f"239.1.1.{number}")) for number in (1, 2, 3)),
        (2, data("239.1.1.1", 9)),
        *((3, report(join, "239.1.1.1", number)) for number in (5, 6)),
    ).document()
    assert told["uncounted"] == 2
    assert told["missed_joins"] == 1
    assert sum(group["frames"] for group in told["groups"]) == 3
