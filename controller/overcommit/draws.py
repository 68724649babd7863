"""Groups of which any may be drawn, each as likely, whatever came and went."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, Protocol, TypeVar

from controller.kernel.hashing import stable_hash

G = TypeVar("G", bound=Hashable)


class Chance(Protocol):
    """Draws numbers, as `random.Random` does under a seed."""

    def randrange(self, stop: int, /) -> int:
        """Return a whole number from 0 to one less than `stop`, each as likely."""


class HashedChance:
    """Draws numbers that a seed and how many were drawn before decide, for who has no source of chance."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._drawn = 0

    def randrange(self, stop: int, /) -> int:
        """Return a whole number from 0 to one less than `stop`."""
        self._drawn += 1
        return (stable_hash(self._seed, self._drawn) >> 1) % stop


class Urn(Generic[G]):
    """Groups, each at most once; adding, removing and drawing one take the same time however many there are."""

    def __init__(self) -> None:
        self._order: list[G] = []
        self._place: dict[G, int] = {}

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[G]:
        return iter(self._order)

    def __contains__(self, group: G) -> bool:
        return group in self._place

    def add(self, group: G) -> None:
        """Add a group that is not there."""
        self._place[group] = len(self._order)
        self._order.append(group)

    def remove(self, group: G) -> None:
        """Remove a group; KeyError where it is not there."""
        place = self._place.pop(group)
        last = self._order.pop()
        if last != group:
            self._order[place] = last
            self._place[last] = place

    def draw(self, chance: Chance) -> G:
        """Return any group; ValueError where there is none."""
        return self._order[chance.randrange(len(self._order))]
