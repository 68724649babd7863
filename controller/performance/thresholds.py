"""Thresholds on rates: what is raised, and when it is cleared."""

from __future__ import annotations

from typing import NamedTuple

from controller.performance.counters import Counter
from controller.performance.events import Severity
from topology.graph import Kind

RX_UTILISATION, TX_UTILISATION = "rx_utilisation", "tx_utilisation"
WATCHED: tuple[str, ...] = (*Counter, RX_UTILISATION, TX_UTILISATION)
"""What a rule may be about."""


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
    severity: Severity
    kind: Kind | None = None


DEFAULT_RULES: tuple[ThresholdRule, ...] = ()
