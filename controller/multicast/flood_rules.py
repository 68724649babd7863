"""What every switch holds whatever groups exist: punts, link-scope flooding, and what ports let in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from controller.kernel.vlan_ports import NO_OIFS, VlanOifs, ingresses, vlan_oifs
from controller.multicast.switch_ports import SwitchPorts
from controller.rules.compile import RuleSet, versioned_mac
from controller.rules.cookies import STALE_VERSION_COOKIE
from controller.rules.model import OFPP_CONTROLLER, Action, FlowEntry, FlowKey, Match, Output, PopVlan, PushVlan
from controller.rules.pipeline import (
    ADMIT,
    ETH_TYPE_IPV4,
    ETH_TYPE_IPV6,
    FORWARD,
    IPPROTO_ICMPV6,
    IPPROTO_IGMP,
    IPPROTO_PIM,
    MLD_TYPES,
    OPENFLOW_1_0,
    PRIORITY_LINK_SCOPE,
    PRIORITY_LINK_SCOPE_LEG,
    PRIORITY_LINK_SCOPE_VLAN,
    PRIORITY_MEMBERSHIP,
    PRIORITY_PIM,
    PRIORITY_PIM_VLAN,
    PRIORITY_STALE_VERSION,
    PRIORITY_UNKNOWN_SENDER,
    VLAN_ADMIT,
    VLAN_FORWARD,
    at_port,
)
from controller.wire.addresses import ALL_PIM_ROUTERS_V4, ALL_PIM_ROUTERS_V6, parse_ip
from controller.wire.ethernet import ETHERTYPE_QINQ, ETHERTYPE_VLAN

_Scope: TypeAlias = tuple[int, bytes, int]

_LINK_SCOPE_V4 = (ETH_TYPE_IPV4, parse_ip("224.0.0.0"), 24)
_LINK_SCOPE_V6 = ((ETH_TYPE_IPV6, parse_ip("ff02::"), 16), (ETH_TYPE_IPV6, parse_ip("ff00::"), 15))
_GROUP_BIT = b"\x01" + bytes(5)
_DOUBLE_TAGGED = tuple(
    Match(eth_dst=_GROUP_BIT, eth_dst_mask=_GROUP_BIT, eth_type=inner, tagged=True)
    for inner in (ETHERTYPE_VLAN, ETHERTYPE_QINQ)
)
"""Frames to groups and to all that have a second tag behind that of a VLAN: a switch looks no further."""

_ALL_V4 = (ETH_TYPE_IPV4, parse_ip("224.0.0.0"), 4)
_ALL_V6 = (ETH_TYPE_IPV6, parse_ip("ff00::"), 8)
_PIM = {4: (ETH_TYPE_IPV4, ALL_PIM_ROUTERS_V4), 6: (ETH_TYPE_IPV6, ALL_PIM_ROUTERS_V6)}
_TO_CONTROLLER: tuple[Action, ...] = (Output(OFPP_CONTROLLER),)


def switch_rules(ports: SwitchPorts, trunks: Sequence[int], cookie: int) -> RuleSet:
    """Return the entries of a switch whose `trunks` are on the spanning tree, for each of its tables."""
    if ports.ofp_version == OPENFLOW_1_0:
        return _old_rules(ports, trunks, cookie)
    own = _Table(ADMIT, ports, cookie)
    stale = _stale_versions(FORWARD) if ports.counts_stale_versions else {}
    if ports.vlans is None:
        own.flood(trunks, _flooded(ports, ports.edges))
        return own.rules | stale
    of_own = ports.vlans.get(0, NO_OIFS).untagged
    own.flood(trunks, _flooded(ports, of_own), of_own)
    tagged = _Table(VLAN_ADMIT, ports, cookie)
    in_vlans = frozenset[int]().union(*(oifs.both for vlan_id, oifs in ports.vlans.items() if vlan_id))
    tagged.flood(trunks, (), sorted(in_vlans))
    for vlan_id, oifs in ports.vlans.items():
        if vlan_id:
            tagged.flood_vlan(vlan_id, trunks, _flooded(ports, oifs.tagged), _flooded(ports, oifs.untagged))
    if ports.counts_stale_versions:
        stale |= _stale_versions(VLAN_FORWARD)
    return own.rules | tagged.rules | stale


def _stale_versions(table: int) -> RuleSet:
    """Return the entries that drop packets of groups that have a tree version, where no tree of theirs is known.

    Hosts cannot send such packets: those of groups are admitted by their addresses at the port where they enter.
    """
    rules: RuleSet = {}
    for eth_type, group, bits in (_ALL_V4, _ALL_V6):
        mac = versioned_mac(group, 1)
        match = in_prefix(eth_type, group, bits)._replace(eth_dst=mac[:1] + bytes(5), eth_dst_mask=b"\xff" + bytes(5))
        key = FlowKey(table, PRIORITY_STALE_VERSION, match)
        rules[key] = FlowEntry(key, (), STALE_VERSION_COOKIE)
    return rules


def _old_rules(ports: SwitchPorts, trunks: Sequence[int], cookie: int) -> RuleSet:
    """Return the entries of OpenFlow 1.0; closed ports drop frames of every domain."""
    table = _Table(0, ports, cookie, only_ipv4=True)
    if ports.vlans is None:
        table.flood(trunks, _flooded(ports, ports.edges))
        return table.rules
    own = ports.vlans.get(0, NO_OIFS).untagged
    table.flood(trunks, _flooded(ports, own), own)
    for vlan_id, oifs in ports.vlans.items():
        if vlan_id:
            flooded = vlan_oifs(tuple(_flooded(ports, oifs.tagged)), tuple(_flooded(ports, oifs.untagged)))
            table.flood_old_vlan(vlan_id, trunks, oifs, flooded)
    return table.rules


def _flooded(ports: SwitchPorts, edges: Sequence[int]) -> Sequence[int]:
    """Return the ports that link-scope groups are flooded to: of a link aggregation group one leg."""
    return [port_no for port_no in edges if port_no not in ports.quiet] if ports.quiet else edges


class _Table:
    """The entries of one table, in which frames of every domain look alike but for their tag."""

    def __init__(self, table: int, ports: SwitchPorts, cookie: int, only_ipv4: bool = False) -> None:
        self.rules: RuleSet = {}
        self._table = table
        self._ports = ports
        self._cookie = cookie
        self._only_ipv4 = only_ipv4

    def flood(self, trunks: Sequence[int], edges: Sequence[int], hosts: Sequence[int] | None = None) -> None:
        """Put what goes to the controller, and flood link-scope groups to other switches and hosts.

        `hosts` are the ports of the domain from which groups go to the controller, all ports to hosts by default.
        """
        hosts = self._ports.edges if hosts is None else hosts
        flood = tuple(Output(port_no) for port_no in (*trunks, *edges))
        self._put(PRIORITY_MEMBERSHIP, Match(eth_type=ETH_TYPE_IPV4, ip_proto=IPPROTO_IGMP), _TO_CONTROLLER)
        self._put(PRIORITY_LINK_SCOPE, in_prefix(*_LINK_SCOPE_V4), flood)
        self._put_groups(4, _ALL_V4, flood, hosts)
        self._put_unheard((_in_scope(_LINK_SCOPE_V4),), trunks, edges)
        if self._only_ipv4:
            return
        for icmpv6_type in MLD_TYPES:
            match = Match(eth_type=ETH_TYPE_IPV6, ip_proto=IPPROTO_ICMPV6, icmpv6_type=icmpv6_type)
            self._put(PRIORITY_MEMBERSHIP, match, _TO_CONTROLLER)
        for scope in _LINK_SCOPE_V6:
            self._put(PRIORITY_LINK_SCOPE, in_prefix(*scope), flood)
        if self._table == VLAN_ADMIT and self._ports.passes_double_tagged:
            for match in _DOUBLE_TAGGED:
                self._put(PRIORITY_LINK_SCOPE, match, flood)
        self._put_unheard(map(_in_scope, _LINK_SCOPE_V6), trunks, edges)
        self._put_groups(6, _ALL_V6, flood, hosts)

    def flood_vlan(self, vlan_id: int, trunks: Sequence[int], tagged: Sequence[int], untagged: Sequence[int]) -> None:
        """Flood what is for all of a VLAN to its hosts here too, and PIM from ports with routers of it to all."""
        flood = with_tag_off((*trunks, *tagged), untagged)
        flooded = [_in_scope(scope) for scope in (_LINK_SCOPE_V4, *_LINK_SCOPE_V6)]
        if self._ports.passes_double_tagged:
            flooded += [match._replace(tagged=False) for match in _DOUBLE_TAGGED]
        for match in flooded:
            self._put(PRIORITY_LINK_SCOPE_VLAN, match._replace(vlan_id=vlan_id), flood)
        self._put_unheard(flooded, (*trunks, *tagged), untagged, vlan_id)
        for port_no, family, domain in self._ports.routers:
            if domain == vlan_id and port_no in self._ports.edges:
                match = _pim_from(port_no, family)._replace(vlan_id=vlan_id)
                self._put(PRIORITY_PIM_VLAN, match, (*_TO_CONTROLLER, *flood))

    def flood_old_vlan(self, vlan_id: int, trunks: Sequence[int], oifs: VlanOifs, flooded: VlanOifs) -> None:
        """Put all that OpenFlow 1.0 has for a VLAN with these ports, those that groups are flooded to among them."""
        legs = dict(self._ports.unheard)
        scope = in_prefix(*_LINK_SCOPE_V4)
        onward = (*trunks, *flooded.tagged)
        self._put(PRIORITY_LINK_SCOPE_VLAN, scope._replace(vlan_id=vlan_id), with_tag_off(onward, flooded.untagged))
        self._put_unheard((scope,), onward, flooded.untagged, vlan_id)
        for port_no, tag in ingresses(oifs, vlan_id):
            leg = legs.get(port_no)
            tagged = [other for other in onward if other != leg]
            untagged = [other for other in flooded.untagged if other != leg]
            flood = with_tag_off(tagged, untagged) if tag else _with_tag_on(vlan_id, untagged, tagged)
            to_routers = flood if (port_no, 4, vlan_id) in self._ports.routers else ()
            igmp = Match(port_no, eth_type=ETH_TYPE_IPV4, ip_proto=IPPROTO_IGMP)
            for priority, match, actions in (
                (PRIORITY_MEMBERSHIP, igmp, _TO_CONTROLLER),
                (PRIORITY_PIM, _pim_from(port_no, 4), (*_TO_CONTROLLER, *to_routers)),
                (PRIORITY_LINK_SCOPE_VLAN, in_prefix(*_LINK_SCOPE_V4, in_port=port_no), flood),
                (PRIORITY_UNKNOWN_SENDER, in_prefix(*_ALL_V4, in_port=port_no), _TO_CONTROLLER),
            ):
                self._put(at_port(priority), match._replace(vlan_id=tag), actions)

    def _put_unheard(
        self, flooded: Iterable[Match], trunks: Sequence[int], edges: Sequence[int], vlan_id: int | None = None
    ) -> None:
        """Flood what comes by another leg of a link aggregation group, or from a host behind one, but to its leg."""
        if self._table == VLAN_ADMIT and vlan_id is None:
            return
        is_by_port, matches = self._table == 0 and vlan_id is not None, list(flooded)
        for source, leg in self._ports.unheard:
            if is_by_port and isinstance(source, int):
                continue
            plain, own = ([port_no for port_no in ports if port_no != leg] for ports in (trunks, edges))
            flood: tuple[Action, ...] = tuple(Output(port_no) for port_no in plain)
            if own and vlan_id:
                flood = (*flood, PopVlan())
            flood = (*flood, *(Output(port_no) for port_no in own))
            by = {"in_port": source} if isinstance(source, int) else {"eth_src": source}
            for match in matches:
                self._put(PRIORITY_LINK_SCOPE_LEG, match._replace(vlan_id=vlan_id, **by), flood)

    def _put(self, priority: int, match: Match, actions: tuple[Action, ...]) -> None:
        key = FlowKey(self._table, priority, match)
        self.rules[key] = FlowEntry(key, actions, self._cookie)

    def _put_groups(
        self, family: int, all_groups: tuple[int, bytes, int], flood: tuple[Action, ...], hosts: Sequence[int]
    ) -> None:
        """Have groups that no sender's entry knows go to the controller from ports to hosts, and from closed ones
        nowhere; PIM goes to every router, and to the controller, from ports with routers alone."""
        for port_no in hosts:
            has_router = self._table != VLAN_ADMIT and (port_no, family, 0) in self._ports.routers
            to_routers = flood if has_router else ()
            self._put(PRIORITY_PIM, _pim_from(port_no, family), (*_TO_CONTROLLER, *to_routers))
            self._put(PRIORITY_UNKNOWN_SENDER, in_prefix(*all_groups, in_port=port_no), _TO_CONTROLLER)
        is_of_all = self._table == 0 and self._ports.vlans is not None
        for port_no in self._ports.closed:
            for priority, match in (
                (PRIORITY_PIM, _pim_from(port_no, family)),
                (PRIORITY_UNKNOWN_SENDER, in_prefix(*all_groups, in_port=port_no)),
            ):
                # Above what the port has as one to hosts: for a moment a switch may hold both, and they overlap.
                self._put(priority + is_of_all, match._replace(tagged=is_of_all), ())


def with_tag_off(tagged: Iterable[int], untagged: Sequence[int]) -> tuple[Action, ...]:
    """Return what sends a tagged frame out of ports as it is, and then out of others without the tag."""
    plain: tuple[Action, ...] = (PopVlan(), *map(Output, untagged)) if untagged else ()
    return (*map(Output, tagged), *plain)


def _with_tag_on(vlan_id: int, untagged: Iterable[int], tagged: Sequence[int]) -> tuple[Action, ...]:
    """Return what sends a frame without tag out of ports as it is, and then out of others with a tag."""
    framed: tuple[Action, ...] = (PushVlan(vlan_id), *map(Output, tagged)) if tagged else ()
    return (*map(Output, untagged), *framed)


def _pim_from(port_no: int, family: int) -> Match:
    """Return the match of PIM to all routers of a family from a port."""
    eth_type, routers = _PIM[family]
    return Match(port_no, eth_type=eth_type, ip_proto=IPPROTO_PIM, ip_dst=routers, ip_dst_prefix=8 * len(routers))


def _in_scope(scope: _Scope) -> Match:
    """Return the match of packets to the addresses of a scope."""
    return in_prefix(*scope)


def in_prefix(eth_type: int, address: bytes, bits: int, in_port: int | None = None) -> Match:
    """Return the match of packets to the addresses of a prefix, from one port or any."""
    return Match(in_port=in_port, eth_type=eth_type, ip_dst=address, ip_dst_prefix=bits)
