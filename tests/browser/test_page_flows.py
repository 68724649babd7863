"""What operators do with the page, in a browser, against the real server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Locator, Page, expect

from fed_controller import event
from page_fabric import INTRUDER, RECEIVER, SCREENSHOTS, TOKEN, TREE, DrainedController
from served_dashboard import served

OpenPage = Callable[..., Page]

ROOT = Path(__file__).parents[2]
VIEWS = (
    "groups",
    "members",
    "switches",
    "ports",
    "links",
    "hosts",
    "tables",
    "events",
    "alarms",
    "cleared-alarms",
    "anomalies",
    "allocations",
    "policy",
)
DETAILS = ("group/239.1.1.1", "switch/5", "port/13:1", "link/3:1-5:1", "host/00:00:00:00:00:01", "allocation/1")
EXAMINED = (
    *("topology", "topology?as=table&select=group/239.1.1.1", "switches?select=switch/5", "ports?select=port/13:1"),
    *("allocations?select=allocation/1", "policy"),
)
HOSTILE = "<img src=x onerror=\"document.title='taken'\"><b>bold</b>"


def row(page: Page, text: str) -> Locator:
    return page.get_by_role("row").filter(has_text=text)


def panel(page: Page) -> Locator:
    return page.locator("aside.panel")


def marked_px(page: Page) -> int:
    """How many pixels of the drawing have the colour of a tree."""
    count: int = page.evaluate(
        """() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => {
            const canvas = document.querySelector(".drawing canvas");
            const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            const [red, green, blue] = getComputedStyle(canvas).getPropertyValue("--tree").trim()
                .slice(1).match(/../g).map((octet) => parseInt(octet, 16));
            let count = 0;
            for (let at = 0; at < data.length; at += 4)
                if (data[at] === red && data[at + 1] === green && data[at + 2] === blue) count += 1;
            resolve(count);
        })))"""
    )
    return count


def test_a_port_is_shown_with_its_vlans_and_the_routers_there(open_page: OpenPage) -> None:
    shown = panel(open_page("#/ports?select=port/13:1"))
    expect(shown).to_contain_text("storage + 20,30-35 tagged")
    expect(shown).to_contain_text("IPv4 in VLAN 20")


def test_a_join_appears_by_itself(open_page: OpenPage, fabric: DrainedController) -> None:
    page = open_page("#/groups")
    members = row(page, "239.1.1.2").get_by_role("gridcell").nth(1)
    expect(members).to_have_text("0")
    fabric.change("groups", "239.1.1.2", members=[RECEIVER], size=1)
    expect(members).to_have_text("1")
    fabric.change("groups", "239.1.1.2", members=[], size=0)
    expect(members).to_have_text("0")


def test_a_selected_group_has_its_tree_marked_and_its_parties_listed(open_page: OpenPage) -> None:
    page = open_page()
    assert marked_px(page) == 0
    page.get_by_role("link", name="239.1.1.1", exact=True).click()
    expect(page.get_by_text("Tree of 239.1.1.1")).to_be_visible()
    assert marked_px(page) > 1000
    details = panel(page)
    expect(details.get_by_role("heading", name="Group 239.1.1.1")).to_be_visible()
    expect(details).to_contain_text(f"{len(TREE)} links")
    for title, who in (("Members 1", "10.0.0.1"), ("Senders 1", "10.0.0.5"), ("Refused 1", "10.0.0.6")):
        part = details.locator("section").filter(has=page.get_by_role("heading", name=title))
        expect(part.get_by_role("listitem")).to_contain_text(who)
    expect(page).to_have_url(re.compile(r"#/topology\?select=group/239\.1\.1\.1$"))
    page.get_by_role("link", name="Table").click()
    expect(page.get_by_role("grid", name="Links of the tree of 239.1.1.1")).to_have_attribute("aria-rowcount", "5")
    page.get_by_role("link", name="Drawing").click()
    page.get_by_role("button", name="Show no tree").click()
    expect(page.get_by_text("Tree of 239.1.1.1")).to_be_hidden()
    assert marked_px(page) == 0


def test_a_refusal_is_told_with_its_reason(open_page: OpenPage) -> None:
    page = open_page("#/events")
    row(page, "may not be a receiver").click()
    expect(panel(page)).to_contain_text("00:00:00:00:00:06 may not be a receiver of 239.1.1.1: default")
    panel(page).get_by_role("link", name="239.1.1.1", exact=True).click()
    expect(panel(page).locator(".is-refused-row")).to_contain_text(str(INTRUDER["ip"]))
    panel(page).get_by_role("link", name="why").click()
    expect(panel(page).get_by_role("heading", name="Event")).to_be_visible()
    page.goto(page.url.split("#")[0] + "#/members?search=refused")
    expect(row(page, "refused")).to_contain_text("s15:2")


def test_the_hottest_link_is_first(open_page: OpenPage, fabric: DrainedController) -> None:
    page = open_page("#/links")
    fabric.load("6:3-13:4", 71.0)
    fabric.load("2:3-9:2", 93.5)
    first = page.locator(".list-body .row").first
    expect(first).to_contain_text("s2:3 – s9:2")
    expect(first).to_contain_text("93.5 %")
    page.get_by_role("button", name="Utilisation").click()
    expect(page.get_by_role("columnheader", name="Utilisation")).to_have_attribute("aria-sort", "ascending")
    expect(first).not_to_contain_text("s2:3 – s9:2")
    page.get_by_role("link", name="Ports").click()
    page.get_by_role("button", name="Sending").click()
    expect(first).to_contain_text("s2:3")
    expect(page).to_have_url(re.compile("sort=-tx_utilisation_pct"))
    page.go_back()
    expect(page.get_by_role("heading", name="Links")).to_be_visible()


def test_a_switch_is_drained_with_the_right_token_only(
    open_page: OpenPage, fabric: DrainedController, faults: list[str]
) -> None:
    page = open_page("#/switches?select=switch/9")
    panel(page).get_by_role("button", name="Drain").click()
    dialog = page.get_by_role("dialog", name="Drain switch s9")
    expect(dialog).to_contain_text("PUT /api/v1/switches/0x0000000000000009/drain")
    dialog.get_by_label("Token").fill("not-the-token-of-this-server")
    dialog.get_by_role("button", name="Drain").click()
    expect(dialog).to_contain_text("Refused (401)")
    assert not fabric.documents["switches"]["9"]["drained"]
    dialog.get_by_label("Token").fill(TOKEN)
    dialog.get_by_role("button", name="Drain").click()
    expect(dialog).to_contain_text('"done": "switch-drain"')
    dialog.get_by_role("button", name="Close").click()
    expect(row(page, "drained")).to_contain_text("9")
    panel(page).get_by_role("button", name="Undrain").click()
    dialog = page.get_by_role("dialog", name="Undrain switch s9")
    expect(dialog.get_by_label("Token")).to_have_count(0)
    dialog.get_by_role("button", name="Undrain").click()
    expect(dialog).to_contain_text("Done.")
    dialog.get_by_role("button", name="Close").click()
    expect(panel(page).get_by_role("button", name="Drain", exact=True)).to_be_visible()
    assert fabric.asked[-2:] == [("switch-drain", {"dpid": 9}), ("switch-undrain", {"dpid": 9})]
    assert page.evaluate("localStorage.length + sessionStorage.length + document.cookie.length") == 0
    assert any("401" in fault for fault in faults)
    faults.clear()


def test_names_with_html_are_shown_as_text(open_page: OpenPage, fabric: DrainedController) -> None:
    mac = "00:00:00:00:00:10"
    before = fabric.documents["hosts"][mac], fabric.documents["policy"]["policy"]
    fabric.change("hosts", mac, ips=[HOSTILE])
    fabric.change("policy", "policy", text=f"version: 1 # {HOSTILE}\n")
    fabric.put(
        "groups", HOSTILE, {**fabric.documents["groups"]["239.1.1.2"], "group": HOSTILE, "unsupported": HOSTILE}
    )
    page = open_page(f"#/hosts?select=host/{mac}")
    expect(row(page, HOSTILE)).to_be_visible()
    expect(panel(page)).to_contain_text(HOSTILE)
    for view in ("groups", "policy", "topology"):
        page.locator(".views").get_by_role("link", name=re.compile(view, re.IGNORECASE)).click()
        expect(page.get_by_text(HOSTILE).first).to_be_visible()
    assert page.locator("img[src=x], main b").count() == 0
    expect(page).to_have_title("Topology – vsrt")
    fabric.put("hosts", mac, before[0])
    fabric.put("policy", "policy", before[1])
    fabric.put("groups", HOSTILE, None)


def test_rules_that_never_decided_are_grey_in_their_list_and_in_the_file(
    open_page: OpenPage, fabric: DrainedController
) -> None:
    before = fabric.documents["policy"]["policy"]
    rest = "role: sender, groups: [239.1.0.0/16], hosts: any, action: allow"
    text = f"version: 1\nrules:\n  - {{name: idle, {rest}}}\n  - {{name: busy, {rest}}}\n"
    fabric.put("policy", "policy", {**before, "text": text})
    for name, allow in (("idle", 0), ("busy", 3)):
        fabric.put("rules", name, {"rule": name, "allow": allow, "deny": 0, "since_s": 60.0})
    page = open_page("#/policy")
    greys = {
        name: [row.evaluate("one => getComputedStyle(one.firstElementChild).color") for row in rows.all()]
        for name in ("idle", "busy")
        for rows in [page.locator("tr, .source li").filter(has_text=name)]
    }
    assert len(greys["idle"]) == len(greys["busy"]) == 2
    assert len(set(greys["idle"])) == 1
    assert not set(greys["idle"]) & set(greys["busy"])
    fabric.change("rules", "idle", deny=1)
    expect(page.locator(".is-unused").filter(has_text="idle")).to_have_count(0)
    fabric.put("policy", "policy", before)
    for name in greys:
        fabric.put("rules", name, None)


def test_tenants_and_addresses_that_nobody_uses_are_in_the_policy_s_view(
    open_page: OpenPage, fabric: DrainedController
) -> None:
    before = fabric.documents["policy"]["policy"]
    text = "version: 1\ntenants: {lab: [10.99.0.0/16]}\ndefault: deny\n"
    fabric.put("policy", "policy", {**before, "text": text, "loaded_s": 61})
    page = open_page("#/policy")
    row = page.get_by_role("row").filter(has_text="None of the hosts that the controller knows is of it.")
    expect(row).to_contain_text("lab")
    expect(row).to_have_class("is-unused")
    fabric.put("policy", "policy", before)
    expect(row).to_have_count(0)


def test_the_policy_s_view_tells_whom_a_staged_policy_would_refuse(
    open_page: OpenPage, fabric: DrainedController
) -> None:
    summary = {"would_be": "alike", "count": 7, "beyond": 2, "path": HOSTILE, "errors": [HOSTILE]}
    fabric.put("staged", "alike", {**summary, "loaded_s": 1.79e9})
    told = {"would_be": "refused", "role": "receiver", "group": "239.1.1.1", "ip": "10.0.0.7", "rule": "default"}
    fabric.put("staged", "one", {**told, "staged_rule": "default", "count": 3})
    page = open_page("#/policy")
    told_of = page.get_by_role("row").filter(has_text="239.1.1.1")
    expect(told_of).to_contain_text("refused")
    expect(told_of).to_contain_text("10.0.0.7")
    expect(page.get_by_role("alert")).to_contain_text(HOSTILE)
    expect(page.get_by_text("not told one by one: 2")).to_be_visible()
    fabric.put("staged", "alike", {**summary, "errors": []})
    expect(page.get_by_text("No file yet")).to_contain_text(HOSTILE)
    expect(page.get_by_text("would decide otherwise")).to_have_count(0)
    fabric.put("staged", "alike", None)
    fabric.put("staged", "one", None)
    expect(told_of).to_have_count(0)


@contextmanager
def controller(socket: Path) -> Iterator[None]:
    """Run a controller as a process of its own, whose end is sudden."""
    command = [sys.executable, "-m", "page_fabric", str(socket)]
    places = os.pathsep.join([str(ROOT), str(ROOT / "tests" / "support")])
    process = subprocess.Popen(command, stdin=subprocess.PIPE, env={**os.environ, "PYTHONPATH": places})
    try:
        yield
    finally:
        process.kill()
        process.communicate()


def test_controller_and_server_go_away_and_come_back(open_page: OpenPage, faults: list[str], tmp_path: Path) -> None:
    page, socket = open_page("#/switches"), tmp_path / "vsrt.sock"
    state = page.get_by_role("banner").get_by_role("status")
    with served(socket, alone=True) as address:
        with controller(socket):
            page.goto(f"{address}/#/switches")
            expect(state).to_have_text("Ready")
        expect(page.get_by_role("alert")).to_contain_text("The controller is away since")
        expect(state).to_have_text("Away")
        expect(row(page, "aggregation").first).to_be_visible()
        with controller(socket):
            expect(page.get_by_role("alert")).to_have_count(0)
            expect(state).to_have_text("Ready")
            row(page, "aggregation").first.click()
            panel(page).get_by_role("button", name="Drain").click()
            expect(page.get_by_role("dialog")).to_contain_text("no token is set")
            expect(page.get_by_role("dialog").get_by_role("button", name="Drain")).to_be_disabled()
            page.keyboard.press("Escape")
    expect(page.get_by_role("alert")).to_contain_text("No connection since")
    with controller(socket), served(socket, port=int(address.rpartition(":")[2])):
        expect(page.get_by_role("alert")).to_have_count(0)
        expect(state).to_have_text("Ready")
        page.goto("about:blank")
    assert all("Failed to load" in fault or "ERR_" in fault for fault in faults)
    faults.clear()


def test_members_are_those_that_receive(open_page: OpenPage) -> None:
    page = open_page("#/members")
    expect(page.locator(".views").get_by_role("link", name="Members")).to_have_text("Members1")
    expect(page.locator(".bar").get_by_role("status")).to_have_text("1 member, 1 sender, 1 refusal")
    expect(row(page, "refused")).to_contain_text("default")
    expect(row(page, "refused")).not_to_contain_text("any source")


def test_there_is_one_age_of_counters(open_page: OpenPage, fabric: DrainedController) -> None:
    now_s = time.time()
    fabric.change("switches", "13", answered_s=now_s - 7)
    fabric.change("ports", "13:1", sampled_s=now_s - 27)
    page = open_page("#/ports?select=port/13:1")
    age = re.compile(r"\d+ s old")
    expect(page.locator(".freshness")).to_have_text(re.compile(f"Counters {age.pattern}"))
    expect(panel(page)).to_contain_text(age)
    both = "[...document.body.innerText.matchAll(/(\\d+) s old/g)].map(([, age_s]) => Number(age_s))"
    page.wait_for_function(f"() => {both}.every((age_s) => age_s >= 7)")
    for _ in range(3):
        header_s, panel_s = page.evaluate(both)
        assert header_s == panel_s <= time.time() - now_s + 7.5
        page.wait_for_function(f"() => {both}.every((age_s) => age_s > {header_s})")
    fabric.change("switches", "13", answered_s=None)


@pytest.mark.parametrize("ahead_ms", [-3_600_600, 0, 3_600_300])
def test_ages_go_by_the_clock_of_the_server(open_page: OpenPage, fabric: DrainedController, ahead_ms: int) -> None:
    page = open_page("#/switches?select=switch/13", ahead_ms=ahead_ms)
    now_s = """async () => {
        const {age_s} = await import("/static/js/clock.js");
        document.dispatchEvent(new Event("visibilitychange"));
        return age_s(0);
    }"""
    late_s, number, deadline_s = 1.0, 0, time.monotonic() + 10
    while late_s > 0.1:
        assert time.monotonic() < deadline_s, f"the page's clock is {late_s} s late"
        number += 1
        fabric.change("switches", "13", name=f"tor{number}")
        expect(panel(page).get_by_role("heading", level=2)).to_have_text(f"Switch tor{number}")
        before_s = time.time()
        shown_s = page.evaluate(now_s)
        assert shown_s <= time.time() + 0.002, "both clocks tell whole milliseconds"
        late_s = before_s - shown_s
    fabric.change("switches", "13", name="s13")


def test_a_switch_that_is_gone_is_shown_so_until_it_is_forgotten(
    open_page: OpenPage, fabric: DrainedController
) -> None:
    page = open_page("#/switches")
    state = page.get_by_role("banner").get_by_role("status")
    before = dict(fabric.documents["switches"]["9"])
    fabric.change("switches", "9", connected=False, in_sync=False, disconnected_s=60.0)
    fabric.change("status", "status", ready=False, not_ready_reason="switch 9 is not connected")
    expect(state).to_have_text("Not ready: switch 9 is not connected")
    expect(row(page, "not connected")).to_contain_text("9")
    row(page, "not connected").click()
    expect(panel(page)).to_contain_text("since 1970-01-01")
    panel(page).get_by_role("button", name="Forget").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Token").fill(TOKEN)
    dialog.get_by_role("button", name="Forget").click()
    expect(dialog).to_contain_text("Done.")
    assert fabric.asked[-1] == ("switch-forget", {"dpid": 9})
    page.keyboard.press("Escape")
    fabric.put("switches", "9", None)
    fabric.change("status", "status", ready=True, not_ready_reason=None)
    expect(state).to_have_text("Ready")
    expect(panel(page)).to_contain_text("is not there, or no longer")
    fabric.put("switches", "9", before)


def test_all_is_reached_by_keys(open_page: OpenPage) -> None:
    page = open_page()
    press = page.keyboard.press
    press("Tab")
    expect(page.get_by_role("link", name="Skip to the view")).to_be_focused()
    press("Enter")
    expect(page.locator("#main")).to_be_focused()
    drawing = page.get_by_role("application")
    for _ in range(4):
        press("Tab")
        if drawing.evaluate("element => element === document.activeElement"):
            break
    expect(drawing).to_be_focused()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        press(key)
    expect(page.locator("[aria-live=polite]")).to_have_text(re.compile("switch s7, aggregation, in sync, 0 hosts"))
    press("Enter")
    expect(page.get_by_role("heading", name="Switch s7")).to_be_visible()
    press("Escape")
    expect(page.get_by_role("heading", name="Switch s7")).to_have_count(0)
    page.locator(".views").get_by_role("link", name="Ports").focus()
    press("Enter")
    page.get_by_role("grid", name="Ports").focus()
    for key in ("End", "ArrowUp", "ArrowDown", "Enter"):
        press(key)
    expect(page.get_by_role("heading", name="Port s20:4")).to_be_visible()
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    page.get_by_role("button", name="Make it a router port").focus()
    press("Enter")
    expect(page.get_by_role("dialog").get_by_label("Token")).to_be_focused()
    press("Escape")
    expect(page.get_by_role("button", name="Make it a router port")).to_be_focused()


def test_what_is_critical_is_said(open_page: OpenPage, fabric: DrainedController) -> None:
    page = open_page()
    said = page.locator("[aria-live=polite]")
    expect(said).to_have_text("")
    lost = event(300, "switch 9 is gone", kind="switch-down", severity="critical", state="raised", dpid=9)
    fabric.put("events", "multicast-3", lost)
    expect(said).to_have_text("critical: switch 9 is gone")
    fabric.put("events", "multicast-3", None)


def test_a_port_has_its_history_and_what_was_normal(open_page: OpenPage) -> None:
    page = open_page("#/ports?select=port/13:1")
    history = panel(page).locator("section").filter(has=page.get_by_role("heading", name="History"))
    expect(history.get_by_role("img", name="Sending, rate")).to_be_visible()
    expect(history).to_contain_text("highest 6.90 Mbit/s; the band is what is normal")
    history.get_by_label("Metric").select_option("Errors, both directions")
    expect(history.get_by_role("img", name="Errors, both directions")).to_be_visible()


def test_a_port_has_the_history_of_any_stretch_that_the_files_hold(open_page: OpenPage) -> None:
    page = open_page("#/ports?select=port/13:1")
    history = panel(page).locator("section").filter(has=page.get_by_role("heading", name="History"))
    expect(history.get_by_role("img", name="over the last hour")).to_be_visible()
    expect(history.get_by_role("button", name="Later")).to_be_disabled()
    history.get_by_label("Stretch").select_option("day")
    expect(history.get_by_role("img", name="Sending, rate, over the last day")).to_be_visible()
    expect(history).to_contain_text("highest 12.0 Mbit/s; the band is what is normal")
    history.get_by_role("button", name="Earlier").click()
    expect(history.get_by_role("img", name="over an earlier day")).to_be_visible()
    expect(history).to_contain_text("Last 12.0 Mbit/s")
    history.get_by_role("button", name="Later").click()
    expect(history.get_by_role("img", name="over the last day")).to_be_visible()


def test_a_phone_needs_no_sideways_scrolling(open_page: OpenPage) -> None:
    page = open_page(size=(360, 720))
    site = page.url.split("#")[0]
    for view in ("topology", "topology?as=table", *VIEWS, *(f"topology?select={details}" for details in DETAILS)):
        page.goto(f"{site}#/{view}")
        expect(page.locator("h1")).to_be_visible()
        widths = page.evaluate(
            """[document.documentElement.scrollWidth,
                ...[...document.querySelectorAll(".list, .panel-body, .bar, .under")]
                .map((element) => element.scrollWidth - element.clientWidth)]"""
        )
        assert widths[0] == 360, view
        assert not any(widths[1:]), view


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_hinders_those_who_cannot_see_well(open_page: OpenPage, theme: str) -> None:
    base = pytest.importorskip("axe_playwright_python.base")
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if theme == "dark":
        options["runOnly"] = {"type": "rule", "values": ["color-contrast"]}
    page = open_page(theme=theme)
    page.evaluate(base.AXE_FILE_PATH.read_text(encoding="utf-8"))
    found: dict[str, list[Any]] = {}
    for view in EXAMINED if theme == "light" else EXAMINED[::2]:
        page.goto(f"{page.url.split('#')[0]}#/{view}")
        expect(page.locator("h1")).to_be_visible()
        result = page.evaluate("(options) => axe.run(document, options)", options)
        assert any(passed["id"] == "color-contrast" for passed in result["passes"])
        for violation in result["violations"]:
            if violation["impact"] in ("serious", "critical"):
                nodes = [node["failureSummary"] + node["html"][:200] for node in violation["nodes"][:3]]
                found[f"{view}: {violation['id']}"] = nodes
    assert found == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_screenshots_are_kept(open_page: OpenPage, theme: str) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page = open_page(theme=theme)
    for name, view in {
        "topology": "#/topology",
        "tree": "#/topology?select=group/239.1.1.1",
        "port": "#/ports?select=port/13:1",
        "policy": "#/policy",
        "phone": "#/topology?select=switch/5",
    }.items():
        if name == "phone":
            page.set_viewport_size({"width": 360, "height": 720})
        page.goto(page.url.split("#")[0] + view)
        expect(page.locator(".plot canvas")).to_have_count(int(name == "port"))
        page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")
        path = SCREENSHOTS / f"{name}-{theme}.png"
        page.screenshot(path=path)
        assert path.stat().st_size > 10_000
