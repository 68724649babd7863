"""What waits to be sent to one switch, in two lanes: what hosts wait for, and the rest."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from itertools import islice

from controller.rules.model import RuleKey

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

    __slots__ = ("_owed", "bulk", "prompt")

    def __init__(self) -> None:
        self.prompt: dict[RuleKey, None] = {}
        self.bulk: dict[RuleKey, None] = {}
        self._owed = 0.0

    def __bool__(self) -> bool:
        return bool(self.prompt or self.bulk)

    def __contains__(self, key: RuleKey) -> bool:
        return key in self.prompt or key in self.bulk

    def keys(self) -> set[RuleKey]:
        """Return all that waits."""
        return {*self.prompt, *self.bulk}

    def add(self, key: RuleKey, urgency: Urgency) -> None:
        """Have a key wait."""
        if urgency is not _BULK:
            self.prompt[key] = None
            if self.bulk:
                self.bulk.pop(key, None)
        elif key not in self.prompt:
            self.bulk[key] = None

    def set_bulk(self, keys: Iterable[RuleKey]) -> None:
        """Have these keys, but for those that are prompt, wait as bulk and no others."""
        self.bulk = {key: None for key in keys if key not in self.prompt}

    def hurry(self, key: RuleKey) -> None:
        """Make a key prompt, if it waits."""
        if key in self.bulk:
            self.add(key, Urgency.PROMPT)

    def clear(self) -> None:
        """Let nothing wait."""
        self.prompt.clear()
        self.bulk.clear()

    def take(self, limit: int) -> list[RuleKey]:
        """Take out up to `limit` keys, the prompt ones first; what one lane leaves of its share the other has.

        Where both have more than their share, bulk has `BULK_SHARE` of all, in the long run where the limit is 1.
        """
        prompt, bulk = self.prompt, self.bulk
        if not bulk or not prompt:
            return _first(prompt or bulk, limit)
        self._owed = min(self._owed + limit * BULK_SHARE, float(limit))
        taken = _first(prompt, limit - min(int(self._owed), len(bulk)))
        others = _first(bulk, limit - len(taken))
        self._owed = max(self._owed - len(others), 0.0)
        return taken + others


def _first(lane: dict[RuleKey, None], limit: int) -> list[RuleKey]:
    if len(lane) <= limit:
        taken = list(lane)
        lane.clear()
        return taken
    taken = list(islice(lane, limit))
    for key in taken:
        del lane[key]
    return taken
