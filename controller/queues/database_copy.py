"""What an Open vSwitch database says of ports and queues, kept up by its notifications (RFC 7047, 4.1.5 and 4.1.6).

Columns are those of ovs-vswitchd.conf.db(5). Rows that this controller made have its mark in `external_ids`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

DATABASE = "Open_vSwitch"

MARK = "vsrt-controller"
"""Key in `external_ids` of rows of this controller; the value is the datapath id that they are for."""

REQUESTS: Mapping[str, Any] = MappingProxyType(
    {
        "Bridge": {"columns": ["datapath_id", "datapath_type", "ports"]},
        "Port": {"columns": ["interfaces", "qos"]},
        "Interface": {"columns": ["ofport", "mtu", "link_speed"]},
        "QoS": {"columns": ["queues", "other_config", "external_ids"]},
        "Queue": {"columns": ["other_config", "external_ids"]},
    }
)
"""The monitor request: what `DatabaseCopy` reads."""

DEFAULT_MTU_BYTES = 1500


class DatabaseInvalid(ValueError):  # noqa: N818
    """A database says what makes no sense; the text says what."""


class BridgeRow(NamedTuple):
    """A bridge: its datapath id, None before it has one, whether its datapath is in user space, and its ports."""

    dpid: int | None
    is_in_user_space: bool
    ports: tuple[str, ...]


class PortRow(NamedTuple):
    """A port: its interfaces, several where it is a bond of the switch's own, and its QoS, None without."""

    interfaces: tuple[str, ...]
    qos: str | None


class InterfaceRow(NamedTuple):
    """An interface: its OpenFlow port number, None before it has one; its speed is 0 where it is not told."""

    ofport: int | None
    mtu_bytes: int
    speed_bps: int


class QosRow(NamedTuple):
    """A QoS: its queues by id; `owner` is the datapath id that this controller made it for, None for others' rows."""

    queues: dict[int, str]
    config: dict[str, str]
    owner: int | None


class QueueRow(NamedTuple):
    """A queue; `owner` as of `QosRow`."""

    config: dict[str, str]
    owner: int | None


class DatabaseCopy:
    """The rows of one database, by their UUIDs."""

    def __init__(self) -> None:
        self.bridges: dict[str, BridgeRow] = {}
        self.ports: dict[str, PortRow] = {}
        self.interfaces: dict[str, InterfaceRow] = {}
        self.qos: dict[str, QosRow] = {}
        self.queues: dict[str, QueueRow] = {}
        self._bridge_of: dict[str, str] = {}
        self._port_of: dict[str, str] = {}
        self._bridges_by_dpid: dict[int, str] = {}
        self._own_qos: dict[int, set[str]] = {}
        self._own_queues: dict[int, set[str]] = {}

    def apply(self, updates: Any) -> set[int]:
        """Take what a reply or a notification says; return the datapath ids of which it says anything.

        Raises
        ------
        DatabaseInvalid
            It makes no sense; what it said may be taken in part, so that the database is to be read anew.
        """
        try:
            changed: set[int] = set()
            for table, take in (
                ("Bridge", self._take_bridge),
                ("Port", self._take_port),
                ("Interface", self._take_interface),
                ("QoS", self._take_qos),
                ("Queue", self._take_queue),
            ):
                for uuid, update in updates.get(table, {}).items():
                    changed |= take(uuid, update.get("new"))
            return changed
        except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
            raise DatabaseInvalid(f"{type(error).__name__}: {error}") from error

    def dpids(self) -> list[int]:
        """Return the datapath ids of the bridges of this database."""
        return list(self._bridges_by_dpid)

    def bridge(self, dpid: int) -> BridgeRow | None:
        """Return the bridge with a datapath id."""
        uuid = self._bridges_by_dpid.get(dpid)
        return None if uuid is None else self.bridges[uuid]

    def own(self, dpid: int) -> tuple[list[str], list[str]]:
        """Return this controller's QoS and queues for a datapath id, also of bridges that are gone."""
        return sorted(self._own_qos.get(dpid, ())), sorted(self._own_queues.get(dpid, ()))

    def abandoned(self) -> list[int]:
        """Return the datapath ids of which there are rows of this controller and no bridge."""
        return sorted((self._own_qos.keys() | self._own_queues.keys()) - self._bridges_by_dpid.keys())

    def _take_bridge(self, uuid: str, new: Any) -> set[int]:
        before = self.bridges.pop(uuid, None)
        changed = set()
        if before is not None and before.dpid is not None:
            changed.add(before.dpid)
            if self._bridges_by_dpid.get(before.dpid) == uuid:
                del self._bridges_by_dpid[before.dpid]
        if new is not None:
            text = _optional(new["datapath_id"])
            dpid = None if text is None else int(text, 16)
            row = BridgeRow(dpid, new["datapath_type"] == "netdev", tuple(map(_uuid, _members(new["ports"]))))
            self.bridges[uuid] = row
            for port in row.ports:
                self._bridge_of[port] = uuid
            if dpid is not None:
                self._bridges_by_dpid[dpid] = uuid
                changed.add(dpid)
        return changed

    def _take_port(self, uuid: str, new: Any) -> set[int]:
        if new is None:
            self.ports.pop(uuid, None)
            return self._dpids_of_port(uuid, is_gone=True)
        qos = _optional(new["qos"])
        row = PortRow(tuple(map(_uuid, _members(new["interfaces"]))), None if qos is None else _uuid(qos))
        self.ports[uuid] = row
        for interface in row.interfaces:
            self._port_of[interface] = uuid
        return self._dpids_of_port(uuid)

    def _take_interface(self, uuid: str, new: Any) -> set[int]:
        port = self._port_of.get(uuid)
        if new is None:
            self.interfaces.pop(uuid, None)
            self._port_of.pop(uuid, None)
        else:
            ofport, mtu, speed = (_optional(new[name]) for name in ("ofport", "mtu", "link_speed"))
            is_there = ofport is not None and int(ofport) > 0
            self.interfaces[uuid] = InterfaceRow(
                int(ofport) if is_there else None, DEFAULT_MTU_BYTES if mtu is None else int(mtu), int(speed or 0)
            )
        return set() if port is None else self._dpids_of_port(port)

    def _take_qos(self, uuid: str, new: Any) -> set[int]:
        before = self.qos.pop(uuid, None)
        changed = _disown(self._own_qos, uuid, before)
        if new is not None:
            queues = {int(queue_id): _uuid(queue) for queue_id, queue in _map(new["queues"]).items()}
            row = self.qos[uuid] = QosRow(queues, _map(new["other_config"]), _owner(new["external_ids"]))
            if row.owner is not None:
                self._own_qos.setdefault(row.owner, set()).add(uuid)
                changed.add(row.owner)
        return changed

    def _take_queue(self, uuid: str, new: Any) -> set[int]:
        before = self.queues.pop(uuid, None)
        changed = _disown(self._own_queues, uuid, before)
        if new is not None:
            row = self.queues[uuid] = QueueRow(_map(new["other_config"]), _owner(new["external_ids"]))
            if row.owner is not None:
                self._own_queues.setdefault(row.owner, set()).add(uuid)
                changed.add(row.owner)
        return changed

    def _dpids_of_port(self, uuid: str, is_gone: bool = False) -> set[int]:
        bridge = self._bridge_of.pop(uuid, None) if is_gone else self._bridge_of.get(uuid)
        row = self.bridges.get(bridge) if bridge is not None else None
        return set() if row is None or row.dpid is None else {row.dpid}


def _disown(owned: dict[int, set[str]], uuid: str, before: QosRow | QueueRow | None) -> set[int]:
    """Forget a row among those of its owner; return that."""
    if before is None or before.owner is None:
        return set()
    rows = owned[before.owner]
    rows.discard(uuid)
    if not rows:
        del owned[before.owner]
    return {before.owner}


def _members(value: Any) -> list[Any]:
    """Return the members of a set, which stands for itself where it has one (RFC 7047, 5.1)."""
    if isinstance(value, list) and value and value[0] == "set":
        return list(value[1])
    return [value]


def _optional(value: Any) -> Any:
    members = _members(value)
    return members[0] if members else None


def _map(value: Any) -> dict[Any, Any]:
    if value[0] != "map":
        raise ValueError(f"{value!r} is no map")
    return dict(value[1])


def _uuid(value: Any) -> str:
    if value[0] != "uuid":
        raise ValueError(f"{value!r} is no UUID")
    return str(value[1])


def _owner(external_ids: Any) -> int | None:
    """Return whom a row of this controller's is for; None for one of others, as whose one with a torn mark counts."""
    mark = _map(external_ids).get(MARK)
    try:
        return None if mark is None else int(mark, 16)
    except ValueError:
        return None
