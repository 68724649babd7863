"""The page's bars of flow tables: how full each is, of whose groups, and what is known while a switch is away."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Locator, Page, expect

from page_fabric import DrainedController

OpenPage = Callable[..., Page]

TABLE: dict[str, Any] = {
    "dpid": 13,
    "table": 2,
    "capacity": 200,
    "pinned": 20,
    "entries": 150,
    "groups": 150,
    "groups_covered": 60,
    "groups_out": 900,
    "state": "high",
    "hits": 9000,
    "faults": 1000,
    "tenants": [
        {"tenant": "video", "entries": 100, "active": 90, "entitled": 99.5},
        {"tenant": None, "entries": 50, "active": 10, "entitled": 80.0},
    ],
}


@pytest.fixture
def tables(fabric: DrainedController) -> Iterator[DrainedController]:
    fabric.put("tables", "13/2", TABLE)
    fabric.put("tables", "14/1", {**TABLE, "dpid": 14, "table": 1, "entries": 178, "state": "low", "tenants": []})
    yield fabric
    for id_ in list(fabric.documents["tables"]):
        fabric.put("tables", id_, None)


def row_of(page: Page, name: str) -> Locator:
    return page.locator(".list-body .row").filter(has_text=name)


def parts_px(bar: Locator) -> dict[str, float]:
    """Return how wide a bar and its parts are."""
    found: dict[str, float] = bar.locator(".table-track").evaluate(
        """(track) => ({all: track.clientWidth, pinned: track.children[0].getBoundingClientRect().width,
            groups: track.children[1].getBoundingClientRect().width})"""
    )
    return found


def test_the_fullest_table_is_first_and_each_says_of_what_it_is_full(
    open_page: OpenPage, tables: DrainedController
) -> None:
    page = open_page("#/tables")
    expect(page.locator(".list-body .row").first).to_contain_text("s14")
    shown = row_of(page, "s13")
    expect(shown).to_contain_text("170 of 200")
    expect(shown).to_contain_text("video 100 of 99.5, (none) 50 of 80")
    for text in ("900", "1,000", "9,000"):
        expect(shown).to_contain_text(re.compile(text.replace(",", "[, \u202f]?")))
    px = parts_px(shown)
    assert px["pinned"] / px["all"] == pytest.approx(20 / 200, abs=0.02)
    assert px["groups"] / px["all"] == pytest.approx(150 / 200, abs=0.02)
    expect(row_of(page, "s14").locator(".table-groups")).to_have_class(re.compile("is-critical"))
    tables.change("tables", "13/2", entries=30, tenants=[])
    expect(shown).to_contain_text("50 of 200")
    assert parts_px(shown)["groups"] / px["all"] == pytest.approx(30 / 200, abs=0.02)


def test_a_switch_that_is_away_is_not_said_to_have_room(open_page: OpenPage, tables: DrainedController) -> None:
    page = open_page("#/tables")
    shown = row_of(page, "s13")
    expect(shown).to_contain_text("high")
    tables.change("switches", "13", connected=False)
    expect(shown).to_contain_text("not connected")
    expect(shown).not_to_contain_text("high")
    expect(shown.locator(".is-away")).to_be_visible()
    tables.put("tables", "13/2", None)  # the fabric is without it
    expect(shown).to_have_count(0)
    expect(row_of(page, "s14")).to_have_count(1)
    tables.change("switches", "13", connected=True)
    tables.put("tables", "13/2", {**TABLE, "entries": 0, "groups": 0, "tenants": []})
    expect(shown).to_contain_text("20 of 200")
    expect(shown).to_contain_text("high")


def test_a_switch_shows_its_tables_among_its_details(open_page: OpenPage, tables: DrainedController) -> None:
    page = open_page("#/tables")
    row_of(page, "s13").click()
    part = page.locator("aside.panel section").filter(has=page.get_by_role("heading", name="Flow tables"))
    expect(part.get_by_role("listitem")).to_contain_text("150 groups in, 60 covered, 900 out")
    expect(part.get_by_role("listitem")).to_contain_text("video 100 of 99.5")


def test_without_overcommit_there_is_no_such_view(open_page: OpenPage, tables: DrainedController) -> None:
    page = open_page("#/switches?select=switch/13")
    views = page.get_by_role("navigation", name="Views")
    expect(views).to_contain_text("Flow tables")
    for id_ in ("13/2", "14/1"):
        tables.put("tables", id_, None)
    expect(views).not_to_contain_text("Flow tables")
    expect(page.locator("aside.panel")).not_to_contain_text("Flow tables")
