"""What names an address by a prefix that it is in."""

from __future__ import annotations

from controller.config.terms import Prefix


class PrefixMasks:
    """Sets by the prefixes that they hold, bit i for the i-th of what names prefixes.

    A lookup tries one hash table per prefix length in use.
    """

    def __init__(self) -> None:
        self._tables: dict[int, list[tuple[int, int, dict[int, int]]]] = {4: [], 16: []}

    def add(self, prefix: Prefix, mask: int) -> None:
        """Let those of `mask` name the addresses within `prefix`."""
        size = len(prefix.network)
        tables = self._tables[size]
        shift = 8 * size - prefix.length
        key = int.from_bytes(prefix.network, "big") >> shift
        for length, _, table in tables:
            if length == prefix.length:
                table[key] = table[key] | mask if key in table else mask
                return
        tables.append((prefix.length, shift, {key: mask}))
        tables.sort(key=lambda entry: entry[0])

    def holding(self, address: bytes, longest: int = 128) -> int:
        """Return those that name a prefix, of at most `longest` bits, that the address is in."""
        value = int.from_bytes(address, "big")
        found = 0
        for length, shift, table in self._tables[len(address)]:
            if length > longest:
                break
            mask = table.get(value >> shift)
            if mask is not None:
                found |= mask
        return found
