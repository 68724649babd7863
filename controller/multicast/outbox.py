"""What follows from the event that a core handles, stage by stage."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Outbox:
    """Effects of the event that is being handled, in order, and its time `now`, in seconds."""

    def __init__(self, now: float) -> None:
        self.now = now
        self.effects: list[Any] = []

    def perform(self, effects: Iterable[Any]) -> None:
        """Take effects that followed."""
        self.effects += effects
