"""What templates changed, on disk: a line for each change that was begun, and one when it was done or was not."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apps.cli.common import InputError, OperationFailed
from apps.cli.snapshot_socket import user_name
from controller.switch_templates.plan import SettingChange


@dataclass(slots=True)
class TemplateRun:
    """Changes that were made together: by which templates, when (epoch seconds), and what became of it.

    `by` is who ran the command, None in lines of before that was noted. `state` is ``begun`` while nobody knows: then
    none of the changes, or all at some servers, may have been made.
    """

    number: int
    time_s: float
    names: list[str]
    undoes: int | None
    changes: list[SettingChange]
    by: str | None
    state: str = "begun"


class TemplateHistory:
    """The runs in a file of JSON lines; InputError, with the line, where it is none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs: dict[int, TemplateRun] = {}
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            lines = []
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: {error}") from None
        for number, line in enumerate(lines, 1):
            try:
                record = json.loads(line)
            except ValueError:
                if line.startswith("{"):
                    continue  # a command was killed while it wrote this, and changed nothing after it
                raise InputError(f"{path}:{number}: no line of this history") from None
            try:
                self._take(record)
            except (KeyError, TypeError) as error:
                raise InputError(f"{path}:{number}: no line of this history ({error})") from None

    def begin(self, names: Sequence[str], changes: Sequence[SettingChange], undoes: int | None = None) -> TemplateRun:
        """Write down what is about to be changed, before it is."""
        number = max(self.runs, default=0) + 1
        run = TemplateRun(number, time.time(), list(names), undoes, list(changes), user_name())
        self.runs[number] = run
        self._write(
            {
                "run": number,
                "time_s": run.time_s,
                "by": run.by,
                "templates": run.names,
                "undoes": undoes,
                "changes": [change._asdict() for change in changes],
            }
        )
        return run

    def end(self, run: TemplateRun, state: str) -> None:
        """Write down what became of it: ``done``, or ``failed`` where nothing is changed."""
        run.state = state
        self._write({"run": run.number, "state": state})

    def last_applied(self) -> TemplateRun | None:
        """Return the newest run that changed something, is no undoing itself, and was not undone."""
        undone = {run.undoes for run in self.runs.values() if run.undoes is not None and run.state == "done"}
        applied = (run for run in self.runs.values() if run.undoes is None and run.state != "failed")
        return max((run for run in applied if run.number not in undone), key=lambda run: run.number, default=None)

    def _take(self, record: dict[str, Any]) -> None:
        if "state" in record:
            self.runs[record["run"]].state = record["state"]
            return
        changes = [
            SettingChange(**{name: _listed(value) for name, value in change.items()}) for change in record["changes"]
        ]
        self.runs[record["run"]] = TemplateRun(
            record["run"], record["time_s"], record["templates"], record["undoes"], changes, record.get("by")
        )

    def _write(self, record: dict[str, Any]) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a+b") as file:
                if file.tell():
                    file.seek(-1, os.SEEK_END)
                    if file.read(1) != b"\n":
                        file.write(b"\n")
                file.write(json.dumps(record).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise OperationFailed(f"{self.path}: {error.strerror or error}") from None


def _listed(value: Any) -> Any:
    """Return a value as it was before JSON made a list of a tuple."""
    return tuple(value) if isinstance(value, list) else value
