"""What operators say of a live fabric: labels outlast a crash of the controller, and selectors choose by them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from several_controllers import vsrt
from topology.generators import make
from topology.graph import Graph

pytestmark = [pytest.mark.emulation, pytest.mark.each_framework]


@pytest.fixture(scope="module")
def bench() -> tuple[Graph, dict[str, Any]]:
    return make("tree", {"depth": 2, "fanout": 2}), {}


def chosen(live: Any, selector: str, what: str = "switches") -> list[tuple[int, int | None]]:
    found = json.loads(vsrt(live.controller, "show", what, "--select", selector, "--json"))
    return [(document["dpid"], document.get("port_no")) for document in found]


def crash(live: Any) -> None:
    live.controller.kill()
    live.controller.start()
    live.controller.wait_discovered(live.fabric)


def test_labels_outlast_crash_and_reload_and_selectors_choose_by_them(live: Any) -> None:
    one, other = sorted(live.fabric.dpid(switch) for switch in live.fabric.graph.switches())[:2]
    live.set_policy(live.policy.read_text() + f"labels: {{{one}: {{rack: a}}, {other}: {{rack: a}}}}\n")
    vsrt(live.controller, "do", "label", "add", str(one), "rack=b7")
    vsrt(live.controller, "do", "label", "add", f"{other}:1", "room=x.1")
    assert chosen(live, "rack=b7") == [(one, None)]
    assert chosen(live, "rack=a") == [(other, None)]
    assert chosen(live, "room=x.1", "ports") == [(other, 1)]
    crash(live)
    assert chosen(live, "rack=b7") == [(one, None)]
    assert chosen(live, "room=x.1", "ports") == [(other, 1)]
    live.set_policy(live.policy.read_text().replace("rack: a", "rack: c"))
    assert (chosen(live, "rack=b7"), chosen(live, "rack=c")) == ([(one, None)], [(other, None)])
    vsrt(live.controller, "do", "label", "remove", str(one), "rack")
    vsrt(live.controller, "do", "label", "remove", f"{other}:1", "room")
    assert chosen(live, "rack=c") == [(one, None), (other, None)]
    crash(live)
    assert chosen(live, "rack=c") == [(one, None), (other, None)]
