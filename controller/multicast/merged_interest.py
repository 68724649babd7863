"""What all members of a group want together: an entry of the membership database of a proxy (RFC 4605, 4.1)."""

from __future__ import annotations

from collections import Counter

from controller.membership.events import ANY_SOURCE, FilterMode, Interest

_EXCLUDE = FilterMode.EXCLUDE


class MergedInterest:
    """The interests of all outgoing interfaces of a group, counted, so that a change costs what it changes.

    They are merged as RFC 9776, 3.2 merges those of sockets: EXCLUDE if any is, of the sources that all of these
    exclude and no INCLUDE names; else the union of the INCLUDEs.
    """

    __slots__ = ("_excluded", "_excluding_count", "_included", "count")

    def __init__(self) -> None:
        self.count = 0
        self._excluding_count = 0
        self._excluded: Counter[bytes] = Counter()
        self._included: Counter[bytes] = Counter()

    def replace(self, before: Interest | None, after: Interest | None) -> None:
        """Take in that an outgoing interface wants something else now; None stands for nothing."""
        if before is not None:
            self._add(before, -1)
        if after is not None:
            self._add(after, 1)

    def without(self, own: Interest | None) -> Interest | None:
        """Return what all want together, but for one that wants `own`; None where that is nothing."""
        own_excludes = own is not None and own.mode is _EXCLUDE
        excluding_count = self._excluding_count - own_excludes
        if excluding_count and not self._excluded:
            return ANY_SOURCE
        excluded_by_own = own.sources if own is not None and own_excludes else ()
        included_by_own = own.sources if own is not None and not own_excludes else ()
        if excluding_count:
            included = self._included
            sources = frozenset(
                source
                for source, count in self._excluded.items()
                if count - (source in excluded_by_own) == excluding_count
                and included.get(source, 0) == (source in included_by_own)
            )
            return Interest(_EXCLUDE, sources) if sources else ANY_SOURCE
        sources = frozenset(source for source, count in self._included.items() if count > (source in included_by_own))
        return Interest(FilterMode.INCLUDE, sources) if sources else None

    def _add(self, interest: Interest, by: int) -> None:
        self.count += by
        counts = self._included
        if interest.mode is _EXCLUDE:
            self._excluding_count += by
            counts = self._excluded
        for source in interest.sources:
            counts[source] += by
            if not counts[source]:
                del counts[source]
