"""Runs as JSON lines: what a core was given and when, so that it can be done again and compared.

A line is an object with `app`, `t` (seconds) and either `start`, the arguments the core was made with, `event` or
`effect`. Records stand as objects with their type under `$`, bytes as ``{"$": "bytes", "hex": ...}``, sets likewise.
Arrays are lists, and NaN is null. A policy's warnings are left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from controller import events
from controller.alarms import events as alarm_events
from controller.alarms.core import AlarmCore
from controller.alarms.known import Cable, End
from controller.config import alarm_settings, anomaly_settings, check_settings, edit_settings, policy, settings, terms
from controller.discovery.core import DiscoveryCore
from controller.discovery.journal import HostsRead
from controller.discovery.settings import DiscoveryChanged, DiscoverySettings
from controller.multicast import events as multicast_events
from controller.multicast.core import MulticastCore
from controller.performance.poller import StatsReceived
from controller.performance.poller_core import MonitorChanged, MonitorCore
from controller.snapshot.events import Severity
from controller.unicast.core import UnicastCore
from controller.unicast.settings import UnicastChanged, UnicastSettings
from topology.events import TOPOLOGY_EVENTS, PortRole

APPS: Mapping[str, Callable[[Mapping[str, Any], float], Any]] = MappingProxyType(
    {
        "multicast": lambda start, now: MulticastCore(start["policy"], now),
        "discovery": lambda start, _now: DiscoveryCore(start["settings"], start["secret"]),
        "unicast": lambda start, _now: UnicastCore(start["settings"]),
        "alarms": lambda start, now: AlarmCore(start["settings"], start["topology"], now, start["at_s"]),
        "monitor": lambda start, now: MonitorCore(start["monitor"], now, start["at_s"]),
    }
)
"""How the core of an app is made of what its recording starts with."""


def _records_of(*modules: ModuleType) -> Iterator[type]:
    for module in modules:
        for kind in vars(module).values():
            if isinstance(kind, type) and kind.__module__ == module.__name__:
                yield kind


_READABLE: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        *_records_of(
            policy,
            settings,
            anomaly_settings,
            alarm_settings,
            check_settings,
            edit_settings,
            terms,
            events,
            multicast_events,
            alarm_events,
        ),
        *TOPOLOGY_EVENTS,
        *(
            PortRole,
            Severity,
            Cable,
            End,
            DiscoverySettings,
            DiscoveryChanged,
            HostsRead,
            UnicastChanged,
            UnicastSettings,
            StatsReceived,
            MonitorChanged,
        ),
    )
    if is_dataclass(kind) or issubclass(kind, tuple | Enum)
}


class RecordingInvalid(ValueError):  # noqa: N818
    """A line that is not of a recording; `args[0]` says which and why."""


class Line(NamedTuple):
    """One line: a start (`content` maps argument names to values) or an event."""

    app: str
    at_s: float
    kind: str
    content: Any


def write_line(app: str, at_s: float, kind: str, content: Any) -> str:
    """Return a line without its end; `kind` is ``start``, ``event`` or ``effect``."""
    return json.dumps({"app": app, "t": at_s, kind: plain(content)}, separators=(",", ":"))


def read_lines(lines: Iterable[str]) -> Iterator[Line]:
    """Yield the starts and events of a recording; effects, empty lines and a torn last line are passed over.

    Raises RecordingInvalid at a line that cannot be read.
    """
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
            kind = next((kind for kind in ("start", "event") if kind in line), None)
            if kind is not None:
                yield Line(str(line["app"]), float(line["t"]), kind, _read(line[kind]))
            elif "effect" not in line:
                raise ValueError("neither start, event nor effect")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, json.JSONDecodeError) and not text.endswith("\n"):
                return
            raise RecordingInvalid(f"line {number}: {error}") from None


def replay(lines: Iterable[Line], app: str) -> Iterator[tuple[float, Any]]:
    """Give a new core what an app's core was given, and yield the effects with their times.

    A recording may hold several runs, each with its own start. Raises RecordingInvalid for an event before any start
    or an app that is not known.
    """
    core: Any = None
    make = APPS.get(app)
    if make is None:
        raise RecordingInvalid(f"no app is called {app!r}; known: {', '.join(APPS)}")
    for line in lines:
        if line.app != app:
            continue
        if line.kind == "start":
            core = make(line.content, line.at_s)
        elif core is None:
            raise RecordingInvalid(f"an event of {app} comes before its start")
        else:
            for effect in core.handle(line.content, line.at_s):
                yield line.at_s, effect


def plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, Enum):
        return {"$": type(value).__name__, "value": value.value}
    if isinstance(value, float) and math.isnan(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return {"$": "bytes", "hex": value.hex()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        named = {name: plain(item) for name, item in zip(value._fields, value, strict=True)}
        return {"$": type(value).__name__, **named}
    if is_dataclass(value):
        named = {entry.name: plain(getattr(value, entry.name)) for entry in fields(value) if entry.name != "warnings"}
        return {"$": type(value).__name__, **named}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return {"$": "set", "items": [plain(item) for item in sorted(value)]}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    raise TypeError(f"{type(value).__name__} has no place in a recording")


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_read, value))
    if not isinstance(value, dict):
        return value
    name = value.get("$")
    if name is None:
        return {key: _read(item) for key, item in value.items()}
    if name == "bytes":
        return bytes.fromhex(value["hex"])
    if name == "set":
        return frozenset(map(_read, value["items"]))
    kind = _READABLE.get(name)
    if kind is None:
        raise ValueError(f"no record is called {name!r}")
    if issubclass(kind, Enum):
        return kind(value["value"])
    return kind(**{key: _read(item) for key, item in value.items() if key != "$"})
