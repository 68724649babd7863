"""The hosts that discovery knows, in the store that controllers share: an entry for each, and for each trunk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from apps.log_keeper import LogKeeper
from controller.discovery.journal import JOURNAL_FIELDS
from controller.effects import JournalPart, Notice, WriteJournal
from controller.foreign_fields import ForeignFields
from controller.log import LogEntry, LogEntryKind, LogPart, WriteLog

_PARTS = {JournalPart.BEGIN: LogPart.BEGIN, JournalPart.FINISH: LogPart.END}


class HostLog(LogKeeper):
    """Keeps discovery's journal as a log, where records are the last values of keys."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._fields = ForeignFields(JOURNAL_FIELDS)

    def take(self, effect: WriteJournal) -> None:
        """Take in records."""
        part = _PARTS.get(effect.part, LogPart.CHANGE)
        self.write(WriteLog(tuple(self._fields.onto(map(entry_of, effect.records))), part))

    def follow(self, entries: Sequence[LogEntry]) -> tuple[dict[str, Any], ...]:
        """Return what another controller's log says as records of the journal."""
        records = records_of(entries)
        for entry, record in zip(entries, records, strict=True):
            self._fields.read(entry, None if entry.text is None else record)
        return records

    def foreign_told(self) -> list[Notice]:
        """Return what operators are told of what other versions have in the log."""
        return self._fields.told()


def entry_of(record: Mapping[str, Any]) -> LogEntry:
    """Return a record of the journal as an entry; one that says that a host or trunk is no more is none."""
    if "leads_to" in record:
        key, is_there = f"trunk/{record['dpid']}:{record['port_no']}", record["leads_to"] is not None
    else:
        number = f"/{record['number']}" if "number" in record else ""
        key, is_there = f"host/{record.get('vlan', 0)}/{record['mac']}{number}", record["dpid"] is not None
    return LogEntry.of_record(LogEntryKind.OBSERVATION, key, record if is_there else None)


def records_of(entries: Iterable[LogEntry]) -> tuple[dict[str, Any], ...]:
    """Return entries as records of the journal; one of what is no more says so."""
    return tuple(_gone(entry.key) if entry.text is None else dict(entry.value or {}) for entry in entries)


def _gone(key: str) -> dict[str, Any]:
    """Return the record that says that what a key is of is no more; an empty one, which says nothing, for no key."""
    subject, *names = key.split("/")
    try:
        if subject == "trunk":
            dpid, port_no = names[0].split(":")
            return {"dpid": int(dpid), "port_no": int(port_no), "leads_to": None}
        vlan, mac, *number = names
        host: dict[str, Any] = {"mac": mac, "vlan": int(vlan), "dpid": None}
        return {**host, "number": int(number[0])} if number else host
    except (ValueError, IndexError):
        return {}
