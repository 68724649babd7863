"""Names in broadcast domains: whose an address is that may stand for somebody else in another VLAN.

A frame without a tag is in the fabric's own domain, VLAN 0. There the name of a group or a host is its address, as
the wire has it. In a VLAN the VLAN id stands behind the address, so that one table has the names of all domains, and
a fabric without VLANs does no more than it did. As text the name of 239.1.1.1 in VLAN 20 is ``239.1.1.1@20``.

Of hosts with one MAC address, each in a fabric of its own, all but one have a number behind their names
(`topology.host_names`): ``00:00:00:00:00:0b~2``, or ``00:00:00:00:00:0b@20~2`` in a VLAN.
"""

from __future__ import annotations

from topology.host_names import is_numbered, shared_name

OWN_DOMAIN = 0
"""The VLAN id that stands for frames without a tag."""

LOWEST_VLAN, HIGHEST_VLAN = 1, 4094
"""The VLAN ids that a tag may have (IEEE 802.1Q, 9.6): 0 is a priority tag's, 4095 is reserved."""

_MARK = b"\x81"
_SUFFIX_BYTES = 3
_ADDRESS_BYTES = frozenset((4, 6, 16))
_NAME_BYTES = frozenset(size + _SUFFIX_BYTES for size in _ADDRESS_BYTES)
IPV4_NAME_BYTES = 4 + _SUFFIX_BYTES
"""The length of an IPv4 address's name in a VLAN."""


SUFFIXES = (b"", *(_MARK + vlan_id.to_bytes(2, "big") for vlan_id in range(1, 1 << 12)))
"""What stands behind an address in each VLAN, for who names many things; a tag from elsewhere may be 4095 too."""


def in_domain(address: bytes, vlan_id: int) -> bytes:
    """Return the name of an address (4, 6 or 16 bytes) in a VLAN, 0 for the fabric's own domain."""
    return address + SUFFIXES[vlan_id]


def address_of(name: bytes) -> bytes:
    """Return the address of a name."""
    size = len(name)
    if size in _ADDRESS_BYTES:
        return name
    if size not in _NAME_BYTES and is_numbered(name):
        return address_of(shared_name(name))
    return name[:-_SUFFIX_BYTES]


def domain_of(name: bytes) -> int:
    """Return the VLAN id of a name, 0 in the fabric's own domain."""
    size = len(name)
    if size in _ADDRESS_BYTES:
        return 0
    if size not in _NAME_BYTES and is_numbered(name):
        return domain_of(shared_name(name))
    return int.from_bytes(name[-2:], "big")


def family_of(name: bytes) -> int:
    """Return 4 or 6 for the name of an IPv4 or IPv6 address."""
    return 4 if len(name) < 16 else 6


def is_name(name: bytes) -> bool:
    """Tell whether bytes are the name of an address in some domain."""
    size = len(name)
    if size in _ADDRESS_BYTES:
        return True
    return (
        size in _NAME_BYTES
        and name[-3:-2] == _MARK
        and LOWEST_VLAN <= int.from_bytes(name[-2:], "big") <= HIGHEST_VLAN
    )
