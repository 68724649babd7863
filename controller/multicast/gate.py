"""Who may receive and send: the policy, the bound on groups, and addresses that belong elsewhere."""

from __future__ import annotations

from collections.abc import Callable

from controller.admission.admission import Admission
from controller.admission.host import Decision, Host, HostLike
from controller.admission.marks import UNMARKED, Mark, Marks
from controller.config.marking import Marking, marking_of
from controller.config.policy import Policy, Role
from controller.kernel.domains import SUFFIXES, address_of, domain_of, in_domain
from controller.membership.events import HostRef
from controller.multicast.effects import Audit
from controller.multicast.group import SenderKey
from controller.multicast.groups import GroupPlane
from controller.multicast.registered import RegisteredGroups
from controller.multicast.room import Room
from controller.multicast.swap_slots import SwapSlots
from controller.wire.addresses import LINK_SCOPE_BYTES, format_ip, format_mac, is_link_scope_group
from topology.host_names import shared_name
from topology.live import LiveFabric

SPOOFED = "(spoofed)"
"""Stands for the rule that refuses a receiver or sender whose addresses belong elsewhere."""


NO_ROOM = Decision(False, "limits.groups", "as many groups as the policy allows have a tree")
"""Refuses the receivers and senders of a group that must wait."""

REGISTERED = "vlans.mvr"
"""Stands for the rule that refuses senders of a group in VLANs that get it from another."""

NOT_JUDGED = Decision(False, "(waiting)", "the policy that was loaded just now admits it: it is served in a moment")
"""Says why a receiver is refused still that the policy in force admits."""

_RECEIVER = Role.RECEIVER
_new = tuple.__new__  # what a named tuple's own constructor does, for a third of its time


class Gate:
    """Admits receivers and senders, as far as there are `room` and `slots`, and has every decision audited.

    `is_judging` while members may wait to be judged by the policy in force.
    """

    def __init__(
        self,
        policy: Policy,
        plane: GroupPlane,
        registered: RegisteredGroups,
        fabric: LiveFabric,
        slots: SwapSlots,
        audit: Callable[[Audit], None],
        group_refused: Callable[[bytes], None],
    ) -> None:
        self.admission = Admission(policy)
        self.marks = Marks(marking_of(policy))
        self.room = Room(plane, policy.limits.groups)
        self.slots = slots
        self._plane = plane
        self._registered = registered
        self._fabric = fabric
        self._audit = audit
        self._group_refused = group_refused
        self._generation = 0
        self.is_judging = False
        self.mark_by(marking_of(policy))

    def replace(self, policy: Policy, decides_otherwise: bool = True) -> bool:
        """Decide by another policy from now on; False where it says nothing else, not even in its reasons."""
        self.room.bound = policy.limits.groups
        self._generation += decides_otherwise
        return self.admission.replace(policy)

    def mark_by(self, marking: Marking) -> bool:
        """Mark packets, and have groups wait in queues, as this says; False where it says what was so before."""
        is_otherwise = self.marks.replace(marking)
        self._plane.rules.queue_of_group = self.marks.queue_of_group if marking.has_queues else None
        return is_otherwise

    def receivers_in(self, vlan_id: int) -> ReceiverGate:
        """Return what decides who may receive in a domain."""
        return ReceiverGate(self, self._registered, self._audit, self._group_refused, vlan_id)

    def would_admit(self, host: HostRef, group: bytes, source: bytes | None) -> bool:
        """Tell what `admit` would say where there is room; this counts as no decision."""
        return self.said(host, group, source).admit

    def refusal(self, host: HostRef, group: bytes, source: bytes | None) -> Decision:
        """Return why a receiver is refused; this counts as no decision."""
        decision = self.said(host, group, source)
        if not decision.admit:
            return decision
        if self.is_judging:
            return NOT_JUDGED
        return self.slots.refusal(self._registered.carrier(group), host) or NO_ROOM

    def said(self, host: HostRef, group: bytes, source: bytes | None) -> Decision:
        """Return what is decided of a receiver where there is room; this counts as no decision."""
        if host.spoofed:
            return self.spoofed(host, domain_of(group))
        return self.admission.explain(host, address_of(group), _RECEIVER, source, domain_of(group))

    def decide_sender(self, key: SenderKey, group: bytes) -> Decision:
        """Decide whether a sender may feed a group."""
        host: HostLike = self.host(key)
        if (registered := self._comes_from_elsewhere(group)) is not None:
            decision = registered
        elif self._is_over_bound(group):
            decision = NO_ROOM
        else:
            decision = self.admission.decide(host, address_of(group), Role.SENDER, None, domain_of(group))
            if decision.admit:
                self.room.served(group)
        self._audit(Audit(decision, host, group, Role.SENDER, None))
        return decision

    def sender_decision(self, key: SenderKey, group: bytes) -> Decision:
        """Return what `decide_sender` would; this counts as no decision."""
        if (registered := self._comes_from_elsewhere(group)) is not None:
            return registered
        if self._is_over_bound(group):
            return NO_ROOM
        host: HostLike = self.host(key)
        return self.admission.explain(host, address_of(group), Role.SENDER, None, domain_of(group))

    def mark_of(self, key: SenderKey, group: bytes) -> Mark:
        """Return the service class of a sender, and the code point that its packets get."""
        return self.marks.of(self.host(key), address_of(group)) if self.marks.are_used else UNMARKED

    def gave_way(self, key: SenderKey, group: bytes) -> None:
        """Have it audited that a sender is refused from now on, for its group gave way to another."""
        self._audit(Audit(NO_ROOM, self.host(key), group, Role.SENDER, None))

    def host(self, key: SenderKey) -> Host:
        """Return a sender as rules are about it: by the port that stands for all of its link aggregation group."""
        return Host(key.mac, key.address, *self._fabric.aggregations.home((key.dpid, key.port_no)))

    def _comes_from_elsewhere(self, group: bytes) -> Decision | None:
        """Return the refusal of all senders of a group whose receivers get that of another VLAN; None for others."""
        found = self._registered.registration(group)
        if found is None:
            return None
        reason = f"receivers here get the group from VLAN {found.source_vlan}, by the entry on line {found.line}"
        return Decision(False, REGISTERED, reason)

    def _is_over_bound(self, group: bytes) -> bool:
        """Tell whether there is no room for a group that has senders alone."""
        if not self.room.refuses(group, False):
            return False
        self._group_refused(group)
        return True

    def is_sender_spoofed(self, key: SenderKey, vlan_id: int) -> bool:
        """Tell whether the sender's addresses are known to be somewhere else; routers speak for others."""
        if self._is_behind_router(key, vlan_id):
            return False
        mac, address = in_domain(key.mac, vlan_id), in_domain(key.address, vlan_id)
        return self.is_spoofed(mac, address, key.dpid, key.port_no)

    def is_sender_bound(self, key: SenderKey, vlan_id: int) -> bool:
        """Tell whether the sender is known to be where it sends from, with the address that it uses."""
        mac, address = in_domain(key.mac, vlan_id), in_domain(key.address, vlan_id)
        return self._is_behind_router(key, vlan_id) or self.is_bound(mac, address, key.dpid, key.port_no)

    def spoofed(self, host: HostRef, vlan_id: int = 0) -> Decision:
        """Return why a host with a false address is refused."""
        owner, address = self._fabric.host_by_ip(in_domain(host.ip, vlan_id), host.dpid), format_ip(host.ip)
        if owner is None or shared_name(owner.mac) == in_domain(host.mac, vlan_id):
            return Decision(False, SPOOFED, f"{address} was another host's and is not known to be this one's own")
        place = f"port {owner.dpid}:{owner.port_no}"
        return Decision(False, SPOOFED, f"{address} belongs to {format_mac(shared_name(owner.mac))} at {place}")

    def _is_behind_router(self, key: SenderKey, vlan_id: int) -> bool:
        home = self._fabric.aggregations.home((key.dpid, key.port_no))
        return self._plane.routers.has(*home, 4 if len(key.address) == 4 else 6, vlan_id)

    # Bindings of receivers, by the names of their addresses

    def is_spoofed(self, mac: bytes, ip: bytes, dpid: int, port_no: int) -> bool:
        """Tell whether the MAC address is known to live elsewhere, or the IP address to be another's."""
        return self._fabric.binding_conflict(mac, ip, dpid, port_no)

    def is_bound(self, mac: bytes, ip: bytes, dpid: int, port_no: int) -> bool:
        """Tell whether the MAC address is known to be at the port and to hold the IP address."""
        return ip in (self.known(mac, dpid, port_no) or ())

    def known(self, mac: bytes, dpid: int, port_no: int) -> tuple[bytes, ...] | None:
        """Return the IP addresses that the MAC address holds at the port; None where it is not known there."""
        host = self._fabric.host_near(mac, dpid)
        is_there = host is not None and self._fabric.is_one_port((host.dpid, host.port_no), (dpid, port_no))
        return host.addresses if host is not None and is_there else None

    def standing(self, ref: HostRef) -> tuple[int, int]:
        """Return the number of the policy that decides, and its rules about a host, one bit each."""
        return self._generation, self.admission.rules_about(ref)


class ReceiverGate:
    """Decides who may receive in one domain, as a gate says; VLAN 0 is the fabric's own."""

    def __init__(
        self,
        gate: Gate,
        registered: RegisteredGroups,
        audit: Callable[[Audit], None],
        group_refused: Callable[[bytes], None],
        vlan_id: int,
    ) -> None:
        self._gate = gate
        self._decide = gate.admission.decide
        self._room = gate.room
        self._slots = gate.slots
        self._registered = registered
        self._audit = audit
        self._group_refused = group_refused
        self._vlan_id, self._suffix = vlan_id, SUFFIXES[vlan_id]

    def admit(self, host: HostRef, address: bytes, source: bytes | None) -> bool:
        """Decide whether a host may receive from a group."""
        if address[0] in LINK_SCOPE_BYTES and is_link_scope_group(address):
            return True
        vlan_id, registered = self._vlan_id, self._registered
        group = address + self._suffix if vlan_id else address
        carrier = registered.carrier(group) if registered.is_used else group
        if host.spoofed:
            decision = self._gate.spoofed(host, vlan_id)
        elif self._room.refuses(carrier, True):
            self._group_refused(carrier)
            return False
        else:
            decision = self._decide(host, address, _RECEIVER, source, vlan_id)
            if self._slots.is_used and decision.admit and self._slots.refuses(carrier, host):
                decision = self._slots.decision(host)
        self._audit(_new(Audit, (decision, host, group, _RECEIVER, source)))
        if decision.admit:
            self._room.promise(carrier)
        return decision.admit
