"""What is known when alarms are judged, shown and kept."""

from __future__ import annotations

from collections import Counter
from typing import Any

from controller.alarms.events import ConditionReported
from controller.alarms.history import ClearedAlarm
from controller.alarms.known import KnownFabric
from controller.alarms.register import AlarmRegister
from controller.config.alarm_settings import Alarms, ExpectedTopology
from topology.live import LiveFabric


class AlarmFacts:
    """What the alarms' core has found; `offset_s` leads from the clock of its events to seconds since 1970-01-01 UTC.

    `parts` says in which part of the fabric a switch is, `reports` what apps say is wrong, by subject and app.
    `cleared` are the alarms of before, by number.
    """

    def __init__(self, settings: Alarms, topology: ExpectedTopology, now: float, at_s: float) -> None:
        self.settings = settings
        self.started_s = now
        self.offset_s = at_s - now
        self.counters: Counter[str] = Counter()
        self.known = KnownFabric(topology)
        self.fabric = LiveFabric()
        self.register = AlarmRegister()
        self.parts: dict[Any, int] = {}
        self.reports: dict[str, dict[str, ConditionReported]] = {}
        self.cleared: dict[int, ClearedAlarm] = {}
