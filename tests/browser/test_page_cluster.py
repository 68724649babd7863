"""Controllers and monitors that share a fabric on the page: who leads, who polls what, and what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Locator, Page, expect

from apps.cluster.messages import Seen
from apps.cluster.monitors_shown import MonitorsSection
from apps.cluster.shown import ClusterSection
from controller.cluster.effects import Leading
from controller.cluster.engine import KeyCondition
from controller.cluster.keys import Leader
from controller.cluster.monitor_states import MonitorsSeen, MonitorState
from controller.cluster.place import PlaceCore, TakenOver
from controller.events import SwitchConnected
from controller.rules.pipeline import OPENFLOW_1_3
from controller.scaling.advised import Advised, advised_document
from page_fabric import SCREENSHOTS, TOKEN, DrainedController

OpenPage = Callable[..., Page]
LED_S, GONE_S, SILENT_S = 1767225600.0, 1767229200.0, 1767232800.0
PEERS = {name: f"10.0.0.{number}:6700" for number, name in enumerate(("c1", "c2", "c3"), 1)}
SWITCHES = dict.fromkeys(PEERS, 20)
SEEN = Seen(Leader("c1", "run", 4711, PEERS["c1"]), 4711, tuple(PEERS), False, 1, PEERS, SWITCHES)
POLLING = MonitorState(False, False, "10.0.1.1:9471", 20, 10, 480, 0, 50.0)
MONITORS = MonitorsSeen({"m1": POLLING._replace(divides=True), "m2": POLLING._replace(metrics="10.0.1.2:9471")}, 0)


class Told:
    """What the controller `member` tells of the cluster, as it does itself."""

    def __init__(self, fabric: DrainedController, member: str) -> None:
        self.fabric = fabric
        self.core = PlaceCore(3.0)
        if member == "c1":
            self.core.handle(Leading(4711, KeyCondition("epoch", 1), True, 0.0), 1.0)
            self.core.handle(TakenOver(4711), 1.0)
        else:
            for dpid in range(1, 21):
                self.core.handle(SwitchConnected(dpid, OPENFLOW_1_3, ()), 1.0)
        self.cluster, self.monitors = ClusterSection(member), MonitorsSection()
        self.cluster.saw(Seen(None, 0, tuple(PEERS)), LED_S)

    def tell(
        self, seen: Seen = SEEN, now_s: float = LED_S, lag_s: float = 0.0, monitors: MonitorsSeen = MONITORS
    ) -> None:
        self.cluster.saw(seen, now_s)
        self.cluster.refresh(self.core, seen, lag_s, monitors)
        self.monitors.see(monitors.states, monitors.unowned, now_s)
        for section, documents in (("cluster", self.cluster.documents), ("monitors", self.monitors.documents)):
            for name in {*self.fabric.documents[section], *documents}:
                self.fabric.put(section, name, documents.get(name))


@pytest.fixture
def told(fabric: DrainedController) -> Iterator[Callable[[str], Told]]:
    yield lambda member: Told(fabric, member)
    for section in ("cluster", "monitors", "scaling"):
        for name in [*fabric.documents[section]]:
            fabric.put(section, name, None)


def row(page: Page, text: str) -> Locator:
    return page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=text))


def shot(page: Page, name: str) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


def test_who_leads_since_when_and_who_polls_what(open_page: OpenPage, told: Callable[[str], Told]) -> None:
    told("c2").tell()
    page = open_page()
    page.get_by_role("link", name="Cluster").click()
    view = page.get_by_role("region", name="Cluster")
    expect(view).to_contain_text("as c2 knows it, which follows")
    expect(view).to_contain_text("Nothing is wrong.")
    expect(view).to_contain_text("c1, in epoch 4711")
    when = page.evaluate("async (at_s) => (await import('/static/js/format.js')).time(at_s)", LED_S)
    expect(row(page, "c1")).to_contain_text(f"leads since {when}")
    expect(row(page, "c3")).to_contain_text("follows")
    expect(row(page, "m1")).to_contain_text("divides, polls")
    expect(row(page, "m2")).to_contain_text("10 of 20 switches")
    expect(row(page, "m2")).to_contain_text("50.0 %")
    assert page.get_by_role("button", name="Hand over").count() == 0, "only who leads hands over"
    shot(page, "cluster")


def test_what_is_wrong_is_said_first_and_since_when(open_page: OpenPage, told: Callable[[str], Told]) -> None:
    controller = told("c2")
    controller.tell()
    page = open_page("#/cluster")
    without = SEEN._replace(members=("c1", "c2"), is_store_silent=False)
    controller.tell(without, GONE_S)
    expect(page.get_by_role("alert")).to_contain_text("c3 is gone.")
    when = page.evaluate("async (at_s) => (await import('/static/js/format.js')).time(at_s)", GONE_S)
    expect(row(page, "c3")).to_contain_text(f"gone since {when}")
    drained = POLLING._replace(drained=True, switches=2, leaving=3)
    monitors = MonitorsSeen({"m1": POLLING._replace(divides=True), "m2": drained}, 7)
    controller.tell(without._replace(is_store_silent=True), SILENT_S, 42.3, monitors)
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("The store does not answer")
    expect(alert).to_contain_text("7 switches that monitors are connected to are polled by none.")
    expect(alert).to_contain_text("m2 is drained and still has 2 switches.")
    expect(alert).to_contain_text("behind what the leader wrote for 42 s")
    when = page.evaluate("async (at_s) => (await import('/static/js/format.js')).time(at_s)", SILENT_S)
    view = page.get_by_role("region", name="Cluster")
    expect(view).to_contain_text(f"silent since {when}")
    expect(view).to_contain_text("behind for 42.3 s")
    expect(row(page, "m2")).to_contain_text("3 others until the next one does")
    shot(page, "cluster-broken")
    controller.tell(SEEN._replace(leader=None), SILENT_S + 9.0)
    expect(alert).to_contain_text("Nobody leads")
    expect(view).to_contain_text("nobody")
    controller.tell(SEEN, SILENT_S + 10.0)
    expect(view).to_contain_text("Nothing is wrong.")


def test_a_monitor_is_drained_and_undrained(
    open_page: OpenPage, fabric: DrainedController, told: Callable[[str], Told]
) -> None:
    controller = told("c1")
    controller.tell()
    page = open_page("#/cluster")
    row(page, "m2").get_by_role("button", name="Drain").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Token").fill(TOKEN)
    dialog.get_by_role("button", name="Drain").click()
    expect(dialog).to_contain_text("Done.")
    assert fabric.asked[-1] == ("drain-monitor", {"monitor": "m2"})
    dialog.get_by_role("button", name="Close").click()
    idle = POLLING._replace(drained=True, switches=0, ports=0, load_pct=0.0)
    controller.tell(monitors=MonitorsSeen({"m1": POLLING._replace(divides=True), "m2": idle}, 0))
    expect(row(page, "m2")).to_contain_text("drained")
    expect(page.get_by_role("region", name="Cluster")).to_contain_text("Nothing is wrong.")
    row(page, "m2").get_by_role("button", name="Undrain").click()
    dialog.get_by_role("button", name="Undrain").click()
    expect(dialog).to_contain_text("Done.")
    assert fabric.asked[-1] == ("undrain-monitor", {"monitor": "m2"})
    row(page, "c3").get_by_role("button", name="Hand over").wait_for()
    dialog.get_by_role("button", name="Close").click()
    row(page, "c3").get_by_role("button", name="Hand over").click()
    dialog.get_by_role("button", name="Hand over").click()
    expect(dialog).to_contain_text("Done.")
    assert fabric.asked[-1] == ("hand-over", {"to": "c3"})


def test_a_controller_that_is_alone_has_no_such_view(open_page: OpenPage) -> None:
    page = open_page()
    expect(page.get_by_role("link", name="Policy")).to_be_visible()
    assert page.get_by_role("link", name="Cluster").count() == 0
    page = open_page("#/cluster")
    expect(page.get_by_text("This controller is alone")).to_be_visible()


@pytest.mark.parametrize("size", [(1280, 800), (360, 740)])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_of_it_hinders_those_who_cannot_see_well(
    open_page: OpenPage, told: Callable[[str], Told], size: tuple[int, int], theme: Any
) -> None:
    base = pytest.importorskip("axe_playwright_python.base")
    controller = told("c1")
    controller.tell()
    controller.tell(SEEN._replace(members=("c1", "c2"), is_store_silent=True), GONE_S)
    page = open_page("#/cluster", size=size, theme=theme)
    page.evaluate(base.AXE_FILE_PATH.read_text(encoding="utf-8"))
    expect(page.get_by_role("alert")).to_contain_text("c3 is gone.")
    result = page.evaluate("""() => axe.run(document, {resultTypes: ["violations"]})""")
    grave = [found for found in result["violations"] if found["impact"] in ("serious", "critical")]
    assert [(found["id"], found["nodes"][0]["html"][:200]) for found in grave] == []
    shot(page, f"cluster-{size[0]}-{theme}")
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


def test_how_many_monitors_there_should_be_and_what_each_learner_would_have(
    open_page: OpenPage, fabric: DrainedController, told: Callable[[str], Told]
) -> None:
    told("c1").tell()
    page = open_page("#/cluster")
    assert page.get_by_role("region", name="Number of monitors").count() == 0, "nothing is advised"
    said = Advised(5890752, 300, 2, 0, 1, load=1.9, usage=0.95, scarcest="processor", lateness=0.181, is_met=True)
    said = said._replace(learner="yesterday", rule="the load now takes 3", wanted=3, wanted_pace=1, cost_h=24.0)
    said = said._replace(expected_lateness=0.02, others={"yesterday": 3, "threshold": 4})
    gap = Advised(5890751, 300, 2, 0, 1, gap="m2 told nothing of the interval.")
    for each in (gap, said):
        fabric.put("scaling", str(each.number), advised_document(each))
    view = page.get_by_role("region", name="Number of monitors")
    expect(view).to_contain_text("Advice: 3 monitors in the place of 2")
    expect(view).to_contain_text("1.90 of 2 monitors")
    expect(view).to_contain_text("processor, 95.0 % taken")
    expect(row(page, "yesterday (goes)")).to_contain_text("3")
    expect(row(page, "threshold")).to_contain_text("4")
    intervals = view.get_by_role("table", name="The latest intervals").get_by_role("row")
    expect(intervals.nth(1)).to_contain_text("the load now takes 3")
    expect(intervals.nth(2)).to_contain_text("m2 told nothing of the interval.")
    shot(page, "cluster-scaling")
    fabric.put("scaling", str(said.number), advised_document(said._replace(is_met=False, skipped=7, is_ordered=True)))
    expect(view).to_contain_text("missed")
    expect(view).to_contain_text("3 monitors, ordered")
    failed = "Try 1 failed: no host is free. It is tried again in 5 s, unless other advice comes."
    fabric.put("scaling", str(said.number), advised_document(said._replace(is_ordered=True, outcome=failed)))
    expect(view.get_by_role("paragraph")).to_contain_text(failed)
    expect(intervals.nth(1)).to_contain_text(failed)
