"""Timeouts of one length, of which only the first to come due is ever looked at."""

from __future__ import annotations

from typing import Generic, TypeVar

Subject = TypeVar("Subject")


class Timeouts(Generic[Subject]):
    """Subjects that have `length_s` each, with the time at which each is due; all operations take constant time."""

    def __init__(self, length_s: float) -> None:
        self.length_s = length_s
        self.due: dict[Subject, float] = {}

    def __len__(self) -> int:
        return len(self.due)

    def __contains__(self, subject: Subject) -> bool:
        return subject in self.due

    def start(self, subject: Subject, now: float) -> None:
        """Give a subject its whole time from `now`; times must not go backwards."""
        due = self.due
        if subject in due:
            del due[subject]
        due[subject] = now + self.length_s

    def started(self, subject: Subject) -> float | None:
        """Return when a subject's time began, None where it is not there."""
        due = self.due.get(subject)
        return None if due is None else due - self.length_s

    def take(self, subject: Subject) -> float:
        """Forget a subject and return when its time began; KeyError where it is not there."""
        return self.due.pop(subject) - self.length_s

    def cancel(self, subject: Subject) -> None:
        """Forget a subject, if it is there."""
        self.due.pop(subject, None)

    def next(self) -> float | None:
        """Return when the first subject is due, None where there is none."""
        for due in self.due.values():
            return due
        return None

    def oldest(self) -> Subject | None:
        """Return the subject that is due first, None where there is none."""
        return next(iter(self.due), None)

    def take_due(self, now: float) -> list[Subject]:
        """Take out the subjects that are due."""
        taken = []
        for subject, due in self.due.items():
            if due > now:
                break
            taken.append(subject)
        for subject in taken:
            del self.due[subject]
        return taken


def earliest(*times_s: float | None) -> float | None:
    """Return the first of some times of which each is None where nothing is due."""
    first_s: float | None = None
    for at_s in times_s:
        if at_s is not None and (first_s is None or at_s < first_s):
            first_s = at_s
    return first_s
