"""What is counted of the multicast core: nothing that grows with groups or members, and a line for each switch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from controller.admission.admission import Admission
from controller.histogram import HistogramReading
from controller.kernel.vlan_ports import VlanPorts
from controller.multicast.alias_control import AliasControl
from controller.multicast.fabric import FabricFollower
from controller.multicast.groups import GroupPlane
from controller.multicast.memberships import Memberships
from controller.multicast.router_view import RouterView
from controller.multicast.settings import LoadedPolicy
from controller.multicast.swapping import Swapping
from controller.multicast.switches import Switches
from controller.overcommit.slots import SlotView
from controller.rules.installer import Installer
from controller.snapshot.names import Names
from topology.live import LiveFabric

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

    `alias_moves` are by algorithm, `swaps` by direction, `faults` by what became of the packet. `slots` are those of
    the store that tenants have, and that are kept for them.
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
    groups_covered: int
    swaps: Mapping[str, int]
    faults: Mapping[str, int]
    slots: Sequence[SlotView]


class SwitchFigures(NamedTuple):
    """A switch that is connected, or was and is not forgotten; `name` and `fabric` are empty where there is none."""

    dpid: int
    name: str
    fabric: str
    ofp_version: int | None
    is_connected: bool
    in_sync: bool


class FiguresView:
    """Counts what it is given."""

    def __init__(
        self,
        in_force: LoadedPolicy,
        installer: Installer,
        fabric: LiveFabric,
        vlan_ports: VlanPorts,
        switches: Switches,
        names: Names,
        plane: GroupPlane,
        admission: Admission,
        aliases: AliasControl,
        swapping: Swapping,
        memberships: Memberships,
        router_view: RouterView,
        topology: FabricFollower,
    ) -> None:
        self._in_force = in_force
        self._installer = installer
        self._fabric = fabric
        self._vlan_ports = vlan_ports
        self._switches = switches
        self._names = names
        self._plane = plane
        self._admission = admission
        self._aliases = aliases
        self._swapping = swapping
        self._memberships = memberships
        self._router_view = router_view
        self._topology = topology

    def all(self) -> MulticastFigures:
        """Return what is counted now."""
        clock, swapped = self._installer.clock, self._swapping.counters
        dropped = swapped["faults-over-limit"] + swapped["carried-over-limit"]
        return MulticastFigures(
            len(self._plane.groups),
            self._memberships.admitted_count(),
            self._plane.sender_count,
            self._admission.counters(),
            self._plane.tree_change_count,
            self._topology.repaired_count,
            clock.latency.reading(),
            clock.untimed_count,
            self._plane.aliases.bound_count,
            self._in_force.policy.aliases.pool,
            self._aliases.decisions,
            self._swapping.out_count(),
            self._swapping.covering.covered_count(),
            {"in": swapped["swaps-in"], "out": swapped["swaps-out"]},
            {"carried": swapped["faults"] - dropped, "dropped": dropped},
            self._swapping.slots.views(),
        )

    def by_vlan(self) -> dict[int, VlanFigures]:
        """Return what is counted in each domain of the policy, 0 being the fabric's own; nothing without VLANs."""
        if not self._vlan_ports.is_used:
            return {}
        plane, members = self._plane, self._memberships.admitted_by_vlan()
        vlans = self._vlan_ports.all_vlans()
        groups, senders = plane.vlan_groups, plane.vlan_senders
        untagged_groups, untagged_senders = len(plane.groups) - groups.total(), plane.sender_count - senders.total()
        found = {0: VlanFigures(untagged_groups, members.get(0, 0), untagged_senders)}
        for vlan_id in vlans[:VLANS_BOUND]:
            found[vlan_id] = VlanFigures(groups[vlan_id], members.get(vlan_id, 0), senders[vlan_id])
        if len(vlans) > VLANS_BOUND:
            others = [vlan_id for vlan_id in vlans[VLANS_BOUND:] if vlan_id in groups or vlan_id in members]
            found[OTHER_VLANS] = VlanFigures(
                *(sum(counts.get(vlan_id, 0) for vlan_id in others) for counts in (groups, members, senders))
            )
        return found

    def by_switch(self) -> Iterator[SwitchFigures]:
        """Yield every switch that is part of the fabric, connected, or gone and not forgotten."""
        names, switches = self._names, self._switches
        connected = switches.connected
        for dpid in sorted(self._fabric.ofp_versions().keys() | connected | switches.gone.keys()):
            name = names.switch(dpid) or ""
            version = switches.ofp_version(dpid)
            fabric = self._router_view.fabric_of(dpid) or ""
            yield SwitchFigures(dpid, name, fabric, version, dpid in connected, self._installer.in_sync(dpid))
