"""What an app wants of its core."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol


class Core(Protocol):
    """A pure core: events in, effects out, and the moment it next wants to be woken."""

    @property
    def xid_tag(self) -> int:
        """The upper 8 bits of the transaction ids that are this core's own."""

    @property
    def handlers(self) -> Mapping[type, Any]:
        """What takes its events, by their types."""

    def handle(self, event: Any, now: float) -> Iterable[Any]:
        """Take one event and return what is to be done."""

    def next_deadline(self) -> float | None:
        """Return the time at which `DeadlineReached` is due, None for never."""
