"""Entries of an earlier run that nobody desires: left on the switches for a time of grace, then removed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from controller.datapath.lanes import Urgency
from controller.rules.model import Key
from controller.rules.switch_state import OwnerState

LOOKED_AT_ONCE = 4096
"""Entries that are looked through in one turn, and those of one more switch; the others are in the next turns."""


class Release:
    """Whether unknown entries are held, and which switches are still to be looked through since they are not.

    `mark` has a key sent; `due_s` is when `on_deadline` is due, None for never.
    """

    def __init__(self, switches: Mapping[int, OwnerState], mark: Callable[[OwnerState, Key, Urgency], None]) -> None:
        self.due_s: float | None = None
        self._switches = switches
        self._mark = mark
        self._left: deque[int] = deque()

    def begin(self, now: float) -> bool:
        """Have what nobody desires removed at all switches, beginning with some; tell whether others are left."""
        self._left = deque(self._switches)
        return self.on_deadline(now)

    def on_deadline(self, now: float) -> bool:
        """Go on with some switches; one that is being read is compared when it has told all.

        Tell whether others are left.
        """
        looked_at = 0
        while self._left and looked_at < LOOKED_AT_ONCE:
            state = self._switches.get(self._left.popleft())
            if state is None or not state.connected or state.reading is not None:
                continue
            looked_at += len(state.installed)
            for key in state.installed:
                if state.target(key) is None:
                    self._mark(state, key, Urgency.BULK)
        self.due_s = now if self._left else None
        return self.due_s is not None
