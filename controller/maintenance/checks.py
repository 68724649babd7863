"""What is looked at before a campaign begins, and before each of its switches is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from controller.config.maintenance_settings import Maintenance
from controller.maintenance.groups import FabricReach, RedundancyGroup
from controller.maintenance.model import FabricView, MaintenanceOrder
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
