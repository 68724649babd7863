"""Addresses as the wire carries them: bytes of length 4 (IPv4), 16 (IPv6) or 6 (MAC).

What tells something of a group takes its name too (`controller.kernel.domains`): it says the same in every VLAN.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache

from controller.kernel.domains import HIGHEST_VLAN, LOWEST_VLAN, address_of, domain_of, in_domain
from topology.host_names import number_of

_MAC = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}\Z")
_VLAN = re.compile(r"[1-9][0-9]{0,3}\Z")

BROADCAST_MAC = b"\xff" * 6

_OCTETS = tuple(map(str, range(256)))

_MAC_STARTS = tuple(bytes((0x01, 0x00, 0x5E, second & 0x7F)) for second in range(256))
"""How the Ethernet address of an IPv4 group begins, by the group's second byte."""


@lru_cache(maxsize=65536)
def format_ip(address: bytes) -> str:
    """Return the usual text of an IPv4 (4 bytes) or IPv6 (16 bytes) address; in a VLAN ``@`` and its id follow."""
    if len(address) == 4:
        first, second, third, fourth = address
        return f"{_OCTETS[first]}.{_OCTETS[second]}.{_OCTETS[third]}.{_OCTETS[fourth]}"
    if len(address) != 16 and (vlan_id := domain_of(address)):
        return f"{format_ip(address_of(address))}@{vlan_id}"
    return str(ipaddress.ip_address(address))


def parse_ip(text: str) -> bytes:
    """Return the bytes of an IPv4 or IPv6 address; ValueError where `text` is none."""
    return ipaddress.ip_address(text).packed


def parse_name(text: str) -> bytes:
    """Return the name of an IPv4 or IPv6 address in its domain, as `format_ip` gives it; ValueError for any other."""
    address, at, vlan = text.partition("@")
    if not at:
        return parse_ip(text)
    if not _VLAN.match(vlan) or not LOWEST_VLAN <= int(vlan) <= HIGHEST_VLAN:
        raise ValueError(f"{text!r} does not end with a VLAN from {LOWEST_VLAN} to {HIGHEST_VLAN}")
    return in_domain(parse_ip(address), int(vlan))


def format_mac(address: bytes) -> str:
    """Return a MAC address as six lower-case hexadecimal pairs with colons.

    Of a name in a VLAN ``@`` and its id follow, and of one that hosts share (`topology.host_names`) ``~`` and
    its number.
    """
    if len(address) == 6:
        return address.hex(":")
    vlan_id, number = domain_of(address), number_of(address)
    text = address_of(address).hex(":")
    text = f"{text}@{vlan_id}" if vlan_id else text
    return text if number == 1 else f"{text}~{number}"


def parse_mac(text: str) -> bytes:
    """Return the 6 bytes of a MAC address written with colons; ValueError where `text` is none."""
    if not _MAC.match(text):
        raise ValueError(f"{text!r} is not a MAC address such as 00:00:00:00:00:0b")
    return bytes.fromhex(text.replace(":", ""))


def is_multicast_ip(address: bytes) -> bool:
    """Tell whether an address is in 224.0.0.0/4 or ff00::/8."""
    return address[0] >> 4 == 0xE if len(address) < 16 else address[0] == 0xFF


LINK_SCOPE_BYTES = (224, 255)
"""The first bytes of link-scope groups, and of others, for who asks of each group."""


def is_link_scope_group(group: bytes) -> bool:
    """Tell whether a group never leaves the link: 224.0.0.0/24 (RFC 5771) and ff00::/16 to ff02::/16 (RFC 4291)."""
    if len(group) < 16:
        return group[:3] == b"\xe0\x00\x00"
    return group[0] == 0xFF and group[1] & 0x0F <= 2


def is_ssm_group(group: bytes) -> bool:
    """Tell whether a group is for source-specific multicast alone: 232.0.0.0/8 and ff3x::/32 (RFC 4607, 1)."""
    if len(group) < 16:
        return group[0] == 232
    return group[0] == 0xFF and group[1] >> 4 == 3 and group[2:4] == b"\x00\x00"


def is_never_pruned(group: bytes) -> bool:
    """Tell whether a group reaches every host whatever is joined: 224.0.0.0/24, ff02::1, ff00::/15."""
    if len(group) < 16:
        return group[:3] == b"\xe0\x00\x00"
    return group[0] == 0xFF and (group[1] & 0xFE == 0 or group == ALL_NODES_V6)


def group_mac(group: bytes) -> bytes:
    """Return the Ethernet address of a group: 01:00:5e and 23 bits (RFC 1112), or 33:33 and 32 bits (RFC 2464)."""
    if len(group) < 16:
        return _MAC_STARTS[group[1]] + group[2:4]
    return b"\x33\x33" + group[12:16]


def solicited_node(address: bytes) -> bytes:
    """Return the solicited-node group of an IPv6 address (RFC 4291, 2.7.1)."""
    return SOLICITED_NODE_PREFIX + address[13:]


UNSPECIFIED_V4 = bytes(4)
UNSPECIFIED_V6 = bytes(16)
LOOPBACK_V6 = parse_ip("::1")
BROADCAST_V4 = b"\xff" * 4
ALL_SYSTEMS_V4 = parse_ip("224.0.0.1")
ALL_ROUTERS_V4 = parse_ip("224.0.0.2")
ALL_PIM_ROUTERS_V4 = parse_ip("224.0.0.13")
IGMPV3_ROUTERS: bytes = parse_ip("224.0.0.22")
ALL_NODES_V6 = parse_ip("ff02::1")
ALL_ROUTERS_V6 = parse_ip("ff02::2")
ALL_PIM_ROUTERS_V6 = parse_ip("ff02::d")
MLDV2_ROUTERS = parse_ip("ff02::16")
SOLICITED_NODE_PREFIX = parse_ip("ff02::1:ff00:0")[:13]
