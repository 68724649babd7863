"""What is looked at before a campaign begins, and before each of its switches is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from controller.config.maintenance_settings import Maintenance
from controller.maintenance.errors import Place, risen
from controller.maintenance.groups import FabricReach, RedundancyGroup
from controller.maintenance.model import FabricView, MaintenanceOrder, SwitchWork
from controller.maintenance.schedule import least_ready

LISTED = 20
"""Switches that a refusal names."""


class CampaignRefused(Exception):  # noqa: N818
    """Something that an operator asked of a campaign is not done; `field` is at fault."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


def check_order(
    order: MaintenanceOrder, groups: Mapping[int, RedundancyGroup], view: FabricView, settings: Maintenance
) -> None:
    """Raise CampaignRefused where a campaign could never come to its end; `groups` are those of all switches."""
    if not order.switches:
        raise CampaignRefused("switches", "no switch is meant")
    for dpid in order.switches:
        if dpid not in groups:
            raise CampaignRefused("switches", f"there is no switch {dpid} in the fabric")
    alone = sorted(set(view.homes()).intersection(order.switches))
    if alone and not order.disruptive:
        listed = ", ".join(map(str, alone[:LISTED])) + ", ..." * (len(alone) > LISTED)
        text = f"the hosts of {len(alone)} switches have no other, and would lose packets: {listed}"
        raise CampaignRefused("disruptive", f"{text}; leave these out, or say that they may")
    sizes = Counter(groups.values())
    for group in sorted({groups[dpid] for dpid in order.switches}):
        least = least_ready(sizes[group], settings.min_ready_pct)
        if least >= sizes[group]:
            text = f"{least} of the {sizes[group]} switches of group {group.name} are to stay in use"
            raise CampaignRefused("min_ready_pct", f"{text}, so that none can ever be spared")


class Preflight:
    """What speaks against beginning switches, each as if those before it that could be had begun.

    `out` are those that the campaign has taken out already.
    """

    def __init__(self, view: FabricView, settings: Maintenance, order: MaintenanceOrder, out: set[int]) -> None:
        self._view = view
        self._settings = settings
        self._order = order
        self._homes = set(view.homes())
        self._drained = set(view.drained())
        self._out = out | self._drained
        self._reach: FabricReach | None = None

    def why_not(self, dpid: int) -> str:
        """Say why a switch cannot be begun; empty where it can, and is from here on."""
        view, most_pct = self._view, self._settings.max_utilisation_pct
        if dpid in self._drained:
            return "is drained by an operator"
        if trouble := view.trouble(dpid):
            return trouble
        if dpid in self._homes and not self._order.disruptive:
            return "has hosts with no other switch now"
        if self._reach is None:
            self._reach = FabricReach(view.graph, self._homes)
        if (cut := self._reach.cut_without({*self._out, dpid})) is not None:
            return f"cannot be done without now: nothing else would join switch {cut} to the others"
        busy_pct = view.utilisation_pct(frozenset({*self._out, dpid}))
        if busy_pct is None:
            return "waits until it is known what links would carry without it"
        if busy_pct > most_pct:
            return f"would leave a link {busy_pct:.0f} % busy, and {most_pct:g} % is allowed"
        self._out.add(dpid)
        return ""


def why_not_quiet(work: SwitchWork, view: FabricView, settings: Maintenance) -> str:
    """Say what still goes through a switch that is drained; empty where nothing does."""
    if work.dpid not in view.drained():
        return "it is about to be drained"
    if transit := view.transit(work.dpid):
        return f"{transit} trees still lead through it"
    for dpid in (work.dpid, *(link[2] for link in work.links)):
        is_concerned = dpid == work.dpid or view.graph.has_link(work.dpid, dpid)
        if is_concerned and (trouble := view.trouble(dpid)):
            return f"switch {dpid} {trouble}"
    port_no, bps = view.busiest_port(work.dpid)
    if bps > settings.quiet_bps and not work.has_hosts:
        return f"its port {port_no} still carries {bps:,.0f} bit/s"
    return ""


def far_ends(work: SwitchWork) -> list[Place]:
    """Return the other ends of the cables that a switch had before it was drained."""
    return [(far, port_no) for _, _, far, port_no in work.links]


def errors_of(work: SwitchWork, view: FabricView) -> dict[Place, float] | None:
    """Return the errors in a second at a switch since it is watched; None as long as they are not known.

    There are none where they were not measured before it was drained.
    """
    if work.errors is None or work.since_s is None:
        return {}
    return view.errors_since(work.dpid, far_ends(work), work.since_s)


def why_errors_rose(work: SwitchWork, view: FabricView, tolerated_per_s: float) -> str:
    """Say at which end of its cables a switch has more errors than before it was drained; empty where at none."""
    found = risen(work.errors or {}, errors_of(work, view) or {}, tolerated_per_s)
    if found is None:
        return ""
    (dpid, port_no), now_per_s, before_per_s = found
    where = f"its port {port_no}" if dpid == work.dpid else f"port {port_no} of switch {dpid}, at its other end,"
    return f"{where} has {now_per_s:.3g} errors in a second, and had {before_per_s:.3g} at most before"
