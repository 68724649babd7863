"""Times as users and files write them, and as tables show them: in UTC, or in the zone of this machine."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from datetime import UTC, datetime

from apps.cli.common import InputError

ZONES = ("utc", "local")
VARIABLE = "VSRT_TIME"
ZONE_TITLE = "(UTC)"
"""Stands in the titles of columns with times, until it is known in which zone these are."""

EARLIEST_S, LATEST_S = -62_135_596_800.0, 1e11
"""Epoch seconds beyond are refused: no calendar has those before the year 1, later ones are milliseconds or worse."""


def add_zone(parser: argparse.ArgumentParser) -> None:
    """Declare in which zone times are shown."""
    parser.add_argument(
        "--time", choices=ZONES, help=f"zone of times in tables ({VARIABLE}, else utc); JSON has epoch seconds"
    )


class Clock:
    """Shows times in UTC, or in this machine's zone, then with what it differs from UTC."""

    def __init__(self, local: bool = False) -> None:
        self.is_local = local

    def __call__(self, at_s: float | None) -> str:
        """Return a time for a column whose title tells the zone; ``-`` for None."""
        if at_s is None:
            return "-"
        if self.is_local:
            return datetime.fromtimestamp(at_s).astimezone().isoformat(" ", "seconds")
        return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S")

    def told(self, at_s: float | None) -> str:
        """Return a time that tells its zone."""
        return self(at_s) if self.is_local or at_s is None else f"{self(at_s)} UTC"

    def titles(self, titles: Sequence[str]) -> list[str]:
        """Return titles of columns that tell the zone of their times."""
        return [title.replace(ZONE_TITLE, "(local)") if self.is_local else title for title in titles]


def clock_of(args: argparse.Namespace) -> Clock:
    """Return the clock that the arguments, else the environment, ask for; InputError where that is no zone."""
    if args.time is not None:
        return Clock(args.time == "local")
    chosen = os.environ.get(VARIABLE) or "utc"
    if chosen not in ZONES:
        raise InputError(f"{VARIABLE}: {chosen!r} is none of {', '.join(ZONES)}")
    return Clock(chosen == "local")


def parse_time(text: str) -> tuple[float, bool]:
    """Return the epoch seconds of ISO 8601 or of epoch seconds, and whether the zone was told; else ValueError.

    Without a zone it is UTC. `NaN` and infinities pass as what they are.
    """
    try:
        return float(text), True
    except ValueError:
        at = datetime.fromisoformat(text.removesuffix(" UTC"))
    if at.tzinfo is not None:
        return at.timestamp(), True
    return at.replace(tzinfo=UTC).timestamp(), text.endswith(" UTC")


def time_of(text: str, where: str) -> tuple[float, bool]:
    """Return the epoch seconds of a time, and whether its zone was told; InputError begins with `where` it stands."""
    try:
        at_s, zoned = parse_time(text)
    except ValueError:
        raise InputError(f"{where}: expected ISO 8601 or epoch seconds, found {text[:64]!r}") from None
    if not EARLIEST_S <= at_s <= LATEST_S:
        raise InputError(f"{where}: {text[:64]} is out of the range of epoch seconds")
    return at_s, zoned
