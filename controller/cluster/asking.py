"""What members of controllers and of monitors share: they ask the store, one request of each purpose at a time."""

from __future__ import annotations

from typing import Any

from controller.cluster.effects import StoreRequest, TellOperators
from controller.cluster.engine import Request
from controller.cluster.events import Answered
from controller.cluster.requests import Pending, Purpose
from controller.snapshot.events import Severity, State


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
