"""Which addresses a host can have; they are addresses or their names in a domain (`controller.kernel.domains`)."""

from __future__ import annotations

from controller.kernel.domains import address_of
from controller.kernel.spread import fraction
from controller.wire.addresses import format_ip, format_mac, is_multicast_ip

MAC_BYTES = 6
_NO_MAC = bytes(MAC_BYTES)


def is_host_mac(mac: bytes) -> bool:
    """Tell whether a MAC address, or its name in a domain, is that of one interface."""
    return not mac[0] & 1 and not mac.startswith(_NO_MAC)


def is_host_address(address: bytes) -> bool:
    """Tell whether one host can own an address, or its name: no unspecified, loopback, multicast or broadcast one."""
    if len(address) not in (4, 16):
        address = address_of(address)
    if is_multicast_ip(address) or not any(address):
        return False
    if len(address) == 4:
        return address[0] not in (0, 127) and address[0] < 240
    return address != bytes(15) + b"\x01"


def text_of(claimed: bytes) -> str:
    """Return a MAC or IP address, or its name, as text."""
    return format_mac(claimed) if len(address_of(claimed)) == MAC_BYTES else format_ip(claimed)


def spread(mac: bytes) -> float:
    """Return a number in [0, 1) that depends on a MAC address's name alone, evenly spread."""
    return fraction(int.from_bytes(mac[-8:], "big"))
