"""Which groups have one Ethernet address, and which of these are those of groups that never leave their link.

The Ethernet address of an IPv4 group has its low 23 bits (RFC 1112, 6.4), so that 32 groups have each; that of an
IPv6 group has its low 32 bits (RFC 2464, 7). Switches send frames to the address of a link-scope group to every port
(RFC 4541, 2.1.2), so that no other group should have it: those of 224.0.0.0/24, and of ff02::/16 those that are
assigned (IANA, IPv6 Multicast Address Space: below ff02::2:0, and solicited-node groups and node information queries
from ff02::ff00:0 on by their low bits).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

V4_BITS, V6_BITS = 23, 32
"""Bits of a group that its Ethernet address has."""

_LINK_SCOPE = {4: ((0, 0x100),), 16: ((0, 0x20000), (0xFF000000, 1 << V6_BITS))}
"""The low bits of link-scope groups, by bytes of an address: from the first to before the last."""


class Range(Protocol):
    """Addresses that share `length` leading bits with `network`."""

    @property
    def network(self) -> bytes:
        """The first address."""

    @property
    def length(self) -> int:
        """Leading bits."""


def mac_bits(size: int) -> int:
    """Return how many bits of a group of `size` bytes its Ethernet address has."""
    return V4_BITS if size == 4 else V6_BITS


def first_usable(number: int, size: int) -> int:
    """Return the first address from this one on whose Ethernet address is of no link-scope group; as numbers."""
    low = number & (1 << mac_bits(size)) - 1
    for first, last in _LINK_SCOPE[size]:
        if first <= low < last:
            return first_usable(number + last - low, size)
    return number


def same_mac(address: bytes) -> Iterator[bytes]:
    """Yield the IPv4 groups with the Ethernet address of this one, itself among them; of IPv6 groups itself alone."""
    if len(address) != 4:
        yield address
        return
    low = int.from_bytes(address, "big") & (1 << V4_BITS) - 1
    for high in range(0xE0000000, 0xF0000000, 1 << V4_BITS):
        yield (high | low).to_bytes(4, "big")


def mac_intervals(prefix: Range) -> tuple[tuple[int, int], ...]:
    """Return the low bits that groups of a range have, those of link-scope groups too: from first to before last."""
    size = len(prefix.network)
    host_bits, bits = 8 * size - prefix.length, mac_bits(size)
    if host_bits >= bits:
        return ((0, 1 << bits),)
    first = int.from_bytes(prefix.network, "big") & (1 << bits) - 1
    return ((first, first + (1 << host_bits)),)


def usable_macs(prefixes: Iterable[Range]) -> int:
    """Return how many Ethernet addresses groups of these ranges have, without those of link-scope groups."""
    by_size: dict[int, list[tuple[int, int]]] = {}
    for prefix in prefixes:
        by_size.setdefault(len(prefix.network), []).extend(mac_intervals(prefix))
    return sum(_length(size, intervals) for size, intervals in by_size.items())


def _length(size: int, intervals: list[tuple[int, int]]) -> int:
    total = end = 0
    for first, last in sorted(intervals):
        start = max(first, end)
        if last > start:
            total += last - start
            total -= sum(max(0, min(last, high) - max(start, low)) for low, high in _LINK_SCOPE[size])
            end = last
    return total
