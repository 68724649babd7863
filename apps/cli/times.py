"""Times as users and files write them."""

from __future__ import annotations

from datetime import UTC, datetime


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
