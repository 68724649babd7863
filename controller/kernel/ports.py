"""How ports of switches and the cables between them are named."""

from __future__ import annotations

from typing import TypeAlias

from topology.events import LinkDown, LinkUp

End: TypeAlias = tuple[int, int]
"""A port of a switch, as one end of a cable: datapath id and port number."""

Cable: TypeAlias = tuple[int, int, int, int]
"""Both ends of a link: (dpid, port_no, dpid, port_no), the lower one first."""


def cable_of(event: LinkUp | LinkDown) -> Cable:
    """Return the cable that an event is about."""
    one, other = (event.dpid_a, event.port_a), (event.dpid_b, event.port_b)
    return (*one, *other) if one < other else (*other, *one)
