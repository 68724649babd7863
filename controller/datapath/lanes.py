"""What waits to be sent to one switch, in two lanes: what hosts wait for, and the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from itertools import islice

from controller.rules.model import Key

BULK_SHARE = 0.25
"""Share of a batch that bulk has while hosts wait for more than the rest.

A storm of joins slows programming down to a quarter at worst, and costs a storm a quarter of the rate.
"""


class Urgency(IntEnum):
    """Who waits for an edit."""

    PROMPT = 0
    """A host: joins, leaves, senders, repairs."""

    BULK = 1
    """Nobody in particular: programming a switch anew, flooding, rebalancing, what was found by the check."""


_BULK = Urgency.BULK


class Lanes:
    """Keys whose entries are to be brought up to date, in the order in which they came within each lane.

    A key is in one lane at most, and moves to `prompt` where it is asked for with that urgency; it keeps its place
    when it is asked for again.
    """

    __slots__ = ("bulk", "prompt")

    def __init__(self) -> None:
        self.prompt: dict[Key, None] = {}
        self.bulk: dict[Key, None] = {}

    def __bool__(self) -> bool:
        return bool(self.prompt or self.bulk)

    def __contains__(self, key: Key) -> bool:
        return key in self.prompt or key in self.bulk

    def keys(self) -> set[Key]:
        """Return all that waits."""
        return {*self.prompt, *self.bulk}

    def add(self, key: Key, urgency: Urgency) -> None:
        """Have a key wait."""
        if urgency is not _BULK:
            self.prompt[key] = None
            if self.bulk:
                self.bulk.pop(key, None)
        elif key not in self.prompt:
            self.bulk[key] = None

    def set_bulk(self, keys: Iterable[Key]) -> None:
        """Have these keys, but for those that are prompt, wait as bulk and no others."""
        self.bulk = {key: None for key in keys if key not in self.prompt}

    def hurry(self, key: Key) -> None:
        """Make a key prompt, if it waits."""
        if key in self.bulk:
            self.add(key, Urgency.PROMPT)

    def take_prompt(self, limit: int) -> dict[Key, None]:
        """Take all that waits where all is prompt and no more than `limit`; nothing elsewhere."""
        taken = self.prompt
        if self.bulk or len(taken) > limit:
            return {}
        self.prompt = {}
        return taken

    def clear(self) -> None:
        """Let nothing wait."""
        self.prompt.clear()
        self.bulk.clear()


class BatchShares:
    """Divides the batches for one switch among the apps that have something to send to it."""

    __slots__ = ("_owed", "_turn")

    def __init__(self) -> None:
        self._owed = 0.0
        self._turn = 0

    def take(self, apps: Sequence[Lanes], limit: int) -> list[list[Key]]:
        """Take up to `limit` keys out of the lanes of some apps, the prompt ones first; return those of each app.

        Where there is more of both than fits, bulk has `BULK_SHARE` of all, in the long run where the limit is 1.
        Apps have equal shares; what one lane or app leaves of its share the others have.
        """
        if len(apps) == 1 and not (apps[0].prompt and apps[0].bulk):
            return [_first(apps[0].prompt or apps[0].bulk, limit)]
        prompt = [len(lanes.prompt) for lanes in apps]
        bulk = [len(lanes.bulk) for lanes in apps]
        room, first = limit, self._turn
        self._turn += 1
        if any(prompt) and any(bulk):
            self._owed = min(self._owed + limit * BULK_SHARE, float(limit))
            room -= min(int(self._owed), sum(bulk))
        taken = [
            _first(lanes.prompt, count) for lanes, count in zip(apps, _divided(prompt, room, first), strict=True)
        ]
        room = limit - sum(map(len, taken))
        others = [_first(lanes.bulk, count) for lanes, count in zip(apps, _divided(bulk, room, first), strict=True)]
        if any(prompt):
            self._owed = max(self._owed - sum(map(len, others)), 0.0)
        return [one + other for one, other in zip(taken, others, strict=True)]


def _divided(counts: Sequence[int], room: int, first: int) -> list[int]:
    """Return how many of each go in: equal shares, and what is left over from the `first` on."""
    given = [0] * len(counts)
    order = [(first + place) % len(counts) for place in range(len(counts))]
    while room and (left := [index for index in order if given[index] < counts[index]]):
        share = max(room // len(left), 1)
        for index in left[:room]:
            more = min(share, counts[index] - given[index])
            given[index] += more
            room -= more
    return given


def _first(lane: dict[Key, None], limit: int) -> list[Key]:
    if len(lane) <= limit:
        taken = list(lane)
        lane.clear()
        return taken
    taken = list(islice(lane, limit))
    for key in taken:
        del lane[key]
    return taken
