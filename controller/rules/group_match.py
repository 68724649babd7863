"""The match that joins of new groups bring, which codecs know by its type."""

from __future__ import annotations

from controller.rules.model import Match


class GroupMatch(Match):
    """A match of the packets to an IPv4 group by its two addresses, in a VLAN perhaps: nothing else is asked for.

    It equals the match with these fields. Its type says how it is laid out, so that codecs need not look.
    """

    __slots__ = ()
    # So that what `_replace` returns, which may ask for more, is a match like any other.
    _make = Match._make  # type: ignore[assignment]
