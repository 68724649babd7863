"""How what nobody uses becomes rows of a table."""

from __future__ import annotations

from collections.abc import Iterator

from apps.cli.called import SnapshotNames
from apps.cli.show_cells import Fields, Row, text

UNUSED_TITLES = ("WHAT", "NAME", "LINE", "SINCE (UTC)", "WHY")


def unused_rows(fields: Fields, called: SnapshotNames) -> Iterator[Row]:
    """Yield the row of what is not used."""
    named = text(fields.get("kind")), text(fields.get("name")), text(fields.get("line"))
    yield *named, called.clock(fields.get("since_s")), text(fields.get("reason"))
