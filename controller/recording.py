"""Runs as JSON lines: what a core was given and when, so that it can be done again and compared.

A line is an object with `app`, `t` (seconds) and either `start`, the arguments the core was made with, `event` or
`effect`. Records stand as objects with their type under `$`, bytes as ``{"$": "bytes", "hex": ...}``, sets likewise.
Arrays, which are what has `tolist`, are lists, and NaN is null. A policy's warnings are left out, as is
what a record derives from the rest of it. A record with `as_record` says itself which fields stand for it; its
`of_record` takes these.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

from controller import events
from controller.config import (
    alarm_settings,
    anomaly_settings,
    check_settings,
    cluster_settings,
    edit_settings,
    maintenance_settings,
    marking,
    multicast_settings,
    overcommit_settings,
    policy,
    policy_discovery_settings,
    probe_settings,
    registrations,
    scaling_settings,
    service_class_settings,
    service_classes,
    settings,
    terms,
    vlans,
)
from controller.service_classes import goals
from topology.events import TOPOLOGY_EVENTS, PortRole

WRITTEN_AS: Mapping[str, str] = MappingProxyType(
    {
        "controller.log.LogEntry": "Entry",
        "controller.log.LogEntryKind": "Kind",
        "controller.performance.batch.SampleRates": "Rates",
        "controller.performance.events.PortSeverity": "Severity",
        "controller.performance.schedule.ReplyVerdict": "Verdict",
        "controller.rules.model.FlowEntry": "Rule",
        "controller.rules.model.FlowKey": "RuleKey",
        "controller.rules.group_match.GroupMatch": "Match",
        "topology.graph.NodeKind": "Kind",
    }
)
"""What recordings call types of records that are called otherwise here: earlier ones can be read and compared."""


def kinds_of(records: Iterable[ModuleType | type]) -> Iterator[type]:
    """Yield the types that are given, and those that modules define."""
    for record in records:
        if isinstance(record, type):
            yield record
            continue
        for kind in vars(record).values():
            if isinstance(kind, type) and kind.__module__ == record.__name__:
                yield kind


def written_as(kind: type) -> str:
    """Return what a type of records is called in recordings."""
    return WRITTEN_AS.get(f"{kind.__module__}.{kind.__name__}") or kind.__name__


def readable(records: Iterable[ModuleType | type]) -> Mapping[str, type]:
    """Return the types of records by name: those given, those defined in modules given, and those all apps know."""
    config = (
        *(policy, settings, alarm_settings, anomaly_settings, check_settings, cluster_settings, edit_settings),
        *(maintenance_settings, marking, multicast_settings, overcommit_settings, probe_settings),
        policy_discovery_settings,
        *(scaling_settings, service_class_settings, service_classes),
        *(goals, terms, vlans),
    )
    shared = (*config, registrations, events)
    return {
        written_as(kind): kind
        for kind in kinds_of((*shared, *TOPOLOGY_EVENTS, PortRole, *records))
        if is_dataclass(kind) or issubclass(kind, tuple | Enum)
    }


class RecordingInvalid(ValueError):  # noqa: N818
    """A line that is not of a recording; `args[0]` says which and why."""


class RecordingLine(NamedTuple):
    """One line: a start (`content` maps argument names to values) or an event."""

    app: str
    at_s: float
    kind: str
    content: Any


def write_line(app: str, at_s: float, kind: str, content: Any) -> str:
    """Return a line without its end; `kind` is ``start``, ``event`` or ``effect``."""
    return json.dumps({"app": app, "t": at_s, kind: plain(content)}, separators=(",", ":"))


def read_lines(lines: Iterable[str], kinds: Mapping[str, type]) -> Iterator[RecordingLine]:
    """Yield the starts and events of a recording; effects, empty lines and a torn last line are passed over.

    `kinds` are the records that may stand in it, by name (`readable`). Raises RecordingInvalid at a line that cannot
    be read.
    """
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
            kind = next((kind for kind in ("start", "event") if kind in line), None)
            if kind is not None:
                yield RecordingLine(str(line["app"]), float(line["t"]), kind, _read(line[kind], kinds))
            elif "effect" not in line:
                raise ValueError("neither start, event nor effect")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, json.JSONDecodeError) and not text.endswith("\n"):
                return
            raise RecordingInvalid(f"line {number}: {error}") from None


def plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, Enum):
        return {"$": written_as(type(value)), "value": value.value}
    if isinstance(value, float) and math.isnan(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return {"$": "bytes", "hex": value.hex()}
    if hasattr(value, "as_record"):
        return {"$": written_as(type(value)), **plain(value.as_record())}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        named = {name: plain(item) for name, item in zip(value._fields, value, strict=True)}
        return {"$": written_as(type(value)), **named}
    if is_dataclass(value):
        given = (entry.name for entry in fields(value) if entry.init and entry.name != "warnings")
        named = {name: plain(getattr(value, name)) for name in given}
        return {"$": written_as(type(value)), **named}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return {"$": "set", "items": [plain(item) for item in sorted(value)]}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    raise TypeError(f"{type(value).__name__} has no place in a recording")


def _read(value: Any, kinds: Mapping[str, type]) -> Any:
    if isinstance(value, list):
        return tuple(_read(item, kinds) for item in value)
    if not isinstance(value, dict):
        return value
    name = value.get("$")
    if name is None:
        return {key: _read(item, kinds) for key, item in value.items()}
    if name == "bytes":
        return bytes.fromhex(value["hex"])
    if name == "set":
        return frozenset(_read(item, kinds) for item in value["items"])
    kind = kinds.get(name)
    if kind is None:
        raise ValueError(f"no record is called {name!r}")
    if issubclass(kind, Enum):
        return kind(value["value"])
    make = getattr(kind, "of_record", kind)
    return make(**{key: _read(item, kinds) for key, item in value.items() if key != "$"})
