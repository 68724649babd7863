"""What an event of a port says to an operator, as a sentence: what happened, how much, and what that means."""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

from controller.durations import format_duration
from controller.performance.alarms import COUNTER_FULL, LINK_DOWN, LINK_RECOVERY, REPEATED_EVENTS
from controller.performance.counters import Counter
from controller.performance.events import EventState, PortEvent
from controller.performance.thresholds import HOUR_S, RX_UTILISATION, TX_UTILISATION

HOURLY_BELOW_PER_S = 0.1
"""Thresholds below it are told by the hour."""


class _Watched(NamedTuple):
    """What a port does: `verb`, a number, `counted`; `meaning` is what too much of it says."""

    verb: str
    counted: str
    meaning: str = ""


_WATCHED = {
    Counter.RX_PACKETS: _Watched("receives", "packets"),
    Counter.TX_PACKETS: _Watched("sends", "packets"),
    Counter.RX_BYTES: _Watched("receives", "bytes"),
    Counter.TX_BYTES: _Watched("sends", "bytes"),
    Counter.RX_DROPPED: _Watched("drops", "received packets", "they are lost"),
    Counter.TX_DROPPED: _Watched("drops", "packets that it has to send", "those behind it miss them"),
    Counter.RX_ERRORS: _Watched("receives", "packets with errors", "they are lost"),
    Counter.TX_ERRORS: _Watched("fails to send", "packets", "those behind it miss them"),
    Counter.RX_FRAME_ERR: _Watched("receives", "misaligned frames", "suspect its cable, transceiver or duplex mode"),
    Counter.RX_OVER_ERR: _Watched("overruns by", "packets", "they come faster than the switch takes them"),
    Counter.RX_CRC_ERR: _Watched("receives", "frames with a wrong CRC", "suspect its cable or transceiver"),
    Counter.COLLISIONS: _Watched("has", "collisions", "suspect that one end runs at half duplex"),
}
_UTILISATION = {RX_UTILISATION: "receives", TX_UTILISATION: "sends"}
_SUBJECTS = {
    LINK_DOWN: "a link that is down",
    LINK_RECOVERY: "an unstable link",
    REPEATED_EVENTS: "events of severity info",
    COUNTER_FULL: "full counters",
    RX_UTILISATION: "its utilisation",
    TX_UTILISATION: "its utilisation",
}


def event_text(event: PortEvent) -> str:
    """Return the sentence of an event, with ids for names: ``Port 9:1 drops 120 received packets a second, ...``."""
    text = _raised(event) if event.state is EventState.RAISED else _cleared(event)
    if event.suppressed:
        text = f"{text} Earlier events of the port that were not told: {event.suppressed}."
    return text


def _raised(event: PortEvent) -> str:
    port = f"port {event.dpid}:{event.port_no}"
    if event.counter == LINK_DOWN:
        return f"The link of {port} is down."
    if event.counter == LINK_RECOVERY:
        return f"The link of {port} came up {event.rate * 60:.0f} times within a minute: it is unstable."
    if event.counter == REPEATED_EVENTS:
        return (
            f"P{port[1:]} had {event.rate:.0f} events of severity info within an hour, which together are a warning."
        )
    if event.counter == COUNTER_FULL:
        return f"A counter of {port} is {event.rate:.0f} % full and stops there: reset it at the switch."
    return _judged(event, "more than", "")


def _cleared(event: PortEvent) -> str:
    port = f"port {event.dpid}:{event.port_no}"
    after = "" if event.lasted_s is None else f" after {format_duration(event.lasted_s)}"
    if not isfinite(event.rate):
        return f"P{port[1:]} is not watched for {_subject(event.counter)} any more."
    if event.counter == LINK_DOWN:
        return f"The link of {port} is up again{after}."
    if event.counter == LINK_RECOVERY:
        return f"The link of {port} is stable again{after}."
    if event.counter == REPEATED_EVENTS:
        return f"P{port[1:]} has had no event of severity info for an hour."
    if event.counter == COUNTER_FULL:
        return f"No counter of {port} is near its maximum any more{after}."
    return _judged(event, "less than", f",{after}" if after else "")


def _judged(event: PortEvent, beyond: str, after: str) -> str:
    """Return the sentence of a rate that passed its level."""
    again = " again" if event.state is EventState.CLEARED else ""
    port = f"Port {event.dpid}:{event.port_no}"
    verb = _UTILISATION.get(event.counter)
    if verb is not None:
        level = f"{verb} at {_number(event.rate)} % of its speed{again}, {beyond} {_number(event.threshold)} %"
        return f"{port} {level}{after}." if again else f"{port} {level}: it is congested."
    watched = _WATCHED[Counter(event.counter)]
    hourly = event.threshold < HOURLY_BELOW_PER_S
    scale, per = (HOUR_S, "an hour") if hourly else (1.0, "a second")
    rate, threshold = _number(event.rate * scale), _number(event.threshold * scale)
    level = f"{watched.verb} {rate} {watched.counted} {per}{again}, {beyond} {threshold}"
    meaning = f": {watched.meaning}" if watched.meaning and not again else ""
    return f"{port} {level}{after}{meaning}."


def _subject(counter: str) -> str:
    return _SUBJECTS.get(counter) or _WATCHED[Counter(counter)].counted


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
