"""The rows of a metric file in long form, read part by part and put together series by series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.anomaly.series import RawSeries, SeriesName

Codes = NDArray[np.integer]

BLOCK_ROWS = 1 << 22
ROWS_AT_ONCE = 1 << 18
KEYS_AT_MOST = 1 << 20
"""Up to here each combination of metric, group and member has a place in a table; beyond, keys are sorted."""


class CodeNames(NamedTuple):
    """What the codes of a part stand for: metrics, peer groups and members."""

    metrics: Sequence[str]
    groups: Sequence[str]
    members: Sequence[str]


class _Block(NamedTuple):
    """Room for `BLOCK_ROWS` rows; large enough for the system to take back once it is let go."""

    numbers: NDArray[np.int32]
    at_s: NDArray[np.float64]
    values: NDArray[np.float64]


class SeriesRows:
    """Samples of many series in the order of a file, held in 20 bytes each until they are put together."""

    def __init__(self) -> None:
        self._numbers: dict[SeriesName, int] = {}
        self._order: tuple[dict[str, int], dict[str, int], dict[str, int]] = ({}, {}, {})
        self._blocks: list[_Block] = []
        self._rows = 0

    def add(
        self,
        codes: tuple[Codes, Codes, Codes],
        names: CodeNames,
        at_s: NDArray[np.float64],
        values: NDArray[np.float64],
    ) -> None:
        """Add n rows: the codes of their metric, group and member, times and values, (n,) each."""
        for known, of_kind in zip(self._order, names, strict=True):
            for name in of_kind:
                known.setdefault(name, len(known))
        if not len(at_s):
            return
        groups, members = len(names.groups), len(names.members)
        key = (codes[0].astype(np.int64) * groups + codes[1]) * members + codes[2]
        if len(names.metrics) * groups * members <= KEYS_AT_MOST:
            present = np.flatnonzero(np.bincount(key))
            places = np.zeros(int(present[-1]) + 1, np.int64)
            places[present] = np.arange(len(present))
            place = places[key]
        else:
            present, place = np.unique(key, return_inverse=True)
        numbers = np.array([self._number(int(one), names) for one in present], np.int64)
        self._hold(numbers[place], at_s, values)

    def _hold(self, numbers: Codes, at_s: NDArray[np.float64], values: NDArray[np.float64]) -> None:
        start = 0
        while start < len(at_s):
            used = self._rows % BLOCK_ROWS
            if not used:
                self._blocks.append(
                    _Block(np.empty(BLOCK_ROWS, np.int32), np.empty(BLOCK_ROWS), np.empty(BLOCK_ROWS))
                )
            taken = min(BLOCK_ROWS - used, len(at_s) - start)
            room, given = slice(used, used + taken), slice(start, start + taken)
            block = self._blocks[-1]
            block.numbers[room], block.at_s[room], block.values[room] = numbers[given], at_s[given], values[given]
            self._rows += taken
            start += taken

    def _number(self, key: int, names: CodeNames) -> int:
        rest, member = divmod(key, len(names.members))
        metric, group = divmod(rest, len(names.groups))
        name = SeriesName(names.members[member], names.groups[group], names.metrics[metric])
        return self._numbers.setdefault(name, len(self._numbers))

    def series(self) -> list[RawSeries]:
        """Return the series, by metric, group and member in the order of first appearance; the rows are let go."""
        metrics, groups, members = self._order
        names = sorted(self._numbers, key=lambda n: (metrics[n.metric], groups[n.peer_group], members[n.member]))
        place = np.empty(len(names), np.int64)
        place[[self._numbers[name] for name in names]] = np.arange(len(names))
        counts = np.zeros(len(names), np.int64)
        for block in self._filled():
            counts += np.bincount(place[block.numbers], minlength=len(names))
        ends = np.cumsum(counts)
        free = ends - counts
        at_s, values = np.empty(self._rows), np.empty(self._rows)
        for block in self._filled(let_go=True):
            order = np.argsort(block.numbers.astype(np.min_scalar_type(len(names))), kind="stable")
            numbers = block.numbers[order]
            starts = np.flatnonzero(np.concatenate(([True], numbers[1:] != numbers[:-1])))
            lengths = np.diff(starts, append=len(numbers))
            at = place[numbers[starts]]
            target = np.repeat(free[at] - starts, lengths) + np.arange(len(numbers))
            at_s[target], values[target] = block.at_s[order], block.values[order]
            free[at] += lengths
        return [
            RawSeries(name, at_s[end - count : end], values[end - count : end])
            for name, end, count in zip(names, ends.tolist(), counts.tolist(), strict=True)
        ]

    def _filled(self, *, let_go: bool = False) -> Iterator[_Block]:
        """Yield the rows in order, at most `ROWS_AT_ONCE` at a time; done blocks go where asked for."""
        for number in range(len(self._blocks)):
            rows = min(BLOCK_ROWS, self._rows - number * BLOCK_ROWS)
            for start in range(0, rows, ROWS_AT_ONCE):
                some = slice(start, min(start + ROWS_AT_ONCE, rows))
                block = self._blocks[number]
                yield _Block(block.numbers[some], block.at_s[some], block.values[some])
            if let_go:
                self._blocks[number] = _Block(np.empty(0, np.int32), np.empty(0), np.empty(0))
