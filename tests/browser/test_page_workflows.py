"""Workflows at what they are about: which are offered, what they would do, and a result for each item."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Locator, Page, expect

from page_fabric import SCREENSHOTS, TOKEN, DrainedController
from served_dashboard import served
from workflow_files import write_workflows

OpenPage = Callable[..., Page]
VIEWER = "a-viewer-who-may-only-read"


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[DrainedController]:
    controller = DrainedController(tmp_path / "vsrt.sock")
    controller.start()
    yield controller
    controller.stop()


@pytest.fixture
def secrets(tmp_path: Path) -> dict[str, str]:
    token = tmp_path / "token"
    token.touch(mode=0o600)
    token.write_text(f"ann {TOKEN}\n")
    return {"token_file": str(token)}


@pytest.fixture
def site(fabric: DrainedController, tmp_path: Path, secrets: dict[str, str]) -> Iterator[str]:
    with served(fabric.path, workflows=str(write_workflows(tmp_path / "workflows")), **secrets) as address:
        yield address


def part(page: Page) -> Locator:
    return page.get_by_role("region", name="Workflows")


def names(page: Page) -> list[str]:
    buttons = part(page).get_by_role("button", name="Begin ")
    return [str(each.get_attribute("aria-label")).removeprefix("Begin ") for each in buttons.all()]


def nothing_hinders(page: Page) -> None:
    base = pytest.importorskip("axe_playwright_python.base")
    page.evaluate(base.AXE_FILE_PATH.read_text(encoding="utf-8"))
    result = page.evaluate("""() => axe.run(document, {resultTypes: ["violations"]})""")
    grave = [found for found in result["violations"] if found["impact"] in ("serious", "critical")]
    assert [(found["id"], found["nodes"][0]["html"][:200]) for found in grave] == []


def shot(page: Page, name: str) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


@pytest.mark.parametrize(
    ("view", "offered"),
    [
        ("#/switches?select=switch/1", ["drain-all", "note", "spare"]),
        ("#/switches?select=switch/13", ["all-tors", "spare"]),
        ("#/ports?select=port/13:1", ["watch"]),
        ("#/ports?select=port/13:3", []),
        ("#/groups?select=group/239.1.1.1", ["anew"]),
        ("#/hosts?select=host/00:00:00:00:00:01", ["host"]),
    ],
)
def test_each_thing_has_the_workflows_that_are_about_it(open_page: OpenPage, view: str, offered: list[str]) -> None:
    page = open_page(view)
    expect(part(page).get_by_role("button", name="Begin ")).to_have_count(len(offered))
    if not offered:
        expect(part(page)).to_contain_text("None is about this port.")
    assert sorted(names(page)) == offered
    expect(part(page)).to_contain_text("broken.yaml")


def test_a_workflow_is_confirmed_and_told_item_by_item(open_page: OpenPage, fabric: DrainedController) -> None:
    page = open_page("#/switches?select=switch/1")
    part(page).get_by_role("button", name="Begin note").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Begin note at s1")
    expect(dialog.get_by_role("row").filter(has_text="label add {item.dpid}")).to_contain_text("s1:1, s1:2, s1:3")
    assert fabric.asked == []
    shot(page, "workflow-plan")
    begin = dialog.get_by_role("button", name="Begin")
    expect(begin).to_be_disabled()
    dialog.get_by_label("Token").fill(TOKEN)
    begin.click()
    expect(dialog).to_contain_text("done: 5 of 5 items")
    expect(dialog.get_by_role("progressbar", name="Items that are done")).to_have_attribute("value", "5")
    rows = dialog.get_by_role("group", name="Results").get_by_role("row")
    expect(rows).to_have_count(6)
    expect(rows.nth(2)).to_contain_text("s1:1 has the label work=planned")
    shot(page, "workflow-run")
    assert [name for name, _ in fabric.asked] == ["switch-label-add", *["port-label-add"] * 4]
    assert fabric.asked_by == "ann"
    dialog.get_by_role("button", name="Close").click()
    page.get_by_role("link", name="Runs").click()
    runs = page.get_by_role("group", name="Runs of workflows")
    expect(runs.get_by_role("row").nth(1)).to_contain_text("note")
    expect(runs.get_by_role("row").nth(1)).to_contain_text("5 of 5")


def test_a_dead_switch_keeps_its_workflows_and_what_fails_is_told_and_gone_on_with(
    open_page: OpenPage, fabric: DrainedController
) -> None:
    fabric.change("switches", "1", connected=False, disconnected_s=100.0)
    page = open_page("#/switches?select=switch/1")
    expect(page.get_by_role("complementary")).to_contain_text("Not connected")
    expect(part(page).get_by_role("button", name="Begin note")).to_be_visible()
    fabric.refuse = ("switch 1 is away", None)
    part(page).get_by_role("button", name="Begin note").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Token").fill(TOKEN)
    dialog.get_by_role("button", name="Begin").click()
    expect(dialog).to_contain_text("failed: 0 of 5 items")
    results = dialog.get_by_role("group", name="Results").get_by_role("row")
    expect(results.nth(1)).to_contain_text("switch 1 is away")
    expect(results.nth(2)).to_contain_text("waits")
    shot(page, "workflow-failed")
    fabric.refuse = None
    dialog.get_by_role("button", name="Go on").click()
    expect(dialog).to_contain_text("done: 5 of 5 items")
    expect(results.nth(1)).to_contain_text("done")


def test_what_may_not_be_is_refused_before_it_begins(open_page: OpenPage, fabric: DrainedController) -> None:
    page = open_page("#/switches?select=switch/1")
    part(page).get_by_role("button", name="Begin drain-all").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("It is done for all that its queries find.")
    expect(dialog.get_by_role("alert")).to_contain_text("2 of the 4 switches of hall-a, tier core would be drained")
    dialog.get_by_label("Token").fill(TOKEN)
    expect(dialog.get_by_role("button", name="Begin")).to_be_disabled()
    shot(page, "workflow-refused")
    assert fabric.asked == []


def test_a_run_that_lasts_is_stopped(open_page: OpenPage, fabric: DrainedController) -> None:
    asked, let_go = threading.Event(), threading.Event()
    real = fabric.server.actions["switch-label-add"]

    def slow(fields: dict[str, object]) -> object:
        asked.set()
        assert let_go.wait(30)
        return real(fields)

    fabric.server.actions = {**fabric.server.actions, "switch-label-add": slow}
    page = open_page("#/switches?select=switch/1")
    part(page).get_by_role("button", name="Begin note").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Token").fill(TOKEN)
    dialog.get_by_role("button", name="Begin").click()
    assert asked.wait(30)
    expect(dialog).to_contain_text("runs: 0 of 5 items")
    expect(dialog.get_by_role("group", name="Results").get_by_role("row").nth(1)).to_contain_text("is done now")
    dialog.get_by_role("button", name="Stop").click()
    expect(dialog).to_contain_text("stops after this item")
    let_go.set()
    expect(dialog).to_contain_text("stopped before its end: 1 of 5 items")
    assert [name for name, _ in fabric.asked] == ["switch-label-add"]


def test_the_part_and_both_dialogs_are_usable_by_all(open_page: OpenPage, fabric: DrainedController) -> None:
    for theme, size in (("light", (1280, 800)), ("dark", (390, 844))):
        page = open_page("#/switches?select=switch/1", theme=theme, size=size)
        part(page).get_by_role("button", name="Begin note").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_role("row")).to_have_count(3)
        nothing_hinders(page)
        dialog.get_by_label("Token").fill(TOKEN)
        dialog.get_by_role("button", name="Begin").click()
        expect(dialog).to_contain_text("done: 5 of 5 items")
        nothing_hinders(page)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        shot(page, f"workflow-{theme}")


class TestReadOnly:
    """A server without tokens of operators."""

    @pytest.fixture
    def secrets(self) -> dict[str, str]:
        return {}

    def test_what_would_be_done_is_shown_and_nothing_can_be_begun(self, open_page: OpenPage) -> None:
        page = open_page("#/switches?select=switch/1")
        part(page).get_by_role("button", name="Begin note").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_role("row")).to_have_count(3)
        expect(dialog.get_by_role("alert")).to_contain_text("The server takes no orders")
        expect(dialog.get_by_role("button", name="Begin")).to_be_disabled()


class TestViewers:
    """A server with tokens of viewers too."""

    @pytest.fixture
    def secrets(self, tmp_path: Path) -> dict[str, str]:
        found = {}
        for name, text in (("token_file", TOKEN), ("read_token_file", VIEWER)):
            path = tmp_path / name
            path.touch(mode=0o600)
            path.write_text(f"{text}\n")
            found[name] = str(path)
        return found

    def test_a_viewer_is_refused_and_an_operator_is_not(
        self, browser: object, site: str, fabric: DrainedController
    ) -> None:
        page: Page = browser.new_page()  # type: ignore[attr-defined]
        page.goto(f"{site}/#/switches?select=switch/1")
        page.get_by_label("Token").fill(VIEWER)
        page.get_by_role("button", name="Show the fabric").click()
        part(page).get_by_role("button", name="Begin note").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("button", name="Begin").click()
        expect(dialog.get_by_role("alert")).to_contain_text("Refused (403)")
        assert fabric.asked == []
        dialog.get_by_label("Token").fill(TOKEN)
        dialog.get_by_role("button", name="Begin").click()
        expect(dialog).to_contain_text("done: 5 of 5 items")
        page.close()
