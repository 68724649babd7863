"""Which rules speak of a host, group or source: sets of rules as bits of an integer, bit i for rule i."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from controller.config.policy import Role, Rule, Tenant
from controller.config.prefix_masks import PrefixMasks
from controller.config.terms import HostTerm, MacAddress, Prefix, SwitchPort


class RuleIndex:
    """The rules of a policy, indexed by everything that they are matched by."""

    def __init__(self, rules: Sequence[Rule], tenants: Sequence[Tenant]) -> None:
        self._rules = rules
        self._members: Mapping[str, tuple[HostTerm, ...]] = {tenant.name: tenant.hosts for tenant in tenants}
        self._groups = PrefixMasks()
        self._sources = PrefixMasks()
        self._prefixes = PrefixMasks()
        self._macs: dict[bytes, int] = {}
        self._ports: dict[tuple[int, int], int] = {}
        self._any_host = 0
        self._any_group = 0
        self._any_source = 0
        self._any_vlan = 0
        self._vlans: dict[int, int] = {}
        self._roles: dict[Role, int] = dict.fromkeys(Role, 0)
        self._tenants: dict[str, int] = {}
        by_tenant: dict[str, int] = {}
        for index, rule in enumerate(rules):
            bit = 1 << index
            self._any_host |= bit if rule.any_host else 0
            self._any_group |= 0 if rule.groups else bit
            self._any_source |= 0 if rule.sources else bit
            self._any_vlan |= 0 if rule.vlans else bit
            for vlan_id in rule.vlans:
                self._vlans[vlan_id] = self._vlans.get(vlan_id, 0) | bit
            for role in rule.roles:
                self._roles[role] |= bit
            for group in rule.groups:
                self._groups.add(group, bit)
            for source in rule.sources:
                self._sources.add(source, bit)
            for term in rule.hosts:
                self._add_host(term, bit)
            for name in rule.tenants:
                by_tenant[name] = by_tenant.get(name, 0) | bit
        for name, mask in by_tenant.items():
            for term in self._members.get(name, ()):
                self._add_host(term, mask)
        self._groups.always = self._any_group
        self.of_group: Callable[[bytes], int] = self._groups.of
        """Returns the rules that are about a group, whatever the role."""

    def of_role(self, role: Role) -> int:
        """Return the rules for a role, whatever the group."""
        return self._roles[role]

    def of_host(self, mac: bytes, ip: bytes | None, dpid: int, port_no: int, known: Iterable[bytes] = ()) -> int:
        """Return the rules for a host: by its MAC address, its IP address, others that it holds, or where it is."""
        found = self._any_host | self._macs.get(mac, 0) | self._ports.get((dpid, port_no), 0)
        if ip is not None:
            found |= self._prefixes.holding(ip)
        for address in known:
            if address != ip:
                found |= self._prefixes.holding(address)
        return found

    def of_source(self, source: bytes | None) -> int:
        """Return the rules for a source; None stands for any source, so that only rules without sources are left."""
        return self._any_source if source is None else self._any_source | self._sources.holding(source)

    def of_vlan(self, vlan_id: int) -> int:
        """Return the rules for a VLAN, 0 being the fabric's own domain."""
        return self._any_vlan | self._vlans.get(vlan_id, 0)

    def shadow_of(self, index: int) -> int | None:
        """Return the first rule before rule `index` that matches whenever that one does; None where none does."""
        rule = self._rules[index]
        found = (1 << index) - 1
        for role in rule.roles:
            found &= self._roles[role]
        for group in rule.groups:
            found &= self._groups.holding(group.network, group.length) | self._any_group
        if not rule.groups:
            found &= self._any_group
        if found and rule.any_host:
            found &= self._any_host
        for name in rule.tenants:
            found = found and found & self._holding_tenant(name)
        for term in rule.hosts:
            found = found and found & self._holding_host(term)
        if found:
            found &= self._holding_sources(rule)
        for vlan_id in rule.vlans:
            found &= self.of_vlan(vlan_id)
        if not rule.vlans:
            found &= self._any_vlan
        return (found & -found).bit_length() - 1 if found else None

    def _holding_tenant(self, name: str) -> int:
        if name not in self._tenants:
            found = -1
            for term in self._members.get(name, ()):
                found &= self._holding_host(term)
            self._tenants[name] = found
        return self._tenants[name]

    def _holding_sources(self, rule: Rule) -> int:
        found = -1 if rule.sources else self._any_source
        for source in rule.sources:
            found &= self._any_source | self._sources.holding(source.network, source.length)
        return found

    def _add_host(self, term: HostTerm, mask: int) -> None:
        match term:
            case Prefix():
                self._prefixes.add(term, mask)
            case MacAddress(mac=mac):
                self._macs[mac] = self._macs[mac] | mask if mac in self._macs else mask
            case SwitchPort():
                port = (term.dpid, term.port_no)
                self._ports[port] = self._ports[port] | mask if port in self._ports else mask

    def _holding_host(self, term: HostTerm) -> int:
        match term:
            case Prefix(network=network, length=length):
                return self._any_host | self._prefixes.holding(network, length)
            case MacAddress(mac=mac):
                return self._any_host | self._macs.get(mac, 0)
            case SwitchPort(dpid=dpid, port_no=port_no):
                return self._any_host | self._ports.get((dpid, port_no), 0)
