"""What operators see of a campaign: its plan, how far it is, and where each switch is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from controller.config.maintenance_settings import Maintenance
from controller.maintenance.campaign import Campaign
from controller.maintenance.checks import CampaignRefused, check_order
from controller.maintenance.groups import RedundancyGroup
from controller.maintenance.model import IN_WORK, FabricView, MaintenanceOrder, Step, SwitchWork
from controller.maintenance.schedule import least_waves, waves, widths

CAMPAIGN = "campaign"
"""The id of the document of the campaign itself; those of switches are their datapath ids."""


def campaign_document(campaign: Campaign, label: Callable[[int], str]) -> dict[str, Any]:
    """Return how far a campaign is; `label` says what a switch is called."""
    record = campaign.record
    counts = {step.value: len(campaign.at(step)) for step in Step}
    return {
        "state": record.state.value,
        "runner": record.runner,
        "phase": record.phase + 1,
        "phases": len(campaign.phase_ends),
        "switches": len(record.works),
        "in_work": len(campaign.at(*IN_WORK)),
        **counts,
        "failures": record.failures,
        "disruptive": record.order.disruptive,
        "window": record.order.window,
        "hook_limit_s": record.order.hook_limit_s,
        "expected_s": campaign.expected_s,
        "waits_for": campaign.waits_for,
        "now": [label(work.dpid) for work in campaign.at(*IN_WORK)],
    }


def work_document(work: SwitchWork, label: Callable[[int], str]) -> dict[str, Any]:
    """Return where a switch of a campaign is."""
    return {
        "dpid": work.dpid,
        "name": label(work.dpid),
        "tier": work.group.tier,
        "redundancy_group": work.group.name,
        "step": work.step.value,
        "reason": work.reason,
        "failed_at": None if work.failed_at is None else work.failed_at.value,
        "claimed": work.is_claimed,
        "has_hosts": work.has_hosts,
        "took_s": work.took_s,
    }


def plan_document(
    order: MaintenanceOrder, groups: Mapping[int, RedundancyGroup], view: FabricView, settings: Maintenance
) -> dict[str, Any]:
    """Return the waves of a campaign, what would be disrupted, and why it would not begin.

    Waves are as if all of one ended at once and every link stayed; what links would carry is looked at as it runs.
    """
    try:
        check_order(order, groups, view, settings)
    except CampaignRefused as refusal:
        if refusal.field != "disruptive":
            raise
        refused: str | None = str(refusal)
    else:
        refused = None
    asked = {dpid: groups[dpid] for dpid in order.switches}
    width = widths(Counter(groups.values()), settings.min_ready_pct)
    found = waves(asked, width, settings.max_concurrent)
    return {
        "switches": len(asked),
        "waves": found,
        "least_waves": least_waves(asked, width, settings.max_concurrent),
        "groups": {str(dpid): group.name for dpid, group in sorted(asked.items())},
        "disruptive": sorted(set(view.homes()) & asked.keys()),
        "expected_s": len(found) * (order.expected_s + settings.soak_s),
        "refused": refused,
    }
