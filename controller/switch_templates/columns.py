"""Columns of an Open vSwitch database by its schema, and their values (RFC 7047, 3.2 and 5.1).

Values are what Python has for them: a boolean, number or text where a column has exactly one, a sorted tuple where it
is a set, and a dictionary where it is a map.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

TABLES = ("Bridge", "Port", "Interface", "Controller", "QoS", "Queue", "Mirror")
"""Those of switches and ports, and of rows that these refer to."""

_NO_SETTINGS = frozenset({"name", "ofport", "mtu", "datapath_version", "datapath_id", "status", "role"})
_IDENTITIES = frozenset({("Interface", "type"), ("Controller", "target"), ("Controller", "type")})
"""Columns that the switch writes itself, or that nothing can change without making the row another one."""

_TYPES: Mapping[str, Any] = {
    "boolean": (bool,),
    "integer": (int,),
    "real": (int, float),
    "string": (str,),
}


class ColumnKind(NamedTuple):
    """What a column takes: the type of its values, which they may be, whether it is a set or a map, and how many."""

    type: str
    choices: tuple[str, ...]
    least: int | None
    most: int | None
    is_set: bool
    is_map: bool
    max_values: int | None


def settings_of(schema: Mapping[str, Any]) -> dict[tuple[str, str], ColumnKind]:
    """Return the columns that can be set, by table and name, of a schema as `get_schema` gives it (4.1.2).

    KeyError and TypeError are raised for what is no schema.
    """
    found = {}
    for table in TABLES:
        for name, column in schema["tables"][table]["columns"].items():
            kind = _kind(column["type"])
            is_setting = not column.get("ephemeral") and column.get("mutable", True) and name not in _NO_SETTINGS
            is_setting = is_setting and (table, name) not in _IDENTITIES
            if kind is not None and is_setting:
                found[table, name] = kind
    return found


def _kind(given: Any) -> ColumnKind | None:
    """Return what a column takes; None for references to rows, which are no settings."""
    if isinstance(given, str):
        return ColumnKind(given, (), None, None, False, False, 1)
    key = given["key"] if isinstance(given["key"], dict) else {"type": given["key"]}
    value = given.get("value", {})
    value = value if isinstance(value, dict) else {"type": value}
    if "uuid" in (key["type"], value.get("type")):
        return None
    most = given.get("max", 1)
    choices = tuple(key["enum"][1]) if "enum" in key else ()
    is_set = "value" not in given and (given.get("min", 1), most) != (1, 1)
    limit = None if most == "unlimited" else int(most)
    return ColumnKind(
        key["type"], choices, key.get("minInteger"), key.get("maxInteger"), is_set, "value" in given, limit
    )


def plain(value: Any, kind: ColumnKind) -> Any:
    """Return a value of the database as it is compared."""
    if kind.is_map:
        return {str(key): content for key, content in value[1]}
    members = value[1] if isinstance(value, list) and value[0] == "set" else [value]
    return tuple(sorted(members)) if kind.is_set else members[0]


def wire(value: Any, kind: ColumnKind) -> Any:
    """Return a value as the database takes it."""
    if kind.is_map:
        return ["map", [[key, content] for key, content in sorted(value.items())]]
    return ["set", list(value)] if kind.is_set else value


def problem(value: Any, kind: ColumnKind) -> str:
    """Return why a value cannot be that of a column, '' where it can."""
    if kind.is_set:
        if kind.max_values is not None and len(value) > kind.max_values:
            return f"{len(value)} values; the column has {kind.max_values} at most"
        return next(filter(None, (_atom_problem(member, kind) for member in value)), "")
    return _atom_problem(value, kind)


def _atom_problem(value: Any, kind: ColumnKind) -> str:
    if not isinstance(value, _TYPES[kind.type]) or (isinstance(value, bool) and kind.type != "boolean"):
        return f"{value!r} is no {kind.type}"
    if kind.choices and value not in kind.choices:
        return f"{value!r} is none of {', '.join(kind.choices)}"
    if kind.type == "integer" and not (kind.least or -(1 << 63)) <= value <= (kind.most or (1 << 63) - 1):
        return f"{value} is not from {kind.least} to {kind.most}"
    return ""
