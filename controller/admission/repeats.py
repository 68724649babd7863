"""Refusals that repeat: the first of a kind is a line of its own, the others are one line with their number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from controller.admission.host import Decision, HostLike
from controller.config.policy import Role

INTERVAL_S = 10.0
"""Time over which repeated refusals are summed up."""

KINDS_BOUND = 4096
"""Kinds of refusals that are told apart in an interval; those beyond are summed up by port, role and rule."""

KINDS_PER_PORT = 64
"""The same for one port, so that its hosts cannot fill the log with ever new groups."""

PLACES_BOUND = 4096
"""Ports, with role and rule, that are told apart where kinds no longer are; those beyond are summed up by rule."""


class Refusal(NamedTuple):
    """A refused host, group and role; `source` None for any, `group` None for a router."""

    decision: Decision
    host: HostLike
    group: bytes | None
    role: Role
    source: bytes | None


class Repeated(NamedTuple):
    """How many refusals were not told one by one since `since_s`: those like `refusal` in what `of` says.

    `of` is ``host`` (the same host, group, role and rule), ``port`` (the same port, role and rule) or ``rule``.
    """

    refusal: Refusal
    of: str
    number: int
    since_s: float


class Repeats:
    """Decides which refusals are told, and sums up the others; nothing is lost but what tells the others apart."""

    def __init__(self) -> None:
        self._ends_s = float("-inf")
        self._since_s = 0.0
        self._kinds: dict[tuple[object, ...], int] = {}
        self._samples: dict[tuple[object, ...], tuple[Refusal, str]] = {}
        self._ports: dict[tuple[int, int], int] = {}
        self._places_count = 0

    def is_news(self, refusal: Refusal, now_s: float) -> bool:
        """Take a refusal; tell whether it is the first of its kind in this interval, and so a line of its own."""
        if not self._kinds:
            self._since_s = now_s
            self._ends_s = now_s + INTERVAL_S
        decision, host, group, role, _ = refusal
        kind: tuple[object, ...] = (host.mac, host.dpid, host.port_no, group, role, decision.rule)
        if kind in self._kinds:
            self._count(kind, refusal, "host")
            return False
        port = (host.dpid, host.port_no)
        at_port = self._ports.get(port, 0)
        if at_port < KINDS_PER_PORT and len(self._kinds) < KINDS_BOUND:
            self._ports[port] = at_port + 1
            self._kinds[kind] = 0
            return True
        place = (*port, role, decision.rule)
        if place not in self._kinds and self._places_count >= PLACES_BOUND:
            self._count((role, decision.rule), refusal, "rule")
            return False
        self._places_count += place not in self._kinds
        self._count(place, refusal, "port")
        return False

    def due(self, now_s: float) -> Iterator[Repeated]:
        """Return what an interval that has ended has summed up, and begin anew."""
        return self.end() if now_s >= self._ends_s else iter(())

    def end(self) -> Iterator[Repeated]:
        """Return what was summed up so far, and begin anew."""
        kinds, samples, since_s = self._kinds, self._samples, self._since_s
        self._kinds, self._samples, self._ports, self._places_count = {}, {}, {}, 0
        self._ends_s = float("-inf")
        return (Repeated(*samples[kind], kinds[kind], since_s) for kind in samples)

    def _count(self, kind: tuple[object, ...], refusal: Refusal, of: str) -> None:
        self._kinds[kind] = self._kinds.get(kind, 0) + 1
        if kind not in self._samples:
            self._samples[kind] = (refusal, of)
