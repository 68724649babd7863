"""Static members: ports that are given a group whatever their hosts say, by the policy file or by operators."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum
from typing import Any, NamedTuple

from controller.config.policy import StaticMember
from controller.kernel.domains import address_of, domain_of
from controller.kernel.vlan_ports import VlanPorts
from controller.membership.events import ANY_SOURCE
from controller.multicast.callbacks import PolicyInForce
from controller.multicast.change_feed import ChangeFeed
from controller.multicast.group_changes import GroupChanges
from controller.multicast.legs import MemberLegs
from controller.multicast.memberships import Memberships
from controller.multicast.preemption import Preemption
from controller.multicast.registered import RegisteredGroups
from controller.multicast.room import Room
from controller.multicast.switches import Switches
from controller.wire.addresses import format_ip
from topology.aggregations import Place
from topology.events import PortRole
from topology.live import LiveFabric

Key = tuple[int, int, bytes]
"""A static member: dpid, port number and group."""


class SetBy(StrEnum):
    """Who gives a port a group; where both do, the policy is named."""

    POLICY = "policy"
    OPERATOR = "operator"


class _Given(NamedTuple):
    """Who gives a port a group: operators, and the line of the policy that does, None where none does."""

    by_operator: bool = False
    policy_line: int | None = None


class StaticMembers:
    """The static members of both kinds, and which of them are served.

    One is served while its port leads to hosts and has fewer than `limits.groups_per_port` of them, and there is room
    for its group; else it waits, and is served as soon as that holds. What is served stays so when a limit is
    lowered. `served` also holds those of ports whose switch is gone for now, for their entries may be in use there.
    """

    def __init__(
        self,
        policy: PolicyInForce,
        fabric: LiveFabric,
        switches: Switches,
        vlan_ports: VlanPorts,
        registered: RegisteredGroups,
        room: Room,
        memberships: Memberships,
        legs: MemberLegs,
        preemption: Preemption,
        group_changes: GroupChanges,
        feed: ChangeFeed,
    ) -> None:
        self._policy = policy
        self._fabric = fabric
        self._switches = switches
        self._vlan_ports = vlan_ports
        self._registered = registered
        self._room = room
        self._memberships = memberships
        self._legs = legs
        self._preemption = preemption
        self._group_changes = group_changes
        self._feed = feed
        self.served: set[Key] = set()
        self._given: dict[int, dict[int, dict[bytes, _Given]]] = {}
        self._places: dict[bytes, set[Place]] = {}
        self.operator_count = 0
        for member in policy().static_members:
            self._set(member.port.dpid, member.port.port_no, member.group, policy_line=member.line)

    # What is set

    def by_operator(self) -> Iterator[Key]:
        """Yield those that operators set."""
        for dpid, ports in self._given.items():
            for port_no, groups in ports.items():
                yield from ((dpid, port_no, group) for group, given in groups.items() if given.by_operator)

    def is_by_operator(self, key: Key) -> bool:
        """Tell whether operators set a static member."""
        return self._of(key).by_operator

    def policy_line(self, key: Key) -> int | None:
        """Return the line of the policy that sets a static member, None where none does."""
        return self._of(key).policy_line

    def groups(self) -> Collection[bytes]:
        """Return the groups that have static members."""
        return self._places.keys()

    def groups_at(self, dpid: int) -> set[bytes]:
        """Return the groups with static members at the ports of a switch."""
        return {group for groups in self._given.get(dpid, {}).values() for group in groups}

    def is_known(self, dpid: int) -> bool:
        """Tell whether a switch that is not connected may be awaited: the policy, or the fabric of before, has it."""
        return dpid in self._switches.gone or dpid in self._policy().known_switches()

    def count_at(self, dpid: int, port_no: int) -> int:
        """Return how many groups a port is given."""
        return len(self._at(dpid, port_no))

    # Changes

    def restore(self, keys: Iterable[Key]) -> None:
        """Take over what operators set in an earlier run."""
        for dpid, port_no, group in keys:
            self._set(dpid, port_no, group, by_operator=True)

    def add(self, key: Key, now: float) -> None:
        """Take what an operator sets."""
        self._set(*key, by_operator=True)
        self._serve(key, now)
        self._touch(key, now)

    def remove(self, key: Key, now: float) -> None:
        """Forget what an operator set; what the policy sets too stays."""
        self._unset(key, self._of(key)._replace(by_operator=False), now)

    def policy_loaded(self, members: Iterable[StaticMember], now: float) -> None:
        """Take what another policy sets: what it has no more ends, what is new begins, what stays is not touched."""
        wanted = {(*member.port, member.group): member.line for member in members}
        old = [key for key in self._all() if self.policy_line(key) is not None and key not in wanted]
        for (dpid, port_no, group), line in wanted.items():
            self._set(dpid, port_no, group, policy_line=line)
        for key in old:
            self._unset(key, self._of(key)._replace(policy_line=None), now)
        self._retry(self._all(), now)

    # What becomes of ports and of room

    def port_added(self, dpid: int, port_no: int, now: float) -> None:
        """Serve what a port that leads to hosts is given."""
        for group in list(self._at(dpid, port_no)):
            self._serve((dpid, port_no, group), now)
            self._touch((dpid, port_no, group), now)

    def port_removed(self, dpid: int, port_no: int, now: float) -> None:
        """Serve what a port is given no more, for now."""
        for group in list(self._at(dpid, port_no)):
            self._end((dpid, port_no, group), now)
            self._touch((dpid, port_no, group), now)

    def room_made(self, group: bytes, now: float) -> None:
        """Serve a group that waited for room, at all ports that are given it."""
        self._retry([(*place, group) for place in sorted(self._places.get(group, ()))], now)

    # What operators are shown

    def of_group(self, group: bytes) -> list[dict[str, Any]]:
        """Return the ports that are given a group, who sets it, and what those that are not served wait for."""
        return [
            {"dpid": dpid, "port_no": port_no, **self.state((dpid, port_no, group))}
            for dpid, port_no in sorted(self._places.get(group, ()))
        ]

    def of_port(self, dpid: int, port_no: int) -> list[dict[str, Any]]:
        """Return the groups that a port is given, in the same way."""
        return [
            {"group": format_ip(group), **self.state((dpid, port_no, group))}
            for group in sorted(self._at(dpid, port_no))
        ]

    def state(self, key: Key) -> dict[str, Any]:
        """Return who sets a static member, whether it is served, and what it waits for otherwise."""
        reason = self._waiting_for(key)
        set_by = SetBy.OPERATOR if self.policy_line(key) is None else SetBy.POLICY
        return {"set_by": set_by.value, "served": reason is None, "waiting_for": reason}

    def waiting_count(self) -> int:
        """Return how many are not served for now."""
        leads_to_hosts = self._switches.leads_to_hosts
        return sum(
            len(groups)
            if not leads_to_hosts((dpid, port_no))
            else sum((dpid, port_no, group) not in self.served for group in groups)
            for dpid, ports in self._given.items()
            for port_no, groups in ports.items()
        )

    def _waiting_for(self, key: Key) -> str | None:
        dpid, port_no, group = key
        place, spoken = key[:2], self._feed.names.spoken
        is_edge = self._switches.leads_to_hosts(place)
        if is_edge and key in self.served:
            return None
        if dpid not in self._switches.connected:
            return spoken(f"switch {dpid} is not connected")
        if port_no not in self._switches.ports(dpid):
            return spoken(f"switch {dpid} has no port {port_no}")
        if self._fabric.role(dpid, port_no) is PortRole.TRUNK:
            return spoken(f"port {dpid}:{port_no} leads to another switch")
        if is_edge and not self._is_in_domain(key):
            vlan_id = domain_of(group)
            domain = f"VLAN {vlan_id}" if vlan_id else "the fabric's own domain, but in VLANs alone"
            return spoken(f"port {dpid}:{port_no} is not in {domain}")
        if is_edge and self._is_full(dpid, port_no):
            limit = self._policy().limits.groups_per_port
            return spoken(f"port {dpid}:{port_no} is given {limit} groups, as many as limits.groups_per_port allows")
        if is_edge and not self._room.has(self._registered.carrier(group)):
            return f"{self._policy().limits.groups} groups have a tree, as many as limits.groups allows"
        return spoken(f"port {dpid}:{port_no} leads to no hosts yet")

    # Inner workings

    def _all(self) -> list[Key]:
        return [
            (dpid, port_no, group)
            for dpid, ports in self._given.items()
            for port_no, groups in ports.items()
            for group in groups
        ]

    def _at(self, dpid: int, port_no: int) -> dict[bytes, _Given]:
        return self._given.get(dpid, {}).get(port_no, {})

    def _of(self, key: Key) -> _Given:
        return self._at(*key[:2]).get(key[2], _Given())

    def _set(self, dpid: int, port_no: int, group: bytes, **by: Any) -> None:
        groups = self._given.setdefault(dpid, {}).setdefault(port_no, {})
        before = groups.get(group, _Given())
        groups[group] = after = before._replace(**by)
        self.operator_count += after.by_operator - before.by_operator
        self._places.setdefault(group, set()).add((dpid, port_no))

    def _unset(self, key: Key, left: _Given, now: float) -> None:
        dpid, port_no, group = key
        groups = self._given[dpid][port_no]
        self.operator_count += left.by_operator - groups[group].by_operator
        if left != _Given():
            groups[group] = left
        else:
            del groups[group]
            self._places[group].discard((dpid, port_no))
            if not self._places[group]:
                del self._places[group]
            if not groups:
                del self._given[dpid][port_no]
            if not self._given[dpid]:
                del self._given[dpid]
            self._end(key, now)
            self._retry([(dpid, port_no, other) for other in groups], now)
        self._touch(key, now)

    def _is_in_domain(self, key: Key) -> bool:
        dpid, port_no, group = key
        vlan_ports = self._vlan_ports
        return not vlan_ports.is_used or domain_of(group) in vlan_ports.of(dpid, port_no).vlans()

    def _is_full(self, dpid: int, port_no: int) -> bool:
        served = sum((dpid, port_no, group) in self.served for group in self._at(dpid, port_no))
        return served >= self._policy().limits.groups_per_port

    def _serve(self, key: Key, now: float) -> None:
        """Give a port its group if it leads to hosts and there is room; anew if its switch was gone meanwhile."""
        dpid, port_no, group = key
        room = self._room
        if not self._switches.leads_to_hosts((dpid, port_no)) or not self._is_in_domain(key):
            return
        if key not in self.served:
            carrier = self._registered.carrier(group)
            if self._is_full(dpid, port_no) or room.refuses(carrier, receives=True):
                return
            room.promise(carrier)
            self.served.add(key)
        self._legs.interest_changed((dpid, port_no), group, ANY_SOURCE, now)
        self._preemption.settle(now)

    def _end(self, key: Key, now: float) -> None:
        """Leave a port with what its hosts want."""
        if key not in self.served:
            return
        self.served.discard(key)
        dpid, port_no, group = key
        interest = self._memberships.of(domain_of(group)).interest(dpid, port_no, address_of(group))
        self._legs.interest_changed((dpid, port_no), group, interest, now)

    def _retry(self, keys: Iterable[Key], now: float) -> None:
        """Serve what waited, as far as that can be now."""
        for key in keys:
            if key not in self.served:
                self._serve(key, now)
                self._touch(key, now)

    def _touch(self, key: Key, now: float) -> None:
        self._group_changes.changed(key[2], now)
        self._feed.ports.touch(key[:2])
