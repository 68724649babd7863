"""The core of live normalcy: rates of ports by the minute in, events of what leaves its bounds out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.anomaly.live_events import MemberKey
from controller.anomaly.live_normalcy import NO_SLOT, SlotBounds
from controller.config.anomaly_settings import Normalcy
from controller.performance.counters import Counter as PortCounter
from controller.performance.ports import PortRows
from controller.performance.rollups import RollUps
from controller.snapshot.events import State

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


class NormalcyMetric(NamedTuple):
    """A metric of a port: its name, the setting below which distances are none, and what a port does."""

    name: str
    least: str
    words: str


METRICS = (
    NormalcyMetric("rx_bytes_per_s", "bytes_per_s", "receives {} bytes a second"),
    NormalcyMetric("tx_bytes_per_s", "bytes_per_s", "sends {} bytes a second"),
    NormalcyMetric("rx_packets_per_s", "packets_per_s", "receives {} packets a second"),
    NormalcyMetric("tx_packets_per_s", "packets_per_s", "sends {} packets a second"),
    NormalcyMetric("errors_per_s", "errors_per_s", "counts {} errors a second"),
    NormalcyMetric("dropped_per_s", "dropped_per_s", "drops {} packets a second"),
)
METRIC_COUNT = len(METRICS)
KNOWN_SHARE = 0.5
"""A roll-up of which less is known is none."""
NO_PORT = -1

_CARRIED = [
    counter.column
    for counter in (PortCounter.RX_BYTES, PortCounter.TX_BYTES, PortCounter.RX_PACKETS, PortCounter.TX_PACKETS)
]
_ERRORS = [PortCounter.RX_ERRORS.column, PortCounter.TX_ERRORS.column]
_DROPPED = [PortCounter.RX_DROPPED.column, PortCounter.TX_DROPPED.column]


class PortsRolledUp(NamedTuple):
    """Roll-ups of ports, each port once at most: when each ended, in epoch seconds, and its mean rates.

    `values` float64[n, `METRIC_COUNT`], NaN where not known.
    """

    ports: tuple[MemberKey, ...]
    at_s: Floats
    values: Floats


class NormalcyChanged(NamedTuple):
    """The policy has other settings."""

    settings: Normalcy


class OpenExcess(NamedTuple):
    """A metric of a port that is outside of its bounds at present; the numbers are those it was raised with."""

    key: MemberKey
    metric: str
    since_s: float
    value: float
    lower: float
    upper: float
    score: float


class NormalcyTurned(NamedTuple):
    """A metric left its bounds for long enough, or is inside again, at `at_s` in epoch seconds."""

    state: State
    excess: OpenExcess
    at_s: float


def ports_rolled_up(rollups: RollUps, ports: PortRows) -> PortsRolledUp:
    """Return what roll-ups say of ports, without those of which less than half is known."""
    chosen = np.flatnonzero(rollups.covered_s >= KNOWN_SHARE * rollups.step_s)
    keys = tuple((name.dpid, name.port_no) for name in map(ports.name, rollups.rows[chosen].tolist()))
    mean = rollups.mean[chosen]
    values = np.empty((len(chosen), METRIC_COUNT))
    values[:, : len(_CARRIED)] = mean[:, _CARRIED]
    for place, columns in ((-2, _ERRORS), (-1, _DROPPED)):
        known = ~np.isnan(mean[:, columns])
        values[:, place] = np.where(known.any(axis=1), np.nansum(mean[:, columns], axis=1), np.nan)
    return PortsRolledUp(keys, rollups.start_s[chosen] + rollups.step_s, values)


class NormalcyCore:
    """Learns what is normal for every metric of every port, and tells what leaves its bounds.

    Series are rows of `bounds`: those of the port with number p are `METRIC_COUNT` p and the following.

    Attributes
    ----------
    bounds
        What was learnt, and the score of each series.
    open
        What is outside at present, by port and metric.
    dirty, forgotten
        Ports of which something is to be kept, and those that are to be forgotten.
    tally
        How often what happened: ``points``, ``raised``, ``cleared``, ``ports-over-limit``, ...
    """

    def __init__(self, settings: Normalcy) -> None:
        self.settings = settings
        self.bounds = SlotBounds(settings)
        self.open: dict[tuple[MemberKey, str], OpenExcess] = {}
        self.dirty: dict[MemberKey, None] = {}
        self.forgotten: list[MemberKey] = []
        self.tally: Counter[str] = Counter()
        self._keys: list[MemberKey | None] = []
        self._ports: dict[MemberKey, int] = {}
        self._free: list[int] = []
        self._is_open = np.zeros(0, np.bool_)
        self._looked = NO_SLOT
        self._handlers: dict[type, Callable[[Any], tuple[NormalcyTurned, ...]]] = {
            PortsRolledUp: self._rolled_up,
            NormalcyChanged: self._changed,
        }

    @property
    def chain(self) -> str:
        """What learnt values hold for: they are of no use to a core of another chain."""
        return f"{self.settings.day_s:g}/{','.join(metric.name for metric in METRICS)}"

    @property
    def ports(self) -> list[MemberKey]:
        """The ports that bounds are learnt of, in order."""
        return sorted(self._ports)

    def row(self, key: MemberKey) -> int:
        """Return the row of a port's first series, `NO_PORT` where it has none."""
        number = self._ports.get(key)
        return NO_PORT if number is None else number * METRIC_COUNT

    def port_of(self, row: int) -> MemberKey | None:
        """Return the port of a series' row, None where the row is free."""
        number = row // METRIC_COUNT
        return self._keys[number] if number < len(self._keys) else None

    def handle(self, event: Any, _now: float = 0.0) -> tuple[NormalcyTurned, ...]:
        """Take one event and return what was raised and cleared; KeyError for an event of unknown type."""
        return self._handlers[type(event)](event)

    def add_port(self, key: MemberKey) -> int:
        """Return the row of a port's first series, new ones where it has none; `NO_PORT` where there are too many."""
        number = self._ports.get(key)
        if number is None:
            if self._free:
                number = self._free.pop()
            elif len(self._keys) < self.settings.ports:
                number = len(self._keys)
                self._keys.append(None)
                if number * METRIC_COUNT >= self.bounds.capacity:
                    self._fit(min(self.settings.ports, number + number // 2 + 16))
            else:
                self.tally["ports-over-limit"] += 1
                return NO_PORT
            self._keys[number], self._ports[key] = key, number
            rows = np.arange(number * METRIC_COUNT, (number + 1) * METRIC_COUNT)
            self.bounds.begin(rows, self._least())
        return number * METRIC_COUNT

    def restore(self, excess: OpenExcess) -> None:
        """Take what an earlier run left open; the port must have rows."""
        self.open[excess.key, excess.metric] = excess
        self._is_open[self.row(excess.key) + _NAMES.index(excess.metric)] = True

    def close(self) -> tuple[NormalcyTurned, ...]:
        """Return everything that is open as cleared: bounds are looked at no more."""
        return tuple([self._clear(int(row)) for row in np.flatnonzero(self._is_open)])

    # Events.

    def _changed(self, event: NormalcyChanged) -> tuple[NormalcyTurned, ...]:
        before, self.settings = self.chain, event.settings
        self.bounds.configure(event.settings)
        rows = np.arange(len(self._keys) * METRIC_COUNT)
        least = np.tile(self._least(), len(self._keys))
        if self.chain == before:
            self.bounds.least[rows] = least
            self.bounds.measure(rows)
        else:
            self.bounds.begin(rows, least)
            self.tally["learnt-anew"] += 1
            return self.close()
        return ()

    def _rolled_up(self, event: PortsRolledUp) -> tuple[NormalcyTurned, ...]:
        first = np.array([self.add_port(key) for key in event.ports], np.intp)
        taken = first != NO_PORT
        if not taken.any():
            return ()
        rows = (first[taken, None] + np.arange(METRIC_COUNT)).ravel()
        at_s = np.repeat(event.at_s[taken], METRIC_COUNT)
        judged = self.bounds.take(rows, at_s, event.values[taken].ravel())
        self.tally["points"] += len(judged.rows)
        changed = np.unique(judged.closed // METRIC_COUNT) * METRIC_COUNT
        self.dirty.update(dict.fromkeys(map(self._key, changed.tolist())))
        was_open = self._is_open[judged.rows]
        raised = [self._raise(row) for row in judged.rows[judged.confirmed & ~was_open].tolist()]
        cleared = [self._clear(row) for row in judged.rows[judged.calm & was_open].tolist()]
        return (*raised, *cleared, *self._forget(float(event.at_s.max())))

    def _raise(self, row: int) -> NormalcyTurned:
        bounds, key, name = self.bounds, self._key(row), _NAMES[row % METRIC_COUNT]
        at_s = float(bounds.newest_s[row])
        since_s = at_s - self.settings.confirm_points * self.settings.point_s
        numbers = (float(array[row]) for array in (bounds.value, bounds.lower, bounds.upper, bounds.score))
        excess = OpenExcess(key, name, since_s, *numbers)
        self.open[key, name] = excess
        self._is_open[row] = True
        self.tally["raised"] += 1
        self.dirty[key] = None
        return NormalcyTurned(State.RAISED, excess, at_s)

    def _clear(self, row: int) -> NormalcyTurned:
        key = self._key(row)
        self._is_open[row] = False
        self.tally["cleared"] += 1
        self.dirty[key] = None
        excess = self.open.pop((key, _NAMES[row % METRIC_COUNT]))
        return NormalcyTurned(State.CLEARED, excess, float(self.bounds.newest_s[row]))

    def _forget(self, now_s: float) -> list[NormalcyTurned]:
        """Forget ports that are gone for long; looked for once a slot."""
        slot = int(now_s * 24 / self.settings.day_s)
        if slot == self._looked:
            return []
        self._looked = slot
        newest_s = self.bounds.newest_s[: len(self._keys) * METRIC_COUNT].reshape(-1, METRIC_COUNT)
        gone = np.fmax.reduce(newest_s, axis=1) < now_s - self.settings.forget_s
        out: list[NormalcyTurned] = []
        for number in np.flatnonzero(gone).tolist():
            key = self._keys[number]
            rows = range(number * METRIC_COUNT, (number + 1) * METRIC_COUNT)
            if key is not None:
                out += [self._clear(row) for row in rows if self._is_open[row]]
                del self._ports[key]
                self._keys[number] = None
                self._free.append(number)
                self.dirty.pop(key, None)
                self.forgotten.append(key)
                self.tally["forgotten"] += 1
        return out

    def _fit(self, ports: int) -> None:
        self._is_open = np.pad(self._is_open, (0, ports * METRIC_COUNT - len(self._is_open)))
        self.bounds.fit(ports * METRIC_COUNT)

    def _least(self) -> Floats:
        return np.array([getattr(self.settings.negligible, metric.least) for metric in METRICS])

    def _key(self, row: int) -> MemberKey:
        key = self.port_of(row)
        assert key is not None, "the row is free"
        return key


_NAMES = tuple(metric.name for metric in METRICS)
