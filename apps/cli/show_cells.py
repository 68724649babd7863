"""What cells of shown tables say: places, labels, VLANs and values, as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.cli.called import SnapshotNames

Fields = Mapping[str, Any]
Row = tuple[object, ...]


def text(value: object) -> object:
    """Return a value as a cell shows it."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(str(each) for each in value) or "-"
    return value


def labels(fields: Fields) -> str:
    """Return the labels of a switch or port."""
    return ",".join(f"{key}={value}" for key, value in sorted((fields.get("labels") or {}).items())) or "-"


def vlans(port: Fields) -> str:
    """Return the VLANs of a port to hosts: that of frames without a tag by its name, and those with one."""
    found = port.get("vlans")
    if not found:
        return "-"
    untagged, names = found.get("untagged"), found.get("names") or {}
    parts = [] if untagged is None else [names.get(str(untagged)) or str(untagged or "untagged")]
    parts += [f"{found['tagged']} tagged"] if found.get("tagged") else []
    return " + ".join(parts) or "none"


def role(port: Fields) -> str:
    """Return what is behind a port, and of which link aggregation group it is a leg."""
    found, group = text(port.get("role")), port.get("link_aggregation")
    return f"{found}, leg of {group['name']}" if group else str(found)


def place(fields: Fields, called: SnapshotNames) -> str:
    """Return the port, or the switch, that a document is at."""
    return called.label(fields.get("dpid"), fields.get("port_no"))
