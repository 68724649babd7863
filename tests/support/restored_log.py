"""What a restart makes of entries of the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from controller.events import DeadlineReached
from controller.log import Entry
from controller.multicast.core import MulticastCore
from controller.multicast.events import LogRead
from controller.multicast.restored import Reader, Restored


def read_entries(entries: Iterable[Entry]) -> Restored:
    """Read entries where no group gets that of another."""
    reader = Reader()
    for entry in entries:
        reader.read(entry)
    return reader.restored((), lambda group: group)


def put_back(core: MulticastCore, entries: Iterable[Entry], feed: Callable[[Any], Any]) -> None:
    """Have a core put all of a log back, fed by `feed`, as its app does before the first switch connects."""
    feed(LogRead(tuple(entries)))
    while core.restart.is_under_way:
        feed(DeadlineReached())
