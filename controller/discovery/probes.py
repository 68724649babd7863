"""The questions that discovery asks a host to learn whether it is still there."""

from __future__ import annotations

from controller.wire.arp import REQUEST, encode_arp
from controller.wire.nd import encode_neighbour
from controller.wire.packets import Arp, Neighbour


def link_local(mac: bytes) -> bytes:
    """Return the IPv6 link-local address made of a MAC address (RFC 4291, appendix A)."""
    return b"\xfe\x80" + bytes(6) + bytes((mac[0] ^ 2,)) + mac[1:3] + b"\xff\xfe" + mac[3:]


def host_probe(mac: bytes, address: bytes, asker_mac: bytes, asker_ipv4: bytes) -> bytes:
    """Return the frame that asks the host `mac`, and no other, whether it has `address` (4 or 16 bytes).

    An ARP request from `asker_ipv4` (0.0.0.0 makes it a probe, RFC 5227, 2.1.1, that changes no cache), or a unicast
    neighbour solicitation (RFC 4861, 7.3.1) from the link-local address of `asker_mac`.
    """
    if len(address) == 4:
        return encode_arp(Arp(asker_mac, mac, REQUEST, asker_mac, asker_ipv4, bytes(6), address))
    return encode_neighbour(Neighbour(asker_mac, mac, link_local(asker_mac), address, True, address, asker_mac))
