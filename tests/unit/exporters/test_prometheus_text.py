"""What Prometheus is served."""

from __future__ import annotations

import http.client
import logging
import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.exporters.exposition import escape, label_set
from apps.exporters.metrics import FAMILIES, PORT_COUNTERS, PORT_UP, UTILISATION
from apps.exporters.prometheus_sink import PrometheusSink
from apps.exporters.settings import PrometheusSettings
from apps.exporters.sink import (
    Ask,
    Overview,
    RatedSamples,
    ScalingState,
    ShareState,
    SinkState,
    SwitchAnswering,
    ask_here,
)
from apps.openflow.questions import Unanswered
from controller.performance.batch import Discontinuity, Samples
from controller.performance.rates import RateTable

HOUR_S = 1_700_002_800.0
SERIES = re.compile(r'(?P<name>\w+)(?:\{(?P<labels>(?:\w+="(?:[^"\\]|\\.)*",?)*)\})? (?P<value>\S+)')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
UNESCAPED = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


def unescape(value: str) -> str:
    return re.sub(r"\\.", lambda match: UNESCAPED[match[0]], value)


def series(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """The samples of an exposition by name and labels; none stands twice."""
    found = {}
    for line in text.split("\n"):
        if line and not line.startswith("#"):
            match = SERIES.fullmatch(line)
            assert match is not None, line
            labels = tuple((name, unescape(value)) for name, value in LABEL.findall(match["labels"] or ""))
            assert (match["name"], labels) not in found
            found[match["name"], labels] = float(match["value"])
    return found


def of_port(text: str, dpid: int, port_no: int) -> dict[str, float]:
    return {
        name: value
        for (name, labels), value in series(text).items()
        if dict(labels).get("dpid") == f"{dpid:016x}" and dict(labels).get("port_no") == str(port_no)
    }


class Endpoint:
    def __init__(self, fabric: Any, ask: Ask = ask_here) -> None:
        self.fabric = fabric
        self.overview = Overview()
        self.sink = PrometheusSink(
            PrometheusSettings(port=0),
            fabric.ports,
            lambda: self.overview,
            lambda: {"history": SinkState(("full",), 3, {"acknowledged": 7})},
            logging.getLogger("exporters-under-test"),
            ask,
        )

    def text(self, *, openmetrics: bool = False) -> str:
        return "".join(self.sink.exposition(openmetrics=openmetrics))

    def page(self, media_type: str) -> str:
        return self.get(Accept=media_type)[2].decode()

    def get(self, path: str = "/metrics", **headers: str) -> tuple[int, str, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.sink.server.port, timeout=20)
        try:
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            return response.status, response.headers["Content-Type"], response.read()
        finally:
            connection.close()


@pytest.fixture
def endpoint(fabric: Any) -> Iterator[Endpoint]:
    made = Endpoint(fabric)
    yield made
    made.sink.close()


def states(**up: bool) -> Overview:
    switches = tuple(
        SwitchAnswering(int(name[1:]), "tor", is_up, time.time() - 5.0 if is_up else None, 40.0, None)
        for name, is_up in up.items()
    )
    return Overview(switches, {"answered": 3, "timed_out": 1})


@pytest.mark.parametrize("port_name", ["s1-eth1", 'a "quoted" \\ name\nof two lines', "Größe"])
def test_promtool_finds_nothing_to_say(endpoint: Endpoint, port_name: str, promtool: str) -> None:
    endpoint.overview = states(s1=True, s2=True)
    endpoint.fabric.ports.change(1, 1, port_name, 1e9)
    endpoint.sink.write(endpoint.fabric.batch(HOUR_S, 5))
    done = subprocess.run(
        [promtool, "check", "metrics"], input=endpoint.text().encode(), capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert ("port", port_name) in {pair for _, labels in series(endpoint.text()) for pair in labels}


def test_a_port_has_its_counters_and_its_utilisation(endpoint: Endpoint) -> None:
    endpoint.sink.write(endpoint.fabric.batch(HOUR_S, 5))
    shown = of_port(endpoint.text(), 2, 3)
    assert shown == {
        **{family.name: 5 + 5 + 100 * column for column, family in enumerate(PORT_COUNTERS.values())},
        UTILISATION[0].name: 0.125,
        UTILISATION[1].name: 0.5,
        PORT_UP.name: 1,
    }
    labels = dict(next(labels for name, labels in series(endpoint.text()) if name == UTILISATION[0].name))
    assert labels == {"dpid": "0000000000000001", "port_no": "1", "port": "s1-eth1", "class": "tor"}


def test_a_64_bit_counter_is_shown_to_its_last_digit(endpoint: Endpoint) -> None:
    batch = endpoint.fabric.batch(HOUR_S)
    batch.samples.counters[:, 2] = (1 << 64) - 2
    endpoint.sink.write(batch)
    assert " 18446744073709551614\n" in endpoint.text()


def test_what_is_unsupported_or_unknown_has_no_series(endpoint: Endpoint) -> None:
    endpoint.sink.write(endpoint.fabric.batch(HOUR_S, 5, unsupported=(4, 11), kind=Discontinuity.RESET))
    shown = of_port(endpoint.text(), 1, 1)
    missing = {family.name for column, family in enumerate(PORT_COUNTERS.values()) if column in (4, 11)}
    assert set(shown) == {PORT_UP.name, *(family.name for family in PORT_COUNTERS.values())} - missing


def test_a_port_whose_link_is_down_is_shown_as_down_until_it_is_up(endpoint: Endpoint) -> None:
    endpoint.sink.write(endpoint.fabric.batch(HOUR_S, 5))
    for up in (False, True):
        endpoint.fabric.ports.set_link(endpoint.fabric.ports.row(1, 2), up)
        assert of_port(endpoint.text(), 1, 2)[PORT_UP.name] == up
        assert of_port(endpoint.text(), 1, 1)[PORT_UP.name] == 1


@pytest.mark.parametrize("kind", [Discontinuity.LATE, Discontinuity.DUPLICATE])
def test_a_late_sample_does_not_make_a_counter_fall(endpoint: Endpoint, kind: Discontinuity) -> None:
    endpoint.sink.write(endpoint.fabric.batch(HOUR_S, 50))
    before = of_port(endpoint.text(), 1, 1)
    endpoint.sink.write(endpoint.fabric.batch(HOUR_S - 10, 40, kind=kind))
    assert of_port(endpoint.text(), 1, 1) == before


def test_a_32_bit_counter_rises_over_its_wrap_and_falls_only_when_it_begins_anew(
    make_fabric: Callable[..., Any], logger: logging.Logger
) -> None:
    fabric = make_fabric(1, 1)
    sink = PrometheusSink(PrometheusSettings(port=0), fabric.ports, Overview, dict, logger)
    table = RateTable(fabric.ports)
    shown = []
    for number, octets in enumerate((4_294_967_000, 4_294_967_200, 104, 304, 10)):
        at = np.array([HOUR_S + 10 * number])
        counters = np.zeros((1, 12), np.uint64)
        counters[0, 2] = octets
        alive = np.array([1000.0 + 10 * number if number < 4 else 1.0])
        samples = Samples(np.zeros(1, np.int32), at, alive, counters)
        sink.write(RatedSamples(samples, table.update(samples)))
        shown.append(of_port("".join(sink.exposition()), 1, 1)["vsrt_port_receive_bytes_total"])
    sink.close()
    assert shown == [4_294_967_000, 4_294_967_200, 4_294_967_400, 4_294_967_600, 10]


def test_a_silent_switch_is_down_and_its_ports_have_no_series(endpoint: Endpoint) -> None:
    endpoint.sink.write(endpoint.fabric.batch(HOUR_S, 5))
    endpoint.overview = states(s1=True, s2=False)
    found = {
        (name, dict(labels).get("dpid", "").lstrip("0")): value
        for (name, labels), value in series(endpoint.text()).items()
    }
    assert found["vsrt_switch_up", "1"] == 1
    assert found["vsrt_switch_up", "2"] == 0
    assert 4.0 <= found["vsrt_switch_sample_age_seconds", "1"] < 60
    assert ("vsrt_switch_sample_age_seconds", "2") not in found
    assert found["vsrt_switch_cpu_utilisation_ratio", "1"] == 0.4
    assert not of_port(endpoint.text(), 2, 1)
    assert of_port(endpoint.text(), 1, 1)


def test_a_port_that_goes_or_is_created_anew_has_no_series_until_it_is_sampled(endpoint: Endpoint) -> None:
    ports = endpoint.fabric.ports
    endpoint.sink.write(endpoint.fabric.batch(HOUR_S, 5))
    ports.remove(1, 1)
    assert not of_port(endpoint.text(), 1, 1)
    ports.add(1, 1, "renamed", 1e9)
    assert not of_port(endpoint.text(), 1, 1)
    endpoint.sink.write(endpoint.fabric.batch(HOUR_S + 1, 6, rows=[0]))
    assert of_port(endpoint.text(), 1, 1)[PORT_COUNTERS["rx_packets"].name] == 6
    assert 'port="renamed"' in endpoint.text()


def test_series_end_when_samples_are_too_old(fabric: Any, logger: logging.Logger) -> None:
    sink = PrometheusSink(PrometheusSettings(port=0, stale_s=0.0), fabric.ports, Overview, dict, logger)
    sink.write(fabric.batch(HOUR_S, 5))
    assert not of_port("".join(sink.exposition()), 1, 1)
    sink.close()


def test_the_share_is_told_where_there_is_one(endpoint: Endpoint) -> None:
    endpoint.overview = states(s1=True)
    assert "vsrt_share_" not in endpoint.text()
    endpoint.overview = endpoint.overview._replace(share=ShareState(3, 48, 2, 1))
    found = series(endpoint.text())
    assert [found[f"vsrt_share_{name}", ()] for name in ("switches", "ports", "moves_total", "unowned")] == [
        3,
        48,
        2,
        1,
    ]


def test_ports_of_a_switch_that_another_monitor_polls_have_no_series(endpoint: Endpoint) -> None:
    endpoint.sink.write(endpoint.fabric.batch(HOUR_S, 5))
    assert of_port(endpoint.text(), 1, 1)
    endpoint.fabric.ports.leave(1)
    assert not of_port(endpoint.text(), 1, 1)
    endpoint.sink.write(endpoint.fabric.batch(HOUR_S + 1, 6))
    assert of_port(endpoint.text(), 1, 1)


def test_polls_events_and_outputs_are_counted(endpoint: Endpoint) -> None:
    endpoint.overview = states(s1=True)
    found = series(endpoint.text())
    assert found["vsrt_polls_total", (("result", "timed_out"),)] == 1
    assert found["vsrt_output_faulty", (("output", "history"),)] == 1
    assert found["vsrt_output_failures_total", (("output", "history"),)] == 3
    assert found["vsrt_output_items_total", (("output", "history"), ("result", "acknowledged"))] == 7


def test_counters_are_counters_with_units_and_help(endpoint: Endpoint) -> None:
    endpoint.overview = states(s1=True)._replace(
        share=ShareState(1, 2, 3, 4), scaling=ScalingState(4, 0.97, {"start": 1})
    )
    endpoint.sink.write(endpoint.fabric.batch(HOUR_S, 5))
    text = endpoint.text()
    types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M))
    helps = dict(re.findall(r"^# HELP (\w+) (.+)$", text, re.M))
    shown = {name for name, _ in series(text)}
    assert shown == set(types) == set(helps) == {f.name for f in FAMILIES} - {"vsrt_switch_memory_utilisation_ratio"}
    assert {name for name, kind in types.items() if kind == "counter"} == {n for n in shown if n.endswith("_total")}


def test_openmetrics_names_counters_without_total_and_ends_with_eof(endpoint: Endpoint) -> None:
    endpoint.sink.write(endpoint.fabric.batch(HOUR_S, 5))
    text = endpoint.text(openmetrics=True)
    assert "# TYPE vsrt_port_receive_bytes counter\n" in text
    assert "\nvsrt_port_receive_bytes_total{" in text
    assert series(text) == series(endpoint.text())
    page = endpoint.page("application/openmetrics-text;version=1.0.0")
    assert page.endswith("\n# EOF\n")
    assert page.count("# EOF") == 1


def test_the_endpoint_serves_both_formats(endpoint: Endpoint) -> None:
    endpoint.sink.write(endpoint.fabric.batch(HOUR_S, 5))
    status, media_type, body = endpoint.get()
    assert (status, media_type) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert of_port(body.decode(), 1, 2) == of_port(endpoint.text(), 1, 2)
    status, media_type, body = endpoint.get(Accept="application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
    assert (status, media_type) == (200, "application/openmetrics-text; version=1.0.0; charset=utf-8")
    assert body.endswith(b"# EOF\n")
    assert endpoint.get("/elsewhere")[0] == 404
    assert endpoint.sink.state().totals["scraped"] == 2


def test_a_client_that_sends_nonsense_or_goes_away_harms_nobody(endpoint: Endpoint) -> None:
    endpoint.sink.write(endpoint.fabric.batch(HOUR_S, 5))
    for text in (b"\x00\xff\r\n\r\n", b"POST /metrics HTTP/1.1\r\n\r\n", b"GET /metrics HTTP/1.1\r\n", b""):
        with socket.create_connection(("127.0.0.1", endpoint.sink.server.port), timeout=10) as client:
            client.sendall(text)
    assert endpoint.get()[0] == 200


def test_a_monitor_that_is_held_up_ends_the_page_and_no_scrape(fabric: Any, logger: logging.Logger) -> None:
    asked = 0

    def ask(question: Callable[[], Any]) -> Any:
        nonlocal asked
        asked += 1
        if asked == 3:
            raise Unanswered(begun=False)
        return question()

    endpoint = Endpoint(fabric, ask)
    endpoint.sink.write(fabric.batch(HOUR_S, 5))
    cut = endpoint.get()[2].decode()
    whole = endpoint.get()[2].decode()
    endpoint.sink.close()
    assert {name for name, _ in series(cut)} < {name for name, _ in series(whole)}
    assert cut.endswith("\n")
    assert of_port(whole, 1, 1) and not of_port(cut, 1, 1)


def test_an_address_in_use_is_a_fault_and_no_end(fabric: Any, endpoint: Endpoint, logger: logging.Logger) -> None:
    taken = PrometheusSettings(port=endpoint.sink.server.port)
    second = PrometheusSink(taken, fabric.ports, Overview, dict, logger)
    second.write(fabric.batch(HOUR_S))
    assert "Address already in use" in second.state().faults[0]
    second.close()


@given(st.text())
def test_escaping_loses_nothing(value: str) -> None:
    escaped = escape(value)
    assert "\n" not in escaped
    assert unescape(escaped) == value.encode("utf-8", "replace").decode()
    assert LABEL.fullmatch(label_set({"name": value})[1:-1])


def test_pieces_are_small(make_fabric: Callable[..., Any], logger: logging.Logger) -> None:
    fabric = make_fabric(switches=30, ports=60)
    sink = PrometheusSink(PrometheusSettings(port=0), fabric.ports, Overview, dict, logger)
    sink.write(fabric.batch(HOUR_S, 5))
    pieces = list(sink.exposition())
    sink.close()
    assert len(series("".join(pieces))) > 1800 * 13
    assert max(piece.count("\n") for piece in pieces) <= 1024 + 2
