"""Switches and fabrics that exist in memory only: strict about edits, exact about packets.

They answer effects with events as real ones do, so that a core can be run against them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from controller.effects import (
    ApplyEdits,
    Define,
    Edit,
    Put,
    Remove,
    RequestFlows,
    RequestResources,
    RequestRole,
    RequestTables,
)
from controller.events import (
    BarrierReplied,
    ControllerRole,
    EditFailed,
    FlowStatsReceived,
    ResourcesReceived,
    RoleReplied,
    TablesReceived,
)
from controller.rules.evaluate import Fields, FlowTables, Verdict
from controller.rules.lowering import LOWERINGS
from controller.rules.model import (
    OFPP_CONTROLLER,
    OFPP_IN_PORT,
    FlowEntry,
    FlowKey,
    Goto,
    GroupEntry,
    GroupKey,
    Meter,
    MeterEntry,
    Output,
    Resource,
    ResourceKey,
    ToGroup,
)
from controller.rules.of13_resources import encode_resource_reply
from controller.rules.openflow import FlowCounter
from controller.rules.pipeline import OPENFLOW_1_0, OPENFLOW_1_3, TABLE_COUNT
from controller.rules.table_capacity import BOUNDLESS, encode_tables_reply

_RESERVED = (OFPP_CONTROLLER, OFPP_IN_PORT)

Error: TypeAlias = tuple[int, int]
"""Type and code of an OpenFlow error."""

Answer: TypeAlias = EditFailed | BarrierReplied | FlowStatsReceived | ResourcesReceived | RoleReplied | TablesReceived
"""What the controller hears of a message."""

STATS_REPLY_ENTRIES = 200
"""Entries in one flow statistics reply; the next reply has the next ones."""

_OVERLAP = {OPENFLOW_1_0: (3, 1), OPENFLOW_1_3: (5, 3)}
_BAD_TABLE_ID = {OPENFLOW_1_0: (3, 0), OPENFLOW_1_3: (5, 2)}
_BAD_GOTO = (3, 2)
_BAD_OUT_PORT = (2, 4)
_UNKNOWN_METER, _METER_EXISTS, _OUT_OF_METERS = (12, 3), (12, 1), (12, 10)
_UNKNOWN_GROUP, _GROUP_EXISTS, _OUT_OF_GROUPS = (6, 8), (6, 0), (6, 3)
_BAD_OUT_GROUP = (2, 9)
_IS_SLAVE = {OPENFLOW_1_0: (1, 5), OPENFLOW_1_3: (1, 10)}
_STALE = (11, 0)
_BAD_STATISTICS = (1, 2)
_NOT_EXPRESSIBLE = {OPENFLOW_1_0: (1, 1), OPENFLOW_1_3: (4, 6)}


class FakeSwitch:
    """A switch that refuses what a strict one would, and forwards.

    Parameters
    ----------
    dpid, ofp_version
        Its identity and OpenFlow wire version, 1 or 4.
    ports
        Ports that entries may send to; any where None.
    capacity
        Entries that fit.
    table_capacity
        Entries that fit into each table; as many as fit together where None.
    table_count
        Tables there are; always one in OpenFlow 1.0.
    meters
        Meter ids that entries may name beside those that are put.
    resource_capacity
        Groups that fit, and meters.
    said_capacity
        Entries that it says each table has room for; None has it refuse to say.
    role, generation_id
        What the connection is to the switch, and the generation of its last master, for `respond`.
    """

    def __init__(
        self,
        dpid: int,
        ofp_version: int,
        ports: Collection[int] | None = None,
        *,
        capacity: int = 1_000_000,
        table_capacity: int | None = None,
        table_count: int = TABLE_COUNT,
        meters: Collection[int] = (),
        resource_capacity: int = 1_000_000,
    ) -> None:
        self.dpid = dpid
        self.ofp_version = ofp_version
        self.ports = ports
        self.capacity = capacity
        self.table_capacity = table_capacity
        self.table_count = 1 if ofp_version == OPENFLOW_1_0 else table_count
        self.meters = meters
        self.resource_capacity = resource_capacity
        self.said_capacity: int | None = BOUNDLESS
        self.put_meters: dict[int, MeterEntry] = {}
        self.role = ControllerRole.EQUAL
        self.generation_id: int | None = None
        self.tables = FlowTables()
        self.refused: list[tuple[Edit, Error, str]] = []

    @property
    def rules(self) -> dict[FlowKey, FlowEntry]:
        """The entries it holds."""
        return {key: entry.rule for key, entry in self.tables.entries.items()}

    @property
    def resources(self) -> dict[ResourceKey, Resource]:
        """The groups and meters it holds."""
        groups: dict[ResourceKey, Resource] = {group.key: group for group in self.tables.groups.values()}
        return groups | {meter.key: meter for meter in self.put_meters.values()}

    def apply(self, edit: Edit, now: float = 0.0) -> Error | None:
        """Carry out an edit; return the error it is refused with, and note why in `refused`."""
        fault = self._apply(edit, now)
        if fault is None:
            return None
        error, why = fault
        self.refused.append((edit, error, why))
        return error

    def _apply(self, edit: Edit, now: float) -> tuple[Error, str] | None:
        if self.role is ControllerRole.SLAVE:
            return _IS_SLAVE[self.ofp_version], "a slave changes nothing"
        if isinstance(edit, Put):
            fault = self._fault(edit.rule)
            if fault is None:
                self.tables.put(edit.rule, now)
            return fault
        if isinstance(edit, Define):
            return self._define(edit)
        if isinstance(edit, Remove):
            self.tables.remove(edit.key)
        elif isinstance(edit.key, GroupKey):
            self.tables.remove_group(edit.key.group_id)
        elif self.put_meters.pop(edit.key.meter_id, None) is not None:
            for key, rule in self.rules.items():
                if Meter(edit.key.meter_id) in rule.actions:
                    self.tables.remove(key)
        return None

    def _define(self, edit: Define) -> tuple[Error, str] | None:
        resource = edit.resource
        reason = LOWERINGS[self.ofp_version].resource_expressible(resource)
        if reason is not None:
            return _NOT_EXPRESSIBLE[self.ofp_version], reason
        is_group = isinstance(resource, GroupEntry)
        held: Collection[int] = self.tables.groups if is_group else self.put_meters
        if edit.exists and resource.key[0] not in held:
            return _UNKNOWN_GROUP if is_group else _UNKNOWN_METER, f"no {resource.key.kind} {resource.key[0]}"
        if not edit.exists and resource.key[0] in held:
            return _GROUP_EXISTS if is_group else _METER_EXISTS, f"{resource.key.kind} {resource.key[0]} is there"
        if not edit.exists and len(held) >= self.resource_capacity:
            return _OUT_OF_GROUPS if is_group else _OUT_OF_METERS, f"{self.resource_capacity} are there"
        if isinstance(resource, GroupEntry):
            ports = [action for bucket in resource.buckets for action in bucket.actions if isinstance(action, Output)]
            for output in ports:
                if not self._has_port(output.port_no):
                    return _BAD_OUT_PORT, f"no port {output.port_no}"
            self.tables.put_group(resource)
        else:
            self.put_meters[resource.key.meter_id] = resource
        return None

    def _fault(self, rule: FlowEntry) -> tuple[Error, str] | None:
        version = self.ofp_version
        if not 0 <= rule.key.table < self.table_count:
            return _BAD_TABLE_ID[version], f"no table {rule.key.table}"
        reason = LOWERINGS[version].expressible(rule)
        if reason is not None:
            return _NOT_EXPRESSIBLE[version], reason
        for action in rule.actions:
            if isinstance(action, Goto) and action.table >= self.table_count:
                return _BAD_GOTO, f"no table {action.table} to go to"
            if isinstance(action, ToGroup) and action.group_id not in self.tables.groups:
                return _BAD_OUT_GROUP, f"no group {action.group_id}"
            if isinstance(action, Meter) and action.meter_id not in {*self.meters, *self.put_meters}:
                return _UNKNOWN_METER, f"no meter {action.meter_id}"
            if isinstance(action, Output) and not self._has_port(action.port_no):
                return _BAD_OUT_PORT, f"no port {action.port_no}"
        conflict = self.tables.conflict(version, rule)
        if conflict is not None:
            return _OVERLAP[version], f"overlaps {conflict}"
        if rule.key not in self.tables.entries and len(self.tables.entries) >= self.capacity:
            return LOWERINGS[version].table_full, f"{self.capacity} entries are there"
        if rule.key not in self.tables.entries and self.table_capacity is not None:
            held = sum(key.table == rule.key.table for key in self.tables.entries)
            if held >= self.table_capacity:
                return LOWERINGS[version].table_full, f"{held} entries are in table {rule.key.table}"
        return None

    def _has_port(self, port_no: int) -> bool:
        return self.ports is None or port_no in _RESERVED or port_no in self.ports

    def respond(
        self, effect: ApplyEdits | RequestFlows | RequestResources | RequestRole | RequestTables, now: float = 0.0
    ) -> list[Answer]:
        """Carry out an effect and return the events that follow at the controller, in order."""
        if isinstance(effect, ApplyEdits):
            return self._apply_all(effect, now)
        if isinstance(effect, RequestRole):
            return [self._role_answer(effect)]
        if isinstance(effect, RequestResources):
            return self._tell_resources(effect)
        if isinstance(effect, RequestTables):
            return [self._tell_tables(effect)]
        lowering = LOWERINGS[self.ofp_version]
        entries = [
            lowering.encode_flow_stats_entry(entry)
            for entry in self.counters(now)
            if self.ofp_version == OPENFLOW_1_0 or (entry.rule.cookie ^ effect.cookie) & effect.cookie_mask == 0
        ]
        parts = [entries[at : at + STATS_REPLY_ENTRIES] for at in range(0, len(entries), STATS_REPLY_ENTRIES)] or [[]]
        return [
            FlowStatsReceived(
                self.dpid,
                self.ofp_version,
                effect.xid,
                lowering.encode_flow_stats_reply(effect.xid, part is not parts[-1], b"".join(part)),
            )
            for part in parts
        ]

    def _tell_resources(self, effect: RequestResources) -> list[Answer]:
        told = [entry for entry in self.resources.values() if entry.key.kind == effect.kind]
        parts = [told[at : at + STATS_REPLY_ENTRIES] for at in range(0, len(told), STATS_REPLY_ENTRIES)] or [[]]
        return [
            ResourcesReceived(
                self.dpid,
                self.ofp_version,
                effect.xid,
                encode_resource_reply(effect.kind, effect.xid, tuple(part), more=part is not parts[-1]),
            )
            for part in parts
        ]

    def _tell_tables(self, effect: RequestTables) -> EditFailed | TablesReceived:
        if self.said_capacity is None:
            return EditFailed(self.dpid, effect.xid, *_BAD_STATISTICS)
        entries = dict.fromkeys(range(self.table_count), self.said_capacity)
        message = encode_tables_reply(self.ofp_version, effect.xid, entries)
        return TablesReceived(self.dpid, self.ofp_version, effect.xid, message)

    def _role_answer(self, effect: RequestRole) -> EditFailed | RoleReplied:
        """Take a role as a switch does (OpenFlow 1.3.5, 6.3.5)."""
        has_generations = LOWERINGS[self.ofp_version].has_generations
        if effect.role in (ControllerRole.MASTER, ControllerRole.SLAVE) and has_generations:
            before, bits = self.generation_id, (1 << 64) - 1
            if before is not None and (effect.generation_id - before & bits) >> 63:
                return EditFailed(self.dpid, effect.xid, *_STALE)
            self.generation_id = effect.generation_id
        if effect.role is not None:
            self.role = effect.role
        return RoleReplied(self.dpid, effect.xid, self.role, self.generation_id)

    def _apply_all(self, effect: ApplyEdits, now: float) -> list[Answer]:
        events: list[Answer] = []
        for xid, edit in enumerate(effect.edits, effect.first_xid):
            error = self.apply(edit, now)
            if error is not None:
                events.append(EditFailed(self.dpid, xid, *error))
        events.append(BarrierReplied(self.dpid, effect.first_xid + len(effect.edits)))
        return events

    def counters(self, now: float = 0.0) -> list[FlowCounter]:
        """Return the entries with their counters."""
        return [
            FlowCounter(entry.rule, entry.packet_count, entry.byte_count, now - entry.since_s)
            for entry in self.tables.entries.values()
        ]

    def expire(self, now: float) -> None:
        """Delete entries whose hard timeout is over."""
        for key, entry in list(self.tables.entries.items()):
            if entry.rule.hard_timeout_s and now - entry.since_s >= entry.rule.hard_timeout_s:
                self.tables.remove(key)

    def process(self, fields: Fields, in_port: int, size_bytes: int = 0) -> Verdict:
        """Take a packet in at a port."""
        return self.tables.process(self.ofp_version, fields, in_port, size_bytes)


class LoopFound(Exception):  # noqa: N818
    """A packet came back to a switch as it had been there before; `args[0]` is its way."""


class Punt(NamedTuple):
    """A packet that a switch sent to the controller."""

    dpid: int
    in_port: int
    eth_dst: bytes
    vlan_ids: tuple[int, ...] = ()


class HostCopy(NamedTuple):
    """A copy that left the fabric by a port without a link."""

    dpid: int
    port_no: int
    eth_dst: bytes
    vlan_ids: tuple[int, ...] = ()
    dscp: int = 0
    queue_id: int | None = None


class Copy(NamedTuple):
    """A copy of a packet that has arrived at a switch.

    `way` are the steps before, as (dpid, in_port, eth_dst, vlan_ids).
    """

    dpid: int
    in_port: int
    eth_dst: bytes
    way: tuple[tuple[int, int, bytes, tuple[int, ...]], ...] = ()
    vlan_ids: tuple[int, ...] = ()
    dscp: int = 0


class Hop(NamedTuple):
    """What a switch made of a copy: copies that arrive elsewhere, at ports without a link, and at the controller."""

    onward: list[Copy]
    hosts: list[HostCopy]
    punts: list[Punt]


class Delivery(NamedTuple):
    """What became of one packet: how many copies reached each host port, and the controller."""

    hosts: Counter[HostCopy]
    punts: Counter[Punt]


class FakeFabric:
    """Switches with links between them: `links` are pairs of (dpid, port_no)."""

    def __init__(
        self,
        links: Iterable[tuple[tuple[int, int], tuple[int, int]]],
        switches: Mapping[int, FakeSwitch],
    ) -> None:
        self.switches = switches
        self._far: dict[tuple[int, int], tuple[int, int]] = {}
        for one, other in links:
            self.connect(one, other)

    def connect(self, one: tuple[int, int], other: tuple[int, int]) -> None:
        """Add a link."""
        self._far[one], self._far[other] = other, one

    def cut(self, end: tuple[int, int]) -> None:
        """Take out the link at (dpid, port_no); what is sent there then is lost, as on a port that is down."""
        far = self._far[end]
        self._far[end], self._far[far] = (0, 0), (0, 0)

    def forward(self, copy: Copy, fields: Fields, size_bytes: int = 0) -> Hop:
        """Have a switch forward a copy that has arrived there; LoopFound where the copy was there before."""
        dpid, in_port, eth_dst, way, vlan_ids, dscp = copy
        step = (dpid, in_port, eth_dst, vlan_ids)
        if step in way:
            raise LoopFound((*way, step))
        hop = Hop([], [], [])
        switch = self.switches.get(dpid)
        if switch is None:
            return hop
        arrived = fields._replace(eth_dst=eth_dst, vlan_ids=vlan_ids, dscp=dscp, queue_id=None)
        for sent in switch.process(arrived, in_port, size_bytes).sent:
            far = self._far.get((dpid, sent.port_no))
            if sent.port_no == OFPP_CONTROLLER:
                hop.punts.append(Punt(dpid, in_port, sent.eth_dst, sent.vlan_ids))
            elif far is None:
                hop.hosts.append(HostCopy(dpid, *sent))
            else:
                hop.onward.append(Copy(*far, sent.eth_dst, (*way, step), sent.vlan_ids, sent.dscp))
        return hop

    def deliver(self, dpid: int, in_port: int, fields: Fields, size_bytes: int = 0) -> Delivery:
        """Take a packet in at a port and follow all its copies to the end; LoopFound where one goes in circles."""
        delivery = Delivery(Counter(), Counter())
        copies = [Copy(dpid, in_port, fields.eth_dst, (), fields.vlan_ids, fields.dscp)]
        while copies:
            hop = self.forward(copies.pop(), fields, size_bytes)
            delivery.hosts.update(hop.hosts)
            delivery.punts.update(hop.punts)
            copies += hop.onward
        return delivery
