"""Who held an address until its port, its switch or the controller was down: nobody could ask it then."""

from __future__ import annotations

from typing import NamedTuple

from controller.kernel.ports import End


class Former(NamedTuple):
    """A host that held an address at a port, and until when that is remembered."""

    mac: bytes
    end: End
    until_s: float


class FormerPlaces:
    """The former holders of MAC and IP addresses; at most `bound`, those noted first go first."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._former: dict[bytes, Former] = {}

    def note(self, claimed: bytes, mac: bytes, end: End, until_s: float) -> None:
        """Remember a holder; the one remembered before of the same address counts no more."""
        self._former.pop(claimed, None)
        if len(self._former) >= self._bound:
            del self._former[next(iter(self._former))]
        self._former[claimed] = Former(mac, end, until_s)

    def returns(self, claimed: bytes, mac: bytes, end: End, now: float) -> bool:
        """Tell whether this is the former holder of an address, at its port and in time; it is forgotten then."""
        former = self._former.get(claimed)
        if former is None or (former[:2] != (mac, end) and now <= former.until_s):
            return False
        del self._former[claimed]
        return now <= former.until_s
