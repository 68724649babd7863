"""A campaign of rolling maintenance on the page, as it runs: how far it is, where switches are, and orders to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("playwright")

from maintained_fabrics import MaintainedFabric, Odds, switches_of
from playwright.sync_api import Locator, Page, expect

from controller.config.maintenance_settings import Maintenance
from controller.maintenance.campaign import Campaign, Moment
from controller.maintenance.documents import campaign_document, work_document
from controller.maintenance.model import MaintenanceOrder, Step
from page_fabric import SCREENSHOTS, TOKEN, DrainedController
from topology.generators import make

OpenPage = Callable[..., Page]
ME = "me"


class Told:
    """What a controller tells of a campaign over a fat tree, as it does itself."""

    def __init__(self, fabric: DrainedController) -> None:
        self.controller = fabric
        self.settings = Maintenance(quiet_s=1, soak_s=1)
        self.fabric = MaintainedFabric(switches_of(make("fattree", {"k": 4})), self.settings, Odds(), 1)
        order = MaintenanceOrder(tuple(sorted(self.fabric.groups)), disruptive=True)
        self.campaign = Campaign.begun(order, ME, self.fabric.groups, self.fabric, self.settings)
        self.tell()

    def tell(self) -> None:
        self.controller.put("maintenance", "campaign", campaign_document(self.campaign, label))
        for dpid, work in self.campaign.record.works.items():
            self.controller.put("maintenance", str(dpid), work_document(work, label))

    def look(self) -> None:
        self.fabric.pass_time()
        for output in self.campaign.look(self.fabric, self.settings, Moment(self.fabric.now, 0)):
            if hasattr(output, "drained"):
                self.fabric.turn(output.dpid, output.drained)

    def until(self, step: Step) -> int:
        for _ in range(100):
            if found := self.campaign.at(step):
                self.tell()
                return found[0].dpid
            self.look()
        raise AssertionError(step)

    def upgrade(self, fault: str = "") -> int:
        dpid = self.until(Step.HOOK)
        self.campaign.hook_begins(dpid, ME)
        self.campaign.hook_ended(dpid, ME, fault)
        self.look()
        self.tell()
        return dpid


def label(dpid: int) -> str:
    return f"sw{dpid}"


@pytest.fixture
def told(fabric: DrainedController) -> Iterator[Told]:
    yield Told(fabric)
    for name in [*fabric.documents["maintenance"]]:
        fabric.put("maintenance", name, None)


def row(page: Page, dpid: int) -> Locator:
    header = page.get_by_role("rowheader", name=label(dpid), exact=True)
    return page.get_by_role("row").filter(has=header)


def test_a_campaign_is_followed_as_it_runs(open_page: OpenPage, told: Told) -> None:
    page = open_page()
    page.get_by_role("link", name="Maintenance").click()
    view = page.get_by_role("region", name="Maintenance")
    expect(view).to_contain_text("0 of 20 switches, phase 1 of 4")
    dpid = told.until(Step.DRAINING)
    expect(row(page, dpid)).to_contain_text("is drained")
    told.until(Step.HOOK)
    expect(row(page, dpid)).to_contain_text("is upgraded")
    expect(view).to_contain_text("the switches in work are to be done first")
    told.upgrade()
    expect(row(page, dpid)).to_contain_text("is waited for")
    told.until(Step.DONE)
    expect(row(page, dpid)).to_contain_text("done")
    expect(view).to_contain_text("1 of 20 switches")
    expect(page.get_by_role("progressbar", name="Switches that are done")).to_have_attribute("value", "1")
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / "maintenance.png", full_page=True)


def test_a_failure_is_first_and_says_why(open_page: OpenPage, told: Told) -> None:
    page = open_page("#/maintenance")
    dpid = told.upgrade("exit status 3")
    expect(page.get_by_role("region", name="Maintenance")).to_contain_text("halted")
    first = page.get_by_role("table", name="Switches").get_by_role("row").nth(1)
    expect(first).to_contain_text(label(dpid))
    expect(first).to_contain_text("the upgrade failed: exit status 3")


@pytest.mark.parametrize(
    ("button", "asked"),
    [
        ("Pause", ("maintenance-pause", {})),
        ("Abort", ("maintenance-abort", {})),
    ],
)
def test_orders_are_given(
    open_page: OpenPage, fabric: DrainedController, told: Told, button: str, asked: tuple[str, dict[str, Any]]
) -> None:
    page = open_page("#/maintenance")
    page.get_by_role("button", name=button).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Token").fill(TOKEN)
    dialog.get_by_role("button", name=button).click()
    expect(dialog).to_contain_text("Done.")
    assert fabric.asked[-1] == asked


def test_a_failed_switch_is_left_out_and_the_others_go_on(
    open_page: OpenPage, fabric: DrainedController, told: Told
) -> None:
    dpid = told.upgrade("exit status 3")
    page = open_page("#/maintenance")
    for place, button, asked in (
        (row(page, dpid), "Leave out", ("maintenance-skip", {"dpid": dpid})),
        (page, "Resume", ("maintenance-resume", {"runner": ""})),
    ):
        place.get_by_role("button", name=button).click()
        dialog = page.get_by_role("dialog")
        order = dialog.get_by_role("button", name=button)
        expect(order).to_be_visible()
        if dialog.get_by_label("Token").count():
            dialog.get_by_label("Token").fill(TOKEN)
        order.click()
        expect(dialog).to_contain_text("Done.")
        dialog.get_by_role("button", name="Close").click()
        assert fabric.asked[-1] == asked
