"""The journal of versions before: JSON lines, of which a controller takes over what it finds at its first start.

A record is a whole group, of which the last one counts, a whole topology, changes of one, all that operators set, or
the routers. What is read here is written to the log at once, and never read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from controller.kernel.domains import OWN_DOMAIN
from controller.multicast.operator_settings import OperatorSettings, read_router_port, read_static_member
from controller.multicast.restored import (
    UNREADABLE,
    Restored,
    RestoredGroup,
    read_link,
    read_senders,
    read_switch,
    restored_of,
)
from controller.rules.compile import TREE_VERSIONS
from controller.wire.addresses import is_multicast_ip, parse_ip
from topology.events import LinkDown, LinkUp, PortRole, PortRoleChanged, SwitchDown, TopologyEvent
from topology.live import LiveFabric

Record = dict[str, Any]


def read_records(records: Iterable[Record], static_groups: Iterable[bytes] = ()) -> Restored:
    """Interpret the records of a journal; what cannot be read is counted and left out.

    Groups without members and senders are left out too, but for those with static members: `static_groups`, and those
    that operators have set.
    """
    operator = OperatorSettings()
    fabric = LiveFabric()
    routers: tuple[Record, ...] = ()
    groups: dict[bytes, RestoredGroup] = {}
    faults = 0
    for record in records:
        try:
            if record["kind"] == "topology":
                fabric = _followed(LiveFabric(), tuple(_topology_events(record)))
            elif record["kind"] == "topology-changes":
                fabric = _changed(fabric, [_READERS[name](*fields) for name, *fields in record["changes"]])
            elif record["kind"] == "routers":
                routers = tuple(record["records"])
            elif record["kind"] == "operator":
                operator = _read_settings(record)
            else:
                group = _restored_group(record)
                groups.pop(group.address, None)
                groups[group.address] = group
        except UNREADABLE:
            faults += 1
    return restored_of(operator, fabric, {OWN_DOMAIN: routers}, groups, faults, static_groups)


def _followed(fabric: LiveFabric, events: Iterable[TopologyEvent]) -> LiveFabric:
    for event in events:
        fabric.apply(event)
    return fabric


def _changed(fabric: LiveFabric, events: Iterable[TopologyEvent]) -> LiveFabric:
    """Follow changes by which two switches have one link at most, which its return replaces."""
    for event in events:
        if isinstance(event, LinkUp | LinkDown):
            for cable in fabric.cables(event.dpid_a, event.dpid_b):
                fabric.apply(LinkDown(*cable[:4]))
        fabric.apply(event)
    return fabric


_READERS: dict[str, Callable[..., TopologyEvent]] = {
    "switch-up": read_switch,
    "switch-down": lambda dpid: SwitchDown(int(dpid)),
    "link-up": read_link,
    "link-down": lambda dpid_a, dpid_b: LinkDown(int(dpid_a), 0, int(dpid_b), 0),
    "port": lambda dpid, port_no, role: PortRoleChanged(int(dpid), int(port_no), PortRole(role)),
}


def _topology_events(record: Record) -> Iterator[TopologyEvent]:
    for fields in record["switches"]:
        yield read_switch(*fields)
    for name, role in (("edge_ports", PortRole.EDGE), ("trunk_ports", PortRole.TRUNK)):
        for dpid, port_no in record[name]:
            yield PortRoleChanged(int(dpid), int(port_no), role)
    for fields in record["links"]:
        yield read_link(*fields)


def _restored_group(record: Record) -> RestoredGroup:
    address = parse_ip(record["group"])
    if not is_multicast_ip(address):
        raise ValueError("no group")
    return RestoredGroup(
        address,
        int(record["tree_version"]) % TREE_VERSIONS,
        tuple((int(u), int(v)) for u, v in record["links"]),
        tuple(record["members"]),
        tuple(read_senders(record["senders"], address)),
    )


def _read_settings(record: Record) -> OperatorSettings:
    return OperatorSettings(
        tuple(read_static_member(*fields) for fields in record["static_members"]),
        tuple(read_router_port(*fields) for fields in record["router_ports"]),
        tuple(map(int, record["drained"])),
    )
