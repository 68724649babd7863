"""Versions of the records of logs: which are read, and in which they are written while members are upgraded."""

from __future__ import annotations

RECORDS = 2
"""The version of the records of logs; those of the version before are read and written too.

1: an entry's kind, the number of its write, its text. 2: the version before these.
"""

RAISE_S = 30.0
"""How long all members read a later version before it is written: who is started anew is away for a while."""


def is_readable(version: int) -> bool:
    """Tell whether records of a version can be read here."""
    return earliest() <= version <= RECORDS


def earliest() -> int:
    """Return the earliest version that can be read here, and written."""
    return max(1, RECORDS - 1)


def may_be_written_anew(version: int) -> bool:
    """Tell whether a program that writes records of a version, which cannot be read here, writes this one's too."""
    return version == RECORDS + 1


def unknown_text(version: int) -> str:
    """Return what operators are told where the logs have records of a version that cannot be read here."""
    return (
        f"The cluster's logs have records of version {version}, and this program reads versions {RECORDS - 1} "
        f"and {RECORDS}: this controller takes no part until it is started anew by a program that reads them."
    )


class VersionWritten:
    """In which version records are written, so that every member can read them: that of who knows least.

    One that is lower counts at once. `version` is that of now.
    """

    def __init__(self) -> None:
        self.version = earliest()
        self._later_since_s: float | None = None

    def look(self, lowest: int, now: float) -> bool:
        """Take what version all members read; tell whether what was written before may be too late a version."""
        wanted = min(RECORDS, max(earliest(), lowest))
        if wanted <= self.version:
            former, self.version, self._later_since_s = self.version, wanted, None
            return wanted < former
        if self._later_since_s is None:
            self._later_since_s = now
        if now >= self._later_since_s + RAISE_S:
            self.version, self._later_since_s = wanted, None
        return False
