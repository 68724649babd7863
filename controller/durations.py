"""Durations as people say them."""

from __future__ import annotations

import re

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86_400.0

_WRITTEN = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)(ms|[smhd])\Z")
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": MINUTE_S, "h": HOUR_S, "d": DAY_S}


def parse_duration(text: str) -> float | None:
    """Return the seconds of a duration as commands take it, such as ``1.5h`` or ``7d``; None where it is none."""
    written = _WRITTEN.match(text)
    return None if written is None else float(written[1]) * _UNITS_S[written[2]]


def format_duration(duration_s: float) -> str:
    """Return a duration in its two largest units: ``0.4 s``, ``12 s``, ``3 min 20 s``, ``2 h 5 min``, ``4 d 1 h``."""
    if duration_s < 10.0:
        tenths = round(max(0.0, duration_s), 1)
        return f"{tenths:g} s"
    for larger_s, larger, smaller_s, smaller in (
        (DAY_S, "d", HOUR_S, "h"),
        (HOUR_S, "h", MINUTE_S, "min"),
        (MINUTE_S, "min", 1.0, "s"),
    ):
        count = round(duration_s / smaller_s)
        many, few = divmod(count, round(larger_s / smaller_s))
        if many:
            return f"{many} {larger} {few} {smaller}" if few else f"{many} {larger}"
    return f"{round(duration_s)} s"
