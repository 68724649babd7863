"""What the core writes to the log: what a restarted controller must know so that the switches' entries stay right.

| key | what | kind |
|---|---|---|
| `static-member/DPID/PORT/GROUP`, `router-port/DPID/PORT/FAMILY` | what operators set | decision |
| `drain/DPID`, `pin/GROUP` | the same | decision |
| `label/DPID/PORT/KEY` | labels that operators gave, of switches with port 0 | decision |
| `address/POOL/NAME` | addresses of pools that are taken | decision |
| `maintenance`, `maintenance-switch/DPID` | a campaign, and where its switches are | decision |
| `tree/GROUP` | its tree and version, a choice by the loads of its time; if it is out; channels apart | decision |
| `alias/GROUP/NUMBER` | the same of a further tree | decision |
| `cover/NUMBER` | a covering tree | decision |
| `heard/GROUP/DPID` | members and senders at a switch | observation |
| `switch/DPID`, `link/DPID:PORT-DPID:PORT` | what discovery found | observation |
| `routers`, in a VLAN `vlan-routers/VLAN` | queriers and learnt router ports | observation |

Of a tree of which nothing was chosen, that of a group at one switch as a rule, there is no entry (`UNCHOSEN_TREE`).

Topology from the log is assumed until discovery confirms it; what is not confirmed in time is taken down again.
Entries by any other key are another version's, and stay as they are; so do other fields of these (`journal_fields`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, TypeAlias

from controller.effects import Notice
from controller.foreign_fields import ForeignFields
from controller.kernel.domains import HIGHEST_VLAN, LOWEST_VLAN, address_of, domain_of
from controller.kernel.ports import cable_of
from controller.log import SWITCH_ENTRIES, LogEntry, LogEntryKind, LogPart, WriteLog
from controller.multicast.campaigns import Campaigns
from controller.multicast.covers import Covers
from controller.multicast.flood import FloodPlane
from controller.multicast.foreign_entries import ForeignEntries
from controller.multicast.group import Sender, SenderKey
from controller.multicast.groups import GroupPlane
from controller.multicast.journal_fields import JOURNAL_FIELDS
from controller.multicast.legs import MemberLegs
from controller.multicast.memberships import Memberships
from controller.multicast.operator_records import OperatorRecords
from controller.multicast.operator_settings import OperatorSetting, setting_entry
from controller.multicast.pending_writes import PendingWrites, SwitchOrLink
from controller.multicast.registered import RegisteredGroups
from controller.multicast.restored import UNCHOSEN_TREE, RestoredGroup
from controller.multicast.tree_links import links_of
from controller.trees.islands import AliasKey
from controller.wire.addresses import format_ip, format_mac, is_link_scope_group, parse_name
from topology.events import LinkDown, LinkUp, PortRole, PortRoleChanged, SwitchDown, SwitchUp, TopologyEvent
from topology.live import LiveFabric

GROUP_SUBJECTS = frozenset(("tree", "alias", "heard"))
"""What entries are about that are of a group, which the key names next."""

GROUPS_PER_WRITE, REST_INTERVAL_S = 50, 0.025
"""Trees and groups at a switch, together, that are written at one time, so that a storm of joins does not stall the
core; the rest follows this soon."""

TREES_PER_WRITE = 10
"""How many of them are trees at least: in a storm these change with every join, and are written less often."""

CHANGES_PER_WRITE = 1000
"""Switches and links written at one time, while a fabric comes up; the rest follows in turn."""

Record: TypeAlias = dict[str, Any]

_UNCHOSEN = UNCHOSEN_TREE[1:3]

_new = tuple.__new__  # what a named tuple's own constructor does, for a third of its time


class MulticastJournal:
    """Turns what changed into entries at leisure; holds no copy of their values."""

    def __init__(
        self,
        pending: PendingWrites,
        fabric: LiveFabric,
        plane: GroupPlane,
        registered: RegisteredGroups,
        flood: FloodPlane,
        memberships: Memberships,
        settings: Callable[[], Iterable[OperatorSetting]],
        is_set: Callable[[OperatorSetting], bool],
        records: OperatorRecords,
        campaigns: Campaigns,
        legs: MemberLegs,
    ) -> None:
        self._pending = pending
        self._fabric = fabric
        self._plane = plane
        self._registered = registered
        self._flood = flood
        self._memberships = memberships
        self._settings = settings
        self._is_set = is_set
        self._records = records
        self._campaigns = campaigns
        self._legs = legs
        self.foreign = ForeignEntries()
        self.fields = ForeignFields(JOURNAL_FIELDS)
        self._unknown_keys: list[str] = []
        self._trees_written: dict[bytes, int] = {}
        self._aliases_written: dict[bytes, dict[int, int]] = {}
        self._anew_left: list[int] | None = None
        self._assumed: dict[TopologyEvent, None] = {}

    def trees_known(self, groups: Iterable[RestoredGroup]) -> None:
        """Take note of the trees that the log has, so that others are written."""
        for group in groups:
            self._trees_written[group.address] = hash((group.tree_version, group.links, group.is_out, group.apart))
            for alias in group.aliases:
                written = self._aliases_written.setdefault(group.address, {})
                written[alias.number] = hash((alias.tree_version, alias.links))

    def tree_links(self, address: bytes, number: int = 0) -> tuple[tuple[Any, ...], ...]:
        """Return the links of a group's tree, or of an alias, as they are; none where there is none."""
        tree = self._tree_of(address, number)
        return () if tree is None else tree[1]

    def foreign_told(self) -> list[Notice]:
        """Return what operators are told of what other versions have in the log."""
        return [*self.foreign.told(), *self.fields.told()]

    def was_read(self, entry: LogEntry, now: float) -> None:
        """Take note of an entry that was put back, so that what is otherwise, or is no more, is written."""
        subject, key = entry.subject, entry.key
        if subject == "link" and ":" not in key:
            self._unknown_keys.append(key)  # of a version that knew one link of two switches
            self._pending.soon(now)
        if subject == "cover" and key not in map(cover_key, self._plane.covers.trees):
            self._unknown_keys.append(key)
            self._pending.soon(now)
        if subject == "vlan-routers":
            self._vlan_routers_read(key, now)
        address = group_of(key)
        if address is not None:
            _, _, dpid = key.rpartition("/")
            self._pending.group_changed(address, now, int(dpid) if subject == "heard" and dpid.isdecimal() else None)
            if subject == "alias" and dpid.isdecimal():
                self._aliases_written.setdefault(address, {}).setdefault(int(dpid), 0)
            else:
                self._trees_written.setdefault(address, 0)

    def _vlan_routers_read(self, key: str, now: float) -> None:
        vlan = key.partition("/")[2]
        if vlan.isdecimal() and LOWEST_VLAN <= int(vlan) <= HIGHEST_VLAN:
            self._pending.routers_changed(now, int(vlan))
        else:
            self._unknown_keys.append(key)

    def on_deadline(self, now: float) -> list[WriteLog]:
        """Return what to write, nothing before the deadline."""
        if self._pending.due_s is None or now < self._pending.due_s:
            return []
        self._pending.due_s = None
        part = LogPart.CHANGE
        entries: list[LogEntry] = []
        if self._pending.is_lost:
            part = LogPart.BEGIN
            entries += self._anew()
        entries = self.fields.onto([*entries, *self._changed(now)])
        if self._anew_left is not None and not any(self._anew_left):
            self._anew_left = None
            writes = [WriteLog(tuple(entries), part), WriteLog((), LogPart.END)]
        else:
            writes = [WriteLog(tuple(entries), part)] if entries else []
        if (
            self._pending.topology
            or self._pending.routers
            or self._pending.trees
            or self._pending.heard
            or self._anew_left is not None
        ):
            self._pending.due_s = now + REST_INTERVAL_S
        return writes

    def _anew(self) -> list[LogEntry]:
        """Have all that there is written anew, what waits already first."""
        self._pending.is_lost = False
        self._pending.routers = dict.fromkeys(vlan_id for vlan_id, _ in self._memberships.all())
        self._trees_written.clear()
        self._aliases_written.clear()
        events = self._fabric.structure()
        for event in events:
            if isinstance(event, SwitchUp | PortRoleChanged):
                self._pending.topology[event.dpid] = None
            elif isinstance(event, LinkUp):
                self._pending.topology[cable_of(event)] = None
        for address in self.groups():
            self._pending.trees[address] = None
            for dpid in self._dpids(address):
                self._pending.heard[address, dpid] = None
        self._anew_left = [len(self._pending.topology), len(self._pending.trees), len(self._pending.heard)]
        self._pending.records = dict.fromkeys(self._records.keys())
        self._pending.campaign = dict.fromkeys(self._campaigns.keys())
        self._pending.covers = dict.fromkeys(self._plane.covers.trees)
        return [*(setting_entry(setting, True) for setting in self._settings()), *self.foreign]

    def _changed(self, now: float) -> list[LogEntry]:
        entries = [setting_entry(setting, self._is_set(setting)) for setting in self._pending.settings]
        self._pending.settings.clear()
        entries += [self._records.entry(key) for key in self._pending.records]
        self._pending.records.clear()
        entries += [self._campaigns.entry(key) for key in self._pending.campaign]
        self._pending.campaign.clear()
        entries += [_cover_entry(self._plane.covers, number) for number in self._pending.covers]
        self._pending.covers.clear()
        entries += [LogEntry(LogEntryKind.OBSERVATION, key, None) for key in self._unknown_keys]
        self._unknown_keys.clear()
        topology = _take(self._pending.topology, CHANGES_PER_WRITE)
        entries += [self._topology_entry(what) for what in topology]
        entries += [self._routers_entry(vlan_id, now) for vlan_id in _take(self._pending.routers, GROUPS_PER_WRITE)]
        heard = _take(self._pending.heard, GROUPS_PER_WRITE)
        trees = _take(self._pending.trees, max(GROUPS_PER_WRITE - len(heard), TREES_PER_WRITE))
        for address in trees:
            entries += self._tree_entries(address)
            if address in self._aliases_written or self._numbers(address):
                entries += self._alias_entries(address)
        for address, dpid in heard:
            name = format_ip(address)
            text = self._heard_text(name, address, dpid, now)
            entries.append(_new(LogEntry, (LogEntryKind.OBSERVATION, f"heard/{name}/{dpid}", text)))
        if self._anew_left is not None:
            taken = (len(topology), len(trees), len(heard))
            self._anew_left = [max(0, left - count) for left, count in zip(self._anew_left, taken, strict=True)]
        return entries

    def _routers_entry(self, vlan_id: int, now: float) -> LogEntry:
        records = self._memberships.of(vlan_id).routers_snapshot(now)
        if not vlan_id:
            return LogEntry.of_record(LogEntryKind.OBSERVATION, "routers", {"records": records})
        value = {"vlan": vlan_id, "records": records} if records else None
        return LogEntry.of_record(LogEntryKind.OBSERVATION, f"vlan-routers/{vlan_id}", value)

    def _topology_entry(self, what: SwitchOrLink) -> LogEntry:
        if isinstance(what, tuple):
            link = self._fabric.cable(what[0], what[1])
            value = None
            if link is not None and link[:4] == what:
                value = {"ends": list(what), "capacity_bps": link.capacity_bps}
            return LogEntry.of_record(LogEntryKind.OBSERVATION, "link/{}:{}-{}:{}".format(*what), value)
        edges, trunks = (self._fabric.ports(what, role) for role in (PortRole.EDGE, PortRole.TRUNK))
        version = self._fabric.ofp_version(what)
        there = {"dpid": what, "ofp_version": version, "edge_ports": list(edges), "trunk_ports": list(trunks)}
        is_known = version is not None or edges or trunks
        return LogEntry.of_record(LogEntryKind.OBSERVATION, f"{SWITCH_ENTRIES}{what}", there if is_known else None)

    def _tree_entries(self, address: bytes) -> list[LogEntry]:
        """Return the entry of a group's tree where it is another one than was written last."""
        tree = self._tree_of(address)
        is_out, apart = self._state_of(address)
        if tree is None or (tree == _UNCHOSEN and not is_out and not apart):
            had = self._trees_written.pop(address, None) is not None
            return [LogEntry(LogEntryKind.DECISION, f"tree/{format_ip(address)}", None)] if had else []
        written = hash((*tree, is_out, apart))
        if self._trees_written.get(address) == written:
            return []
        self._trees_written[address] = written
        text = _tree_text(address, *tree, is_out=is_out, apart=apart)
        return [LogEntry(LogEntryKind.DECISION, f"tree/{format_ip(address)}", text)]

    def _alias_entries(self, address: bytes) -> list[LogEntry]:
        """Return the entries of a group's aliases that are others than were written last, or are no more."""
        written = self._aliases_written.setdefault(address, {})
        entries: list[LogEntry] = []
        for number in sorted({*written, *self._numbers(address)}):
            key, tree = f"alias/{format_ip(address)}/{number}", self._tree_of(address, number)
            if tree is None:
                del written[number]
                entries.append(LogEntry(LogEntryKind.DECISION, key, None))
            elif written.get(number) != hash(tree):
                written[number] = hash(tree)
                entries.append(LogEntry(LogEntryKind.DECISION, key, _tree_text(address, *tree, number)))
        if not written:
            del self._aliases_written[address]
        return entries

    def _numbers(self, address: bytes) -> list[int]:
        """Return the numbers of a group's aliases."""
        group = self._plane.groups.get(address)
        return [] if group is None or group.trees is None else [tree.number for tree in group.trees[1:]]

    def assume(self, events: Iterable[TopologyEvent]) -> None:
        """Note what topology is only known from the journal: each with the event that would take it down again."""
        for event in events:
            if isinstance(event, LinkUp):
                self._assumed[LinkDown(*cable_of(event))] = None
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
            self._assumed.pop(LinkDown(*cable_of(event)), None)
        elif isinstance(event, SwitchUp):
            self._assumed.pop(SwitchDown(event.dpid), None)
        elif isinstance(event, SwitchDown):
            self._forget_switch(event.dpid)
        return True

    def _forget_switch(self, dpid: int) -> None:
        for event in list(self._assumed):
            if dpid in ((event.dpid_a, event.dpid_b) if isinstance(event, LinkDown) else event[:1]):
                del self._assumed[event]

    def unconfirmed(self) -> list[TopologyEvent]:
        """Return the events that take down what discovery never confirmed, switches last, and assume it no more."""
        events = sorted(self._assumed, key=lambda event: isinstance(event, SwitchDown))
        self._assumed = {}
        return events

    def _tree_of(self, address: bytes, number: int = 0) -> tuple[int, tuple[tuple[Any, ...], ...]] | None:
        """Return the version of a group's tree, or of an alias, and its links; None where there is none."""
        group = self._plane.groups.get(address)
        if group is not None and number:
            group = self._plane.aliases.alias(AliasKey(address, number))
        if group is None:
            return None
        trees = self._plane.islands.trees(group.key)
        links = tuple([link for tree in trees if tree.parent for link in links_of(tree, self._plane.forest.loads)])
        return group.tree_version, links

    def _state_of(self, address: bytes) -> tuple[bool, tuple[tuple[bytes, int], ...]]:
        """Tell whether a group is out, and return the covering trees of channels that are under one by themselves."""
        group = self._plane.groups.get(address)
        if group is None:
            return False, ()
        return group.is_out, tuple(sorted(group.apart.items())) if group.apart is not None else ()

    def _heard_text(self, name: str, address: bytes, dpid: int, now: float) -> str | None:
        """Return the value of what is known of a group at a switch as it is, None where that is nothing."""
        group = self._plane.groups.get(address)
        if is_link_scope_group(address):
            ports = [place for place in self._flood.members(address) if place[0] == dpid]
        else:
            ports = [(dpid, port_no) for port_no in self._registered.ports_at(address, dpid)]
        ports = self._legs.members_at(address, dpid, ports)
        members = self._memberships.of(domain_of(address)).group_texts(address_of(address), ports, now)
        senders = []
        if group is not None and group.senders:
            senders = [_sender_text(key, sender) for key, sender in group.senders.items() if key.dpid == dpid]
        if not members and not senders:
            return None
        return f'{{"group":"{name}","members":[{",".join(members)}],"senders":[{",".join(senders)}]}}'

    def _dpids(self, address: bytes) -> list[int]:
        """Return the switches at which something is known of a group."""
        if is_link_scope_group(address):
            found = {dpid for dpid, _ in self._flood.members(address)}
        else:
            group = self._plane.groups.get(address)
            senders = () if group is None else group.senders
            found = {*self._registered.switches(address), *(key.dpid for key in senders)}
        return sorted(found | self._legs.switches_of(address))

    def groups(self) -> dict[bytes, None]:
        """Return the groups of which something is known, by name."""
        return dict.fromkeys([*self._plane.groups, *self._registered.names(), *self._flood.groups()])

    def group_values(self, address: bytes, now: float) -> list[Record]:
        """Return all values of a group as they are, that of its tree first."""
        tree = self._tree_of(address)
        is_out, apart = self._state_of(address)
        texts = [None if tree is None else _tree_text(address, *tree, is_out=is_out, apart=apart)]
        for number in self._numbers(address):
            alias = self._tree_of(address, number)
            texts.append(None if alias is None else _tree_text(address, *alias, number))
        texts += [self._heard_text(format_ip(address), address, dpid, now) for dpid in self._dpids(address)]
        return [json.loads(text) for text in texts if text is not None]


def _tree_text(
    address: bytes,
    tree_version: int,
    links: Iterable[tuple[Any, ...]],
    number: int = 0,
    *,
    is_out: bool = False,
    apart: Iterable[tuple[bytes, int]] = (),
) -> str:
    ends = ",".join([f"[{link[0]},{link[1]}]" if len(link) == 2 else str([*link]) for link in links])
    alias = f'"number":{number},' if number else ""
    out = ',"out":true' if is_out else ""
    if channels := ",".join([f'["{format_ip(source)}",{cover}]' for source, cover in apart]):
        out += f',"apart":[{channels}]'
    return f'{{"group":"{format_ip(address)}",{alias}"tree_version":{tree_version},"links":[{ends}]{out}}}'


def cover_key(number: int) -> str:
    """Return the key of a covering tree."""
    return f"cover/{number}"


def _cover_entry(covers: Covers, number: int) -> LogEntry:
    cover = covers.trees.get(number)
    value: dict[str, object] | None = None
    if cover is not None:
        value = {"number": number, "links": [list(link) for link in cover.links]}
        if cover.queue_id is not None:
            value["queue"] = cover.queue_id
    return LogEntry.of_record(LogEntryKind.DECISION, cover_key(number), value)


def _sender_text(key: SenderKey, sender: Sender) -> str:
    record = {
        "dpid": key.dpid,
        "port_no": key.port_no,
        "mac": format_mac(key.mac),
        "address": format_ip(key.address),
        "admitted": sender.admitted,
        "rule": sender.rule,
        "rate_bps": sender.rate_bps,
    }
    if sender.alias:
        record["alias"] = sender.alias
    return json.dumps(record, separators=(",", ":"))


def group_of(key: str) -> bytes | None:
    """Return the group that a key of the log is of, None where it is of none."""
    subject, _, rest = key.partition("/")
    if subject not in GROUP_SUBJECTS:
        return None
    try:
        return parse_name(rest.partition("/")[0])
    except ValueError:
        return None


def _take(waiting: dict[Any, None], count: int) -> list[Any]:
    """Take the first few of what waits."""
    taken = list(islice(waiting, count))
    for key in taken:
        del waiting[key]
    return taken
