"""The fewest prefixes that hold some addresses and none of others."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_address, ip_network

from controller.wire.addresses import format_ip

PREFIX_ADDRESSES = 3
"""Addresses that a prefix must hold to be written in place of them."""

WIDEST = {4: 16, 16: 48}
"""The shortest prefix of a family, by bytes of its addresses: beyond, too much would be admitted that nobody saw."""


def prefixes(own: Iterable[bytes], others: Iterable[bytes]) -> list[str]:
    """Return prefixes, and addresses where these do without, that hold all of `own` and none of `others`.

    Addresses have 4 or 16 bytes. Each prefix is the longest that holds those of its addresses.
    """
    found: list[str] = []
    for size in WIDEST:
        mine = sorted({int.from_bytes(address) for address in own if len(address) == size})
        theirs = sorted({int.from_bytes(address) for address in others if len(address) == size} - set(mine))
        if mine:
            _split(mine, theirs, size, found)
    return found


def _split(mine: list[int], theirs: list[int], size: int, found: list[str]) -> None:
    bits = 8 * size
    free = (mine[0] ^ mine[-1]).bit_length()
    start = mine[0] >> free << free
    at = bisect_left(theirs, start)
    is_own = at == len(theirs) or theirs[at] >= start + (1 << free)
    if is_own and len(mine) >= PREFIX_ADDRESSES and bits - free >= WIDEST[size]:
        found.append(f"{format_ip(start.to_bytes(size))}/{bits - free}")
    elif len(mine) < PREFIX_ADDRESSES:
        found += [format_ip(address.to_bytes(size)) for address in mine]
    else:
        middle = bisect_left(mine, start + (1 << (free - 1)))
        _split(mine[:middle], theirs, size, found)
        _split(mine[middle:], theirs, size, found)


def exact_prefixes(addresses: Iterable[bytes]) -> list[str]:
    """Return addresses, and a prefix in place of those that are all of it."""
    networks = [ip_network(ip_address(address)) for address in addresses]
    found: list[IPv4Network | IPv6Network] = []
    found += collapse_addresses(network for network in networks if isinstance(network, IPv4Network))
    found += collapse_addresses(network for network in networks if isinstance(network, IPv6Network))
    return [str(one.network_address) if one.num_addresses == 1 else str(one) for one in found]
