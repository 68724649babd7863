"""The hosts that discovery knows, in the store that controllers share: an entry for each, and for each trunk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from apps.log_keeper import LogKeeper
from controller.effects import JournalPart, WriteJournal
from controller.log import LogEntry, LogEntryKind, LogPart, WriteLog

_PARTS = {JournalPart.BEGIN: LogPart.BEGIN, JournalPart.FINISH: LogPart.END}


class HostLog(LogKeeper):
    """Keeps discovery's journal as a log, where records are the last values of keys."""

    def take(self, effect: WriteJournal) -> None:
        """Take in records."""
        part = _PARTS.get(effect.part, LogPart.CHANGE)
        self.write(WriteLog(tuple(map(entry_of, effect.records)), part))


def entry_of(record: Mapping[str, Any]) -> LogEntry:
    """Return a record of the journal as an entry; one that says that a host or trunk is no more is none."""
    if "leads_to" in record:
        key, is_there = f"trunk/{record['dpid']}:{record['port_no']}", record["leads_to"] is not None
    else:
        key, is_there = f"host/{record.get('vlan', 0)}/{record['mac']}", record["dpid"] is not None
    return LogEntry.of_record(LogEntryKind.OBSERVATION, key, record if is_there else None)


def records_of(entries: Iterable[LogEntry]) -> tuple[dict[str, Any], ...]:
    """Return entries as records of the journal."""
    return tuple(dict(entry.value or {}) for entry in entries)
