"""Audit logs of admissions, as `vsrt policy propose` reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from apps.cli.common import InputError
from apps.cli.text_files import file_faults, json_lines
from apps.cli.times import parse_time, time_of
from controller.config.policy import Role
from controller.config.terms import SwitchPort
from controller.kernel.domains import address_of
from controller.policy_discovery.observations import Asked, Observations
from controller.policy_discovery.staged import OTHER_DECISIONS
from controller.wire.addresses import is_multicast_ip, parse_ip, parse_mac, parse_name

VERDICTS = {"allow": True, "deny": False}

TIME_BEGINS, TIME_ENDS = '{"time":"', 34
"""How a line of the audit log begins, and where its time has ended: lines that are alike from there are read once."""

KNOWN_BOUND = 65536

_OWN_SECOND = re.compile(r":([0-5][0-9]\.[0-9]{3})Z\Z")


def read_audit(paths: Sequence[Path]) -> tuple[Observations, list[str]]:
    """Return what some audit logs say, and what a reader should be told; InputError names file, line and field.

    Left out are lines that a crash of the controller cut and decisions about routers and MAC addresses that no host
    has, with a note, and summed up refusals.
    """
    observed = Observations()
    notes: list[str] = []
    for path in paths:
        with file_faults(path):
            _read(path, observed, notes)
    if nobody := observed.counted["of_nobody"]:
        notes.append(f"{nobody} decisions about hosts with a MAC address that no host has are left out")
    if routers := observed.counted["routers"]:
        notes.append(f"{routers} decisions about routers are left out: rules for routers are to be written by hand")
    return observed, notes


def _read(path: Path, into: Observations, notes: list[str]) -> None:
    known: dict[str, Asked] = {}

    def is_known(line: str, number: int) -> bool:
        alike = known.get(_but_for_time(line))
        if alike is not None:
            into.add(alike._replace(time_s=_time(line[len(TIME_BEGINS) : TIME_ENDS - 1], f"{path}:{number}")))
        return alike is not None

    for where, told, line in json_lines(path, notes, after_crashes=True, taken=is_known):
        asked = _asked(told, where, into)
        if asked is not None:
            into.add(asked)
            if len(known) < KNOWN_BOUND and (rest := _but_for_time(line)):
                known[rest] = asked


def _but_for_time(line: str) -> str:
    """Return what follows the time of a line as the controller writes it, nothing of any other line."""
    return line[TIME_ENDS:] if line.startswith(TIME_BEGINS) and line[TIME_ENDS - 1 : TIME_ENDS] == '"' else ""


def _asked(told: dict[str, Any], where: str, into: Observations) -> Asked | None:
    """Return a line's decision; None where it is about no host, role and group that a policy could admit."""
    admit = VERDICTS.get(str(_field(told, "verdict", where)))
    if admit is None:
        raise InputError(f"{where}: verdict: expected allow or deny, found {str(told['verdict'])[:64]!r}")
    role, rule = str(_field(told, "role", where)), str(_field(told, "rule", where))
    if role not in list(Role):
        raise InputError(f"{where}: role: expected one of {', '.join(Role)}, found {role[:64]!r}")
    host = _field(told, "host", where)
    if not isinstance(host, dict):
        raise InputError(f"{where}: host: expected an object")
    if role == Role.ROUTER:
        into.counted["routers"] += 1
        return None
    group, mac = _field(told, "group", where), _field(host, "mac", where, "host.")
    if group is None or mac is None or (not admit and rule.startswith(OTHER_DECISIONS)):
        into.counted["refused_otherwise"] += 1
        return None
    at_s = _time(str(_field(told, "time", where)), where)
    address = _field(host, "ip", where, "host.")
    try:
        field = "host.mac"
        mac_bytes = _mac(str(mac))
        field = "host.ip"
        address_bytes = None if address is None else parse_ip(str(address).partition("@")[0])
        field = "group"
        name = _group(str(group))
        field = "source"
        source = told.get("source")
        source_bytes = None if source is None else parse_ip(str(source))
    except ValueError:
        raise InputError(f"{where}: {field}: no address: {_shown(told, field)}") from None
    if not any(mac_bytes) or mac_bytes[0] & 1:
        into.counted["of_nobody"] += 1
        return None
    try:
        port = SwitchPort(int(_field(host, "dpid", where, "host.")), int(_field(host, "port_no", where, "host.")))
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{where}: host: dpid and port_no are no numbers") from None
    return Asked(at_s, admit, rule, role, mac_bytes, address_bytes, port, name, source_bytes)


def _field(told: dict[str, Any], name: str, where: str, before: str = "") -> Any:
    try:
        return told[name]
    except KeyError:
        raise InputError(f"{where}: {before}{name}: the field is missing") from None


def _shown(told: dict[str, Any], field: str) -> str:
    outer, _, inner = field.partition(".")
    return repr(str(told[outer][inner] if inner else told[outer])[:64])


@lru_cache(maxsize=65536)
def _mac(text: str) -> bytes:
    return parse_mac(text.partition("~")[0].partition("@")[0])


@lru_cache(maxsize=65536)
def _group(text: str) -> bytes:
    name = parse_name(text)
    if not is_multicast_ip(address_of(name)):
        raise ValueError(text)
    return name


@lru_cache(maxsize=1024)
def _minute_s(text: str) -> float:
    return parse_time(text + "Z")[0]


def _time(text: str, where: str) -> float:
    """Return the epoch seconds of a time; those that the audit log writes are read a minute at a time."""
    if (second := _OWN_SECOND.match(text, 16)) is not None:
        with suppress(ValueError):
            return _minute_s(text[:16]) + float(second[1])
    return time_of(text, f"{where}: time")[0]
