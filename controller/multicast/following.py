"""What another controller writes to the log is put into a core as it comes, entry by entry: a shadow of the leader's.

Each entry is compared with the one that its key had before, and only what differs is done. Topology comes before
groups, and the tree of a group after its members.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from controller.effects import Notice
from controller.kernel.domains import OWN_DOMAIN, domain_of
from controller.kernel.vlan_ports import VlanPorts
from controller.log import LogEntry
from controller.maintenance.model import read_campaign, read_work
from controller.membership.events import InterestChanged, MembershipEffect
from controller.membership.journal import forget
from controller.multicast.callbacks import Perform
from controller.multicast.campaigns import Campaigns
from controller.multicast.edge_ports import EdgePorts
from controller.multicast.fabric import FabricFollower
from controller.multicast.group import Sender, SenderKey
from controller.multicast.groups import GroupPlane
from controller.multicast.journal import GROUP_SUBJECTS, MulticastJournal, group_of
from controller.multicast.membership_effects import MembershipEffects
from controller.multicast.memberships import Memberships
from controller.multicast.operator_records import OperatorRecords
from controller.multicast.operator_settings import read_pin, read_router_port, read_static_member
from controller.multicast.pending_writes import PendingWrites
from controller.multicast.registered import RegisteredGroups
from controller.multicast.restored import (
    UNCHOSEN_TREE,
    UNREADABLE,
    LoggedGroup,
    LoggedSwitch,
    Record,
    RestoredGroup,
    RestoredTree,
    is_in_domain,
    read_alias,
    read_cover,
    read_heard,
    read_logged_link,
    read_switch_ports,
    read_tree,
    read_vlan,
)
from controller.multicast.senders import SenderTable
from controller.multicast.static_members import StaticMembers
from controller.multicast.swapping import Swapping
from topology.events import LinkDown, PortRole, PortRoleChanged, SwitchDown, TopologyEvent
from topology.live import LiveFabric

ENTRY_COST, MEMBER_COST, SENDER_COST, GROUP_COST = 2, 8, 20, 40

_STAGES: Mapping[str, int] = {
    "static-member": 0,
    "router-port": 0,
    "drain": 0,
    "pin": 0,
    "label": 0,
    "address": 0,
    "maintenance": 0,
    "maintenance-switch": 0,
    "switch": 1,
    "link": 2,
    "cover": 2,
    "routers": 3,
    "vlan-routers": 3,
}
"""What is taken in before what else, by subject; groups come last."""

_TIMES = ("remaining_s", "group_s", "v1_s", "older_s", "routers", "joins", "prunes")
_LISTED: Mapping[str, tuple[str, ...]] = {
    "routers": ("address", "mac", "asks", "dr_priority"),
    "joins": ("router", "source", "upstream"),
    "prunes": ("router", "source", "upstream"),
}


_Said: TypeAlias = dict[str, Any]
"""A record of a membership core."""


class _Differences(NamedTuple):
    """Members, routers or queriers, as records of a membership core, that are no more and that are new."""

    gone: list[_Said]
    came: list[_Said]


class Following:
    """Keeps a core as the log has it.

    Entries that wait are bounded by the keys of the log, of each of which the last one waits.
    """

    def __init__(
        self,
        fabric: LiveFabric,
        topology: FabricFollower,
        vlan_ports: VlanPorts,
        plane: GroupPlane,
        swapping: Swapping,
        registered: RegisteredGroups,
        memberships: Memberships,
        static: StaticMembers,
        records: OperatorRecords,
        campaigns: Campaigns,
        senders: SenderTable,
        edge_ports: EdgePorts,
        following_members: MembershipEffects,
        journal: MulticastJournal,
        pending_writes: PendingWrites,
        perform: Perform,
    ) -> None:
        self._fabric = fabric
        self._topology = topology
        self._vlan_ports = vlan_ports
        self._plane = plane
        self._swapping = swapping
        self._registered = registered
        self._memberships = memberships
        self._static = static
        self._campaigns = campaigns
        self._senders = senders
        self._edge_ports = edge_ports
        self._following_members = following_members
        self._journal = journal
        self._pending_writes = pending_writes
        self._perform = perform
        self._entries: dict[str, LogEntry] = {}
        self._waiting: list[dict[str, LogEntry]] = [{}, {}, {}, {}]
        self._groups: dict[bytes, dict[str, LogEntry]] = {}
        self._trees: dict[bytes, dict[int, RestoredTree]] = {}
        self._heard: dict[bytes, dict[str, LoggedGroup]] = {}
        self._partial: dict[bytes, None] = {}
        self._unreadable: dict[str, None] = {}
        self._appliers: dict[str, Callable[[Any, Any, float], None]] = {
            "static-member": self._static_member,
            "router-port": self._router_port,
            "drain": self._drain,
            "pin": self._pin,
            **records.followed,
            "maintenance": self._maintenance,
            "maintenance-switch": self._maintenance_switch,
            "switch": self._switch,
            "link": self._link,
            "cover": self._cover,
            "routers": self._routers,
            "vlan-routers": self._routers,
        }

    def __bool__(self) -> bool:
        """Tell whether something waits."""
        return bool(self._groups) or any(self._waiting)

    def take(self, entries: Iterable[LogEntry]) -> None:
        """Take entries in, to be put into the core by `step`."""
        for entry in entries:
            stage = _STAGES.get(entry.subject)
            if stage is not None:
                self._waiting[stage][entry.key] = entry
            elif (address := group_of(entry.key)) is not None:
                self._groups.setdefault(address, {})[entry.key] = entry
            elif entry.subject in GROUP_SUBJECTS:
                self._unread(entry)
            else:
                self._journal.foreign.take(entry)

    def step(self, now: float) -> int:
        """Put what waits longest of the first kind into the core; return what that cost."""
        for waiting in self._waiting:
            if waiting:
                self._enter(waiting.pop(next(iter(waiting))), now)
                return ENTRY_COST
        address = next(iter(self._groups))
        return self._follow_group(address, self._groups.pop(address), now)

    def adopt_again(self) -> None:
        """Have all groups get the trees that the log says, since they have others."""
        for address in self._trees:
            self._groups.setdefault(address, {})

    def end(self, now: float) -> Iterator[int]:
        """Have the log told in which the core differs from it, step by step; what each costs is yielded."""
        self._journal.trees_known(_as_group(address, trees) for address, trees in self._trees.items())
        for entry in self._entries.values():
            self._journal.was_read(entry, now)
            yield 1
        self._perform(self._journal.foreign_told())
        if self._unreadable:
            self._pending_writes.begin_anew(now)
            count = len(self._unreadable)
            text = f"{count} entries of the log cannot be read: their hosts must report again."
            self._perform([Notice("journal-faulty", text, (("records", count),))])

    def _unread(self, entry: LogEntry) -> None:
        if entry.text is None:
            self._unreadable.pop(entry.key, None)
        else:
            self._unreadable[entry.key] = None

    def _known(self, entry: LogEntry) -> Record | None:
        """Return the value that an entry's key had before."""
        before = self._entries.get(entry.key)
        return None if before is None else before.value

    def _kept(self, entry: LogEntry, value: Record | None) -> None:
        """Take it that an entry is in the core."""
        self._journal.fields.read(entry, value)
        self._unreadable.pop(entry.key, None)
        if entry.text is None:
            self._entries.pop(entry.key, None)
        else:
            self._entries[entry.key] = entry

    def _is_known(self, entry: LogEntry) -> bool:
        before = self._entries.get(entry.key)
        return (None if before is None else before.text) == entry.text and entry.key not in self._unreadable

    def _enter(self, entry: LogEntry, now: float) -> None:
        """Put an entry that is of no group into the core."""
        if self._is_known(entry):
            return
        value = entry.value
        try:
            self._appliers[entry.subject](self._known(entry), value, now)
        except UNREADABLE:
            self._unread(entry)
        else:
            self._kept(entry, value)

    # What operators set

    def _static_member(self, before: Record | None, value: Record | None, now: float) -> None:
        if before is not None:
            self._static.remove(_static_key(before), now)
        if value is not None:
            self._static.add(_static_key(value), now)

    def _router_port(self, before: Record | None, value: Record | None, now: float) -> None:
        own = self._memberships.own
        for each, is_declared in ((before, False), (value, True)):
            if each is not None:
                key = read_router_port(each["dpid"], each["port_no"], each["family"])
                self._following_members.apply(own.declare_router_port(*key, is_declared, now), now)

    def _drain(self, before: Record | None, value: Record | None, now: float) -> None:
        for each, is_drained in ((before, False), (value, True)):
            if each is not None:
                self._topology.set_drained(int(each["dpid"]), is_drained, now)

    def _pin(self, before: Record | None, value: Record | None, _now: float) -> None:
        for each, is_pinned in ((before, False), (value, True)):
            if each is not None:
                self._swapping.pin(read_pin(each["group"]), is_pinned)

    def _maintenance(self, _before: Record | None, value: Record | None, _now: float) -> None:
        if value is not None:
            read_campaign(value)
        self._campaigns.follow(0, value)

    def _maintenance_switch(self, before: Record | None, value: Record | None, _now: float) -> None:
        for each in (before, value):
            if each is not None:
                self._campaigns.follow(read_work(each).dpid, value)

    # Topology

    def _switch(self, before: Record | None, value: Record | None, now: float) -> None:
        """Follow a switch and what its ports lead to; ports to hosts are not served yet."""
        known = None if value is None else read_switch_ports(value)
        former = None if before is None else read_switch_ports(before)
        dpid = (known or former or LoggedSwitch(0, None, {})).dpid
        fabric = self._fabric
        events: list[TopologyEvent] = []
        if fabric.ofp_version(dpid) is not None and (known is None or known.up is None):
            events.append(SwitchDown(dpid))
        if known is not None and known.up is not None:
            events.append(known.up)
        roles = {} if known is None else known.roles
        for port_no in {} if former is None else former.roles:
            if port_no not in roles:
                events.append(PortRoleChanged(dpid, port_no, PortRole.DOWN))
        events += [PortRoleChanged(dpid, port_no, role) for port_no, role in roles.items()]
        self._apply(events, now)
        for port_no, role in roles.items():
            if role is PortRole.EDGE:
                self._edge_ports.suspended(dpid, port_no, now)

    def _link(self, before: Record | None, value: Record | None, now: float) -> None:
        former = None if before is None else read_logged_link(before)
        known = None if value is None else read_logged_link(value)
        events: list[TopologyEvent] = []
        if former is not None and (known is None or known[:4] != former[:4]):
            events.append(LinkDown(*former[:4]))
        if known is not None:
            events.append(known)
        self._apply(events, now)

    def _cover(self, before: Record | None, value: Record | None, _now: float) -> None:
        """Follow a covering tree; groups that were under one that is no more have other trees in the log."""
        if value is not None:
            self._plane.covers.restore([read_cover(value)])
        elif before is not None:
            self._plane.covers.remove(read_cover(before).number)

    def _apply(self, events: list[TopologyEvent], now: float) -> None:
        for event in events:
            if isinstance(event, LinkDown | SwitchDown) or getattr(event, "role", None) is PortRole.DOWN:
                self._journal.confirm(event)
            else:
                self._journal.assume((event,))
            self._topology.apply(event, now)
        for address in self._partial:
            self._groups.setdefault(address, {})
        self._partial.clear()

    # Routers and groups

    def _routers(self, before: Record | None, value: Record | None, now: float) -> None:
        at = value or before or {}
        vlan_id = read_vlan(at["vlan"]) if "vlan" in at else OWN_DOMAIN
        former, known = ([] if each is None else list(each["records"]) for each in (before, value))
        self._follow_records(_differences(former, known), vlan_id, now)

    def _follow_group(self, address: bytes, entries: Mapping[str, LogEntry], now: float) -> int:
        """Follow what is known of a group; its trees are those of the log whatever its members made of them."""
        vlan_id = domain_of(address)
        before, aliases = self._known_of(address), self._aliases(address)
        for entry in entries.values():
            if not self._is_known(entry):
                value = entry.value
                try:
                    self._take(address, entry, value)
                except UNREADABLE:
                    self._unread(entry)
                else:
                    self._kept(entry, value)
        heard = self._known_of(address)
        gone, came = _changed_parts(before, heard)
        differences = _differences([*_members(gone)], [*_members(came)])
        with self._swapping.slots.putting_back(self._registered.carrier(address), address in self._trees):
            self._follow_records(differences, vlan_id, now)
        left, new = dict(_senders(gone)), dict(_senders(came))
        if aliases != (kept := self._aliases(address)):
            left, new = dict(_senders(before.values())), dict(_senders(heard.values()))
        for key, sender in left.items():
            if new.get(key) != sender or aliases != kept:
                self._perform(self._senders.forget(address, key, now))
        if aliases != kept:
            self._plane.aliases.follow(address, kept, now)
        for key, sender in new.items():
            if (left.get(key) != sender or aliases != kept) and self._vlan_ports.has(key.dpid, key.port_no, vlan_id):
                self._perform(self._senders.restore(address, key, sender, now))
        self._adopt(address, now)
        carrier = self._registered.carrier(address)
        if carrier != address and entries:
            self._groups.setdefault(carrier, {})
        return GROUP_COST + MEMBER_COST * sum(map(len, differences)) + SENDER_COST * len(new)

    def _known_of(self, address: bytes) -> dict[str, LoggedGroup]:
        return dict(self._heard.get(address, {}))

    def _aliases(self, address: bytes) -> list[tuple[int, int]]:
        """Return the numbers and versions of a group's further trees in the log."""
        trees = self._trees.get(address, {})
        return sorted((number, tree.tree_version) for number, tree in trees.items() if number)

    def _take(self, address: bytes, entry: LogEntry, value: Record | None) -> None:
        """Know an entry of a group; ValueError, or the like, where it cannot be read."""
        if entry.subject == "heard":
            if value is None:
                known = self._heard.get(address, {})
                known.pop(entry.key, None)
            else:
                named, heard = read_heard(value)
                _is_of(named, address)
                self._heard.setdefault(address, {})[entry.key] = heard
                return
            if not known:
                self._heard.pop(address, None)
            return
        number = 0 if entry.subject == "tree" else int(entry.key.rpartition("/")[2])
        if value is not None:
            named, tree = read_alias(value) if number else read_tree(value)
            _is_of(named, address)
            self._trees.setdefault(address, {})[tree.number] = tree
        elif address in self._trees:
            self._trees[address].pop(number, None)
            if not self._trees[address]:
                del self._trees[address]

    def _adopt(self, address: bytes, now: float) -> None:
        """Give a group the trees of the log; what cannot be had of them is tried again when links have changed."""
        self._partial.pop(address, None)
        trees = {0: UNCHOSEN_TREE, **self._trees.get(address, {})}
        self._swapping.restore(address, trees[0].is_out)
        if address not in self._plane.groups:
            if 0 not in self._trees.get(address, ()):
                self._swapping.forget(address)
            return
        for number, tree in sorted(trees.items()):
            self._perform(self._plane.adopt(address, tree.links, tree.tree_version, now, number, tree.apart))
            held = {frozenset(link[:2]) for link in self._journal.tree_links(address, number)}
            if any(frozenset(link[:2]) not in held for link in tree.links):
                self._partial[address] = None

    def _follow_records(self, differences: _Differences, vlan_id: int, now: float) -> None:
        came = [record for record in differences.came if is_in_domain(record, vlan_id, self._vlan_ports)]
        if not (came or differences.gone):
            return
        membership = self._memberships.of(vlan_id)
        effects = forget(membership, differences.gone, now) + membership.restore(came, now)
        self._following_members.apply(_last_interests(effects), now, vlan_id=vlan_id)


def _static_key(value: Record) -> tuple[int, int, bytes]:
    return read_static_member(value["dpid"], value["port_no"], value["group"])


def _is_of(named: bytes, address: bytes) -> None:
    """ValueError where a value is of another group than its key."""
    if named != address:
        raise ValueError("another group")


def _changed_parts(
    before: Mapping[str, LoggedGroup], now: Mapping[str, LoggedGroup]
) -> tuple[list[LoggedGroup], list[LoggedGroup]]:
    """Return what was known of a group by keys that have another value now, and what is by these."""
    keys = [key for key in {**before, **now} if before.get(key) is not now.get(key)]
    return [before[key] for key in keys if key in before], [now[key] for key in keys if key in now]


def _members(parts: Iterable[LoggedGroup]) -> Iterator[_Said]:
    for part in parts:
        yield from part.members


def _senders(parts: Iterable[LoggedGroup]) -> Iterator[tuple[SenderKey, Sender]]:
    for part in parts:
        yield from part.senders


def _as_group(address: bytes, trees: Mapping[int, RestoredTree]) -> RestoredGroup:
    """Return trees of a group as those of an earlier run."""
    own = trees.get(0, UNCHOSEN_TREE)
    aliases = tuple(tree for number, tree in trees.items() if number)
    return RestoredGroup(address, own.tree_version, own.links, (), (), aliases, own.is_out, own.apart)


def _differences(before: list[_Said], now: list[_Said]) -> _Differences:
    """Return how records differ, but for the times that are left: who wrote them counted these on from then."""
    former, known = ({_substance(record): record for record in records} for records in (before, now))
    gone = [record for substance, record in former.items() if substance not in known]
    return _Differences(gone, [record for substance, record in known.items() if substance not in former])


def _substance(record: _Said) -> str:
    """Return what a record says beside times; all of one that cannot be read."""
    try:
        said = {name: value for name, value in record.items() if name not in _TIMES}
        if "sources" in said:
            said["sources"] = sorted(said["sources"])
        for name, parts in _LISTED.items():
            if name in record:
                said[name] = [[each.get(part) for part in parts] for each in record[name]]
    except UNREADABLE:
        return json.dumps(record, sort_keys=True)
    return json.dumps(said, sort_keys=True)


def _last_interests(effects: list[MembershipEffect]) -> list[MembershipEffect]:
    """Leave out what a port wanted of a group before it wanted something else."""
    last = {effect[:3]: at for at, effect in enumerate(effects) if isinstance(effect, InterestChanged)}
    return [
        effect
        for at, effect in enumerate(effects)
        if not isinstance(effect, InterestChanged) or last[effect[:3]] == at
    ]
