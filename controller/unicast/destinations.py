"""A switch with hosts: their location addresses, and what other switches hold to send to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from controller.kernel.domains import domain_of
from controller.rules.model import FlowEntry, FlowKey
from controller.rules.pipeline import OPENFLOW_1_0
from controller.unicast.entries import (
    ANY_PORT,
    Entered,
    far_rules,
    label_key,
    label_rule,
    location_key,
    own_rules,
    passing_rule,
)
from controller.unicast.locations import LABEL_COUNT, host_number, label_of, location_address
from controller.unicast.paths import Near, NextHop, Paths, choose, mix
from topology.events import HostLearnt


class HostLocation(NamedTuple):
    """Where a host is, its location address, and whether its port has its VLAN with the tag.

    `mac` is the name of its MAC address in its domain.
    """

    mac: bytes
    dpid: int
    port_no: int
    address: bytes
    label: int
    is_tagged: bool

    def own_rules(self, ofp_version: int, entered: Entered = ANY_PORT) -> list[FlowEntry]:
        """Return the entries at the host's own switch: for what comes from other switches, and then for the rest."""
        return own_rules(ofp_version, self.mac, self.address, self.port_no, self.is_tagged, entered)

    def location_key(self, ofp_version: int) -> FlowKey:
        """Return the key of a switch's entry for this host alone."""
        return location_key(ofp_version, self.address, domain_of(self.mac))


class Destination:
    """A switch with hosts, by its number in location addresses.

    `ports` says by which port each other switch sends what has which label. `seen` counts the changes of links that
    `paths` follow. While the destination is new, `fresh` are the switches whose ports have not followed, the nearest
    first, later those that are to choose anew. Switches are `detoured` that send otherwise, or not, because of
    switches that are away.
    """

    def __init__(self, dpid: int, number: int, near: Near, seen: int) -> None:
        self.dpid = dpid
        self.number = number
        self.paths = Paths(near, dpid)
        self.seen = seen
        self.fresh = list(self.paths.next_hops)
        self.ports: dict[int, tuple[int, ...]] = {}
        self.detoured: set[int] = set()
        self.places: dict[bytes, HostLocation] = {}
        self._seed = mix(dpid)
        self._by_number: dict[int, bytes] = {}

    def enter(self, host: HostLearnt, is_tagged: bool) -> HostLocation:
        """Give a host a place; one that is here already keeps its location address."""
        former = self.places.get(host.mac)
        if former is not None:
            place = former._replace(port_no=host.port_no, is_tagged=is_tagged)
        else:
            own, label = host_number(host.mac, self._by_number), label_of(host.mac)
            self._by_number[own] = host.mac
            address = location_address(self.number, label, own)
            place = HostLocation(host.mac, host.dpid, host.port_no, address, label, is_tagged)
        self.places[host.mac] = place
        return place

    def leave(self, place: HostLocation) -> None:
        """Take a host from its place."""
        del self.places[place.mac], self._by_number[int.from_bytes(place.address[3:], "big")]

    def host_of(self, address: bytes) -> bytes | None:
        """Return the MAC address of the host with a location address of this switch, None where there is none."""
        mac = self._by_number.get(int.from_bytes(address[3:], "big"))
        return mac if mac is not None and self.places[mac].address == address else None

    def choose(self, dpid: int, next_hops: tuple[NextHop, ...], levels: Mapping[int, int]) -> tuple[int, ...] | None:
        """Return the ports by which a switch sends the labels, of those to `next_hops`; None where there is none.

        `levels` says how busy the switch's ports are.
        """
        if not next_hops:
            return None
        return tuple([hop.port_no for hop in choose(self._seed, dpid, next_hops, LABEL_COUNT, levels)])

    def weigh(self, switches: set[int]) -> bool:
        """Have switches choose anew, by ports that are busier or less busy; return whether any has a choice."""
        concerned = [dpid for dpid in sorted(switches) if len(self.paths.next_hops.get(dpid, ())) > 1]
        self.fresh = list(dict.fromkeys([*self.fresh, *concerned]))
        return bool(concerned)

    def passing_rules(
        self,
        ofp_version: int,
        ports: tuple[int, ...] | None,
        asked: Iterable[bytes],
        entered: Callable[[bytes], Entered],
    ) -> dict[FlowKey, FlowEntry]:
        """Return the entries of a switch that depend on the ports by which it sends.

        `asked` are the hosts that are asked for there, and `entered` says by which ports what is for one may enter.
        """
        if ports is None:
            return {}
        if ofp_version != OPENFLOW_1_0:
            labelled = [label_rule(self.number, label, port_no) for label, port_no in enumerate(ports)]
            return {rule.key: rule for rule in labelled}
        rules = [
            passing_rule(ofp_version, mac, place.address, ports[place.label]) for mac, place in self.places.items()
        ]
        for mac in self.places.keys() & asked:
            place = self.places[mac]
            rules += far_rules(ofp_version, mac, place.address, ports[place.label], entered(mac))
        return {rule.key: rule for rule in rules}

    def passing_rule(self, ofp_version: int, place: HostLocation, ports: tuple[int, ...]) -> FlowEntry:
        """Return the entry by which a switch forwards what comes from other switches and is for one host."""
        if ofp_version == OPENFLOW_1_0:
            return passing_rule(ofp_version, place.mac, place.address, ports[place.label])
        return label_rule(self.number, place.label, ports[place.label])

    def passing_keys(self, ofp_version: int) -> list[FlowKey]:
        """Return the keys under which a switch may have entries for what comes from other switches."""
        if ofp_version != OPENFLOW_1_0:
            return [label_key(self.number, label) for label in range(LABEL_COUNT)]
        return [place.location_key(ofp_version) for place in self.places.values()]
