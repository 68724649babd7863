"""How the versions in force at a switch, and what it says of itself, become a row."""

from __future__ import annotations

from collections.abc import Iterator

from apps.cli.called import SnapshotNames
from apps.cli.show_cells import Fields, Row, place, text
from apps.cli.show_fabric import OPENFLOW

DESCRIBED = ("manufacturer", "hardware", "software", "serial", "datapath")
VERSION_TITLES = ("SWITCH", "OPENFLOW", "IGMP", "MLD", *map(str.upper, DESCRIBED))


def version_rows(fields: Fields, called: SnapshotNames) -> Iterator[Row]:
    """Yield the row of a switch."""
    openflow = text(OPENFLOW.get(fields.get("ofp_version") or 0))
    membership = (_membership(fields, family) for family in (4, 6))
    yield place(fields, called), openflow, *membership, *(text(fields.get(name)) for name in DESCRIBED)


def _membership(fields: Fields, family: int) -> str:
    """Return in which version who asks, and where it is an older one for the hosts."""
    told = [_asked(querier) for querier in fields.get("queriers") or () if querier["family"] == family]
    for hosts in fields.get("older_hosts") or ():
        if hosts["family"] == family:
            told.append(f"hosts of v{hosts['version']} at port {hosts['port_no']}{_in_vlan(hosts)}")
    return "; ".join(told) or "-"


def _asked(querier: Fields) -> str:
    version = f"v{querier['version']}" if querier.get("version") else "unknown version"
    if querier.get("ours"):
        return f"{version}{_in_vlan(querier)}"
    if querier.get("address") is None:
        return f"nobody asks{_in_vlan(querier)}"
    return f"{version} of {querier['address']}{_in_vlan(querier)}"


def _in_vlan(fields: Fields) -> str:
    return f" in VLAN {fields['vlan']}" if fields.get("vlan") else ""
