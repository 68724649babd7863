"""Reservation between polls: what placements will use, until it is measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.allocation.candidates import Candidates, PortId
from controller.allocation.selection import Carried, PortSelection, Wish, select


class Proposal(NamedTuple):
    """What would be placed, and the candidates with what is reserved of them."""

    candidates: Candidates
    selection: PortSelection


class Reservations:
    """A throwaway cache: the usage that ports will have from placements made since the last poll.

    Parameters
    ----------
    penalty_factor
        A placement counts this many times its steady-state size, so that the same target is not taken again.

    Notes
    -----
    "Scaling VMware View Management Operations", 5.1. The entities used are remembered with it (`lately`): among ports
    that are used equally, those elsewhere come first. It is bounded by the ports of the candidates.
    """

    def __init__(self, penalty_factor: float) -> None:
        self.penalty_factor = penalty_factor
        self._reserved_pct: dict[PortId, float] = {}
        self._placements: dict[PortId, float] = {}
        self.lately = Carried()

    def __len__(self) -> int:
        """Return how many ports have something reserved."""
        return len(self._placements)

    def reserved_pct(self, ids: Sequence[PortId]) -> NDArray[np.float64]:
        """Return what is reserved of each port, in percent of its usage; no port is given twice."""
        return _column(self._reserved_pct, {name: number for number, name in enumerate(ids)})

    def refresh(self, measured: Iterable[PortId] | None = None) -> None:
        """Forget what the new poll has measured: all, or these ports, and with the last one the entities used."""
        for name in tuple(self._placements) if measured is None else measured:
            self._reserved_pct.pop(name, None)
            self._placements.pop(name, None)
        if not self._placements:
            self.lately = Carried()

    def propose(self, candidates: Candidates, wish: Wish) -> Proposal:
        """Return what `place` would, without reserving it."""
        counted = self.counted(candidates)
        return Proposal(counted, select(counted, replace(wish, lately=self.lately)))

    def counted(self, candidates: Candidates) -> Candidates:
        """Return candidates with what is reserved of them."""
        numbers = candidates.numbers
        return candidates.raised(_column(self._reserved_pct, numbers), _column(self._placements, numbers))

    def place(self, candidates: Candidates, wish: Wish, size_pct: float) -> PortSelection:
        """Return ports for a request, with those of earlier ones counted, and reserve them.

        Parameters
        ----------
        candidates
            Ports with their measured usage.
        wish
            The request; entities used since the last poll are those of `lately`.
        size_pct
            Usage that one of its ports will have more when the request is in its steady state, in percent.

        Returns
        -------
        PortSelection
            As `select` gives it.

        Raises
        ------
        TooFewPortsError, KeyError
            As `select`; nothing is reserved then.
        """
        selection = self.propose(candidates, wish).selection
        self.reserve(selection, size_pct)
        return selection

    def reserve(self, selection: PortSelection, size_pct: float) -> None:
        """Reserve the ports that a proposal picked, `size_pct` percent of usage each."""
        for step in selection.steps:
            name = step.chosen
            self._reserved_pct[name] = self._reserved_pct.get(name, 0.0) + self.penalty_factor * size_pct
            self._placements[name] = self._placements.get(name, 0.0) + self.penalty_factor
        self.lately = selection.lately


def _column(found: Mapping[PortId, float], numbers: Mapping[PortId, int]) -> NDArray[np.float64]:
    column = np.zeros(len(numbers))
    for name in found.keys() & numbers.keys():
        column[numbers[name]] = found[name]
    return column
