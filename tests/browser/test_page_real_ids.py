"""The page with datapath ids as they come: long, without names, beyond what a JavaScript number holds."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Page, expect

from fed_controller import FedController
from page_fabric import SCREENSHOTS, TOKEN, documents
from served_dashboard import served

OpenPage = Callable[..., Page]

REAL = {dpid: 0x00A2F1C3D4E50000 + dpid for dpid in range(1, 21)}
"""Datapath ids of 17 decimal digits, which no JavaScript number holds exactly."""


def renamed(value: Any) -> Any:
    """Documents of the fabric with real datapath ids and without names."""
    if isinstance(value, list):
        return [renamed(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for name, each in value.items():
        if name in ("dpid", "dpid_a", "dpid_b") and each is not None:
            found[name] = REAL[each]
        elif name in ("links", "detached") and isinstance(each, list):
            found[name] = [[REAL[dpid] for dpid in link] for link in each]
        elif name == "name" and "tier" in value:
            found[name] = None
        else:
            found[name] = renamed(each)
    return found


class RealController(FedController):
    """The same fabric with datapath ids as they come."""

    def __init__(self, path: Path) -> None:
        told = {name: renamed(section) for name, section in documents().items() if name != "links"}
        told["switches"] = {str(fields["dpid"]): fields for fields in told["switches"].values()}
        told["ports"] = {f"{fields['dpid']}:{fields['port_no']}": fields for fields in told["ports"].values()}
        told["links"] = {
            "{dpid_a}:{port_a}-{dpid_b}:{port_b}".format(**fields): fields
            for fields in map(renamed, documents()["links"].values())
        }
        super().__init__(path, told)


@pytest.mark.parametrize("size", [(1280, 800), (360, 720)], ids=["laptop", "phone"])
def test_real_datapath_ids_lose_no_digit_and_fit(
    open_page: OpenPage, faults: list[str], tmp_path: Path, size: tuple[int, int]
) -> None:
    controller = RealController(tmp_path / "vsrt.sock")
    controller.start()
    page, dpid = open_page(size=size), REAL[13]
    token = tmp_path / "token"
    token.touch(mode=0o600)
    token.write_text(TOKEN + "\n")
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    with served(controller.path, token_file=str(token)) as address:
        for view in (
            *("topology", "topology?select=group/239.1.1.1", f"topology?select=switch/{dpid}", "switches", "links"),
            *(f"switches?select=switch/{dpid}", f"ports?select=port/{dpid}:1", "members", "topology?as=table"),
            f"links?select=link/{REAL[5]}:3-{dpid}:3",
        ):
            page.goto(f"{address}/#/{view}")
            page.reload()
            expect(page.get_by_role("banner").get_by_role("status")).to_have_text("Ready")
            expect(page.locator("body")).not_to_contain_text("undefined")
            name = re.sub(r"[^a-z]+", "-", view)
            page.screenshot(path=SCREENSHOTS / f"real-{size[0]}-{name}.png")
            beyond = page.evaluate(
                """() => [...document.querySelectorAll("aside.panel .panel-body, main, .top")]
                    .filter((box) => box.scrollWidth > box.clientWidth + 1).map((box) => box.className)"""
            )
            assert beyond == [], view
        page.goto(f"{address}/#/switches?select=switch/{dpid}")
        expect(page.get_by_role("heading", name=f"Switch {dpid:016x}")).to_be_visible()
        page.locator("aside.panel").get_by_role("button", name="Drain").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Token").fill(TOKEN)
        dialog.get_by_role("button", name="Drain").click()
        expect(dialog).to_contain_text("Done.")
        assert controller.asked == [("switch-drain", {"dpid": dpid})]
        page.goto("about:blank")
    controller.stop()
    faults.clear()
