"""Reservation between polls: what placements will use, until it is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from controller.allocation.candidates import Candidates, PortId
from controller.allocation.selection import Carried, Selection, Wish, select


class Reservations:
    """A throwaway cache: the usage that ports will have from placements made since the last poll.

    Parameters
    ----------
    penalty_factor
        A placement counts this many times its steady-state size, so that the same target is not taken again.

    Notes
    -----
    "Scaling VMware View Management Operations", 5.1. The entities used are remembered with it, so that many requests
    between two polls go round the failure domains as one request does. It is bounded by the ports of the candidates.
    """

    def __init__(self, penalty_factor: float) -> None:
        self.penalty_factor = penalty_factor
        self._reserved_pct: dict[PortId, float] = {}
        self._placements: dict[PortId, float] = {}
        self._carried = Carried()

    def reserved_pct(self, ids: Sequence[PortId]) -> NDArray[np.float64]:
        """Return what is reserved of each port, in percent of its usage."""
        return _column(self._reserved_pct, ids)

    def refresh(self) -> None:
        """Forget everything: the new poll has measured it."""
        self._reserved_pct.clear()
        self._placements.clear()
        self._carried = Carried()

    def place(self, candidates: Candidates, wish: Wish, size_pct: float) -> Selection:
        """Return ports for a request, with those of earlier ones counted, and reserve them.

        Parameters
        ----------
        candidates
            Ports with their measured usage.
        wish
            The request; entities used since the last poll are added to its own.
        size_pct
            Usage that one of its ports will have more when the request is in its steady state, in percent.

        Returns
        -------
        Selection
            As `select` gives it.

        Raises
        ------
        TooFewPortsError, KeyError
            As `select`; nothing is reserved then.
        """
        ids = candidates.ids
        raised = candidates.raised(self.reserved_pct(ids), _column(self._placements, ids))
        selection = select(raised, replace(wish, carried=_together(self._carried, wish.carried)))
        for step in selection.steps:
            name = step.chosen
            self._reserved_pct[name] = self._reserved_pct.get(name, 0.0) + self.penalty_factor * size_pct
            self._placements[name] = self._placements.get(name, 0.0) + self.penalty_factor
        self._carried = selection.carried
        return selection


def _column(found: Mapping[PortId, float], ids: Sequence[PortId]) -> NDArray[np.float64]:
    return np.fromiter((found.get(name, 0.0) for name in ids), np.float64, len(ids))


def _together(earlier: Carried, own: Carried) -> Carried:
    used = {
        level: tuple(dict.fromkeys((*earlier.used.get(level, ()), *own.used.get(level, ()))))
        for level in {**earlier.used, **own.used}
    }
    return Carried(used, {**earlier.last, **own.last})
