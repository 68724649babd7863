"""Whom it is told that a group is another one than it was: the log and the change feed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from controller.multicast.change_feed import ChangeFeed
from controller.multicast.pending_writes import PendingWrites
from controller.multicast.registered import RegisteredGroups


class GroupChanges:
    """Has changes of groups, by name, written and shown; `followed_by` is told of each too."""

    def __init__(self, registered: RegisteredGroups, pending_writes: PendingWrites, feed: ChangeFeed) -> None:
        self._registered = registered
        self._pending_writes = pending_writes
        self._feed = feed
        self.followed_by: Callable[[bytes], None] | None = None

    def changed(self, group: bytes, now: float, dpid: int | None = None) -> None:
        """Take note that a group changed, and who is known of it at a switch."""
        self._pending_writes.group_changed(group, now, dpid)
        if self._feed.groups.bound:
            self._feed.groups.touch(group)
        if self.followed_by is not None:
            self.followed_by(group)
        if self._registered.is_used and (carrier := self._registered.carrier(group)) != group:
            self._pending_writes.group_changed(carrier, now)
            self._feed.groups.touch(carrier)
            if self.followed_by is not None:
                self.followed_by(carrier)

    def covers_changed(self, numbers: Iterable[int], now: float) -> None:
        """Take note of covering trees that are new, or no more."""
        self._pending_writes.covers_changed(numbers, now)

    def all_changed(self, groups: Iterable[bytes], now: float) -> None:
        """Take note that groups changed."""
        for group in groups:
            self.changed(group, now)
