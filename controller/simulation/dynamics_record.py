"""What a stream of events did: one row per event, and a summary of them."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.simulation.dynamics import Dynamics, EventKind, EventOutcome, GroupEvent

KINDS = tuple(EventKind)
COUNTS = EventOutcome._fields[1:]
"""The columns that count something."""

SAMPLES = 200
"""Points in time at which the whole fabric is looked at."""


class Sample(NamedTuple):
    """The fabric at one time: utilisation of its links in percent, groups with members, and members cut off."""

    time_s: float
    max_pct: float
    p99_pct: float
    groups: int
    members_cut_off: int


class Record:
    """The outcomes of events in their order, column by column."""

    def __init__(self) -> None:
        self.time_s = array("d")
        self.kind = array("b")
        self.applied = array("b")
        self.counts: dict[str, array[int]] = {name: array("q") for name in COUNTS}
        self.samples: list[Sample] = []
        self._columns = [column.append for column in self.counts.values()]

    def __len__(self) -> int:
        return len(self.time_s)

    def add(self, event: GroupEvent, outcome: EventOutcome) -> None:
        """Append one row."""
        self.time_s.append(event.time_s)
        self.kind.append(_NUMBER[event.kind])
        self.applied.append(outcome.applied)
        for append, value in zip(self._columns, outcome[1:], strict=True):
            append(value)

    def summary(self) -> dict[str, Any]:
        """Return, per kind of event, how many there were and total, maximum, p99 and mean of every count.

        The figures are over the events that were applied; kinds that did not occur are left out.
        """
        kind, applied = np.array(self.kind), np.array(self.applied, dtype=bool)
        summary: dict[str, Any] = {}
        for number, name in enumerate(KINDS):
            chosen = kind == number
            if chosen.any():
                rows = chosen & applied
                summary[str(name)] = {
                    "count": int(chosen.sum()),
                    "ignored": int((chosen & ~applied).sum()),
                    **{column: _spread(np.array(values)[rows]) for column, values in self.counts.items()},
                }
        return summary


_NUMBER = {kind: number for number, kind in enumerate(KINDS)}


def _spread(values: NDArray[np.int64]) -> dict[str, float]:
    if not len(values):
        return {"total": 0, "max": 0, "p99": 0.0, "mean": 0.0}
    p99 = float(np.percentile(values, 99))
    return {"total": int(values.sum()), "max": int(values.max()), "p99": p99, "mean": float(values.mean())}


def play(
    dynamics: Dynamics, events: Sequence[GroupEvent], progressed: Callable[[int], None] = lambda count: None
) -> Record:
    """Apply events in their order and return what each did; `progressed` is told now and then how many are done."""
    record = Record()
    every = max(1, len(events) // SAMPLES)
    step, add = dynamics.step, record.add
    for number, event in enumerate(events, 1):
        add(event, step(event))
        if number % every == 0 or number == len(events):
            record.samples.append(_sample(dynamics, event.time_s))
            progressed(number)
    return record


def _sample(dynamics: Dynamics, time_s: float) -> Sample:
    used = utilisations_pct(dynamics)
    p99 = float(np.percentile(used, 99)) if len(used) else 0.0
    busiest = float(used.max()) if len(used) else 0.0
    return Sample(time_s, busiest, p99, len(dynamics.members), dynamics.cut_off())


def utilisations_pct(dynamics: Dynamics) -> NDArray[np.float64]:
    """Return the utilisation of every living link in its busier direction, in percent, in no order."""
    loads = dynamics.forest.loads
    bps, capacity_bps = np.array(loads.bps, dtype=np.float64), np.array(loads.capacity_bps, dtype=np.float64)
    alive = np.unique(np.fromiter(_numbers(loads.index.values()), dtype=np.int64) >> 1)
    busier = np.maximum(bps[0::2], bps[1::2])
    return np.asarray(100 * busier[alive] / capacity_bps[0::2][alive])


def _numbers(rows: Iterable[dict[Any, int]]) -> Iterable[int]:
    for row in rows:
        yield from row.values()
