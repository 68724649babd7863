"""What other versions of the controller keep in the log, by keys that this one does not know."""

from __future__ import annotations

from collections.abc import Iterator

from controller.effects import Notice
from controller.log import LogEntry

NAMED_AT_MOST = 8


class ForeignEntries:
    """Entries that stay as they came, for the controllers that know them: also where the log is written anew.

    Nothing is made of them here. There are no more than other controllers have written.
    """

    def __init__(self) -> None:
        self._entries: dict[str, LogEntry] = {}

    def __iter__(self) -> Iterator[LogEntry]:
        return iter(self._entries.values())

    def take(self, entry: LogEntry) -> None:
        """Take in the last entry of a key; one without a value says that there is none any more."""
        if entry.text is None:
            self._entries.pop(entry.key, None)
        else:
            self._entries[entry.key] = entry

    def told(self) -> list[Notice]:
        """Return what operators are told when all is known: nothing where there are none."""
        if not self._entries:
            return []
        subjects = sorted({entry.subject for entry in self})
        named = ", ".join(subjects[:NAMED_AT_MOST]) + (", ..." if len(subjects) > NAMED_AT_MOST else "")
        count = len(self._entries)
        text = (
            f"{count} entries of the log are by keys that this version does not know ({named}): they stay as they "
            "are for controllers that do, and do nothing while this one leads."
        )
        return [Notice("journal-keys-unknown", text, (("records", count),))]
