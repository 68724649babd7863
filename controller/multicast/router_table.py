"""Which ports have a multicast router, which groups it may have, and of which sources it is sent them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import TypeVar

from controller.kernel.domains import address_of, domain_of, family_of
from controller.membership.events import ANY_SOURCE, FilterMode, Interest
from controller.multicast.group import SenderKey
from topology.aggregations import Place

T = TypeVar("T")
K = TypeVar("K", int, bytes)
E = TypeVar("E", int, Place)
Groups = frozenset[Container[bytes]]
"""The groups that are in one of these."""


RouterInterests = Mapping[int, Mapping[int, Interest]]
"""What router ports get of a group, by dpid and port number."""

_NO_PORTS: Mapping[int, AbstractSet[int]] = MappingProxyType({})
_NO_INTERESTS: RouterInterests = MappingProxyType({})


class RouterTable:
    """Router ports by domain, family and datapath; most may have every group of their family, some those allowed."""

    def __init__(self) -> None:
        self._ports: dict[int, dict[int, set[int]]] = {4: {}, 6: {}}
        self._unasked: dict[int, dict[int, dict[int, Interest]]] = {4: {}, 6: {}}
        self._limited: dict[int, dict[Place, Groups]] = {4: {}, 6: {}}
        self._at: dict[int, set[tuple[int, int, int]]] = {}
        self._on_join: dict[int, set[Place]] = {}
        self._joined: dict[bytes, dict[Place, Interest]] = {}

    def __bool__(self) -> bool:
        """Tell whether there is a router port of either family."""
        return any(self._ports.values())

    def change(
        self,
        dpid: int,
        port_no: int,
        family: int,
        present: bool,
        groups: Groups | None,
        on_request: bool,
        _proxied: bool,
        on_join: bool,
        vlan_id: int = 0,
    ) -> None:
        """Enter a router port with its groups (None: every one), or take it out.

        One `on_request` is told of them, and sent none that nobody there is a member of; where it is `on_join` too,
        those that were joined there (`join`).
        """
        key = _key(family, vlan_id)
        ports, limited = self._ports.setdefault(key, {}), self._limited.setdefault(key, {})
        limited.pop((dpid, port_no), None)
        _enter(ports, dpid, port_no, present)
        _set(self._unasked.setdefault(key, {}), dpid, port_no, ANY_SOURCE if present and not on_request else None)
        _enter(self._at, dpid, (port_no, family, vlan_id), present)
        if present and groups is not None:
            limited[dpid, port_no] = groups
        _enter(self._on_join, key, (dpid, port_no), present and on_join)

    def join(self, place: Place, group: bytes, interest: Interest | None) -> None:
        """Enter what was joined of a group by PIM at a port; None: nothing any more."""
        _set(self._joined, group, place, interest)

    def has(self, dpid: int, port_no: int, family: int, vlan_id: int = 0) -> bool:
        """Tell whether a router of a family is behind a port, in a domain."""
        return port_no in self._ports.get(_key(family, vlan_id), _NO_PORTS).get(dpid, ())

    def of_group(self, group: bytes, sent_by: Iterable[SenderKey] = ()) -> RouterInterests:
        """Return what each router port gets, by dpid and port number, of a group which is served at all.

        `sent_by` are its senders. What a host sends goes to who joined the group of any source, even one that has
        pruned this source from the shared tree, since it hears it in the subnet that it shares with the host.
        """
        if not self._at:
            return _NO_INTERESTS
        size = len(group)
        key = 4 if size == 4 else 6 if size == 16 else _key(family_of(group), domain_of(group))
        ports: RouterInterests = self._unasked.get(key, _NO_INTERESTS)
        limited = self._limited.get(key)
        if group in self._joined:
            with_joined = {at: dict(interests) for at, interests in ports.items()}
            on_join = self._on_join.get(key, set())
            local: frozenset[bytes] | None = None
            for (dpid, port_no), interest in self._joined[group].items():
                if (dpid, port_no) not in on_join:
                    continue
                if interest.mode is FilterMode.EXCLUDE and interest.sources:
                    if local is None:
                        routers = self._ports[key]
                        local = frozenset(by.address for by in sent_by if by.port_no not in routers.get(by.dpid, ()))
                    interest = interest._replace(sources=interest.sources - local)
                with_joined.setdefault(dpid, {}).setdefault(port_no, interest)
            ports = with_joined
        if not limited:
            return ports
        allowed: dict[int, dict[int, Interest]] = {}
        for dpid, interests in ports.items():
            kept = {
                port_no: interest
                for port_no, interest in interests.items()
                if self._may_have(dpid, port_no, key, address_of(group))
            }
            if kept:
                allowed[dpid] = kept
        return allowed

    def at(self, dpid: int) -> frozenset[tuple[int, int, int]]:
        """Return the (port number, family, VLAN id) of each router port of a datapath."""
        return frozenset(self._at.get(dpid, ()))

    def ports(self, family: int, groups: Iterable[bytes] | None = None, vlan_id: int = 0) -> Iterator[Place]:
        """Yield each router port of a family in a domain, or those that may have one of some groups, by address."""
        asked, key = None if groups is None else tuple(groups), _key(family, vlan_id)
        for dpid, port_nos in self._ports.get(key, _NO_PORTS).items():
            for port_no in port_nos:
                if asked is None or any(self._may_have(dpid, port_no, key, address) for address in asked):
                    yield dpid, port_no

    def may_have(self, dpid: int, port_no: int, group: bytes) -> bool:
        """Tell whether the routers behind a router port may have a group."""
        return self._may_have(dpid, port_no, _key(family_of(group), domain_of(group)), address_of(group))

    def _may_have(self, dpid: int, port_no: int, key: int, address: bytes) -> bool:
        groups = self._limited[key].get((dpid, port_no))
        return groups is None or any(address in allowed for allowed in groups)


def _enter(table: dict[int, set[T]], dpid: int, entry: T, present: bool) -> None:
    """Have an entry in the set of a datapath, or not in it, and no set that is empty."""
    if present:
        table.setdefault(dpid, set()).add(entry)
    elif dpid in table:
        table[dpid].discard(entry)
        if not table[dpid]:
            del table[dpid]


def _set(table: dict[K, dict[E, Interest]], key: K, entry: E, interest: Interest | None) -> None:
    """Have an interest in what a table has of a key, None for none, and nothing that is empty."""
    if interest is not None:
        table.setdefault(key, {})[entry] = interest
    elif key in table:
        table[key].pop(entry, None)
        if not table[key]:
            del table[key]


def _key(family: int, vlan_id: int) -> int:
    """Return what the tables are keyed by: the family, and the VLAN id in the bits above."""
    return vlan_id << 3 | family
