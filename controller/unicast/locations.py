"""Location addresses: MAC addresses that say at which switch a host is, which frames have between switches.

A location address is a locally administered unicast address, as the pseudo MAC addresses of PortLand
(doi:10.1145/1592568.1592575):

    21 bits and the bits 10      the switch that the host is at (its number)
    1 bit                        which of the two labels of that switch the host has, to spread hosts over paths
    24 bits                      the host at that switch

The first two make the label, by which switches forward. Numbers of switches are hashes of their datapath ids, those
of hosts are the last 24 bits of their own addresses, in VLANs hashes of address and VLAN, so that they are the same
after a restart. Where two would be equal the one that came second has another.
"""

from __future__ import annotations

from collections.abc import Container

from controller.unicast.paths import mix

LABEL_COUNT = 2
"""Labels of one switch: over so many paths the packets from one switch to another spread."""

LABEL_MASK = b"\xff\xff\xff\0\0\0"

_MAC_BYTES = 6
_HOST_BITS = 24
_NUMBER_BITS = 21
_HOSTS = (1 << _HOST_BITS) - 1


def switch_number(dpid: int, taken: Container[int]) -> int:
    """Return the number of a switch, 0 to 2^21 - 1, none of those that are taken."""
    seed = mix(dpid)
    while (number := seed & (1 << _NUMBER_BITS) - 1) in taken:
        seed = mix(seed)
    return number


def host_number(mac: bytes, taken: Container[int]) -> int:
    """Return the number of a host, by its MAC address's name, at its switch, 0 to 2^24 - 1, none that is taken."""
    seed = int.from_bytes(mac, "big")
    if len(mac) != _MAC_BYTES:
        seed = mix(seed)
    number = seed & _HOSTS
    while number in taken:
        seed = mix(seed)
        number = seed & _HOSTS
    return number


def label_of(mac: bytes) -> int:
    """Return which label of its switch a host has, 0 to `LABEL_COUNT` - 1."""
    return mix(int.from_bytes(mac, "big")) % LABEL_COUNT


def location_address(number: int, label: int, host: int = 0) -> bytes:
    """Return the location address of a host; with host number 0 what all of a label have in common."""
    value = (number << 1 | label) << _HOST_BITS | host
    first = (value >> 40) << 2 | 0b10
    return bytes((first,)) + (value & (1 << 40) - 1).to_bytes(5, "big")


def number_of(address: bytes) -> int:
    """Return the number of the switch that a location address is of."""
    return (address[0] >> 2) << 15 | address[1] << 7 | address[2] >> 1
