"""Group-specific and group-and-source-specific queries and their retransmission (RFC 9776, 6.6.3)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from math import inf
from typing import Generic, Protocol, TypeVar

from controller.membership.events import SendQuery
from controller.membership.settings import Timing
from controller.membership.timers import TimedState

SOURCES_PER_QUERY = {4: 366, 6: 89}
"""Sources that fit into one query on Ethernet (RFC 9776, 4.1.8; RFC 9777, 5.1.10)."""


class QueriedPort(Protocol):
    """A port."""

    dpid: int
    port_no: int


class Membership(Protocol):
    """A group at a port, which has timers for its members."""

    group: bytes

    @property
    def port(self) -> QueriedPort:
        """The port."""

    @property
    def family(self) -> int:
        """4 or 6."""

    def group_due(self) -> float:
        """Return the end of the group timer."""

    def source_due(self, source: bytes) -> float:
        """Return the end of a source's timer."""


MembershipT = TypeVar("MembershipT", bound=Membership)


class SpecificQueries(TimedState, Generic[MembershipT]):
    """The retransmission state of one group at one port."""

    __slots__ = ("_group_at", "_group_left", "_sources", "_sources_at", "membership")

    def __init__(self, membership: MembershipT) -> None:
        super().__init__()
        self.membership = membership
        self._group_left = 0
        self._group_at = inf
        self._sources: dict[bytes, int] = {}
        self._sources_at = inf

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to send."""
        return not self._group_left and not self._sources

    def due_at(self) -> float:
        """Return when the next query is to be sent."""
        return min(self._group_at, self._sources_at)

    def ask_group(self, now: float, count: int) -> None:
        """Schedule `count` group-specific queries, the first at once."""
        self._group_left = count
        self._group_at = now

    def ask_sources(self, sources: Iterable[bytes], now: float, count: int) -> None:
        """Schedule `count` queries for each of `sources`, the first at once."""
        for source in sources:
            self._sources[source] = count
        self._sources_at = now

    def fire(self, now: float, timing: Timing, version: int) -> list[SendQuery]:
        """Return the queries that are due and schedule the next ones.

        The S flag is set where the timers concerned run longer than the last member query time, as others have
        reported since; a group-and-source query with it is left out beside a group-specific one.
        """
        membership = self.membership
        limit = now + timing.last_member_time_s
        queries: list[SendQuery] = []
        with_group = self._group_at <= now
        if self._sources_at <= now:
            longer: list[bytes] = []
            shorter: list[bytes] = []
            for source, left in list(self._sources.items()):
                due = membership.source_due(source)
                if due > now:
                    (longer if due > limit else shorter).append(source)
                if due <= now or left == 1:
                    del self._sources[source]
                else:
                    self._sources[source] = left - 1
            self._sources_at = self._sources_at + timing.last_member_interval_s if self._sources else inf
            if not with_group:
                queries += self._build(longer, True, timing, version)
            queries += self._build(shorter, False, timing, version)
        if with_group:
            self._group_left -= 1
            self._group_at = self._group_at + timing.last_member_interval_s if self._group_left else inf
            queries.append(self._query((), membership.group_due() > limit, timing, version))
        return queries

    def _build(self, sources: list[bytes], suppress: bool, timing: Timing, version: int) -> list[SendQuery]:
        size = SOURCES_PER_QUERY[self.membership.family]
        remaining = iter(sources)
        queries = []
        while chunk := tuple(islice(remaining, size)):
            queries.append(self._query(chunk, suppress, timing, version))
        return queries

    def _query(self, sources: tuple[bytes, ...], suppress: bool, timing: Timing, version: int) -> SendQuery:
        port = self.membership.port
        return SendQuery(
            port.dpid,
            port.port_no,
            self.membership.family,
            version,
            self.membership.group,
            sources,
            timing.last_member_interval_s,
            suppress,
            timing.robustness,
            timing.query_interval_s,
        )
