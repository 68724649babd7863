"""What operators are shown of the multicast core: JSON-able documents."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from controller.membership.events import FilterMode, Member
from controller.membership.querier import FAMILIES
from controller.wire.addresses import format_ip, format_mac, is_link_scope_group

if TYPE_CHECKING:
    from controller.multicast.core import MulticastCore

Document = dict[str, Any]


def status(core: MulticastCore) -> Document:
    """Return counts, and whether every switch holds what it should."""
    fabric = core.fabric
    switches = fabric.switches()
    return {
        "ready": bool(switches) and all(core.installer.in_sync(dpid) for dpid in switches),
        "switches": len(switches),
        "links": sum(1 for _ in fabric.graph.links()),
        "edge_ports": sum(len(fabric.edge_ports(dpid)) for dpid in switches),
        "hosts": len(fabric.hosts()),
        "groups": len(core.plane.groups),
        "counters": dict(sorted(_counters(core).items())),
    }


def _counters(core: MulticastCore) -> Counter[str]:
    total: Counter[str] = Counter()
    for counters in (core.counters, core.membership.counters, core.senders.counters, core.installer.counters):
        for name, count in counters.items():
            total[name] += count
    return total


def groups(core: MulticastCore) -> list[Document]:
    """Return each group with its tree, members, senders and refusals."""
    wanted = (address for address in core.membership.members_table.groups() if not is_link_scope_group(address))
    addresses = {*core.plane.groups, *wanted, *core.operator.static_groups()}
    return [group(core, address) for address in sorted(addresses)]


def group(core: MulticastCore, address: bytes) -> Document:
    """Return one group: its tree, members, senders and refusals."""
    group = core.plane.groups.get(address)
    tree = core.forest.tree(address)
    members = list(core.membership.members_of(address))
    admitted = [_member(member) for member in members if member.admitted]
    return {
        "group": format_ip(address),
        "links": sorted(sorted(link) for link in tree.links()) if tree is not None else [],  # type: ignore[type-var]
        "detached": sorted(tree.detached) if tree is not None else [],
        "size": len(admitted),
        "rate_bps": round(sum(s.rate_bps for s in group.senders.values() if s.admitted)) if group is not None else 0,
        "members": admitted,
        "static_members": [
            {"dpid": dpid, "port_no": port_no} for dpid, port_no in core.operator.static_ports(address)
        ],
        "refused": [_member(member) for member in members if not member.admitted],
        "senders": [
            {
                "dpid": key.dpid,
                "port_no": key.port_no,
                "mac": format_mac(key.mac),
                "ip": format_ip(key.address),
                "admitted": sender.admitted,
                "rule": sender.rule,
                "rate_bps": round(sender.rate_bps),
            }
            for key, sender in sorted(group.senders.items())
        ]
        if group is not None
        else [],
        "unsupported": group.unsupported if group is not None else None,
    }


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


def rules(core: MulticastCore) -> list[Document]:
    """Return how often each rule of the policy allowed and denied."""
    return [{"rule": name, **counts} for name, counts in core.admission.counters().items()]


def routers(core: MulticastCore) -> Document:
    """Return who is the querier of each family, and the ports with multicast routers."""
    ports = [router_port(core, *key) for key in sorted(core.membership.router_port_keys())]
    return {**queriers(core), "router_ports": ports}


def router_port(core: MulticastCore, dpid: int, port_no: int, family: int) -> Document | None:
    """Return a port with a multicast router, None where there is none."""
    entry = core.membership.router_ports.get(dpid, port_no, family)
    if entry is None:
        return None
    return {"dpid": dpid, "port_no": port_no, "family": family, "static": entry.static}


def queriers(core: MulticastCore) -> Document:
    """Return who is the querier of each family."""
    return {
        "queriers": [
            {
                "family": querier.family,
                "ours": querier.is_ours,
                "address": format_ip(querier.address) if querier.address is not None else None,
                "dpid": querier.dpid,
                "port_no": querier.port_no,
                "robustness": querier.robustness,
                "query_interval_s": querier.query_interval_s,
            }
            for querier in map(core.membership.querier, FAMILIES)
        ],
    }


VIEWS = {"status": status, "groups": groups, "rules": rules, "routers": routers}
