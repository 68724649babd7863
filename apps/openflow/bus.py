"""Events that apps send each other over the framework's bus, around the frozen events of the cores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apps.openflow.framework import EventBase
from controller.alarms.events import ConditionOver, ConditionReported, TreesRepaired
from controller.events import SwitchesDrained
from controller.maintenance.errors import ErrorsMeasured
from controller.multicast.events import LoadsMeasured
from controller.service_classes.pool import AliasesUsed, FlowsUsed
from controller.unicast.weights import PortsWeighed
from topology.events import TopologyEvent

if TYPE_CHECKING:
    # What these hold is numpy's, which apps that do without them need not load.
    from controller.allocation.events import PortsRated
    from controller.anomaly.live_events import PortsSampled
    from controller.anomaly.live_normalcy_core import PortsRolledUp


class TopologyChanged(EventBase):  # type: ignore[misc]
    """Discovery's word to whoever follows the fabric: `changes` in the order in which they happened."""

    def __init__(self, changes: tuple[TopologyEvent, ...]) -> None:
        super().__init__()
        self.changes = changes


class TableSuspected(EventBase):  # type: ignore[misc]
    """An app's word to others with entries on switches: `finder` found some of its own missing at this one."""

    def __init__(self, dpid: int, finder: str) -> None:
        super().__init__()
        self.dpid = dpid
        self.finder = finder


class DrainsChanged(EventBase):  # type: ignore[misc]
    """Multicast's word to who forwards beside it: what operators have `drained` is to be avoided."""

    def __init__(self, drained: SwitchesDrained) -> None:
        super().__init__()
        self.drained = drained


class LinksMeasured(EventBase):  # type: ignore[misc]
    """The word of the monitor, or of the allocator, to who places load: what links carry besides."""

    def __init__(self, loads: LoadsMeasured) -> None:
        super().__init__()
        self.loads = loads


class ErrorsCounted(EventBase):  # type: ignore[misc]
    """The monitor's word to who maintains switches: at which ports there are errors."""

    def __init__(self, errors: ErrorsMeasured) -> None:
        super().__init__()
        self.errors = errors


class PortsMeasured(EventBase):  # type: ignore[misc]
    """The monitor's word to who allocates ports: how busy they were."""

    def __init__(self, rated: PortsRated) -> None:
        super().__init__()
        self.rated = rated


class CountersMeasured(EventBase):  # type: ignore[misc]
    """The monitor's word to who compares ports: what each counted."""

    def __init__(self, sampled: PortsSampled) -> None:
        super().__init__()
        self.sampled = sampled


class RollUpsMeasured(EventBase):  # type: ignore[misc]
    """The monitor's word to who learns what is normal: what ports did over a minute, or over a second."""

    def __init__(self, step_s: int, rolled_up: PortsRolledUp) -> None:
        super().__init__()
        self.step_s = step_s
        self.rolled_up = rolled_up


class PathsWeighed(EventBase):  # type: ignore[misc]
    """The allocator's word to who chooses among paths of equal length: how busy the ports are that lead there."""

    def __init__(self, weighed: PortsWeighed) -> None:
        super().__init__()
        self.weighed = weighed


class PoolShared(EventBase):  # type: ignore[misc]
    """The word of multicast, or of unicast, to the other: how many of the pool of aliases it has in `used`."""

    def __init__(self, used: AliasesUsed | FlowsUsed) -> None:
        super().__init__()
        self.used = used


class AlarmReported(EventBase):  # type: ignore[misc]
    """An app's word to the one that keeps the alarms: something is wrong, is over, or followed from a failure."""

    def __init__(self, report: ConditionReported | ConditionOver | TreesRepaired) -> None:
        super().__init__()
        self.report = report


class SwitchForgotten(EventBase):  # type: ignore[misc]
    """The alarms' word to whoever shows switches: an operator expects this one no more."""

    def __init__(self, dpid: int) -> None:
        super().__init__()
        self.dpid = dpid
