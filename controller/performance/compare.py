"""Two samples of each port compared: what was counted in between, or why that is not known.

A counter that falls has wrapped or was discontinuous (RFC 2578, 7.1.6); what the port can carry in the time tells.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.performance.batch import Discontinuity
from controller.performance.counters import BITS, BYTE_COLUMNS, COUNTER_COUNT, UNSUPPORTED

FASTEST_BPS = 8e11
"""Taken as the speed of a port that does not tell it, to say what it cannot have carried."""

WRAP_SLACK = 1.25
JUMP_SLACK = 16.0
"""How much faster than its nominal speed a port may seem: software ports carry more than they say."""

MOST_BYTES = float(1 << 58)
"""More octets are not believed whatever the time: with all slack, counts stay within 64 bits."""

SLACK_BYTES = 1 << 20
"""Octets that may have been counted beside those of the measured time, for counters are not read at one instant."""

SMALLEST_PACKET_BYTES = 60
LARGEST_PACKET_BYTES = 65536
"""Offloading lets a switch count up to 64 KiB as one packet."""

SHORTEST_INTERVAL_S = 0.1
"""A sample sooner after the last one is put aside: a few counts would look like a high rate."""

TIME_TOLERANCE_S = 5.0
REPLY_JITTER_S = 0.5
LATE_LIMIT = 8
"""After so many late samples in a row the port counts as created again, for its clock will not catch up."""

CLOCK_RATIO = 4.0
MISSED_INTERVALS = 1.5

_ONES = np.uint64(UNSUPPORTED)
_TOP_32 = np.uint64((1 << 32) - 1)
_SPAN_32 = np.uint64(1 << 32)
_PER_BYTE = np.full(COUNTER_COUNT, float(SMALLEST_PACKET_BYTES))
_PER_BYTE[list(BYTE_COLUMNS)] = 1.0

Floats = NDArray[np.float64]
Counts = NDArray[np.uint64]
Mask = NDArray[np.bool_]


class Before(NamedTuple):
    """What is remembered of each port's last sample.

    Attributes
    ----------
    known
        bool[n], whether there is one at all.
    recreated
        bool[n], whether the port was created again since.
    late
        uint8[n], late samples in a row since.
    narrow
        uint16[n], mask of the counters that were seen to wrap at 32 bits.
    at_s, duration_s, counters
        As in `Samples`; a duration is NaN where it is not told.
    """

    known: Mask
    recreated: Mask
    late: NDArray[np.uint8]
    narrow: NDArray[np.uint16]
    at_s: Floats
    duration_s: Floats
    counters: Counts

    def take(self, which: NDArray[np.intp]) -> Before:
        """Return some entries."""
        return Before(
            self.known[which],
            self.recreated[which],
            self.late[which],
            self.narrow[which],
            self.at_s[which],
            self.duration_s[which],
            self.counters[which],
        )


class Compared(NamedTuple):
    """The outcome of a comparison.

    Attributes
    ----------
    interval_s
        float64[n], NaN in a gap and for ignored samples.
    counted
        float64[n, 12], what was counted in the interval, NaN where unknown.
    code
        uint8[n], a `Discontinuity`.
    unsupported, wrapped, narrow
        uint16[n], masks of counters; those that are `narrow` were seen to wrap at 32 bits, now or before.
    """

    interval_s: Floats
    counted: Floats
    code: NDArray[np.uint8]
    unsupported: NDArray[np.uint16]
    wrapped: NDArray[np.uint16]
    narrow: NDArray[np.uint16]

    def put(self, where: NDArray[np.intp], other: Compared) -> None:
        """Overwrite some entries."""
        for column, overwritten in zip(self._columns(), other._columns(), strict=True):
            column[where] = overwritten

    def take(self, which: Mask) -> Compared:
        """Return some entries."""
        return Compared(
            self.interval_s[which],
            self.counted[which],
            self.code[which],
            self.unsupported[which],
            self.wrapped[which],
            self.narrow[which],
        )

    def _columns(self) -> tuple[NDArray[Any], ...]:
        return tuple(self)


def compare(
    before: Before,
    at_s: Floats,
    duration_s: Floats,
    counters: Counts,
    speed_bps: Floats,
    expected_s: Floats,
    sticky_bits: int = 0,
) -> Compared:
    """Compare samples with those before them.

    Parameters
    ----------
    before
        The sample before each.
    at_s, duration_s, counters
        The samples, as in `Samples`; a duration of 0 after none above 0 is that of a switch that does not tell it.
    speed_bps
        float64[n], capacity of the ports; 0 where unknown.
    expected_s
        float64[n], time between two polls; 0 where unknown.
    sticky_bits
        32 where counters stay at 2**32 - 1 once they are there, else 0. (64-bit ones are then unsupported.)

    Returns
    -------
    Compared
        Nothing is raised, whatever the counters.
    """
    n = len(at_s)
    elapsed_s = at_s - before.at_s
    no_time = (duration_s == 0) & ~(before.duration_s > 0)
    if no_time.any():
        duration_s = np.where(no_time, np.nan, duration_s)
    lived_s = duration_s - before.duration_s
    interval_s = np.where(lived_s > 0, lived_s, elapsed_s)
    difference = counters - before.counters
    counted = difference.astype(np.float64)
    limit_bytes = _carried(speed_bps, interval_s) * JUMP_SLACK + SLACK_BYTES
    absent = counters == _ONES
    any_absent = bool(absent.any())
    absent_before = before.counters == _ONES
    odd = (counted * _PER_BYTE > limit_bytes[:, None]) | (counters < before.counters)
    if any_absent or absent_before.any():
        either = absent | absent_before
        odd &= ~either
        counted[either] = np.nan
    code = np.zeros(n, np.uint8)
    wrapped = np.zeros(n, np.uint16)
    unsupported = absent @ BITS if any_absent else np.zeros(n, np.uint16)
    if any_absent:
        code[(absent & ~absent_before).any(axis=1)] = Discontinuity.UNSUPPORTED
    if sticky_bits == 32:
        stuck = counters == _TOP_32
        counted[stuck] = np.nan
        code[stuck.any(axis=1)] = Discontinuity.STUCK
    code[(expected_s > 0) & (interval_s > expected_s * MISSED_INTERVALS)] = Discontinuity.MISSED
    strange = odd.any(axis=1) | before.recreated | ~before.known | (elapsed_s <= 0) | (lived_s <= 0)
    strange |= interval_s < SHORTEST_INTERVAL_S
    strange |= np.abs(lived_s - elapsed_s) > TIME_TOLERANCE_S
    strange |= (before.narrow > 0) & (limit_bytes > float(1 << 32) * JUMP_SLACK / WRAP_SLACK)
    narrow = before.narrow.copy()
    which = np.flatnonzero(strange)
    if which.size:
        found = _judge(
            before.take(which),
            _Strange(
                elapsed_s[which],
                lived_s[which],
                duration_s[which],
                counters[which],
                speed_bps[which],
                counted[which],
                code[which],
            ),
            may_wrap=sticky_bits == 0,
        )
        interval_s[which], counted[which], code[which], wrapped[which], narrow[which] = found
    return Compared(interval_s, counted, code, unsupported, wrapped, narrow)


class _Strange(NamedTuple):
    """Samples that need a closer look; `counted` as if nothing were strange, NaN for unsupported counters."""

    elapsed_s: Floats
    lived_s: Floats
    duration_s: Floats
    counters: Counts
    speed_bps: Floats
    counted: Floats
    code: NDArray[np.uint8]


def _carried(speed_bps: Floats, interval_s: Floats) -> Floats:
    """Return the octets that ports carry in a time at their nominal speed, `MOST_BYTES` at most."""
    carried: Floats = np.where(speed_bps > 0, speed_bps, FASTEST_BPS) * np.fmax(interval_s, 0.0) / 8
    return np.fmin(carried, MOST_BYTES)


def _judge(
    before: Before, now: _Strange, may_wrap: bool
) -> tuple[Floats, Floats, NDArray[np.uint8], NDArray[np.uint16], NDArray[np.uint16]]:
    """Return interval, counted, code, wrapped and narrow counters of strange samples."""
    counted, code = now.counted.copy(), now.code.copy()
    supported = (now.counters != _ONES) & (before.counters != _ONES)
    fell = (now.counters < before.counters) & supported
    rose = (now.counters > before.counters) & supported
    elapsed_s, lived_s = now.elapsed_s, now.lived_s
    told = ~np.isnan(lived_s)
    forward = told & (lived_s > 0)
    interval_s = np.where(forward, lived_s, elapsed_s)
    same = ~(fell | rose).any(axis=1)

    back = told & (lived_s < 0)
    young = now.duration_s <= elapsed_s + REPLY_JITTER_S
    older = (~told & (elapsed_s < 0) & fell.any(axis=1) & ~rose.any(axis=1)) | (back & ~young)
    recreated = before.recreated | (back & young) | (older & (before.late >= LATE_LIMIT))
    repeated = (same & (lived_s == 0)) | (~back & (interval_s >= 0) & (interval_s < SHORTEST_INTERVAL_S))
    stepped = ~forward & (elapsed_s < 0)
    apart = forward & (np.abs(lived_s - elapsed_s) > TIME_TOLERANCE_S)
    unlike = (lived_s > CLOCK_RATIO * elapsed_s) | (elapsed_s > CLOCK_RATIO * lived_s)
    disagree = apart & (elapsed_s > 0) & unlike
    code[forward & (elapsed_s < 0)] = Discontinuity.TIME_BACKWARDS

    narrow = (before.narrow[:, None] & BITS) > 0
    falls = _falls(before.counters, now, interval_s, _Changes(fell, supported, narrow), counted, may_wrap)
    counted[falls.jumped | falls.unclear] = np.nan
    for matrix, meaning in (
        (falls.jumped, Discontinuity.JUMP),
        (falls.unclear, Discontinuity.WRAPS_UNKNOWN),
        (falls.wrapped_32, Discontinuity.WRAP_32),
        (falls.wrapped_64, Discontinuity.WRAP_64),
    ):
        code[matrix.any(axis=1)] = meaning
    wrapped = (falls.wrapped_32 | falls.wrapped_64) @ BITS

    gap = np.zeros(len(code), np.bool_)
    for mask, meaning in (
        (disagree, Discontinuity.CLOCK_STEP),
        (falls.reset, Discontinuity.RESET),
        (stepped, Discontinuity.TIME_BACKWARDS),
        (older, Discontinuity.LATE),
        (repeated, Discontinuity.DUPLICATE),
        (recreated, Discontinuity.RECREATED),
        (~before.known, Discontinuity.FIRST),
    ):
        code[mask] = meaning
        gap |= mask
    interval_s[gap] = np.nan
    counted[gap] = np.nan
    wrapped[gap] = 0
    seen_32 = (falls.wrapped_32 | falls.unclear) & ~gap[:, None]
    narrow = (narrow | seen_32) & (now.counters <= _TOP_32)
    return interval_s, counted, code, wrapped, narrow @ BITS


class _Changes(NamedTuple):
    """bool[n, 12] each: counters that fell, that both samples have, that are known to wrap at 32 bits."""

    fell: Mask
    supported: Mask
    narrow: Mask


class _Falls(NamedTuple):
    """What falls and leaps mean: bool[n, 12] each, and `reset` bool[n].

    `unclear` counters may have wrapped more than once; `jumped` ones rose beyond belief.
    """

    wrapped_32: Mask
    wrapped_64: Mask
    unclear: Mask
    jumped: Mask
    reset: Mask


def _falls(
    last: Counts, now: _Strange, interval_s: Floats, changes: _Changes, counted: Floats, may_wrap: bool
) -> _Falls:
    """Tell wraps from resets and jumps, and put wraps right in `counted`.

    A counter that fell has wrapped where the difference is one that the port can carry in the time, and where another
    counter did not fall or the counter stood near its maximum; else the counters of the port were reset.
    """
    fell, supported, narrow = changes
    carried = _carried(now.speed_bps, interval_s)[:, None] / _PER_BYTE
    plausible = carried * WRAP_SLACK + SLACK_BYTES / _PER_BYTE
    told = (now.speed_bps > 0)[:, None]
    low = fell & (last <= _TOP_32)
    by_32 = (now.counters + _SPAN_32 - last).astype(np.float64)
    wraps_32 = low & (by_32 <= np.where(told, plausible, float(1 << 31))) & may_wrap
    wraps_64 = fell & ~low & (counted <= plausible) & may_wrap
    counted[wraps_32] = by_32[wraps_32]
    unclear = (wraps_32 | (narrow & supported & ~fell)) & told
    unclear &= counted + float(1 << 32) <= np.minimum(plausible, _most_bytes(counted))

    unexplained = fell & ~wraps_32 & ~wraps_64
    steady = supported & ~fell & (now.counters > 0)
    high = last >= np.where(low, np.uint64(3 << 30), np.uint64(3 << 62))
    alone = ~steady.any(axis=1) & ((wraps_32 | wraps_64) & ~high).any(axis=1)
    jumped = supported & ~fell & (counted > carried * JUMP_SLACK + SLACK_BYTES / _PER_BYTE)
    return _Falls(wraps_32 & ~unclear, wraps_64, unclear, jumped, unexplained.any(axis=1) | alone)


def _most_bytes(counted: Floats) -> Floats:
    """Return the octets that the counted packets can have held, infinite where that is not known."""
    most = np.full_like(counted, np.inf)
    for column in BYTE_COLUMNS:
        packets = counted[:, column - 2]
        most[:, column] = np.where(np.isnan(packets), np.inf, packets * LARGEST_PACKET_BYTES)
    return most
