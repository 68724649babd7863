"""How switches, their links and their ports become rows of tables."""

from __future__ import annotations

from collections.abc import Iterator

from apps.cli.called import SnapshotNames
from apps.cli.perf_console import percent, scaled
from apps.cli.show_cells import Fields, Row, labels, place, role, text, vlans

PORT_TITLES = (
    "PORT",
    "NAME",
    "ROLE",
    "VLANS",
    "RX BIT/S",
    "TX BIT/S",
    "RX %",
    "TX %",
    "ERRORS/S",
    "DROPPED/S",
    "METRIC",
    "SCORE",
    "LABELS",
)

OPENFLOW = {1: "1.0", 2: "1.1", 3: "1.2", 4: "1.3", 5: "1.4", 6: "1.5"}
"""Versions of OpenFlow by the number that stands for them on the wire."""


def switch_rows(switch: Fields, called: SnapshotNames) -> Iterator[Row]:
    """Yield the row of a switch."""
    away = switch.get("connected") is False
    state = [
        f"not connected since {called.clock(switch['disconnected_s'])}"
        if switch.get("disconnected_s")
        else "not connected"
    ]
    state = state if away else []
    state += ["drained"] if switch.get("drained") else []
    state += ["not in sync"] if switch.get("in_sync") is False and not away else []
    state += ["counters unanswered"] if switch.get("up") is False and not away else []
    version = text(OPENFLOW.get(switch.get("ofp_version") or 0, switch.get("ofp_version")))
    cpu, memory = percent(switch.get("cpu_pct")), percent(switch.get("memory_pct"))
    yield (
        place(switch, called),
        text(switch.get("tier")),
        text(switch.get("fabric")),
        f"{version} by TLS" if switch.get("encrypted") else version,
        cpu,
        memory,
        ", ".join(state) or "up",
        labels(switch),
    )


def link_rows(link: Fields, called: SnapshotNames) -> Iterator[Row]:
    """Yield the row of a link."""
    ends = (called.label(link.get(f"dpid_{end}"), link.get(f"port_{end}")) for end in "ab")
    yield *ends, scaled(link.get("capacity_bps"), "bit/s"), text(link.get("state")), called.clock(link.get("since_s"))


def port_rows(port: Fields, called: SnapshotNames) -> Iterator[Row]:
    """Yield the row of a port."""
    rates = (scaled(port.get(f"{way}_bps")) for way in ("rx", "tx"))
    busy = (percent(port.get(f"{way}_utilisation_pct")) for way in ("rx", "tx"))
    bad = (scaled(_total(port, f"rx_{what}_pps", f"tx_{what}_pps")) for what in ("errors", "dropped"))
    metric, score = port.get("port_metric"), port.get("score")
    yield (
        place(port, called),
        text(port.get("name")),
        role(port),
        vlans(port),
        *rates,
        *busy,
        *bad,
        "disqualified" if port.get("disqualified") else text(metric),
        "-" if score is None else f"{score:.2f}",
        labels(port),
    )


def _total(fields: Fields, *names: str) -> float | None:
    known = [fields[name] for name in names if fields.get(name) is not None]
    return sum(known) if known else None
