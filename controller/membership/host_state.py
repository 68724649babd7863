"""Router state of one host in one group: the state-change tables of RFC 9776, 6.4 (MLDv2: RFC 9777, 7.4)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from controller.membership.events import ANY_SOURCE, FilterMode, HostRef, Interest
from controller.membership.timers import Timed
from controller.wire.packets import RecordType

if TYPE_CHECKING:
    from controller.membership.tables import Host, PortGroup

_EXCLUDE = FilterMode.EXCLUDE
_INCLUDE = FilterMode.INCLUDE
_NO_SOURCES: frozenset[bytes] = frozenset()
_BLOCK = int(RecordType.BLOCK_OLD_SOURCES)
_TO_EX = int(RecordType.CHANGE_TO_EXCLUDE)
_TO_IN = int(RecordType.CHANGE_TO_INCLUDE)
_EXCLUDES = (int(RecordType.MODE_IS_EXCLUDE), _TO_EX)
_NO_VERDICTS: dict[bytes | None, bool] = {}


class Ask(NamedTuple):
    """What a record gives up, to be asked for by queries: "Send Q(G)" if `group`, and "Send Q(G,S)" for `sources`."""

    group: bool
    sources: frozenset[bytes]

    def __bool__(self) -> bool:
        return self.group or bool(self.sources)


NO_ASK = Ask(False, _NO_SOURCES)


class HostState(Timed):
    """Filter mode and timers of one (dpid, port_no, group, host).

    `timers` maps the sources with a running timer to its end: the include list A in INCLUDE mode, the requested list
    X in EXCLUDE mode; `excluded` is the list Y. `leaving`: the host said that it left, so reports of others on the
    port no longer count for it. `verdicts` caches admission: per source in INCLUDE mode, under None in EXCLUDE mode.
    `offer` is what the host adds to the port's interest, None where that is nothing. `is_false`: it was asked for
    under an address that is not the host's own.
    """

    __slots__ = (
        "excluded",
        "group_expiry",
        "host",
        "is_false",
        "leaving",
        "membership",
        "mode",
        "offer",
        "timers",
        "verdicts",
    )

    def __init__(self, membership: PortGroup, host: Host) -> None:
        self.armed_at = inf
        self.membership = membership
        self.host = host
        self.mode = _INCLUDE
        self.group_expiry = -inf
        self.timers: dict[bytes, float] = {}
        self.excluded = _NO_SOURCES
        self.leaving = False
        self.is_false = False
        self.verdicts = _NO_VERDICTS
        self.offer: Interest | None = None

    @property
    def ref(self) -> HostRef:
        """Who asks for the group, under the address that it was asked for with."""
        false_ref = self.host.false_ref
        return false_ref if self.is_false and false_ref is not None else self.host.ref

    @property
    def is_empty(self) -> bool:
        """Whether this is INCLUDE {}: no membership."""
        return self.mode is _INCLUDE and not self.timers

    def group_due(self) -> float:
        """Return the end of the group timer; reports suppressed in favour of another host's count as made."""
        if self.leaving:
            return self.group_expiry
        return max(self.group_expiry, self.membership.shared_expiry)

    def due_at(self) -> float:
        """Return the earliest end of a timer."""
        if self.mode is _EXCLUDE:
            due = self.group_due()
            return min(due, *self.timers.values()) if self.timers else due
        return min(self.timers.values(), default=inf)

    def expires_at(self) -> float:
        """Return when the membership ends if nothing more is heard."""
        due = max(self.timers.values(), default=-inf)
        return max(due, self.group_due()) if self.mode is _EXCLUDE else due

    def apply(self, kind: int, sources: Collection[bytes], now: float, membership_s: float) -> Ask:
        """Make the transition of the tables for a group record and return the queries they call for.

        `membership_s` is the group membership interval in seconds. Timers that the tables have lowered by a query
        are left as they are: the caller knows whether a query is sent at all.
        """
        named = frozenset(sources) if sources else _NO_SOURCES
        if self.mode is _EXCLUDE:
            return self._apply_excluding(kind, named, now, now + membership_s)
        return self._apply_including(kind, named, now + membership_s)

    def _apply_including(self, kind: int, named: frozenset[bytes], full: float) -> Ask:
        held = self.timers.keys()
        if kind == _BLOCK:
            return Ask(False, named.intersection(held))
        if kind in _EXCLUDES:
            self.mode = _EXCLUDE
            self.group_expiry = full
            self.leaving = False
            if not held:
                self.excluded = named
                return NO_ASK
            both = named.intersection(held)
            self.excluded = named.difference(held)
            self.timers = {source: self.timers[source] for source in both}
            return Ask(False, both) if kind == _TO_EX else NO_ASK
        ask = Ask(False, frozenset(held).difference(named)) if kind == _TO_IN else NO_ASK
        for source in named:
            self.timers[source] = full
        return ask

    def _apply_excluding(self, kind: int, named: frozenset[bytes], now: float, full: float) -> Ask:
        requested = self.timers.keys()
        if kind == _BLOCK:
            asked = named - self.excluded
            group_due = self.group_due()
            for source in asked.difference(requested):
                self.timers[source] = group_due
            return Ask(False, asked)
        if kind in _EXCLUDES:
            changing = kind == _TO_EX
            added = self.group_due() if changing else full
            asked = named - self.excluded
            self.timers = {source: self.timers.get(source, added) for source in asked} if asked else {}
            self.excluded &= named
            self.group_expiry = full
            self.leaving = False
            return Ask(False, asked) if changing else NO_ASK
        ask = Ask(True, frozenset(requested).difference(named)) if kind == _TO_IN else NO_ASK
        for source in named:
            self.timers[source] = full
        self.excluded -= named
        return ask

    def settle(self, ask: Ask) -> None:
        """Give up at once what `ask` would query for: the host's word is taken as final."""
        if ask.sources:
            self.timers = {source: at for source, at in self.timers.items() if source not in ask.sources}
            self.excluded |= ask.sources
        if ask.group:
            self.mode = _INCLUDE
            self.leaving = False
        if self.mode is _INCLUDE:
            self.excluded = _NO_SOURCES

    def expire(self, now: float) -> None:
        """End every timer that is due: X to Y or A to nothing by source, EXCLUDE to INCLUDE by group timer."""
        dead = [source for source, at in self.timers.items() if at <= now]
        if dead:
            self.timers = {source: at for source, at in self.timers.items() if at > now}
        if self.mode is _EXCLUDE:
            if self.group_due() <= now:
                self.mode = _INCLUDE
                self.leaving = False
                self.excluded = _NO_SOURCES
            elif dead:
                self.excluded = self.excluded.union(dead)

    def lower_group(self, limit: float) -> None:
        """Lower the group timer to `limit`."""
        self.group_expiry = min(self.group_due(), limit)

    def lower_sources(self, sources: Iterable[bytes], limit: float) -> frozenset[bytes]:
        """Lower the timers of those `sources` that run longer than `limit`; return which these were."""
        lowered = frozenset(source for source in sources if self.timers.get(source, -inf) > limit)
        for source in lowered:
            self.timers[source] = limit
        return lowered

    def has_admitted(self, source: bytes) -> bool:
        """Tell whether the policy lets the host have `source` in its present mode."""
        return self.verdicts.get(None if self.mode is _EXCLUDE else source, False)

    def refused(self, ask: Ask) -> Ask:
        """Return the part of `ask` that the policy never let this host have."""
        if self.mode is _EXCLUDE:
            return NO_ASK if self.verdicts.get(None) else ask
        return Ask(False, frozenset(source for source in ask.sources if not self.verdicts.get(source)))

    def admitted_offer(self) -> Interest | None:
        """Return what the host adds to its port's interest under the cached verdicts."""
        if self.mode is _EXCLUDE:
            if not self.verdicts.get(None):
                return None
            return Interest(_EXCLUDE, self.excluded) if self.excluded else ANY_SOURCE
        sources = frozenset(source for source in self.timers if self.verdicts.get(source))
        return Interest(_INCLUDE, sources) if sources else None

    def source_due(self, source: bytes) -> float:
        """Return until when the host gets packets of `source` if nothing more is heard; -inf where it does not."""
        at = self.timers.get(source)
        if self.mode is _EXCLUDE:
            if source in self.excluded:
                return -inf
            return self.group_due() if at is None else at
        return -inf if at is None or not self.verdicts.get(source) else at
