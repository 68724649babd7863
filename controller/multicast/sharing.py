"""Groups that came in while all tables had ample room go over to entries that cores share when there is no more."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from controller.effects import Effect
from controller.multicast.group import Group
from controller.multicast.groups import GroupPlane
from controller.multicast.table_limits import entries_of
from controller.rules.compile_shared import SharedDuty, shares

GROUPS_PER_READING = 16
"""Groups that go over between two readings of counters: each has its entries twice until the former ones are gone."""


class Sharing:
    """Has groups of a plane go over, each beside the entries that it has; `room` is how many more a table takes."""

    def __init__(self, plane: GroupPlane, room: Callable[[int], int]) -> None:
        self._plane = plane
        self._room = room
        self._waiting: dict[bytes, None] = {}

    def look(self, group: Group) -> None:
        """Take in a group that is in where tables have no ample room."""
        if not shares(group.tree_version):
            self._waiting[group.address] = None

    def choose(self, group: Group) -> None:
        """Have a group that is about to come in share, where switches can."""
        if not shares(group.tree_version):
            self._plane.transitions.take_version(group, shared=True)

    def clear(self) -> None:
        """Have nobody go over."""
        self._waiting.clear()

    def go_over(self, now: float) -> list[Effect]:
        """Have some groups go over that free entries of cores by it, where there is room meanwhile."""
        effects: list[Effect] = []
        for address in list(islice(self._waiting, GROUPS_PER_READING)):
            del self._waiting[address]
            group = self._plane.groups.get(address)
            if group is not None and not shares(group.tree_version) and self._gains(group):
                effects += self._plane.move_aside(group, now, shared=True)
        return effects

    def _gains(self, group: Group) -> bool:
        """Tell whether a switch would have an entry less of a group, and its tables have room for all of it twice."""
        if group.is_out or group.held or group.trees is not None or group.unsupported is not None:
            return False
        duties = self._plane.tree_duties.shared(group, group.duties)
        has_core = any(isinstance(duty, SharedDuty) for duty in duties.values())
        return has_core and all(self._room(table) >= count for table, count in entries_of(group.rules).items())
