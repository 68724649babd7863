"""Pure parts of the page, by their modules in a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Browser, Page, expect

from page_fabric import DrainedController, fat_tree

OpenPage = Callable[..., Page]


@pytest.fixture(scope="module")
def run(browser: Browser, site: str) -> Iterator[Callable[..., Any]]:
    page = browser.new_page()
    page.goto(site)

    def evaluate(module: str, body: str, given: Any = None) -> Any:
        return page.evaluate(f"async (given) => {{ const m = await import('/static/js/{module}'); {body} }}", given)

    yield evaluate
    page.close()


def test_numbers_have_units(run: Callable[..., Any]) -> None:
    values = [0, 950, 1e3, 25.04e6, 999.6e6, 1e10, None]
    told = run("format.js", "return given.map(m.bps)", values)
    assert told == ["0 bit/s", "950 bit/s", "1.00 kbit/s", "25.0 Mbit/s", "1.00 Gbit/s", "10.0 Gbit/s", "–"]
    assert run("format.js", "return given.map(m.pct)", [0, 0.001, 0.02, 12.345, None]) == [
        *("0.0 %", "< 0.01 %", "0.02 %", "12.3 %", "–")
    ]
    assert run("format.js", "return [3, 119, 121, 86400, 999999].map(m.span)") == [
        "3 s",
        "119 s",
        "2 min",
        "24 h",
        "12 d",
    ]


def test_the_steps_of_utilisation(run: Callable[..., Any]) -> None:
    values = [None, 0, 0.99, 1, 19.9, 20, 59.9, 79.9, 80, 140]
    assert run("scale.js", "return given.map(m.stepOf)", values) == [-1, 0, 0, 1, 1, 2, 3, 4, 5, 5]
    widths = run("scale.js", "return m.STEPS.map((step) => step.width)")
    assert widths == sorted(set(widths))


def test_the_url_holds_the_view(run: Callable[..., Any]) -> None:
    route = {"view": "ports", "select": "port/1:2", "tree": "239.1.1.1", "search": "a&b=ä ", "sort": "-tx_bps"}
    there_and_back = "return m.parse(m.hashOf(given))"
    assert run("route.js", there_and_back, route) == {**route, "as": "", "least": ""}
    assert run("route.js", "return m.parse('#/nonsense?select=x').view") == "topology"


def test_lists_are_searched_and_sorted(run: Callable[..., Any]) -> None:
    rows = [
        {"id": "a", "n": 10, "ips": ["10.0.0.9"]},
        {"id": "b", "n": None},
        {"id": "c", "n": 9, "ips": ["10.0.0.10"]},
    ]
    by = "return m.sorted(given, [{key: 'n'}], %r).map((row) => row.id).join('')"
    assert run("list.js", by % "n", rows) == "cab"
    assert run("list.js", by % "-n", rows) == "acb"
    search = "return m.found(given, %r).map((row) => row.id).join('')"
    assert run("list.js", search % "10.0.0", rows) == "ac"
    assert run("list.js", search % "9 10.0.0.10", rows) == "c"
    assert run("list.js", search % "nobody", rows) == ""


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_events_are_read_however_they_are_cut(run: Callable[..., Any], size: int) -> None:
    text = (
        'event: snapshot\ndata: {"a":\ndata: 1}\n\n: still there\n\nevent: change\r\ndata: {}\r\n\r\ndata: plain\n\n'
    )
    body = """
        const found = [];
        const take = m.parser((name, data) => found.push([name, data]));
        for (let at = 0; at < given.text.length; at += given.size) take(given.text.slice(at, at + given.size));
        return found;
    """
    expected = [["snapshot", '{"a":\n1}'], ["change", "{}"], ["message", "plain"]]
    assert run("stream.js", body, {"text": text, "size": size}) == expected


def test_pods_stand_side_by_side_below_the_core(run: Callable[..., Any]) -> None:
    found = fat_tree()
    given = {name: list(found[name].values()) for name in ("switches", "links")}
    placed = run(
        "topology/layout.js",
        "const p = m.layout(given.switches, given.links, 1000, 600);"
        "return {nodes: [...p.nodes.values()], bands: p.bands, rows: p.rows.map((row) => row.label)}",
        given,
    )
    assert placed["rows"] == ["Core", "Aggregation", "ToR"]
    nodes = {node["dpid"]: node for node in placed["nodes"]}
    assert len(nodes) == 20
    for band, pod in zip(placed["bands"], range(4), strict=True):
        inside = {
            dpid for dpid, node in nodes.items() if band["x"] < node["x"] < band["x"] + band["w"] and node["row"]
        }
        assert inside == {5 + 2 * pod, 6 + 2 * pod, 13 + 2 * pod, 14 + 2 * pod}
    for one in nodes.values():
        assert one["w"] / 2 < one["x"] < 1000 - one["w"] / 2
        assert one["h"] / 2 < one["y"] < 600 - one["h"] / 2
        for other in nodes.values():
            apart = abs(one["x"] - other["x"]) >= one["w"] or abs(one["y"] - other["y"]) >= one["h"]
            assert one is other or apart


def test_a_fabric_without_tiers_is_a_ring(run: Callable[..., Any]) -> None:
    switches = [{"dpid": dpid, "tier": "switch", "level": 0} for dpid in range(1, 9)]
    nodes = run(
        *("topology/layout.js", "return [...m.layout(given, [], 800, 800).nodes.values()]", switches),
    )
    assert len({(round(node["x"]), round(node["y"])) for node in nodes}) == 8
    assert {round(((node["x"] - 400) ** 2 + (node["y"] - 400) ** 2) ** 0.5) for node in nodes} == {340}


def test_a_long_list_has_few_rows_in_the_document(open_page: OpenPage, fabric: DrainedController) -> None:
    for number in range(5000):
        fabric.documents["hosts"][f"h{number}"] = {"mac": f"h{number}", "dpid": 13, "port_no": 1, "ips": []}
    fabric.sections["hosts"].log.forget()
    page = open_page("#/hosts")
    grid = page.get_by_role("grid", name="Hosts")
    expect(grid).to_have_attribute("aria-rowcount", "5017")
    assert page.locator(".list-body .row").count() < 60
    grid.focus()
    page.keyboard.press("End")
    expect(page.locator(".row.is-active")).to_contain_text("h4999")
    assert page.locator(".list-body .row").count() < 60
