"""What became of each line of a configuration: taken, changed, impossible, or nothing that it asks for."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any, NamedTuple

MAX_FAULTS = 1000


class Outcome(IntEnum):
    """What became of a line; of several things in one line the gravest counts."""

    IDLE = 0
    TAKEN = 1
    CHANGED = 2
    IMPOSSIBLE = 3

    @property
    def word(self) -> str:
        """Return the word for it in reports."""
        return self.name.lower()


class InputFile(NamedTuple):
    """A file: what it is called, and its text."""

    name: str
    text: str


class Place(NamedTuple):
    """Lines of a file, from `line` (counted from 1) to `last` and with it."""

    file: str
    line: int
    last: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class LinePart(NamedTuple):
    """What became of one thing in a line: `field` says which where there are several, `todo` what to do instead."""

    field: str
    outcome: Outcome
    what: str
    todo: str = ""
    is_with_another: bool = False
    """Whether the line goes with another one, which says it all."""


class LineReport(NamedTuple):
    """A line of a file, and what became of it."""

    file: str
    line: int
    text: str
    outcome: Outcome
    parts: tuple[LinePart, ...]

    def as_document(self) -> dict[str, Any]:
        """Return the line as a JSON object."""
        parts = [
            {"field": part.field, "outcome": part.outcome.word, "what": part.what, "todo": part.todo}
            for part in self.parts
        ]
        return {"file": self.file, "line": self.line, "text": self.text, "outcome": self.outcome.word, "parts": parts}


class Fault(NamedTuple):
    """Something that keeps a configuration from being read at all: `line` counts from 1, 0 is the whole file."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}" if self.line else f"{self.file}: {self.message}"


class BadConfiguration(Exception):  # noqa: N818 - it says what the file is
    """A configuration that the program it is for would refuse; its text has one line for each fault."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)[:MAX_FAULTS]
        super().__init__("\n".join(map(str, self.faults)))


class ImportReport:
    """Collects what became of the lines of some files.

    Parameters
    ----------
    comment
        Signs with which a line begins that says nothing.
    """

    def __init__(self, comment: tuple[str, ...] = ("#",)) -> None:
        self.notes: list[str] = []
        self._comment = comment
        self._sources: dict[str, list[str]] = {}
        self._parts: dict[tuple[str, int], dict[LinePart, None]] = {}
        self._covers: dict[tuple[str, int], tuple[int, Place, Outcome]] = {}

    def add(self, source: InputFile) -> None:
        """Take a file whose lines are to be in the report."""
        self._sources[source.name] = source.text.splitlines()

    def with_line(self, place: Place, outcome: Outcome, line: int) -> None:
        """Say that lines go with an earlier one."""
        self._say(place, LinePart("", outcome, f"with line {line}", is_with_another=True))

    def idle(self, place: Place, what: str, field: str = "") -> None:
        """Say that lines ask for nothing that a policy could have."""
        self._say(place, LinePart(field, Outcome.IDLE, what))

    def taken(self, place: Place, what: str, field: str = "") -> None:
        """Say that lines mean the same in the policy."""
        self._say(place, LinePart(field, Outcome.TAKEN, what))

    def changed(self, place: Place, what: str, field: str = "") -> None:
        """Say that lines are in the policy with another effect than they had, and which."""
        self._say(place, LinePart(field, Outcome.CHANGED, what))

    def impossible(self, place: Place, why: str, todo: str, field: str = "") -> None:
        """Say that lines have no place in the policy, why, and what to do instead."""
        self._say(place, LinePart(field, Outcome.IMPOSSIBLE, why, todo))

    def note(self, text: str) -> None:
        """Say something that no line says: what the program does by itself and the controller does not."""
        if text not in self.notes:
            self.notes.append(text)

    def lines(self) -> tuple[LineReport, ...]:
        """Return every line of every file once, in the order of the files."""
        return tuple(
            self._line(file, number, text)
            for file, lines in self._sources.items()
            for number, text in enumerate(lines, 1)
        )

    def _say(self, place: Place, part: LinePart) -> None:
        parts = self._parts.setdefault((place.file, place.line), {})
        parts[part] = None
        size = place.last - place.line
        for line in range(place.line + 1, place.last + 1):
            key = place.file, line
            known = self._covers.get(key)
            # Of things within one another the innermost says what its lines are; of equals the gravest.
            if known is None or (size, -part.outcome) < (known[0], -known[2]):
                self._covers[key] = size, place, part.outcome

    def _line(self, file: str, number: int, text: str) -> LineReport:
        parts = tuple(self._parts.get((file, number), ()))
        stripped = text.strip()
        if not parts and (not stripped or stripped.startswith(self._comment)):
            parts = (LinePart("", Outcome.IDLE, "a comment" if stripped else "an empty line"),)
        if not parts and (file, number) in self._covers:
            _, place, outcome = self._covers[file, number]
            parts = (LinePart("", outcome, f"with line {place.line}", is_with_another=True),)
        if not parts:
            why = "the line could not be told from those around it"
            parts = (LinePart("", Outcome.IMPOSSIBLE, why, "write what it means into the policy by hand"),)
        return LineReport(file, number, text, max(part.outcome for part in parts), parts)


def counts(lines: Iterable[LineReport]) -> dict[str, int]:
    """Return how many lines became what, by the words of outcomes."""
    found = {outcome.word: 0 for outcome in reversed(Outcome)}
    for line in lines:
        found[line.outcome.word] += 1
    return found
