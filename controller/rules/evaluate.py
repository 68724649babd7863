"""What flow entries mean: which of them a packet meets, and where it goes (OpenFlow 1.3.5, 5.1-5.3; 1.0.0, 3.4)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from controller.rules.model import (
    FLOW_PARTS,
    OFPP_CONTROLLER,
    OFPP_IN_PORT,
    Action,
    Bucket,
    FlowEntry,
    FlowKey,
    Goto,
    GroupEntry,
    GroupType,
    Match,
    Output,
    PopVlan,
    PushVlan,
    SetDscp,
    SetEthDst,
    SetQueue,
    SetVlan,
    SplitFlows,
    ToGroup,
)
from controller.rules.pipeline import OPENFLOW_1_0, OPENFLOW_1_3, SPLIT


class Fields(NamedTuple):
    """The fields of a packet that matches look at; addresses are bytes, None what the packet does not have.

    `vlan_ids` are those of its VLAN tags, outermost first, 0 that of a priority tag; `eth_type` is what follows them.
    `dscp` is its code point and `queue_id` the queue that it waits in at this switch, which no match looks at. `flow`
    is a hash of what tells its flow from others, by which switches divide flows.
    """

    eth_dst: bytes
    eth_src: bytes
    eth_type: int
    ip_proto: int | None = None
    ip_src: bytes | None = None
    ip_dst: bytes | None = None
    icmpv6_type: int | None = None
    vlan_ids: tuple[int, ...] = ()
    dscp: int = 0
    queue_id: int | None = None
    flow: int = 0


class Sent(NamedTuple):
    """A copy of a packet that leaves by `port_no` (or goes to the controller, OFPP_CONTROLLER), as it is then."""

    port_no: int
    eth_dst: bytes
    vlan_ids: tuple[int, ...] = ()
    dscp: int = 0
    queue_id: int | None = None


class Verdict(NamedTuple):
    """What becomes of a packet at a switch: the copies sent in order, and the entries met, one per table at most."""

    sent: tuple[Sent, ...]
    met: tuple[FlowEntry, ...]


@dataclass(slots=True)
class CountedEntry:
    """A flow entry with its counters."""

    rule: FlowEntry
    since_s: float = 0.0
    packet_count: int = 0
    byte_count: int = 0


Shape: TypeAlias = tuple[object, ...]
"""Which fields a match looks at, and with which masks."""


SHAPES_CACHED = 4096
"""Matches whose shapes are remembered: switches hold the same ones again and again."""


@lru_cache(SHAPES_CACHED)
def shape_of(match: Match) -> Shape:
    """Return which fields a match looks at: matches of one shape never overlap unless they are equal."""
    exact = tuple(
        value is not None
        for value in (match.in_port, match.eth_src, match.eth_type, match.ip_proto, match.icmpv6_type, match.ip_dscp)
    )
    dst = match.eth_dst_mask or b"\xff" * 6 if match.eth_dst is not None else None
    families = (match.ip_src and len(match.ip_src), match.ip_dst and len(match.ip_dst))
    tags = (match.tagged, match.vlan_id is not None)
    return (*exact, dst, match.ip_src_prefix, match.ip_dst_prefix, *families, *tags)


def project(ofp_version: int, shape: Shape, fields: Fields, in_port: int) -> tuple[object, ...] | None:
    """Return what a match of this shape would have to ask for to match; None where none can.

    What a match says of VLAN tags depends on the OpenFlow version: see `Match`.
    """
    *exact, mask, src_bits, dst_bits, src_size, dst_size, tagged, has_vlan_id = shape
    has_in_port, has_src, has_type, has_proto, has_icmpv6, has_dscp = exact
    vlan_ids = fields.vlan_ids
    if has_vlan_id:
        if not vlan_ids:
            return None
    elif ofp_version == OPENFLOW_1_0:
        if vlan_ids and not tagged:
            return None
    elif tagged and not vlan_ids:
        return None
    ip_src, ip_dst = fields.ip_src, fields.ip_dst
    if src_size and (ip_src is None or len(ip_src) != src_size):
        return None
    if dst_size and (ip_dst is None or len(ip_dst) != dst_size):
        return None
    return (
        in_port if has_in_port else None,
        fields.eth_src if has_src else None,
        fields.eth_type if has_type else None,
        fields.ip_proto if has_proto else None,
        fields.icmpv6_type if has_icmpv6 else None,
        fields.dscp if has_dscp else None,
        _masked(fields.eth_dst, mask) if mask else None,  # type: ignore[arg-type]
        _prefix(ip_src, src_bits) if src_size else None,  # type: ignore[arg-type]
        _prefix(ip_dst, dst_bits) if dst_size else None,  # type: ignore[arg-type]
        vlan_ids[0] if has_vlan_id else None,
    )


def _values(match: Match) -> tuple[object, ...]:
    """Return what a match asks for, in the order of `project`."""
    return (
        match.in_port,
        match.eth_src,
        match.eth_type,
        match.ip_proto,
        match.icmpv6_type,
        match.ip_dscp,
        match.eth_dst,
        _prefix(match.ip_src, match.ip_src_prefix) if match.ip_src else None,
        _prefix(match.ip_dst, match.ip_dst_prefix) if match.ip_dst else None,
        match.vlan_id,
    )


def _masked(mac: bytes, mask: bytes) -> bytes:
    return bytes(byte & kept for byte, kept in zip(mac, mask, strict=True))


def _prefix(address: bytes | None, bits: int | None) -> int:
    return int.from_bytes(address or b"", "big") >> 8 * len(address or b"") - (bits or 0)


def overlap(ofp_version: int, one: Match, other: Match) -> bool:
    """Tell whether some packet may match both."""
    if ofp_version == OPENFLOW_1_0 and not (one.tagged or other.tagged) and one.vlan_id != other.vlan_id:
        return False
    for name in ("in_port", "eth_src", "eth_type", "ip_proto", "icmpv6_type", "vlan_id", "ip_dscp"):
        a, b = getattr(one, name), getattr(other, name)
        if a is not None and b is not None and a != b:
            return False
    if one.eth_dst is not None and other.eth_dst is not None:
        mask = _masked(one.eth_dst_mask or b"\xff" * 6, other.eth_dst_mask or b"\xff" * 6)
        if _masked(one.eth_dst, mask) != _masked(other.eth_dst, mask):
            return False
    for name in ("ip_src", "ip_dst"):
        a, b = getattr(one, name), getattr(other, name)
        if a is not None and b is not None:
            bits = min(getattr(one, name + "_prefix"), getattr(other, name + "_prefix"))
            if len(a) != len(b) or _prefix(a, bits) != _prefix(b, bits):
                return False
    return True


PATHS_CACHED = 4096
"""Packets whose way through the tables is remembered; beyond it all are looked up anew."""


class FlowTables:
    """The flow entries of one switch, found by key and by packet, and the groups that they name.

    The way of a packet through the tables is remembered until an entry changes. Of a select group a packet takes the
    first bucket, of a fast-failover group the first whose port is not in `down`.
    """

    def __init__(self) -> None:
        self.groups: dict[int, GroupEntry] = {}
        self.down: set[int] = set()
        self.entries: dict[FlowKey, CountedEntry] = {}
        self._paths: dict[tuple[int, Fields, int], tuple[tuple[CountedEntry, ...], Verdict]] = {}
        self._index: dict[int, dict[int, dict[Shape, dict[tuple[object, ...], CountedEntry]]]] = {}
        self._order: dict[int, list[int]] = {}

    def put(self, rule: FlowEntry, now: float = 0.0) -> None:
        """Add an entry, or change the one with the same key; its counters go on counting."""
        self._paths.clear()
        entry = self.entries.get(rule.key)
        if entry is not None:
            entry.rule = rule
            return
        table, priority, match = rule.key
        entry = self.entries[rule.key] = CountedEntry(rule, now)
        priorities = self._index.setdefault(table, {})
        if priority not in priorities:
            priorities[priority] = {}
            self._order[table] = sorted(priorities, reverse=True)
        priorities[priority].setdefault(shape_of(match), {})[_values(match)] = entry

    def remove(self, key: FlowKey) -> bool:
        """Delete an entry; False where there was none."""
        if self.entries.pop(key, None) is None:
            return False
        self._paths.clear()
        table, priority, match = key
        shapes = self._index[table][priority]
        shape = shape_of(match)
        del shapes[shape][_values(match)]
        if not shapes[shape]:
            del shapes[shape]
        return True

    def put_group(self, group: GroupEntry) -> None:
        """Add or change a group."""
        self._paths.clear()
        self.groups[group.key.group_id] = group

    def remove_group(self, group_id: int) -> None:
        """Delete a group, and the entries that name it."""
        self._paths.clear()
        self.groups.pop(group_id, None)
        for key, entry in list(self.entries.items()):
            if ToGroup(group_id) in entry.rule.actions:
                self.remove(key)

    def conflict(self, ofp_version: int, rule: FlowEntry) -> FlowEntry | None:
        """Return an entry of the same table and priority that overlaps and does something else, None for none."""
        table, priority, match = rule.key
        own_shape = shape_of(match)
        for shape, entries in self._index.get(table, {}).get(priority, {}).items():
            if shape == own_shape:
                continue
            for entry in entries.values():
                if entry.rule.actions != rule.actions and overlap(ofp_version, entry.rule.key.match, match):
                    return entry.rule
        return None

    def lookup(self, ofp_version: int, table: int, fields: Fields, in_port: int) -> CountedEntry | None:
        """Return the entry of the highest priority that a packet matches, None for a miss."""
        priorities = self._index.get(table, {})
        for priority in self._order.get(table, ()):
            for shape, entries in priorities[priority].items():
                values = project(ofp_version, shape, fields, in_port)
                if values in entries:
                    return entries[values]
        return None

    def process(self, ofp_version: int, fields: Fields, in_port: int, size_bytes: int = 0) -> Verdict:
        """Take a packet through the tables and count it.

        A miss drops in OpenFlow 1.3 and goes to the controller in 1.0. Nothing goes back to `in_port`, unless
        it is sent to OFPP_IN_PORT.
        """
        key = (ofp_version, fields, in_port)
        path = self._paths.get(key)
        if path is None:
            if len(self._paths) >= PATHS_CACHED:
                self._paths.clear()
            path = self._paths[key] = self._path(ofp_version, fields, in_port)
        entries, verdict = path
        for entry in entries:
            entry.packet_count += 1
            entry.byte_count += size_bytes
        return verdict

    def _path(self, ofp_version: int, fields: Fields, in_port: int) -> tuple[tuple[CountedEntry, ...], Verdict]:
        sent: list[Sent] = []
        met: list[CountedEntry] = []
        table: int | None = 0
        while table is not None:
            entry = self.lookup(ofp_version, table, fields, in_port)
            if entry is None:
                if ofp_version == OPENFLOW_1_0:
                    sent.append(Sent(OFPP_CONTROLLER, fields.eth_dst, *fields[7:10]))
                break
            met.append(entry)
            table = None
            fields = self._execute(entry.rule.actions, fields, in_port, sent, met)
            for action in entry.rule.actions:
                if isinstance(action, Goto):
                    table = action.table
        return tuple(met), Verdict(tuple(sent), tuple(entry.rule for entry in met))

    def _execute(
        self, actions: tuple[Action, ...], fields: Fields, in_port: int, sent: list[Sent], met: list[CountedEntry]
    ) -> Fields:
        """Add what actions send, and the entries that they have the packet meet; return what they make of it."""
        for action in actions:
            if isinstance(action, Output):
                if action.port_no == OFPP_IN_PORT:
                    sent.append(Sent(in_port, fields.eth_dst, *fields[7:10]))
                elif action.port_no != in_port:
                    sent.append(Sent(action.port_no, fields.eth_dst, *fields[7:10]))
            elif isinstance(action, SetEthDst):
                fields = fields._replace(eth_dst=action.mac)
            elif isinstance(action, SetQueue):
                fields = fields._replace(queue_id=action.queue_id)
            elif isinstance(action, SetDscp):
                fields = fields._replace(dscp=action.dscp)
            elif isinstance(action, PushVlan):
                fields = fields._replace(vlan_ids=(action.vlan_id, *fields.vlan_ids))
            elif isinstance(action, SetVlan) and fields.vlan_ids:
                fields = fields._replace(vlan_ids=(action.vlan_id, *fields.vlan_ids[1:]))
            elif isinstance(action, PopVlan):
                fields = fields._replace(vlan_ids=fields.vlan_ids[1:])
            elif isinstance(action, SplitFlows):
                part = bytes((fields.flow % FLOW_PARTS,))
                fields = fields._replace(eth_dst=action.mac[:5] + part)
                entry = self.lookup(OPENFLOW_1_3, SPLIT, fields, in_port)
                if entry is not None:
                    met.append(entry)
                    fields = self._execute(entry.rule.actions, fields, in_port, sent, met)
            elif isinstance(action, ToGroup) and action.group_id in self.groups:
                for bucket in self._buckets(self.groups[action.group_id]):
                    self._execute(bucket.actions, fields, in_port, sent, met)
        return fields

    def _buckets(self, group: GroupEntry) -> tuple[Bucket, ...]:
        if group.type == GroupType.ALL:
            return group.buckets
        up = [bucket for bucket in group.buckets if bucket.watch_port not in self.down]
        return tuple(up[:1])
