"""Alarms on the page: what is wrong now, who takes care, and what is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Locator, Page, expect

from page_fabric import TOKEN, DrainedController

OpenPage = Callable[..., Page]


def row(page: Page, text: str) -> Locator:
    return page.get_by_role("row").filter(has_text=text)


def panel(page: Page) -> Locator:
    return page.locator("aside.panel")


ALARM = {
    "key": "link-failed:1:1-5:1",
    "kind": "link-failed",
    "subject": "1:1-5:1",
    "severity": "critical",
    "since_s": 300.0,
    "text": "The link of port 1:1 and port 5:1 has failed: 1 switch is cut off.",
    "dpid": 1,
    "port_no": 1,
    "dpid_a": 1,
    "port_a": 1,
    "dpid_b": 5,
    "port_b": 1,
    "occurrences": 2,
    "consequences": [{"kind": "port-down", "text": "Port 1:1 is down.", "dpid": 1, "port_no": 1}],
    "consequence_count": 1,
}

CLEARED = {
    **{name: ALARM[name] for name in ALARM if not name.startswith("consequence")},
    **{"state": "cleared", "cleared_s": 400.0, "part_of": None},
    **{"acknowledged_by": "ann", "acknowledged_s": 310.0},
}


@pytest.fixture
def failed_link(fabric: DrainedController) -> Iterator[None]:
    """A link that failed, with its alarm."""
    link, status = fabric.documents["links"]["1:1-5:1"], fabric.documents["status"]["status"]
    fabric.put("links", "1:1-5:1", {**link, "state": "failed", "since_s": 300.0})
    fabric.put("alarms", ALARM["key"], ALARM)
    yield
    fabric.put("links", "1:1-5:1", link)
    fabric.put("alarms", ALARM["key"], None)
    fabric.put("status", "status", status)


def test_a_failed_link_stays_drawn_and_its_alarm_is_acknowledged(
    open_page: OpenPage, fabric: DrainedController, failed_link: None
) -> None:
    page = open_page()
    expect(page.get_by_role("complementary", name="Overview")).to_contain_text("Open alarms 1")
    header = page.get_by_role("banner")
    expect(header).to_contain_text("31 of 32 links")
    status = fabric.documents["status"]["status"]
    fabric.put("status", "status", {**status, "degraded": True, "degraded_because": ALARM["text"]})
    expect(header.get_by_role("status")).to_have_text(f"Degraded: {ALARM['text']}")
    header.get_by_role("link", name="1 critical").click()
    row(page, "has failed").click()
    expect(panel(page)).to_contain_text("Port 1:1 is down.")
    expect(panel(page)).to_contain_text("2 times")
    panel(page).get_by_role("button", name="Acknowledge").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Token").fill(TOKEN)
    dialog.get_by_role("button", name="Acknowledge").click()
    expect(dialog).to_contain_text("Done.")
    assert fabric.asked[-1] == ("alarm-acknowledge", {"key": ALARM["key"]})
    dialog.get_by_role("button", name="Close").click()
    fabric.put("alarms", str(ALARM["key"]), {**ALARM, "acknowledged_by": "ann", "acknowledged_s": 310.0})
    expect(panel(page)).to_contain_text("by ann")
    fabric.load("1:1-5:1", 50.0)
    panel(page).get_by_role("link", name="s1:1 – s5:1").click()
    expect(panel(page)).not_to_contain_text("50.0 %")
    expect(panel(page)).to_contain_text("failed")
    expect(panel(page).get_by_role("button", name="Forget")).to_be_visible()


def test_cleared_alarms_are_listed_the_newest_first_with_who_took_care(
    open_page: OpenPage, fabric: DrainedController
) -> None:
    fabric.put("cleared-alarms", "1", CLEARED)
    page = open_page()
    page.get_by_role("link", name="Cleared alarms 1").click()
    newer = {**CLEARED, "cleared_s": 500.0, "text": "Switch s9 does not answer.", "kind": "switch-down"}
    fabric.put("cleared-alarms", "2", newer)
    rows = page.get_by_role("row")
    expect(rows.nth(1)).to_contain_text("Switch s9 does not answer.")
    expect(rows.nth(2)).to_contain_text("ann")
    rows.nth(2).click()
    expect(panel(page)).to_contain_text("by ann")
    expect(panel(page)).to_contain_text("Until")
    expect(panel(page).get_by_role("button", name="Acknowledge")).to_have_count(0)
    panel(page).get_by_role("link", name="s1:1 – s5:1").click()
    expect(panel(page)).to_contain_text("up")
    for number in "12":
        fabric.put("cleared-alarms", number, None)
    expect(page.get_by_text("No alarm was cleared.")).to_be_visible()


@pytest.mark.parametrize("view", ["topology", "alarms?select=alarm/link-failed:1:1-5:1", "links?select=link/1:1-5:1"])
def test_nothing_of_an_alarm_hinders_those_who_cannot_see_well(
    open_page: OpenPage, failed_link: None, view: str
) -> None:
    base = pytest.importorskip("axe_playwright_python.base")
    page = open_page(f"#/{view}")
    page.evaluate(base.AXE_FILE_PATH.read_text(encoding="utf-8"))
    expect(page.get_by_role("link", name="1 critical")).to_be_visible()
    result = page.evaluate("""() => axe.run(document, {resultTypes: ["violations"]})""")
    grave = [found for found in result["violations"] if found["impact"] in ("serious", "critical")]
    assert [(found["id"], found["nodes"][0]["html"][:200]) for found in grave] == []
