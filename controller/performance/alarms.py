"""From conditions of ports to what an operator is told: links, escalation, and no storm from one flapping port."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from math import exp, nan

from controller.performance.events import EventState, PortEvent, PortSeverity
from controller.performance.ports import PortRows
from controller.performance.thresholds import Crossing

LINK_DOWN, LINK_RECOVERY, REPEATED_EVENTS = "link_down", "link_recovery", "repeated_events"
COUNTER_FULL = "counter_full"
FULL_PCT = 75.0
RECOVERIES_PER_MINUTE = 5.0
RECOVERY_WINDOW_S = 60.0
ESCALATED_COUNT = 3
ESCALATED_WITHIN_S = 3600.0

TOLD_AT_ONCE = 10
"""Raised events that one port may have in a row; one more every `TOLD_EVERY_S`."""

TOLD_EVERY_S = 60.0


@dataclass(slots=True)
class _Port:
    """What is told of a port, and what would be."""

    tokens: float = TOLD_AT_ONCE
    tokens_at_s: float = 0.0
    suppressed: int = 0
    holding: dict[str, PortEvent] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)
    info_s: deque[float] = field(default_factory=lambda: deque(maxlen=ESCALATED_COUNT))
    recoveries: float = 0.0
    recoveries_at_s: float = 0.0


class PortEvents:
    """Turns crossings and link changes into events.

    A raise costs a token of its port's bucket; without one it is kept back, and told later if it still holds. A clear
    is told where its raise was. State is kept for ports with events only, for at most `max_ports`; the one without
    news for longest goes.
    """

    def __init__(self, ports: PortRows, max_ports: int) -> None:
        self.suppressed = 0
        self._table = ports
        self._max_ports = max_ports
        self._ports: OrderedDict[int, _Port] = OrderedDict()

    def crossings(self, found: list[Crossing]) -> list[PortEvent]:
        """Return what to tell about rates that passed their levels."""
        events: list[PortEvent] = []
        for crossing in found:
            rule = crossing.rule
            level = rule.raise_above if crossing.begins else rule.clear_below
            name = rule.counter
            event = self._event(crossing.row, crossing.at_s, name, rule.severity, crossing.rate, level)
            key = f"{name} {crossing.rule_no}"
            if not crossing.begins:
                events += self._clear(crossing.row, key, crossing.at_s, crossing.rate, level)
                continue
            events += self._raise(crossing.row, key, event)
            if rule.severity is PortSeverity.INFO:
                events += self._repeated(crossing.row, crossing.at_s)
        return events

    def link(self, row: int, up: bool, now: float) -> list[PortEvent]:
        """Return what to tell about a link that went down or came up."""
        if not up:
            return self._raise(row, LINK_DOWN, self._event(row, now, LINK_DOWN, PortSeverity.CRITICAL, 1.0, 0.0))
        events = self._clear(row, LINK_DOWN, now, 0.0, 0.0)
        port = self._port(row)
        port.recoveries = _faded(port, now) + 1.0
        port.recoveries_at_s = now
        if port.recoveries > RECOVERIES_PER_MINUTE and LINK_RECOVERY not in port.holding:
            rate, level = port.recoveries / RECOVERY_WINDOW_S, RECOVERIES_PER_MINUTE / RECOVERY_WINDOW_S
            events += self._raise(
                row, LINK_RECOVERY, self._event(row, now, LINK_RECOVERY, PortSeverity.CRITICAL, rate, level)
            )
        return events

    def counter_full(self, row: int, now: float, filled_pct: float) -> list[PortEvent]:
        """Return what to tell about a counter that sticks at its maximum and is near it, in percent of full scale."""
        event = self._event(row, now, COUNTER_FULL, PortSeverity.WARNING, filled_pct, FULL_PCT)
        return self._raise(row, COUNTER_FULL, event)

    def counters_low(self, row: int, now: float) -> list[PortEvent]:
        """Return what to tell about a port none of whose counters is near its maximum."""
        return self._clear(row, COUNTER_FULL, now, 0.0, FULL_PCT)

    def tick(self, now: float) -> list[PortEvent]:
        """Return what is over, and what was kept back and may be told now."""
        events: list[PortEvent] = []
        for row, port in list(self._ports.items()):
            if LINK_RECOVERY in port.holding and _faded(port, now) < RECOVERIES_PER_MINUTE / 2:
                rate = _faded(port, now) / RECOVERY_WINDOW_S
                events += self._clear(row, LINK_RECOVERY, now, rate, RECOVERIES_PER_MINUTE / 2 / RECOVERY_WINDOW_S)
            if REPEATED_EVENTS in port.holding and now - port.info_s[-1] > ESCALATED_WITHIN_S:
                events += self._clear(row, REPEATED_EVENTS, now, 0.0, float(ESCALATED_COUNT))
            for key in [key for key in port.holding if key not in port.told]:
                if self._token(port, now):
                    port.told.add(key)
                    events.append(self._told(port, port.holding[key]))
            if not port.holding and not self._recent(port, now):
                del self._ports[row]
        return events

    def forget(self, row: int, now: float) -> list[PortEvent]:
        """Clear everything of a port that is no longer watched."""
        port = self._ports.get(row)
        if port is None:
            return []
        events = [event for key in list(port.holding) for event in self._clear(row, key, now, nan, nan)]
        self._ports.pop(row, None)
        return events

    def rules_changed(self, now: float) -> list[PortEvent]:
        """Clear what the rules raised, for they begin anew; links and full counters stay."""
        lasting = (LINK_DOWN, LINK_RECOVERY, COUNTER_FULL)
        return [
            event
            for row, port in list(self._ports.items())
            for key in [key for key in port.holding if key not in lasting]
            for event in self._clear(row, key, now, nan, nan)
        ]

    def raised(self, row: int) -> tuple[str, ...]:
        """Return what holds at a port, told or not, by name."""
        port = self._ports.get(row)
        return () if port is None else tuple(sorted({event.counter for event in port.holding.values()}))

    def _event(
        self, row: int, now: float, counter: str, severity: PortSeverity, rate: float, threshold: float
    ) -> PortEvent:
        name = self._table.name(row)
        return PortEvent(now, name.dpid, name.port_no, counter, severity, rate, threshold, EventState.RAISED)

    def _port(self, row: int) -> _Port:
        port = self._ports.get(row)
        if port is None:
            if len(self._ports) >= self._max_ports:
                self._ports.popitem(last=False)
            port = self._ports[row] = _Port()
        self._ports.move_to_end(row)
        return port

    def _raise(self, row: int, key: str, event: PortEvent) -> list[PortEvent]:
        port = self._port(row)
        if key in port.holding:
            return []
        port.holding[key] = event
        if not self._token(port, event.time_s):
            port.suppressed += 1
            self.suppressed += 1
            return []
        port.told.add(key)
        return [self._told(port, event)]

    def _clear(self, row: int, key: str, now: float, rate: float, threshold: float) -> list[PortEvent]:
        port = self._ports.get(row)
        if port is None or key not in port.holding:
            return []
        event = port.holding.pop(key)
        if key not in port.told:
            return []
        port.told.discard(key)
        lasted_s = max(0.0, now - event.time_s)
        ended = event._replace(time_s=now, rate=rate, threshold=threshold, state=EventState.CLEARED)
        return [ended._replace(suppressed=0, lasted_s=lasted_s)]

    def _repeated(self, row: int, now: float) -> list[PortEvent]:
        port = self._port(row)
        port.info_s.append(now)
        if len(port.info_s) < ESCALATED_COUNT or now - port.info_s[0] > ESCALATED_WITHIN_S:
            return []
        count = float(ESCALATED_COUNT)
        return self._raise(
            row, REPEATED_EVENTS, self._event(row, now, REPEATED_EVENTS, PortSeverity.WARNING, count, count)
        )

    def _told(self, port: _Port, event: PortEvent) -> PortEvent:
        suppressed, port.suppressed = port.suppressed, 0
        return event._replace(suppressed=suppressed)

    def _token(self, port: _Port, now: float) -> bool:
        passed_s = max(0.0, now - port.tokens_at_s)
        port.tokens = min(float(TOLD_AT_ONCE), port.tokens + passed_s / TOLD_EVERY_S)
        port.tokens_at_s = now
        if port.tokens < 1:
            return False
        port.tokens -= 1
        return True

    def _recent(self, port: _Port, now: float) -> bool:
        """Return whether what is remembered of a quiet port may still matter."""
        recent = bool(port.info_s) and now - port.info_s[-1] <= ESCALATED_WITHIN_S
        refilled_s = (TOLD_AT_ONCE - port.tokens) * TOLD_EVERY_S
        return recent or now - port.tokens_at_s <= refilled_s or now - port.recoveries_at_s <= 10 * RECOVERY_WINDOW_S


def _faded(port: _Port, now: float) -> float:
    """Return the recoveries of about the last minute."""
    return port.recoveries * exp(-max(0.0, now - port.recoveries_at_s) / RECOVERY_WINDOW_S)
