"""A campaign of maintenance over a fabric that does what it is asked."""

from __future__ import annotations

import json
from collections.abc import Callable

from maintained_fabrics import MaintainedFabric, Odds, switches_of

from controller.config.maintenance_settings import Maintenance
from controller.maintenance.campaign import Campaign, Moment
from controller.maintenance.model import (
    CampaignTold,
    DrainWanted,
    MaintenanceOrder,
    Step,
    campaign_value,
    read_campaign,
    read_work,
    work_value,
)
from topology.generators import make

SETTINGS = Maintenance(soak_s=10, quiet_s=2)
NOON_S = 12 * 3600
ME = "me"


class Bench:
    """A campaign over a fat tree whose switches are quiet and back as soon as that is asked for."""

    def __init__(self, settings: Maintenance = SETTINGS, **order: object) -> None:
        self.fabric = MaintainedFabric(switches_of(make("fattree", {"k": 4})), settings, Odds(), 1)
        self.settings = settings
        switches = tuple(sorted(self.fabric.groups))
        self.order = MaintenanceOrder(**{"switches": switches, "disruptive": True, **order})  # type: ignore[arg-type]
        self.campaign = Campaign.begun(self.order, ME, self.fabric.groups, self.fabric, settings)
        self.told: list[CampaignTold] = []
        self.second_of_day = NOON_S

    def look(self, for_s: float = 1.0) -> None:
        """Look once a second, for a while."""
        for _ in range(round(for_s)):
            for dpid in self.fabric.pass_time():
                self.campaign.disconnected(dpid)
            self.do(self.campaign.look(self.fabric, self.settings, Moment(self.fabric.now, self.second_of_day)))

    def do(self, outputs: object) -> None:
        """Do what the campaign wants."""
        for output in outputs:  # type: ignore[attr-defined]
            if isinstance(output, DrainWanted):
                self.fabric.turn(output.dpid, output.drained)
            else:
                self.told.append(output)

    def until(self, reached: Callable[[], bool], for_s: int = 3600) -> None:
        """Look until something is so."""
        for _ in range(for_s):
            if reached():
                return
            self.look()
        raise AssertionError(f"it waits for {self.campaign.waits_for!r}, {self.steps()}")

    def steps(self) -> dict[int, str]:
        """Return where switches are that are somewhere."""
        works = self.campaign.record.works
        return {dpid: f"{work.step} {work.reason}" for dpid, work in works.items() if work.step is not Step.WAITING}

    def first_at(self, step: Step) -> int:
        """Have some switch be at a step, and return it."""
        self.until(lambda: bool(self.campaign.at(step)))
        return self.campaign.at(step)[0].dpid

    def upgraded(self, fault: str = "") -> int:
        """Have the first switch that is to be upgraded so, and return it."""
        dpid = self.first_at(Step.HOOK)
        self.campaign.hook_begins(dpid, ME)
        self.do(self.campaign.hook_ended(dpid, ME, fault))
        return dpid

    def restart(self) -> None:
        """Have another controller go on from what the log has."""
        record = read_campaign(json.loads(json.dumps(campaign_value(self.campaign.record))))
        for dpid, work in self.campaign.record.works.items():
            record.works[dpid] = read_work(json.loads(json.dumps(work_value(work))))
        self.campaign = Campaign.resumed(record)

    def kinds(self) -> list[str]:
        """Return what operators were told."""
        return [told.kind for told in self.told]
