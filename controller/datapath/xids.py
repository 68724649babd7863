"""Transaction ids of OpenFlow messages: whose an answer is can be told from its upper 8 bits."""

from __future__ import annotations

_COUNT = 1 << 24


class Xids:
    """The transaction ids with `tag` as their upper 8 bits, taken one after the other and used again in the end."""

    __slots__ = ("_tag_bits", "next", "tag")

    def __init__(self, tag: int) -> None:
        self.tag = tag
        self._tag_bits = tag << 24
        self.next = 1

    def take(self, count: int = 1) -> int:
        """Return the first of so many transaction ids in a row."""
        first = self.next
        after = first + count
        if after > _COUNT:
            first, after = 1, 1 + count
        self.next = after
        return self._tag_bits | first
