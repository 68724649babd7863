"""What a restart makes of entries of the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from controller.events import DeadlineReached
from controller.foreign_fields import ForeignFields
from controller.log import LogEntry
from controller.multicast.core import MulticastCore
from controller.multicast.events import LogRead
from controller.multicast.journal_fields import JOURNAL_FIELDS
from controller.multicast.restored import LogReader, Restored


def read_entries(entries: Iterable[LogEntry]) -> Restored:
    """Read entries where no group gets that of another."""
    reader = LogReader(ForeignFields(JOURNAL_FIELDS))
    for entry in entries:
        reader.read(entry)
    return reader.restored((), lambda group: group)


def put_back(core: MulticastCore, entries: Iterable[LogEntry], feed: Callable[[Any], Any]) -> None:
    """Have a core put all of a log back, fed by `feed`, as its app does before the first switch connects."""
    feed(LogRead(tuple(entries)))
    while core.restart.is_under_way:
        feed(DeadlineReached())
