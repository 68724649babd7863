"""Files that a running controller keeps: the journal and the audit log, both bounded in size."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from apps.openflow.app import environment_path
from controller.admission.audit import AuditLines
from controller.multicast.effects import Audit, JournalPart

AUDIT_BYTES = 16 << 20
AUDIT_BUFFERED_LINES = 1000


def state_dir() -> Path:
    """Return the directory of the controller's files: VSRT_STATE_DIR, or vsrt-state where it was started.

    SystemExit, saying why, where it cannot be made.
    """
    path = Path(environment_path("VSRT_STATE_DIR") or "vsrt-state")
    try:
        path.mkdir(mode=0o750, parents=True, exist_ok=True)
    except OSError as error:
        raise SystemExit(f"vsrt: the directory of the controller's files, {path}: {error.strerror}") from error
    return path


def socket_path() -> Path:
    """Return the path of the status socket: VSRT_SOCKET, or vsrt.sock among the controller's files."""
    return Path(environment_path("VSRT_SOCKET") or state_dir() / "vsrt.sock")


class JournalFile:
    """The journal: JSON lines, appended to, and replaced at once where the core says so."""

    def __init__(self, path: Path, logger: logging.Logger) -> None:
        self._path = path
        self._new_path = path.with_suffix(".new")
        self._logger = logger
        self._failed = False
        self._renewing = False

    def read(self) -> tuple[dict[str, Any], ...]:
        """Return the records of an earlier run; a torn last line is left out."""
        records = []
        try:
            content = self._path.read_bytes()
            if content and not content.endswith(b"\n"):
                _append(self._path, "\n")
        except FileNotFoundError:
            return ()
        except OSError as error:
            self._logger.error("%s cannot be read (%s): starting without it", self._path, error)
            return ()
        for number, line in enumerate(content.splitlines(), 1):
            try:
                record = json.loads(line)
            except ValueError:
                self._logger.warning("%s:%d is no JSON and is left out", self._path, number)
                continue
            records.append(record if isinstance(record, dict) else {})
        return tuple(records)

    def write(self, records: Iterable[dict[str, Any]], part: JournalPart) -> None:
        """Write records to the journal, to the new one beside it, or to both."""
        text = "".join([_json_line(record) + "\n" for record in records])
        try:
            if part is JournalPart.APPEND:
                _append(self._path, text)
                if self._renewing:
                    _append(self._new_path, text)
            elif part is JournalPart.BEGIN:
                self._renewing = True
                self._new_path.write_text(text, encoding="utf-8")
            elif self._renewing:
                _append(self._new_path, text)
                if part is JournalPart.FINISH:
                    self._renewing = False
                    self._new_path.replace(self._path)
            self._failed = False
        except OSError as error:
            self._renewing = False
            if not self._failed:
                self._logger.error(
                    "%s cannot be written (%s): a restart will not know what changed", self._path, error
                )
            self._failed = True


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


_json_line = json.JSONEncoder(separators=(",", ":")).encode


class AuditLog:
    """Admission decisions and what operators asked for, as JSON lines, kept to two files of bounded size."""

    def __init__(self, path: Path, logger: logging.Logger) -> None:
        self._path = path
        self._logger = logger
        self._writer = AuditLines()
        self._lines: list[str] = []
        self._failed = False

    def add(self, audit: Audit) -> None:
        """Note a decision; it is on disk after the next `flush`."""
        decision, host, group, role, source = audit
        self._lines.append(self._writer.line(decision, host, group, role, time.time(), source))
        if len(self._lines) >= AUDIT_BUFFERED_LINES:
            self.flush()

    def add_action(self, action: str, asked: Mapping[str, Any], by: str | None, refused: str | None) -> None:
        """Note what an operator asked for, and why it was refused if it was."""
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
        self._lines.append(_json_line(line))
        self.flush()

    def flush(self) -> None:
        """Write what was noted."""
        if not self._lines:
            return
        lines, self._lines = self._lines, []
        try:
            if self._path.exists() and self._path.stat().st_size > AUDIT_BYTES:
                self._path.replace(self._path.with_suffix(".1.jsonl"))
            with self._path.open("a", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
            self._failed = False
        except OSError as error:
            if not self._failed:
                self._logger.error("%s cannot be written (%s)", self._path, error)
            self._failed = True
