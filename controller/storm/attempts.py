"""The joins, or leaves, of a storm as they go on: each is due at its time, tried again, and done or given up."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class HostVerb(StrEnum):
    """What a host is to do now."""

    COME_UP = "come up"
    REPORT = "report"


class HostTurn(NamedTuple):
    """A host's turn: what it does, for the request of this number."""

    verb: HostVerb
    number: int


@dataclass(slots=True)
class RequestState:
    """What became of a request: `late_s` is how much later than planned it was first made, by who plays the storm.

    `done_s` is None until it is done; both times are since the storm began.
    """

    at_s: float
    is_off: bool
    attempts: int = 0
    late_s: float = 0.0
    done_s: float | None = None
    is_given_up: bool = False

    @property
    def took_s(self) -> float | None:
        """How long it took since it was due; None where it was not done."""
        return None if self.done_s is None else self.done_s - self.at_s


class StormRequests:
    """Has each request made at its time and, while it is not done, again after `again_s`, `attempts` times in all.

    One is given up `again_s` after its last attempt. Times are seconds since the storm began.
    """

    def __init__(self, due: Sequence[tuple[float, bool]], attempts: int, again_s: float) -> None:
        self.states = [RequestState(at_s, is_off) for at_s, is_off in due]
        self.left = len(self.states)
        self._attempts = attempts
        self._again_s = again_s
        self._due = [(state.at_s, number) for number, state in enumerate(self.states)]
        heapq.heapify(self._due)

    @property
    def is_over(self) -> bool:
        """Whether every request is done or given up."""
        return not self.left

    def next_s(self) -> float | None:
        """Return when the next turn is."""
        while self._due and self._is_closed(self._due[0][1]):
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def turns(self, now_s: float) -> list[HostTurn]:
        """Return the turns that have come."""
        found = []
        while self._due and self._due[0][0] <= now_s:
            _, number = heapq.heappop(self._due)
            state = self.states[number]
            if self._is_closed(number):
                continue
            if state.attempts >= self._attempts:
                state.is_given_up = True
                self.left -= 1
                continue
            if not state.attempts:
                state.late_s = now_s - state.at_s
                if state.is_off:
                    found.append(HostTurn(HostVerb.COME_UP, number))
            state.attempts += 1
            found.append(HostTurn(HostVerb.REPORT, number))
            heapq.heappush(self._due, (now_s + self._again_s, number))
        return found

    def done(self, number: int, now_s: float) -> None:
        """Take it that a request is done; nothing where it was already, or was given up."""
        if not self._is_closed(number):
            self.states[number].done_s = now_s
            self.left -= 1

    def _is_closed(self, number: int) -> bool:
        state = self.states[number]
        return state.done_s is not None or state.is_given_up
