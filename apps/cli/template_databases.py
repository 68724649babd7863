"""The databases that templates are about: their rows, and changes that are made in all of them or in none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apps.cli.common import InputError, OperationFailed
from apps.cli.progress import ProgressBar
from apps.ovsdb import OvsdbFault
from apps.ovsdb_requests import OvsdbRequests
from controller.switch_templates.columns import TABLES, settings_of
from controller.switch_templates.plan import Kinds, SettingChange, SettingsRow, operations, rows_of


class TemplateDatabases:
    """Reads databases; `kinds` are the columns that can be set in all of them.

    InputError is raised for targets that make no sense, OperationFailed where a server cannot be reached.
    """

    def __init__(self, targets: Sequence[str]) -> None:
        self.kinds: Kinds = {}
        self.rows: dict[tuple[str, str], SettingsRow] = {}
        self.left_changed: list[str] = []
        """Servers whose changes could not be taken back when those of another one failed."""
        self._servers: dict[str, OvsdbRequests] = {}
        for target in dict.fromkeys(targets):
            try:
                self._servers[target] = OvsdbRequests(target)
            except ValueError as error:
                raise InputError(f"--db: {error}") from None
        self.read()

    def read(self) -> None:
        """Read all databases anew."""
        self.rows.clear()
        bar = ProgressBar()
        try:
            schemas = [settings_of(server.schema()) for server in self._servers.values()]
            self.kinds = {key: kind for key, kind in schemas[0].items() if all(key in other for other in schemas)}
            for number, (target, server) in enumerate(self._servers.items()):
                bar.draw("databases read", number, len(self._servers))
                for row in rows_of(target, server.tables(*TABLES), self.kinds):
                    self.rows[target, row.uuid] = row
        except OvsdbFault as fault:
            raise OperationFailed(str(fault)) from None
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise OperationFailed(
                f"a database that is none of Open vSwitch ({type(error).__name__}: {error})"
            ) from None
        finally:
            bar.clear()

    def change(self, changes: Sequence[SettingChange]) -> list[str]:
        """Make changes in all databases, or in none; return remarks of servers that are slow to go by them.

        OperationFailed says why nothing was changed, or what could not be taken back.
        """
        done: list[str] = []
        remarks: list[str] = []
        targets = list(dict.fromkeys(change.server for change in changes))
        bar = ProgressBar()
        for target in targets:
            bar.draw("databases changed", len(done), len(targets))
            own = [change for change in changes if change.server == target]
            try:
                if not self._servers[target].change(operations(own, self.rows, self.kinds)):
                    remarks.append(f"{target}: the database has it, and ovs-vswitchd has not gone by it yet")
            except OvsdbFault as fault:
                left = self.left_changed = self._take_back([c for c in changes if c.server in done])
                why = "a setting was changed meanwhile" if "timed out" in str(fault) else str(fault)
                what = f"could not be taken back at {', '.join(left)}" if left else "nothing is changed"
                raise OperationFailed(f"{target}: {why}; {what}") from None
            finally:
                bar.clear()
            done.append(target)
        return remarks

    def _take_back(self, changes: Sequence[SettingChange]) -> list[str]:
        """Take changes back that were made before a server failed; return the servers where that failed too."""
        left = []
        for target in dict.fromkeys(change.server for change in changes):
            own = [change.reversed() for change in changes if change.server == target]
            try:
                rows = {row.uuid: row for row in rows_of(target, self._servers[target].tables(*TABLES), self.kinds)}
                now = {(target, uuid): row for uuid, row in rows.items()}
                self._servers[target].change(operations(own, now, self.kinds))
            except OvsdbFault:
                left.append(target)
        return left

    def close(self) -> None:
        """End the connections."""
        for server in self._servers.values():
            server.close()

    def bridges(self) -> dict[str, Any]:
        """Return the rows of bridges by their names."""
        return {row.name: row for row in self.rows.values() if row.table == "Bridge"}
