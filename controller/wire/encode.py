"""The single entry of the encoders, the inverse of `controller.wire.frame.decode`."""

from __future__ import annotations

from typing import TypeAlias

from controller.wire.arp import encode_arp
from controller.wire.igmp import encode_igmp_query, encode_igmp_report
from controller.wire.lldp import encode_lldp
from controller.wire.mld import encode_mld_query, encode_mld_report
from controller.wire.nd import encode_neighbour
from controller.wire.packets import Arp, Lldp, Neighbour, PimHello, PimJoinPrune, Query, Report
from controller.wire.pim import encode_pim_hello
from controller.wire.pim_join_prune import encode_pim_join_prune

Encodable: TypeAlias = Report | Query | PimHello | PimJoinPrune | Arp | Neighbour | Lldp


def encode(packet: Encodable) -> bytes:
    """Return the frame of a record; ValueError where its protocol version cannot say it.

    Data and Unicast records stand for packets whose payload is not kept: see `controller.wire.udp.encode_udp`.
    """
    if isinstance(packet, Report):
        return encode_igmp_report(packet) if packet.family == 4 else encode_mld_report(packet)
    if isinstance(packet, Query):
        return encode_igmp_query(packet) if packet.family == 4 else encode_mld_query(packet)
    if isinstance(packet, PimHello):
        return encode_pim_hello(packet)
    if isinstance(packet, PimJoinPrune):
        return encode_pim_join_prune(packet)
    if isinstance(packet, Arp):
        return encode_arp(packet)
    if isinstance(packet, Neighbour):
        return encode_neighbour(packet)
    return encode_lldp(*packet)
