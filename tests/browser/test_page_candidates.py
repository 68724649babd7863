"""Policies that were found, on the page: what, where, who deviates; accepted and ignored from there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Locator, Page, expect

from page_fabric import SCREENSHOTS, TOKEN, DrainedController

OpenPage = Callable[..., Page]
ID = "00112233aabb"
SEARCH = {"state": "search", "searched_s": 1.79e9, "lines": 120, "resource_count": 84, "beyond": 0, "fault": None}
NEW = {"state": "new", "by": None, "decided_s": None, "path": None}


def candidate(**fields: Any) -> dict[str, Any]:
    values = {"labels.guard": "on", "labels.mtu": "9000", "labels.leave": "fast"}
    return {
        **{"properties": sorted(values), "types": ["port"], "told_by": ["rack=b7"], "bits_saved": 90.0, **NEW},
        **{"resources": [f"1:{number}" for number in range(12)], "resource_count": 12},
        **{"varieties": [{"values": values, "resource_count": 12}], "variety_count": 1},
        "deviations": [{"resource": "1:9", "missing": ["labels.mtu"], "other": {"labels.guard": "<b>off</b>"}}],
        "deviation_count": 1,
        "near": [{"resource": "2:4", "missing": ["labels.guard"]}],
        "near_count": 20,
        **fields,
    }


@pytest.fixture
def told(fabric: DrainedController) -> Iterator[DrainedController]:
    fabric.put("candidates", "search", SEARCH)
    fabric.put("candidates", ID, candidate())
    yield fabric
    for name in [*fabric.documents["candidates"]]:
        fabric.put("candidates", name, None)


def article(page: Page) -> Locator:
    return page.get_by_role("article", name="labels.guard, labels.leave, labels.mtu")


def give(page: Page, button: str) -> None:
    article(page).get_by_role("button", name=button).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Token").fill(TOKEN)
    dialog.get_by_role("button", name=button.partition(" ")[0]).click()
    expect(dialog).to_contain_text("Done.")


def test_a_candidate_says_what_is_set_where_and_who_deviates(open_page: OpenPage, told: DrainedController) -> None:
    page = open_page()
    page.get_by_role("link", name="Candidates").click()
    expect(page.get_by_role("region", name="Candidates")).to_contain_text("in 120 changes of 84 switches and ports")
    expect(article(page)).to_contain_text("rack=b7")
    expect(article(page).get_by_role("row").filter(has_text="1:9")).to_contain_text("labels.guard=<b>off</b>")
    expect(article(page)).to_contain_text("19 more")
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / "candidates.png", full_page=True)


@pytest.mark.parametrize("verb", ["accept", "ignore"])
def test_orders_about_it_are_given(open_page: OpenPage, told: DrainedController, verb: str) -> None:
    page = open_page("#/candidates")
    give(page, verb.capitalize())
    assert told.asked[-1] == (f"candidate-{verb}", {"id": ID})


def test_one_that_was_ignored_is_last_and_can_be_considered_again(
    open_page: OpenPage, told: DrainedController
) -> None:
    told.put("candidates", ID, candidate(state="ignored", by="ann"))
    told.put("candidates", "aa", candidate(properties=["labels.a", "labels.b"], bits_saved=1.0))
    page = open_page("#/candidates")
    expect(page.get_by_role("article").nth(1)).to_contain_text("ignored")
    give(page, "Consider again")
    assert told.asked[-1] == ("candidate-consider", {"id": ID})


def test_a_search_that_failed_says_why_above_what_was_found_before(
    open_page: OpenPage, told: DrainedController
) -> None:
    told.put("candidates", "search", {**SEARCH, "fault": "changes.jsonl: No space left on device"})
    page = open_page("#/candidates")
    expect(page.get_by_role("alert").filter(has_text="failed")).to_contain_text("No space left on device")
    expect(article(page)).to_be_visible()
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / "candidates-failed.png", full_page=True)


def test_where_nothing_is_looked_for_the_view_says_how_that_is_switched_on(
    open_page: OpenPage, fabric: DrainedController
) -> None:
    page = open_page("#/candidates")
    expect(page.get_by_role("region", name="Candidates")).to_contain_text("policy_discovery: {enabled: true}")
