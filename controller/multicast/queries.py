"""Queries: our own as packets, and where those of another router go on to."""

from __future__ import annotations

from functools import lru_cache

from controller.config.multicast_settings import Querier
from controller.effects import SendPacket
from controller.kernel.domains import in_domain
from controller.kernel.vlan_ports import VlanPorts
from controller.membership.events import SendQuery
from controller.multicast.registered import RegisteredGroups
from controller.wire.addresses import is_link_scope_group
from controller.wire.encode import encode
from controller.wire.ethernet import with_tag
from controller.wire.packets import Query
from topology.live import LiveFabric

CONTROLLER_MAC = bytes.fromhex("025653525401")
"""Source of the queries we send: a locally administered address."""


def passed_on(
    registered: RegisteredGroups,
    fabric: LiveFabric,
    vlan_ports: VlanPorts,
    dpid: int,
    port_no: int,
    query: Query,
    frame: bytes,
    vlan_id: int,
) -> list[SendPacket]:
    """Hand the querier's query to all other edge ports of its domain and fabric, or those with members of its group.

    `frame` has no tag; it gets that of its VLAN where that is tagged.
    """
    ports: dict[int, list[int]] = {}
    if query.group is not None and not is_link_scope_group(query.group):
        name = in_domain(query.group, vlan_id)
        for to_dpid in registered.switches(name):
            ports[to_dpid] = registered.ports_at(name, to_dpid)
    elif vlan_ports.is_used:
        for to_dpid in fabric.switches():
            ports[to_dpid] = [at for at in vlan_ports.all_of(to_dpid, vlan_id) if fabric.is_flooded(to_dpid, at)]
    else:
        for to_dpid in fabric.switches():
            ports[to_dpid] = [at for at in fabric.edge_ports(to_dpid) if fabric.is_flooded(to_dpid, at)]
    passed: list[SendPacket] = []
    for to_dpid, to_ports in ports.items():
        if not fabric.fabrics.is_one(to_dpid, dpid):
            continue
        others = tuple(port for port in to_ports if not fabric.is_one_port((to_dpid, port), (dpid, port_no)))
        passed += vlan_ports.sent(to_dpid, others, frame, vlan_id)
    return passed


def sent(effect: SendQuery, querier: Querier, tag: int = 0) -> SendPacket:
    """Return a query of our own as a packet, with a VLAN's tag where `tag` is not 0."""
    query = Query(
        effect.family,
        effect.version,
        CONTROLLER_MAC,
        querier.address_v4 if effect.family == 4 else querier.address_v6,
        effect.group,
        effect.sources,
        effect.max_response_s,
        effect.suppress,
        effect.robustness,
        effect.query_interval_s,
    )
    frame = _frame(query)
    return SendPacket(effect.dpid, (effect.port_no,), with_tag(frame, tag) if tag else frame)


@lru_cache(maxsize=64)
def _frame(query: Query) -> bytes:
    """Return a query as a frame; general ones are the same at every port."""
    return encode(query)
