"""What operators and Prometheus are told of classes and their queues."""

from __future__ import annotations

import pytest

from apps.exporters.figures import class_figures
from controller.queues.sections import QueueSections
from controller.queues.settings import QueuesChanged

from .test_queue_rates import bench, counters  # noqa: F401 - a fixture


@pytest.fixture
def sections(bench):  # noqa: F811
    """The sections after the feed has sent, and the desk more than fits its wait."""
    bench.poll(1, counters(feed_bytes=500_000, desk_bytes=250_000), 2.0)
    bench.settle()
    sections = QueueSections(bench.core)
    sections.refresh(bench.now)
    return sections


def put(section, version=0):
    return section.changes(version, 1000)


def test_each_class_is_told_with_its_goal_and_how_far_it_is_from_it(sections):
    classes = put(sections.classes)["put"]
    assert set(classes) == {"feed", "desk", "bulk"}
    feed = classes["feed"]
    assert (feed["queue_id"], feed["goal"], feed["index"], feed["ports"]) == (6, {"loss_pct": 0.0}, 0.0, 1)
    assert (classes["desk"]["dpid"], classes["desk"]["port_no"]) == (1, 1)
    # the feed's 2 Mbit/s leave 8, of which the desk sends 1: packets of 8000 bits wait 8/7 ms for a goal of 2 ms
    assert classes["desk"]["index"] == pytest.approx(8 / 7 / 2, abs=1e-3)
    assert classes["bulk"]["index"] is None and classes["bulk"]["ports"] == 0


def test_each_queue_of_a_port_is_told(sections):
    queues = put(sections.queues)["put"]
    assert set(queues) == {f"1:1/{queue_id}" for queue_id in (0, 1, 5, 6, 7)}
    feed = queues["1:1/6"]
    assert (feed["classes"], feed["min_rate_bps"], feed["tx_bps"]) == (["feed"], 2_100_000, 2_000_000)
    assert queues["1:1/7"]["tx_bps"] == 0


def test_only_what_changed_is_told_again(sections, bench):  # noqa: F811
    version = put(sections.queues)["version"]
    assert put(sections.queues, version)["put"] == {}
    bench.poll(1, counters(feed_bytes=1_000_000, desk_bytes=500_000), 2.0)
    bench.poll(1, counters(feed_bytes=2_500_000, desk_bytes=750_000), 2.0)
    bench.settle()
    sections.refresh(bench.now)
    assert "1:1/6" in put(sections.queues, version)["put"]
    assert "1:1/7" not in put(sections.queues, version)["put"]


def test_without_queues_nothing_is_told(sections, bench):  # noqa: F811
    version = put(sections.classes)["version"]
    bench.feed(QueuesChanged(bench.core.settings._replace(mode="off")))
    bench.advance(2.0)
    sections.refresh(bench.now)
    assert set(put(sections.classes, version)["remove"]) == {"feed", "desk", "bulk"}
    assert put(sections.queues)["put"] == {}


def test_prometheus_is_told_of_classes(sections, bench):  # noqa: F811
    found = class_figures(sections.class_documents(list(bench.core.ports.reports())))
    by_name = {family.name: {labels["class"]: value for labels, value in samples} for family, samples in found}
    assert set(by_name) == {
        "vsrt_class_performance_index",
        "vsrt_class_missing_bits_per_second",
        "vsrt_class_ports",
    }
    assert set(by_name["vsrt_class_performance_index"]) == {"feed", "desk"}
    assert by_name["vsrt_class_ports"] == {"feed": 1, "desk": 1, "bulk": 0}
