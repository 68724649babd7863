"""Times of samples as arrays write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

_CIM = re.compile(r"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)\.(\d{6})([+-])(\d{3})\Z", re.ASCII)
_VPLEX = re.compile(r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)\Z", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def parse_sample_time(text: str) -> int:
    """Return the time of a sample written as ``yyyyMMddHHmmss.SSSSSSsutc``.

    Parameters
    ----------
    text
        A date and time with microseconds, then a sign and three digits: the offset from UTC in minutes.

    Returns
    -------
    int
        Milliseconds since 1970-01-01 UTC; what is below a millisecond is cut off.

    Raises
    ------
    ValueError
        The text is of another form, no such time exists, or it is before 1970.

    Notes
    -----
    Metrics based port selection, "VMAX Performance Metrics"; the form is the datetime of CIM (DSP0004, 5.2.4).
    """
    match = _CIM.match(text)
    if match is None:
        raise ValueError(f"expected yyyyMMddHHmmss.SSSSSSsutc, found {text[:64]!r}")
    *numbers, sign, offset = match.groups()
    year, month, day, hour, minute, second, microsecond = map(int, numbers)
    zone = timezone(timedelta(minutes=int(sign + offset)))
    return _milliseconds(year, month, day, hour, minute, second, microsecond, zone, text)


def parse_utc_time(text: str) -> int:
    """Return the milliseconds since 1970 of ``yyyy-mm-dd hh:mm:ss`` in UTC (VPLEX); ValueError for another form."""
    match = _VPLEX.match(text)
    if match is None:
        raise ValueError(f"expected yyyy-mm-dd hh:mm:ss, found {text[:64]!r}")
    year, month, day, hour, minute, second = map(int, match.groups())
    return _milliseconds(year, month, day, hour, minute, second, 0, UTC, text)


def _milliseconds(
    year: int, month: int, day: int, hour: int, minute: int, second: int, microsecond: int, zone: timezone, text: str
) -> int:
    try:
        found = (datetime(year, month, day, hour, minute, second, microsecond, zone) - _EPOCH) // _MILLISECOND
    except (ValueError, OverflowError):
        raise ValueError(f"no such time: {text[:64]!r}") from None
    if found < 0:
        raise ValueError(f"a time before 1970: {text[:64]!r}")
    return found
