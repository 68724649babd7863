"""What only the alarms' core asks of its shell."""

from __future__ import annotations

from typing import Any, NamedTuple

from controller.snapshot.events import State


class AlarmTurned(NamedTuple):
    """An alarm was raised, became graver, or was cleared; `document` (JSON-able) is how it stands now."""

    state: State
    document: dict[str, Any]
