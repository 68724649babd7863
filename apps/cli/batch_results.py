"""What a workflow did, on disk: its items, and a line for each when it is begun, and when it is done or refused."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from apps.cli.common import InputError, OperationFailed
from apps.cli.whole_files import write_new
from controller.snapshot.reader import Document


class BatchResults:
    """A file of JSON lines: first the workflow and its items, then what became of each item of each step.

    InputError is raised for a file that is none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.workflow = Path()
        self.digest = ""
        self.at: dict[str, Any] | None = None
        self.begun: dict[str, Any] = {}
        self.items: dict[str, list[dict[str, Any]]] = {}
        self.states: dict[tuple[str, int], dict[str, Any]] = {}

    @classmethod
    def new(
        cls,
        path: Path,
        workflow: Path,
        data: bytes,
        items: dict[str, list[dict[str, Any]]],
        at: dict[str, Any] | None = None,
        begun: dict[str, Any] | None = None,
    ) -> BatchResults:
        """Begin a file, which must not be there.

        `at` are the fields of what the run is begun at, `begun` is what its reader wants to know of it.
        """
        results = cls(path)
        results.workflow, results.digest, results.items = workflow, digest_of(data), items
        results.at, results.begun = at, begun or {}
        head = {
            "workflow": str(workflow.resolve()),
            "digest": results.digest,
            "items": items,
            "at": at,
            "begun": results.begun,
        }
        there = f"the file is there already: `vsrt batch resume {path}` goes on with it"
        write_new(path, json.dumps(head) + "\n", there)
        return results

    @classmethod
    def read(cls, path: Path) -> BatchResults:
        """Return what is in a file."""
        results = cls(path)
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
        for number, line in enumerate(lines, 1):
            try:
                record = json.loads(line)
                if number == 1:
                    results.workflow, results.digest = Path(record["workflow"]), record["digest"]
                    results.items, results.at = record["items"], record.get("at")
                    results.begun = record.get("begun") or {}
                else:
                    results.states[record["step"], record["item"]] = record
            except (ValueError, KeyError, TypeError):
                if number > 1 and line.startswith("{"):
                    continue  # a command was killed while it wrote this
                raise InputError(f"{path}:{number}: no line of a workflow's results") from None
        if not lines:
            raise InputError(f"{path}: the file is empty")
        return results

    def tell(self, step: str, item: int, state: str, text: str = "", answer: Any = None) -> dict[str, Any]:
        """Write down what became of an item: ``begun``, ``done`` or ``failed``."""
        record = {"step": step, "item": item, "state": state, "text": text, "answer": answer}
        self.states[step, item] = record
        try:
            with self.path.open("a+b") as file:
                file.seek(-1, os.SEEK_END)
                torn = file.read(1) != b"\n"
                file.write((b"\n" if torn else b"") + json.dumps(record, default=str).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise OperationFailed(f"{self.path}: {error.strerror or error}") from None
        return record

    def counts(self) -> tuple[int, int]:
        """Return how many items are done, and how many there are."""
        done = sum(self.is_done(step, number) for step, items in self.items.items() for number in range(len(items)))
        return done, sum(map(len, self.items.values()))

    def is_done(self, step: str, item: int) -> bool:
        """Tell whether an item of a step was done."""
        return self.states.get((step, item), {}).get("state") == "done"

    def answers(self) -> dict[str, dict[str, Any]]:
        """Return what steps answered that are done once."""
        return {
            step: record["answer"]
            for (step, item), record in self.states.items()
            if item == 0 and record["state"] == "done" and isinstance(record["answer"], dict)
        }


def digest_of(data: bytes) -> str:
    """Return what a workflow's file is told by."""
    return hashlib.sha256(data).hexdigest()


def fields_of(documents: list[Document]) -> list[dict[str, Any]]:
    """Return what of documents words can stand for: their texts and numbers."""
    return [
        {
            name: value
            for name, value in document.fields.items()
            if isinstance(value, str | int) and not isinstance(value, bool)
        }
        for document in documents
    ]
