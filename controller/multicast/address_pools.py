"""Pools of addresses of groups: who has which, and which is free next, so that no two have one MAC address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from controller.config.policy import AddressPool
from controller.config.terms import Prefix
from controller.kernel.group_macs import first_usable, usable_macs
from controller.wire.addresses import group_mac


class TakenAddress(NamedTuple):
    """An address that somebody has, by a name that is unique within its pool."""

    pool: str
    name: str
    address: bytes


class AddressPools:
    """Gives each name an address of its own, for as long as it is not released, whatever pools become."""

    def __init__(self, pools: Iterable[AddressPool]) -> None:
        self._taken: dict[tuple[str, str], bytes] = {}
        self._macs: Counter[bytes] = Counter()
        self._counts: Counter[str] = Counter()
        self._takers: Counter[str] = Counter()
        self._full_below: dict[Prefix, int] = {}
        self._sizes: dict[str, int] = {}
        self._ranges: dict[str, tuple[Prefix, ...]] = {}
        self.use(pools)

    def __len__(self) -> int:
        """Return how many addresses are taken."""
        return len(self._taken)

    def use(self, pools: Iterable[AddressPool]) -> None:
        """Give addresses of these pools from now on; what is taken stays so."""
        self._ranges = {pool.name: pool.ranges for pool in pools}
        self._sizes = {name: usable_macs(ranges) for name, ranges in self._ranges.items()}
        self._full_below = {}
        self._counts = Counter(pool for (pool, _), address in self._taken.items() if self.has(pool, address))

    def names(self) -> list[str]:
        """Return the names of the pools, in the order of the policy, then of those that are gone and have takers."""
        return list(dict.fromkeys((*self._ranges, *self._takers)))

    def ranges(self, pool: str) -> tuple[Prefix, ...] | None:
        """Return the ranges of a pool; None where the policy has none of that name."""
        return self._ranges.get(pool)

    def has(self, pool: str, address: bytes) -> bool:
        """Tell whether an address is in the ranges of a pool."""
        return any(prefix.contains(address) for prefix in self._ranges.get(pool, ()))

    def size(self, pool: str) -> int:
        """Return how many addresses a pool can give, no two with one MAC address."""
        return self._sizes.get(pool, 0)

    def count(self, pool: str) -> int:
        """Return how many addresses of its ranges a pool has given."""
        return self._counts[pool]

    def takers(self, pool: str) -> int:
        """Return how many names have an address of a pool, of its ranges or of those that it had."""
        return self._takers[pool]

    def address(self, pool: str, name: str) -> bytes | None:
        """Return what a name has, None where it has none."""
        return self._taken.get((pool, name))

    def taken(self) -> Iterator[TakenAddress]:
        """Yield what is taken."""
        for (pool, name), address in list(self._taken.items()):
            yield TakenAddress(pool, name, address)

    def next_free(self, pool: str, is_used: Callable[[bytes], bool]) -> bytes | None:
        """Return the lowest address of the first range with room that nobody has, nor another with its MAC address.

        `is_used` tells whether one is in use without having been taken.
        """
        for prefix in self._ranges.get(pool, ()):
            found = self._free_in(prefix, is_used)
            if found is not None:
                return found
        return None

    def _free_in(self, prefix: Prefix, is_used: Callable[[bytes], bool]) -> bytes | None:
        size = len(prefix.network)
        first = int.from_bytes(prefix.network, "big")
        last = first + (1 << 8 * size - prefix.length)
        is_full = True
        at = self._full_below.get(prefix, first)
        while (at := first_usable(at, size)) < last:
            address = at.to_bytes(size, "big")
            if group_mac(address) not in self._macs:
                if not is_used(address):
                    return address
                is_full = False
            at += 1
            if is_full:
                self._full_below[prefix] = at
        return None

    def put(self, taken: TakenAddress) -> None:
        """Take it that a name has an address, and no other."""
        pool, name, address = taken
        self.remove(pool, name)
        self._taken[pool, name] = address
        self._macs[group_mac(address)] += 1
        self._takers[pool] += 1
        self._counts[pool] += self.has(pool, address)

    def remove(self, pool: str, name: str) -> None:
        """Take it that a name has no address."""
        address = self._taken.pop((pool, name), None)
        if address is None:
            return
        _less(self._macs, group_mac(address))
        _less(self._takers, pool)
        self._counts[pool] -= self.has(pool, address)
        self._full_below = {}


def _less(counts: Counter[Any], key: Any) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
