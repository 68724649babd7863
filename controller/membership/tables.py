"""Where states live: edge ports, the hosts behind them, the groups these want, and the state of each host in each.

The state is that of the state-change tables of RFC 9776, 6.4 (MLDv2: RFC 9777, 7.4).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator
from enum import IntEnum
from math import inf
from typing import NamedTuple

from controller.membership.events import ANY_SOURCE, FilterMode, HostRef, Interest
from controller.membership.limits import SmallTokenBucket
from controller.membership.older_reports import OlderHosts, OlderReports
from controller.membership.specific_queries import SpecificQueries
from controller.membership.timers import TimedState, TimerQueue
from controller.wire.addresses import is_link_scope_group, is_multicast_ip, is_never_pruned, is_ssm_group
from controller.wire.packets import RecordType

_EXCLUDE = FilterMode.EXCLUDE
_INCLUDE = FilterMode.INCLUDE
_NO_SOURCES: frozenset[bytes] = frozenset()
_BLOCK = int(RecordType.BLOCK_OLD_SOURCES)
_TO_EX = int(RecordType.CHANGE_TO_EXCLUDE)
_TO_IN = int(RecordType.CHANGE_TO_INCLUDE)
_EXCLUDES = (int(RecordType.MODE_IS_EXCLUDE), _TO_EX)
_NO_VERDICTS: dict[bytes | None, bool] = {}
_NEVER = -inf
_ROUTABLE_V4 = frozenset(first for first in range(225, 240) if first != 232)
"""The first bytes of IPv4 groups that are all routable and for any source."""


class GroupKind(IntEnum):
    """How reports for a group are treated."""

    IGNORED = 0
    ROUTABLE = 1
    LINK_SCOPE = 2
    SSM = 3


ROUTABLE = GroupKind.ROUTABLE


def group_kind(group: bytes) -> GroupKind:
    """Classify a group; IGNORED are those never pruned and addresses that are no group."""
    if len(group) == 4 and group[0] in _ROUTABLE_V4:
        return ROUTABLE
    if not is_multicast_ip(group) or is_never_pruned(group):
        return GroupKind.IGNORED
    if is_ssm_group(group):
        return GroupKind.SSM
    return GroupKind.LINK_SCOPE if is_link_scope_group(group) else ROUTABLE


def merge(offers: Iterable[Interest]) -> Interest | None:
    """Return the interest of a port from those of its hosts (RFC 9776, 3.2); None where there is none.

    EXCLUDE if any is: the sources that all EXCLUDE hosts exclude and no INCLUDE host names. Else the union.
    """
    excluded: frozenset[bytes] | None = None
    included: set[bytes] = set()
    for offer in offers:
        if offer.mode is not _EXCLUDE:
            included |= offer.sources
        else:
            excluded = offer.sources if excluded is None else excluded & offer.sources
    if excluded is not None:
        rest = excluded - included
        return Interest(_EXCLUDE, rest) if rest else ANY_SOURCE
    return Interest(FilterMode.INCLUDE, frozenset(included)) if included else None


class QueriesWanted(NamedTuple):
    """What a record gives up, to be asked for by queries: "Send Q(G)" if `group`, and "Send Q(G,S)" for `sources`."""

    group: bool
    sources: frozenset[bytes]

    def __bool__(self) -> bool:
        return self.group or bool(self.sources)


NO_ASK = QueriesWanted(False, _NO_SOURCES)


class HostMembership(TimedState):
    """Filter mode and timers of one (dpid, port_no, group, host).

    `timers` maps the sources with a running timer to its end: the include list A in INCLUDE mode, the requested list
    X in EXCLUDE mode; `excluded` is the list Y. `leaving`: the host said that it left, so reports of others on the
    port no longer count for it. `verdicts` caches admission: per source in INCLUDE mode, under None in EXCLUDE mode.
    `offer` is what the host adds to the port's interest, None where that is nothing. `is_false`: it was asked for
    under an address that is not the host's own. `since` is when it was first asked for, as far as that is known.
    A new one is INCLUDE {}, or EXCLUDE {} until `wants_any_until`.
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
        "since",
        "timers",
        "verdicts",
    )

    def __init__(
        self, membership: PortGroup, host: MemberHost, since: float, wants_any_until: float | None = None
    ) -> None:
        self.armed_at = inf
        self.since = since
        self.membership = membership
        self.host = host
        if wants_any_until is None:
            self.mode, self.group_expiry = _INCLUDE, _NEVER
        else:
            self.mode, self.group_expiry = _EXCLUDE, wants_any_until
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

    def apply(self, kind: int, sources: Collection[bytes], now: float, membership_s: float) -> QueriesWanted:
        """Make the transition of the tables for a group record and return the queries they call for.

        `membership_s` is the group membership interval in seconds. Timers that the tables have lowered by a query
        are left as they are: the caller knows whether a query is sent at all.
        """
        if not sources and kind in _EXCLUDES and not self.timers:
            self.want_any(now + membership_s)
            return NO_ASK
        named = frozenset(sources) if sources else _NO_SOURCES
        if self.mode is _EXCLUDE:
            return self._apply_excluding(kind, named, now, now + membership_s)
        return self._apply_including(kind, named, now + membership_s)

    def want_any(self, until: float) -> None:
        """Be EXCLUDE {} until then, which is what both tables make of it where no source has a timer."""
        self.mode = _EXCLUDE
        self.excluded = _NO_SOURCES
        self.group_expiry = until
        self.leaving = False

    def exceeds(self, sources: Collection[bytes], limit: int) -> bool:
        """Tell whether with these sources there would be more than `limit` with a timer or excluded."""
        if len(sources) + len(self.timers) + len(self.excluded) <= limit:
            return False
        return len(self.excluded.union(sources, self.timers)) > limit

    def _apply_including(self, kind: int, named: frozenset[bytes], full: float) -> QueriesWanted:
        held = self.timers.keys()
        if kind == _BLOCK:
            return QueriesWanted(False, named.intersection(held))
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
            return QueriesWanted(False, both) if kind == _TO_EX else NO_ASK
        ask = QueriesWanted(False, frozenset(held).difference(named)) if kind == _TO_IN else NO_ASK
        for source in named:
            self.timers[source] = full
        return ask

    def _apply_excluding(self, kind: int, named: frozenset[bytes], now: float, full: float) -> QueriesWanted:
        requested = self.timers.keys()
        if kind == _BLOCK:
            asked = named - self.excluded
            group_due = self.group_due()
            for source in asked.difference(requested):
                self.timers[source] = group_due
            return QueriesWanted(False, asked)
        if kind in _EXCLUDES:
            changing = kind == _TO_EX
            added = self.group_due() if changing else full
            asked = named - self.excluded
            self.timers = {source: self.timers.get(source, added) for source in asked} if asked else {}
            self.excluded &= named
            self.group_expiry = full
            self.leaving = False
            return QueriesWanted(False, asked) if changing else NO_ASK
        ask = QueriesWanted(True, frozenset(requested).difference(named)) if kind == _TO_IN else NO_ASK
        for source in named:
            self.timers[source] = full
        self.excluded -= named
        return ask

    def settle(self, ask: QueriesWanted) -> None:
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

    def refused(self, ask: QueriesWanted) -> QueriesWanted:
        """Return the part of `ask` that the policy never let this host have."""
        if self.mode is _EXCLUDE:
            return NO_ASK if self.verdicts.get(None) else ask
        return QueriesWanted(False, frozenset(source for source in ask.sources if not self.verdicts.get(source)))

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


class MemberHost:
    """A host behind a port, of one family, with its memberships by group; `group_count` leaves link scope out.

    `ref` is the host under its own address, `false_ref` the one under the false address that it used last, if it ever
    did; `standing` is what admission makes of `ref` (see `Bindings`).
    """

    __slots__ = ("bucket", "false_ref", "group_count", "record_bucket", "ref", "standing", "states")

    def __init__(self, ref: HostRef, standing: Hashable = None, false_ref: HostRef | None = None) -> None:
        self.ref = ref
        self.standing = standing
        self.false_ref = false_ref
        self.bucket = SmallTokenBucket()
        self.record_bucket: SmallTokenBucket | None = None
        self.group_count = 0
        self.states: dict[bytes, HostMembership] = {}


class PortGroup:
    """A group at a port: its hosts by MAC, their merged interest, and the compatibility timers (RFC 9776, 7.3.2).

    `v1_until` is the end of the IGMPv1 host present timer, `old_until` that of the IGMPv2 or MLDv1 one. A report of
    an older version keeps every host of the port from sending its own, so `shared_expiry` is a group timer for all.
    """

    __slots__ = (
        "group",
        "hosts",
        "interest",
        "is_link_scope",
        "old_until",
        "open_count",
        "port",
        "queries",
        "shared_expiry",
        "v1_until",
    )

    def __init__(self, port: MemberPort, group: bytes) -> None:
        self.port = port
        self.group = group
        self.is_link_scope = len(group) > 4 and group_kind(group) is GroupKind.LINK_SCOPE
        self.hosts: dict[bytes, HostMembership] = {}
        self.interest: Interest | None = None
        self.open_count = 0
        self.v1_until = self.old_until = self.shared_expiry = _NEVER
        self.queries: SpecificQueries[PortGroup] | None = None

    @property
    def family(self) -> int:
        """4 or 6."""
        return 4 if len(self.group) == 4 else 6

    def is_v1(self, now: float) -> bool:
        """Tell whether the group is in IGMPv1 mode here."""
        return now < self.v1_until

    def is_older(self, now: float) -> bool:
        """Tell whether the group is in IGMPv1, IGMPv2 or MLDv1 mode here."""
        return now < self.old_until or now < self.v1_until

    def note_older_report(self, version: int, until: float) -> None:
        """Start the timers that a report of an older version starts."""
        self.shared_expiry = until
        self._hear_older(version, until)
        if version == 1 and len(self.group) == 4:
            self.v1_until = until
        else:
            self.old_until = until

    def restore_older(self, v1_until: float, old_until: float) -> None:
        """Have those timers run that a journal left, to their ends or those of newer ones."""
        self.v1_until, self.old_until = max(self.v1_until, v1_until), max(self.old_until, old_until)
        self._hear_older(2 if self.family == 4 else 1, self.old_until)
        if self.family == 4:
            self._hear_older(1, self.v1_until)

    def _hear_older(self, version: int, until: float) -> None:
        self.port.older.heard(OlderHosts(self.port.dpid, self.port.port_no, self.family, version), until)

    def set_offer(self, state: HostMembership, offer: Interest | None) -> None:
        """Replace what a host adds to the interest."""
        self.open_count += (offer is ANY_SOURCE) - (state.offer is ANY_SOURCE)
        state.offer = offer

    def lower(self, sources: tuple[bytes, ...], limit: float, timers: TimerQueue) -> None:
        """Lower the group's timers, or those of some sources, as another querier asks for them (RFC 9776, 6.6.1)."""
        for state in self.hosts.values():
            if sources:
                state.lower_sources(sources, limit)
            else:
                state.lower_group(limit)
        if not sources:
            self.shared_expiry = min(self.shared_expiry, limit)
        for state in self.hosts.values():
            timers.arm(state, state.due_at())

    def merged(self) -> Interest | None:
        """Return the merged interest of the admitted hosts."""
        if self.open_count:
            return ANY_SOURCE
        return merge(state.offer for state in self.hosts.values() if state.offer is not None)

    def has_other_member(self, state: HostMembership) -> bool:
        """Tell whether an admitted host other than this one is a member."""
        return any(other.offer is not None for other in self.hosts.values() if other is not state)

    def group_due(self) -> float:
        """Return the port's group timer: the longest of its admitted EXCLUDE hosts."""
        return max(
            (s.group_due() for s in self.hosts.values() if s.offer is not None and s.mode is _EXCLUDE), default=-inf
        )

    def source_due(self, source: bytes) -> float:
        """Return the port's timer of a source: the longest of its admitted hosts."""
        return max((s.source_due(source) for s in self.hosts.values() if s.offer is not None), default=-inf)

    def covered(self, state: HostMembership, ask: QueriesWanted, limit: float) -> QueriesWanted:
        """Return the part of `ask` that other hosts on the port firmly want as well.

        Firmly: admitted, not leaving, and with timers that end after `limit`. Holds only where no host's reports
        are suppressed, that is in the newest versions' mode.
        """
        excluded: frozenset[bytes] | None = None
        included: set[bytes] = set()
        for other in self.hosts.values():
            if other is state or other.offer is None:
                continue
            if other.mode is not _EXCLUDE or other.leaving or other.group_due() <= limit:
                included.update(
                    source for source, at in other.timers.items() if at > limit and other.has_admitted(source)
                )
            else:
                fading = (source for source, at in other.timers.items() if at <= limit)
                theirs = other.excluded.union(fading)
                excluded = theirs if excluded is None else excluded & theirs
        if not ask.group:
            return QueriesWanted(
                False,
                frozenset(s for s in ask.sources if s in included or (excluded is not None and s not in excluded)),
            )
        if excluded is None:
            return QueriesWanted(False, frozenset())
        kept = state.excluded.union(state.timers) - ask.sources
        return ask if excluded - included <= kept else QueriesWanted(False, frozenset())


class MemberPort:
    """An edge port. `active` once it was added; before that it may hold restored memberships.

    `refused` holds the states that add nothing because of the policy, oldest first: they make room for others.
    `older`, which ports share, is told of reports in older versions.
    """

    __slots__ = (
        "active",
        "bucket",
        "dpid",
        "group_counts",
        "groups",
        "hosts",
        "noticed_at",
        "older",
        "port_no",
        "record_bucket",
        "refused",
    )

    def __init__(self, dpid: int, port_no: int, older: OlderReports) -> None:
        self.dpid = dpid
        self.port_no = port_no
        self.older = older
        self.active = False
        self.groups: dict[bytes, PortGroup] = {}
        self.hosts: dict[int, dict[bytes, MemberHost]] = {4: {}, 6: {}}
        self.group_counts = {False: 0, True: 0}
        self.refused: dict[HostMembership, None] = {}
        self.bucket = SmallTokenBucket()
        self.record_bucket = SmallTokenBucket()
        self.noticed_at: dict[str, float] = {}

    @property
    def host_count(self) -> int:
        """The number of hosts with a membership, each family counted by itself."""
        return len(self.hosts[4]) + len(self.hosts[6])

    def unlink(self, state: HostMembership) -> None:
        """Take a state out of the tables, and its host and group with it where it was their last."""
        membership, host = state.membership, state.host
        membership.set_offer(state, None)
        del membership.hosts[host.ref.mac]
        del host.states[membership.group]
        host.group_count -= not membership.is_link_scope
        self.refused.pop(state, None)
        if not host.states:
            del self.hosts[membership.family][host.ref.mac]
        if not membership.hosts:
            del self.groups[membership.group]
            self.group_counts[membership.is_link_scope] -= 1

    def states(self) -> Iterator[HostMembership]:
        """Iterate over all states; the tables may be changed meanwhile."""
        for membership in list(self.groups.values()):
            yield from list(membership.hosts.values())
