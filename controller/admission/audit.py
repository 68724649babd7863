"""One log line per decision, for those who must answer for it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from math import inf
from typing import Any

from controller.admission.admission import VERDICTS
from controller.admission.host import Decision, HostLike
from controller.admission.repeats import Repeated
from controller.config.policy import Role
from controller.wire.addresses import format_ip, format_mac


def audit_record(
    decision: Decision,
    host: HostLike,
    group: bytes | None,
    role: Role,
    now_wall_s: float,
    source: bytes | None = None,
) -> dict[str, Any]:
    """Return a decision as an object that `json.dumps` writes on one line.

    Parameters
    ----------
    decision, host, group, role, source
        As given to, and got from, `Admission.decide`; group and source of 4 or 16 bytes, None where there is none.
    now_wall_s
        Seconds since 1970-01-01 UTC, written with milliseconds in ISO 8601.
    """
    return {
        "time": _moment(now_wall_s),
        "verdict": VERDICTS[decision.admit],
        "rule": decision.rule,
        "role": str(role),
        "group": None if group is None else format_ip(group),
        "source": None if source is None else format_ip(source),
        "host": {
            "mac": format_mac(host.mac),
            "ip": None if host.ip is None else format_ip(host.ip),
            "dpid": host.dpid,
            "port_no": host.port_no,
        },
        "reason": decision.reason,
    }


def repeated_record(repeated: Repeated, now_wall_s: float) -> dict[str, Any]:
    """Return refusals that were summed up, as `audit_record` has one; what they do not have in common is null.

    `count` is how many there were between `since` and `time` beside those with a line of their own.
    """
    refusal, of, number, since_s = repeated
    decision, host, group, role, _ = refusal
    record = audit_record(decision, host, group, role, now_wall_s)
    if of != "host":
        record |= {"group": None, "reason": None}
        record["host"] |= {"mac": None, "ip": None}
    if of == "rule":
        record["host"] |= {"dpid": None, "port_no": None}
    return {**record, "count": number, "since": _moment(since_s)}


def _moment(wall_s: float) -> str:
    return datetime.fromtimestamp(wall_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


_ROUNDING_S = 1e-6
"""How long before a millisecond ends a moment is taken anew: its end is no exact number of seconds."""

FRAGMENTS_BOUND = 16384
"""Texts of decisions about hosts that are kept; when as many are there they start anew."""


class AuditLines:
    """Writes what `audit_record` says as lines of JSON, quickly: what repeats is turned into text once."""

    def __init__(self) -> None:
        self._texts: dict[tuple[Decision, HostLike, Role], tuple[str, str]] = {}
        self._second = -1
        self._moment = self._start = ""
        self._since_s = self._until_s = inf

    def line(
        self,
        decision: Decision,
        host: HostLike,
        group: bytes | None,
        role: Role,
        now_wall_s: float,
        source: bytes | None = None,
    ) -> str:
        """Return a decision as one line without its end; for the parameters see `audit_record`."""
        subject = (decision, host, role)
        before_group, after_source = self._texts.get(subject) or self._text(*subject)
        start = self._start if self._since_s <= now_wall_s < self._until_s else self._start_at(now_wall_s)
        if source is None and group is not None:
            return f'{start}{before_group}"{format_ip(group)}","source":null,{after_source}'
        group_text = "null" if group is None else f'"{format_ip(group)}"'
        source_text = "null" if source is None else f'"{format_ip(source)}"'
        return f'{start}{before_group}{group_text},"source":{source_text},{after_source}'

    def _start_at(self, now_wall_s: float) -> str:
        """Return how lines of a moment begin, which those of the same millisecond have in common."""
        second = int(now_wall_s // 1)
        if second != self._second:
            self._second = second
            self._moment = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        millisecond = int((now_wall_s - second) * 1000)
        self._start = f'{{"time":"{self._moment}.{millisecond:03d}Z",'
        self._since_s, self._until_s = now_wall_s, second + (millisecond + 1) / 1000 - _ROUNDING_S
        return self._start

    def _text(self, decision: Decision, host: HostLike, role: Role) -> tuple[str, str]:
        if len(self._texts) >= FRAGMENTS_BOUND:
            self._texts.clear()
        ip = "null" if host.ip is None else f'"{format_ip(host.ip)}"'
        texts = (
            f'"verdict":"{VERDICTS[decision.admit]}","rule":{json.dumps(decision.rule)},"role":"{role}","group":',
            f'"host":{{"mac":"{format_mac(host.mac)}","ip":{ip},"dpid":{host.dpid},"port_no":{host.port_no}}}'
            f',"reason":{json.dumps(decision.reason)}}}',
        )
        self._texts[decision, host, role] = texts
        return texts
