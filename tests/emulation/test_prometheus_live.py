"""Prometheus itself scrapes the endpoint, and answers what the dashboard asks."""

from __future__ import annotations

import json
import logging
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from apps.emulation import processes
from apps.emulation.controller import ControllerProcess, Framework
from apps.emulation.free_ports import free_port
from apps.emulation.network import CONTROLLER_PORT, EmulatedFabric
from apps.exporters.metrics import FAMILIES
from apps.exporters.prometheus_sink import PrometheusSink
from apps.exporters.settings import PrometheusSettings
from apps.exporters.sink import Overview, RatedSamples, SinkState, SwitchAnswering
from controller.performance.batch import SampleRates, Samples
from controller.performance.counters import COUNTER_COUNT, UNSUPPORTED, Counter
from controller.performance.ports import PortRows
from controller.wire.dpids import format_dpid, parse_dpid
from topology.generators import make
from topology.graph import Graph, NodeKind

pytestmark = [pytest.mark.emulation, pytest.mark.unhurried]

DASHBOARD = Path(__file__).parents[2] / "dashboards" / "performance.json"
CONTROLLER_DASHBOARD = DASHBOARD.with_name("controller.json")
GRAFANA = {"$__rate_interval": "10s", "$class": ".*", "$dpid": ".*", "$top": "10"}
SCRAPE_INTERVAL_S = 0.2
WAIT_S = 60.0
EMPTY_COUNT = 3
"""An expression gives nothing where it gave nothing so often, each time beside a scrape that was in time."""

PINGS, PAYLOAD_BYTES = 40, 1200
POLICY = "version: 1\nmonitor: {interval_s: 1, prometheus: {port: %d}}\n"
POLL_S = 0.05


Series: TypeAlias = list[tuple[dict[str, str], float]]


class Fabric:
    """Two switches of two ports, and the endpoint that shows them."""

    def __init__(self) -> None:
        self.ports = PortRows()
        self.down: set[int] = set()
        for dpid in (1, 2):
            for port_no in (1, 2):
                self.ports.add(dpid, port_no, f's{dpid}-"eth"\\{port_no}', 1e9)
            self.ports.classify(dpid, NodeKind.TOR)
        self.sink = PrometheusSink(
            PrometheusSettings(port=0),
            self.ports,
            self._overview,
            lambda: {"history": SinkState((), 0, {"acknowledged": 12})},
            logging.getLogger("exporters-under-test"),
        )

    def _overview(self) -> Overview:
        switches = [SwitchAnswering(n, "tor", n not in self.down, time.time(), 25.0, 50.0) for n in (1, 2)]
        return Overview(tuple(switches), {"answered": 5})

    def sample(self, value: int) -> None:
        """All counters of all ports have this value, but for collisions, which switches do not count."""
        rows, n = np.arange(4, dtype=np.int32), 4
        counters = np.full((n, COUNTER_COUNT), value, np.uint64)
        counters[:, Counter.COLLISIONS.column] = UNSUPPORTED
        at, none = np.full(n, time.time()), np.zeros(n, np.uint16)
        rates = SampleRates(
            rows, at, at, np.ones((n, COUNTER_COUNT)), np.full((n, 2), 50.0), none.astype(np.uint8), none, none
        )
        self.sink.write(RatedSamples(Samples(rows, at, at, counters), rates))


class Prometheus:
    """A server that scrapes one endpoint, asked by its HTTP interface."""

    def __init__(self, directory: Path, endpoint: int) -> None:
        config = {
            "global": {"scrape_interval": f"{int(SCRAPE_INTERVAL_S * 1000)}ms", "scrape_timeout": "200ms"},
            "scrape_configs": [{"job_name": "vsrt", "static_configs": [{"targets": [f"127.0.0.1:{endpoint}"]}]}],
        }
        path = directory / "prometheus.json"
        path.write_text(json.dumps(config))
        self._url = f"http://127.0.0.1:{free_port()}"
        self._log = directory / "prometheus.log"
        self._process = processes.start(
            [
                "prometheus",
                f"--config.file={path}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address={self._url.removeprefix('http://')}",
            ],
            log=self._log,
        )

    def stop(self) -> None:
        processes.stop(self._process)

    def ask(self, what: str, **parameters: str) -> Any:
        """Return the data of an answer; ConnectionError while the server starts, AssertionError for an error."""
        try:
            with urllib.request.urlopen(
                f"{self._url}/api/v1/{what}?{urllib.parse.urlencode(parameters)}", timeout=10
            ) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == HTTPStatus.SERVICE_UNAVAILABLE:
                raise ConnectionError(error.reason) from error
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    def query(self, expression: str) -> Series:
        """Return what an expression gives, not what is left of it where a scrape is late: then all series end."""
        empty_count = 0
        while not (found := self._query(expression)) and empty_count < EMPTY_COUNT:
            self.wait("up", lambda series: [value for _, value in series] == [1.0])
            empty_count += 1
        return found

    def _query(self, expression: str) -> Series:
        result = self.ask("query", query=expression)["result"]
        return [(entry["metric"], float(entry["value"][1])) for entry in result]

    def wait(self, expression: str, reached: Callable[[Series], bool]) -> None:
        """Wait until what the expression gives is as wanted."""
        deadline = time.monotonic() + WAIT_S
        found: Any = None
        while time.monotonic() < deadline:
            assert self._process.poll() is None, self._log.read_text()
            try:
                found = self._query(expression)
                if reached(found):
                    return
            except IndexError:
                pass  # there is nothing of it yet
            except OSError as error:
                found = error
            time.sleep(POLL_S)
        raise AssertionError(f"{expression} is {found}:\n{self._log.read_text()[-2000:]}")


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Fabric, Prometheus]]:
    fabric = Fabric()
    fabric.sample(1000)
    prometheus = Prometheus(tmp_path_factory.mktemp("prometheus"), fabric.sink.server.port)
    try:
        prometheus.wait("up", lambda found: [value for _, value in found] == [1.0])
        yield fabric, prometheus
    finally:
        prometheus.stop()
        fabric.sink.close()


def test_every_metric_arrives_with_its_type_and_help(scraped: tuple[Fabric, Prometheus]) -> None:
    _, prometheus = scraped
    known = prometheus.ask("metadata")
    absent = ("vsrt_port_collisions_total", "vsrt_share_", "vsrt_scaling_")
    shown = {family.name: family for family in FAMILIES if not family.name.startswith(absent)}
    for name, family in shown.items():
        described = known.get(name.removesuffix("_total")) or known[name]
        assert (described[0]["type"], described[0]["help"]) == (family.type.value, family.help)
    names = {metric["__name__"] for metric, _ in prometheus.query('{__name__=~"vsrt_.+"}')}
    assert names - {"vsrt_build_info"} == set(shown), (
        "no series of the counter that no switch has, and of shares and advice where nobody shares"
    )


def test_labels_and_values_arrive_as_they_are(scraped: tuple[Fabric, Prometheus]) -> None:
    fabric, prometheus = scraped
    fabric.sample(123456789)
    expression = 'vsrt_port_receive_bytes_total{dpid="0000000000000002", port_no="1"}'
    prometheus.wait(expression, lambda found: [value for _, value in found] == [123456789.0])
    ((labels, _),) = prometheus.query(expression)
    assert (labels["port"], labels["class"]) == ('s2-"eth"\\1', "tor")


def test_a_counter_that_begins_anew_is_a_reset_and_no_spike(scraped: tuple[Fabric, Prometheus]) -> None:
    fabric, prometheus = scraped
    series = 'vsrt_port_transmit_packets_total{dpid="0000000000000001", port_no="1"}'
    fabric.sample(2_000_000_000)
    prometheus.wait(series, lambda found: found[0][1] == 2e9)
    fabric.sample(40)
    prometheus.wait(series, lambda found: found[0][1] == 40)
    prometheus.wait(f"resets({series}[30s])", lambda found: found[0][1] >= 1)
    ((_, increase),) = prometheus.query(f"increase({series}[30s])")
    assert increase < 2.1 * 2e9


def test_a_silent_switch_is_down_and_its_ports_go(scraped: tuple[Fabric, Prometheus]) -> None:
    fabric, prometheus = scraped
    ports = 'count(vsrt_port_receive_bytes_total{dpid="0000000000000002"})'
    prometheus.wait(ports, lambda found: [value for _, value in found] == [2.0])
    fabric.down.add(2)
    prometheus.wait('vsrt_switch_up{dpid="0000000000000002"}', lambda found: found[0][1] == 0.0)
    prometheus.wait(ports, lambda found: not found)
    fabric.down.clear()
    prometheus.wait(ports, lambda found: [value for _, value in found] == [2.0])


def test_the_dashboard_gets_answers(scraped: tuple[Fabric, Prometheus]) -> None:
    _, prometheus = scraped
    prometheus.wait("rate(vsrt_port_samples_total[10s])", lambda found: len(found) == 1)
    empty = []
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            expression = target["expr"]
            for variable, value in GRAFANA.items():
                expression = expression.replace(variable, value)
            if not prometheus.query(expression):
                empty.append(expression)
    # Who shares the switches with no other tells of no share, and of no number of monitors.
    of_shares = [expression for expression in empty if "vsrt_share_" in expression or "vsrt_scaling_" in expression]
    assert len(of_shares) == 7
    empty = [expression for expression in empty if expression not in of_shares]
    assert [expression for expression in empty if " > 0" not in expression and " == 0" not in expression] == []


def octets(prometheus: Prometheus, way: str, where: str) -> float:
    ((_, value),) = prometheus.query(f"vsrt_port_{way}_bytes_total{where}")
    return value


def test_a_live_fabric_is_scraped(start_fabric: Callable[..., EmulatedFabric], tmp_path: Path) -> None:
    endpoint, policy = free_port(), tmp_path / "policy.yaml"
    policy.write_text(POLICY % endpoint)
    apps = ("multicast", "unicast", "monitor")
    controller = ControllerProcess(CONTROLLER_PORT, policy=policy, apps=apps)
    fabric = start_fabric(make("fattree", {"k": 2}), controller=controller)
    with ExitStack() as stack:
        prometheus = Prometheus(tmp_path, endpoint)
        stack.callback(prometheus.stop)
        controller.wait_discovered(fabric)
        switches = {format_dpid(fabric.dpid(switch)): 1.0 for switch in fabric.graph.switches()}
        prometheus.wait(
            "vsrt_switch_up", lambda found: {labels["dpid"]: value for labels, value in found} == switches
        )
        ports = float(2 * fabric.switch_link_count() + len(fabric.graph.hosts()))
        counted = "count(vsrt_port_receive_bytes_total)"
        prometheus.wait(counted, lambda found: [value for _, value in found] == [ports])
        prometheus.wait("count(vsrt_port_up == 1)", lambda found: [value for _, value in found] == [ports])
        (switch,) = fabric.graph.neighbours("h1")
        where = f'{{dpid="{fabric.dpid(switch):016x}", port_no="{fabric.graph.port(switch, "h1")}", class="tor"}}'
        fabric.announce()
        controller.wait_until("status", lambda answer: answer["hosts"] >= 2)
        fabric.run_on("h1", "ping", "-n", "-c", "1", "-W", "5", fabric.address("h2"))
        prometheus.wait(f"vsrt_port_receive_bytes_total{where}", lambda found: len(found) == 1)
        before = {way: octets(prometheus, way, where) for way in ("receive", "transmit")}
        words = ("-c", str(PINGS), "-i", "0.02", "-s", str(PAYLOAD_BYTES), "-W", "5")
        fabric.run_on("h1", "ping", "-n", "-q", *words, fabric.address("h2"))
        for way, known in before.items():
            risen, series = known + PINGS * PAYLOAD_BYTES, f"vsrt_port_{way}_bytes_total{where}"
            prometheus.wait(series, lambda found, risen=risen: found[0][1] >= risen)
            prometheus.wait(f"rate({series}[10s])", lambda found: found[0][1] > 0)


MULTICAST_POLICY = """\
version: 1
rules: [{name: closed, groups: [239.9.0.0/16], role: any, hosts: [any], action: deny}]
default: allow
multicast: {querier: {response_interval_s: 1, last_member_interval_s: 0.2}}
monitor: {prometheus: {port: %d}}
"""
GROUP, CLOSED = "239.1.2.3", "239.9.2.3"


def value(prometheus: Prometheus, expression: str) -> float:
    ((_, found),) = prometheus.query(expression)
    return found


def wait_value(prometheus: Prometheus, expression: str, wanted: Callable[[float], bool]) -> None:
    prometheus.wait(expression, lambda found: len(found) == 1 and wanted(found[0][1]))


@pytest.mark.each_framework
def test_multicast_switches_links_and_loops_are_scraped_without_the_monitor(
    start_fabric: Callable[..., EmulatedFabric], diamond: Graph, framework: Framework, tmp_path: Path
) -> None:
    """Numbers are right while all is well, a link is pulled, a switch is away, and after a restart."""
    endpoint, policy = free_port(), tmp_path / "policy.yaml"
    policy.write_text(MULTICAST_POLICY % endpoint)
    apps = ("multicast", "unicast")
    controller = ControllerProcess(CONTROLLER_PORT, framework=framework, policy=policy, apps=apps)
    fabric = start_fabric(diamond, controller=controller)
    switch_count, link_count = float(len(diamond.switches())), float(fabric.switch_link_count())
    with ExitStack() as stack:
        prometheus = Prometheus(tmp_path, endpoint)
        stack.callback(prometheus.stop)
        controller.wait_discovered(fabric)
        fabric.announce()
        controller.wait_until("status", lambda answer: answer["hosts"] >= len(diamond.hosts()))

        def wait_whole() -> None:
            wait_value(prometheus, "count(vsrt_switch_connected == 1)", lambda found: found == switch_count)
            wait_value(prometheus, "count(vsrt_switch_in_sync == 1)", lambda found: found == switch_count)
            wait_value(prometheus, 'vsrt_links{state="up"}', lambda found: found == link_count)
            wait_value(prometheus, "count(vsrt_link_up == 1)", lambda found: found == link_count)

        wait_whole()
        ((build, _),) = prometheus.query("vsrt_build_info")
        assert build["framework"] == framework
        assert value(prometheus, "min(vsrt_policy_last_load_successful)") == 1
        assert value(prometheus, "max(vsrt_app_metrics_age_seconds)") < 5
        assert {labels["app"] for labels, _ in prometheus.query("vsrt_app_backlog_events")} == {
            *("multicast", "unicast", "discovery", "alarms")
        }

        before = value(prometheus, "vsrt_join_latency_seconds_count")
        for host in ("h1", "h3"):
            fabric.join(host, GROUP)
        wait_value(prometheus, "vsrt_multicast_members", lambda found: found == 2)
        wait_value(prometheus, "vsrt_join_latency_seconds_count", lambda found: found >= before + 2)
        assert value(prometheus, "vsrt_multicast_groups") == 1
        assert 0 < value(prometheus, "vsrt_join_latency_seconds_sum / vsrt_join_latency_seconds_count") < 1
        assert value(prometheus, 'sum(vsrt_switch_flow_entries{app="multicast"})') > switch_count
        assert value(prometheus, "sum(vsrt_switch_waiting_flow_entries)") == 0

        fabric.join("h4", CLOSED)
        refusals = 'vsrt_admission_decisions_total{rule="closed",verdict="deny"}'
        wait_value(prometheus, refusals, lambda found: found >= 1)
        assert value(prometheus, "vsrt_multicast_members") == 2, "who is refused is no member"

        assert value(prometheus, "vsrt_tree_repairs_total") == 0
        (group,) = (each for each in controller.show("groups") if each["group"] == GROUP)
        u, v = (fabric.switch_with_dpid(dpid) for dpid in group["links"][0])
        fabric.link_down(u, v)
        wait_value(prometheus, 'vsrt_links{state="failed"}', lambda found: found == 1)
        wait_value(prometheus, "vsrt_tree_repairs_total", lambda found: found >= 1)
        ((link, _),) = prometheus.query("vsrt_link_up == 0")
        assert {parse_dpid(link["dpid_a"]), parse_dpid(link["dpid_b"])} == {fabric.dpid(u), fabric.dpid(v)}
        wait_value(prometheus, 'sum(vsrt_alarms{severity=~"warning|critical"})', lambda found: found >= 1)
        fabric.link_up(u, v)
        wait_whole()

        away = next(switch for switch in diamond.switches() if not set(diamond.neighbours(switch)) & {"h1", "h3"})
        connected = f'vsrt_switch_connected{{dpid="{fabric.dpid(away):016x}"}}'
        fabric.control_down(away)
        wait_value(prometheus, connected, lambda found: found == 0)
        assert value(prometheus, f'vsrt_switch_in_sync{{dpid="{fabric.dpid(away):016x}"}}') == 0
        assert value(prometheus, "count(vsrt_switch_connected == 1)") == switch_count - 1
        assert value(prometheus, "vsrt_multicast_members") == 2
        fabric.control_up(away)
        wait_whole()

        counted = value(prometheus, refusals)
        began = value(prometheus, "process_start_time_seconds")
        controller.stop()
        prometheus.wait("up", lambda found: found[0][1] == 0)
        controller.start()
        wait_value(prometheus, "process_start_time_seconds", lambda found: found > began)
        controller.wait_discovered(fabric)
        wait_whole()
        wait_value(prometheus, "vsrt_multicast_members", lambda found: found == 2)
        wait_value(prometheus, refusals, lambda found: found >= 1)
        again = value(prometheus, refusals)
        assert value(prometheus, f"increase({refusals}[5m])") <= 2 * (counted + again), "a reset is no spike"

        empty = []
        for panel in json.loads(CONTROLLER_DASHBOARD.read_text())["panels"]:
            for target in panel["targets"]:
                expression = target["expr"]
                for variable, replacement in {**GRAFANA, "$__rate_interval": "1m"}.items():
                    expression = expression.replace(variable, replacement)
                if not prometheus.query(expression) and " == 0" not in expression:
                    empty.append(expression)
        alone = [expression for expression in empty if "vsrt_cluster_" in expression]
        assert len(alone) == 8, "a controller that is alone has no cluster"
        unused = (
            "vsrt_class_",
            "vsrt_alias_moves_total",
            "flow_table_",
            "vsrt_swap_slots",
            "vsrt_staged_decisions",
            "vsrt_maintenance_",
        )
        idle = [expression for expression in empty if any(name in expression for name in unused)]
        why = "no queues of classes, no further tree, all groups are in, no policy is staged, nothing is maintained"
        assert len(idle) == 10, why
        vlans = [expression for expression in empty if expression not in (*alone, *idle)]
        assert vlans == ["vsrt_vlan_groups", "vsrt_vlan_members", "vsrt_vlan_senders"], "no port is in a VLAN"
