"""Service classes on the page: goals and how they fare, who has which trees and why, and queues of ports."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Locator, Page, expect

from fed_controller import event, group
from page_fabric import SCREENSHOTS, SENDER, DrainedController

OpenPage = Callable[..., Page]
MOVED_S = 1767225600.0
TO_WAIT_LESS = "from the pool, to wait less: 3.2 packets of it wait"
BY_HAND = "an operator asked for it"
WHY = f"239.7.0.1 gets an alias {TO_WAIT_LESS}."
MARKET = {
    "service_class": "market",
    "importance": 1,
    "queue_id": 6,
    "goal": {"loss_pct": 0.1},
    "competes_with": ["backup"],
}
FARES = {"index": 1.4, "dpid": 5, "port_no": 3, "ports": 12, "missing_bps": 2_000_000}
BACKUP = {"service_class": "backup", "importance": 6, "queue_id": 1, "goal": None, "competes_with": ["market"]}
QUEUE = {
    "classes": ["market"],
    "min_rate_bps": 1_000_000,
    "capacity_bps": 1e9,
    "tx_bps": 900_000,
    "dropped_pps": 12.5,
}


def sender(ip: str, alias: int | None, service_class: str | None, rate_bps: int) -> dict[str, Any]:
    return {**SENDER, "ip": ip, "alias": alias, "service_class": service_class, "dscp": 46, "rate_bps": rate_bps}


@pytest.fixture
def told(fabric: DrainedController) -> Iterator[DrainedController]:
    """A fabric with two classes, a group with three trees and sixty queues."""
    before = {name: dict(fabric.documents[name]) for name in ("groups", "events", "policy", "switches")}
    fabric.put("classes", "market", {**MARKET, **FARES})
    fabric.put("classes", "backup", {**BACKUP, "index": None, "dpid": None, "port_no": None, "missing_bps": 0})
    senders = [sender("10.0.0.5", None, "market", 3_000_000), sender("10.0.0.6", 2, "market", 1_000_000)]
    trees = [
        {"number": number, "links": [], "senders": number - 1, "rate_bps": 0, "state": state, "reason": reason}
        for number, state, reason in ((1, "binding", BY_HAND), (2, "bound", TO_WAIT_LESS))
    ]
    hot = group(
        "239.7.0.1", senders=senders, aliases=trees, queue_packets=3.2, utilisation_pct=87.5, rate_bps=4_000_000
    )
    fabric.put("groups", "239.7.0.1", hot)
    fabric.put("events", "multicast-77", event(MOVED_S, WHY, kind="alias-moved", group="239.7.0.1"))
    for port_no in range(1, 61):
        index = 2.5 if port_no == 44 else 0.5
        fields = {"dpid": 5, "port_no": port_no, "queue_id": 6, "index": index, "missing_bps": 0}
        fabric.put("queues", f"5:{port_no}/6", {**QUEUE, **fields})
    yield fabric
    for section in ("classes", "queues"):
        for name in [*fabric.documents[section]]:
            fabric.put(section, name, None)
    for section, documents in before.items():
        for name in {*fabric.documents[section], *documents}:
            if fabric.documents[section].get(name) != documents.get(name):
                fabric.put(section, name, documents.get(name))


def table(page: Page, name: str) -> Locator:
    return page.get_by_role("table", name=name)


def row(page: Page, caption: str, text: str) -> Locator:
    return table(page, caption).get_by_role("row").filter(has=page.get_by_role("rowheader", name=text))


def shot(page: Page, name: str) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


def test_goals_and_how_they_fare_and_who_sends(open_page: OpenPage, told: DrainedController) -> None:
    page = open_page()
    page.get_by_role("link", name="Service classes").click()
    market = row(page, "Classes", "market")
    expect(market).to_contain_text("loss 0.1 %")
    expect(market).to_contain_text("1.40 missed")
    expect(market).to_contain_text("s5:3")
    expect(market).to_contain_text("4.00 Mbit/s")
    expect(row(page, "Classes", "backup")).to_contain_text("none")
    told.change("classes", "market", index=0.9, missing_bps=0)
    expect(market).to_contain_text("0.90 met")
    told.put("classes", "market", None)
    expect(market).to_contain_text("4.00 Mbit/s")
    expect(market).not_to_contain_text("met")
    shot(page, "classes")


def test_who_has_which_trees_and_why(open_page: OpenPage, told: DrainedController) -> None:
    page = open_page("#/classes")
    hot = row(page, "Groups with further trees", "239.7.0.1")
    expect(hot).to_contain_text("binding, bound")
    expect(hot).to_contain_text("1 + 0 + 1")
    expect(hot).to_contain_text("3.20")
    expect(hot).to_contain_text("87.5 %")
    expect(hot).to_contain_text(f"Alias 1: {BY_HAND}")
    expect(hot).to_contain_text(f"Alias 2: {TO_WAIT_LESS}")
    expect(hot).to_contain_text(WHY)
    shot(page, "alias-reasons")
    expect(table(page, "Last moves of trees")).to_contain_text(WHY)
    later = "239.7.0.1 gives an alias back that carried nothing for 600 s."
    told.put("events", "multicast-78", event(MOVED_S + 9, later, kind="alias-returned", group="239.7.0.1"))
    expect(hot).to_contain_text(later)
    hot.get_by_role("link").click()
    expect(page).to_have_url(re.compile("select=group/239.7.0.1"))
    told.change("groups", "239.7.0.1", aliases=[])
    expect(page.get_by_text("No group has a further tree")).to_be_visible()


def test_queues_are_followed_while_they_are_looked_at_the_worst_first(
    open_page: OpenPage, told: DrainedController
) -> None:
    page = open_page("#/classes")
    queues = table(page, "Queues, those farthest from a goal first: 50 of 60")
    first = queues.get_by_role("row").nth(1)
    expect(first).to_contain_text("s5:44")
    expect(first).to_contain_text("2.50 missed")
    told.change("queues", "5:7/6", index=9.0)
    expect(first).to_contain_text("s5:7")


def test_what_is_shown_is_true_while_a_switch_is_dead_or_the_policy_is_stale(
    open_page: OpenPage, told: DrainedController
) -> None:
    page = open_page("#/classes")
    expect(row(page, "Classes", "market")).to_contain_text("s5:3")
    assert page.get_by_role("alert").count() == 0
    told.change("switches", "5", connected=False)
    expect(page.get_by_role("alert")).to_contain_text("1 switch is not connected (s5)")
    expect(row(page, "Classes", "market")).to_contain_text("not connected, as told last")
    expect(table(page, "Queues").get_by_role("row").nth(1)).to_contain_text("not connected, as told last")
    told.change("switches", "5", connected=True)
    expect(page.get_by_role("alert")).to_have_count(0)
    told.change("policy", "policy", errors=["line 4: classes[0].goal: two goals"])
    expect(page.get_by_role("alert")).to_contain_text("The newer policy file has faults")
    shot(page, "classes-stale")
