"""What follows when trees change: entries of switches, and that it is written and shown."""

from __future__ import annotations

from collections.abc import Iterable

from controller.datapath.lanes import Urgency
from controller.multicast.callbacks import Perform
from controller.multicast.group_changes import GroupChanges
from controller.multicast.groups import GroupPlane
from controller.trees.islands import group_of
from controller.trees.tree import Change


class TreeChanges:
    """Has the plane follow changes of trees."""

    def __init__(self, plane: GroupPlane, changes: GroupChanges, perform: Perform) -> None:
        self._plane = plane
        self._changes = changes
        self._perform = perform

    def follow(self, changes: Iterable[Change], now: float, urgency: Urgency = Urgency.PROMPT) -> None:
        """Follow changes, with what they mean for groups on several islands."""
        changes = [*changes, *self._plane.islands.review()]
        self._perform(self._plane.trees_changed(changes, now, urgency))
        for group in dict.fromkeys(group_of(change.key) for change in changes):
            self._changes.changed(group, now)  # type: ignore[arg-type]
