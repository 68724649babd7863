"""Who of a capture wants which group, from when to when, by the reports of hosts."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from controller.kernel.domains import in_domain
from controller.wire.packets import GroupRecord, Query, RecordType, Report

INTERESTS_BOUND = 262_144
"""Pairs of host and group that are followed at most; reports of those beyond are counted."""

ANSWERS_S = 10.0
"""For so long after a query, or for what that says, a report of versions that know no changes counts as an answer."""

_INCLUDES = frozenset((RecordType.MODE_IS_INCLUDE, RecordType.CHANGE_TO_INCLUDE))
_EXCLUDES = frozenset((RecordType.MODE_IS_EXCLUDE, RecordType.CHANGE_TO_EXCLUDE))
_STATES = frozenset((RecordType.MODE_IS_INCLUDE, RecordType.MODE_IS_EXCLUDE))
_TELLS_CHANGES = {4: 3, 6: 2}
"""The version of IGMP, and of MLD, whose records say whether something changes."""


class InterestKind(StrEnum):
    """What a report says of a host's interest in a group."""

    STANDING = "standing"
    """The host was a member before it said so here, as an answer to a query."""
    JOIN = "join"
    LEAVE = "leave"


class CapturedInterest(NamedTuple):
    """A host's interest in a group begins, is found to be there, or ends.

    `sources` are those that it wants, or with `is_exclude` does not want; all addresses are bytes. The group is a
    name in its VLAN (`controller.kernel.domains`).
    """

    at_ns: int
    kind: InterestKind
    mac: bytes
    address: bytes
    group: bytes
    is_exclude: bool
    sources: tuple[bytes, ...]


class CapturedInterests:
    """Follows the interests of all hosts of a capture; `missed_count` reports found no room."""

    def __init__(self) -> None:
        self.missed_count = 0
        self._wanted: dict[tuple[bytes, bytes], tuple[bool, frozenset[bytes]]] = {}
        self._answers_until_ns = 0

    def query_seen(self, query: Query, at_ns: int) -> None:
        """Take it that hosts were asked."""
        longest_ns = int(max(query.max_response_s, ANSWERS_S) * 1e9)
        self._answers_until_ns = max(self._answers_until_ns, at_ns + longest_ns)

    def report_seen(self, report: Report, at_ns: int, vlan_id: int = 0) -> list[CapturedInterest]:
        """Return what begins, is found or ends by a report, whose groups are in a VLAN or, with 0, in none."""
        is_told = report.version >= _TELLS_CHANGES[report.family]
        changes = []
        for record in report.records:
            key = report.eth_src, in_domain(record.group, vlan_id)
            before = self._wanted.get(key)
            if before is None and len(self._wanted) >= INTERESTS_BOUND:
                self.missed_count += 1
                continue
            after = _after(before, record)
            is_wanted = after[0] or bool(after[1])
            if is_wanted:
                self._wanted[key] = after
            elif before is not None:
                del self._wanted[key]
            if is_wanted == (before is not None):
                continue
            kind = InterestKind.LEAVE
            if is_wanted:
                is_answer = record.type in _STATES if is_told else at_ns <= self._answers_until_ns
                kind = InterestKind.STANDING if is_answer else InterestKind.JOIN
            changes.append(
                CapturedInterest(at_ns, kind, *key[:1], report.source, key[1], after[0], tuple(sorted(after[1])))
            )
        return changes


def _after(before: tuple[bool, frozenset[bytes]] | None, record: GroupRecord) -> tuple[bool, frozenset[bytes]]:
    """Return the filter of a host after a record: whether it excludes, and its sources (RFC 9776, 4.2.13)."""
    sources = frozenset(record.sources)
    if record.type in _INCLUDES:
        return False, sources
    if record.type in _EXCLUDES:
        return True, sources
    is_exclude, known = before or (False, frozenset[bytes]())
    is_adding = (record.type is RecordType.ALLOW_NEW_SOURCES) != is_exclude
    return is_exclude, known | sources if is_adding else known - sources
