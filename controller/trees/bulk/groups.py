"""Very many groups in flat arrays: the switches of their members, and their rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.integer[Any]]

RATES_BPS = 1 << 60
"""More than all groups together may have: loads are 64-bit integers."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups numbered from 0. `Groups.of` makes them of members in any order.

    Attributes
    ----------
    offsets
        int64[G + 1]; the switches of group g are ``tors[offsets[g]:offsets[g + 1]]``.
    tors
        Numbers of the switches with members, ascending and each once within a group, in a small integer type.
    rates_bps
        int64[G]: what each link of the group's tree carries, not negative.
    """

    offsets: npt.NDArray[np.int64]
    tors: Integers
    rates_bps: npt.NDArray[np.int64]

    @property
    def count(self) -> int:
        """Number of groups."""
        return len(self.rates_bps)

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Number of switches with members of each group, int64[G]."""
        return np.diff(self.offsets)

    @property
    def bytes_per_group(self) -> float:
        """Memory that the arrays take, per group (0.0 where there is none)."""
        return sum(part.nbytes for part in (self.offsets, self.tors, self.rates_bps)) / max(1, self.count)

    @classmethod
    def of(cls, offsets: npt.ArrayLike, tors: npt.ArrayLike, rates_bps: npt.ArrayLike, tor_count: int) -> Groups:
        """Return groups in compact form: members on one switch become one, numbers take as few bytes as they need.

        Parameters
        ----------
        offsets
            Integers[G + 1], ascending from 0: the members of group g are ``tors[offsets[g]:offsets[g + 1]]``.
        tors
            Integers[M]: the switch of each member, from 0 to `tor_count` - 1, in any order.
        rates_bps
            Numbers[G], rounded to whole bits per second.
        tor_count
            Number of switches that members may be attached to.

        Raises
        ------
        ValueError
            Naming the group at fault: for a switch that is no integer or out of range, a rate that is negative, no
            number or too large, and offsets that do not fit the members.
        """
        starts = np.asarray(offsets, dtype=np.int64)
        members: npt.NDArray[Any] = np.asarray(tors)
        if not len(members):
            members = members.astype(np.int16)
        if members.dtype.kind not in "iu":
            raise ValueError(f"switch numbers must be integers, not {members.dtype}")
        rates = whole_rates(rates_bps)
        if (
            starts.ndim != 1
            or not len(starts)
            or starts[0]
            or starts[-1] != len(members)
            or (np.diff(starts) < 0).any()
        ):
            raise ValueError(f"offsets must ascend from 0 to the number of members, {len(members)}")
        if len(rates) != len(starts) - 1:
            raise ValueError(f"{len(rates)} rates for {len(starts) - 1} groups")
        if len(members) and not (members.min() >= 0 and members.max() < tor_count):
            at = int(((members < 0) | (members >= tor_count)).argmax())
            group = int(np.searchsorted(starts, at, side="right")) - 1
            raise ValueError(f"group {group}: switch {members[at]} is not in 0..{tor_count - 1}")
        starts, members = _distinct(starts, members, tor_count)
        small = np.int16 if tor_count <= np.iinfo(np.int16).max else np.int32
        return cls(starts, members.astype(small, copy=False), rates)


def whole_rates(rates_bps: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the rates of groups in whole bits per second.

    Raises ValueError, naming the group, for a rate that is negative, no number, or so large that the rates sum up to
    `RATES_BPS` or more.
    """
    rates: npt.NDArray[Any] = np.asarray(rates_bps)
    wrong = ~(np.isfinite(rates) & (rates >= 0))
    if wrong.any():
        group = int(wrong.argmax())
        raise ValueError(f"group {group}: rate_bps {rates[group]} is negative or no number")
    if rates.sum(dtype=np.float64) >= RATES_BPS:
        group = int(rates.argmax())
        raise ValueError(f"group {group}: rate_bps {rates[group]} is too large, all sum up to {RATES_BPS} or more")
    whole: npt.NDArray[np.int64] = np.rint(rates).astype(np.int64)
    return whole


def _distinct(
    starts: npt.NDArray[np.int64], members: Integers, tor_count: int
) -> tuple[npt.NDArray[np.int64], Integers]:
    """Sort the members within each group and drop repeated ones."""
    count = len(starts) - 1
    wide = np.dtype(np.uint32 if count * tor_count < 2**32 else np.uint64)
    first = (np.arange(count + 1) * tor_count).astype(wide)
    keys = np.repeat(first[:-1], np.diff(starts)) + members.astype(wide)
    if (keys[1:] > keys[:-1]).all():
        return starts, members
    keys.sort()
    keep = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=keep[1:])
    keys = keys[keep]
    return np.searchsorted(keys, first), keys % wide.type(tor_count)
