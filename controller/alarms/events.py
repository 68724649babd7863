"""What the alarms' core is told beside events of switches and of the fabric."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from controller.alarms.known import Cable
from controller.config.alarm_settings import Alarms, ExpectedTopology
from controller.snapshot.events import Severity


class ConditionReported(NamedTuple):
    """An app found something wrong that it will tell the end of: `kind` and `subject` make the alarm's key."""

    source: str
    kind: str
    subject: str
    severity: Severity
    text: str
    dpid: int | None = None
    port_no: int | None = None


class ConditionOver(NamedTuple):
    """What an app reported holds no more."""

    source: str
    kind: str
    subject: str


class TreesRepaired(NamedTuple):
    """Trees were built around a cable that failed."""

    dpid_a: int
    port_a: int
    dpid_b: int
    port_b: int
    tree_count: int


class AlarmsRead(NamedTuple):
    """What an earlier run kept: per part (`alarm`, `switch`, `link`) documents by id."""

    parts: Mapping[str, Mapping[str, Mapping[str, Any]]]


class AlarmsChanged(NamedTuple):
    """The policy has other settings, or expects another fabric."""

    settings: Alarms
    topology: ExpectedTopology


class AcknowledgeAsked(NamedTuple):
    """An operator has seen an alarm and takes care of it."""

    key: str
    by: str | None


class ForgetSwitchAsked(NamedTuple):
    """An operator does not expect a switch that is gone, and its links, any more."""

    dpid: int


class ForgetLinkAsked(NamedTuple):
    """An operator does not expect a link that is missing any more."""

    cable: Cable
