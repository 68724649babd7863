"""Who is compared: a row for each port and switch, its peer group, and how it fares."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from controller.anomaly.live_events import WHOLE_SWITCH, MemberKey
from controller.performance.ports import longer

Rows = NDArray[np.intp]

NO_ROW = -1


class MemberRows:
    """Rows of members; a row that is free is given to the next one.

    Attributes
    ----------
    keys, groups
        By row: who has it (None where it is free), and the peer group that it has been judged in.
    unsettled
        int32[rows], windows for which another group has claimed the member.
    was_newcomer
        bool[rows], whether the member was compared among newcomers.
    score
        float64[rows], of the latest window over all metrics; NaN where there is none.
    sampled_s
        float64[rows], time of the latest sample.
    far, paired
        intp[rows] and int64[rows]: row of the other end of a port's cable, and from which cell on it has been that.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.keys: list[MemberKey | None] = []
        self.groups: list[str | None] = []
        self.unsettled = np.zeros(0, np.int32)
        self.was_newcomer = np.zeros(0, np.bool_)
        self.score = np.zeros(0)
        self.sampled_s = np.zeros(0)
        self.far = np.zeros(0, np.intp)
        self.paired = np.zeros(0, np.int64)
        self._rows: dict[MemberKey, int] = {}
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def capacity(self) -> int:
        """The length of the arrays."""
        return len(self.score)

    @property
    def bytes_per_row(self) -> int:
        """Memory that a row takes, objects left out."""
        return 4 + 1 + 4 * 8

    def row(self, key: MemberKey) -> int:
        """Return the row of a member, `NO_ROW` where it has none."""
        return self._rows.get(key, NO_ROW)

    def rows(self, keys: Iterable[MemberKey]) -> Rows:
        """Return the rows of those members that have one."""
        known = self._rows
        return np.array([known[key] for key in keys if key in known], np.intp)

    def add(self, key: MemberKey) -> int:
        """Return the row of a member, a new one where it has none; `NO_ROW` where all are taken."""
        row = self._rows.get(key)
        if row is not None:
            return row
        if self._free:
            row = self._free.pop()
        elif len(self.keys) < self.most:
            row = len(self.keys)
            self.keys.append(None)
            self.groups.append(None)
            if row >= self.capacity:
                self._grow(min(self.most, row + row // 2 + 64))
        else:
            return NO_ROW
        self.keys[row], self.groups[row] = key, None
        self.unsettled[row], self.was_newcomer[row] = 0, False
        self.score[row], self.sampled_s[row] = np.nan, np.nan
        self.far[row] = NO_ROW
        self._rows[key] = row
        return row

    def remove(self, row: int) -> None:
        """Free a row."""
        key = self.keys[row]
        assert key is not None
        del self._rows[key]
        self.keys[row], self.groups[row] = None, None
        self.score[row] = self.sampled_s[row] = np.nan
        self.far[self.far == row] = NO_ROW
        self._free.append(row)

    def _grow(self, capacity: int) -> None:
        former = self.capacity
        for name in ("unsettled", "was_newcomer", "score", "sampled_s", "far", "paired"):
            setattr(self, name, longer(getattr(self, name), capacity))
        self.score[former:] = self.sampled_s[former:] = np.nan


def member_name(key: MemberKey) -> str:
    """Return what a member is called: ``dpid:port_no``, or ``switch dpid``."""
    return f"switch {key[0]}" if key[1] == WHOLE_SWITCH else f"{key[0]}:{key[1]}"


def titled(member: str) -> str:
    """Return a member's name as the begin of a sentence: ``Port 3:1``, ``Switch 3``."""
    return member.capitalize() if member.startswith("switch") else f"Port {member}"
