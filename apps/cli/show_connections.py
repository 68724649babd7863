"""How hosts that receive and send groups become rows of a table, by tenant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apps.cli.called import SnapshotNames
from apps.cli.perf_console import scaled
from apps.cli.show_cells import Fields, Row, place, text

CONNECTION_TITLES = ("TENANT", "HOST", "PORT", "VLAN", "RECEIVES", "SENDS", "RATE", "SINCE (UTC)")

SHOWN = 4
"""Groups that a cell names; the others are counted."""


def connection_rows(fields: Fields, called: SnapshotNames) -> Iterator[Row]:
    """Yield the row of a host of a tenant."""
    host = ",".join(fields["ips"]) or fields.get("mac") or "-"
    groups = (_named(fields[what]) for what in ("receives", "sends"))
    where = text(fields.get("tenant")), host, place(fields, called), text(fields.get("vlan"))
    rate = scaled(fields["rate_bps"], "bit/s") if fields["sends"] else "-"
    yield *where, *groups, rate, called.clock(fields.get("since_s"))


def _named(groups: list[dict[str, Any]]) -> str:
    names = [one["group"] for one in groups]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ",".join(names[:SHOWN]) + more or "-"
