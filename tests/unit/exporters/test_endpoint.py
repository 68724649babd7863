"""The one page of a process: every app's figures in one place, and no scrape that waits for a loop."""

from __future__ import annotations

import logging
import re
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from apps.exporters import controller_metrics as metrics
from apps.exporters import endpoint as endpoint_module
from apps.exporters.endpoint import Endpoint, Source, close_endpoint, open_endpoint
from apps.exporters.exposition import PIECE_SAMPLES, Metric, MetricFamily
from controller.histogram import DURATION_BOUNDS_S, Histogram

LOGGER = logging.getLogger("exporters-under-test")


class LoopStandIn:
    """An app whose loop answers at once, or not at all."""

    def __init__(self, name: str, figures: Callable[[], list[Metric]], *, held_up: bool = False) -> None:
        self.held_up = held_up
        self.wakes = 0
        self.source = Source(name, figures, self._wake, lambda: 3)

    def _wake(self) -> bool:
        self.wakes += 1
        if not self.held_up:
            self.source.publish()
        return True


def turns(name: str, *durations_s: float) -> list[Metric]:
    histogram = Histogram()
    for duration_s in durations_s:
        histogram.observe(duration_s)
    return [(metrics.TURNS, [({"app": name}, histogram.reading())]), (metrics.GROUPS, [({}, 2)])]


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    opened = open_endpoint("127.0.0.1", 0, LOGGER)
    yield opened
    close_endpoint(opened)


def text(endpoint: Endpoint, accept: str = "") -> str:
    request = urllib.request.Request(f"http://127.0.0.1:{endpoint.server.port}/metrics", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return str(answer.read().decode())


def test_samples_of_one_family_stand_together_whichever_app_has_them(endpoint: Endpoint, promtool: str) -> None:
    for name in ("multicast", "alarms"):
        app = LoopStandIn(name, lambda name=name: turns(name, 0.002, 11.0)[: 2 if name == "alarms" else 1])
        endpoint.sources[name] = app.source
    page = text(endpoint)
    done = subprocess.run([promtool, "check", "metrics"], input=page.encode(), capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert page.count("# TYPE vsrt_app_turn_seconds histogram\n") == 1
    assert {'vsrt_app_backlog_events{app="alarms"} 3', "vsrt_multicast_groups 2"} <= set(page.splitlines())
    assert re.search(r'^vsrt_build_info\{version="[^"]+",framework="[^"]+",python="3\.[^"]+"\} 1$', page, re.M)


def test_a_histogram_is_cumulative_and_has_its_sum(endpoint: Endpoint) -> None:
    endpoint.sources["multicast"] = LoopStandIn("multicast", lambda: turns("multicast", 0.0005, 0.002, 11.0)).source
    page = text(endpoint)
    found = dict(re.findall(r'^vsrt_app_turn_seconds_bucket\{app="multicast",le="(.+)"\} (\d+)$', page, re.M))
    assert list(found) == [*(f"{bound:g}" for bound in DURATION_BOUNDS_S), "+Inf"]
    assert (found["0.0005"], found["0.001"], found["0.0025"], found["10"], found["+Inf"]) == ("1", "1", "2", "2", "3")
    assert 'vsrt_app_turn_seconds_sum{app="multicast"} 11.0025\n' in page
    assert 'vsrt_app_turn_seconds_count{app="multicast"} 3\n' in page


def test_a_long_family_is_written_in_pieces(endpoint: Endpoint) -> None:
    links: list[Metric] = [(metrics.LINK_UP, [(f'{{dpid_a="{number}"}}', 1) for number in range(3000)])]
    endpoint.sources["alarms"] = LoopStandIn("alarms", lambda: links).source
    pieces = list(endpoint.text())
    assert max(piece.count("\n") for piece in pieces) <= PIECE_SAMPLES + 2
    page = "".join(pieces)
    assert page.count("# TYPE vsrt_link_up gauge\n") == 1
    assert len(set(re.findall(r"^vsrt_link_up\{.+\} 1$", page, re.M))) == 3000


def test_labels_of_links_are_made_by_who_writes_the_page_and_not_by_the_loop(endpoint: Endpoint) -> None:
    written: list[int] = []

    def labels(number: int) -> str:
        written.append(number)
        return f'{{dpid_a="{number}"}}'

    links: list[Metric] = [(metrics.LINK_UP, [(partial(labels, number), 1) for number in range(3)])]
    app = LoopStandIn("alarms", lambda: links)
    endpoint.sources["alarms"] = app.source
    app.source.publish()
    assert not written
    assert re.findall(r'^vsrt_link_up\{dpid_a="(.)"\} 1$', text(endpoint), re.M) == ["0", "1", "2"]
    assert written == [0, 1, 2]


def test_openmetrics_ends_with_one_eof(endpoint: Endpoint) -> None:
    endpoint.sources["multicast"] = LoopStandIn("multicast", lambda: turns("multicast", 0.1)).source
    page = text(endpoint, "application/openmetrics-text; version=1.0.0")
    assert page.endswith("\n# EOF\n")
    assert page.count("# EOF") == 1


def test_a_loop_that_is_held_up_is_shown_as_it_was_with_its_age(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint_module, "ANSWER_S", 0.1)
    stuck = LoopStandIn("multicast", lambda: turns("multicast", 0.1))
    lively = LoopStandIn("alarms", lambda: turns("alarms", 0.1)[:1])
    endpoint.sources |= {"multicast": stuck.source, "alarms": lively.source}
    assert_fresh(endpoint, "multicast")
    stuck.held_up = True
    wakes = stuck.wakes
    began_s = time.monotonic()
    for _ in range(3):
        page = text(endpoint)
    assert time.monotonic() - began_s < 5
    assert "vsrt_multicast_groups 2\n" in page
    assert age(page, "multicast") >= 0.3
    assert age(page, "alarms") < age(page, "multicast")
    assert stuck.wakes == wakes + 1, "questions do not pile up at a loop that does not answer"
    stuck.source.publish()
    stuck.held_up = False
    assert_fresh(endpoint, "multicast")


def test_an_app_that_never_answered_has_no_figures_but_a_backlog(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint_module, "ANSWER_S", 0.05)
    endpoint.sources["multicast"] = LoopStandIn("multicast", lambda: turns("multicast"), held_up=True).source
    page = text(endpoint)
    assert 'vsrt_app_backlog_events{app="multicast"} 3\n' in page
    assert "vsrt_app_metrics_age_seconds{" not in page
    assert "vsrt_multicast_groups" not in page


def test_apps_of_a_process_share_an_address_until_the_last_has_ended(endpoint: Endpoint) -> None:
    port = endpoint.server.port
    first, second = (open_endpoint("127.0.0.2", port, LOGGER) for _ in range(2))
    assert first is second
    close_endpoint(first)
    assert "process_start_time_seconds" in text_at("127.0.0.2", port)
    close_endpoint(second)
    third = open_endpoint("127.0.0.2", port, LOGGER)
    assert third is not first
    close_endpoint(third)


def test_an_address_that_is_taken_is_a_fault_and_no_end(endpoint: Endpoint) -> None:
    second = Endpoint("127.0.0.1", endpoint.server.port, LOGGER)
    second.start()
    assert second.fault.text is not None and "in use" in second.fault.text


def text_at(host: str, port: int) -> str:
    with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=20) as answer:
        return str(answer.read().decode())


def age(page: str, app: str) -> float:
    found = re.search(rf'^vsrt_app_metrics_age_seconds\{{app="{app}"\}} (\S+)$', page, re.M)
    assert found is not None
    return float(found[1])


def assert_fresh(endpoint: Endpoint, app: str) -> None:
    """What an app shows was made after it was asked."""
    asked_s = time.monotonic()
    page = text(endpoint)
    assert age(page, app) <= time.monotonic() - asked_s + 0.001


def test_the_page_knows_every_family_of_the_controller():
    declared = [value for value in vars(metrics).values() if isinstance(value, MetricFamily)]
    assert [family.name for family in declared if family not in metrics.FAMILIES] == []
