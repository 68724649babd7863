"""Thresholds on rates: where a rate passes its level, and where it is back.

The defaults are those that InfiniBand operators use with OpenSM's counters: more than 120 symbol errors an hour is
critical, any other error in numbers is of severity info. docs/performance-manager.md says which OpenFlow counter
stands for which.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.performance.batch import SampleRates
from controller.performance.counters import Counter
from controller.performance.events import PortSeverity
from controller.performance.ports import KINDS, longer
from topology.graph import NodeKind

RX_UTILISATION, TX_UTILISATION = "rx_utilisation", "tx_utilisation"
WATCHED: tuple[str, ...] = (*Counter, RX_UTILISATION, TX_UTILISATION)
"""What a rule may be about."""

HOUR_S = 3600.0


class ThresholdRule(NamedTuple):
    """When a rate is an event.

    Attributes
    ----------
    counter
        One of `WATCHED`.
    raise_above, clear_below
        1/s, percent for utilisation; the second is not above the first.
    window_s
        The rate is averaged with this time constant, so that a limit such as 120 an hour means something; 0 for none.
    hold_s
        How long the rate must have been beyond its level.
    severity
        How grave the event is.
    kind
        The class of switch that the rule is for; None for all.
    """

    counter: str
    raise_above: float
    clear_below: float
    window_s: float
    hold_s: float
    severity: PortSeverity
    kind: NodeKind | None = None

    def problem(self) -> str | None:
        """Return what is wrong with the rule, None where nothing is."""
        if self.counter not in WATCHED:
            return f"{self.counter!r} is not one of {', '.join(WATCHED)}"
        if not 0 <= self.clear_below <= self.raise_above:
            return "the level at which it is cleared is below 0 or above the one at which it is raised"
        if not (self.window_s >= 0 and self.hold_s >= 0):
            return "a time is below 0"
        return None


def _hourly(counter: Counter, limit: float, severity: PortSeverity) -> ThresholdRule:
    return ThresholdRule(counter, limit / HOUR_S, limit / 2 / HOUR_S, HOUR_S, 0.0, severity)


DEFAULT_RULES: tuple[ThresholdRule, ...] = (
    _hourly(Counter.RX_CRC_ERR, 120, PortSeverity.CRITICAL),
    _hourly(Counter.RX_FRAME_ERR, 120, PortSeverity.CRITICAL),
    _hourly(Counter.RX_OVER_ERR, 12, PortSeverity.INFO),
    _hourly(Counter.RX_ERRORS, 12, PortSeverity.INFO),
    _hourly(Counter.TX_ERRORS, 12, PortSeverity.INFO),
    ThresholdRule(Counter.RX_DROPPED, 1.0, 0.5, 60.0, 0.0, PortSeverity.INFO),
    ThresholdRule(Counter.TX_DROPPED, 1.0, 0.5, 60.0, 0.0, PortSeverity.INFO),
    ThresholdRule(Counter.COLLISIONS, 1.0, 0.5, 60.0, 0.0, PortSeverity.INFO),
    ThresholdRule(RX_UTILISATION, 90.0, 75.0, 0.0, 10.0, PortSeverity.WARNING),
    ThresholdRule(TX_UTILISATION, 90.0, 75.0, 0.0, 10.0, PortSeverity.WARNING),
)


class Crossing(NamedTuple):
    """A rate that passed its level: `begins`, or is back."""

    row: int
    at_s: float
    rule: ThresholdRule
    rule_no: int
    rate: float
    begins: bool


class ThresholdTable:
    """Averages and conditions, by row and rule.

    The average of a rate with a window is exponential: a burst of n counts adds n / `window_s` at once, which is what
    a limit per hour asks for, and fades with the time constant `window_s`.
    """

    def __init__(self, rules: Sequence[ThresholdRule]) -> None:
        self._level = np.empty((0, 0), np.float32)
        self._beyond_s = np.empty((0, 0), np.float32)
        self._raised = np.empty((0, 0), np.bool_)
        self._busy = np.empty(0, np.bool_)
        self.configure(rules)

    def configure(self, rules: Sequence[ThresholdRule]) -> None:
        """Go on with other rules; all averages and conditions begin anew. ValueError for a rule with a problem."""
        for rule in rules:
            problem = rule.problem()
            if problem:
                raise ValueError(problem)
        capacity, count = len(self._busy), len(rules)
        self.rules = tuple(rules)
        self._columns = np.array([WATCHED.index(rule.counter) for rule in rules], np.intp)
        self._raise = np.array([rule.raise_above for rule in rules], np.float32)
        self._clear = np.array([rule.clear_below for rule in rules], np.float32)
        self._hold_s = np.array([rule.hold_s for rule in rules], np.float32)
        windows = np.array([rule.window_s for rule in rules], np.float64)
        self._windows, self._window_of = np.unique(windows, return_inverse=True)
        self._applies = np.array([[_applies(rule, kind, rules) for rule in rules] for kind in KINDS], np.bool_)
        self._level = np.zeros((capacity, count), np.float32)
        self._beyond_s = np.zeros((capacity, count), np.float32)
        self._raised = np.zeros((capacity, count), np.bool_)
        self._busy = np.zeros(capacity, np.bool_)

    def fit(self, capacity: int) -> None:
        """Make room for rows below `capacity`."""
        if len(self._busy) < capacity:
            self._level, self._beyond_s = longer(self._level, capacity), longer(self._beyond_s, capacity)
            self._raised, self._busy = longer(self._raised, capacity), longer(self._busy, capacity)

    def forget(self, row: int) -> None:
        """Drop averages and conditions of a row: it belongs to another port now."""
        self._level[row] = self._beyond_s[row] = 0.0
        self._raised[row] = self._busy[row] = False

    def raised(self, row: int) -> tuple[ThresholdRule, ...]:
        """Return the rules whose condition holds at a row."""
        return tuple(self.rules[i] for i in np.flatnonzero(self._raised[row]).tolist())

    def update(self, rates: SampleRates, kinds: NDArray[np.uint8]) -> list[Crossing]:
        """Take in rates of different rows.

        Parameters
        ----------
        rates
            Unknown ones leave average and condition as they are.
        kinds
            uint8[n], the classes of the rows' switches, as positions in `KINDS`.

        Returns
        -------
        list of Crossing
            Conditions that begin or end, by entry, then by rule.
        """
        if not self.rules:
            return []
        rows = rates.rows
        values = np.concatenate((rates.per_s, rates.utilisation_pct), axis=1).astype(np.float32)[:, self._columns]
        interval_s = rates.interval_s
        known = ~np.isnan(values)
        with np.errstate(divide="ignore"):
            weights = -np.expm1(-interval_s[:, None] / self._windows).astype(np.float32)[:, self._window_of]
        level = self._level[rows]
        level = np.where(known, level + (values - level) * weights, level)
        self._level[rows] = level
        raised = self._raised[rows]
        beyond = np.where(raised, level < self._clear, level > self._raise)
        beyond &= self._applies[kinds] & known
        busy = beyond.any(axis=1)
        look = np.flatnonzero(busy | self._busy[rows])
        if not look.size:
            return []
        self._busy[rows] = busy
        at = rows[look]
        held_s = np.where(known[look], 0.0, self._beyond_s[at])
        held_s = np.where(beyond[look], self._beyond_s[at] + interval_s[look, None], held_s).astype(np.float32)
        passed = beyond[look] & (held_s >= self._hold_s)
        held_s[passed] = 0.0
        self._beyond_s[at] = held_s
        self._raised[at] = raised[look] ^ passed
        crossings = []
        for entry, rule_no in np.argwhere(passed).tolist():
            index = look[entry]
            crossings.append(
                Crossing(
                    int(rows[index]),
                    float(rates.at_s[index]),
                    self.rules[rule_no],
                    rule_no,
                    float(level[index, rule_no]),
                    not raised[index, rule_no],
                )
            )
        return crossings


def _applies(rule: ThresholdRule, kind: NodeKind, rules: Sequence[ThresholdRule]) -> bool:
    """Return whether a rule is for a class: its own, or, being for all, where no other of the counter is its own."""
    if rule.kind is not None:
        return rule.kind is kind
    return not any(other.kind is kind and other.counter == rule.counter for other in rules)
