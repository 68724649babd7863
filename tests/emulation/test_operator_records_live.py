"""What operators say of a live fabric outlasts a crash: labels, which selectors choose by, and addresses of pools."""

from __future__ import annotations

import json
from typing import Any

import pytest

from how_to import wait
from several_controllers import vsrt
from topology.generators import make
from topology.graph import Graph

pytestmark = [pytest.mark.emulation, pytest.mark.each_framework, pytest.mark.unhurried]


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


def take(live: Any, pool: str, name: str) -> str:
    told = json.loads(vsrt(live.controller, "do", "address", "take", pool, "--name", name, "--json"))
    return str(told["address"])


def test_addresses_outlast_crash_and_reload_and_are_not_given_twice(live: Any) -> None:
    pools = "pools: {video: [239.10.0.0/29, 239.10.1.0/29], audio: [239.138.0.0/29]}\n"
    live.set_policy(live.policy.read_text() + pools)
    live.join("239.10.0.1", "h1")
    first = {name: take(live, "video", name) for name in ("cam1", "cam2")}
    assert first == {"cam1": "239.10.0.0", "cam2": "239.10.0.2"}
    assert take(live, "audio", "mic1") == "239.138.0.3"
    crash(live)
    assert {name: take(live, "video", name) for name in first} == first
    live.set_policy(live.policy.read_text().replace("239.10.0.0/29", "239.11.0.0/29"))
    assert {name: take(live, "video", name) for name in first} == first
    assert take(live, "video", "cam3") == "239.11.0.0"
    crash(live)
    shown = json.loads(vsrt(live.controller, "show", "addresses", "--json"))
    assert {(each["name"], each["address"], each["in_pool"]) for each in shown} == {
        ("cam1", "239.10.0.0", False),
        ("cam2", "239.10.0.2", False),
        ("cam3", "239.11.0.0", True),
        ("mic1", "239.138.0.3", True),
    }
    vsrt(live.controller, "do", "address", "release", "video", "--name", "cam1")
    crash(live)
    shown = json.loads(vsrt(live.controller, "show", "addresses", "--json"))
    assert sorted(each["name"] for each in shown) == ["cam2", "cam3", "mic1"]


def test_switches_say_what_they_are_and_hosts_in_which_version_they_report(live: Any, group: str) -> None:
    def versions() -> dict[int, dict[str, Any]]:
        found = json.loads(vsrt(live.controller, "show", "versions", "--json"))
        return {each["dpid"]: each for each in found}

    wait(lambda: all(each["hardware"] == "Open vSwitch" and each["software"] for each in versions().values()))
    seen = versions()
    assert sorted(seen) == sorted(live.fabric.dpid(switch) for switch in live.fabric.graph.switches())
    assert {(each["ofp_version"], each["igmp_version"], each["mld_version"]) for each in seen.values()} == {(4, 3, 2)}
    assert not any(each["older_hosts"] for each in seen.values())
    live.fabric.join("h1", group, igmp_version=2)
    wait(lambda: any(each["older_hosts"] for each in versions().values()))
    (hosts,) = (hosts for each in versions().values() for hosts in each["older_hosts"])
    assert (hosts["family"], hosts["version"]) == (4, 2)
