"""The journal: what a restarted controller must know so that the switches' entries stay right as they are.

A record is a whole topology or a whole group; the last one of a group counts. Topology from the journal is assumed
until discovery confirms it; what is not confirmed in time is taken down again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from math import inf
from typing import Any, NamedTuple

from controller.effects import JournalPart, WriteJournal
from controller.membership.core import MembershipCore
from controller.multicast.flood import FloodPlane
from controller.multicast.group import Sender, SenderKey
from controller.multicast.groups import GroupPlane
from controller.multicast.operator import OperatorSettings, read_settings
from controller.rules.compile import TREE_VERSIONS
from controller.rules.lowering import LOWERINGS
from controller.wire.addresses import format_ip, format_mac, is_multicast_ip, parse_ip, parse_mac
from topology.events import LinkDown, LinkUp, PortRole, PortRoleChanged, SwitchDown, SwitchUp, TopologyEvent
from topology.live import LiveFabric

JOURNAL_INTERVAL_S = 0.1
GROUPS_PER_WRITE = 200
"""Groups written at one time, so that a storm of joins does not stall the core; the rest follows in turn."""

COMPACT_FACTOR = 4
COMPACT_ABOVE = 2000

Record = dict[str, Any]


class RestoredGroup(NamedTuple):
    """A group of the journal."""

    address: bytes
    tree_version: int
    links: tuple[tuple[int, int], ...]
    members: tuple[Record, ...]
    senders: tuple[tuple[SenderKey, Sender], ...]


class Restored(NamedTuple):
    """What a journal says: events that lead to its topology, routers, groups, and how many records are unreadable."""

    operator: OperatorSettings
    topology: tuple[TopologyEvent, ...]
    routers: tuple[Record, ...]
    groups: tuple[RestoredGroup, ...]
    faults: int


def read_records(records: Iterable[Record], static_groups: Iterable[bytes] = ()) -> Restored:
    """Interpret the records of a journal; what cannot be read is counted and left out.

    Groups without members and senders are left out too, but for those with static members: `static_groups`, and those
    that operators have set.
    """
    operator = OperatorSettings()
    topology: tuple[TopologyEvent, ...] = ()
    routers: tuple[Record, ...] = ()
    groups: dict[bytes, RestoredGroup] = {}
    faults = 0
    for record in records:
        try:
            if record["kind"] == "topology":
                topology = tuple(_topology_events(record))
            elif record["kind"] == "routers":
                routers = tuple(record["records"])
            elif record["kind"] == "operator":
                operator = read_settings(record)
            else:
                group = _restored_group(record)
                groups.pop(group.address, None)
                groups[group.address] = group
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            faults += 1
    static = {*static_groups, *(group for _, _, group in operator.static_members)}
    wanted = tuple(group for group in groups.values() if group.members or group.senders or group.address in static)
    return Restored(operator, topology, routers, wanted, faults)


def _topology_events(record: Record) -> Iterator[TopologyEvent]:
    for dpid, ofp_version in record["switches"]:
        if ofp_version not in LOWERINGS:
            raise ValueError("no OpenFlow version of ours")
        yield SwitchUp(int(dpid), int(ofp_version))
    for name, role in (("edge_ports", PortRole.EDGE), ("trunk_ports", PortRole.TRUNK)):
        for dpid, port_no in record[name]:
            yield PortRoleChanged(int(dpid), int(port_no), role)
    for dpid_a, port_a, dpid_b, port_b, capacity_bps in record["links"]:
        if dpid_a == dpid_b or not capacity_bps > 0:
            raise ValueError("no link")
        yield LinkUp(int(dpid_a), int(port_a), int(dpid_b), int(port_b), float(capacity_bps))


def _restored_group(record: Record) -> RestoredGroup:
    address = parse_ip(record["group"])
    senders = []
    for entry in record["senders"]:
        key = SenderKey(
            int(entry["dpid"]), int(entry["port_no"]), parse_mac(entry["mac"]), parse_ip(entry["address"])
        )
        if len(key.address) != len(address):
            raise ValueError("addresses of two families")
        rate_bps = float(entry["rate_bps"])
        if not 0 <= rate_bps < inf:
            raise ValueError("no rate")
        senders.append((key, Sender(bool(entry["admitted"]), str(entry["rule"]), 0.0, rate_bps)))
    if not is_multicast_ip(address):
        raise ValueError("no group")
    return RestoredGroup(
        address,
        int(record["tree_version"]) % TREE_VERSIONS,
        tuple((int(u), int(v)) for u, v in record["links"]),
        tuple(record["members"]),
        tuple(senders),
    )


class Journal:
    """Notes what changed and turns it into records at leisure; holds no copy of their state.

    Attributes
    ----------
    due_s
        When records are due to be written, None for never.
    """

    def __init__(
        self,
        fabric: LiveFabric,
        plane: GroupPlane,
        flood: FloodPlane,
        membership: MembershipCore,
        operator: Callable[[], Record],
    ) -> None:
        self.due_s: float | None = None
        self._fabric = fabric
        self._plane = plane
        self._flood = flood
        self._membership = membership
        self._operator = operator
        self._touched: dict[bytes, None] = {}
        self._topology_touched = False
        self._routers_touched = False
        self._operator_touched = False
        self._written_count = 0
        self._lost = False
        self._rewriting: list[bytes] | None = None
        self._assumed: dict[TopologyEvent, None] = {}

    def touch(self, address: bytes, now: float) -> None:
        """Note that a group changed."""
        self._touched[address] = None
        if self.due_s is None:
            self.due_s = now + JOURNAL_INTERVAL_S

    def topology_touched(self, now: float) -> None:
        """Note that switches, links or ports changed."""
        self._topology_touched = True
        if self.due_s is None:
            self.due_s = now + JOURNAL_INTERVAL_S

    def routers_touched(self, now: float) -> None:
        """Note that router ports or queriers changed."""
        self._routers_touched = True
        if self.due_s is None:
            self.due_s = now + JOURNAL_INTERVAL_S

    def operator_touched(self, now: float) -> None:
        """Note that operators set something: it is written at once, since they are told that it is done."""
        self._operator_touched = True
        self.due_s = now

    def begin_anew(self, now: float) -> None:
        """Replace the journal from here on, since records of it are lost."""
        self._rewriting = None
        self._lost = True
        self.due_s = now

    def on_deadline(self, now: float) -> list[WriteJournal]:
        """Return the records to write, none before the deadline; a grown journal is replaced in small steps."""
        if self.due_s is None or now < self.due_s:
            return []
        self.due_s = None
        effects: list[WriteJournal] = []
        records = self._changed_records(now)
        if records:
            effects.append(WriteJournal(tuple(records), JournalPart.APPEND))
        if self._rewriting is not None:
            effects.append(self._rewrite(self._rewriting, now))
        elif self._lost or self._written_count > COMPACT_ABOVE + COMPACT_FACTOR * len(self._plane.groups):
            self._lost = False
            self._rewriting = [*self._plane.groups, *self._flood.groups()]
            first = (self._operator(), self._topology_record(), self._routers_record(now))
            effects.append(WriteJournal(first, JournalPart.BEGIN))
        if self._touched or self._rewriting is not None:
            self.due_s = now + JOURNAL_INTERVAL_S
        return effects

    def _changed_records(self, now: float) -> list[Record]:
        records: list[Record] = []
        if self._operator_touched:
            self._operator_touched = False
            records.append(self._operator())
        if self._topology_touched:
            self._topology_touched = False
            records.append(self._topology_record())
        if self._routers_touched:
            self._routers_touched = False
            records.append(self._routers_record(now))
        for address in list(islice(self._touched, GROUPS_PER_WRITE)):
            del self._touched[address]
            records.append(self._group_record(address, now))
        self._written_count += len(records)
        return records

    def _rewrite(self, left: list[bytes], now: float) -> WriteJournal:
        """Write some more groups to the new journal; the last ones put it in the place of the old one."""
        part, left[:] = left[:GROUPS_PER_WRITE], left[GROUPS_PER_WRITE:]
        records = tuple(self._group_record(address, now) for address in part)
        if left:
            return WriteJournal(records, JournalPart.CONTINUE)
        self._rewriting = None
        self._written_count = 0
        return WriteJournal(records, JournalPart.FINISH)

    def assume(self, events: Iterable[TopologyEvent]) -> None:
        """Note what topology is only known from the journal: each with the event that would take it down again."""
        for event in events:
            if isinstance(event, LinkUp):
                self._assumed[LinkDown(event.dpid_a, event.dpid_b)] = None
            elif isinstance(event, PortRoleChanged):
                self._assumed[event._replace(role=PortRole.DOWN)] = None
            elif isinstance(event, SwitchUp):
                self._assumed[SwitchDown(event.dpid)] = None

    @property
    def assumes(self) -> bool:
        """Whether some topology is only known from the journal."""
        return bool(self._assumed)

    def confirm(self, event: TopologyEvent) -> bool:
        """Take note of what discovery says; False for an event that says no more than "not known yet"."""
        if isinstance(event, PortRoleChanged):
            down = event._replace(role=PortRole.DOWN)
            if event.role is PortRole.UNKNOWN and down in self._assumed:
                return False
            self._assumed.pop(down, None)
        elif isinstance(event, LinkUp | LinkDown):
            self._assumed.pop(LinkDown(event.dpid_a, event.dpid_b), None)
            self._assumed.pop(LinkDown(event.dpid_b, event.dpid_a), None)
        elif isinstance(event, SwitchUp):
            self._assumed.pop(SwitchDown(event.dpid), None)
        elif isinstance(event, SwitchDown):
            self._forget_switch(event.dpid)
        return True

    def _forget_switch(self, dpid: int) -> None:
        for event in list(self._assumed):
            if dpid in event[: 2 if isinstance(event, LinkDown) else 1]:
                del self._assumed[event]

    def unconfirmed(self) -> list[TopologyEvent]:
        """Return the events that take down what discovery never confirmed, switches last, and assume it no more."""
        events = sorted(self._assumed, key=lambda event: isinstance(event, SwitchDown))
        self._assumed = {}
        return events

    def _topology_record(self) -> Record:
        events = self._fabric.snapshot()
        ports = [event for event in events if isinstance(event, PortRoleChanged)]
        return {
            "kind": "topology",
            "switches": [list(event) for event in events if isinstance(event, SwitchUp)],
            "edge_ports": [[dpid, port_no] for dpid, port_no, role in ports if role is PortRole.EDGE],
            "trunk_ports": [[dpid, port_no] for dpid, port_no, role in ports if role is PortRole.TRUNK],
            "links": [list(event) for event in events if isinstance(event, LinkUp)],
        }

    def _routers_record(self, now: float) -> Record:
        return {"kind": "routers", "records": self._membership.routers_snapshot(now)}

    def _group_record(self, address: bytes, now: float) -> Record:
        record: Record = {
            "kind": "group", "group": format_ip(address), "tree_version": 0, "links": [], "members": [], "senders": []
        }  # fmt: skip
        group = self._plane.groups.get(address)
        if group is None:
            record["members"] = self._membership.group_snapshot(address, self._flood.members(address), now)
            return record
        tree = self._plane.forest.tree(address)
        record["tree_version"] = group.tree_version
        if tree is not None:
            record["links"] = list(tree.links())
        ports = [(dpid, port_no) for dpid, at in group.interests.items() for port_no in at]
        record["members"] = self._membership.group_snapshot(address, ports, now)
        record["senders"] = [
            {
                "dpid": key.dpid,
                "port_no": key.port_no,
                "mac": format_mac(key.mac),
                "address": format_ip(key.address),
                "admitted": sender.admitted,
                "rule": sender.rule,
                "rate_bps": sender.rate_bps,
            }
            for key, sender in group.senders.items()
        ]
        return record
