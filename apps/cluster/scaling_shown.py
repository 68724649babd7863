"""What operators see of advice about the number of monitors: a document for each of the latest intervals."""

from __future__ import annotations

from collections.abc import Iterable

from controller.cluster.engine import KeyValue
from controller.scaling.advised import Advised, advised_document, read_advised
from controller.snapshot.log import DocumentLog

KEPT = 288
"""Intervals that are shown: a day of five minutes each."""


def said_slot(number: int) -> str:
    """Return the last part of the key that says what followed from an interval; the oldest one's is used again."""
    return f"{number % KEPT:03d}"


def read_said(held: Iterable[KeyValue]) -> list[Advised]:
    """Return what keys say of intervals, in their order."""
    found = (read_advised(each.value) for each in held)
    return sorted((each for each in found if each is not None), key=lambda each: each.number)


class ScalingSection:
    """The section `scaling`."""

    def __init__(self) -> None:
        self._said: dict[int, Advised] = {}
        self.section: DocumentLog[int] = DocumentLog(lambda: sorted(self._said), self._document)

    @property
    def latest(self) -> Advised | None:
        """What was said last."""
        return self._said[max(self._said)] if self._said else None

    def see(self, said: Iterable[Advised]) -> None:
        """Take in what was said of intervals; the oldest of more than are shown go."""
        for each in said:
            if self._said.get(each.number) != each:
                self._said[each.number] = each
                self.section.touch(each.number)
        for number in sorted(self._said)[:-KEPT]:
            del self._said[number]
            self.section.touch(number)

    def _document(self, number: int) -> dict[str, object] | None:
        said = self._said.get(number)
        return None if said is None else advised_document(said)
