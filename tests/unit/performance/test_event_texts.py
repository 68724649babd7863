"""What events of ports say to an operator."""

from __future__ import annotations

from math import nan

import pytest

from controller.durations import format_duration, parse_duration
from controller.performance.event_texts import event_text
from controller.performance.events import EventState, PortEvent, PortSeverity
from controller.performance.thresholds import DEFAULT_RULES, WATCHED


def event(counter: str, rate: float, threshold: float, lasted_s: float | None = None) -> PortEvent:
    state = EventState.RAISED if lasted_s is None else EventState.CLEARED
    return PortEvent(0.0, 9, 1, counter, PortSeverity.WARNING, rate, threshold, state, lasted_s=lasted_s)


@pytest.mark.parametrize(
    ("told", "text"),
    [
        (event("link_down", 1.0, 0.0), "The link of port 9:1 is down."),
        (event("link_down", 0.0, 0.0, 12.3), "The link of port 9:1 is up again after 12 s."),
        (event("link_down", nan, nan, 5.0), "Port 9:1 is not watched for a link that is down any more."),
        (
            event("link_recovery", 0.1, 1 / 12),
            "The link of port 9:1 came up 6 times within a minute: it is unstable.",
        ),
        (event("link_recovery", 0.0, 1 / 24, 200.0), "The link of port 9:1 is stable again after 3 min 20 s."),
        (
            event("repeated_events", 3.0, 3.0),
            "Port 9:1 had 3 events of severity info within an hour, which together are a warning.",
        ),
        (event("repeated_events", 0.0, 3.0, 3600.0), "Port 9:1 has had no event of severity info for an hour."),
        (
            event("counter_full", 80.0, 75.0),
            "A counter of port 9:1 is 80 % full and stops there: reset it at the switch.",
        ),
        (event("counter_full", 0.0, 75.0, 60.0), "No counter of port 9:1 is near its maximum any more after 1 min."),
        (
            event("rx_dropped", 120.0, 100.0),
            "Port 9:1 drops 120 received packets a second, more than 100: they are lost.",
        ),
        (
            event("rx_crc_err", 150 / 3600, 120 / 3600),
            "Port 9:1 receives 150 frames with a wrong CRC an hour, more than 120: suspect its cable or transceiver.",
        ),
        (
            event("rx_crc_err", 30 / 3600, 60 / 3600, 7500.0),
            "Port 9:1 receives 30 frames with a wrong CRC an hour again, less than 60, after 2 h 5 min.",
        ),
        (
            event("tx_utilisation", 95.4, 90.0),
            "Port 9:1 sends at 95.4 % of its speed, more than 90 %: it is congested.",
        ),
        (
            event("tx_utilisation", 12.5, 75.0, 61.0),
            "Port 9:1 sends at 12.5 % of its speed again, less than 75 %, after 1 min 1 s.",
        ),
        (event("rx_errors", nan, nan, 60.0), "Port 9:1 is not watched for packets with errors any more."),
        (
            event("rx_bytes", 123456789.0, 1e8)._replace(suppressed=4),
            "Port 9:1 receives 123,456,789 bytes a second, more than 100,000,000."
            " Earlier events of the port that were not told: 4.",
        ),
    ],
)
def test_an_event_is_a_sentence_with_what_it_means(told: PortEvent, text: str) -> None:
    assert event_text(told) == text


@pytest.mark.parametrize("counter", WATCHED)
@pytest.mark.parametrize("lasted_s", [None, 3.0])
@pytest.mark.parametrize("rate", [0.5, nan])
def test_whatever_a_rule_may_watch_has_its_sentence(counter: str, lasted_s: float | None, rate: float) -> None:
    text = event_text(event(counter, rate, rate, lasted_s))
    assert text.startswith("Port 9:1 ")
    assert text.endswith(".")


def test_thresholds_of_the_defaults_are_told_in_whole_numbers() -> None:
    told = {
        rule.counter: event_text(event(rule.counter, 2 * rule.raise_above, rule.raise_above))
        for rule in DEFAULT_RULES
    }
    assert "more than 120:" in told["rx_crc_err"]
    assert "24 packets with errors an hour, more than 12:" in told["rx_errors"]
    assert "2 received packets a second, more than 1:" in told["rx_dropped"]


@pytest.mark.parametrize(
    ("duration_s", "text"),
    [
        (-1.0, "0 s"),
        (0.04, "0 s"),
        (0.42, "0.4 s"),
        (9.96, "10 s"),
        (12.4, "12 s"),
        (59.6, "1 min"),
        (200.0, "3 min 20 s"),
        (3599.9, "1 h"),
        (7500.0, "2 h 5 min"),
        (86_399.0, "1 d"),
        (349_200.0, "4 d 1 h"),
    ],
)
def test_durations_have_their_two_largest_units(duration_s: float, text: str) -> None:
    assert format_duration(duration_s) == text


@pytest.mark.parametrize(
    ("text", "duration_s"),
    [("30s", 30.0), ("1.5h", 5400.0), ("5m", 300.0), ("7d", 604_800.0), ("0s", 0.0)],
)
def test_durations_are_read_as_commands_take_them(text: str, duration_s: float) -> None:
    assert parse_duration(text) == duration_s


@pytest.mark.parametrize(
    "text", ["", "30", "s", "-5s", "nan", "nans", "infs", "1e9s", "5 m", "5w", "5m\n", "9999999999999s"]
)
def test_what_is_no_duration_is_none(text: str) -> None:
    assert parse_duration(text) is None
