"""The ports of one switch that have queues, as arrays: what the queues send, and what they are sure of.

Rows are ports in the order in which they came, columns the queues 7 to 0, so that the most important is first and
that of unmarked packets last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import inf
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from controller.queues.managed import DEFAULT_PACKET_BYTES
from controller.queues.measures import QueueUse, SwitchUses
from controller.service_classes.rates import (
    GoalNeeds,
    PortFloors,
    Values,
    are_short,
    are_to_be_written,
    share_out,
)

COLUMNS = 8
"""Queues of a port; what others a port has are somebody else's."""

LOOKED_AT = 0.01
"""Part of a port's capacity by which what comes to a queue must change for its rates to be looked at again."""

SILENT = -1e30
"""Stands for what a silent queue is offered: farther from any rate than rates are from each other."""

_FIELDS = len(QueueUse._fields)
_TX_BPS, _PACKET_BYTES, _OFFERED_BPS = map(QueueUse._fields.index, ("tx_bps", "packet_bytes", "offered_bps"))
_COUNTED = 3
"""The first fields of uses, from which the others follow."""

_ROWS_AT_FIRST = 16

KINDS = 16
"""Kinds of switches, by their ports and by which queues they tell of, of which it is kept which are whose."""

_NAME = np.array([1 << 32, 1], dtype=np.uint64)
"""Makes one number of a port and a queue, which have 32 bits each."""

_QUEUE_IDS = np.arange(COLUMNS, dtype=np.uint64)[::-1]

_Scalar = TypeVar("_Scalar", bound=np.generic)


def column_of(queue_id: int) -> int:
    """Return the column of a queue."""
    return COLUMNS - 1 - queue_id


class _Places(NamedTuple):
    """Which column of `SwitchUses.values` belongs to each row and column here, shape (rows x `COLUMNS`,)."""

    keys: NDArray[np.uint64]
    columns: NDArray[np.intp]


class SwitchQueues:
    """The ports of a switch, that have `queue_ids`.

    Attributes
    ----------
    rows
        The row of each port.
    capacity_bps
        Shape (rows, 1); 0 in rows that no port has yet.
    sent
        What each queue sent since clusters were made, in bit/s added up over replies, shape (rows, `COLUMNS`).
    floors
        What rows are sure of before needs are looked at; None while that is to be found anew.
    """

    def __init__(self, queue_ids: Sequence[int]) -> None:
        self.rows: dict[int, int] = {}
        self.capacity_bps: Values = np.zeros((0, 1))
        self.sent: Values = np.zeros((0, COLUMNS))
        self.floors: PortFloors | None = None
        self._queue_ids = tuple(queue_ids)
        self._columns = [column_of(queue_id) for queue_id in queue_ids]
        self._rates: dict[int, dict[int, int]] = {}
        self._rates_bps: Values = np.zeros((0, COLUMNS))
        self._missing_bps: Values = np.zeros((0, COLUMNS))
        self._least_bps: Values = np.zeros((0, 1))
        self._uses: Values = np.zeros((_FIELDS, 0, COLUMNS))
        self._levels: Values = np.zeros((0, COLUMNS))
        self._decided_by: Values = np.zeros((0, COLUMNS))
        self._places: _Places | None = None

    def put(self, port_no: int, capacity_bps: float, rates: Mapping[int, int]) -> None:
        """Have a port of which nothing is measured yet, with the least rates of its queues in bit/s."""
        row = self.rows.get(port_no)
        if row is None:
            row = self.rows[port_no] = len(self.rows)
            if row == len(self.capacity_bps):
                self._grow(max(_ROWS_AT_FIRST, row))
        self.capacity_bps[row] = capacity_bps
        self._least_bps[row] = LOOKED_AT * capacity_bps
        self._rates[row] = dict(rates)
        self._rates_bps[row] = 0.0
        # What a switch has may be any number; above the capacity it differs by enough from all that is decided.
        most = int(2 * capacity_bps)
        self._rates_bps[row, self._columns] = [min(rates[queue_id], most) for queue_id in self._queue_ids]
        self.sent[row] = self._missing_bps[row] = 0.0
        self._uses[:, row] = 0.0
        self._levels[row] = self._decided_by[row] = SILENT
        self.floors = self._places = None

    def _grow(self, more: int) -> None:
        self.capacity_bps = _longer(self.capacity_bps, more)
        self.sent = _longer(self.sent, more)
        self._rates_bps = _longer(self._rates_bps, more)
        self._missing_bps = _longer(self._missing_bps, more)
        self._least_bps = _longer(self._least_bps, more, inf)
        self._uses = _longer(self._uses, more, axis=1)
        self._levels = _longer(self._levels, more, SILENT)
        self._decided_by = _longer(self._decided_by, more, SILENT)

    def rates(self, port_no: int) -> dict[int, int]:
        """Return the least rates of the queues of a port that is there, in whole bit/s."""
        row = self.rows[port_no]
        found = self._rates.get(row)
        if found is None:
            rates_bps = self._rates_bps[row, self._columns].astype(np.int64)
            found = self._rates[row] = dict(zip(self._queue_ids, rates_bps.tolist(), strict=True))
        return found

    def missing(self) -> Iterator[tuple[int, dict[int, int]]]:
        """Yield the ports where needs lack capacity, with what lacks in whole bit/s by queue."""
        if self._missing_bps.any():
            for port_no, row in self.rows.items():
                if found := self.missing_at(row):
                    yield port_no, found

    def missing_at(self, row: int) -> dict[int, int]:
        """Return what needs lack at a row in whole bit/s, by queue."""
        missing_bps = self._missing_bps[row].tolist()
        return {queue_id: int(bps) for queue_id in self._queue_ids if (bps := missing_bps[column_of(queue_id)])}

    def uses_at(self, row: int) -> dict[int, QueueUse]:
        """Return what of a row's queues sent or dropped anything last."""
        columns = np.flatnonzero(self._levels[row] != SILENT)
        values = self._uses[:, row, columns].T.tolist()
        return {column_of(column): QueueUse(*use) for column, use in zip(columns.tolist(), values, strict=True)}

    # Measures

    def take(self, uses: SwitchUses) -> None:
        """Take what the queues send and drop now."""
        places = self._places
        if places is None or places.keys is not uses.keys:
            columns = _columns_of_uses(tuple(self.rows), len(self.sent), uses.keys.tobytes())
            places = self._places = _Places(uses.keys, columns)
        self._uses = uses.values.take(places.columns, axis=1).reshape((_FIELDS, -1, COLUMNS))
        self._levels = np.where(self._uses[:_COUNTED].any(axis=0), self._uses[_OFFERED_BPS], SILENT)

    def add_up(self) -> None:
        """Count what is sent now for the next clusters."""
        self.sent += self._uses[_TX_BPS]

    def otherwise_used(self) -> NDArray[np.bool_] | None:
        """Tell where so much more or less is offered, or other queues are used, that rates may be others.

        Returns
        -------
        numpy.ndarray or None
            Shape (rows,); None where it is so at no row.
        """
        change = self._levels - self._decided_by
        np.abs(change, out=change)
        differs = change >= self._least_bps
        return np.asarray(differs.any(axis=1)) if differs.any() else None

    def void(self) -> None:
        """Have rates looked at again at every port that is used."""
        self.floors = None
        self._decided_by = np.where(self._levels == SILENT, SILENT, inf)

    # Decisions

    def decide(self, where: NDArray[np.bool_], needs: GoalNeeds, sure: PortFloors) -> bool:
        """Decide on least rates from what is used; tell whether some are others.

        Parameters
        ----------
        where
            At which rows, shape (rows,).
        needs
            Of all columns.
        sure
            What rows are sure of before.
        """
        offered_bps, packet_bytes = self._uses[_OFFERED_BPS], self._uses[_PACKET_BYTES]
        packet_bytes = np.where(packet_bytes, packet_bytes, DEFAULT_PACKET_BYTES)
        rates_bps, missing_bps = share_out(sure, needs.bps(offered_bps, packet_bytes, self.capacity_bps))
        here = where[:, None]
        np.copyto(self._decided_by, self._levels, where=here)
        np.copyto(self._missing_bps, missing_bps, where=here)
        is_other = are_to_be_written(self._rates_bps, rates_bps, self.capacity_bps)
        if not is_other.all():
            is_other |= are_short(self._rates_bps, rates_bps, offered_bps)
        is_other &= where
        rows: list[int] = is_other.nonzero()[0].tolist()
        if not rows:
            return False
        np.copyto(self._rates_bps, rates_bps, where=is_other[:, None])
        for row in rows:
            self._rates.pop(row, None)
        return True


@lru_cache(maxsize=KINDS)
def _columns_of_uses(ports: tuple[int, ...], rows: int, keys_bytes: bytes) -> NDArray[np.intp]:
    """Return where in `SwitchUses.values` the queues of ports are, shape (rows x `COLUMNS`,), from the bytes of keys.

    Switches of one kind have it in common.
    """
    keys = np.frombuffer(keys_bytes, dtype=np.uint64).reshape(-1, 2)
    columns = np.full(rows * COLUMNS, len(keys))
    if len(keys):
        names = keys @ _NAME
        here = (np.array(ports, dtype=np.uint64)[:, None] * _NAME[0] + _QUEUE_IDS).ravel()
        in_order = names.argsort()
        found = in_order.take(names.searchsorted(here, sorter=in_order), mode="clip")
        np.copyto(columns[: len(here)], found, where=names.take(found) == here)
    return columns


def _longer(array: NDArray[_Scalar], more: int, value: float = 0.0, axis: int = 0) -> NDArray[_Scalar]:
    """Return an array with so many rows more, which are on an axis, of one value."""
    shape = list(array.shape)
    shape[axis] = more
    return np.concatenate((array, np.full(shape, value, dtype=array.dtype)), axis=axis)
