from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright")
pytest.importorskip("os_ken")

from playwright.sync_api import Browser, Page, expect, sync_playwright

from apps.exporters.schema import RecordKind
from page_fabric import CHROMIUM, TOKEN, DrainedController
from required import leave_out
from roll_up_files import write_roll_ups
from served_dashboard import served

DAY_S = 86_400.0
HANG_MS = 30_000
"""After which time a page is taken to hang: no bound on its speed, which on a busy machine is that of the machine."""

expect.set_options(timeout=HANG_MS)


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DrainedController]:
    controller = DrainedController(tmp_path_factory.mktemp("controller") / "vsrt.sock")
    controller.start()
    yield controller
    controller.stop()


@pytest.fixture(scope="module")
def site(fabric: DrainedController, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    token = tmp_path_factory.mktemp("secrets") / "token"
    token.touch(mode=0o600)
    token.write_text(TOKEN + "\n")
    history = tmp_path_factory.mktemp("history")
    today_s = time.time() // DAY_S * DAY_S
    for days_ago in range(3):
        write_roll_ups(history, RecordKind.HOURS, (13, 1), today_s - days_ago * DAY_S, 24, tx_bytes=1.5e6)
    with served(fabric.path, token_file=str(token), history=str(history)) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not Path(CHROMIUM).exists():
        leave_out("needs chromium-headless-shell")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture
def faults() -> list[str]:
    """What a page said to its console that it should not; a test may clear what it provoked."""
    return []


@pytest.fixture
def open_page(browser: Browser, site: str, faults: list[str]) -> Iterator[Callable[..., Page]]:
    """Open a view in a window of a size and theme, its clock so far ahead; at the end nothing may have gone wrong."""
    contexts = []

    def open_(
        view: str = "#/topology", size: tuple[int, int] = (1280, 800), theme: Any = "light", ahead_ms: int = 0
    ) -> Page:
        width, height = size
        motion: Any = "reduce"
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme, reduced_motion=motion
        )
        contexts.append(context)
        context.set_default_timeout(HANG_MS)
        if ahead_ms:
            context.add_init_script(f"const now = Date.now; Date.now = () => now() + {ahead_ms};")
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.goto(f"{site}/{view}")
        expect(page.get_by_role("banner").get_by_role("status")).to_have_text("Ready")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert faults == []
