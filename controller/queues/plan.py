"""From the queues that a switch shall have to one transaction that makes its database say so (RFC 7047, 5.2).

Nothing is written in part: a transaction is done whole or not at all. Rows of this controller are changed in place,
and no others are touched. A port is given a QoS only while it has none, whatever happens meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from controller.queues.database_copy import DEFAULT_MTU_BYTES, MARK, BridgeRow, DatabaseCopy, PortRow, QosRow
from controller.wire.dpids import format_dpid

TYPE = "linux-htb"
"""Hierarchical token buckets: each queue has its least rate, and the rest goes by priority (tc-htb(8))."""

QUEUE_COUNT = 8


class PortWanted(NamedTuple):
    """The capacity of a port, and the least rates of its queues in bit/s, by id."""

    capacity_bps: int
    min_rate_bps: Mapping[int, int]


class BridgePort(NamedTuple):
    """A port of a bridge: the UUID of its row, what that says, its speed (0: not told) and its MTU."""

    uuid: str
    row: PortRow
    speed_bps: int
    mtu_bytes: int


class Plan(NamedTuple):
    """The operations of a transaction, none where nothing is to be written, and the ports that have others' QoS."""

    operations: list[dict[str, Any]]
    foreign: tuple[int, ...]


def ports_of(copy: DatabaseCopy, bridge: BridgeRow) -> dict[int, BridgePort]:
    """Return the ports of a bridge by their OpenFlow numbers; bonds of the switch's own have none."""
    found = {}
    for uuid in bridge.ports:
        row = copy.ports.get(uuid)
        interface = None if row is None or len(row.interfaces) != 1 else copy.interfaces.get(row.interfaces[0])
        if row is not None and interface is not None and interface.ofport is not None:
            found[interface.ofport] = BridgePort(uuid, row, interface.speed_bps, interface.mtu_bytes)
    return found


def plan(copy: DatabaseCopy, dpid: int, wanted: Mapping[int, PortWanted], is_kept: bool) -> Plan:
    """Return what makes a database say what a switch shall have.

    Parameters
    ----------
    wanted
        By port number what it shall have; a port that is not there is left out.
    is_kept
        Whether ports of which nothing is wanted keep what they have of this controller.
    """
    writer = _Writer(copy, dpid)
    bridge = copy.bridge(dpid)
    there = {} if bridge is None else ports_of(copy, bridge)
    foreign = []
    for port_no, port in sorted(there.items()):
        own = writer.claim(port.row.qos)
        wanted_here = wanted.get(port_no)
        if wanted_here is None:
            if own is not None and not is_kept:
                writer.leave(port)
        elif own is not None:
            writer.change(port, own, wanted_here)
        elif port.row.qos is None:
            writer.give(port_no, port, wanted_here)
        else:
            foreign.append(port_no)
    writer.clear()
    return Plan(writer.operations, tuple(foreign))


class _Writer:
    """Collects the operations for one switch; `claimed` are the QoS that its ports keep."""

    def __init__(self, copy: DatabaseCopy, dpid: int) -> None:
        self.operations: list[dict[str, Any]] = []
        self.claimed: set[str] = set()
        self._kept: set[str] = set()
        self._requeued: set[str] = set()
        self._left = Counter[str]()
        self._replica = copy
        self._dpid = dpid
        self._names = 0

    def claim(self, uuid: str | None) -> QosRow | None:
        """Return the QoS of a port where it is this controller's, and no port's before."""
        row = None if uuid is None else self._replica.qos.get(uuid)
        if row is None or uuid is None or row.owner != self._dpid or uuid in self.claimed:
            return None
        self.claimed.add(uuid)
        return row

    def give(self, port_no: int, port: BridgePort, wanted: PortWanted) -> None:
        """Give a port that has none its QoS."""
        where = _where(port.uuid)
        is_without = {"op": "wait", "table": "Port", "where": where, "columns": ["qos"], "until": "=="}
        self.operations.append({**is_without, "rows": [{"qos": ["set", []]}], "timeout": 0})
        queues = [[queue_id, self._insert_queue(port, queue_id, each)] for queue_id, each in _sorted(wanted)]
        row = {
            "type": TYPE,
            "queues": ["map", queues],
            "other_config": _as_map({"max-rate": str(wanted.capacity_bps)}),
        }
        qos = self._insert("QoS", row)
        self.operations.append({"op": "update", "table": "Port", "where": where, "row": {"qos": qos}})

    def change(self, port: BridgePort, own: QosRow, wanted: PortWanted) -> None:
        """Change what a port has of this controller to what it shall have."""
        qos: dict[str, Any] = {}
        config = {"max-rate": str(wanted.capacity_bps)}
        if own.config != config:
            qos["other_config"] = _as_map(config)
        queues: list[list[Any]] = []
        for queue_id, each in _sorted(wanted):
            uuid = own.queues.get(queue_id)
            row = None if uuid is None else self._replica.queues.get(uuid)
            if uuid is None or row is None or row.owner != self._dpid:
                queues.append([queue_id, self._insert_queue(port, queue_id, each)])
                continue
            self._kept.add(uuid)
            queues.append([queue_id, ["uuid", uuid]])
            config = _queue_config(port, queue_id, each)
            if row.config != config:
                self._update("Queue", uuid, {"other_config": _as_map(config)})
        if queues != [[queue_id, ["uuid", uuid]] for queue_id, uuid in sorted(own.queues.items())]:
            qos["queues"] = ["map", queues]
            self._requeued.add(port.row.qos or "")
        if qos:
            self._update("QoS", port.row.qos or "", qos)

    def leave(self, port: BridgePort) -> None:
        """Take its QoS from a port."""
        uuid = port.row.qos or ""
        self.claimed.discard(uuid)
        self._left[uuid] += 1
        where = [*_where(port.uuid), ["qos", "==", ["uuid", uuid]]]
        self.operations.append({"op": "update", "table": "Port", "where": where, "row": {"qos": ["set", []]}})

    def clear(self) -> None:
        """Delete the rows of this controller that nothing needs any more."""
        own_qos, own_queues = self._replica.own(self._dpid)
        unclaimed = [uuid for uuid in own_qos if uuid not in self.claimed]
        needed = Counter(row.qos for row in self._replica.ports.values()) if unclaimed else Counter[str | None]()
        kept = set(self._kept)
        for uuid in own_qos:
            if uuid in self.claimed or needed[uuid] > self._left[uuid]:
                if uuid not in self._requeued:
                    kept.update(self._replica.qos[uuid].queues.values())
            else:
                self.operations.append({"op": "delete", "table": "QoS", "where": _where(uuid)})
        for uuid in own_queues:
            if uuid not in kept:
                self.operations.append({"op": "delete", "table": "Queue", "where": _where(uuid)})

    def _insert_queue(self, port: BridgePort, queue_id: int, min_rate_bps: int) -> list[str]:
        return self._insert("Queue", {"other_config": _as_map(_queue_config(port, queue_id, min_rate_bps))})

    def _insert(self, table: str, row: dict[str, Any]) -> list[str]:
        """Insert a row with this controller's mark; return what names it within the transaction."""
        self._names += 1
        name = f"row{self._names}"
        own = {**row, "external_ids": _as_map({MARK: format_dpid(self._dpid)})}
        self.operations.append({"op": "insert", "table": table, "row": own, "uuid-name": name})
        return ["named-uuid", name]

    def _update(self, table: str, uuid: str, row: dict[str, Any]) -> None:
        self.operations.append({"op": "update", "table": table, "where": _where(uuid), "row": row})


def _sorted(wanted: PortWanted) -> list[tuple[int, int]]:
    return sorted(wanted.min_rate_bps.items())


def _queue_config(port: BridgePort, queue_id: int, min_rate_bps: int) -> dict[str, str]:
    """Return what a queue is set up with: a least rate of one packet a second, the most important queue first."""
    least_bps = 8 * (port.mtu_bytes or DEFAULT_MTU_BYTES)
    return {"min-rate": str(max(min_rate_bps, least_bps)), "priority": str(QUEUE_COUNT - 1 - queue_id)}


def _where(uuid: str) -> list[list[Any]]:
    return [["_uuid", "==", ["uuid", uuid]]]


def _as_map(values: Mapping[str, str]) -> list[Any]:
    return ["map", [[key, value] for key, value in sorted(values.items())]]
