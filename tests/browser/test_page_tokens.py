"""A page whose server answers reads by a token alone: locked until one is typed, and again when it is forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Browser, Page, expect

from page_fabric import TOKEN, DrainedController
from served_dashboard import served

VIEWER = "eve-may-read-alone"


def private(path: Path, text: str) -> str:
    path.touch(mode=0o600)
    path.write_text(text)
    return str(path)


@pytest.fixture
def closed(fabric: DrainedController, tmp_path: Path) -> Iterator[str]:
    operators, viewers = private(tmp_path / "operators", f"ann {TOKEN}\n"), private(tmp_path / "viewers", VIEWER)
    with served(fabric.path, token_file=operators, read_token_file=viewers) as address:
        yield address


@pytest.fixture
def page(browser: Browser, closed: str, request: Any) -> Iterator[Page]:
    context = browser.new_context(color_scheme=getattr(request, "param", "light"), reduced_motion="reduce")
    context.set_default_timeout(10_000)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{closed}/#/switches?select=switch/9")
    yield page
    context.close()
    assert errors == []


def unlock(page: Page, token: str) -> None:
    page.get_by_role("main").get_by_label("Token").fill(token)
    page.get_by_role("button", name="Show the fabric").click()


def state(page: Page) -> Any:
    return page.get_by_role("banner").get_by_role("status")


def test_the_fabric_is_shown_to_those_with_a_token(page: Page) -> None:
    expect(state(page)).to_have_text("Locked")
    expect(page.get_by_role("heading", name="A token is needed")).to_be_visible()
    expect(page.get_by_role("navigation")).to_have_count(0)
    assert "aggregation" not in page.content()
    unlock(page, "not-the-token-of-this-server")
    expect(page.get_by_role("alert")).to_contain_text("The token was refused")
    unlock(page, VIEWER)
    expect(state(page)).to_have_text("Ready")
    expect(page.get_by_role("row").filter(has_text="aggregation").first).to_be_visible()
    page.goto(page.url.split("#")[0] + "#/ports?select=port/13:1")
    expect(page.locator("aside.panel canvas").first).to_be_visible()
    page.get_by_role("button", name="Forget token").click()
    expect(state(page)).to_have_text("Locked")
    expect(page.get_by_role("alert")).to_have_count(0)
    assert "s13-eth1" not in page.content()
    assert page.evaluate("localStorage.length + sessionStorage.length + document.cookie.length") == 0


def test_a_viewer_types_the_token_of_an_operator_to_change_something(page: Page, fabric: DrainedController) -> None:
    unlock(page, VIEWER)
    page.locator("aside.panel").get_by_role("button", name="Drain").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Drain").click()
    expect(dialog).to_contain_text("Refused (403)")
    expect(dialog).to_contain_text("who may read and not write")
    assert not fabric.documents["switches"]["9"]["drained"]
    dialog.get_by_label("Token").fill("not-the-token-of-this-server")
    dialog.get_by_role("button", name="Drain").click()
    expect(dialog).to_contain_text("Refused (401)")
    expect(state(page)).to_have_text("Ready")
    dialog.get_by_label("Token").fill(TOKEN)
    dialog.get_by_role("button", name="Drain").click()
    expect(dialog).to_contain_text("Done.")
    dialog.get_by_role("button", name="Close").click()
    page.locator("aside.panel").get_by_role("button", name="Undrain").click()
    page.get_by_role("dialog").get_by_role("button", name="Undrain").click()
    expect(page.get_by_role("dialog")).to_contain_text("Done.")


@pytest.mark.parametrize("page", ["light", "dark"], indirect=True)
def test_nothing_of_the_lock_hinders_those_who_cannot_see_well(page: Page) -> None:
    base = pytest.importorskip("axe_playwright_python.base")
    unlock(page, "not-the-token-of-this-server")
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_label("Token")).to_be_visible()
    page.evaluate(base.AXE_FILE_PATH.read_text(encoding="utf-8"))
    result = page.evaluate("""() => axe.run(document, {resultTypes: ["violations"]})""")
    assert any(passed["id"] == "color-contrast" for passed in result["passes"])
    assert [(found["id"], found["nodes"][0]["html"][:200]) for found in result["violations"]] == []
