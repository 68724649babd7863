from __future__ import annotations

import numpy as np
import pytest

from controller.anomaly.peers.combination import Verdict
from controller.anomaly.peers.diagnosis import TimeSpan, diagnose
from controller.anomaly.peers.incidents import Faulty, PeerMember, join_ends, told_once
from controller.anomaly.peers.settings import PeerSettings
from controller.anomaly.series import RawSeries, SeriesName

FAR = {"a1": "b1", "b1": "a1", "a2": "b2", "b2": "a2"}


def faulty(
    name: str,
    first_s: float,
    last_s: float,
    score: float,
    verdict: Verdict = "load difference",
    *,
    is_silent: bool = False,
) -> Faulty:
    return Faulty(PeerMember(name, name[0]), first_s, last_s, verdict, {"tx_bytes": score}, score, is_silent)


def test_both_ends_of_a_cable_are_one_fault_for_the_time_of_both():
    (told,) = told_once([faulty("a1", 100, 300, 2.0), faulty("b1", 200, 500, 3.0)], FAR)
    assert (told.member.name, told.other_end, told.first_s, told.last_s) == ("b1", "a1", 100, 500)


def test_ends_that_were_faulty_at_other_times_are_two_faults():
    told = told_once([faulty("a1", 100, 300, 2.0), faulty("b1", 400, 500, 3.0)], FAR)
    assert [(one.member.name, one.incident, one.other_end) for one in told] == [("a1", 1, ""), ("b1", 2, "")]


def test_components_come_first_then_who_fell_silent_then_who_took_over():
    told = told_once(
        [
            faulty("a3", 100, 300, 9.0),
            faulty("a2", 100, 300, 2.0, is_silent=True),
            faulty("c1", 250, 400, 1.5, "component fault"),
            faulty("d1", 900, 950, 5.0),
        ],
        FAR,
    )
    assert [(one.member.name, one.incident, one.rank) for one in told] == [
        ("c1", 1, 1),
        ("a2", 1, 2),
        ("a3", 1, 3),
        ("d1", 2, 1),
    ]


def test_a_member_has_one_cable_and_not_to_itself():
    far: dict[str, str] = {}
    join_ends(far, "a", "b")
    join_ends(far, "b", "a")
    assert far == {"a": "b", "b": "a"}
    with pytest.raises(ValueError, match=r"^'b' is at two cables, to 'a' and to 'c'$"):
        join_ends(far, "b", "c")
    with pytest.raises(ValueError, match=r"^'x' is at both ends of a cable$"):
        join_ends(far, "x", "x")


@pytest.mark.parametrize("counted", [False, True])
def test_a_cable_that_carries_nothing_is_before_those_that_took_over_its_traffic(counted: bool):
    rng = np.random.default_rng(4)
    rates = rng.gamma(50, 2, (4, 600))
    rates[0, 400:] = 0.1
    rates[1:, 400:] *= 1 + rng.uniform(0.6, 1.5, (3, 1))
    at_s = 15.0 * np.arange(1, 601)
    series = []
    for tier, factor in (("up", 1.0), ("down", 1.1)):
        for number, of_port in enumerate(rates * factor, 1):
            values = np.cumsum(of_port * 15) if counted else of_port
            series.append(RawSeries(SeriesName(f"{tier}{number}", tier, "tx_bytes"), at_s, values))
    settings = PeerSettings(window_samples=20, shift_samples=10, smoothing_samples=3)
    far: dict[str, str] = {}
    for number in range(1, 5):
        join_ends(far, f"up{number}", f"down{number}")
    found = diagnose(series, settings, TimeSpan(0, 5900), far=far).faulty
    first = found[0]
    assert {first.member.name, first.other_end} == {"up1", "down1"}
    assert first.is_silent and first.rank == 1
    assert not any(one.is_silent for one in found[1:])
    assert not {"up1", "down1"} & {name for one in found[1:] for name in (one.member.name, one.other_end)}
