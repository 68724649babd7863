"""The journal of a version before, `journal.jsonl`: read at a start, and put aside when the log has all of it."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

FORMER_NAME = "journal.jsonl"
ASIDE_SUFFIX = ".taken-over"


class FormerJournal:
    """The file at `path`, which is there at the first start after an upgrade alone.

    Whatever the log holds, a journal that is there is newer: a version before has written it since.
    """

    def __init__(self, path: Path, logger: logging.Logger) -> None:
        self.path = path
        self._logger = logger
        self._is_taken = False

    def take(self) -> tuple[dict[str, Any], ...] | None:
        """Return the records of the journal, None where there is none that can be read; a torn last line is left out.

        A line that is no record is an empty one.
        """
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._logger.error("%s, of a version before, cannot be read (%s).", self.path, error.strerror)
            return None
        self._is_taken = True
        records = []
        lines = content.split(b"\n")
        for number, line in enumerate(lines, 1):
            if line:
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError):
                    torn = number == len(lines)
                    what = "was torn and" if torn else "is no JSON and"
                    self._logger.warning("%s:%d %s is left out.", self.path, number, what)
                    continue
                records.append(record if isinstance(record, dict) else {})
        return tuple(records)

    def put_aside(self) -> Path | None:
        """Give a journal that was taken another name, by which nothing reads it, and return that; once."""
        if not self._is_taken:
            return None
        aside = self.path.with_name(self.path.name + ASIDE_SUFFIX)
        try:
            self.path.replace(aside)
            self.path.with_suffix(".new").unlink(missing_ok=True)
        except OSError as error:
            self._logger.error("%s is taken over, but cannot be renamed (%s).", self.path, error.strerror)
            return None
        self._is_taken = False
        return aside
