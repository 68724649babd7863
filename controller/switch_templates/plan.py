"""What has to be changed for templates to hold, where two of them fight, and the transaction that does it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from controller.queues.database_copy import MARK
from controller.switch_templates.columns import ColumnKind, plain, problem, wire
from controller.switch_templates.templates import SwitchTemplate, TemplateSetting

REFERRED = {"Controller": "Bridge", "Mirror": "Bridge", "QoS": "Port", "Queue": "Port"}
"""Tables of rows that are of a switch or port because a row of this table refers to them."""

Kinds = Mapping[tuple[str, str], ColumnKind]


class RowOwner(NamedTuple):
    """A switch, or one of its ports, that refers to a row; `name` is that of its bridge or port."""

    name: str
    dpid: int | None
    port_no: int | None


class SettingsRow(NamedTuple):
    """A row of a database: where it is, whose it is, and the values of its columns that can be set.

    `others` are further switches and ports that refer to the same row, as ports may have one QoS in common.
    """

    server: str
    table: str
    uuid: str
    name: str
    dpid: int | None
    port_no: int | None
    values: Mapping[str, Any]
    others: tuple[RowOwner, ...] = ()

    def owned_by(self, owner: RowOwner) -> SettingsRow:
        """Return the row as another one that refers to it has it."""
        return self._replace(name=owner.name, dpid=owner.dpid, port_no=owner.port_no, others=())


class SettingChange(NamedTuple):
    """A setting that is to be otherwise; None stands for an empty column, or a key that is not there."""

    server: str
    table: str
    uuid: str
    name: str
    column: str
    key: str | None
    before: Any
    after: Any
    template: str
    place: str

    @property
    def setting(self) -> str:
        """The column, and the key in it."""
        return self.column if self.key is None else f"{self.column}:{self.key}"

    def reversed(self) -> SettingChange:
        """Return the change that takes this one back."""
        return self._replace(before=self.after, after=self.before)


class TemplateConflict(NamedTuple):
    """Two templates, or two settings of one, that want different values of one setting of a row."""

    row: SettingsRow
    setting: str
    first: tuple[str, TemplateSetting]
    second: tuple[str, TemplateSetting]

    def __str__(self) -> str:
        said = (
            f"{name} ({setting.place}) wants {shown(setting.value)}" for name, setting in (self.first, self.second)
        )
        return f"{self.row.table} {self.row.name}, {self.setting}: {', and '.join(said)}"


class TemplatePlan(NamedTuple):
    """Changes to be made, conflicts, and rows that each template is about.

    `obstacles` say why settings cannot be had: rows that are not there, that are others' too, or that this controller
    keeps itself.
    """

    changes: tuple[SettingChange, ...]
    conflicts: tuple[TemplateConflict, ...]
    row_counts: dict[str, int]
    obstacles: tuple[str, ...] = ()


def shown(value: Any) -> str:
    """Return a value as messages show it."""
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(shown, value))}]"
    return "nothing" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def faults_of(templates: Iterable[SwitchTemplate], kinds: Kinds) -> Iterator[str]:
    """Yield what is wrong with settings by the schema of the database: columns that are not there, and values."""
    for template in templates:
        for setting in template.settings:
            kind = kinds.get((setting.table, setting.column))
            where = f"{setting.place}: {template.name}: {setting.name}"
            if kind is None:
                yield f"{where}: {setting.table} has no such column that can be set"
            elif kind.is_map != (setting.key is not None):
                wanted = "name a key of it, COLUMN:KEY" if kind.is_map else "it has no keys"
                yield f"{where}: {wanted}"
            elif (setting.column, setting.key) == ("external_ids", MARK):
                yield f"{where}: this controller marks its own rows with it"
            elif setting.value is not None or not (kind.is_set or kind.is_map):
                wrong = problem(wanted_value(setting, kind), kind)
                if wrong:
                    yield f"{where}: {wrong}"


def wanted_value(setting: TemplateSetting, kind: ColumnKind) -> Any:
    """Return the value of a setting as the database has such."""
    if kind.is_map:
        return None if setting.value is None else setting.value
    if kind.is_set:
        value = () if setting.value is None else setting.value
        members = value if isinstance(value, tuple) else (value,)
        # What is no member of the column's type cannot be put in order, and is a fault of its own.
        return tuple(sorted(members, key=str if kind.type == "string" else None)) if _is_alike(members) else members
    return setting.value


def _is_alike(members: Sequence[Any]) -> bool:
    return len({type(member) for member in members}) <= 1


def plan(
    templates: Sequence[SwitchTemplate],
    rows: Sequence[SettingsRow],
    kinds: Kinds,
    is_meant: Callable[[SwitchTemplate, SettingsRow], bool],
) -> TemplatePlan:
    """Return what has to be changed so that every setting of the templates holds of the rows that it is about."""
    wanted: dict[tuple[str, str, str], tuple[SettingsRow, str, TemplateSetting]] = {}
    conflicts: list[TemplateConflict] = []
    row_counts = {template.name: 0 for template in templates}
    obstacles: list[str] = []
    reached: set[tuple[Any, ...]] = set()
    for template in templates:
        for row in rows:
            settings = [setting for setting in template.settings if setting.table == row.table]
            if not settings:
                continue
            meant = next((one for one in (row, *map(row.owned_by, row.others)) if is_meant(template, one)), None)
            if meant is None:
                continue
            if meant is not row:
                own = RowOwner(row.name, row.dpid, row.port_no)
                row = meant._replace(others=(own, *row.others))
            row_counts[template.name] += 1
            reached.add((template.name, row.table, row.server, row.dpid, row.port_no))
            reached.update((template.name, row.table, row.server, owner.dpid, owner.port_no) for owner in row.others)
            strange = sorted(owner.name for owner in row.others if not is_meant(template, row.owned_by(owner)))
            why = _why_left_alone(row, strange)
            if why:
                obstacles.append(f"{settings[0].place}: {template.name}: {row.table} {row.name}: {why}")
                continue
            for setting in settings:
                kind = kinds[setting.table, setting.column]
                key = (row.server, row.uuid, setting.name)
                known = wanted.setdefault(key, (row, template.name, setting))
                if wanted_value(known[2], kind) != wanted_value(setting, kind):
                    conflicts.append(
                        TemplateConflict(row, setting.name, (known[1], known[2]), (template.name, setting))
                    )
    changes = [
        change
        for row, name, setting in wanted.values()
        if (change := _change(row, name, setting, kinds[setting.table, setting.column])) is not None
    ]
    obstacles += _absent(templates, rows, is_meant, reached)
    return TemplatePlan(tuple(changes), tuple(conflicts), row_counts, tuple(obstacles))


def _why_left_alone(row: SettingsRow, strange: Sequence[str]) -> str:
    """Return why a row is not to be changed: others that have it too, or this controller, which keeps it."""
    if strange:
        return f"{', '.join(strange)} {'have' if len(strange) > 1 else 'has'} it too, which it is not about"
    return "this controller keeps it for queues of its policy" if MARK in row.values.get("external_ids", {}) else ""


def _absent(
    templates: Sequence[SwitchTemplate],
    rows: Sequence[SettingsRow],
    is_meant: Callable[[SwitchTemplate, SettingsRow], bool],
    reached: set[tuple[Any, ...]],
) -> Iterator[str]:
    """Yield which switches and ports have no row of a table that templates have settings of."""
    for template in templates:
        for table, of in REFERRED.items():
            setting = next((setting for setting in template.settings if setting.table == table), None)
            if setting is None:
                continue
            for row in rows:
                is_there = (template.name, table, row.server, row.dpid, row.port_no) in reached
                if row.table == of and not is_there and is_meant(template, row):
                    yield f"{setting.place}: {template.name}: {row.name} has no {table}"


def _change(row: SettingsRow, name: str, setting: TemplateSetting, kind: ColumnKind) -> SettingChange | None:
    before = value_at(row, setting.column, setting.key)
    after = wanted_value(setting, kind)
    if before == after:
        return None
    place = (row.server, row.table, row.uuid, row.name, setting.column, setting.key)
    return SettingChange(*place, before, after, name, setting.place)


def value_at(row: SettingsRow, column: str, key: str | None) -> Any:
    """Return what a row has: the value of a column, or that of a key in it, None where it is not there."""
    value = row.values[column]
    return value if key is None else value.get(key)


def undoing(
    changes: Iterable[SettingChange], rows: Mapping[tuple[str, str], SettingsRow]
) -> tuple[list[SettingChange], list[str], list[str]]:
    """Return what takes changes back, what else was changed since (which forbids it), and what is gone.

    A setting that is as it was before already needs nothing: the change was not made, or was taken back.
    """
    back, others, gone = [], [], []
    for change in changes:
        row = rows.get((change.server, change.uuid))
        if row is None:
            gone.append(f"{change.table} {change.name}")
            continue
        now = value_at(row, change.column, change.key)
        if now == change.after:
            back.append(change.reversed())
        elif now != change.before:
            others.append(
                f"{change.table} {change.name}, {change.setting}: {shown(now)} now, and not {shown(change.after)} as "
                f"it was made"
            )
    return back, others, list(dict.fromkeys(gone))


def operations(
    changes: Sequence[SettingChange], rows: Mapping[tuple[str, str], SettingsRow], kinds: Kinds
) -> list[dict[str, Any]]:
    """Return the operations of one transaction that makes changes: all, or none if a column is not as it was read."""
    found: list[dict[str, Any]] = []
    seen: set[tuple[str, str]] = set()
    for change in changes:
        kind = kinds[change.table, change.column]
        where = [["_uuid", "==", ["uuid", change.uuid]]]
        if (change.uuid, change.column) not in seen:
            seen.add((change.uuid, change.column))
            now = wire(rows[change.server, change.uuid].values[change.column], kind)
            found.append(
                {
                    "op": "wait",
                    "timeout": 0,
                    "table": change.table,
                    "where": where,
                    "columns": [change.column],
                    "until": "==",
                    "rows": [{change.column: now}],
                }
            )
        if change.key is None:
            row = {change.column: wire(change.after, kind)}
            found.append({"op": "update", "table": change.table, "where": where, "row": row})
        else:
            mutations: list[list[Any]] = [[change.column, "delete", ["set", [change.key]]]]
            if change.after is not None:
                mutations.append([change.column, "insert", ["map", [[change.key, change.after]]]])
            found.append({"op": "mutate", "table": change.table, "where": where, "mutations": mutations})
    return found


def rows_of(server: str, tables: Mapping[str, Sequence[Mapping[str, Any]]], kinds: Kinds) -> list[SettingsRow]:
    """Return the rows of a database's tables, each with the switch and port that it is of.

    Ports that lead nowhere outside (the bridge's own, patch ports) are left out, and so are their interfaces.
    """
    by_uuid = {table: {_uuid(row["_uuid"]): row for row in rows} for table, rows in tables.items()}
    found: list[SettingsRow] = []
    referring: dict[tuple[str, str], list[RowOwner]] = {}
    """Who refers to each row of a table; its name there is that of the first."""

    def refer(table: str, uuid: str, owner: RowOwner) -> None:
        owners = referring.setdefault((table, uuid), [])
        if uuid in by_uuid.get(table, {}) and owner not in owners:
            owners.append(owner)

    for bridge in tables["Bridge"]:
        dpid = bridge["datapath_id"] if isinstance(bridge["datapath_id"], str) else None
        number = None if dpid is None else int(dpid, 16)
        found.append(_row(server, "Bridge", bridge, RowOwner(bridge["name"], number, None), kinds))
        for table, column in (("Controller", "controller"), ("Mirror", "mirrors")):
            for uuid in _uuids(bridge.get(column, _NONE)):
                refer(table, uuid, RowOwner(bridge["name"], number, None))
        for port_uuid in _uuids(bridge["ports"]):
            port = by_uuid["Port"][port_uuid]
            below = [by_uuid["Interface"][uuid] for uuid in _uuids(port["interfaces"])]
            numbers = [row["ofport"] if isinstance(row["ofport"], int) else None for row in below]
            owner = RowOwner(port["name"], number, numbers[0])
            for uuid in _uuids(port.get("qos", _NONE)):
                refer("QoS", uuid, owner)
                for queue_id, queue in sorted(by_uuid.get("QoS", {}).get(uuid, {}).get("queues", _NONE)[1]):
                    refer("Queue", _uuid(queue), owner._replace(name=f"{owner.name}:{queue_id}"))
            if port["name"] == bridge["name"] or all(row["type"] in ("patch", "internal") for row in below):
                continue
            found.append(_row(server, "Port", port, owner, kinds))
            found += [
                _row(server, "Interface", row, RowOwner(row["name"], number, no), kinds)
                for row, no in zip(below, numbers, strict=True)
            ]
    for (table, uuid), owners in referring.items():
        if owners:
            row = by_uuid[table][uuid]
            called = owners[0]._replace(name=f"{owners[0].name}/{row['name']}") if table == "Mirror" else owners[0]
            if table == "Controller":
                called = called._replace(name=f"{called.name}/{row['target']}")
            found.append(_row(server, table, row, called, kinds)._replace(others=tuple(owners[1:])))
    return found


_NONE: Any = ["set", []]


def _row(server: str, table: str, row: Mapping[str, Any], owner: RowOwner, kinds: Kinds) -> SettingsRow:
    values = {name: plain(row[name], kind) for (of, name), kind in kinds.items() if of == table}
    return SettingsRow(server, table, _uuid(row["_uuid"]), owner.name, owner.dpid, owner.port_no, values)


def _uuid(value: Any) -> str:
    return str(value[1])


def _uuids(value: Any) -> list[str]:
    members = value[1] if value[0] == "set" else [value]
    return [_uuid(member) for member in members]
