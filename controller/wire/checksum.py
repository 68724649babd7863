"""The Internet checksum (RFC 1071) by one big-integer remainder.

A one's-complement sum of 16-bit words is the remainder of the whole number modulo 0xffff, since 2**16 leaves 1.
"""

from __future__ import annotations


def internet_checksum(data: bytes) -> int:
    """Return the checksum (0 to 0xffff) to be stored where `data` now has zeros; odd lengths are padded."""
    return _complement(_words(data))


def upper_layer_checksum(source: bytes, destination: bytes, protocol: int, message: bytes) -> int:
    """Return the checksum of an upper-layer message in IPv6 (RFC 8200, 8.1) whose checksum field holds zeros."""
    return _complement(_words(message) + int.from_bytes(source + destination, "big") + len(message) + protocol)


def upper_layer_intact(source: bytes, destination: bytes, protocol: int, message: bytes) -> bool:
    """Tell whether an upper-layer message in IPv6 carries the right checksum."""
    length = len(message)
    total = int.from_bytes(message, "big")
    if length & 1:
        total <<= 8
    return (total + int.from_bytes(source + destination, "big") + length + protocol) % 0xFFFF == 0


def _words(data: bytes) -> int:
    """Return a number congruent to the sum of the 16-bit words of `data`, and 0 only where all of them are."""
    return int.from_bytes(data, "big") << (8 if len(data) & 1 else 0)


def _complement(total: int) -> int:
    """Return the complement of a one's-complement sum, which is 0 only where every word is."""
    return 0xFFFF - ((total - 1) % 0xFFFF + 1) if total else 0xFFFF
