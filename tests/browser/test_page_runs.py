"""Profiles and storms on the page as they go on, as they end, and where nobody tells of them any more."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Page, expect

from fed_controller import run_documents
from page_fabric import SCREENSHOTS, TOKEN, DrainedController
from served_dashboard import served

OpenPage = Callable[..., Page]


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[DrainedController]:
    controller = DrainedController(tmp_path / "vsrt.sock")
    controller.start()
    yield controller
    controller.stop()


@pytest.fixture
def site(fabric: DrainedController, tmp_path: Path) -> Iterator[str]:
    token = tmp_path / "token"
    token.touch(mode=0o600)
    token.write_text(TOKEN + "\n")
    with served(fabric.path, token_file=str(token)) as address:
        yield address


def put(fabric: DrainedController, run: str, **fields: object) -> None:
    fabric.put("runs", run, {**run_documents()["runs"][run], **fields})


def shot(page: Page, name: str) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


def test_a_profile_and_a_storm_go_on_and_end(open_page: OpenPage, fabric: DrainedController) -> None:
    page = open_page("#/runs")
    expect(page.get_by_role("region", name="Runs")).to_contain_text("There was none yet")
    put(fabric, "profile", state="running", ended=None)
    put(fabric, "storm", state="playing", done=250, storms=[])
    storm, profile = page.get_by_role("region", name="Storm"), page.get_by_role("region", name="Profile")
    expect(storm).to_contain_text("joins: 250 of 1\u202f000")
    expect(storm.get_by_role("progressbar", name="joins")).to_have_attribute("value", "250")
    expect(profile).to_contain_text("running")
    expect(profile.get_by_role("row").nth(1).get_by_role("cell").first).to_have_text("1\u202f000")
    expect(profile.get_by_role("progressbar", name="Time of the profile")).to_be_visible()
    shot(page, "runs")
    put(fabric, "storm", state="playing", done=900, storms=[])
    expect(storm.get_by_role("progressbar", name="joins")).to_have_attribute("value", "900")
    put(fabric, "storm", state="ended")
    put(fabric, "profile", state="ended", ended="its time is over")
    expect(storm.get_by_role("row").nth(1)).to_contain_text("missed")
    expect(profile).to_contain_text("its time is over")
    assert page.get_by_role("progressbar").count() == 0
    page.get_by_role("link", name="Groups").click()
    expect(page.get_by_role("link", name="Runs")).to_be_visible()


def test_faults_and_storms_that_nobody_tells_of_are_said(open_page: OpenPage, fabric: DrainedController) -> None:
    put(fabric, "storm", state="lost", fault="")
    put(
        fabric,
        "profile",
        state="ended",
        ended="its file cannot be written",
        fault="<b>p.parquet</b> cannot be written",
    )
    page = open_page("#/runs", size=(390, 800), theme="dark")
    expect(page.get_by_role("region", name="Storm")).to_contain_text("lost: nobody tells of it any more")
    expect(page.get_by_role("region", name="Profile")).to_contain_text("<b>p.parquet</b> cannot be written")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shot(page, "runs-phone")


def test_a_controller_that_is_dead_has_no_run_that_goes_on(
    open_page: OpenPage, faults: list[str], tmp_path: Path
) -> None:
    page, socket = open_page(), tmp_path / "other.sock"
    with served(socket, alone=True) as address:
        with running_controller(socket):
            page.goto(f"{address}/#/runs")
            expect(page.get_by_role("progressbar")).to_have_count(2)
        expect(page.get_by_role("alert")).to_contain_text("The controller is away since")
        expect(page.get_by_role("region", name="Storm")).to_contain_text("not heard of: the controller is away")
        expect(page.get_by_role("region", name="Profile")).to_contain_text("not heard of: the controller is away")
        expect(page.get_by_role("progressbar")).to_have_count(0)
        shot(page, "runs-away")
        with running_controller(socket):
            expect(page.get_by_role("region", name="Profile")).to_contain_text("running")
            page.goto("about:blank")
    assert all("Failed to load" in fault or "ERR_" in fault for fault in faults)
    faults.clear()


@contextmanager
def running_controller(socket: Path) -> Iterator[None]:
    """Have a process that tells of a profile and a storm that go on, and kill it at the end."""
    process = subprocess.Popen([sys.executable, __file__, str(socket)], stdin=subprocess.PIPE, env=support_path())
    try:
        yield
    finally:
        process.kill()
        process.communicate()


def support_path() -> dict[str, str]:
    root = Path(__file__).parents[2]
    return {**os.environ, "PYTHONPATH": f"{root}:{root / 'tests' / 'support'}"}


if __name__ == "__main__":
    told = DrainedController(Path(sys.argv[1]))
    put(told, "profile", state="running", ended=None)
    put(told, "storm", state="playing", storms=[])
    told.start()
    sys.stdin.read()
