"""The section `vlans` as values: which VLANs an edge port is in, by the most specific entry that is about it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from controller.config.terms import Labelled, SwitchPort

MAX_VLAN_ID = 4094
"""The highest VLAN id of IEEE 802.1Q; 0 stands for frames without a VLAN, and 4095 is reserved."""

UNTAGGED = "untagged"
"""What stands for the fabric's own domain where a VLAN is named."""

ALL = "all"
"""What stands for every VLAN of the section in the place of a trunk's list."""

VLAN_NAME = "[A-Za-z_]([A-Za-z0-9 ._-]{0,62}[A-Za-z0-9._-])?"
REFUSE, PASS = "refuse", "pass"
"""What is done with frames that have a second tag behind that of a VLAN."""

RESERVED_NAMES = (ALL, UNTAGGED)
"""What no VLAN is called."""

_VLAN_NAME = re.compile(rf"{VLAN_NAME}\Z")

K = TypeVar("K", bound=Hashable)


def is_vlan_name(text: str) -> bool:
    """Tell whether a text can name a VLAN: a letter, then 63 letters, digits, spaces, ``.``, ``_`` and ``-``."""
    return _VLAN_NAME.match(text) is not None and text not in RESERVED_NAMES


class PortVlans(NamedTuple):
    """What a port takes and sends.

    `untagged` is the VLAN of frames without a tag, 0 the fabric's own domain; where it is None they are dropped.
    `tagged` are the VLANs, 1 to 4094, of which frames have their tag.
    """

    untagged: int | None
    tagged: frozenset[int]

    def vlans(self) -> frozenset[int]:
        """Return the VLANs that the port is in, 0 among them where frames without a tag are of the fabric's own."""
        return self.tagged if self.untagged is None else self.tagged | {self.untagged}

    def domain(self, tag: int | None) -> int | None:
        """Return the domain of a frame with a tag, None for one without; None where the port may not have it.

        The tag may be that of the port's own VLAN too, which its switch has given it.
        """
        if tag is None:
            return self.untagged
        return tag if tag and (tag == self.untagged or tag in self.tagged) else None


UNTAGGED_ONLY = PortVlans(0, frozenset())
"""A port of the fabric's own domain, as all are of which a policy says nothing."""


@dataclass(frozen=True, slots=True)
class VlanEntry:
    """What is said of ports: of those listed, of all of switches, of those with all `labels`, or of a tier's."""

    vlans: PortVlans
    ports: tuple[SwitchPort, ...] = ()
    switches: tuple[int, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    tier: str | None = None
    line: int = field(default=0, compare=False)


class Conflict(NamedTuple):
    """Two entries, by their positions, that say different things of `place` and are equally specific."""

    first: int
    second: int
    place: str


@dataclass(frozen=True, slots=True)
class Vlans:
    """Which VLANs edge ports are in; links between switches carry all.

    `labels` are those of switches and ports that entries may be about. A port has those of its switch too, unless it
    has others of the same key. Of the entries about a port the most specific decides: one that lists it, one with a
    label of its own, one with labels of its switch alone, one that lists its switch, one of the switch's tier; else
    `default`. `conflicts` are where two are equally specific, of which the first was taken; a policy file that has
    some is refused. `is_used` tells whether some port may be in other VLANs than the fabric's own domain, and
    `switches` are those that entries list, or ports of. Frames with a second tag behind that of a VLAN go to others
    of the VLAN where `passes_double_tagged` says so, else nowhere.
    """

    names: tuple[tuple[int, str], ...] = ()
    default: PortVlans = UNTAGGED_ONLY
    entries: tuple[VlanEntry, ...] = ()
    labels: tuple[Labelled, ...] = ()
    passes_double_tagged: bool = False
    conflicts: tuple[Conflict, ...] = field(init=False, repr=False, compare=False)
    is_used: bool = field(init=False, repr=False, compare=False)
    switches: frozenset[int] = field(init=False, repr=False, compare=False)
    _by_port: dict[tuple[int, int], PortVlans | None] = field(init=False, repr=False, compare=False)
    _by_switch: dict[int, PortVlans | None] = field(init=False, repr=False, compare=False)
    _by_tier: dict[str, PortVlans | None] = field(init=False, repr=False, compare=False)
    _names: dict[int, str] = field(init=False, repr=False, compare=False)
    _all: frozenset[int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Find what decides of every port and switch that is named or has labels."""
        search = _Search(self.entries, self.labels)
        by_port, by_switch, by_tier = search.by_port(), search.by_switch(), search.by_tier()
        said = {self.default, *by_port.values(), *by_switch.values(), *by_tier.values()}
        named = (self.default.vlans(), *(entry.vlans.vlans() for entry in self.entries))
        derived = {
            "_by_port": by_port,
            "_by_switch": by_switch,
            "_by_tier": by_tier,
            "switches": frozenset(search.listed()),
            "_names": dict(self.names),
            "_all": frozenset(dict(self.names)).union(*named) - {0},
            "conflicts": tuple(search.conflicts.values()),
            "is_used": bool(said - {UNTAGGED_ONLY, None}),
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def of(self, dpid: int, port_no: int, tier: str | None) -> PortVlans:
        """Return the VLANs of an edge port; `tier` is that of its switch, None where it is not known."""
        place = (dpid, port_no)
        found = self._by_port[place] if place in self._by_port else self._by_switch.get(dpid)
        if found is None and tier is not None:
            found = self._by_tier.get(tier)
        return self.default if found is None else found

    def said_of(self, dpid: int, port_no: int) -> PortVlans | None:
        """Return what entries say of a port that they list, or that has labels; None where none does."""
        return self._by_port.get((dpid, port_no))

    def has_tagged(self) -> bool:
        """Tell whether some port may have a VLAN with its tag."""
        return bool(self.default.tagged) or any(entry.vlans.tagged for entry in self.entries)

    def all_vlans(self) -> frozenset[int]:
        """Return the VLANs, 1 to 4094, that the section names anywhere."""
        return self._all

    def given_name(self, vlan_id: int) -> str | None:
        """Return the name that the section gives a VLAN, None where it gives none."""
        return self._names.get(vlan_id)

    def name(self, vlan_id: int) -> str:
        """Return what a VLAN is called: its name, else its number; ``untagged`` for 0."""
        return self._names.get(vlan_id) or (str(vlan_id) if vlan_id else UNTAGGED)


class _Search:
    """What entries say, by everything that they are matched by."""

    def __init__(self, entries: Sequence[VlanEntry], labels: Iterable[Labelled]) -> None:
        self.conflicts: dict[tuple[int, int], Conflict] = {}
        self._entries = entries
        self._ports: dict[tuple[int, int], list[int]] = {}
        self._switches: dict[int, list[int]] = {}
        self._tiers: dict[str, list[int]] = {}
        self._values: dict[tuple[str, ...], dict[tuple[str, ...], list[int]]] = defaultdict(dict)
        for index, entry in enumerate(entries):
            for port in entry.ports:
                self._add(self._ports, (port.dpid, port.port_no), index)
            for dpid in entry.switches:
                self._add(self._switches, dpid, index)
            if entry.tier is not None:
                self._add(self._tiers, entry.tier, index)
            if entry.labels:
                keys, values = zip(*sorted(entry.labels), strict=True)
                self._add(self._values[keys], values, index)
        self._switch_labels: dict[int, dict[str, str]] = {}
        self._port_labels: dict[tuple[int, int], dict[str, str]] = {}
        for labelled in labels:
            if labelled.port_no is None:
                self._switch_labels[labelled.dpid] = dict(labelled.labels)
            else:
                self._port_labels[labelled.dpid, labelled.port_no] = dict(labelled.labels)
        self._found: dict[tuple[tuple[str, str], ...], list[int]] = {}

    def by_port(self) -> dict[tuple[int, int], PortVlans | None]:
        """Return what is said of ports that are listed or have labels; None where their tier has to be looked at."""
        return {
            place: self._of_port(place, f"port {place[0]}:{place[1]}")
            for place in dict.fromkeys((*self._ports, *self._port_labels))
        }

    def by_switch(self) -> dict[int, PortVlans | None]:
        """Return what is said of the other ports of switches that are listed or have labels."""
        return {
            dpid: self._decide(
                f"switch {dpid}",
                self._with_labels(self._switch_labels.get(dpid, {})),
                self._switches.get(dpid, ()),
            )
            for dpid in dict.fromkeys((*self._switches, *self._switch_labels))
        }

    def by_tier(self) -> dict[str, PortVlans | None]:
        """Return what is said of the ports of a tier's switches."""
        return {tier: self._decide(f"tier {tier}", found) for tier, found in self._tiers.items()}

    def listed(self) -> set[int]:
        """Return the switches that are listed, or ports of them."""
        return {dpid for dpid, _ in self._ports} | self._switches.keys()

    def _add(self, said: dict[K, list[int]], key: K, index: int) -> None:
        """Keep the first entry about a key, and the first that says something else than that."""
        found = said.setdefault(key, [index])
        if len(found) == 1 and self._entries[found[0]].vlans != self._entries[index].vlans:
            found.append(index)

    def _of_port(self, place: tuple[int, int], what: str) -> PortVlans | None:
        if place in self._ports:
            return self._decide(what, self._ports[place])
        own, of_switch = self._port_labels[place], self._switch_labels.get(place[0], {})
        found = self._with_labels({**of_switch, **own})
        by_own = [index for index in found if any(key in own for key, _ in self._entries[index].labels)]
        others = [index for index in found if index not in by_own]
        return self._decide(what, by_own, others, self._switches.get(place[0], ()))

    def _with_labels(self, labels: Mapping[str, str]) -> list[int]:
        """Return the entries of which all labels are among those given, in their order."""
        known = tuple(sorted(labels.items()))
        if known not in self._found:
            found: list[int] = []
            for keys, by_values in self._values.items():
                if all(key in labels for key in keys):
                    found += by_values.get(tuple(labels[key] for key in keys), ())
            self._found[known] = sorted(found)
        return self._found[known]

    def _decide(self, what: str, *ranks: Sequence[int]) -> PortVlans | None:
        """Return what the entries of the first rank that has some say; None where none has."""
        ranked = next(filter(None, ranks), ())
        if not ranked:
            return None
        first = self._entries[ranked[0]].vlans
        for index in ranked[1:]:
            if self._entries[index].vlans != first:
                self.conflicts.setdefault((ranked[0], index), Conflict(ranked[0], index, what))
                break
        return first
