"""What sysstat's `sadf` writes: `sadf -d` (fields between semicolons) and `sadf -j` (JSON)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from apps.cli.common import InputError
from apps.cli.times import parse_time
from controller.anomaly.series import RawSeries, SeriesName

NOT_SAMPLES = ("LINUX-RESTART", "COM ")
"""What a line of `sadf -d` holds in place of values: a restart of the machine, a comment."""
LEADING = ("hostname", "interval", "timestamp")
INVENTORY = "BUS"
"""The device column of what is plugged in: names, not measurements."""
TOTALS = {"all", "-1", "sum"}
"""What stands for all devices of a host: no peer of theirs, but of the other hosts' totals."""
EACH = "*"
"""Ends the name of a last column that is there for all CPUs and then for each."""

Rows = dict[SeriesName, tuple[list[float], list[float]]]


def read_sadf_csv(path: Path) -> tuple[list[RawSeries], list[str]]:
    """Return the series of `sadf -d` and notes; members are `host:device`, peer groups the kinds of device.

    Totals over all CPUs or interrupts are a group of their own, `CPU:all`, with a member per host. A metric whose
    name another activity has had already is named with the first column of its own.
    """
    rows: Rows = {}
    notes: list[str] = []
    header: list[str] = []
    owners: dict[tuple[str, str], list[str]] = {}
    zoneless = restarts = inventory = 0
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        where = f"{path}:{number}"
        if not line.strip():
            continue
        fields = [field.strip() for field in line.lstrip("# ").split(";")]
        if line.startswith("#"):
            header = _sadf_header(fields, where)
            continue
        if len(fields) > len(LEADING) and fields[3].startswith(NOT_SAMPLES):
            restarts += fields[3].startswith("LINUX-RESTART")
            continue
        if header[3:4] == [INVENTORY]:
            inventory += 1
            continue
        names = _columns(header, len(fields))
        if len(fields) != len(names):
            raise InputError(f"{where}: {len(fields)} fields; the header has {len(names)}")
        at_s, zoned = _time(fields[2], where)
        zoneless += not zoned
        devices = [(name, f) for name, f in zip(names[3:], fields[3:], strict=True) if name.isupper()]
        member, group = _of_device(fields[0], ":".join(f for _, f in devices), ":".join(name for name, _ in devices))
        for name, text in zip(names[3:], fields[3:], strict=True):
            if not name.isupper():
                series = SeriesName(member, group or "host", name)
                if owners.setdefault((series.peer_group, name), header) != header:
                    series = series._replace(metric=f"{header[3]}:{name}")
                _add(rows, series, at_s, _value(text, name, where))
    if inventory:
        notes.append(f"{path}: {inventory} lines name devices that are plugged in; they measure nothing")
    if zoneless:
        notes.append(f"{path}: timestamp: times without a zone are taken as UTC")
    if restarts:
        notes.append(f"{path}: {restarts} restarts of the machine between the samples")
    return _series(rows), notes


def _columns(header: list[str], fields: int) -> list[str]:
    """Return the columns of a line; one that stands for each CPU is repeated as often as the line has it."""
    if not header or not header[-1].endswith(EACH):
        return header
    name = header[-1].removesuffix(EACH).lower()
    return [*header[:-1], "total", *(f"{name}{number}" for number in range(fields - len(header)))]


def _of_device(host: str, device: str, group: str) -> tuple[str, str]:
    """Return the member and the peer group of a device, or of the total of all devices."""
    if device in TOTALS:
        return host, f"{group}:all"
    return (f"{host}:{device}" if device else host), group


def _sadf_header(fields: list[str], where: str) -> list[str]:
    if tuple(fields[:3]) != LEADING:
        raise InputError(f"{where}: expected # {';'.join(LEADING)};..., as `sadf -d` writes it")
    if any(name.endswith("[...]") for name in fields):
        raise InputError(f"{where}: written by `sadf -d -h`; expected one device per line, as without -h")
    return fields


def _value(text: str, name: str, where: str) -> float:
    if not text:
        return math.nan
    try:
        return float(text.replace(",", "."))
    except ValueError:
        raise InputError(f"{where}: {name}: expected a number, found {text[:64]!r}") from None


def _time(text: str, where: str) -> tuple[float, bool]:
    """Return epoch seconds, and whether the zone was told."""
    try:
        return parse_time(text)
    except ValueError:
        raise InputError(f"{where}: timestamp: expected a time, found {text[:64]!r}") from None


def read_sadf_json(path: Path) -> tuple[list[RawSeries], list[str]]:
    """Return the series of `sadf -j` and notes; members are `host:device`, peer groups the lists or activities."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: {error.msg}") from None
    hosts = document.get("sysstat", {}).get("hosts") if isinstance(document, dict) else None
    if not isinstance(hosts, list):
        raise InputError(f"{path}: sysstat.hosts: the list is missing; expected what `sadf -j` writes")
    rows: Rows = {}
    notes: list[str] = []
    zoneless = restarts = 0
    for place, host in enumerate(hosts):
        where = f"{path}: sysstat.hosts[{place}]"
        if not isinstance(host, dict) or not isinstance(host.get("statistics"), list):
            raise InputError(f"{where}.statistics: the list is missing")
        name = str(host.get("nodename", place))
        for number, entry in enumerate(host["statistics"]):
            stamp = entry.get("timestamp") if isinstance(entry, dict) else None
            if not isinstance(stamp, dict) or not {"date", "time"} <= stamp.keys():
                raise InputError(f"{where}.statistics[{number}].timestamp: date and time are missing")
            zone = " UTC" if stamp.get("utc") else ""
            at_s, zoned = _time(f"{stamp['date']} {stamp['time']}{zone}", f"{where}.statistics[{number}]")
            zoneless += not zoned
            for activity, content in entry.items():
                if activity != "timestamp":
                    for device, kind, metric, value in _leaves(content, activity):
                        _add(rows, SeriesName(*_of_device(name, device, kind), metric), at_s, value)
        restarts += len(host["restarts"]) if isinstance(host.get("restarts"), list) else 0
    if zoneless:
        notes.append(f"{path}: timestamp: times without a zone are taken as UTC")
    if restarts:
        notes.append(f"{path}: {restarts} restarts of the machine between the samples")
    return _series(rows), notes


def _leaves(content: Any, kind: str, device: str = "", prefix: str = "") -> Iterator[tuple[str, str, str, float]]:
    """Yield device, kind of device, metric and value of every number in an activity.

    A device is what a list's entry calls itself, its kind the name of the list.
    """
    if isinstance(content, list):
        for entry in content:
            yield from _leaves(entry, kind, device, prefix)
    elif isinstance(content, Mapping):
        called = [str(value) for value in content.values() if isinstance(value, str)]
        below = ":".join([device, *called] if device else called)
        for name, value in content.items():
            if isinstance(value, bool) or value is None or isinstance(value, str):
                continue
            if isinstance(value, int | float):
                yield below, kind, prefix + name, float(value)
            elif isinstance(value, list):
                yield from _leaves(value, name, below)
            else:
                yield from _leaves(value, kind, below, prefix + name + ".")


def _add(rows: Rows, name: SeriesName, at_s: float, value: float) -> None:
    times, values = rows.setdefault(name, ([], []))
    times.append(at_s)
    values.append(value)


def _series(rows: Rows) -> list[RawSeries]:
    return [
        RawSeries(name, np.array(times, np.float64), np.array(values, np.float64))
        for name, (times, values) in rows.items()
    ]
