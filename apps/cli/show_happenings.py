"""How events, alarms, anomalies and allocations become rows of tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from apps.cli.called import SnapshotNames
from apps.cli.show_cells import Fields, Row, place, text


def event_rows(event: Fields, called: SnapshotNames) -> Iterator[Row]:
    """Yield the row of an event."""
    words = (text(event.get(name)) for name in ("severity", "source", "kind", "state"))
    yield (
        called.clock(event.get("time_s")),
        *words,
        place(event, called),
        text(event.get("group")),
        text(event.get("text")),
    )


def alarm_rows(alarm: Fields, called: SnapshotNames) -> Iterator[Row]:
    """Yield the rows of an alarm: its own, then one for each thing that follows from it."""
    flaps = alarm.get("occurrences") or 1
    what = f"{alarm.get('text')}" + (f" It came {flaps} times." if flaps > 1 else "")
    yield (
        text(alarm.get("severity")),
        called.clock(alarm.get("since_s")),
        text(alarm.get("key")),
        text(alarm.get("acknowledged_by")),
        what,
    )
    for consequence in alarm.get("consequences") or ():
        yield "", "", "", "", f"- {consequence.get('text')}"


def cleared_alarm_rows(alarm: Fields, called: SnapshotNames) -> Iterator[Row]:
    """Yield the row of an alarm that is over."""
    severity, since, *rest = next(alarm_rows(alarm, called))
    yield severity, since, called.clock(alarm.get("cleared_s")), *rest


def anomaly_rows(anomaly: Fields, called: SnapshotNames) -> Iterator[Row]:
    """Yield the row of an anomaly."""
    words = (text(anomaly.get(name)) for name in ("peer_group", "metric"))
    score = anomaly.get("score")
    yield (
        text(anomaly.get("rank")),
        place(anomaly, called) if "dpid" in anomaly else text(anomaly.get("member")),
        *words,
        called.clock(anomaly.get("since_s")),
        "-" if score is None else f"{score:.2f}",
        text(anomaly.get("verdict")),
        text(anomaly.get("text")),
    )


def allocation_rows(decision: Fields, called: SnapshotNames) -> Iterator[Row]:
    """Yield the rows of an allocation: one for each step, or why there was none."""
    steps = decision.get("steps") or ()
    start: Row = called.clock(decision.get("time_s")), text(decision.get("ports"))
    reasons: list[object] = [f"{step.get('chosen')}: {step.get('reason')}" for step in steps]
    for reason in reasons or [_shortage(decision.get("error"))]:
        yield *start, reason
        start = "", ""


def _shortage(error: object) -> object:
    if not isinstance(error, Mapping):
        return text(error)
    return ", ".join(f"{name}: {value}" for name, value in error.items())
