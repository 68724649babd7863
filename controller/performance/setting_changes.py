"""The settings of the monitor's section by name, to be read and changed while it runs.

One is called as in the policy file, without ``monitor.``; those of a threshold ``thresholds.COUNTER.FIELD``, or
``thresholds.COUNTER.CLASS.FIELD`` for one class of switches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import isfinite
from typing import Any, NamedTuple

from controller.config.declarations import Section, Setting, SettingType, declared
from controller.config.read import bound
from controller.config.settings import SWITCH_CLASSES, WATCHED_COUNTERS, Monitor, Threshold
from controller.performance.poller_settings import threshold_rules
from controller.performance.thresholds import ThresholdRule
from topology.graph import NodeKind

THRESHOLDS = "thresholds"
FIELDS = ("raise_above", "clear_below", "window_s", "hold_s", "severity")
AT_START = (
    "role",
    "ports",
    "port_capacity_bps",
    "sticky_bits",
    "ovsdb",
    "history",
    "prometheus",
    "syslog",
    "event_log",
)
"""What the policy file alone says; it holds from the start on."""

_BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_ABSENT = ("", "none", "absent", "default")


class SettingInvalid(ValueError):  # noqa: N818
    """A setting that there is not, or a value that it does not take; the text names the setting."""


class ShownSetting(NamedTuple):
    """A setting and its value now; `live` tells whether it can be changed while the monitor runs."""

    name: str
    value: Any
    unit: str
    meaning: str
    live: bool


def shown_settings(monitor: Monitor, prefix: str = "") -> list[ShownSetting]:
    """Return the settings whose names begin with `prefix`, in the order of their declaration."""
    found = [*_settings(monitor, ""), *_thresholds(threshold_rules(monitor.thresholds))]
    return [setting for setting in found if setting.name.startswith(prefix)]


def changed(monitor: Monitor, name: str, value: Any) -> Monitor:
    """Return the settings with one setting at another value.

    Parameters
    ----------
    monitor
        The settings now.
    name
        The setting's name.
    value
        The value, or the text for it.

    Raises
    ------
    SettingInvalid
        There is no such setting, it cannot be changed while the monitor runs, or the value is of the wrong type or
        out of bounds.
    """
    path = name.split(".")
    if path[0] in AT_START:
        raise SettingInvalid(
            f"{name}: it holds from the start on; change monitor.{name} in the policy file and restart"
        )
    if path[0] == THRESHOLDS:
        return replace(monitor, thresholds=_with_threshold(monitor.thresholds, name, path[1:], value))
    return _with(monitor, name, path, value)  # type: ignore[no-any-return]


def _settings(holder: Any, path: str) -> Iterator[ShownSetting]:
    for name, entry in declared(type(holder)).items():
        value = getattr(holder, name)
        if isinstance(entry, Section):
            yield from _settings(value, f"{path}{name}.")
        elif entry.type is not SettingType.THRESHOLDS:
            if entry.type is SettingType.IPV4:
                value = ".".join(map(str, value))
            live = f"{path}{name}".split(".")[0] not in AT_START
            yield ShownSetting(f"{path}{name}", value, entry.unit, entry.meaning, live)


def _thresholds(rules: Iterable[ThresholdRule]) -> Iterator[ShownSetting]:
    entries = declared(Threshold)
    for rule in rules:
        where = f"{rule.counter}" if rule.kind is None else f"{rule.counter}.{rule.kind}"
        for field in FIELDS:
            entry = entries[field]
            value = rule.severity.label if field == "severity" else getattr(rule, field)
            if isinstance(entry, Setting):
                yield ShownSetting(f"{THRESHOLDS}.{where}.{field}", value, entry.unit, entry.meaning, True)


def _with(holder: Any, name: str, path: list[str], value: Any) -> Any:
    entry = declared(type(holder)).get(path[0])
    if entry is None or isinstance(entry, Section) != (len(path) > 1):
        raise SettingInvalid(f"{name}: there is no such setting")
    if isinstance(entry, Section):
        return replace(holder, **{path[0]: _with(getattr(holder, path[0]), name, path[1:], value)})
    return replace(holder, **{path[0]: read_value(name, entry, value)})


def _with_threshold(
    thresholds: tuple[Threshold, ...], name: str, path: list[str], value: Any
) -> tuple[Threshold, ...]:
    if len(path) not in (2, 3):
        raise SettingInvalid(f"{name}: there is no such setting; it is {THRESHOLDS}.COUNTER[.CLASS].FIELD")
    counter, switches, field = path if len(path) == 3 else (path[0], "all", path[1])
    if field not in FIELDS:
        raise SettingInvalid(f"{name}: there is no such setting; FIELD is one of {', '.join(FIELDS)}")
    for part, choices in ((counter, WATCHED_COUNTERS), (switches, ("all", *SWITCH_CLASSES))):
        if part not in choices:
            raise SettingInvalid(f"{name}: {part!r} is none of {', '.join(choices)}")
    entry = declared(Threshold)[field]
    found = next((t for t in thresholds if (t.counter, t.switches) == (counter, switches)), None)
    change: dict[str, Any] = {field: read_value(name, entry, value) if isinstance(entry, Setting) else None}
    new = replace(found or Threshold(counter, switches), **change)
    others = tuple(t for t in thresholds if t is not found)
    _check_levels(name, (*others, new), new)
    return (*others, new)


def _check_levels(name: str, thresholds: tuple[Threshold, ...], new: Threshold) -> None:
    if new.raise_above is not None and new.clear_below is not None and new.clear_below > new.raise_above:
        raise SettingInvalid(
            f"{name}: clear_below {new.clear_below:g} would be above raise_above {new.raise_above:g}"
        )
    kind = None if new.switches == "all" else NodeKind(new.switches)
    if not any((rule.counter, rule.kind) == (new.counter, kind) for rule in threshold_rules(thresholds)):
        raise SettingInvalid(f"{name}: {new.counter} has no built-in threshold: set raise_above first")


def read_value(name: str, entry: Setting, value: Any) -> Any:
    """Return a value, or the text for it, as the setting has it; SettingInvalid where it cannot be."""
    text = str(value).strip()
    if entry.optional and (value is None or text.lower() in _ABSENT):
        return None
    if entry.type is SettingType.BOOLEAN:
        if text.lower() not in _BOOLEANS:
            raise SettingInvalid(f"{name}: expected true or false, found {text!r}")
        return _BOOLEANS[text.lower()]
    if entry.type is SettingType.CHOICE:
        if text not in entry.choices:
            raise SettingInvalid(f"{name}: expected one of {', '.join(entry.choices)}, found {text!r}")
        return text
    if entry.type not in (SettingType.INTEGER, SettingType.NUMBER):
        raise SettingInvalid(f"{name}: it cannot be changed here")
    try:
        number: float = int(text) if entry.type is SettingType.INTEGER else float(text)
    except ValueError:
        what = "a whole number" if entry.type is SettingType.INTEGER else "a number"
        raise SettingInvalid(f"{name}: expected {what}, found {text!r}") from None
    lower, upper = entry.lower or 0, entry.upper or 0
    if not isfinite(number) or not lower <= number <= upper:
        unit = f" {entry.unit}" if entry.unit else ""
        raise SettingInvalid(f"{name}: {text} is not within {bound(lower)} and {bound(upper)}{unit}")
    return number
