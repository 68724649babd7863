"""Follows the databases of switches for a recorder of changes: the one that the policy in force has, or others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from apps.ovsdb_session import OvsdbSession
from controller.config.terms import is_ovsdb_target
from controller.policy_discovery.configuration import Fields, policy_properties
from controller.policy_discovery.database_columns import (
    ColumnsInvalid,
    DatabaseProperties,
    ResourceColumns,
    column_requests,
)
from controller.queues.events import DatabaseEvent, DatabaseLost, DatabaseRead, DatabaseUpdated

SETTING = "monitor.ovsdb"
"""The policy's database."""


class _Followed:
    """A database that is followed: its session, and what it had last."""

    def __init__(self, target: str, tell: Callable[[DatabaseEvent], Any]) -> None:
        self.properties = DatabaseProperties()
        self.session = OvsdbSession(target, tell, column_requests)
        self.is_lost = False


class DatabaseFollower:
    """Is told of the controller's documents, and tells what databases have; on the threads of their sessions.

    A database that is away is tried again: what was told of it stays as it was, and is compared with what it tells
    when it is back.

    Parameters
    ----------
    take
        Takes what a database tells; on any thread.
    targets
        The databases; without any, that of the policy in force.
    is_elsewhere
        Whether the controller runs on another machine, so that a socket that its policy names is none of this one's.
    """

    def __init__(
        self,
        take: Callable[[Iterable[ResourceColumns]], Any],
        targets: Sequence[str] = (),
        is_elsewhere: bool = False,
    ) -> None:
        self._take = take
        self._given = tuple(targets)
        self._is_elsewhere = is_elsewhere
        self._unreachable = ""
        self._followed: dict[str, _Followed] = {}

    def start(self) -> None:
        """Begin with the databases that were given."""
        self._want(self._given)

    def put(self, section: str, fields: Fields) -> None:
        """Take a document: of the policy, which database it names."""
        if section != "policy" or self._given:
            return
        target = policy_properties(fields.get("text") or "").get(SETTING, "")
        if self._is_elsewhere and target.startswith("unix:"):
            if target != self._unreachable:
                print(f"vsrt: {SETTING}: {target} is at the controller's machine; --db names others", file=sys.stderr)
            self._unreachable, target = target, ""
        self._want((target,) if is_ovsdb_target(target) else ())

    def remove(self, section: str, id_: str) -> None:
        """Take it that there is a document no more."""

    def end(self) -> None:
        """Take nothing more of any database."""
        self._want(())

    def _want(self, targets: Sequence[str]) -> None:
        for target in [target for target in self._followed if target not in targets]:
            self._followed.pop(target).session.end()
        for target in targets:
            if target not in self._followed:
                one = self._followed[target] = _Followed(target, self._told)
                one.session.start()

    def _told(self, event: DatabaseEvent) -> None:
        one = self._followed.get(event.server)
        if one is None:
            return
        try:
            if isinstance(event, DatabaseRead):
                self._take(one.properties.read(event.updates))
                one.is_lost = False
            elif isinstance(event, DatabaseUpdated):
                self._take(one.properties.updated(event.updates))
            elif isinstance(event, DatabaseLost):
                self._lost(one, event.server, event.reason)
        except ColumnsInvalid as error:
            self._lost(one, event.server, f"it tells what makes no sense ({error})")
            one.session.read_anew()

    def _lost(self, one: _Followed, target: str, reason: str) -> None:
        if not one.is_lost:
            print(f"vsrt: {target}: {reason}; trying again", file=sys.stderr)
        one.is_lost = True
