"""The dashboard before a live controller and real switches: a join is streamed, a drain moves trees."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from apps.emulation.controller import ControllerProcess, Framework
from apps.emulation.network import CONTROLLER_PORT, EmulatedFabric
from topology.graph import Graph

pytestmark = [pytest.mark.emulation, pytest.mark.unhurried]

TOKEN = "correct-horse-battery-staple"
PORT = 18481
URL = f"http://127.0.0.1:{PORT}"
GROUP = "239.1.1.1"
WAIT_S = 60.0


@pytest.fixture(scope="module")
def fabric(diamond: Graph) -> Iterator[EmulatedFabric]:
    with EmulatedFabric(diamond) as fabric:
        fabric.wait_addresses()
        yield fabric


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("dashboard")
    token = directory / "token"
    token.touch(mode=0o600)
    token.write_text(TOKEN)
    policy = directory / "policy.yaml"
    policy.write_text(
        "version: 1\ndefault: allow\n"
        "monitor: {interval_s: 1, prometheus: {port: 0}}\n"
        f"dashboard: {{port: {PORT}, token_file: {token}}}\n"
    )
    return policy


@pytest.fixture(scope="module")
def controller(fabric: EmulatedFabric, framework: Framework, policy: Path) -> Iterator[ControllerProcess]:
    dashboard = "apps.dashboard.app" if framework == "ryu" else "dashboard"
    apps = ("multicast", "unicast", "monitor", dashboard)
    with ControllerProcess(CONTROLLER_PORT, framework=framework, policy=policy, apps=apps) as controller:
        controller.wait_discovered(fabric)
        wait_until(lambda: get("status"))
        yield controller


def get(path: str) -> Any:
    answer = httpx.get(f"{URL}/api/v1/{path}", trust_env=False, timeout=WAIT_S)
    assert answer.status_code == 200, answer.text
    return answer.json()


def wait_until(reached: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + WAIT_S
    while True:
        with suppress(httpx.TransportError, AssertionError):
            if found := reached():
                return found
        assert time.monotonic() < deadline
        time.sleep(0.05)


def measured(ports: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The ports with a rate, once there are some of each role."""
    found = [port for port in ports if port.get("rx_bps") is not None]
    return found if {port["role"] for port in found} == {"edge", "trunk"} else []


def events(sections: str) -> Iterator[tuple[str, Any]]:
    with httpx.stream("GET", f"{URL}/api/v1/stream?sections={sections}", trust_env=False, timeout=WAIT_S) as answer:
        kind = ""
        for line in answer.iter_lines():
            if line.startswith("event: "):
                kind = line.removeprefix("event: ")
            elif line.startswith("data: "):
                yield kind, json.loads(line.removeprefix("data: "))["sections"]


def test_the_fabric_is_shown_as_it_is(controller: ControllerProcess, fabric: EmulatedFabric) -> None:
    wanted = {"connected": True, "ready": True, "switches": 4, "links": fabric.switch_link_count(), "edge_ports": 4}
    wait_until(lambda: wanted.items() <= get("status").items())
    assert {switch["dpid"] for switch in get("switches")["items"]} == {
        fabric.dpid(name) for name in fabric.graph.switches()
    }
    rates = wait_until(lambda: measured(get("ports")["items"]))
    busy = rates[0]
    history = get(f"ports/{busy['dpid']}/{busy['port_no']}/history?metric=rx_bps")
    assert history["metric"] == "rx_bps"
    assert all(point["time_s"] > 1e9 for point in history["points"])
    assert get("policy")["text"].startswith("version: 1")
    assert httpx.get(URL, trust_env=False, timeout=WAIT_S).headers["content-type"].startswith("text/html")


def test_a_join_is_streamed_and_a_drain_moves_the_tree(controller: ControllerProcess, fabric: EmulatedFabric) -> None:
    stream = events("groups")
    assert next(stream)[0] == "snapshot"
    fabric.join("h1", GROUP)
    fabric.join("h3", GROUP)

    def tree_of(*members: str) -> set[int]:
        wanted = {fabric.node(name).MAC() for name in members}
        for _, sections in stream:
            for found in sections["groups"]["put"]:
                if found["id"] == GROUP and {member["mac"] for member in found["members"]} == wanted:
                    return {dpid for link in found["links"] for dpid in link}
        raise AssertionError("the stream ended")

    before = tree_of("h1", "h3")
    spines = {fabric.dpid("s3"), fabric.dpid("s4")}
    (used,) = before & spines
    good = {"Authorization": f"Bearer {TOKEN}"}
    refused = httpx.put(f"{URL}/api/v1/switches/{used}/drain", trust_env=False, timeout=WAIT_S)
    assert refused.status_code == 401
    answer = httpx.put(f"{URL}/api/v1/switches/{used}/drain", headers=good, trust_env=False, timeout=WAIT_S)
    assert (answer.status_code, answer.json()["drained"]) == (200, True)
    after = wait_until(lambda: (tree := tree_of("h1", "h3")) & spines == spines - {used} and tree)
    assert used not in after
    wait_until(lambda: get(f"switches/{used}")["drained"])
    undone = httpx.delete(f"{URL}/api/v1/switches/{used}/drain", headers=good, trust_env=False, timeout=WAIT_S)
    assert undone.status_code == 200
    fabric.restore()


@pytest.mark.each_framework
def test_the_server_ends_with_the_controller(controller: ControllerProcess) -> None:
    children = Path(f"/proc/{controller.pid}/task/{controller.pid}/children").read_text().split()
    assert children
    controller.kill()

    def gone() -> bool:
        with suppress(httpx.TransportError):
            httpx.get(URL, trust_env=False)
            return False
        return not any(Path(f"/proc/{pid}").exists() for pid in children)

    wait_until(gone)
