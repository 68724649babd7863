"""How the performance core judges and keeps rates."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from controller.performance.deadband import DEFAULT_DEADBAND, Deadband
from controller.performance.ports import MAX_PORTS
from controller.performance.thresholds import DEFAULT_RULES, ThresholdRule
from topology.graph import NodeKind


class CoreSettings(NamedTuple):
    """The settings of the core.

    Attributes
    ----------
    interval_s, class_interval_s
        Time between two polls of a switch, and by class of switch where another; longer silence counts as missed.
    capacity_bps
        Capacity of ports that stands for their speed; 0 takes what the switch says.
    thresholds
        Rules of all classes; of the rules about the same counter, one with a class stands for the one without.
    deadband
        Which changes are significant.
    sticky_bits
        Width of counters that stick at their maximum and are to be reset near it: 32 or 64; 0 for none.
    max_ports
        Ports that are watched at one time.
    """

    interval_s: int = 10
    class_interval_s: Mapping[NodeKind, int] = MappingProxyType({})
    capacity_bps: float = 0.0
    thresholds: tuple[ThresholdRule, ...] = DEFAULT_RULES
    deadband: Deadband = DEFAULT_DEADBAND
    sticky_bits: int = 0
    max_ports: int = MAX_PORTS
