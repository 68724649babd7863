"""How long an answer may take: the retransmission timer of RFC 6298 (section 2), within bounds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from controller.discovery.liveness import LONGEST_WAIT_S, SHORTEST_WAIT_S, AnswerTime, Liveness
from controller.discovery.settings import DiscoverySettings


def rfc_6298(took_s: list[float]) -> tuple[float, float]:
    """Return SRTT and SRTT + 4 RTTVAR in seconds, as sections 2.2 and 2.3 have them."""
    smoothed_s, variation_s = took_s[0], took_s[0] / 2
    for took in took_s[1:]:
        variation_s = 0.75 * variation_s + 0.25 * abs(smoothed_s - took)
        smoothed_s = 0.875 * smoothed_s + 0.125 * took
    return smoothed_s, smoothed_s + 4 * variation_s


@pytest.mark.parametrize("took_s", [[0.1], [0.06, 0.08], [0.1, 0.1, 0.1], [0.2, 0.1, 0.3, 0.05], [0.08, 0.25, 0.08]])
def test_it_follows_the_answers(took_s: list[float]) -> None:
    time = AnswerTime()
    for took in took_s:
        time.measured(took)
    smoothed_s, wait_s = rfc_6298(took_s)
    assert SHORTEST_WAIT_S < wait_s < LONGEST_WAIT_S, "within the bounds, so that it can be seen"
    assert time.smoothed_s == pytest.approx(smoothed_s)
    assert time.wait_s == pytest.approx(wait_s)


def test_it_is_neither_too_short_nor_too_long() -> None:
    time = AnswerTime()
    assert time.wait_s == SHORTEST_WAIT_S
    time.measured(0.0001)
    assert time.wait_s == SHORTEST_WAIT_S
    time.measured(30.0)
    assert time.wait_s == LONGEST_WAIT_S


@pytest.mark.parametrize("missed_count", [1, 3])
def test_a_port_has_failed_when_all_frames_and_the_one_before_went_unanswered(missed_count: int) -> None:
    nothing: Any = None
    budget: Any = SimpleNamespace(granted={})
    settings = DiscoverySettings(missed_count=missed_count)
    liveness = Liveness(settings, {}, {}, nothing, nothing, budget, nothing, nothing)
    assert liveness.reaction_s == pytest.approx(SHORTEST_WAIT_S * (missed_count + 1))
