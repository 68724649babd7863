"""What names an address by a prefix that it is in."""

from __future__ import annotations

from controller.config.terms import Prefix

BEGINNINGS_KEPT = 65536
"""Beginnings of addresses of each size of which it is kept what names them."""


class PrefixMasks:
    """Sets by the prefixes that they hold, bit i for the i-th of what names prefixes.

    A lookup tries one hash table per prefix length in use. What addresses have in common that begin alike, as far as
    the longest of these lengths, is kept. `always` names every address for `of`; it is set before the first is asked.
    """

    def __init__(self) -> None:
        self.always = 0
        self._tables: dict[int, list[tuple[int, int, dict[int, int]]]] = {4: [], 16: []}
        self._told_by_bytes = {4: 0, 16: 0}
        self._kept: dict[int, dict[bytes, int]] = {4: {}, 16: {}}

    def add(self, prefix: Prefix, mask: int) -> None:
        """Let those of `mask` name the addresses within `prefix`."""
        size = len(prefix.network)
        tables = self._tables[size]
        self._told_by_bytes[size] = max(self._told_by_bytes[size], prefix.length + 7 >> 3)
        self._kept[size] = {}
        shift = 8 * size - prefix.length
        key = int.from_bytes(prefix.network, "big") >> shift
        for length, _, table in tables:
            if length == prefix.length:
                table[key] = table[key] | mask if key in table else mask
                return
        tables.append((prefix.length, shift, {key: mask}))
        tables.sort(key=lambda entry: entry[0])

    def of(self, address: bytes) -> int:
        """Return those that name an address: `holding` it, for less where many begin alike, or `always`."""
        size = len(address)
        kept, beginning = self._kept[size], address[: self._told_by_bytes[size]]
        found = kept.get(beginning)
        if found is None:
            if len(kept) >= BEGINNINGS_KEPT:
                kept.clear()
            found = kept[beginning] = self.holding(address) | self.always
        return found

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
