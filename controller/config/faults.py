"""Faults of a policy file: every one with its line, all of them together."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from typing import NamedTuple

MAX_ERRORS = 1000
MAX_SUGGESTIONS = 50
_MAX_VOCABULARY = 500
_MAX_SHOWN_LENGTH = 64


class PolicyError(NamedTuple):
    """One fault: `line` counts from 1, `field` is a path such as ``rules[2].groups[0]`` ('' for the whole file)."""

    line: int
    field: str
    message: str


class PolicyInvalid(Exception):  # noqa: N818 - the contract's name
    """A policy file that may not be applied; its text has one line per fault."""

    def __init__(self, errors: tuple[PolicyError, ...], source: str = "<policy>") -> None:
        super().__init__(errors, source)
        self.errors = errors
        self.source = source

    def __str__(self) -> str:
        return "\n".join(describe(error, self.source) for error in self.errors)


class Faults:
    """Collects errors and warnings while a file is read; errors past `MAX_ERRORS` are only counted."""

    def __init__(self) -> None:
        self._errors: list[PolicyError] = []
        self._warnings: list[PolicyError] = []
        self._left_out = 0
        self._suggestions = 0

    @property
    def any_error(self) -> bool:
        """Whether the file must be refused."""
        return bool(self._errors)

    @property
    def error_count(self) -> int:
        """How many errors there are, listed or not."""
        return len(self._errors) + self._left_out

    def error(self, line: int, field: str, message: str) -> None:
        """Record a fault that forbids the file."""
        if len(self._errors) < MAX_ERRORS:
            self._errors.append(PolicyError(line, field, message))
        else:
            self._left_out += 1

    def warn(self, line: int, field: str, message: str) -> None:
        """Record something that is allowed but hardly meant."""
        if len(self._warnings) < MAX_ERRORS:
            self._warnings.append(PolicyError(line, field, message))

    def suggestion(self, word: str, known: Collection[str]) -> str:
        """Return ``; did you mean 'x'?`` for the known word nearest to `word`, '' where none is near.

        Only the first `MAX_SUGGESTIONS` questions are looked into, and no large vocabulary, for the search is slow.
        """
        if len(word) > _MAX_SHOWN_LENGTH or len(known) > _MAX_VOCABULARY or self._suggestions == MAX_SUGGESTIONS:
            return ""
        self._suggestions += 1
        near = get_close_matches(word, known, n=1, cutoff=0.6)
        return f"; did you mean {near[0]!r}?" if near else ""

    def errors(self) -> tuple[PolicyError, ...]:
        """Return the faults in the order of their lines."""
        found = sorted(self._errors)
        if self._left_out:
            found.append(PolicyError(found[-1].line, "", f"{self._left_out} further faults are not listed"))
        return tuple(found)

    def warnings(self) -> tuple[PolicyError, ...]:
        """Return the warnings in the order of their lines."""
        return tuple(sorted(self._warnings))


def describe(error: PolicyError, source: str) -> str:
    """Return a fault as one line of text: source, line, field, message."""
    field = f"{error.field}: " if error.field else ""
    return f"{source}:{error.line}: {field}{error.message}"


def as_document(error: PolicyError) -> dict[str, int | str]:
    """Return a fault as a JSON object."""
    return {"line": error.line, "field": error.field, "message": error.message}


def quoted(text: str) -> str:
    """Return a text of the file in quotes, on one line and not too long."""
    return repr(text if len(text) <= _MAX_SHOWN_LENGTH else text[: _MAX_SHOWN_LENGTH - 1] + "…")
