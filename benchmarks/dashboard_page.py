"""The page in Chromium, over a synthetic fat tree: first paint, from a change to its being shown, the browser's load.

    PYTHONPATH=. python benchmarks/dashboard_page.py [--k 16] [--groups 1000] [--seconds 20] [--repeats 10] [--json]

The load is that of all processes of the browser, in percent of a core, without a graphics card: everything is painted
by the processor. The peer is a page that asks the API for all ports once a second and shows nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from dashboard_fabric import Fabric, serve
from measure import Measurement, report
from playwright.sync_api import Browser, Page, sync_playwright

from served_dashboard import served

CHROMIUM = "/usr/bin/chromium-headless-shell"
SIZE = {"width": 1360, "height": 820}
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
LINKS_PER_S = 60
SETTLE_S = 5.0
READY = """new Promise((done) => {
    const look = () => document.querySelector('.top .status')?.textContent === 'Ready'
        ? requestAnimationFrame(() => done(performance.now())) : requestAnimationFrame(look);
    look();
})"""
PEER = """setInterval(async () => {
    document.title = (await (await fetch('/api/v1/ports?limit=10000')).json()).items.length;
}, 1000)"""
FRAMES = """() => {
    window.frames_ms = [];
    let last = performance.now();
    const next = (now) => {
        window.frames_ms.push(now - last);
        last = now;
        requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
}"""
WATCH = """() => {
    const cell = () => document.querySelector('.list-body .row .cell:nth-child(2)').textContent;
    let shown = cell();
    const changes = [];
    new MutationObserver(() => {
        if (cell() === shown) return;
        shown = cell();
        requestAnimationFrame(() => changes.push(Date.now()));
    }).observe(document.querySelector('.list'), {subtree: true, childList: true, characterData: true});
    window.change = () => new Promise((done) => {
        const look = () => changes.length ? done(changes.shift()) : setTimeout(look, 20);
        look();
    });
}"""


class Traffic:
    """Once a second `count` links carry something else, until it is stopped."""

    def __init__(self, fabric: Fabric, count: int) -> None:
        self._fabric = fabric
        self._count = count
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        fabric = self._fabric
        links = list(fabric.documents["multicast"]["links"].values())
        while not self._end.wait(1.0):
            with fabric.lock:
                for index in fabric.generator.choice(len(links), self._count, replace=False):
                    link = links[index]
                    for end in "ab":
                        dpid, port_no = link[f"dpid_{end}"], link[f"port_{end}"]
                        fabric.put("monitor", "ports", f"{dpid}:{port_no}", fabric._rates(f"s{dpid}-eth{port_no}"))


def paints(browser: Browser, address: str, repeats: int) -> Iterator[tuple[float, float]]:
    """Milliseconds to the first contentful paint and to the whole fabric being drawn, with nothing cached."""
    for _ in range(repeats):
        context = browser.new_context(viewport=SIZE)  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(address)
        whole_ms = page.evaluate(READY)
        first_ms = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        yield first_ms, whole_ms
        context.close()


def delays(fabric: Fabric, page: Page, address: str, repeats: int) -> Iterator[float]:
    """Milliseconds from a host's join to its being in a list."""
    group = next(iter(fabric.documents["multicast"]["groups"]))
    page.goto(f"{address}/#/groups?search={group}")
    page.evaluate(READY)
    page.wait_for_selector(".list-body .row")
    page.evaluate(WATCH)
    for number in range(repeats):
        time.sleep(0.5 + 0.037 * number)
        before_ms = 1000 * time.time()
        with fabric.lock:
            fabric.toggle_member(group, len(fabric.hosts) - 1)
        yield page.evaluate("change()") - before_ms


def browser_ticks() -> int:
    """Clock ticks that this process's Chromium, all its processes together, has used."""
    parents, ticks, names = {}, {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                name, _, rest = (entry / "stat").read_text().rpartition(")")
            except OSError:
                continue
            fields = rest.split()
            names[int(entry.name)] = name.partition("(")[2]
            parents[int(entry.name)], ticks[int(entry.name)] = int(fields[1]), int(fields[11]) + int(fields[12])
    return sum(ticks[pid] for pid in ticks if "chrom" in names[pid] and os.getpid() in ancestors(pid, parents))


def ancestors(pid: int, parents: dict[int, int]) -> Iterator[int]:
    while pid := parents.get(pid, 0):
        yield pid


def loads(seconds: int, parts: int = 5) -> Iterator[float]:
    """Percent of a core that the browser uses, over equal parts of the time."""
    for _ in range(parts):
        ticks, start_s = browser_ticks(), time.monotonic()
        time.sleep(seconds / parts)
        yield 100 * (browser_ticks() - ticks) / TICKS_PER_S / (time.monotonic() - start_s)


def loaded(fabric: Fabric, page: Page, url: str, count: int, seconds: int, script: str | None = None) -> list[float]:
    """The browser's load with a page while so many links change each second."""
    traffic = Traffic(fabric, count)
    try:
        page.goto("about:blank")
        page.goto(url)
        if script:
            page.evaluate(script)
        else:
            page.evaluate(READY)
        time.sleep(SETTLE_S)
        return list(loads(seconds))
    finally:
        traffic.stop()


def frames(page: Page, url: str, move: Callable[[int], None], steps: int = 60) -> list[float]:
    """Milliseconds from frame to frame while something is moved."""
    page.goto("about:blank")
    page.goto(url)
    page.evaluate(READY)
    page.mouse.move(500, 400)
    page.evaluate(FRAMES)
    for step in range(steps):
        move(step)
    found: list[float] = page.evaluate("window.frames_ms.slice(1)")
    return found


def measured(browser: Browser, fabric: Fabric, address: str, seconds: int, repeats: int) -> list[Measurement]:
    first_ms, whole_ms = zip(*paints(browser, address, repeats), strict=True)
    page = browser.new_page(viewport=SIZE)  # type: ignore[arg-type]
    traffic = Traffic(fabric, LINKS_PER_S)
    delay_ms = list(delays(fabric, page, address, 2 * repeats))
    traffic.stop()
    traffic = Traffic(fabric, LINKS_PER_S)
    wheel = page.mouse.wheel
    zoom_ms = frames(page, address, lambda step: wheel(0, -60 if step < 30 else 60))
    scroll_ms = frames(page, f"{address}/#/ports", lambda step: wheel(0, 700))
    traffic.stop()
    many = len(fabric.documents["multicast"]["links"])
    cases: dict[str, Callable[[], list[float]]] = {
        "nothing changes": lambda: loaded(fabric, page, address, 0, seconds),
        f"{LINKS_PER_S} links/s": lambda: loaded(fabric, page, address, LINKS_PER_S, seconds),
        f"{LINKS_PER_S} links/s, a tree marked": lambda: loaded(
            fabric, page, f"{address}/#/topology?select=group/239.1.0.1", LINKS_PER_S, seconds
        ),
        f"{LINKS_PER_S} links/s, list of ports by rate": lambda: loaded(
            fabric, page, f"{address}/#/ports?sort=-tx_bps", LINKS_PER_S, seconds
        ),
        f"all {many} links each second": lambda: loaded(fabric, page, address, many, seconds),
        "peer: all ports asked for each second": lambda: loaded(
            fabric, page, f"{address}/static/favicon.svg", LINKS_PER_S, seconds, PEER
        ),
    }
    found = [
        Measurement("first paint", "ms", first_ms),
        Measurement("all drawn", "ms", whole_ms),
        Measurement("from a join to its being shown", "ms", delay_ms),
        Measurement("frame to frame, zooming the topology", "ms", zoom_ms),
        Measurement("frame to frame, scrolling the ports", "ms", scroll_ms),
    ]
    return found + [Measurement(f"load, {name}", "% of a core", case()) for name, case in cases.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--k", type=int, default=16)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=20, help="how long each load is measured")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    fabric = Fabric(args.k, args.groups, 1)
    link_count = len(fabric.documents["multicast"]["links"])
    if link_count < LINKS_PER_S:
        parser.error(f"--k: {LINKS_PER_S} links are to change each second, and this fabric has {link_count}")
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder) / "fabric.sock"
        stop = serve(fabric, socket)
        with served(socket) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM)
            found = measured(browser, fabric, address, args.seconds, args.repeats)
            browser.close()
        stop()
    report(found, as_json=args.json, source="dashboard_page")


if __name__ == "__main__":
    main()
