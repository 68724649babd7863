"""Which peers a server lets in, by the names in their certificates, and for which datapath ids each may speak."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from controller.wire.dpids import format_dpid, parse_dpid

BINDS = " = "
"""Stands between a name and the datapath ids that it may speak for."""

DPID_FIELD = "{dpid}"
"""Stands in a name for the 16 hexadecimal digits of the datapath id that it may speak for."""

SPELLED_CHARACTERS = 256
"""What is told of a certificate's names at most."""

_ANY_DPID = "[0-9a-f]" * 16


class NamedPeers(NamedTuple):
    """A line of the list: a name or pattern, and the datapath ids it is bound to, none where it has none."""

    line: int
    pattern: str
    dpids: frozenset[int]

    def names(self, name: str) -> bool:
        """Tell whether the line names somebody."""
        return fnmatchcase(name, self.pattern.replace(DPID_FIELD, _ANY_DPID))

    def binds(self, name: str, dpid: int) -> bool:
        """Tell whether the line binds somebody to a datapath id."""
        if DPID_FIELD in self.pattern:
            return fnmatchcase(name, self.pattern.replace(DPID_FIELD, format_dpid(dpid)))
        return dpid in self.dpids and self.names(name)

    @property
    def is_bound(self) -> bool:
        """Whether who is named here speaks for certain datapath ids alone."""
        return bool(self.dpids) or DPID_FIELD in self.pattern


class PeerNames:
    """The peers of a list, a line each: ``NAME``, ``NAME = DPID, DPID`` or a name with ``{dpid}`` in it.

    A name is a pattern as of a shell (``leaf*.example.org``). Who is named by no line is not let in. Who has a line
    with datapath ids speaks for these alone, and nobody else for any of them; a name without speaks for all others.

    Parameters
    ----------
    text
        The list. Empty lines and those that begin with ``#`` say nothing.
    place
        Where it is from, for texts.

    Raises
    ------
    ValueError
        The text names nobody, or a line is no good; the message says which.
    """

    def __init__(self, text: str, place: str) -> None:
        self._place = place
        lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
        self._peers = tuple(_read(place, number, line) for number, line in lines if line and not line.startswith("#"))
        if not self._peers:
            raise ValueError(f"{place} has no name, so that no peer would be let in")
        self._bound = {dpid: peer.line for peer in reversed(self._peers) for dpid in peer.dpids}

    def refusal(self, names: Iterable[str]) -> str | None:
        """Return why somebody is not let in who has these names; None where one of them is."""
        names = list(names)
        if self._of(names):
            return None
        return f"its certificate is for {_spelled(names)}, whom {self._place} does not name"

    def dpid_refusal(self, names: Iterable[str], dpid: int) -> str | None:
        """Return why somebody who has these names may not speak for a datapath id; None where that is right."""
        names = list(names)
        peers = self._of(names)
        if any(peer.binds(name, dpid) for peer in peers for name in names):
            return None
        bound = next((peer for peer in peers if peer.is_bound), None)
        line = self._bound.get(dpid)
        if peers and bound is None and line is None:
            return None
        says = f"it says that it is {format_dpid(dpid)}, and its certificate is for {_spelled(names)}"
        if bound is not None:
            return f"{says}, which line {bound.line} of {self._place} binds to another datapath id"
        if line is not None:
            return f"{says}: line {line} of {self._place} binds that datapath id to another name"
        return f"{says}, whom {self._place} does not name"

    def _of(self, names: list[str]) -> list[NamedPeers]:
        return [peer for peer in self._peers if any(map(peer.names, names))]


def _read(place: str, number: int, line: str) -> NamedPeers:
    pattern, binds, listed = f" {line} ".rpartition(BINDS)
    pattern = pattern.strip()
    if not binds:
        return NamedPeers(number, line, frozenset())
    if not pattern:
        raise ValueError(f"{place}: line {number}: no name stands before the datapath ids")
    if DPID_FIELD in pattern:
        raise ValueError(f"{place}: line {number}: {DPID_FIELD} in the name says already what it speaks for")
    try:
        return NamedPeers(number, pattern, frozenset(parse_dpid(text.strip()) for text in listed.split(",")))
    except ValueError as error:
        raise ValueError(f"{place}: line {number}: {error}") from error


def _spelled(names: list[str]) -> str:
    """Return names as one line of text; whoever made the certificate chose what they hold."""
    text = " and ".join(names) or "nobody"
    spelled = "".join(sign if sign.isprintable() else "\ufffd" for sign in text[:SPELLED_CHARACTERS])
    return spelled if len(text) <= SPELLED_CHARACTERS else f"{spelled}..."
