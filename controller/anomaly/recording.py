"""When a recorder of metrics starts which file: one a day, whatever the clock does."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

START_OF_DAY_S = 5.0
"""Files start this long after midnight: a clock set back by less does not open another one of the day before."""
SETTLING_S = 60.0
"""A file that ends no earlier than this before its day does is followed when the day has ended."""
FEWEST_RECORDS = 2
"""One record tells no rate."""


class Recording(NamedTuple):
    """A file to record."""

    name: str
    """The start in ISO 8601, UTC, without its extension."""
    start_s: float
    records: int
    """The first at the start, the last no later than the end."""
    end_s: float
    """00:00:05 UTC of the day after the start's."""


def end_of_day_s(now_s: float) -> float:
    """Return 00:00:05 UTC of the day after the one that a time (epoch seconds) is in."""
    midnight = datetime.fromtimestamp(now_s, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return (midnight + timedelta(days=1)).timestamp() + START_OF_DAY_S


def plan(now_s: float, interval_s: float) -> Recording:
    """Return what to record from now on: as many records as fit in until 00:00:05 UTC of the next day.

    Parameters
    ----------
    now_s : float
        The clock, epoch seconds.
    interval_s : float
        Seconds between records, above 0.

    Notes
    -----
    Source: Kasick et al., 4.1.1. The count follows from the time that is left, so corrections of the clock do not add
    up from day to day, and a machine that starts in the middle of the day gets a shorter file.
    """
    end_s = end_of_day_s(now_s)
    name = datetime.fromtimestamp(now_s, UTC).strftime("%Y%m%dT%H%M%SZ")
    return Recording(name, now_s, math.floor((end_s - now_s) / interval_s) + 1, end_s)


def wait_s(now_s: float, interval_s: float, before: Recording | None = None) -> float:
    """Return for how many seconds of the clock no file may be started; ask again after them, or after a part of them.

    Where the file before ended up to a minute too early, as its records were counted before the clock was set back,
    the rest of its day gets no file of its own. A clock that was set back further starts one at once.
    """
    if before is not None and 0 < before.end_s - now_s <= SETTLING_S:
        return before.end_s - now_s
    left_s = end_of_day_s(now_s) - now_s
    return left_s if plan(now_s, interval_s).records < FEWEST_RECORDS else 0.0
