"""Groups that receivers of some VLANs get from another VLAN, by multicast VLAN registration.

A receiver asks for a group by its name in its own domain; `carrier` is the name of the group whose packets it gets,
that of the source VLAN. The carrier's interests have a port in the receiver's domain (`controller.kernel.oifs`), so
that one tree serves the receivers of all VLANs, and one copy crosses each of its links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from controller.config.registrations import Registration, Registrations
from controller.datapath.lanes import Urgency
from controller.effects import Effect
from controller.kernel.domains import address_of, domain_of, in_domain
from controller.kernel.oifs import HIGHEST_PORT, oif_in, port_of_oif, vlan_of_oif
from controller.membership.events import Interest
from controller.multicast.group import Group
from controller.multicast.groups import GroupPlane

ApplyInterest: TypeAlias = Callable[[int, int, bytes, Interest | None, float, Urgency], list[Effect]]
"""Takes a switch and a port, a group, what is wanted of it there, the time and how urgent it is."""


class Moved(NamedTuple):
    """What receivers at a port get from another group than before: they ask for it by `name`."""

    dpid: int
    name: bytes
    carrier: bytes


class RegisteredGroups:
    """Says which group receivers get, and has its interests follow theirs; `is_used` where any VLAN is registered."""

    def __init__(self, registrations: Registrations, plane: GroupPlane) -> None:
        self._plane = plane
        self._go_by(registrations)

    def _go_by(self, registrations: Registrations) -> None:
        self._registrations, self.is_used = registrations, registrations.is_used
        self.interest_changed: ApplyInterest = (
            self._interest_changed if registrations.is_used else self._plane.interest_changed
        )
        """Applies what the members at one port that ask for a group by name want of it now (None: nothing more)."""

    def registration(self, name: bytes) -> Registration | None:
        """Return what gives who asks for a group by `name` that of another VLAN, None where nothing does."""
        return self._registrations.registration(name) if self.is_used else None

    def carrier(self, name: bytes) -> bytes:
        """Return the name of the group whose packets receivers get that ask for one by `name`."""
        return self._registrations.carrier(name) if self.is_used else name

    def asked_for_as(self, carrier: bytes) -> Iterator[bytes]:
        """Yield the names, its own first, by which receivers ask for a group."""
        if not self.is_used:
            yield carrier
        else:
            yield from self._registrations.asked_for_as(carrier)

    def _interest_changed(
        self, dpid: int, port_no: int, name: bytes, interest: Interest | None, now: float, urgency: Urgency
    ) -> list[Effect]:
        carrier = self._registrations.carrier(name)
        if carrier != name:
            name, port_no = carrier, oif_in(port_no, domain_of(name))
        return self._plane.interest_changed(dpid, port_no, name, interest, now, urgency)

    # Who asks

    def ports_at(self, name: bytes, dpid: int) -> list[int]:
        """Return the ports of a switch with admitted members, or static ones, that ask for a group by `name`."""
        group = self._plane.groups.get(self.carrier(name))
        oifs = () if group is None else group.interests.get(dpid, ())
        if not self.is_used or group is None:
            return list(oifs)
        vlan_id = domain_of(name)
        return [port_of_oif(oif) for oif in oifs if vlan_of_oif(oif, group.vlan_id) == vlan_id]

    def switches(self, name: bytes) -> list[int]:
        """Return the switches with such ports."""
        group = self._plane.groups.get(self.carrier(name))
        if group is None:
            return []
        return [dpid for dpid in group.interests if not self.is_used or self.ports_at(name, dpid)]

    def names(self) -> Iterator[bytes]:
        """Yield the names by which receivers ask for groups of other VLANs."""
        if self.is_used:
            for group in self._plane.groups.values():
                yield from self._other_names(group)

    def port_counts(self, carrier: bytes) -> dict[int, int]:
        """Return at how many ports of each other VLAN receivers get a group, 0 being the fabric's own domain."""
        group = self._plane.groups.get(carrier) if self.is_used else None
        counts: dict[int, int] = {}
        for ports in group.interests.values() if group is not None else ():
            for oif in ports:
                if oif > HIGHEST_PORT:
                    vlan_id = vlan_of_oif(oif, 0)
                    counts[vlan_id] = counts.get(vlan_id, 0) + 1
        return dict(sorted(counts.items()))

    # Another policy

    def use(self, registrations: Registrations, now: float) -> tuple[list[Effect], list[Moved]]:
        """Go by other registrations, and have receivers get what they ask for from the groups that carry it now.

        Groups that the change does not concern are not touched. Returns the effects, and what moved, once with the
        carrier of before and once with that of now.
        """
        before = self._registrations
        self._go_by(registrations)
        if before == registrations:
            return [], []
        effects: list[Effect] = []
        leaving: list[tuple[int, int, bytes, Interest, bytes]] = []
        for address, group in self._plane.groups.items():
            for dpid, ports in group.interests.items():
                for oif, interest in ports.items():
                    name = in_domain(address_of(address), vlan_of_oif(oif, group.vlan_id))
                    if self.carrier(name) != address:
                        leaving.append((dpid, oif, name, interest, address))
        moved: dict[Moved, None] = {}
        for dpid, oif, name, _, address in leaving:
            effects += self._plane.interest_changed(dpid, oif, address, None, now, Urgency.BULK)
            moved[Moved(dpid, name, address)] = None
        for dpid, oif, name, interest, _ in leaving:
            effects += self.interest_changed(dpid, port_of_oif(oif), name, interest, now, Urgency.PROMPT)
            moved[Moved(dpid, name, self.carrier(name))] = None
        return effects, list(moved)

    def _other_names(self, group: Group) -> set[bytes]:
        vlans = {vlan_of_oif(oif, 0) for ports in group.interests.values() for oif in ports if oif > HIGHEST_PORT}
        return {in_domain(address_of(group.address), vlan_id) for vlan_id in vlans}
