"""Queries: our own as packets, and where those of another router go on to."""

from __future__ import annotations

from functools import lru_cache

from controller.config.settings import Querier
from controller.effects import SendPacket
from controller.membership.events import SendQuery
from controller.multicast.groups import GroupPlane
from controller.wire.addresses import is_link_scope_group
from controller.wire.encode import encode
from controller.wire.packets import Query
from topology.live import LiveFabric

CONTROLLER_MAC = bytes.fromhex("025653525401")
"""Source of the queries we send: a locally administered address."""


def passed_on(
    plane: GroupPlane, fabric: LiveFabric, dpid: int, port_no: int, query: Query, frame: bytes
) -> list[SendPacket]:
    """Hand the querier's query to all other edge ports, or to those with members of the group it is about."""
    ports: dict[int, list[int]] = {}
    if query.group is not None and not is_link_scope_group(query.group):
        group = plane.groups.get(query.group)
        for to_dpid, interests in group.interests.items() if group is not None else ():
            ports[to_dpid] = list(interests)
    else:
        for to_dpid in fabric.switches():
            ports[to_dpid] = list(fabric.edge_ports(to_dpid))
    passed = []
    for to_dpid, to_ports in ports.items():
        others = tuple(port for port in to_ports if (to_dpid, port) != (dpid, port_no))
        if others:
            passed.append(SendPacket(to_dpid, others, frame))
    return passed


def sent(effect: SendQuery, querier: Querier) -> SendPacket:
    """Return a query of our own as a packet."""
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
    return SendPacket(effect.dpid, (effect.port_no,), _frame(query))


@lru_cache(maxsize=64)
def _frame(query: Query) -> bytes:
    """Return a query as a frame; general ones are the same at every port."""
    return encode(query)
