"""The open alarms: raised and cleared, acknowledged, and damped where they flap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from controller.snapshot.events import Severity

FLAP_WINDOW_S = 300.0
"""An alarm that is raised again this soon after it was cleared is flapping."""

HOLD_S, LONGEST_HOLD_S = 10.0, 300.0
"""How long a flapping alarm stays open once its cause is gone: doubled with each flap, up to the longest."""

CLEARED_BOUND = 4096
"""Cleared alarms that are remembered for the sake of flapping; beyond it the oldest goes."""

GRAVITY = {severity: number for number, severity in enumerate((Severity.INFO, Severity.WARNING, Severity.CRITICAL))}


class Condition(NamedTuple):
    """Something that is wrong now."""

    kind: str
    subject: str
    severity: Severity
    text: str
    dpid: int | None = None
    port_no: int | None = None

    @property
    def key(self) -> str:
        """The alarm's key, the same whenever this goes wrong."""
        return alarm_key(self.kind, self.subject)


def alarm_key(kind: str, subject: str) -> str:
    """Return the key of the alarm of a kind about a subject."""
    return f"{kind}:{subject}"


@dataclass(slots=True)
class Alarm:
    """An open alarm.

    Times are on the core's clock. `over_s` is when its cause went away, None while it is there: a flapping alarm
    stays open for `hold_s` from then on. `occurrences` counts how often it was raised in a row.
    """

    condition: Condition
    since_s: float
    occurrences: int = 1
    hold_s: float = 0.0
    over_s: float | None = None
    acknowledged_by: str | None = None
    acknowledged_s: float | None = None
    is_confirmed: bool = True
    """Whether this run has seen the cause; not so for one that an earlier run left behind."""

    @property
    def key(self) -> str:
        """The alarm's key."""
        return self.condition.key


class _Cleared(NamedTuple):
    at_s: float
    occurrences: int
    hold_s: float


class AlarmRegister:
    """Open alarms by key."""

    def __init__(self) -> None:
        self.open: dict[str, Alarm] = {}
        self.flap_count = 0
        self._cleared: dict[str, _Cleared] = {}

    def __iter__(self) -> Iterator[Alarm]:
        return iter(self.open.values())

    def raise_(self, condition: Condition, since_s: float, now: float) -> bool:
        """Open an alarm, or bring an open one up to date; tell whether that is news: it is new, or became graver.

        What was acknowledged and became graver is to be acknowledged again.
        """
        alarm = self.open.get(condition.key)
        if alarm is None:
            before = self._cleared.pop(condition.key, None)
            alarm = Alarm(condition, since_s)
            if before is not None and now - before.at_s < FLAP_WINDOW_S:
                self.flap_count += 1
                alarm.occurrences = before.occurrences + 1
                alarm.hold_s = _longer(before.hold_s)
            self.open[condition.key] = alarm
            return True
        if alarm.over_s is not None:
            self.flap_count += 1
            alarm.over_s = None
            alarm.occurrences += 1
            alarm.hold_s = _longer(alarm.hold_s)
        graver = GRAVITY[condition.severity] > GRAVITY[alarm.condition.severity]
        alarm.condition, alarm.is_confirmed = condition, True
        if graver:
            alarm.acknowledged_by = alarm.acknowledged_s = None
        return graver

    def over(self, key: str, now: float) -> float | None:
        """Take in that the cause of an alarm is gone; return when it is to be closed, None where it is not open."""
        alarm = self.open.get(key)
        if alarm is None:
            return None
        if alarm.over_s is None:
            alarm.over_s = now
        return alarm.over_s + alarm.hold_s

    def close(self, key: str, now: float) -> Alarm:
        """Close an alarm and return it."""
        alarm = self.open.pop(key)
        if len(self._cleared) >= CLEARED_BOUND:
            del self._cleared[next(iter(self._cleared))]
        self._cleared[key] = _Cleared(now, alarm.occurrences, alarm.hold_s)
        return alarm


def _longer(hold_s: float) -> float:
    return min(max(2 * hold_s, HOLD_S), LONGEST_HOLD_S)
