"""Files that a running controller keeps: the journal, the audit log and operators' actions, all bounded in size."""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from apps.environment import environment_path, state_path
from apps.line_files import append_lines, cut_torn_line, make_directory, sync_directory, sync_file
from apps.locks import LockHeld, lock
from controller.admission.audit import AuditLines, repeated_record
from controller.admission.repeats import Refusal, Repeats
from controller.effects import JournalPart
from controller.multicast.effects import Audit

LOCK_NAME = "lock"
AUDIT_BYTES = 16 << 20
AUDIT_BUFFERED_LINES = 1000
_ROTATION = threading.Lock()
"""Held by whoever writes a log, for several apps may write the same."""


def state_dir() -> Path:
    """Return the directory of the controller's files, made where it is not there.

    SystemExit, saying why, where it cannot be made.
    """
    path = state_path()
    try:
        make_directory(path)
    except OSError as error:
        raise SystemExit(f"vsrt: the directory of the controller's files, {path}: {error.strerror}") from error
    return path


def own_state_dir() -> Path:
    """Return the directory of the controller's files, which are this process's alone until it ends.

    SystemExit, saying why, where another controller has them or they cannot be made.
    """
    path = state_dir()
    place = path.resolve()
    if place not in _LOCKS:
        try:
            _LOCKS[place] = lock(path / LOCK_NAME)
        except LockHeld as holder:
            raise SystemExit(f"vsrt: another controller ({holder}) keeps its files in {path}") from None
        except OSError as error:
            raise SystemExit(f"vsrt: {path / LOCK_NAME} cannot be locked: {error.strerror}") from error
    return path


_LOCKS: dict[Path, int] = {}


def socket_path() -> Path:
    """Return the path of the status socket: VSRT_SOCKET, or vsrt.sock among the controller's files."""
    return Path(environment_path("VSRT_SOCKET") or state_dir() / "vsrt.sock")


class JournalFile:
    """The journal: JSON lines, appended to, and replaced at once where the core says so.

    A crash at any byte leaves every record whole that was there before, and tears at most the last line. Records are
    on the disk after the next `sync`.

    Attributes
    ----------
    path
        The file.
    fault
        Why nothing can be written at present, None where all is well.
    lost
        Whether records are missing that could not be written: the journal is complete again after a renewal.
    renewing
        Whether a new journal is being written beside it.
    torn_count
        Lines that a crash had torn and that were cut off.
    """

    def __init__(self, path: Path, logger: logging.Logger) -> None:
        self.fault: str | None = None
        self.lost = False
        self.torn_count = 0
        self.path = path
        self._new_path = path.with_suffix(".new")
        self._logger = logger
        self.renewing = False
        self._unsynced = False
        self._name_unsynced = True
        self._sync_error: OSError | None = None

    def read(self) -> tuple[dict[str, Any], ...]:
        """Return the records of an earlier run; a torn last line is cut off."""
        records = []
        try:
            content = self.path.read_bytes()
            lines = content.splitlines()
            if content and not content.endswith(b"\n") and not _is_json(lines[-1]):
                cut_bytes = cut_torn_line(self.path)
                lines.pop()
                self.torn_count += 1
                self._logger.warning("The last line of %s was torn: its %d bytes are cut off.", self.path, cut_bytes)
        except FileNotFoundError:
            return ()
        except OSError as error:
            self._logger.error("%s cannot be read (%s): the controller starts without it.", self.path, error)
            return ()
        for number, line in enumerate(lines, 1):
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                self._logger.warning("%s:%d is no JSON and is left out.", self.path, number)
                continue
            records.append(record if isinstance(record, dict) else {})
        return tuple(records)

    def write(self, records: Iterable[dict[str, Any]], part: JournalPart) -> None:
        """Write records to the journal, to the new one beside it, or to both."""
        text = "".join([_json_line(record) + "\n" for record in records]).encode()
        try:
            if part is JournalPart.APPEND:
                append_lines(self.path, text)
                if self.renewing:
                    append_lines(self._new_path, text)
            elif part is JournalPart.BEGIN:
                self._new_path.unlink(missing_ok=True)
                append_lines(self._new_path, text)
                self.renewing = True
            elif self.renewing:
                append_lines(self._new_path, text)
                if part is JournalPart.FINISH:
                    self._put_in_place()
            self._unsynced = True
        except OSError as error:
            self._failed(error)

    def sync(self) -> None:
        """Put on the disk what was written; on the thread that writes."""
        self.sync_aside()
        self.check()

    def sync_aside(self) -> None:
        """Put on the disk what was written, on any thread; what goes wrong is for `check`."""
        if not self._unsynced:
            return
        self._unsynced = False
        try:
            sync_file(self.path)
            if self._name_unsynced:
                sync_directory(self.path.parent)
                self._name_unsynced = False
        except FileNotFoundError:
            pass
        except OSError as error:
            self._sync_error = error

    def check(self) -> None:
        """Take note of what went wrong with `sync_aside`; on the thread that writes."""
        error, self._sync_error = self._sync_error, None
        if error is not None:
            self._failed(error)

    def _put_in_place(self) -> None:
        self.renewing = False
        sync_file(self._new_path)
        self._new_path.replace(self.path)
        sync_directory(self.path.parent)
        self.lost = False
        if self.fault is not None:
            self._logger.warning("%s is written again, and complete.", self.path)
            self.fault = None

    def _failed(self, error: OSError) -> None:
        self.renewing = False
        self.lost = True
        with contextlib.suppress(OSError):
            self._new_path.unlink(missing_ok=True)
        if self.fault is None:
            self._logger.error("%s cannot be written (%s): a restart will not know what changed.", self.path, error)
        self.fault = f"{self.path} cannot be written ({error.strerror or error})"


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


_json_line = json.JSONEncoder(separators=(",", ":")).encode


class LineFile:
    """Lines appended to a file, which is turned over when it has grown: two files of bounded size.

    Lines that cannot be written wait, the newest of them; those that are lost are counted and told. `fault` says why
    nothing can be written at present, None where all is well.
    """

    def __init__(self, path: Path, logger: logging.Logger) -> None:
        self._path = path
        self._logger = logger
        self.fault: str | None = None
        self._waiting: list[str] = []
        self._lost_count = 0

    def write(self, lines: Iterable[str] = (), *, synced: bool = False) -> None:
        """Append some lines, whole ones only; `synced` lines are on the disk afterwards."""
        self._waiting += lines
        if not self._waiting:
            return
        try:
            with _ROTATION:
                with contextlib.suppress(FileNotFoundError):
                    if self._path.stat().st_size > AUDIT_BYTES:
                        self._path.replace(self._path.with_suffix(".1.jsonl"))
                append_lines(self._path, ("\n".join(self._waiting) + "\n").encode())
            self._waiting = []
            if synced:
                sync_file(self._path)
        except OSError as error:
            beyond = max(0, len(self._waiting) - AUDIT_BUFFERED_LINES)
            self._lost_count += beyond
            del self._waiting[:beyond]
            fault = f"{self._path} cannot be written ({error.strerror or error})."
            if self.fault is None:
                self._logger.error("%s", fault)
            self.fault = fault
            return
        if self.fault is not None:
            self._logger.warning("%s is written again; %d lines are lost.", self._path, self._lost_count)
            self.fault, self._lost_count = None, 0


class AuditLog:
    """Admission decisions as JSON lines; refusals that repeat are one line with their number."""

    def __init__(self, path: Path, logger: logging.Logger) -> None:
        self._file = LineFile(path, logger)
        self._writer = AuditLines()
        self._repeats = Repeats()
        self._lines: list[str] = []

    def add(self, audit: Audit) -> None:
        """Note a decision; it is on disk after the next `flush`."""
        decision, host, group, role, source = audit
        now_s = time.time()
        if not decision.admit and not self._repeats.is_news(Refusal(*audit), now_s):
            return
        self._lines.append(self._writer.line(decision, host, group, role, now_s, source))
        if len(self._lines) >= AUDIT_BUFFERED_LINES:
            self._write()

    def flush(self) -> None:
        """Write what was noted, and what an interval that has ended has summed up."""
        now_s = time.time()
        self._lines += [_json_line(repeated_record(repeated, now_s)) for repeated in self._repeats.due(now_s)]
        self._write()

    @property
    def fault(self) -> str | None:
        """Why nothing can be written at present, None where all is well."""
        return self._file.fault

    def close(self) -> None:
        """Write everything, the interval that has not ended included."""
        now_s = time.time()
        self._lines += [_json_line(repeated_record(repeated, now_s)) for repeated in self._repeats.end()]
        self._write()

    def _write(self) -> None:
        lines, self._lines = self._lines, []
        self._file.write(lines)


class ActionLog:
    """What operators asked for, as JSON lines, in a file of its own that no host can make grow."""

    def __init__(self, path: Path, logger: logging.Logger) -> None:
        self._file = LineFile(path, logger)

    def add(self, action: str, asked: Mapping[str, Any], by: str | None, refused: str | None) -> None:
        """Put on the disk what an operator asked for, and why it was refused if it was."""
        moment = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        verdict = "done" if refused is None else "refused"
        line = {
            "time": moment,
            "action": action,
            "asked": dict(asked),
            "by": by,
            "verdict": verdict,
            "reason": refused,
        }
        self._file.write([_json_line(line)], synced=True)

    @property
    def fault(self) -> str | None:
        """Why nothing can be written at present, None where all is well."""
        return self._file.fault

    def flush(self) -> None:
        """Write what could not be written before."""
        self._file.write(synced=True)
