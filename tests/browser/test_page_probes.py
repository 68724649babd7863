"""Scripts on the page: begun from the library or from text, their figures grow, and they end with the view."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Locator, Page, expect

from apps.probe_points import recorded_points
from apps.status_server import QuestionRefused
from controller.effects import ApplyEdits
from controller.events import BarrierReplied, PacketReceived
from controller.probes.findings import document, found
from controller.probes.grammar import ScriptFault
from controller.probes.library import library
from controller.probes.script import Probe, load
from page_fabric import SCREENSHOTS, TOKEN, DrainedController
from served_dashboard import served

HANG_S = 30.0
OpenPage = Callable[..., Page]
COUNT = "aggr packets[1][0];\nmulticast:event:PacketReceived { packets[dpid]++; }\n"


class LookingController(DrainedController):
    """A controller that runs scripts, and what happens there is what a test says."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.ran: dict[str, tuple[Probe, dict[str, Any]]] = {}
        self._numbers = itertools.count(1)
        self._ended = threading.Condition()
        scripts = {"probe-run": self._run, "probe-look": self._look, "probe-stop": self._stop}
        self.server.actions = {**self.server.actions, **scripts}

    def happen(self, app: str, what: str, record: Any, now_ns: int = 0) -> None:
        """Have an app take an event, or ask for an effect."""
        for probe, about in list(self.ran.values()):
            if about["ended"] is None:
                probe.fire(app, what, record, now_ns)

    def confirm(self, dpid: int, took_us: int) -> None:
        """Have a switch confirm edits after so long."""
        self.happen("datapath", "effect", ApplyEdits(dpid, 100, ()), 0)
        self.happen("datapath", "event", BarrierReplied(dpid, 100), took_us * 1000)

    def receive(self, dpid: int) -> None:
        """Have a packet come."""
        self.happen("multicast", "event", PacketReceived(dpid, 1, b"", False))

    def end(self, number: str, why: str) -> None:
        probe, about = self.ran[number]
        if about["ended"] is None:
            probe.end(0)
            with self._ended:
                about["ended"] = why
                self._ended.notify_all()

    def why_ended(self, number: str) -> str | None:
        """Return why a script has ended, when it has."""
        with self._ended:
            self._ended.wait_for(lambda: self.ran[number][1]["ended"] is not None, HANG_S)
        why: str | None = self.ran[number][1]["ended"]
        return why

    def _run(self, fields: Mapping[str, Any]) -> Any:
        try:
            probe = Probe(load(fields["script"], recorded_points()))
        except ScriptFault as fault:
            raise QuestionRefused(str(fault), "script", "script-fault") from None
        number = str(next(self._numbers))
        about = {"id": number, "script": fields["script"], "points": len(probe.script.points), "by": fields["by"]}
        self.ran[number] = probe, {**about, "begun_s": 60.0, "for_s": fields["for_s"], "ended": None}
        probe.begin(0)
        return self.ran[number][1]

    def _look(self, fields: Mapping[str, Any]) -> Any:
        if fields["id"] not in self.ran:
            raise QuestionRefused(f"no script {fields['id']!r} runs", "id")
        probe, about = self.ran[fields["id"]]
        (known,) = fields.get("lines") or (0,)
        return {**about, "lines": [len(probe.run.lines)], **document([found(probe.run, None, known)])}

    def _stop(self, fields: Mapping[str, Any]) -> Any:
        self.end(fields["id"], "it was stopped")
        return self._look(fields)


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[LookingController]:
    controller = LookingController(tmp_path / "vsrt.sock")
    controller.start()
    yield controller
    controller.stop()


@pytest.fixture
def site(fabric: LookingController, tmp_path: Path) -> Iterator[str]:
    token = tmp_path / "token"
    token.touch(mode=0o600)
    token.write_text(TOKEN + "\n")
    with served(fabric.path, token_file=str(token)) as address:
        yield address


def shot(page: Page, name: str) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


def begin(page: Page, script: str = "") -> None:
    """Have the script that is in its field run."""
    if script:
        page.get_by_role("textbox", name="Script").fill(script)
    page.get_by_role("button", name="Run…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("POST /api/v1/probes")
    if dialog.get_by_label("Token").count():
        dialog.get_by_label("Token").fill(TOKEN)
    dialog.get_by_role("button", name="Run", exact=True).click()


def table(page: Page, name: str) -> Locator:
    return page.get_by_role("table", name=name, exact=True)


def test_a_script_of_the_library_runs_and_its_figures_grow(open_page: OpenPage, fabric: LookingController) -> None:
    page = open_page()
    page.get_by_role("link", name="Probes").click()
    question = page.get_by_label("Question")
    question.get_by_role("option", name="How long does each switch take").wait_for(state="attached")
    question.select_option("barrier-latency")
    expect(page.get_by_role("textbox", name="Script")).to_have_value(library()["barrier-latency"].text)
    begin(page)
    view = page.get_by_role("region", name="What was found")
    expect(view).to_contain_text("Runs, for 60 s at most")
    assert fabric.ran["1"][1]["by"] == "operator"
    for took_us in (300, 310, 1500):
        fabric.confirm(3, took_us)
    row = table(page, "wait_us").get_by_role("row").filter(has=page.get_by_role("rowheader", name="3", exact=True))
    expect(row.get_by_role("cell")).to_have_text(["3", "703", "300", "1500"])
    histogram = table(page, "3").get_by_role("row")
    expect(histogram).to_have_text(["FromSamples", "2562", "1\u202f0241"])
    expect(view).to_contain_text("6 firings")
    fabric.confirm(3, 320)
    expect(histogram.nth(1)).to_have_text("2563")
    shot(page, "probes")
    page.get_by_role("link", name="Policy").click()
    assert fabric.why_ended("1") == "it was stopped"


def test_a_text_is_refused_with_its_place_then_runs_prints_and_is_stopped(
    open_page: OpenPage, fabric: LookingController, faults: list[str]
) -> None:
    page = open_page("#/probes")
    begin(page, "begin {\n  x = 1;\n}")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Refused (409). line 2, column 3: x is no variable")
    assert [fault for fault in faults if "409" not in fault] == []
    faults.clear()
    dialog.get_by_role("button", name="Cancel").click()
    begin(page, 'multicast:event:PacketReceived { print("<b>%d</b>", dpid); }')
    view = page.get_by_role("region", name="What was found")
    expect(view).to_contain_text("Runs")
    fabric.receive(7)
    expect(view.get_by_label("Printed")).to_have_text("<b>7</b>")
    fabric.receive(8)
    view.get_by_role("button", name="Stop").click()
    expect(view).to_contain_text("Ended: it was stopped")
    expect(view.get_by_label("Printed")).to_have_text("<b>7</b>\n<b>8</b>")
    assert view.get_by_role("button", name="Stop").count() == 0
    begin(page, COUNT)
    expect(view).to_contain_text("Runs")
    fabric.receive(7)
    expect(table(page, "packets").get_by_role("cell")).to_have_text(["1"])
    begin(page, 'multicast:event:PacketReceived { print("third"); }')
    assert fabric.why_ended("2") == "it was stopped"
    fabric.receive(7)
    expect(view.get_by_label("Printed")).to_have_text("third")
    assert table(page, "packets").count() == 0
    fabric.end("3", "its time is over")
    expect(view).to_contain_text("Ended: its time is over")


def test_what_was_found_stays_when_the_controller_is_gone_and_when_it_knows_the_script_no_more(
    open_page: OpenPage, fabric: LookingController, faults: list[str]
) -> None:
    page = open_page("#/probes")
    begin(page, COUNT)
    expect(page.get_by_role("region", name="What was found")).to_contain_text("Runs")
    for _ in range(2):
        fabric.receive(7)
    expect(table(page, "packets").get_by_role("cell")).to_have_text(["2"])
    fabric.stop()
    note = page.get_by_role("main").get_by_role("alert")
    expect(note).to_contain_text("the controller does not answer")
    expect(note).to_contain_text("No such file or directory. What was found before is shown.")
    expect(page.get_by_role("region", name="What was found")).to_contain_text("Not heard of")
    expect(table(page, "packets").get_by_role("cell")).to_have_text(["2"])
    shot(page, "probes-gone")
    fabric.ran.clear()
    fabric.start()
    expect(note).to_contain_text("no script '1' runs")
    expect(table(page, "packets").get_by_role("cell")).to_have_text(["2"])
    page.get_by_role("link", name="Policy").click()
    assert all("503" in fault or "409" in fault for fault in faults), faults
    faults.clear()


@pytest.mark.parametrize("size", [(1280, 800), (360, 740)])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_of_it_hinders_those_who_cannot_see_well(
    open_page: OpenPage, fabric: LookingController, size: tuple[int, int], theme: Any
) -> None:
    base = pytest.importorskip("axe_playwright_python.base")
    page = open_page("#/probes", size=size, theme=theme)
    begin(page, library()["barrier-latency"].text)
    expect(page.get_by_role("region", name="What was found")).to_contain_text("Runs")
    for took_us in (300, 1500):
        fabric.confirm(3, took_us)
    expect(table(page, "3")).to_be_visible()
    page.evaluate(base.AXE_FILE_PATH.read_text(encoding="utf-8"))
    result = page.evaluate("""() => axe.run(document, {resultTypes: ["violations"]})""")
    grave = [found for found in result["violations"] if found["impact"] in ("serious", "critical")]
    assert [(found["id"], found["nodes"][0]["html"][:200]) for found in grave] == []
    shot(page, f"probes-{size[0]}-{theme}")
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
