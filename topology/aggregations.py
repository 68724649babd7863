"""Link aggregation groups (IEEE 802.1AX): ports of one switch or of several that lead to one host together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import TypeAlias

Place: TypeAlias = tuple[int, int]
"""A datapath and one of its ports: (dpid, port_no)."""


class Aggregations:
    """Which ports, the legs of a group, are one port to who looks at hosts; the first stands for all, and is `home`.

    A port that is in no group is its own home and only leg. `is_used` tells whether there is any group.
    """

    def __init__(self, groups: Iterable[Sequence[Place]] = ()) -> None:
        self.homes: Mapping[Place, Place] = {}
        """Of each leg the first leg of its group."""
        self._legs: dict[Place, tuple[Place, ...]] = {}
        homes: dict[Place, Place] = {}
        for group in groups:
            legs = tuple([(leg[0], leg[1]) for leg in group])
            self._legs[legs[0]] = legs
            homes.update(dict.fromkeys(legs, legs[0]))
        self.homes = homes
        self.is_used = bool(homes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Aggregations) and self._legs == other._legs

    def __hash__(self) -> int:
        return hash(tuple(self._legs))

    def home(self, place: Place) -> Place:
        """Return the port that stands for all of a port's group."""
        return self.homes.get(place, place)

    def legs(self, place: Place) -> tuple[Place, ...]:
        """Return the ports of a port's group, in the operator's order; of a port in no group that alone."""
        home = self.homes.get(place)
        return (place,) if home is None else self._legs[home]

    def all(self) -> Iterable[tuple[Place, tuple[Place, ...]]]:
        """Return each group's home and legs."""
        return self._legs.items()


def chosen(key: bytes, legs: Sequence[Place]) -> Place | None:
    """Return the leg for a key by rendezvous hashing, None of no legs: keys spread evenly, and one that is lost moves
    only those that had it."""
    if len(legs) < 2:
        return legs[0] if legs else None
    return max(legs, key=lambda leg: (blake2b(key + b"%d:%d" % leg, digest_size=8).digest(), leg))
