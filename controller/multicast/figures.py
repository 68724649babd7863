"""What is counted of the multicast core: nothing that grows with groups or members, and a line for each switch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from controller.histogram import HistogramReading

if TYPE_CHECKING:
    from controller.multicast.core import MulticastCore


VLANS_BOUND = 64
"""VLANs, those with the lowest ids, that are counted by themselves; what is in others is counted together."""

OTHER_VLANS = -1
"""Stands for these others."""


class VlanFigures(NamedTuple):
    """Counts of one domain at a moment."""

    group_count: int
    member_count: int
    sender_count: int


class MulticastFigures(NamedTuple):
    """Counts at a moment; `decisions` are by rule and verdict, since the start or an operator's reset.

    `alias_moves` are by algorithm, `swaps` by direction, `faults` by what became of the packet.
    """

    group_count: int
    member_count: int
    sender_count: int
    decisions: Mapping[str, Mapping[str, int]]
    tree_change_count: int
    tree_repair_count: int
    join_latency: HistogramReading
    unmeasured_join_count: int
    alias_count: int
    alias_pool: int
    alias_moves: Mapping[str, int]
    groups_out: int
    swaps: Mapping[str, int]
    faults: Mapping[str, int]


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
    clock, swapped = core.installer.clock, core.swapping.counters
    dropped = swapped["faults-over-limit"] + swapped["carried-over-limit"]
    return MulticastFigures(
        len(core.plane.groups),
        core.memberships.admitted_count(),
        core.plane.sender_count,
        core.admission.counters(),
        core.plane.tree_change_count,
        core.topology.repaired_count,
        clock.latency.reading(),
        clock.untimed_count,
        core.plane.aliases.bound_count,
        core.policy.aliases.pool,
        core.aliases.decisions,
        core.swapping.out_count(),
        {"in": swapped["swaps-in"], "out": swapped["swaps-out"]},
        {"carried": swapped["faults"] - dropped, "dropped": dropped},
    )


def vlan_figures(core: MulticastCore) -> dict[int, VlanFigures]:
    """Return what is counted in each domain of the policy, 0 being the fabric's own; nothing without VLANs."""
    if not core.vlan_ports.is_used:
        return {}
    plane, members = core.plane, core.memberships.admitted_by_vlan()
    vlans = core.vlan_ports.all_vlans()
    groups, senders = plane.vlan_groups, plane.vlan_senders
    found = {
        0: VlanFigures(len(plane.groups) - groups.total(), members.get(0, 0), plane.sender_count - senders.total())
    }
    for vlan_id in vlans[:VLANS_BOUND]:
        found[vlan_id] = VlanFigures(groups[vlan_id], members.get(vlan_id, 0), senders[vlan_id])
    if len(vlans) > VLANS_BOUND:
        others = [vlan_id for vlan_id in vlans[VLANS_BOUND:] if vlan_id in groups or vlan_id in members]
        found[OTHER_VLANS] = VlanFigures(
            *(sum(counts.get(vlan_id, 0) for vlan_id in others) for counts in (groups, members, senders))
        )
    return found


def switch_figures(core: MulticastCore) -> Iterator[SwitchFigures]:
    """Yield every switch that is part of the fabric, connected, or gone and not forgotten."""
    names, switches = core.feed.names, core.switches
    connected = switches.connected
    for dpid in sorted(core.fabric.ofp_versions().keys() | connected | switches.gone.keys()):
        name = names.switch(dpid) or ""
        version = switches.ofp_version(dpid)
        fabric = core.router_view.fabric_of(dpid) or ""
        yield SwitchFigures(dpid, name, fabric, version, dpid in connected, core.installer.in_sync(dpid))
