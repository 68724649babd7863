"""What members of controllers and of monitors share: they ask the store, one request of each purpose at a time.

They have a lease there, follow keys, and see whether it answers.
"""

from __future__ import annotations

from typing import Any

from controller.cluster.effects import StoreRequest, TellOperators, WatchKeys
from controller.cluster.engine import GrantLease, KeepLease, Request
from controller.cluster.events import Answered, WatchEnded
from controller.cluster.requests import Pending, Purpose
from controller.snapshot.events import Severity, State

RETRY_S = 0.5
"""How soon the store is asked again after it was silent."""

UNREACHABLE_S = 1.0
"""Silence of the store from which on operators are told."""


class Asking:
    """Who asks a store, and tells operators."""

    def __init__(self) -> None:
        self._effects: list[Any] = []
        self._pending: dict[Purpose, Pending] = {}
        self._number = 0

    def _ask(self, purpose: Purpose, request: Request, now: float, about: object) -> None:
        """Have a request answered, unless one of its purpose is under way."""
        if purpose in self._pending:
            return
        self._number += 1
        self._pending[purpose] = Pending(self._number, now, about)
        self._effects.append(StoreRequest(self._number, request))

    def _asked(self, event: Answered) -> tuple[Purpose, Pending] | None:
        """Return what an answer is to, None where nobody waits for it."""
        purpose = next((key for key, pending in self._pending.items() if pending.number == event.number), None)
        return None if purpose is None else (purpose, self._pending.pop(purpose))

    def _tell(self, kind: str, text: str, severity: Severity = Severity.INFO, state: State = State.HAPPENED) -> None:
        self._effects.append(TellOperators(kind, text, severity, state))


class Leasing(Asking):
    """Who has a lease of a store, and follows keys of it.

    Parameters
    ----------
    lease_s
        How long the lease lasts, in whole seconds.
    lease
        The lease that it has from before, 0 for none.
    when_silent, when_answered
        What operators are told when the store gives no answer, and when it does again.
    """

    def __init__(self, lease_s: int, lease: int, when_silent: TellOperators, when_answered: str, now: float) -> None:
        super().__init__()
        self._lease_s = lease_s
        self._when_silent = when_silent
        self._when_answered = when_answered
        self._retry_s = self._decided_s = now
        self._silent_since_s: float | None = None
        self._answers_since_s = float("-inf")
        self._is_told_silent = False
        self._lease = lease
        self._kept_s = now - lease_s if lease else now
        self._lease_until_s = now
        self._is_known = False
        self._watch = 0

    @property
    def is_store_silent(self) -> bool:
        """Whether the store gave no answer when it was last asked."""
        return self._silent_since_s is not None

    def _watch_ended(self, event: WatchEnded, _now: float) -> None:
        if event.watch == self._watch:
            self._is_known = False

    def _was_silent_of_late(self, now: float, for_s: float) -> bool:
        """Tell whether the store gives no answer, or has answered again for less than a time."""
        return self.is_store_silent or now < self._answers_since_s + for_s

    def _store_answered(self, now: float) -> None:
        """Take it that the store answers, or tells of a watch what changed."""
        if self.is_store_silent:
            self._answers_since_s = now
        if self._is_told_silent:
            self._tell(self._when_silent.kind, self._when_answered, state=State.CLEARED)
        self._silent_since_s, self._is_told_silent = None, False

    def _store_was_silent(self, now: float) -> None:
        """Take it that the store gave no answer, and ask it again some time later."""
        self._retry_s = now + RETRY_S
        if self._silent_since_s is None:
            self._silent_since_s = now

    def _tell_silence(self, now: float) -> None:
        """Have operators told once that the store has given no answer for long."""
        if self._silent_since_s is not None and now >= self._silent_since_s + UNREACHABLE_S:
            if not self._is_told_silent:
                self._effects.append(self._when_silent)
            self._is_told_silent = True

    def _confirm_lease(self, asked_s: float, ttl_s: float) -> None:
        self._kept_s, self._lease_until_s = asked_s, asked_s + min(ttl_s, self._lease_s)

    def _keep_lease(self, now: float) -> bool:
        """Have a lease, and have it last; tell whether there is one."""
        if not self._lease:
            if Purpose.REVOKE not in self._pending:
                self._ask(Purpose.GRANT, GrantLease(self._lease_s), now, None)
            return False
        if now >= self._kept_s + self._lease_s / 3:
            self._ask(Purpose.KEEP, KeepLease(self._lease), now, self._lease)
        return True

    def _follow_keys(self, prefix: str, revision: int) -> None:
        """Know the keys that were read as of a revision, and follow them from there on."""
        self._is_known = True
        self._number += 1
        self._watch = self._number
        self._effects.append(WatchKeys(self._watch, prefix, revision))

    def _lease_deadlines(self) -> list[float]:
        """Return when something of this is due."""
        due = [self._retry_s, self._kept_s + self._lease_s / 3, self._lease_until_s]
        return due if self._silent_since_s is None else [*due, self._silent_since_s + UNREACHABLE_S]
