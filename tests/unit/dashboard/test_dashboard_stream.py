"""Server-sent events: first what there is, then what becomes of it, and nobody who does not read holds others up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from apps.dashboard.limits import ServerLimits

SECTIONS = "?sections=switches,ports"


def test_the_snapshot_then_changes(dashboard: Any, controller: Any) -> None:
    before_s = time.time() - 0.001
    events = dashboard.events(SECTIONS)
    kind, first = next(events)
    assert before_s <= first["time_s"] <= time.time() + 0.001
    assert kind == "snapshot"
    assert {name: len(documents) for name, documents in first["sections"].items()} == {"switches": 2, "ports": 24}
    controller.put("monitor", "ports", "1:1", name="renamed", rx_bps=5.0)
    controller.remove("multicast", "ports", "2:12")
    controller.remove("monitor", "ports", "2:12")
    put, removed = {}, []
    while "1:1" not in put or "2:12" not in removed:
        kind, change = next(events)
        assert kind == "change"
        assert change["version"] > first["version"]
        assert first["time_s"] <= change["time_s"] <= time.time() + 0.001
        assert set(change["sections"]) == {"ports"}
        put |= {document["id"]: document for document in change["sections"]["ports"]["put"]}
        removed += change["sections"]["ports"]["remove"]
    place = {"dpid": 1, "dpid_hex": "0000000000000001", "port_no": 1}
    assert put["1:1"] == {"id": "1:1", **place, "role": "edge", "name": "renamed", "rx_bps": 5.0}
    events.close()


def test_changes_come_five_times_a_second_at_most_and_each_soon(dashboard: Any, controller: Any) -> None:
    events = dashboard.events("?sections=hosts")
    next(events)
    seen, last, delays = 0, None, []
    start = time.monotonic()
    for number in range(5):
        made = time.monotonic()
        controller.put("multicast", "hosts", "00:00:00:00:00:02", number=number)
        while last != number:
            _, change = next(events)
            seen += 1
            last = change["sections"]["hosts"]["put"][0]["number"]
        delays.append(time.monotonic() - made)
    past_s = time.monotonic() - start
    assert seen <= 5 * past_s + 1
    assert sorted(delays)[len(delays) // 2] < 0.5
    events.close()


def test_all_sections_are_streamed_where_none_is_named(dashboard: Any) -> None:
    _, first = next(dashboard.events())
    assert {"status", "groups", "events", "policy", "anomalies"} <= set(first["sections"])
    assert first["sections"]["status"][0]["connected"] is True


def test_a_quiet_stream_says_that_it_is_there(start: Callable[..., Any]) -> None:
    dashboard = start(ServerLimits(heartbeat_s=0.05))
    with dashboard.client.stream("GET", "/stream?sections=links") as answer:
        for line in answer.iter_lines():
            if line.startswith(":"):
                break
        else:
            pytest.fail("no comment came")


def test_streams_are_bounded_and_one_that_ends_makes_room(start: Callable[..., Any]) -> None:
    dashboard = start(ServerLimits(streams=1))
    events = dashboard.events()
    next(events)
    answer = dashboard.client.get("/stream")
    assert (answer.status_code, answer.json()["reason"]) == (503, "streams")
    dashboard.wait_refused("streams")
    events.close()
    dashboard.wait_until(lambda: dashboard.get("/status")["dashboard"]["streams"] == 0)
    next(dashboard.events())


@contextmanager
def silent_stream(dashboard: Any) -> Iterator[None]:
    """A client that follows the rules and never reads."""
    dashboard.wait_until(lambda: dashboard.get("/status")["connected"])
    with dashboard.connect() as silent:
        silent.sendall(b"GET /api/v1/stream?sections=rules HTTP/1.1\r\nHost: localhost\r\n\r\n")
        dashboard.wait_until(lambda: dashboard.get("/status")["dashboard"]["streams"] == 1)
        yield


def test_a_client_that_never_reads_harms_nobody(start: Callable[..., Any], controller: Any) -> None:
    dashboard = start(ServerLimits(unread_s=600))
    text = "x" * 2_000_000
    with silent_stream(dashboard):
        for number in range(10):
            controller.put("multicast", "rules", "all", rule=text, allow=number, deny=0)
            dashboard.wait_until(lambda number=number: dashboard.get("/rules")["items"][0]["allow"] == number)
        state = dashboard.get("/status")["dashboard"]
        assert (state["streams"], state["refused"].get("unread", 0)) == (1, 0)


def test_a_client_that_never_reads_is_cut_off(start: Callable[..., Any], controller: Any) -> None:
    dashboard = start(ServerLimits(unread_s=0.3))
    text, number = "x" * 2_000_000, 0
    with silent_stream(dashboard):
        while not dashboard.refused("unread"):
            assert number < 100
            number += 1
            controller.put("multicast", "rules", "all", rule=text, allow=number, deny=0)
            time.sleep(0.05)
        dashboard.wait_until(lambda: dashboard.get("/status")["dashboard"]["streams"] == 0)
    assert number > 1
