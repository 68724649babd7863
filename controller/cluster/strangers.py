"""Members that are connected to none of the switches that this one is: by mistake they may be another fabric's."""

from __future__ import annotations

from collections.abc import Mapping

TOLD_S = 5.0
"""How long a member is apart when operators are told of it: switches come to a controller that starts one by one."""

REFUSED_S = 10.0
"""How long one that follows is apart from the leader when it takes no part any more: longer than the 8 s that Open
vSwitch lets pass between two attempts to connect."""


def are_apart(one: frozenset[int], other: frozenset[int]) -> bool:
    """Tell whether both are connected to switches, and to none in common."""
    return bool(one) and bool(other) and one.isdisjoint(other)


class Strangers:
    """The members that are apart from this one, and since when.

    Attributes
    ----------
    told
        Those that have been so for `TOLD_S`, by name, in their order.
    """

    def __init__(self) -> None:
        self.told: tuple[str, ...] = ()
        self._since_s: dict[str, float] = {}

    def look(self, own: frozenset[int], others: Mapping[str, frozenset[int]], now: float) -> tuple[str, ...]:
        """Take note of which switches this member and others are connected to; return who is to be told of newly."""
        apart = {name for name, switches in others.items() if are_apart(own, switches)}
        self._since_s = {name: self._since_s.get(name, now) for name in sorted(apart)}
        former, self.told = self.told, tuple(name for name in self._since_s if self.apart_s(name, now) >= TOLD_S)
        return tuple(name for name in self.told if name not in former)

    def apart_s(self, name: str, now: float) -> float:
        """Return for how long a member has been apart, in seconds; 0 where it is not."""
        return now - self._since_s.get(name, now)
