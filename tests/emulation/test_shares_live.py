"""Monitors that share the switches through etcd: one ends, stops or hears nothing, and each octet counts once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from apps.emulation import processes
from apps.emulation.cluster import ETCD_PORT, EtcdServer
from apps.emulation.controller import ControllerProcess, Framework
from apps.emulation.network import CONTROLLER_PORT, EmulatedFabric
from apps.exporters.history import read_history
from apps.exporters.schema import RecordKind
from controller.cluster.keys import Keys
from controller.cluster.share_records import Share, read_share
from etcd_server import etcd_program
from how_to import blocks
from topology.graph import Graph, NodeKind

pytestmark = pytest.mark.emulation

FRAMEWORK = "os-ken"
FABRIC = "monitored"
INTERVAL_S = 3
PATIENCE_S = 120.0
SECOND_PORT = CONTROLLER_PORT + 1
POLICY = f"""\
version: 1
monitor: {{{{interval_s: {INTERVAL_S}, role: slave, share: cluster, prometheus: {{{{port: {{port}}}}}}}}}}
cluster: {{{{engine: etcd, endpoints: "http://127.0.0.1:{ETCD_PORT}", fabric: {FABRIC}, lease_s: 2}}}}
"""
SWITCHES = 6


class Monitored:
    """Six switches in a ring, two monitors and a store."""

    def __init__(self, fabric: EmulatedFabric, store: EtcdServer, monitors: dict[str, ControllerProcess]) -> None:
        self.fabric = fabric
        self.store = store
        self.monitors = monitors
        self.wait(lambda: [len(self.of(name)) for name in monitors] == [SWITCHES // 2] * 2, "each has half of all")

    def wait(self, reached: Callable[[], bool], what: str, within_s: float = PATIENCE_S) -> None:
        deadline = time.monotonic() + within_s
        while not reached():
            if time.monotonic() > deadline:
                logs = "\n".join(f"{name}:\n{monitor.log()}" for name, monitor in self.monitors.items())
                pytest.fail(f"not within {within_s} s: {what}; {self.shares()}; {self.polls()}\n{logs}")
            time.sleep(0.05)

    def shares(self) -> dict[str, Share]:
        """Return who polls which switch."""
        held = self.store.read(Keys(FABRIC).shares).held
        return {each.key: share for each in held if (share := read_share(each.value)) is not None}

    def of(self, name: str) -> set[str]:
        """Return the switches of a monitor."""
        return {dpid for dpid, share in self.shares().items() if share.owner == name and not share.former}

    def rows(self, *names: str) -> pa.Table:
        """Return the rows that count of the history of monitors, of all where none is named."""
        places = [self.monitors[name].directory / "state" / "history" for name in names or self.monitors]
        return read_history(places, RecordKind.COUNTERS, since_s=0, until_s=1e10)

    def polls(self, *names: str) -> dict[int, np.ndarray]:
        """Return when each switch was polled, in seconds."""
        table = self.rows(*names)
        at_s = table.column("timestamp").cast(pa.int64()).to_numpy() / 1e6
        dpid = table.column("dpid").to_numpy()
        return {int(each): np.unique(at_s[dpid == each]) for each in np.unique(dpid)}

    def wait_polled(self, count: int, since_s: float) -> None:
        """Wait until each switch was polled so often after a time."""

        def is_polled() -> bool:
            polls = self.polls()
            return len(polls) == SWITCHES and all((at_s > since_s).sum() >= count for at_s in polls.values())

        self.wait(is_polled, f"{count} polls of each switch")

    def check_rows(self) -> None:
        """End all; no row is there twice, none is left out, and what ports counted is known across each change."""
        for monitor in self.monitors.values():
            if monitor.running:
                monitor.stop()
        table, alone = self.rows(), sum(self.rows(name).num_rows for name in self.monitors)
        assert table.num_rows == alone
        keys = np.stack([table.column(name).to_numpy().astype(np.int64) for name in ("dpid", "port_no", "timestamp")])
        assert np.unique(keys, axis=1).shape[1] == table.num_rows
        octets = table.column("tx_bytes").to_numpy().astype(np.int64)
        same = (keys[:2, 1:] == keys[:2, :-1]).all(axis=0)
        assert (np.diff(octets)[same] >= 0).all()


@pytest.fixture
def monitored_with(framework: Framework, tmp_path: Path) -> Iterator[Callable[..., Monitored]]:
    """Set it up, with each monitor's metrics at the port that it is given, nowhere without one."""
    etcd_program()
    graph = Graph()
    names = [f"s{number}" for number in range(1, SWITCHES + 1)]
    for number, name in enumerate(names, 1):
        graph.add_node(name, NodeKind.TOR)
        graph.add_node(f"h{number}", NodeKind.HOST)
        graph.add_link(name, f"h{number}")
    for one, other in zip(names, [*names[1:], names[0]], strict=True):
        graph.add_link(one, other)
    with ExitStack() as stack:

        def start(name: str, port: int, metrics_port: int) -> ControllerProcess:
            policy = tmp_path / f"{name}.yaml"
            policy.write_text(POLICY.format(port=metrics_port))
            apps, env = ("monitor",), {"VSRT_MEMBER": name}
            process = ControllerProcess(port, framework=framework, policy=policy, apps=apps, env=env)
            return stack.enter_context(process)

        fabric = stack.enter_context(EmulatedFabric(graph, more_controller_ports=(SECOND_PORT,)))
        store = EtcdServer()
        stack.callback(store.close)
        store.launch()
        store.wait()

        def set_up(metrics_ports: Mapping[str, int]) -> Monitored:
            ports = (("m1", CONTROLLER_PORT), ("m2", SECOND_PORT))
            monitors = {name: start(name, port, metrics_ports.get(name, 0)) for name, port in ports}
            return Monitored(fabric, store, monitors)

        yield set_up


def controller_roles() -> list[str]:
    """Return the roles that switches have told so far, of each controller of each: Open vSwitch is a while behind."""
    return processes.run("ovs-vsctl", "--bare", "--columns=role", "list", "controller").split()


@pytest.fixture
def monitored(monitored_with: Callable[..., Monitored]) -> Monitored:
    return monitored_with({})


def test_the_share_of_one_that_is_killed_is_polled_by_the_other(monitored: Monitored) -> None:
    monitored.wait_polled(2, 0.0)
    monitored.wait(lambda: controller_roles() == ["slave"] * 2 * SWITCHES, "the role of each controller is told")
    its_own = monitored.of("m1")
    assert its_own and not its_own & monitored.of("m2")
    monitored.monitors["m1"].kill()
    killed_s = time.time()
    monitored.wait(lambda: len(monitored.of("m2")) == SWITCHES, "the other one has all")
    monitored.wait_polled(2, killed_s)
    monitored.check_rows()


def test_one_that_was_stopped_polls_nothing_that_is_another_ones_now(monitored: Monitored) -> None:
    monitored.wait_polled(1, 0.0)
    stopped = monitored.monitors["m1"].pid
    os.kill(stopped, signal.SIGSTOP)
    monitored.wait(lambda: len(monitored.of("m2")) == SWITCHES, "the other one has all")
    monitored.wait_polled(1, time.time())
    os.kill(stopped, signal.SIGCONT)
    monitored.wait(lambda: bool(monitored.of("m1")), "it has switches again")
    monitored.wait_polled(2, time.time())
    monitored.check_rows()


def order(monitored: Monitored, at: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command at the socket of a monitor."""
    command = [str(Path(sys.executable).parent / "vsrt"), *words, "--socket", str(monitored.monitors[at].socket)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.each_framework
def test_one_is_drained_before_it_is_serviced_and_no_poll_is_left_out(monitored: Monitored) -> None:
    monitored.wait_polled(1, 0.0)
    drained_s = time.time()
    done = order(monitored, "m2", "do", "drain-monitor", "m1")
    assert (done.returncode, done.stderr) == (0, ""), done
    assert f"monitor m1 is drained; its {SWITCHES // 2} switches go to others" in done.stdout
    monitored.wait(lambda: len(monitored.of("m2")) == SWITCHES, "the other one has all")
    monitored.wait_polled(2, time.time())
    shown = {line.split()[0]: line for line in order(monitored, "m1", "show", "cluster").stdout.splitlines()[1:]}
    assert "drained" in shown["m1"] and f"0 of {SWITCHES}" in shown["m1"]
    assert "divides" in "".join(shown.values()) and f"{SWITCHES} of {SWITCHES}" in shown["m2"]
    refused = order(monitored, "m1", "do", "drain-monitor", "m2")
    assert refused.returncode == 1 and "m2 is not drained: no other monitor" in refused.stderr, refused
    assert order(monitored, "m1", "do", "drain-monitor", "m9").returncode == 1
    back = order(monitored, "m1", "do", "undrain-monitor", "m1")
    assert (back.returncode, back.stderr) == (0, ""), back
    monitored.wait(lambda: len(monitored.of("m1")) == SWITCHES // 2, "it has its part again")
    monitored.wait_polled(2, time.time())
    counts = [int((at_s > drained_s).sum()) for at_s in monitored.polls().values()]
    assert max(counts) - min(counts) <= 1, "those that moved were polled as often as those that did not"
    monitored.check_rows()


PROMETHEUS_PORTS = {"m1": 9481, "m2": 9482}
PROMETHEUS_PORT = 9490
OCTETS = "vsrt_port_receive_bytes_total"


def series(name: str) -> list[dict[str, str]]:
    """Return the labels of what Prometheus has of a metric now, nothing while it starts."""
    try:
        query = urllib.parse.urlencode({"query": name})
        with urllib.request.urlopen(f"http://127.0.0.1:{PROMETHEUS_PORT}/api/v1/query?{query}", timeout=10) as answer:
            return [each["metric"] for each in json.load(answer)["data"]["result"]]
    except OSError:
        return []


def served(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:
        assert answer.headers["Content-Type"] == "application/json"
        return json.load(answer)


@pytest.mark.each_framework
def test_prometheus_is_told_of_the_monitors_that_are_there(
    framework: Framework, tmp_path: Path, monitored_with: Callable[..., Monitored]
) -> None:
    """The list is that of Prometheus' own documentation, and promtool reads it."""
    monitored = monitored_with(PROMETHEUS_PORTS)
    urls = {name: f"http://127.0.0.1:{port}/http_sd" for name, port in PROMETHEUS_PORTS.items()}
    targets = {name: served(url) for name, url in urls.items()}
    assert targets["m1"] == targets["m2"]
    assert [each["targets"] for each in targets["m1"]] == [["127.0.0.1:9481"], ["127.0.0.1:9482"]]
    assert {each["labels"]["__meta_vsrt_member"] for each in targets["m1"]} == {"m1", "m2"}
    (shown,) = (block for block in blocks("prometheus-and-grafana.md", "yaml") if "http_sd_configs" in block)
    for number, url in enumerate(urls.values(), 1):
        shown = shown.replace(f"http://192.0.2.{number}:9471/http_sd", url)
    config = tmp_path / "prometheus.yml"
    config.write_text(shown.replace("scrape_interval: 15s", "scrape_interval: 1s"))
    found = json.loads(processes.run("promtool", "check", "service-discovery", "--timeout=5s", str(config), "vsrt"))
    assert {(each["labels"]["member"], each["labels"]["__address__"]) for each in found} == {
        (name, f"127.0.0.1:{port}") for name, port in PROMETHEUS_PORTS.items()
    }
    prometheus = processes.start(
        [
            "prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address=127.0.0.1:{PROMETHEUS_PORT}",
        ],
        log=tmp_path / "prometheus.log",
    )
    try:

        def scraped() -> set[str]:
            return {each["member"] for each in series("vsrt_share_switches")}

        monitored.wait(lambda: scraped() == {"m1", "m2"}, "both are scraped")
        monitored.wait(lambda: len({each["dpid"] for each in series(OCTETS)}) == SWITCHES, "all switches are there")
        assert not any("instance" in each or "member" in each for each in series(OCTETS))
    finally:
        processes.stop(prometheus)
    monitored.monitors["m1"].kill()
    monitored.wait(lambda: len(served(urls["m2"])) == 1, "one that is gone is no target")
    monitored.store.servers[0].kill()
    assert [each["targets"] for each in served(urls["m2"])] == [["127.0.0.1:9482"]], "as the store said last"


def test_while_the_store_is_silent_each_goes_on(monitored: Monitored) -> None:
    before = monitored.shares()
    monitored.wait_polled(1, 0.0)
    os.kill(monitored.store.servers[0].pid, signal.SIGSTOP)
    try:
        monitored.wait_polled(3, time.time())
    finally:
        os.kill(monitored.store.servers[0].pid, signal.SIGCONT)
    monitored.wait_polled(2, time.time())
    assert {dpid: share.owner for dpid, share in monitored.shares().items()} == {
        dpid: share.owner for dpid, share in before.items()
    }
    monitored.check_rows()
