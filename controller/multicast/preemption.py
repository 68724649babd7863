"""Groups that give way to others where there is no room for all."""

from __future__ import annotations

from controller.multicast.callbacks import Perform
from controller.multicast.room import Room
from controller.multicast.senders import SenderTable


class Preemption:
    """Takes the trees of groups that give way."""

    def __init__(self, room: Room, senders: SenderTable, perform: Perform) -> None:
        self._room = room
        self._senders = senders
        self._perform = perform

    def settle(self, now: float) -> None:
        """Count what has a tree from now on, and take the trees of groups that gave way."""
        for group in self._room.settle():
            self._perform(self._senders.give_way(group, now))
