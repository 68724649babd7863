"""Names of hosts that have one MAC address, each in a fabric of its own.

The first of them has the address, or the address and its VLAN (`controller.kernel.domains`), for its name, as a host
has whose address nobody shares. The others have a number behind it, from 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

_MARK = b"\x82"
_SUFFIX_BYTES = 4
_NUMBERED_BYTES = frozenset((6 + _SUFFIX_BYTES, 9 + _SUFFIX_BYTES))


def is_numbered(name: bytes) -> bool:
    """Tell whether a name has a number; that of an IP address never has."""
    return len(name) in _NUMBERED_BYTES


def numbered(name: bytes, number: int) -> bytes:
    """Return the name of a host that shares one; `number` is 1, where it has none, to 2^24 - 1."""
    return name if number == 1 else name + _MARK + number.to_bytes(_SUFFIX_BYTES - 1, "big")


def shared_name(name: bytes) -> bytes:
    """Return a name without its number, which all hosts have in common that share it."""
    return name[:-_SUFFIX_BYTES] if len(name) in _NUMBERED_BYTES else name


def number_of(name: bytes) -> int:
    """Return the number of a host among those that share its name, 1 where it has none."""
    return int.from_bytes(name[1 - _SUFFIX_BYTES :], "big") if len(name) in _NUMBERED_BYTES else 1


class SharedNames:
    """Which hosts share their names.

    Parameters
    ----------
    dpid_of : Callable
        Returns the switch that the host with a name is at, None where there is no such host.
    is_one_fabric : Callable
        Tells of two datapath ids whether they are in one fabric.
    """

    def __init__(self, dpid_of: Callable[[bytes], int | None], is_one_fabric: Callable[[int, int], bool]) -> None:
        self._dpid_of = dpid_of
        self._is_one_fabric = is_one_fabric
        self._numbered: dict[bytes, list[bytes]] = {}

    @property
    def is_used(self) -> bool:
        """Whether any host has a number."""
        return bool(self._numbered)

    def add(self, name: bytes) -> None:
        """Take in a host."""
        if is_numbered(name):
            names = self._numbered.setdefault(shared_name(name), [])
            if name not in names:
                names.append(name)
                names.sort()

    def remove(self, name: bytes) -> None:
        """Take it that there is no such host any more."""
        shared = shared_name(name)
        names = self._numbered.get(shared)
        if names is not None and name in names:
            names.remove(name)
            if not names:
                del self._numbered[shared]

    def near(self, name: bytes, dpid: int) -> bytes:
        """Return the name of that host of a switch's fabric which has, or shares, a name; empty where none does."""
        at = self._dpid_of(name)
        if at is not None and (at == dpid or self._is_one_fabric(at, dpid)):
            return name
        if not self._numbered and not is_numbered(name):
            return b""
        shared = shared_name(name)
        for other in (shared, *self._numbered.get(shared, ())):
            at = self._dpid_of(other)
            if at is not None and self._is_one_fabric(at, dpid):
                return bytes(other)
        return b""

    def free(self, name: bytes) -> bytes:
        """Return the first name that no host has, of those that may share one."""
        shared, number = shared_name(name), 1
        while self._dpid_of(numbered(shared, number)) is not None:
            number += 1
        return numbered(shared, number)

    def shared(self) -> list[bytes]:
        """Return the names that some host has with a number."""
        return sorted(self._numbered)

    def first(self, name: bytes) -> bytes:
        """Return the name with the lowest number that a host has of those that share one; empty for none."""
        shared = shared_name(name)
        for other in (shared, *self._numbered.get(shared, ())):
            if self._dpid_of(other) is not None:
                return bytes(other)
        return b""

    def doubled(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield each pair of hosts of one fabric that share a name, that with the lower number first."""
        for shared in sorted(self._numbered):
            kept: list[tuple[bytes, int]] = []
            for name in (shared, *self._numbered[shared]):
                at = self._dpid_of(name)
                if at is None:
                    continue
                first = next((one for one, dpid in kept if self._is_one_fabric(dpid, at)), b"")
                if first:
                    yield first, name
                else:
                    kept.append((name, at))
