"""Changes of a live fabric, as discovery reports them: frozen and past tense."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, TypeAlias


class PortRole(StrEnum):
    """What is behind a port: hosts, another switch of the fabric, nothing (down), or not yet known."""

    EDGE = "edge"
    TRUNK = "trunk"
    DOWN = "down"
    UNKNOWN = "unknown"


class SwitchUp(NamedTuple):
    """A datapath connected; `ofp_version` is 1 (OpenFlow 1.0) or 4 (OpenFlow 1.3)."""

    dpid: int
    ofp_version: int


class SwitchDown(NamedTuple):
    """A datapath is gone. Its links went down before this event."""

    dpid: int


class LinkUp(NamedTuple):
    """A cable works in both directions, or its capacity changed; two switches may be joined by several."""

    dpid_a: int
    port_a: int
    dpid_b: int
    port_b: int
    capacity_bps: float


class LinkDown(NamedTuple):
    """A cable works no more."""

    dpid_a: int
    port_a: int
    dpid_b: int
    port_b: int


class PortRoleChanged(NamedTuple):
    """A port was found to lead to hosts or to a switch, or went down."""

    dpid: int
    port_no: int
    role: PortRole


class HostLearnt(NamedTuple):
    """A host (one MAC address) is at this port with these IP addresses; replaces what was known of it."""

    mac: bytes
    dpid: int
    port_no: int
    addresses: tuple[bytes, ...]


class HostGone(NamedTuple):
    """A host aged out, or its port or switch went down, or it moved (a HostLearnt follows then)."""

    mac: bytes
    dpid: int
    port_no: int


TOPOLOGY_EVENTS = (SwitchUp, SwitchDown, LinkUp, LinkDown, PortRoleChanged, HostLearnt, HostGone)
TopologyEvent: TypeAlias = SwitchUp | SwitchDown | LinkUp | LinkDown | PortRoleChanged | HostLearnt | HostGone
