"""Audit logs of admissions, as `vsrt policy propose` reads them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from apps.cli.common import InputError
from apps.cli.metric_file import open_text
from apps.cli.times import parse_time
from controller.config.policy import Role
from controller.config.terms import SwitchPort
from controller.kernel.domains import address_of
from controller.policy_discovery.observations import Asked, Observations
from controller.wire.addresses import is_multicast_ip, parse_ip, parse_mac, parse_name

VERDICTS = {"allow": True, "deny": False}
OTHER_REFUSALS = ("(", "limits.", "vlans.")
"""How the names begin under which other things than the policy's rules refuse: they say nothing of who may."""

TIME_BEGINS, TIME_ENDS = '{"time":"', 34
"""How a line of the audit log begins, and where its time has ended: lines that are alike from there are read once."""

KNOWN_BOUND = 65536


def read_audit(paths: Sequence[Path]) -> tuple[Observations, list[str]]:
    """Return what some audit logs say, and what a reader should be told; InputError names file, line and field.

    Left out are a last line that ends too early and decisions about routers, with a note, and summed up refusals.
    """
    observed = Observations()
    notes: list[str] = []
    for path in paths:
        try:
            _read(path, observed, notes)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise InputError(f"{path}: the file is not text in UTF-8") from None
        except EOFError:
            raise InputError(f"{path}: the compressed file ends too early") from None
    if routers := observed.counted["routers"]:
        notes.append(f"{routers} decisions about routers are left out: rules for routers are to be written by hand")
    return observed, notes


def _read(path: Path, into: Observations, notes: list[str]) -> None:
    torn: str | None = None
    known: dict[str, Asked] = {}
    with open_text(path) as file:
        for number, line in enumerate(file, 1):
            if torn is not None:
                raise InputError(torn)
            if not line.strip():
                continue
            rest = line[TIME_ENDS:] if line.startswith(TIME_BEGINS) and line[TIME_ENDS - 1 : TIME_ENDS] == '"' else ""
            alike = known.get(rest)
            if alike is not None:
                text = line[len(TIME_BEGINS) : TIME_ENDS - 1]
                try:
                    into.add(Asked(_time(text), *alike[1:]))
                except ValueError:
                    raise InputError(f"{path}:{number}: {_no_time(text)}") from None
                continue
            where = f"{path}:{number}"
            try:
                told = json.loads(line)
            except (ValueError, RecursionError):
                torn = f"{where}: the line is no JSON object"
                continue
            if not isinstance(told, dict):
                raise InputError(f"{where}: the line is no JSON object")
            asked = _asked(told, where, into)
            if asked is not None:
                into.add(asked)
                if rest and len(known) < KNOWN_BOUND:
                    known[rest] = asked
    if torn is not None:
        notes.append(f"{torn}: the last line is left out")


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
    if group is None or mac is None or (not admit and rule.startswith(OTHER_REFUSALS)):
        into.counted["refused_otherwise"] += 1
        return None
    text = str(_field(told, "time", where))
    try:
        at_s = _time(text)
    except ValueError:
        raise InputError(f"{where}: {_no_time(text)}") from None
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
    try:
        port = SwitchPort(int(_field(host, "dpid", where, "host.")), int(_field(host, "port_no", where, "host.")))
    except (TypeError, ValueError):
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


def _no_time(text: str) -> str:
    return f"time: expected ISO 8601, found {text[:64]!r}"


def _time(text: str) -> float:
    """Return the epoch seconds of a time; those that the audit log writes are read a minute at a time."""
    if len(text) == 24 and text[-1] == "Z" and text[16] == ":":
        return _minute_s(text[:16]) + float(text[17:23])
    at_s, _ = parse_time(text)
    if not abs(at_s) < 1e11:
        raise ValueError(text)
    return at_s
