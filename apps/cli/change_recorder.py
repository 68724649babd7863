"""Writes a log of changes as a controller's documents change: one recorder for a file, whole lines in it."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from apps.cli.change_file import COLUMNS
from apps.cli.common import InputError, OperationFailed
from apps.cli.text_files import file_faults, json_lines
from apps.end_signals import END_SIGNALS
from apps.line_files import append_lines, cut_torn_line, replace_file
from apps.locks import LockHeld, lock
from controller.policy_discovery.configuration import (
    SECTIONS,
    Configuration,
    ConfigurationChange,
    Fields,
    Properties,
    Resource,
)
from controller.policy_discovery.database_columns import ResourceColumns
from controller.snapshot.reader import Snapshot


@contextmanager
def kept_by_one(path: Path) -> Iterator[None]:
    """Keep other recorders from a file."""
    if path.suffix == ".gz":
        raise InputError(f"-o {path}: nothing can be added to a file that gzip packed; give it another name")
    own = path.with_name(f"{path.name}.lock")
    try:
        held = lock(own)
    except LockHeld as other:
        raise OperationFailed(f"{path}: {other} records in it already") from None
    except OSError as error:
        raise InputError(f"-o {path}: {error.strerror or error}") from None
    try:
        yield
    finally:
        os.close(held)


def known_changes(path: Path) -> dict[Resource, Properties]:
    """Return what a file tells of each property last; a line that a crash left torn at its end is taken out."""
    known: dict[Resource, Properties] = {}
    if not path.exists():
        return known
    with file_faults(path):
        cut_torn_line(path)
    for where, fields, _ in json_lines(path, []):
        texts = [fields.get(name) for name in ("type", "resource", "property", "new")]
        if not all(isinstance(text, str) for text in texts):
            raise InputError(f"{where}: this is no log of changes: expected {', '.join(COLUMNS)}")
        kind, name, what, new = texts
        known.setdefault(Resource(str(kind), str(name)), {})[str(what)] = str(new)
    return known


def bound_log(path: Path, bound_bytes: int) -> bool:
    """Write a longer log anew, with the newest half of what it may take; tell whether that was done.

    Of what is older only the last line of each property that is still set stays: who goes on with the file knows from
    it how the fabric is. What somebody else appends meanwhile is lost; OSError leaves the file as it was.
    """
    if path.stat().st_size <= bound_bytes:
        return False
    lines = path.read_bytes().splitlines(keepends=True)
    left_bytes, first = bound_bytes // 2, len(lines)
    while first and left_bytes >= len(lines[first - 1]):
        first -= 1
        left_bytes -= len(lines[first])
    last: dict[tuple[str, str, str], bytes] = {}
    for line in lines[:first]:
        fields = json.loads(line)
        setting = (fields["type"], fields["resource"], fields["property"])
        last.pop(setting, None)
        if fields["new"]:
            last[setting] = line
    replace_file(path, b"".join([*last.values(), *lines[first:]]))
    return True


class Follower(Protocol):
    """Takes documents as they change."""

    def put(self, section: str, fields: Fields) -> None:
        """Take a document."""

    def remove(self, section: str, id_: str) -> None:
        """Take it that there is a document no more."""


class ChangeRecorder:
    """Writes what changes between snapshots; `count` are the lines written.

    What cannot be written is not lost: it is found again with the next snapshot, as it is then. Others, `beside`, are
    told of the same documents. `lock` is held while they are, and while the file is written.
    """

    def __init__(self, path: Path, configuration: Configuration, beside: Sequence[Follower] = ()) -> None:
        self.count = 0
        self.lock = threading.RLock()
        self._followers: tuple[Follower, ...] = (configuration, *beside)
        self._path = path
        self._configuration = configuration
        self._versions = dict.fromkeys(SECTIONS, -1)
        self._trouble: str | None = None

    def follow(self, snapshot: Snapshot) -> None:
        """Take what a snapshot tells anew, and write it."""
        with self.lock:
            self._follow(snapshot)
            self.write()

    def take(self, told: Iterable[ResourceColumns]) -> None:
        """Take what a database tells, and write it; on any thread."""
        with self.lock:
            for columns in told:
                self._configuration.set(*columns)
            self.write()

    def _follow(self, snapshot: Snapshot) -> None:
        for name in SECTIONS:
            section = snapshot.section(name)
            difference = section.since(self._versions[name])
            put = section.in_order() if difference is None else difference.put
            for follower in self._followers:
                for document in put:
                    follower.put(name, document.fields)
                for id_ in () if difference is None else difference.removed:
                    follower.remove(name, id_)
            self._versions[name] = section.version

    def write(self) -> None:
        """Append a line for each change, whatever signal comes meanwhile."""
        with self.lock:
            self._write()

    def _write(self) -> None:
        changes = self._configuration.changes()
        now_s = round(time.time(), 3)
        text = "".join(json.dumps(_line(now_s, change)) + "\n" for change in changes)
        masked = signal.pthread_sigmask(signal.SIG_BLOCK, END_SIGNALS)
        try:
            if changes:
                append_lines(self._path, text.encode())
            self.count += len(changes)
            self._configuration.taken()
            self._trouble = None
        except OSError as error:
            why = f"{self._path}: {error.strerror or error}"
            if why != self._trouble:
                print(f"vsrt: {why}; trying again", file=sys.stderr)
            self._trouble = why
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)


def _line(now_s: float, change: ConfigurationChange) -> dict[str, Any]:
    resource, name, old, new = change
    return {
        "time": now_s,
        "resource": resource.name,
        "type": resource.kind,
        "property": name,
        "old": old,
        "new": new,
    }
