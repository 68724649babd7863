"""What the server knows of the controller, and whom it tells that this changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from controller.snapshot.reader import DocumentCopy, Snapshot

T = TypeVar("T")


class Board:
    """The snapshot, whether the controller answers, and what was made of a section's present state.

    `state` returns what the server tells of itself in the status document.
    """

    def __init__(self, state: Callable[[], dict[str, Any]]) -> None:
        self.snapshot = Snapshot()
        self.connected = False
        self._reason: str | None = None
        self._state = state
        self._changed = asyncio.Event()
        self._made: dict[tuple[str, str], tuple[int, Any]] = {}
        self._changes: dict[tuple[str, int], bytes | None] = {}
        self._told: dict[str, Any] = {}
        self.refresh()

    @property
    def version(self) -> int:
        """The version of the snapshot."""
        return self.snapshot.version

    def section(self, name: str) -> DocumentCopy:
        """Return a section of the snapshot."""
        return self.snapshot.section(name)

    def connect(self, connected: bool, reason: str | None = None) -> None:
        """Note whether the controller answers, and why not."""
        self.connected = connected
        self._reason = reason
        self.refresh()

    def refresh(self) -> None:
        """Bring what the server tells of itself up to date."""
        told = {"connected": self.connected, "disconnected_reason": self._reason, "dashboard": self._state()}
        if told != self._told:
            self._told = told
            self.snapshot.tell("status", "status", told)
            self.publish()

    def apply(self, answer: Any) -> bool:
        """Take an answer of the feed; return whether more is to be asked for at once."""
        before = self.snapshot.version
        try:
            return self.snapshot.apply(answer)
        finally:
            if self.snapshot.version != before:
                self.publish()

    def publish(self) -> None:
        """Wake whoever waits for a change."""
        self._changes.clear()
        self._changed.set()
        self._changed = asyncio.Event()

    async def newer(self, version: int, timeout_s: float) -> bool:
        """Wait until the snapshot is newer than `version`; return False where it is not within the time."""
        while self.snapshot.version <= version:
            try:
                async with asyncio.timeout(timeout_s):
                    await self._changed.wait()
            except TimeoutError:
                return False
        return True

    def made(self, name: str, what: str, make: Callable[[DocumentCopy], T]) -> T:
        """Return `make(section)`, made anew only where the section has changed since; `what` tells makers apart."""
        section = self.section(name)
        found = self._made.get((name, what))
        if found is not None and found[0] == section.version:
            value: T = found[1]
            return value
        value = make(section)
        self._made[name, what] = (section.version, value)
        return value

    def change(self, name: str, since: int, make: Callable[[DocumentCopy, int], bytes | None]) -> bytes | None:
        """Return `make(section, since)`, made once for all who ask it between two changes."""
        key = (name, since)
        if key not in self._changes:
            self._changes[key] = make(self.section(name), since)
        return self._changes[key]
