"""Events that apps send each other over the framework's bus, around the frozen events of the cores."""

from __future__ import annotations

from apps.openflow.framework import EventBase
from topology.events import TopologyEvent


class TopologyChanged(EventBase):  # type: ignore[misc]
    """Discovery's word to whoever follows the fabric: `changes` in the order in which they happened."""

    def __init__(self, changes: tuple[TopologyEvent, ...]) -> None:
        super().__init__()
        self.changes = changes


class Ticked(EventBase):  # type: ignore[misc]
    """A clock tick that an app sends itself for its files."""
