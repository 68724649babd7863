"""What of an Open vSwitch database is configuration, as properties of switches and ports (ovs-vswitchd.conf.db(5)).

A property is called as templates have it: table, column and, where that is a map, its key, such as
``interface.mtu_request`` and ``bridge.other_config:mac-aging-time``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, NamedTuple

from controller.policy_discovery.configuration import PORT, SWITCH, Properties, Resource

MOST_PORT_NO = 0xFEFF
"""The highest number that Open vSwitch gives a port; the bridge's own one, which is beyond it, is no resource."""


class ColumnShape(Enum):
    """How many values a column has; `NEEDED` has exactly one, and is not set where that is false, 0 or empty."""

    NEEDED = "exactly one"
    OPTIONAL = "one or none"
    SET = "a set"
    MAP = "texts by key"


class ConfiguredColumn(NamedTuple):
    """A column that is configuration; `is_text`: its values are texts."""

    shape: ColumnShape
    is_text: bool


_FLAG = _AMOUNT = ConfiguredColumn(ColumnShape.NEEDED, False)
_TEXT = ConfiguredColumn(ColumnShape.NEEDED, True)
_SOME_TEXT = ConfiguredColumn(ColumnShape.OPTIONAL, True)
_SOME_NUMBER = _SOME_FLAG = ConfiguredColumn(ColumnShape.OPTIONAL, False)
_NUMBERS = ConfiguredColumn(ColumnShape.SET, False)
_TEXTS = ConfiguredColumn(ColumnShape.SET, True)
_MAP = ConfiguredColumn(ColumnShape.MAP, True)

BRIDGE, PORT_TABLE, INTERFACE, CONTROLLER = "Bridge", "Port", "Interface", "Controller"
"""The tables that have configuration."""

CONFIGURED_COLUMNS: Mapping[str, Mapping[str, ConfiguredColumn]] = MappingProxyType(
    {
        BRIDGE: {
            "datapath_type": _TEXT,
            "fail_mode": _SOME_TEXT,
            "flood_vlans": _NUMBERS,
            "mcast_snooping_enable": _FLAG,
            "other_config": _MAP,
            "protocols": _TEXTS,
            "rstp_enable": _FLAG,
            "stp_enable": _FLAG,
        },
        PORT_TABLE: {
            "bond_downdelay": _AMOUNT,
            "bond_fake_iface": _FLAG,
            "bond_mode": _SOME_TEXT,
            "bond_updelay": _AMOUNT,
            "cvlans": _NUMBERS,
            "fake_bridge": _FLAG,
            "lacp": _SOME_TEXT,
            "mac": _SOME_TEXT,
            "other_config": _MAP,
            "protected": _FLAG,
            "tag": _SOME_NUMBER,
            "trunks": _NUMBERS,
            "vlan_mode": _SOME_TEXT,
        },
        INTERFACE: {
            "bfd": _MAP,
            "cfm_mpid": _SOME_NUMBER,
            "ingress_policing_burst": _AMOUNT,
            "ingress_policing_kpkts_burst": _AMOUNT,
            "ingress_policing_kpkts_rate": _AMOUNT,
            "ingress_policing_rate": _AMOUNT,
            "lldp": _MAP,
            "mac": _SOME_TEXT,
            "mtu_request": _SOME_NUMBER,
            "ofport_request": _SOME_NUMBER,
            "options": _MAP,
            "other_config": _MAP,
            "type": _TEXT,
        },
        CONTROLLER: {
            "connection_mode": _SOME_TEXT,
            "controller_burst_limit": _SOME_NUMBER,
            "controller_queue_size": _SOME_NUMBER,
            "controller_rate_limit": _SOME_NUMBER,
            "enable_async_messages": _SOME_FLAG,
            "inactivity_probe": _SOME_NUMBER,
            "local_gateway": _SOME_TEXT,
            "local_ip": _SOME_TEXT,
            "local_netmask": _SOME_TEXT,
            "max_backoff": _SOME_NUMBER,
            "other_config": _MAP,
            "target": _TEXT,
            "type": _SOME_TEXT,
        },
    }
)
"""Per table its columns that are configuration. All others are what a row is, what it counts, what the switch found
out, which rows belong together, or what other programs keep about it (`external_ids`)."""

FOLLOWED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        BRIDGE: ("datapath_id", "ports", "controller"),
        PORT_TABLE: ("interfaces",),
        INTERFACE: ("ofport",),
        CONTROLLER: (),
    }
)
"""Per table the columns that say of which switch and port a row is."""


class ColumnsInvalid(ValueError):  # noqa: N818
    """A database says what makes no sense; the text says what."""


class ResourceColumns(NamedTuple):
    """What a table has of a resource; `field` is the first part of the properties' names."""

    resource: Resource
    field: str
    properties: Properties


class _Row(NamedTuple):
    properties: Properties
    links: Mapping[str, Any]


def column_requests(schema: Mapping[str, Any]) -> dict[str, dict[str, list[str]]]:
    """Return the monitor request for a database with this schema (RFC 7047, 4.1.2 and 4.1.5).

    Columns of other versions of Open vSwitch are not asked for. KeyError where this is no schema of Open vSwitch's.
    """
    found = {}
    for table, columns in CONFIGURED_COLUMNS.items():
        there = schema["tables"][table]["columns"]
        found[table] = {"columns": [*FOLLOWED[table], *(name for name in columns if name in there)]}
    return found


class DatabaseProperties:
    """The rows of one database, and what they say of switches and ports.

    A bridge without a datapath id, and an interface without a number, as they are before the switch has them, say
    nothing of any.
    """

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, _Row]] = {table: {} for table in CONFIGURED_COLUMNS}
        self._bridge_of: dict[str, str] = {}
        self._port_of: dict[str, str] = {}

    def read(self, updates: Any) -> list[ResourceColumns]:
        """Take all that a database has, in the place of what it had before, and return what that says.

        ColumnsInvalid is raised where it makes no sense, here and in `updated`; it is to be read anew then.
        """
        for rows in self._rows.values():
            rows.clear()
        self._bridge_of.clear()
        self._port_of.clear()
        return self.updated(updates)

    def updated(self, updates: Any) -> list[ResourceColumns]:
        """Take what is otherwise now, and return what that says of the switches and ports that it is about."""
        bridges: dict[str, None] = {}
        ports: dict[str, None] = {}
        interfaces: dict[str, None] = {}
        try:
            for table, rows in self._rows.items():
                for uuid, update in updates.get(table, {}).items():
                    before = rows.pop(uuid, None)
                    new = update.get("new")
                    row = None if new is None else _row(table, new)
                    if row is not None:
                        rows[uuid] = row
                    if table == BRIDGE and row is not None:
                        bridges[uuid] = None
                        of = row.links["ports"]
                        self._bridge_of.update(dict.fromkeys(of, uuid))
                        if before is None or before.links != row.links:
                            ports.update(dict.fromkeys(of))
                    elif table == PORT_TABLE and row is not None:
                        ports[uuid] = None
                        self._port_of.update(dict.fromkeys(row.links["interfaces"], uuid))
                    elif table == INTERFACE and row is not None:
                        interfaces[uuid] = None
                    elif table == CONTROLLER:
                        bridges.update(self._bridges_with(uuid))
                    elif table == PORT_TABLE:
                        self._bridge_of.pop(uuid, None)
                    elif table == INTERFACE:
                        self._port_of.pop(uuid, None)
        except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
            raise ColumnsInvalid(f"{type(error).__name__}: {error}") from error
        for port in ports:
            row = self._rows[PORT_TABLE].get(port)
            interfaces.update(dict.fromkeys(row.links["interfaces"] if row is not None else ()))
        found = [columns for bridge in bridges for columns in self._of_bridge(bridge)]
        return found + [columns for interface in interfaces for columns in self._of_interface(interface)]

    def _bridges_with(self, controller: str) -> dict[str, None]:
        rows = self._rows[BRIDGE].items()
        return {uuid: None for uuid, row in rows if controller in row.links["controller"]}

    def _dpid_of(self, bridge: str | None) -> int | None:
        row = self._rows[BRIDGE].get(bridge) if bridge is not None else None
        return None if row is None else row.links["datapath_id"]

    def _of_bridge(self, uuid: str) -> Iterable[ResourceColumns]:
        dpid = self._dpid_of(uuid)
        if dpid is None:
            return
        row, switch = self._rows[BRIDGE][uuid], Resource(SWITCH, str(dpid))
        yield ResourceColumns(switch, BRIDGE.lower(), row.properties)
        known = self._rows[CONTROLLER]
        below = [known[one].properties for one in row.links["controller"] if one in known]
        yield ResourceColumns(switch, CONTROLLER.lower(), _together(below))

    def _of_interface(self, uuid: str) -> Iterable[ResourceColumns]:
        row, port = self._rows[INTERFACE].get(uuid), self._port_of.get(uuid)
        dpid = self._dpid_of(self._bridge_of.get(port)) if port is not None else None
        if row is None or port is None or dpid is None or row.links["ofport"] is None:
            return
        resource = Resource(PORT, f"{dpid}:{row.links['ofport']}")
        port_row = self._rows[PORT_TABLE].get(port)
        if port_row is not None:
            yield ResourceColumns(resource, PORT_TABLE.lower(), port_row.properties)
        yield ResourceColumns(resource, INTERFACE.lower(), row.properties)


def _together(several: list[Properties]) -> Properties:
    """Return the properties of a bridge's controllers: what they have in common, else a list by their targets."""
    ordered = sorted(several, key=lambda one: (one.get("controller.target", ""), sorted(one.items())))
    found = {}
    for name in sorted({name for one in ordered for name in one}):
        values = [one.get(name, "") for one in ordered]
        found[name] = values[0] if len(set(values)) == 1 else json.dumps(values)
    return found


def _row(table: str, new: Mapping[str, Any]) -> _Row:
    properties: Properties = {}
    for name, column in CONFIGURED_COLUMNS[table].items():
        if name in new:
            properties.update(_properties(f"{table.lower()}.{name}", new[name], column))
    links = {name: _LINKS[name](_members(new[name])) for name in FOLLOWED[table]}
    return _Row(properties, links)


def _properties(name: str, value: Any, column: ConfiguredColumn) -> Properties:
    if column.shape is ColumnShape.MAP:
        kind, pairs = value
        if kind != "map":
            raise ValueError(f"{name} is no map")
        return {f"{name}:{key}": str(content) for key, content in pairs}
    members = _members(value)
    if column.shape is ColumnShape.SET:
        return {name: json.dumps(sorted(members))} if members else {}
    if not members or (column.shape is ColumnShape.NEEDED and not members[0]):
        return {}
    (member,) = members
    return {name: str(member) if column.is_text else json.dumps(member)}


def _members(value: Any) -> list[Any]:
    """Return the members of a set, which stands for itself where it has one (RFC 7047, 5.1)."""
    if isinstance(value, list) and value[0] == "set":
        return list(value[1])
    return [value]


def _dpid(members: list[Any]) -> int | None:
    return int(members[0], 16) if members and members[0] else None


def _port_no(members: list[Any]) -> int | None:
    return int(members[0]) if members and 0 < int(members[0]) <= MOST_PORT_NO else None


def _uuids(members: list[Any]) -> tuple[str, ...]:
    return tuple(str(uuid) for _, uuid in members)


_LINKS: Mapping[str, Any] = MappingProxyType(
    {"datapath_id": _dpid, "ofport": _port_no, "ports": _uuids, "controller": _uuids, "interfaces": _uuids}
)
