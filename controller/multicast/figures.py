"""What is counted of the multicast core: nothing that grows with groups or members, and a line for each switch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from controller.histogram import HistogramReading
from controller.multicast.view import fabric_of

if TYPE_CHECKING:
    from controller.multicast.core import MulticastCore


class MulticastFigures(NamedTuple):
    """Counts at a moment; `decisions` are by rule and verdict, since the start or an operator's reset."""

    group_count: int
    member_count: int
    sender_count: int
    decisions: Mapping[str, Mapping[str, int]]
    tree_change_count: int
    tree_repair_count: int
    join_latency: HistogramReading
    unmeasured_join_count: int


class SwitchFigures(NamedTuple):
    """A switch that is connected, or was and is not forgotten; `name` and `fabric` are empty where there is none."""

    dpid: int
    name: str
    fabric: str
    ofp_version: int | None
    is_connected: bool
    in_sync: bool


def multicast_figures(core: MulticastCore) -> MulticastFigures:
    """Return what is counted now."""
    clock = core.installer.clock
    return MulticastFigures(
        len(core.plane.groups),
        core.memberships.admitted_count(),
        core.plane.sender_count,
        core.admission.counters(),
        core.plane.tree_change_count,
        core.topology.repaired_count,
        clock.latency.reading(),
        clock.untimed_count,
    )


def switch_figures(core: MulticastCore) -> Iterator[SwitchFigures]:
    """Yield every switch that is part of the fabric, connected, or gone and not forgotten."""
    sections, topology = core.sections, core.topology
    connected = topology.connected
    for dpid in sorted(core.fabric.ofp_versions().keys() | connected | sections.gone.keys()):
        name = sections.names.switch(dpid) or ""
        version = topology.ofp_version(dpid)
        fabric = fabric_of(core, dpid) or ""
        yield SwitchFigures(dpid, name, fabric, version, dpid in connected, core.installer.in_sync(dpid))
