"""Membership by broadcast domain: the fabric's own, and each VLAN's, with a querier and router ports of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from controller.kernel.deadlines import Deadlines
from controller.kernel.domains import address_of, domain_of, in_domain
from controller.membership.core import MembershipCore
from controller.membership.events import Member, MembershipEffect


class InDomain(NamedTuple):
    """What followed in the membership of one domain; `vlan_id` is 0 for the fabric's own."""

    vlan_id: int
    effects: list[MembershipEffect]


class Memberships:
    """The membership cores of all domains; that of a VLAN is there since its first port, report or record.

    Groups are named as in `controller.kernel.domains`; inside a core they are addresses. Who calls a method of a
    VLAN's core itself, one of `of_vlans`, puts the VLAN into `touched` then: what the core waits for is looked at
    when it is asked for.
    """

    def __init__(self, own: MembershipCore, make: Callable[[int], MembershipCore]) -> None:
        self.own = own
        self._make = make
        self.of_vlans: dict[int, MembershipCore] = {}
        self._due: Deadlines[int] = Deadlines()
        self.touched: dict[int, None] = {}

    def of(self, vlan_id: int) -> MembershipCore:
        """Return the membership of a domain."""
        found = self.of_vlans.get(vlan_id)
        if found is not None:
            return found
        if not vlan_id:
            return self.own
        made = self.of_vlans[vlan_id] = self._make(vlan_id)
        return made

    def is_known(self, vlan_id: int) -> bool:
        """Tell whether a domain has a membership already."""
        return not vlan_id or vlan_id in self.of_vlans

    def all(self) -> Iterator[tuple[int, MembershipCore]]:
        """Yield each domain's VLAN id and membership, the fabric's own first."""
        yield 0, self.own
        yield from list(self.of_vlans.items())

    def vlans_at(self, dpid: int, port_no: int) -> Iterator[int]:
        """Yield the VLANs whose membership knows a port."""
        for vlan_id, membership in list(self.of_vlans.items()):
            if (dpid, port_no) in membership.ports:
                yield vlan_id

    def _look_at_touched(self) -> None:
        for vlan_id in self.touched:
            due_s = self.of_vlans[vlan_id].next_deadline()
            if due_s is None:
                self._due.cancel(vlan_id)
            else:
                self._due.set(vlan_id, due_s)
        self.touched.clear()

    def next_deadline(self) -> float | None:
        """Return when `on_deadline` is to be called, None where nothing is awaited."""
        own_s = self.own.next_deadline()
        if not self.of_vlans:
            return own_s
        self._look_at_touched()
        due_s = self._due.next()
        return own_s if due_s is None or (own_s is not None and own_s <= due_s) else due_s

    def on_deadline(self, now: float) -> Iterator[InDomain]:
        """Have each domain do what has fallen due, and yield what follows."""
        yield InDomain(0, self.own.on_deadline(now))
        self._look_at_touched()
        for vlan_id in self._due.due(now):
            yield InDomain(vlan_id, self.of_vlans[vlan_id].on_deadline(now))

    # By name

    def groups(self) -> Iterator[bytes]:
        """Yield the names of all groups with members, refused ones included."""
        yield from self.own.members_table.groups()
        for vlan_id, membership in self.of_vlans.items():
            for address in membership.members_table.groups():
                yield in_domain(address, vlan_id)

    def members_of(self, name: bytes) -> Iterator[Member]:
        """Yield the memberships of a group by port, refused ones included, under the group's name."""
        vlan_id = domain_of(name)
        if not vlan_id:
            return self.own.members_of(name)
        membership = self.of_vlans.get(vlan_id)
        found = () if membership is None else membership.members_of(address_of(name))
        return (member._replace(group=name) for member in found)

    def admitted_by_vlan(self) -> dict[int, int]:
        """Return how many memberships are admitted in each domain that has had some, 0 being the fabric's own."""
        return {vlan_id: membership.members_table.admitted_count for vlan_id, membership in self.all()}

    def admitted_count(self) -> int:
        """Return how many memberships are admitted, in all domains together."""
        return sum(self.admitted_by_vlan().values())
