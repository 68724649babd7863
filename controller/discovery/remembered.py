"""Hosts of ports that lead to none for now: they are announced, and asked, when their port leads to hosts again."""

from __future__ import annotations

from typing import TypeAlias

from controller.kernel.ports import End

KnownHost: TypeAlias = tuple[bytes, tuple[bytes, ...]]
"""A MAC address and its IP addresses, by their names in their domain."""


class RememberedHosts:
    """Hosts by port, as many as there is room for."""

    def __init__(self) -> None:
        self.by_port: dict[End, list[KnownHost]] = {}
        self._count = 0

    def keep(self, end: End, hosts: list[KnownHost], bound: int) -> int:
        """Remember hosts of a port while all together are no more than `bound`; return how many."""
        kept = hosts[: max(0, bound - self._count)]
        if kept:
            self.by_port.setdefault(end, []).extend(kept)
            self._count += len(kept)
        return len(kept)

    def take(self, end: End) -> list[KnownHost]:
        """Forget the hosts of a port, and return them."""
        hosts = self.by_port.pop(end, [])
        self._count -= len(hosts)
        return hosts
