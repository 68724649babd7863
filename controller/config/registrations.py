"""Multicast VLAN registration: groups that receivers of some VLANs are given from another, the source VLAN."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from controller.config.prefix_masks import PrefixMasks
from controller.config.terms import Prefix
from controller.kernel.domains import address_of, domain_of, in_domain


@dataclass(frozen=True, slots=True)
class Registration:
    """A line of `vlans.mvr`: the source VLAN, the groups, and the domains, 0 the fabric's own, that get them."""

    source_vlan: int
    groups: tuple[Prefix, ...]
    receiver_vlans: frozenset[int]
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Registrations:
    """All registrations of a policy, no two of which speak of one group in one receiver VLAN.

    Groups go by their names in a domain (`controller.kernel.domains`). `is_used` tells whether there are any.
    """

    entries: tuple[Registration, ...] = ()
    is_used: bool = field(init=False, repr=False, compare=False)
    _groups: PrefixMasks = field(init=False, repr=False, compare=False)
    _receivers: dict[int, int] = field(init=False, repr=False, compare=False)
    _sources: dict[int, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the entries by groups, receiver VLANs and source VLANs, bit i for the i-th."""
        groups, receivers, sources = PrefixMasks(), dict[int, int](), dict[int, int]()
        for index, entry in enumerate(self.entries):
            bit = 1 << index
            for prefix in entry.groups:
                groups.add(prefix, bit)
            for vlan_id in entry.receiver_vlans:
                receivers[vlan_id] = receivers.get(vlan_id, 0) | bit
            sources[entry.source_vlan] = sources.get(entry.source_vlan, 0) | bit
        derived = {"is_used": bool(self.entries), "_groups": groups, "_receivers": receivers, "_sources": sources}
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def registration(self, name: bytes) -> Registration | None:
        """Return what gives receivers a group by this name from another VLAN; None where nothing does."""
        of_domain = self._receivers.get(domain_of(name), 0)
        found = of_domain and of_domain & self._groups.holding(address_of(name))
        return self.entries[found.bit_length() - 1] if found else None

    def carrier(self, name: bytes) -> bytes:
        """Return the name of the group whose packets receivers get that ask for a group by `name`."""
        entry = self.registration(name)
        return name if entry is None else in_domain(address_of(name), entry.source_vlan)

    def asked_for_as(self, carrier: bytes) -> Iterator[bytes]:
        """Yield the names, its own first, by which receivers ask for a group, in the order of their VLANs."""
        yield carrier
        found = self._sources.get(domain_of(carrier), 0)
        found = found and found & self._groups.holding(address_of(carrier))
        vlans: set[int] = set()
        while found:
            lowest = found & -found
            vlans |= self.entries[lowest.bit_length() - 1].receiver_vlans
            found ^= lowest
        for vlan_id in sorted(vlans):
            yield in_domain(address_of(carrier), vlan_id)
