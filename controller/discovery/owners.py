"""Who holds an IP address: one host in each fabric, for hosts that no link joins cannot be in each other's way."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from controller.kernel.ports import End


class Owners:
    """The holders of IP addresses, by MAC address; all by their names in domains.

    Parameters
    ----------
    end_of : Callable
        Returns the port where a holder is.
    is_one_fabric : Callable
        Tells of two datapath ids whether they are in one fabric.
    """

    def __init__(self, end_of: Callable[[bytes], End], is_one_fabric: Callable[[int, int], bool]) -> None:
        self._end_of = end_of
        self._is_one_fabric = is_one_fabric
        self._owners: dict[bytes, tuple[bytes, ...]] = {}
        self._shared: set[bytes] = set()

    def owner(self, address: bytes, end: End) -> bytes:
        """Return who holds an address in the fabric of a port, empty where nobody does."""
        for mac in self._owners.get(address, ()):
            if self.is_near(mac, end):
                return mac
        return b""

    def is_near(self, mac: bytes, end: End) -> bool:
        """Tell whether a host is in the fabric of a port."""
        return self._is_one_fabric(self._end_of(mac)[0], end[0])

    def add(self, address: bytes, mac: bytes) -> None:
        """Take it that a host holds an address that nobody holds in its fabric."""
        held_by = self._owners.get(address, ())
        self._owners[address] = (*held_by, mac)
        if held_by:
            self._shared.add(address)

    def remove(self, address: bytes, mac: bytes) -> None:
        """Take it that a host holds an address no more."""
        left = tuple([owner for owner in self._owners[address] if owner != mac])
        if left:
            self._owners[address] = left
        else:
            del self._owners[address]
        if len(left) < 2:
            self._shared.discard(address)

    def doubled(self) -> Iterator[tuple[bytes, bytes, bytes]]:
        """Yield each address that two hosts of a fabric hold since it was joined, who had it first, who later."""
        for address in sorted(self._shared):
            kept: list[bytes] = []
            for mac in self._owners[address]:
                first = next((one for one in kept if self.is_near(one, self._end_of(mac))), b"")
                if first:
                    yield address, first, mac
                else:
                    kept.append(mac)
