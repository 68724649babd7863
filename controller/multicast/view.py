"""What operators are shown of the multicast core: JSON-able documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Protocol

from controller.admission.admission import Admission
from controller.config.policy import Policy
from controller.kernel.domains import domain_of
from controller.kernel.vlan_ports import VlanPorts
from controller.membership.core import MembershipCore
from controller.membership.events import FilterMode, Member
from controller.membership.querier import FAMILIES
from controller.multicast.alias_control import AliasControl
from controller.multicast.fabric import FabricFollower
from controller.multicast.fabric_names import FabricNames
from controller.multicast.gate import Gate
from controller.multicast.group import Group, SenderKey
from controller.multicast.groups import GroupPlane
from controller.multicast.memberships import Memberships
from controller.multicast.registered import RegisteredGroups
from controller.multicast.senders import SenderTable
from controller.multicast.static_members import StaticMembers
from controller.multicast.tree_links import links_of
from controller.rules.installer import Installer
from controller.snapshot.log import Document
from controller.snapshot.names import Names
from controller.trees.forest import Forest
from controller.trees.tree import Key
from controller.wire.addresses import format_ip, format_mac, is_link_scope_group
from topology.live import LiveFabric

NAMED = 5
"""Switches that the reason for not being ready names."""

VLANS_NAMED = 32
"""VLANs of a port that are shown by name, the lowest first."""


class WithStatic(Protocol):
    """Who has the static members."""

    static: StaticMembers


class SwitchNames(Protocol):
    """What switches are called, and which are gone."""

    names: Names
    gone: dict[int, Document]


JOINED_SHOWN = 64
"""Groups that are named of those joined at a port; the others are counted."""


class Reported(Protocol):
    """What is reported to routers."""

    def reported(self, dpid: int, port_no: int, family: int, vlan_id: int) -> Document | None:
        """Return the version of reports at a port, and how many and which groups they are about; None for no port."""


class ShownCore(Protocol):
    """The core that is shown."""

    counters: Counter[str]
    policy: Policy
    fabric: LiveFabric
    fabric_names: FabricNames
    vlan_ports: VlanPorts
    topology: FabricFollower
    plane: GroupPlane
    aliases: AliasControl
    registered: RegisteredGroups
    installer: Installer
    membership: MembershipCore
    memberships: Memberships
    senders: SenderTable
    gate: Gate
    admission: Admission

    @property
    def proxy(self) -> Reported:
        """What is reported to routers."""

    @property
    def forest(self) -> Forest:
        """The trees."""

    @property
    def operator(self) -> WithStatic:
        """What operators have set."""

    @property
    def sections(self) -> SwitchNames:
        """What is known of switches besides."""


def status(core: ShownCore) -> Document:
    """Return counts, and whether every switch that was ever there is connected and holds what it should.

    `in_sync` is about the switches of the present fabric alone.
    """
    fabric = core.fabric
    switches = fabric.switches()
    reason = _not_ready(core, switches)
    return {
        "ready": reason is None,
        "not_ready_reason": reason,
        "in_sync": bool(switches) and all(core.installer.in_sync(dpid) for dpid in switches),
        "switches": len(switches),
        "fabrics": len(fabric.fabrics),
        "links": sum(1 for _ in fabric.graph.links()),
        "edge_ports": sum(len(fabric.edge_ports(dpid)) for dpid in switches),
        "hosts": len(fabric.hosts()),
        "groups": len(core.plane.groups),
        "static_members_waiting": core.operator.static.waiting_count(),
        "counters": dict(sorted(counted(core).items())),
    }


def _not_ready(core: ShownCore, switches: Sequence[int]) -> str | None:
    """Say which switches keep the fabric from being ready, None where none does."""
    connected, gone = core.topology.connected, core.sections.gone
    away = sorted({*(dpid for dpid in switches if dpid not in connected), *gone} - connected)
    behind = [dpid for dpid in switches if dpid in connected and not core.installer.in_sync(dpid)]
    parts = []
    if away:
        parts.append(f"{_switches(core, away, len({*switches, *gone}))} not connected")
    if behind:
        parts.append(f"{_switches(core, behind, len({*switches, *gone}))} not in sync")
    if not switches and not gone:
        parts.append("no switch has connected")
    return "; ".join(parts) or None


def _switches(core: ShownCore, some: Sequence[int], count: int) -> str:
    """Say which of `count` switches are meant, the first `NAMED` by what they are called."""
    called = [core.sections.names.label(dpid) for dpid in some[:NAMED]]
    if len(some) == 1:
        return f"switch {called[0]} is"
    more = ", ..." if len(some) > NAMED else ""
    return f"{len(some)} of {count} switches ({', '.join(called)}{more}) are"


def counted(core: ShownCore) -> Counter[str]:
    """Return what was counted, by kind, in all domains together."""
    total: Counter[str] = Counter()
    memberships = (membership.counters for _, membership in core.memberships.all())
    own = (core.counters, core.senders.counters, core.plane.aliases.counters, core.installer.counters)
    for counters in (*own, *memberships):
        for name, count in counters.items():
            total[name] += count
    return total


def groups(core: ShownCore) -> list[Document]:
    """Return each group with its tree, members, senders and refusals."""
    wanted = (address for address in core.memberships.groups() if not is_link_scope_group(address))
    addresses = {*core.plane.groups, *wanted, *core.operator.static.groups()}
    return [group(core, address) for address in sorted(addresses)]


def group(core: ShownCore, address: bytes) -> Document:
    """Return one group: its tree, members, senders and refusals."""
    group, registration = core.plane.groups.get(address), core.registered.registration(address)
    source_vlan, given_name = None if registration is None else registration.source_vlan, core.policy.vlans.given_name
    members = list(core.memberships.members_of(address))
    admitted = [_member(member) for member in members if member.admitted]
    return {
        "group": format_ip(address),
        "vlan": domain_of(address) or None,
        "vlan_name": given_name(domain_of(address)),
        "source_vlan": source_vlan,
        "source_vlan_name": None if source_vlan is None else given_name(source_vlan),
        "receiver_vlans": [
            {"vlan": vlan_id or None, "vlan_name": given_name(vlan_id), "ports": count}
            for vlan_id, count in core.registered.port_counts(address).items()
        ],
        "links": tree_links(core, address),
        "detached": sorted(core.plane.islands.cut_off(address)),
        "size": len(admitted),
        "rate_bps": round(sum(s.rate_bps for s in group.senders.values() if s.admitted)) if group is not None else 0,
        "members": admitted,
        "static_members": core.operator.static.of_group(address),
        "refused": [_refused(core, member) for member in members if not member.admitted],
        "senders": _senders(core, group) if group is not None else [],
        "aliases": _aliases(core, group) if group is not None else [],
        **_waiting(core, address),
        "unsupported": group.unsupported if group is not None else None,
    }


def _aliases(core: ShownCore, group: Group) -> list[Document]:
    """Return the further trees of a group."""
    return [
        {
            "number": alias.number,
            "links": tree_links(core, alias.key),
            "senders": sum(sender.admitted for sender in alias.own_senders().values()),
            "rate_bps": round(sum(s.rate_bps for s in alias.own_senders().values() if s.admitted)),
            "state": "leaving" if alias.is_leaving else "bound" if alias.is_standing else "binding",
        }
        for alias in group.all_trees()[1:]
    ]


def _waiting(core: ShownCore, address: bytes) -> Document:
    """Return how much a group waits and how full its trees are, as it is measured for aliases."""
    measured = core.aliases.measured(address)
    if measured is None:
        return {"queue_packets": None, "utilisation_pct": None}
    return {"queue_packets": round(measured.queue, 3), "utilisation_pct": round(100 * measured.utilisation, 1)}


def _senders(core: ShownCore, group: Group) -> list[Document]:
    """Return the senders of a group, each once: by all legs together where it is behind a link aggregation group."""
    aggregations = core.fabric.aggregations
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
                "alias": sender.alias or None,
                "service_class": sender.mark.service_class,
                "dscp": sender.mark.dscp if sender.admitted else None,
            },
        )
        document["rate_bps"] += round(sender.rate_bps)
        if leg in aggregations.homes:
            own = {"dpid": key.dpid, "port_no": key.port_no, "rate_bps": round(sender.rate_bps)}
            document.setdefault("legs", []).append(own)
    return [document for _, document in sorted(found.items())]


def tree_links(core: ShownCore, key: Key) -> list[list[int]]:
    """Return the links of a tree by its key, a group's name or that of an alias, and of its islands.

    Each is two switches, and both ports where several cables join these.
    """
    found: list[list[int]] = []
    for tree in core.plane.islands.trees(key):
        for u, v, *ports in links_of(tree, core.forest.loads):
            found.append([u, v, *ports] if u < v else [v, u, *ports[::-1]])
    return sorted(found)


def _member(member: Member) -> Document:
    return {
        "dpid": member.host.dpid,
        "port_no": member.host.port_no,
        "mac": format_mac(member.host.mac),
        "ip": format_ip(member.host.ip) if member.host.ip else None,
        "mode": "exclude" if member.mode is FilterMode.EXCLUDE else "include",
        "sources": sorted(
            format_ip(source) for source in (member.sources if member.mode is FilterMode.INCLUDE else member.excluded)
        ),
    }


def _refused(core: ShownCore, member: Member) -> Document:
    source = min(member.sources, default=None) if member.mode is FilterMode.INCLUDE else None
    decision = core.gate.refusal(member.host, member.group, source)
    return {**_member(member), "rule": decision.rule, "reason": decision.reason}


def rules(core: ShownCore) -> list[Document]:
    """Return how often each rule of the policy allowed and denied."""
    return [{"rule": name, **counts} for name, counts in core.admission.counters().items()]


def routers(core: ShownCore) -> Document:
    """Return who is the querier of each family, and the ports with multicast routers."""
    ports = [router_port(core, *key) for key in router_port_keys(core)]
    return {**queriers(core), "router_ports": ports}


def router_port_keys(core: ShownCore) -> list[tuple[int, int, int, int]]:
    """Return the (dpid, port number, family, VLAN id) of each port with a multicast router, in order."""
    all_of = core.memberships.all()
    return sorted((*key, vlan_id) for vlan_id, membership in all_of for key in membership.router_port_keys())


def router_port(core: ShownCore, dpid: int, port_no: int, family: int, vlan_id: int) -> Document | None:
    """Return a port with a multicast router of a domain, None where there is none."""
    membership = core.memberships.of(vlan_id)
    entry = membership.router_ports.get(dpid, port_no, family)
    if entry is None:
        return None
    groups = None if entry.groups is None else sorted(str(allowed) for allowed in entry.groups)
    routers = sorted({format_ip(speaker.address) for speaker in entry.routers})
    place = {"dpid": dpid, "port_no": port_no, "family": family, "vlan": vlan_id or None}
    how = {"static": entry.static, "on_request": entry.on_request}
    reported = core.proxy.reported(dpid, port_no, family, vlan_id)
    joined = None
    if entry.on_join:
        addresses = sorted(membership.pim_joins.at((dpid, port_no), family))
        joined = {"group_count": len(addresses), "groups": list(map(format_ip, addresses[:JOINED_SHOWN]))}
    return {**place, **how, "routers": routers, "groups": groups, "reported": reported, "joined": joined}


def fabric_of(core: ShownCore, dpid: int) -> str | None:
    """Return what a switch's fabric is called: its name, else what its lowest switch is; None where it is in none."""
    fabric = core.fabric.fabrics.of(dpid)
    if fabric is None:
        return None
    return core.fabric_names.called(fabric.dpid).name or core.sections.names.label(fabric.dpid)


def port_aggregation(core: ShownCore, dpid: int, port_no: int) -> Document | None:
    """Return the link aggregation group that a port is in, and which of its legs work; None where it is in none."""
    fabric, place = core.fabric, (dpid, port_no)
    home = fabric.aggregations.homes.get(place)
    if home is None:
        return None
    group = next(group for group in core.policy.link_aggregations if group.ports[0] == home)
    working = fabric.working_legs(place)
    legs = [{"dpid": leg[0], "port_no": leg[1], "works": leg in working} for leg in fabric.aggregations.legs(place)]
    return {"name": group.name, "mode": group.mode, "legs": legs}


def port_vlans(core: ShownCore, dpid: int, port_no: int) -> Document | None:
    """Return the VLANs of a port to hosts; None where no port of the fabric is in one."""
    if not core.vlan_ports.is_used:
        return None
    vlans, port = core.policy.vlans, core.vlan_ports.of(dpid, port_no)
    named = ((vlan_id, vlans.given_name(vlan_id)) for vlan_id in sorted(port.vlans()))
    names = islice(((str(vlan_id), name) for vlan_id, name in named if name is not None), VLANS_NAMED)
    return {"untagged": port.untagged, "tagged": in_ranges(sorted(port.tagged)), "names": dict(names)}


def in_ranges(vlan_ids: Sequence[int]) -> str:
    """Return ascending numbers as text, as ``20,30-35``."""
    ranges: list[list[int]] = []
    for vlan_id in vlan_ids:
        if ranges and ranges[-1][1] == vlan_id - 1:
            ranges[-1][1] = vlan_id
        else:
            ranges.append([vlan_id, vlan_id])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def queriers(core: ShownCore) -> Document:
    """Return who is the querier of each family; in VLANs, where that is not the controller.

    Where there are several fabrics each querier that is not the controller has the name of its own.
    """
    fabrics = core.fabric.fabrics
    places: list[int | None] = [fabric.dpid for fabric in fabrics] or [None]
    found = [
        (vlan_id, querier)
        for vlan_id, membership in core.memberships.all()
        for family in FAMILIES
        for querier in dict.fromkeys(membership.querier(family, place) for place in places)
        if not (vlan_id and querier.is_ours)
    ]
    return {
        "queriers": [
            {
                "family": querier.family,
                "vlan": vlan_id or None,
                "ours": querier.is_ours,
                "fabric": fabric_of(core, querier.dpid) if querier.dpid is not None and len(fabrics) > 1 else None,
                "address": format_ip(querier.address) if querier.address is not None else None,
                "dpid": querier.dpid,
                "port_no": querier.port_no,
                "robustness": querier.robustness,
                "query_interval_s": querier.query_interval_s,
            }
            for vlan_id, querier in found
        ],
    }


VIEWS = {"status": status, "groups": groups, "rules": rules, "routers": routers}
