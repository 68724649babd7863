"""Lets the bridges of a segment learn where hosts are, which they may know behind a port that is held now."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from heapq import nlargest

from controller.discovery.host_states import LocatedHost
from controller.discovery.vlan_access import VlanAccess
from controller.effects import SendPacket
from controller.kernel.domains import address_of, domain_of
from controller.kernel.ports import End
from controller.wire.ethernet import ETHERTYPE_EXPERIMENTAL, encode_ethernet
from controller.wire.lldp import SEGMENT_MAC

MOVED_HOSTS = 1024
"""Of how many hosts a segment is told, when a port is held, that they are behind another; others wait for their next
frame to everybody, or for the bridges' ageing."""

AGAIN_S = 1.0
"""When it is told again: what came by the held port until its switch dropped it taught the bridges otherwise."""


def moved_frames(
    low: End, segment: Collection[End], hosts: Iterable[LocatedHost], vlans: VlanAccess
) -> Iterator[SendPacket]:
    """Yield a frame from each host that is not at a `segment`'s ports, out of its port `low`; the newest first.

    Hosts in VLANs that the port does not have are nothing to the segment.
    """
    others = (host for host in hosts if host.end not in segment and vlans.lets_in(low, host.mac))
    for host in nlargest(MOVED_HOSTS, others, key=lambda host: (host.seen_s, host.mac)):
        frame = encode_ethernet(SEGMENT_MAC, address_of(host.mac), ETHERTYPE_EXPERIMENTAL, b"")
        yield SendPacket(low[0], (low[1],), vlans.framed(low, frame, domain_of(host.mac)))
