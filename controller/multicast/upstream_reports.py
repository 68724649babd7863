"""What a proxy says upstream: records of changes and of the present state, and the reports that they fit into.

The host side of IGMPv3 (RFC 9776, 5) and MLDv2 (RFC 9777, 6).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from controller.membership.events import FilterMode, Interest
from controller.membership.settings import LATEST_VERSION
from controller.wire.addresses import is_ssm_group
from controller.wire.packets import GroupRecord, RecordType

RECORD_BYTES = {4: 1500 - 24 - 8, 6: 1500 - 48 - 8}
"""What a report on Ethernet has room for, behind the headers of IP, its router alert, and of the report."""

_EXCLUDE = FilterMode.EXCLUDE
_NOTHING = Interest(FilterMode.INCLUDE, frozenset())


class Unconfirmed:
    """Changes of one group that are still to be reported, for a report may be lost (RFC 9776, 5.1)."""

    __slots__ = ("_mode_left", "_sources_left")

    def __init__(self) -> None:
        self._mode_left = 0
        self._sources_left: dict[bytes, int] = {}

    @property
    def is_done(self) -> bool:
        """Whether all was said as often as it is to be."""
        return not self._mode_left and not self._sources_left

    def add(self, before: Interest | None, after: Interest | None, robustness: int) -> None:
        """Take in a change, to be said `robustness` times; None stands for no membership.

        A change of mode is said with all sources, so that those which change meanwhile have no records of their own.
        """
        old, new = before or _NOTHING, after or _NOTHING
        if old.mode is not new.mode or self._mode_left:
            self._mode_left = robustness
            self._sources_left = {}
        else:
            for source in old.sources ^ new.sources:
                self._sources_left[source] = robustness

    def records(self, group: bytes, wanted: Interest | None, is_older: bool) -> list[GroupRecord]:
        """Return what is to be said now, once, of a group; `is_older` where only joins and leaves can be said."""
        interest = wanted or _NOTHING
        if is_older:
            left = max(self._mode_left, *self._sources_left.values()) if self._sources_left else self._mode_left
            self._mode_left, self._sources_left = left - 1, {}
            kind = RecordType.CHANGE_TO_INCLUDE if wanted is None else RecordType.MODE_IS_EXCLUDE
            return [GroupRecord(kind, group)]
        if self._mode_left:
            self._mode_left -= 1
            is_excluding = interest.mode is _EXCLUDE
            kind = RecordType.CHANGE_TO_EXCLUDE if is_excluding else RecordType.CHANGE_TO_INCLUDE
            return [GroupRecord(kind, group, tuple(sorted(interest.sources)))]
        changed = sorted(self._sources_left)
        self._sources_left = {source: left - 1 for source, left in self._sources_left.items() if left > 1}
        allowed = tuple(source for source in changed if interest.wants(source))
        blocked = tuple(source for source in changed if not interest.wants(source))
        records = [
            GroupRecord(RecordType.ALLOW_NEW_SOURCES, group, allowed),
            GroupRecord(RecordType.BLOCK_OLD_SOURCES, group, blocked),
        ]
        return [record for record in records if record.sources]


def present_record(group: bytes, wanted: Interest) -> GroupRecord:
    """Return the current-state record of a group."""
    kind = RecordType.MODE_IS_EXCLUDE if wanted.mode is _EXCLUDE else RecordType.MODE_IS_INCLUDE
    return GroupRecord(kind, group, tuple(sorted(wanted.sources)))


def answer_record(group: bytes, wanted: Interest, asked: frozenset[bytes]) -> GroupRecord | None:
    """Return the answer to a query about a group, or about some `asked` sources of it; None where there is none."""
    if not asked:
        return present_record(group, wanted)
    sources = tuple(sorted(source for source in asked if wanted.wants(source)))
    return GroupRecord(RecordType.MODE_IS_INCLUDE, group, sources) if sources else None


def in_reports(records: Iterable[GroupRecord], family: int, version: int) -> Iterator[tuple[GroupRecord, ...]]:
    """Yield the records of one report after the other, as the version can say them.

    In older versions each group is a report: a join, or a leave where there are leaves. A source-specific group
    cannot be said there (RFC 4604, 2.2) and is left out. An EXCLUDE record that is too long for a report leaves out
    the sources for which there is no room, any other goes on in the next report (RFC 9776, 4.2.16).
    """
    if version < LATEST_VERSION[family]:
        for record in records:
            older = _older(record, family, version)
            if older is not None:
                yield (older,)
        return
    size = 4 if family == 4 else 16
    room = RECORD_BYTES[family]
    report: list[GroupRecord] = []
    for whole in records:
        for record in _fitting(whole, (RECORD_BYTES[family] - 4 - size) // size):
            needed = 4 + size + size * len(record.sources)
            if needed > room:
                yield tuple(report)
                report, room = [], RECORD_BYTES[family]
            report.append(record)
            room -= needed
    if report:
        yield tuple(report)


def _fitting(record: GroupRecord, most: int) -> Iterator[GroupRecord]:
    sources = record.sources
    if len(sources) <= most:
        yield record
    elif record.type in (RecordType.MODE_IS_EXCLUDE, RecordType.CHANGE_TO_EXCLUDE):
        yield record._replace(sources=sources[:most])
    else:
        for first in range(0, len(sources), most):
            part = record._replace(sources=sources[first : first + most])
            # A second "change to INCLUDE" would take back the sources of the first.
            is_later = first and record.type is RecordType.CHANGE_TO_INCLUDE
            yield part._replace(type=RecordType.ALLOW_NEW_SOURCES) if is_later else part


def _older(record: GroupRecord, family: int, version: int) -> GroupRecord | None:
    if is_ssm_group(record.group):
        return None
    if record.type is not RecordType.CHANGE_TO_INCLUDE:
        return GroupRecord(RecordType.MODE_IS_EXCLUDE, record.group)
    return record if family == 6 or version == 2 else None
