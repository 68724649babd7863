"""Ports that were proposed and not yet seen in use: each proposal counts as an attachment until it is, or expires."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from controller.allocation.candidates import PortId

MOST_PROPOSALS = 65536
"""Proposals that are remembered; beyond, the oldest ends."""


class _Proposal(NamedTuple):
    """`in_use_pct` is the load of the port from which on it is seen in use; infinite where load cannot tell."""

    port: PortId
    at_ms: int
    in_use_pct: float


class Proposals:
    """The proposals of each port, oldest first.

    Attributes
    ----------
    overflowed
        Proposals that ended since there were more than `MOST_PROPOSALS`.

    Notes
    -----
    A port that was proposed and is not in use yet looks as idle as one that never was. So that it is not proposed to
    everybody who asks, what was proposed counts as if it were attached.
    """

    def __init__(self) -> None:
        self.overflowed = 0
        self._proposals: dict[int, _Proposal] = {}
        self._of_port: dict[PortId, list[int]] = {}
        self._last = 0

    def __len__(self) -> int:
        """Return how many proposals count."""
        return len(self._proposals)

    def count(self, port: PortId) -> int:
        """Return how many proposals of a port count."""
        return len(self._of_port.get(port, ()))

    def propose(self, port: PortId, at_ms: int, load_pct: float, size_pct: float) -> list[PortId]:
        """Note a proposal; return the ports whose count changed.

        Parameters
        ----------
        port
            The port.
        at_ms
            Now, milliseconds since 1970.
        load_pct
            What the port carries now, percent.
        size_pct
            What is expected to come, percent; 0 where load will not tell.
        """
        waiting = self._of_port.setdefault(port, [])
        base_pct = max(load_pct, self._proposals[waiting[-1]].in_use_pct) if waiting else load_pct
        self._last += 1
        waiting.append(self._last)
        self._proposals[self._last] = _Proposal(port, at_ms, base_pct + size_pct if size_pct > 0 else float("inf"))
        changed = [port]
        if len(self._proposals) > MOST_PROPOSALS:
            self.overflowed += 1
            changed.append(self._end(next(iter(self._proposals))))
        return changed

    def attached(self, port: PortId, count: int) -> bool:
        """Note that so many came to a port: each is one that was proposed. Return whether the count changed."""
        ended = self._of_port.get(port, [])[:count]
        for number in ended:
            self._end(number)
        return bool(ended)

    def measured(self, port: PortId, load_pct: float) -> bool:
        """Note what a port carries, percent. Return whether the count changed."""
        ended = [n for n in self._of_port.get(port, ()) if self._proposals[n].in_use_pct <= load_pct]
        for number in ended:
            self._end(number)
        return bool(ended)

    def forget(self, ports: Iterable[PortId]) -> None:
        """End the proposals of ports that are gone."""
        for port in ports:
            for number in self._of_port.pop(port, ()):
                del self._proposals[number]

    def expire(self, before_ms: int) -> list[PortId]:
        """End proposals made before a time; return the ports whose count changed."""
        ended = []
        for number, proposal in self._proposals.items():
            if proposal.at_ms >= before_ms:
                break
            ended.append(number)
        return [self._end(number) for number in ended]

    def _end(self, number: int) -> PortId:
        port = self._proposals.pop(number).port
        waiting = self._of_port[port]
        waiting.remove(number)
        if not waiting:
            del self._of_port[port]
        return port
