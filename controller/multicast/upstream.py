"""The upstream interface of a proxy: towards multicast routers the controller is one host (RFC 4605, 4.1).

The routers of a domain and family are on one segment: they hear the same reports, but for what their own ports want,
and one compatibility mode holds for all (RFC 9776, 7.2.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum, auto
from math import inf
from typing import NamedTuple

from controller.kernel.deadlines import Deadlines
from controller.kernel.domains import address_of, in_domain
from controller.membership.events import Interest
from controller.membership.querier import port_phase
from controller.membership.settings import LATEST_VERSION
from controller.membership.specific_queries import SOURCES_PER_QUERY
from controller.multicast.upstream_reports import Unconfirmed, answer_record, in_reports, present_record
from controller.wire.packets import GroupRecord, Query
from topology.aggregations import Place

UNSOLICITED_INTERVAL_S = 1.0
"""A change is said again within this time (RFC 9776, 8.11)."""

STEP_S = 0.01
"""After this the next part of an answer follows that is too long to be sent at once."""

STEP_GROUPS, STEP_GROUPS_OLDER = 4096, 64
"""Groups of one part, in the newest version and in older ones, which have a report for each."""


class UpstreamTask(Enum):
    """What an upstream interface does by itself, beside answers about a group."""

    CHANGED = auto()
    AGAIN = auto()
    ANNOUNCE = auto()
    ANSWER = auto()
    GO_ON = auto()


class UpstreamReport(NamedTuple):
    """A report to be sent to the routers behind a port."""

    place: Place
    version: int
    records: tuple[GroupRecord, ...]


class ToldInterest:
    """What the routers behind a port were told last: of each group, by name, what is wanted.

    `unconfirmed` are changes that are to be said (again), `changed` those of them that were not said yet.
    """

    __slots__ = ("announcements_left", "changed", "unconfirmed", "wanted")

    def __init__(self) -> None:
        self.wanted: dict[bytes, Interest] = {}
        self.unconfirmed: dict[bytes, Unconfirmed] = {}
        self.changed: dict[bytes, None] = {}
        self.announcements_left = 0

    def tell(self, name: bytes, wanted: Interest | None, robustness: int) -> bool:
        """Have it told that something else is wanted of a group; False where that is known."""
        before = self.wanted.get(name)
        if before == wanted:
            return False
        if wanted is None:
            del self.wanted[name]
        else:
            self.wanted[name] = wanted
        unconfirmed = self.unconfirmed.get(name)
        if unconfirmed is None:
            unconfirmed = self.unconfirmed[name] = Unconfirmed()
        unconfirmed.add(before, wanted, robustness)
        self.changed[name] = None
        return True

    def take(self, name: bytes, is_older: bool) -> list[GroupRecord]:
        """Return what is to be said of a change now."""
        unconfirmed = self.unconfirmed[name]
        records = unconfirmed.records(address_of(name), self.wanted.get(name), is_older)
        if unconfirmed.is_done:
            del self.unconfirmed[name]
        return records


class Upstream:
    """Says what is wanted to the router ports of a domain and family, at changes and when asked.

    `robustness` is that of the last query, `said_version` that of the last reports. What is said of a group leaves
    out what the very port wants that it is said at: the router there hears that.
    """

    def __init__(self, vlan_id: int, family: int) -> None:
        self.vlan_id = vlan_id
        self.family = family
        self.robustness = 2
        self.said_version = LATEST_VERSION[family]
        self.ports: dict[Place, ToldInterest] = {}
        self.due: Deadlines[UpstreamTask | bytes] = Deadlines()
        self._older_until: dict[int, float] = {}
        self._asked_until = -inf
        self._answer_at = inf
        self._asked: dict[bytes, frozenset[bytes]] = {}
        self._to_say: list[tuple[Place, list[bytes]]] = []
        self._drawn_count = 0

    def version(self, now: float) -> int:
        """Return the version that reports are in."""
        present = (version for version, until in self._older_until.items() if until > now)
        self.said_version = min(present, default=LATEST_VERSION[self.family])
        return self.said_version

    # What is wanted

    def add(self, place: Place, wanted: Iterable[tuple[bytes, Interest]], now: float) -> None:
        """Report to a port from now on what is wanted of each group, by name."""
        told = self.ports[place] = ToldInterest()
        told.wanted.update(wanted)
        self.announce(place, now)

    def remove(self, place: Place) -> None:
        """Report to a port no more; nothing is said, for its routers are gone or hear the hosts themselves."""
        self.ports.pop(place, None)
        self._to_say = [entry for entry in self._to_say if entry[0] != place]

    def tell(self, place: Place, name: bytes, wanted: Interest | None, now: float) -> bool:
        """Have a port told what is wanted of a group now; False where it was told so before."""
        if not self.ports[place].tell(name, wanted, self.robustness):
            return False
        self.due.set_sooner(UpstreamTask.CHANGED, now)
        return True

    def announce(self, place: Place, now: float) -> None:
        """Say all that is wanted to a port whose routers may not know it."""
        self.ports[place].announcements_left = self.robustness
        self.due.set_sooner(UpstreamTask.ANNOUNCE, now)

    # What is asked

    def asked(self, query: Query, robustness: int, older_present_s: float, now: float) -> bool:
        """Take in a router's query; tell whether reports are in another version from now on.

        `robustness` stands for that of a query which says none.
        """
        latest, before = LATEST_VERSION[self.family], self.version(now)
        if query.version < latest:
            self._older_until[query.version] = now + older_present_s
        else:
            self.robustness = query.robustness or robustness
        self._asked_until = now + older_present_s
        is_another = self.version(now) != before
        if is_another:
            self._cancel_answers()
        self._answer_in(query.group, query.sources, query.max_response_s, now)
        return is_another

    def own_query_sent(self, max_response_s: float, now: float) -> None:
        """Answer our own query as a host does, where no router asks."""
        if self._asked_until <= now:
            self._answer_in(None, (), max_response_s, now)

    def _answer_in(self, group: bytes | None, sources: tuple[bytes, ...], max_response_s: float, now: float) -> None:
        """Have a query answered at a time drawn at random (RFC 9776, 5.2)."""
        at = now + self._draw() * max_response_s
        if self._answer_at <= at:
            return
        if group is None:
            self._answer_at = at
            self.due.set(UpstreamTask.ANSWER, at)
            return
        name = in_domain(group, self.vlan_id)
        if not any(name in told.wanted for told in self.ports.values()):
            return
        asked, present = frozenset(sources), self._asked.get(name)
        if present is not None:
            asked = present | asked if asked and present else frozenset()
        if len(asked) > SOURCES_PER_QUERY[self.family]:
            asked = frozenset()
        self._asked[name] = asked
        self.due.set_sooner(name, at)

    # What falls due

    def on_deadline(self, now: float) -> Iterator[UpstreamReport]:
        """Yield the reports that are due."""
        for what in self.due.due(now):
            if what is UpstreamTask.CHANGED:
                yield from self._changes(now, True)
            elif what is UpstreamTask.AGAIN:
                yield from self._changes(now, False)
            elif what is UpstreamTask.ANNOUNCE:
                self._begin_announcements(now)
            elif what is UpstreamTask.ANSWER:
                self._answer_at = inf
                self._to_say = [(place, list(told.wanted)) for place, told in self.ports.items()]
                self.due.set(UpstreamTask.GO_ON, now)
            elif what is UpstreamTask.GO_ON:
                yield from self._say_on(now)
            elif isinstance(what, bytes):
                yield from self._answers(what, now)

    def _changes(self, now: float, is_first: bool) -> Iterator[UpstreamReport]:
        """Say changes: those that are new, or all others, which were said before."""
        version = self.version(now)
        is_older = version < LATEST_VERSION[self.family]
        is_left = False
        for place, told in self.ports.items():
            if is_first:
                names, told.changed = list(told.changed), {}
            else:
                names = [name for name in told.unconfirmed if name not in told.changed]
            records = [record for name in names if name in told.unconfirmed for record in told.take(name, is_older)]
            is_left = is_left or bool(told.unconfirmed)
            for report in in_reports(records, self.family, version):
                yield UpstreamReport(place, version, report)
        if is_left:
            self.due.set_sooner(UpstreamTask.AGAIN, now + self._draw() * UNSOLICITED_INTERVAL_S)

    def _begin_announcements(self, now: float) -> None:
        is_left = False
        for place, told in self.ports.items():
            if told.announcements_left:
                told.announcements_left -= 1
                is_left = is_left or bool(told.announcements_left)
                self._to_say.append((place, list(told.wanted)))
        self.due.set(UpstreamTask.GO_ON, now)
        if is_left:
            self.due.set(UpstreamTask.ANNOUNCE, now + self._draw() * UNSOLICITED_INTERVAL_S)

    def _say_on(self, now: float) -> Iterator[UpstreamReport]:
        """Say the next part of what is wanted, and have the others follow."""
        version = self.version(now)
        room = STEP_GROUPS if version == LATEST_VERSION[self.family] else STEP_GROUPS_OLDER
        while self._to_say and room > 0:
            place, names = self._to_say[-1]
            part = names[-room:]
            del names[-room:]
            if not names:
                self._to_say.pop()
            room -= len(part) or 1
            wanted = self.ports[place].wanted
            records = [present_record(address_of(name), wanted[name]) for name in part if name in wanted]
            for report in in_reports(records, self.family, version):
                yield UpstreamReport(place, version, report)
        if self._to_say:
            self.due.set(UpstreamTask.GO_ON, now + STEP_S)

    def _answers(self, name: bytes, now: float) -> Iterator[UpstreamReport]:
        asked, version = self._asked.pop(name), self.version(now)
        for place, told in self.ports.items():
            wanted = told.wanted.get(name)
            record = answer_record(address_of(name), wanted, asked) if wanted is not None else None
            if record is not None:
                for report in in_reports((record,), self.family, version):
                    yield UpstreamReport(place, version, report)

    def _cancel_answers(self) -> None:
        """Answer in another version from now on, and so nothing that was asked before (RFC 9776, 7.2.1)."""
        for name in self._asked:
            self.due.cancel(name)
        self._asked.clear()
        self.due.cancel(UpstreamTask.ANSWER)
        self._answer_at = inf

    def _draw(self) -> float:
        """Return the next of a fixed sequence of pseudo-random numbers of [0, 1)."""
        self._drawn_count += 1
        return port_phase(self.vlan_id, self._drawn_count, self.family)
