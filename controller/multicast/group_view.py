"""What operators are shown of groups: JSON-able documents."""

from __future__ import annotations

from controller.kernel.domains import domain_of
from controller.membership.events import FilterMode, Member
from controller.multicast.alias_control import AliasControl
from controller.multicast.callbacks import PolicyInForce
from controller.multicast.gate import Gate
from controller.multicast.group import Group, SenderKey
from controller.multicast.groups import GroupPlane
from controller.multicast.memberships import Memberships
from controller.multicast.registered import RegisteredGroups
from controller.multicast.static_members import StaticMembers
from controller.multicast.tree_links import links_of
from controller.snapshot.events import EventRing
from controller.snapshot.log import Document
from controller.trees.tree import Key
from controller.wire.addresses import format_ip, format_mac, is_link_scope_group
from topology.live import LiveFabric


class GroupView:
    """Groups, by name, with their trees, members, senders and refusals."""

    def __init__(
        self,
        policy: PolicyInForce,
        fabric: LiveFabric,
        plane: GroupPlane,
        aliases: AliasControl,
        registered: RegisteredGroups,
        memberships: Memberships,
        static: StaticMembers,
        gate: Gate,
        events: EventRing,
    ) -> None:
        self._policy = policy
        self._fabric = fabric
        self._plane = plane
        self._aliases = aliases
        self._registered = registered
        self._memberships = memberships
        self._static = static
        self._gate = gate
        self._events = events

    def groups(self) -> list[Document]:
        """Return each group with its tree, members, senders and refusals."""
        wanted = (address for address in self._memberships.groups() if not is_link_scope_group(address))
        addresses = {*self._plane.groups, *wanted, *self._static.groups()}
        return [self.group(address) for address in sorted(addresses)]

    def group(self, address: bytes) -> Document:
        """Return one group: its tree, members, senders and refusals."""
        group, registration = self._plane.groups.get(address), self._registered.registration(address)
        source_vlan, given_name = (
            None if registration is None else registration.source_vlan,
            self._policy().vlans.given_name,
        )
        members = list(self._memberships.members_of(address))
        admitted = [self._member(member) for member in members if member.admitted]
        return {
            "group": format_ip(address),
            "vlan": domain_of(address) or None,
            "vlan_name": given_name(domain_of(address)),
            "source_vlan": source_vlan,
            "source_vlan_name": None if source_vlan is None else given_name(source_vlan),
            "receiver_vlans": [
                {"vlan": vlan_id or None, "vlan_name": given_name(vlan_id), "ports": count}
                for vlan_id, count in self._registered.port_counts(address).items()
            ],
            "links": self.tree_links(address),
            "detached": sorted(self._plane.islands.cut_off(address)),
            "size": len(admitted),
            "rate_bps": round(sum(s.rate_bps for s in group.senders.values() if s.admitted))
            if group is not None
            else 0,
            "members": admitted,
            "static_members": self._static.of_group(address),
            "refused": [self._refused(member) for member in members if not member.admitted],
            "senders": self._senders(group) if group is not None else [],
            "aliases": self._further_trees(group) if group is not None else [],
            "flow_parts": group.part_count() if group is not None else 0,
            **self._waiting(address),
            "unsupported": group.unsupported if group is not None else None,
            "out": group is not None and group.is_out,
        }

    def _further_trees(self, group: Group) -> list[Document]:
        """Return the further trees of a group."""
        return [
            {
                "number": alias.number,
                "links": self.tree_links(alias.key),
                "senders": sum(sender.admitted for sender in alias.own_senders().values()),
                "flow_parts": alias.part_count(),
                "rate_bps": round(alias.rate_bps()),
                "state": "leaving" if alias.is_leaving else "bound" if alias.is_standing else "binding",
                "reason": self._aliases.trees.reason(alias),
            }
            for alias in group.all_trees()[1:]
        ]

    def _waiting(self, address: bytes) -> Document:
        """Return how much a group waits and how full its trees are, as it is measured for aliases."""
        measured = self._aliases.measured(address)
        if measured is None:
            return {"queue_packets": None, "utilisation_pct": None}
        return {"queue_packets": round(measured.queue, 3), "utilisation_pct": round(100 * measured.utilisation, 1)}

    def _senders(self, group: Group) -> list[Document]:
        """Return the senders of a group, each once: by all legs together where it is behind a group of them."""
        aggregations = self._fabric.aggregations
        found: dict[SenderKey, Document] = {}
        for key, sender in sorted(group.senders.items()):
            leg = (key.dpid, key.port_no)
            dpid, port_no = aggregations.home(leg)
            document = found.setdefault(
                key._replace(dpid=dpid, port_no=port_no),
                {
                    "dpid": dpid,
                    "port_no": port_no,
                    "mac": format_mac(key.mac),
                    "ip": format_ip(key.address),
                    "admitted": sender.admitted,
                    "rule": sender.rule,
                    "rate_bps": 0,
                    "since_s": sender.since_s + self._events.offset_s,
                    "alias": None if group.divides_at(key.dpid) else sender.alias or None,
                    "divided": sender.admitted and group.divides_at(key.dpid),
                    "service_class": sender.mark.service_class,
                    "dscp": sender.mark.dscp if sender.admitted else None,
                },
            )
            document["rate_bps"] += round(sender.rate_bps)
            document["since_s"] = min(document["since_s"], sender.since_s + self._events.offset_s)
            if leg in aggregations.homes:
                own = {"dpid": key.dpid, "port_no": key.port_no, "rate_bps": round(sender.rate_bps)}
                document.setdefault("legs", []).append(own)
        return [document for _, document in sorted(found.items())]

    def tree_links(self, key: Key) -> list[list[int]]:
        """Return the links of a tree by its key, a group's name or that of an alias, and of its islands.

        Each is two switches, and both ports where several cables join these.
        """
        found: list[list[int]] = []
        for tree in self._plane.islands.trees(key):
            for u, v, *ports in links_of(tree, self._plane.forest.loads):
                found.append([u, v, *ports] if u < v else [v, u, *ports[::-1]])
        return sorted(found)

    def _refused(self, member: Member) -> Document:
        source = min(member.sources, default=None) if member.mode is FilterMode.INCLUDE else None
        decision = self._gate.refusal(member.host, member.group, source)
        return {**self._member(member), "rule": decision.rule, "reason": decision.reason}

    def _member(self, member: Member) -> Document:
        sources = member.sources if member.mode is FilterMode.INCLUDE else member.excluded
        return {
            "dpid": member.host.dpid,
            "port_no": member.host.port_no,
            "mac": format_mac(member.host.mac),
            "ip": format_ip(member.host.ip) if member.host.ip else None,
            "mode": "exclude" if member.mode is FilterMode.EXCLUDE else "include",
            "sources": sorted(format_ip(source) for source in sources),
            "since_s": member.since + self._events.offset_s,
        }
