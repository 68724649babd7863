"""Who held an address before: until nobody could ask it, or until it had more addresses than are kept."""

from __future__ import annotations

from typing import NamedTuple

from controller.kernel.ports import End


class FormerHolder(NamedTuple):
    """A host that held an address at a port, and until when that is remembered."""

    mac: bytes
    end: End
    until_s: float


class FormerPlaces:
    """The former holders of MAC and IP addresses; at most `bound`, those noted first go first."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._former: dict[bytes, FormerHolder] = {}

    def note(self, claimed: bytes, mac: bytes, end: End, until_s: float) -> None:
        """Remember a holder; the one remembered before of the same address counts no more."""
        self._former.pop(claimed, None)
        if len(self._former) >= self._bound:
            del self._former[next(iter(self._former))]
        self._former[claimed] = FormerHolder(mac, end, until_s)

    def returns(self, claimed: bytes, mac: bytes, end: End, now: float) -> bool:
        """Tell whether this is the former holder of an address, at its port and in time; it is forgotten then."""
        former = self._former.get(claimed)
        if former is None or (former[:2] != (mac, end) and now <= former.until_s):
            return False
        del self._former[claimed]
        return now <= former.until_s


class GivenWay:
    """The addresses that gave way to later ones of the same host, which may use them still."""

    def __init__(self) -> None:
        self._user: dict[bytes, bytes] = {}
        self._of: dict[bytes, dict[bytes, None]] = {}

    def user(self, address: bytes) -> bytes:
        """Return the MAC address of the host that used an address, empty where none is known."""
        return self._user.get(address, b"")

    def of(self, mac: bytes) -> tuple[bytes, ...]:
        """Return the addresses that are remembered of a host."""
        return tuple(self._of.get(mac, ()))

    def note(self, address: bytes, mac: bytes, bound: int) -> list[bytes]:
        """Remember an address of a host; returns those forgotten for it, as `bound` are remembered of each host."""
        if self._user.get(address, mac) != mac:
            self.forget(address)
        of_host = self._of.setdefault(mac, {})
        forgotten = list(of_host)[: max(0, len(of_host) - bound + 1)]
        for first in forgotten:
            del of_host[first], self._user[first]
        of_host[address] = None
        self._user[address] = mac
        return forgotten

    def forget(self, address: bytes) -> None:
        """Forget an address, if it is remembered."""
        mac = self._user.pop(address, b"")
        if mac:
            of_host = self._of[mac]
            del of_host[address]
            if not of_host:
                del self._of[mac]

    def forget_host(self, mac: bytes) -> list[bytes]:
        """Forget the addresses of a host; returns them."""
        addresses = list(self._of.pop(mac, ()))
        for address in addresses:
            del self._user[address]
        return addresses
