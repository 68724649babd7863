"""What the log says at a start: topology, what operators set, routers, and groups with trees, members, senders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf
from typing import Any, NamedTuple

from controller.foreign_fields import ForeignFields
from controller.kernel.domains import HIGHEST_VLAN, LOWEST_VLAN, OWN_DOMAIN, family_of
from controller.kernel.vlan_ports import VlanPorts
from controller.log import LogEntry
from controller.maintenance.model import read_campaign, read_work
from controller.multicast.address_pools import TakenAddress
from controller.multicast.covers import Cover, cover_with
from controller.multicast.group import Sender, SenderKey
from controller.multicast.operator_settings import (
    OperatorLabel,
    OperatorSettings,
    read_label,
    read_pin,
    read_router_port,
    read_static_member,
    read_taken_address,
)
from controller.rules.compile import COVERED_VERSIONS, TREE_VERSIONS
from controller.rules.compile_cover import HIGHEST_COVER
from controller.rules.lowering import LOWERINGS
from controller.service_classes.pool import MAX_ALIASES
from controller.wire.addresses import is_multicast_ip, parse_ip, parse_mac, parse_name
from topology.events import LinkUp, PortRole, PortRoleChanged, SwitchUp, TopologyEvent
from topology.graph import holds_cycle
from topology.live import LiveFabric

Record = Mapping[str, Any]

UNREADABLE = (KeyError, TypeError, ValueError, AttributeError, OverflowError)
"""What reading something raises that is not as it was written."""

_NOWHERE = (PortRole.DOWN, PortRole.UNKNOWN)


class RestoredTree(NamedTuple):
    """A tree of a group as an earlier run left it; `links` as those of the group, `number` 0 for the group's own.

    `is_out` tells whether the group had no entries. `apart` are the sources of channels that were under covering
    trees by themselves, in their order, with the numbers of these.
    """

    number: int
    tree_version: int
    links: tuple[tuple[int, ...], ...]
    is_out: bool = False
    apart: tuple[tuple[bytes, int], ...] = ()


UNCHOSEN_TREE = RestoredTree(0, 0, ())
"""What a group has of which the log has no tree: no links, version 0, and it is in. Nothing was chosen of it."""


class RestoredGroup(NamedTuple):
    """A group as an earlier run left it.

    Each of `links` is two switches; one by a cable that had others beside it has the ports at both after them.
    `is_out` tells whether it had no entries, `apart` is that of its own tree.
    """

    address: bytes
    tree_version: int
    links: tuple[tuple[int, ...], ...]
    members: tuple[dict[str, Any], ...]
    senders: tuple[tuple[SenderKey, Sender], ...]
    aliases: tuple[RestoredTree, ...] = ()
    is_out: bool = False
    apart: tuple[tuple[bytes, int], ...] = ()

    @property
    def was_served(self) -> bool:
        """Whether the earlier run had the group: who joined one that it refused left no tree, and nobody sent."""
        return self.is_out or bool(self.links or self.tree_version or self.senders)


class LoggedSwitch(NamedTuple):
    """A switch as the log has it; `up` is None where it was not connected, `roles` are what its ports lead to."""

    dpid: int
    up: SwitchUp | None
    roles: dict[int, PortRole]


class LoggedGroup(NamedTuple):
    """What the log has of a group at a switch."""

    members: tuple[dict[str, Any], ...]
    senders: tuple[tuple[SenderKey, Sender], ...]


class Restored(NamedTuple):
    """What an earlier run left: events that lead to its topology, groups, and how much cannot be read.

    `routers` are by VLAN, those of the fabric's own domain under 0. `covers` are covering trees.
    """

    operator: OperatorSettings
    topology: tuple[TopologyEvent, ...]
    routers: Mapping[int, tuple[dict[str, Any], ...]]
    groups: tuple[RestoredGroup, ...]
    faults: int
    covers: tuple[Cover, ...] = ()


class LogReader:
    """Takes the entries of a log in, the last ones of their keys, whatever their order.

    Parameters
    ----------
    fields
        Is told of each value that can be read.

    Attributes
    ----------
    faults
        How many cannot be read.
    foreign
        Those by keys that this version does not know.
    """

    def __init__(self, fields: ForeignFields) -> None:
        self.faults = 0
        self._fields = fields
        self.foreign: list[LogEntry] = []
        self.fabric = LiveFabric()
        self.routers: dict[int, tuple[dict[str, Any], ...]] = {OWN_DOMAIN: ()}
        self.groups: dict[bytes, RestoredGroup] = {}
        self._covers: list[Cover] = []
        self._static: list[tuple[int, int, bytes]] = []
        self._router_ports: list[tuple[int, int, int]] = []
        self._drained: list[int] = []
        self._pinned: list[bytes] = []
        self._labels: list[OperatorLabel] = []
        self._addresses: list[TakenAddress] = []
        self._campaign: Record | None = None
        self._campaign_switches: list[Record] = []
        self._readers: dict[str, Callable[[Any], None]] = {
            "static-member": self._static_member,
            "router-port": self._router_port,
            "drain": self._drain,
            "pin": self._pin,
            "label": self._label,
            "address": self._address,
            "maintenance": self._maintenance,
            "maintenance-switch": self._maintenance_switch,
            "switch": self._switch,
            "link": self._link,
            "routers": self._routers,
            "vlan-routers": self._vlan_routers,
            "tree": self._tree,
            "alias": self._alias,
            "cover": self._cover,
            "heard": self._heard,
        }

    def read(self, entry: LogEntry) -> None:
        """Take in an entry; one that cannot be read is counted."""
        read = self._readers.get(entry.subject)
        if read is None:
            self.foreign.append(entry)
            return
        value = entry.value
        try:
            read(value)
        except UNREADABLE:
            self.faults += 1
        else:
            self._fields.read(entry, value)

    def restored(self, static_groups: Iterable[bytes], carrier: Callable[[bytes], bytes]) -> Restored:
        """Return what was read.

        Groups without members and senders are left out, but for those with static members (`static_groups`, and those
        that operators have set) and those that are the `carrier` of another with members, by name.
        """
        own = (tuple(self._static), tuple(self._router_ports), tuple(self._drained), tuple(self._pinned))
        said = (tuple(self._labels), tuple(self._addresses))
        operator = OperatorSettings(*own, self._campaign, tuple(self._campaign_switches), *said)
        asked_for = [*static_groups, *(group for _, _, group in operator.static_members)]
        wanted = [*asked_for, *map(carrier, asked_for)]
        wanted += (carrier(group.address) for group in self.groups.values() if group.members)
        restored = restored_of(operator, self.fabric, self.routers, self.groups, self.faults, wanted)
        return restored._replace(covers=tuple(self._covers))

    def _static_member(self, value: Record) -> None:
        self._static.append(read_static_member(value["dpid"], value["port_no"], value["group"]))

    def _router_port(self, value: Record) -> None:
        self._router_ports.append(read_router_port(value["dpid"], value["port_no"], value["family"]))

    def _drain(self, value: Record) -> None:
        self._drained.append(int(value["dpid"]))

    def _pin(self, value: Record) -> None:
        self._pinned.append(read_pin(value["group"]))

    def _label(self, value: Record) -> None:
        self._labels.append(read_label(value))

    def _address(self, value: Record) -> None:
        self._addresses.append(read_taken_address(value))

    def _maintenance(self, value: Record) -> None:
        read_campaign(value)
        self._campaign = value

    def _maintenance_switch(self, value: Record) -> None:
        read_work(value)
        self._campaign_switches.append(value)

    def _switch(self, value: Record) -> None:
        switch = read_switch_ports(value)
        events: list[TopologyEvent] = [] if switch.up is None else [switch.up]
        events += [PortRoleChanged(switch.dpid, port_no, role) for port_no, role in switch.roles.items()]
        for event in events:
            self.fabric.apply(event)

    def _link(self, value: Record) -> None:
        self.fabric.apply(read_logged_link(value))

    def _routers(self, value: Record) -> None:
        self.routers[OWN_DOMAIN] = tuple(value["records"])

    def _vlan_routers(self, value: Record) -> None:
        self.routers[read_vlan(value["vlan"])] = tuple(value["records"])

    def _tree(self, value: Record) -> None:
        address, tree = read_tree(value)
        known = self._known(address)
        self.groups[address] = known._replace(
            tree_version=tree.tree_version, links=tree.links, is_out=tree.is_out, apart=tree.apart
        )

    def _alias(self, value: Record) -> None:
        address, alias = read_alias(value)
        known = self._known(address)
        others = tuple(each for each in known.aliases if each.number != alias.number)
        self.groups[address] = known._replace(aliases=(*others, alias))

    def _cover(self, value: Record) -> None:
        self._covers.append(read_cover(value))

    def _heard(self, value: Record) -> None:
        address, heard = read_heard(value)
        known = self._known(address)
        members, senders = (*known.members, *heard.members), (*known.senders, *heard.senders)
        self.groups[address] = known._replace(members=members, senders=senders)

    def _known(self, address: bytes) -> RestoredGroup:
        return self.groups.get(address) or RestoredGroup(address, 0, (), (), ())


def restored_of(
    operator: OperatorSettings,
    fabric: LiveFabric,
    routers: Mapping[int, tuple[dict[str, Any], ...]],
    groups: Mapping[bytes, RestoredGroup],
    faults: int,
    static_groups: Iterable[bytes],
) -> Restored:
    """Return what was read, without ports that lead nowhere and without groups that nobody wants."""
    static = {*static_groups, *(group for _, _, group in operator.static_members)}
    wanted = tuple(group for group in groups.values() if group.members or group.senders or group.address in static)
    topology = [event for event in fabric.structure() if getattr(event, "role", None) not in _NOWHERE]
    return Restored(operator, tuple(topology), routers, wanted, faults)


def read_switch(dpid: Any, ofp_version: Any) -> SwitchUp:
    """Return what is said of a switch; ValueError where that cannot be."""
    if ofp_version not in LOWERINGS:
        raise ValueError("no OpenFlow version of ours")
    return SwitchUp(int(dpid), int(ofp_version))


def read_link(dpid_a: Any, port_a: Any, dpid_b: Any, port_b: Any, capacity_bps: Any) -> LinkUp:
    """Return what is said of a link; ValueError where that cannot be."""
    if dpid_a == dpid_b or not capacity_bps > 0:
        raise ValueError("no link")
    return LinkUp(int(dpid_a), int(port_a), int(dpid_b), int(port_b), float(capacity_bps))


def read_logged_link(value: Record) -> LinkUp:
    """Return what the log says of a link; ValueError where that cannot be."""
    dpid_a, port_a, dpid_b, port_b = value["ends"]
    return read_link(dpid_a, port_a, dpid_b, port_b, value["capacity_bps"])


def read_senders(records: Iterable[Record], address: bytes) -> Iterator[tuple[SenderKey, Sender]]:
    """Yield the senders of a group; ValueError where one cannot be."""
    for entry in records:
        key = SenderKey(
            int(entry["dpid"]), int(entry["port_no"]), parse_mac(entry["mac"]), parse_ip(entry["address"])
        )
        if family_of(key.address) != family_of(address):
            raise ValueError("addresses of two families")
        rate_bps = float(entry["rate_bps"])
        if not 0 <= rate_bps < inf:
            raise ValueError("no rate")
        alias = int(entry.get("alias", 0))
        yield key, Sender(bool(entry["admitted"]), str(entry["rule"]), 0.0, rate_bps, alias=alias)


def is_in_domain(record: Record, vlan_id: int, vlan_ports: VlanPorts) -> bool:
    """Tell whether the port of a record is in a domain; what cannot be read is left to who counts it."""
    try:
        place = int(record["dpid"]), int(record["port_no"])
    except UNREADABLE:
        return True
    return vlan_ports.has(*place, vlan_id)


def read_switch_ports(value: Record) -> LoggedSwitch:
    """Return what is said of a switch and its ports."""
    dpid, version = int(value["dpid"]), value["ofp_version"]
    up = None if version is None else read_switch(dpid, version)
    roles = {
        int(port_no): role
        for name, role in (("edge_ports", PortRole.EDGE), ("trunk_ports", PortRole.TRUNK))
        for port_no in value[name]
    }
    return LoggedSwitch(dpid, up, roles)


def read_vlan(value: Any) -> int:
    """Return the VLAN that something is said of; ValueError for none."""
    vlan_id = int(value)
    if not LOWEST_VLAN <= vlan_id <= HIGHEST_VLAN:
        raise ValueError("no VLAN")
    return vlan_id


def read_tree(value: Record, number: int = 0) -> tuple[bytes, RestoredTree]:
    """Return a group by name and its tree, or an alias by its number; ValueError where one cannot be."""
    links = tuple(tuple(map(int, link)) for link in value["links"])
    if any(len(link) not in (2, 4) for link in links):
        raise ValueError("no link")
    is_out = bool(value.get("out", False))
    version = int(value["tree_version"])
    if number or not COVERED_VERSIONS < version <= COVERED_VERSIONS + HIGHEST_COVER:
        version %= 2 * TREE_VERSIONS
    apart = sorted((parse_ip(source), int(cover)) for source, cover in value.get("apart", ()))
    if any(not 1 <= cover <= HIGHEST_COVER for _, cover in apart):
        raise ValueError("no covering tree")
    return _group(value), RestoredTree(number, version, links, is_out, tuple(apart))


def read_cover(value: Record) -> Cover:
    """Return a covering tree; ValueError where there can be none."""
    number = int(value["number"])
    u_v_ports = [tuple(map(int, link)) for link in value["links"]]
    if not 1 <= number <= HIGHEST_COVER or not u_v_ports or holds_cycle(frozenset(link[:2]) for link in u_v_ports):
        raise ValueError("no covering tree")
    queue_id = value.get("queue")
    links = tuple((u, v, u_port, v_port) for u, v, u_port, v_port in u_v_ports)
    return cover_with(number, links, None if queue_id is None else int(queue_id))


def read_alias(value: Record) -> tuple[bytes, RestoredTree]:
    """Return a group by name and a further tree of it; ValueError where one cannot be."""
    number = int(value["number"])
    if not 1 <= number <= MAX_ALIASES:
        raise ValueError("no alias")
    return read_tree(value, number)


def read_heard(value: Record) -> tuple[bytes, LoggedGroup]:
    """Return a group by name and what is known of it at a switch; ValueError where one cannot be."""
    address = _group(value)
    return address, LoggedGroup(tuple(value["members"]), tuple(read_senders(value["senders"], address)))


def _group(value: Record) -> bytes:
    address = parse_name(value["group"])
    if not is_multicast_ip(address):
        raise ValueError("no group")
    return address
