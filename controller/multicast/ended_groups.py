"""Groups without members and senders of which switches may still hold entries."""

from __future__ import annotations

from controller.multicast.group import Group

REMEMBERED = 1024
"""Such groups at most; beyond, the one that ended first is forgotten."""


class EndedGroups:
    """Remembers what switches may still hold of groups that ended, for those that begin anew."""

    def __init__(self) -> None:
        self._groups: dict[bytes, Group] = {}

    def remember(self, group: Group) -> None:
        """Take in that a group has ended."""
        self._groups.pop(group.address, None)
        self._groups[group.address] = group
        if len(self._groups) > REMEMBERED:
            del self._groups[next(iter(self._groups))]

    def take(self, address: bytes) -> Group | None:
        """Return and forget a group that begins anew, None where nothing is known of it."""
        return self._groups.pop(address, None) if self._groups else None
