"""The book of measured ports: from samples to metrics, reports and candidates, and its state over a restart."""

from __future__ import annotations

import json

import numpy as np
import pytest

from controller.allocation.book import PortBook, PortStateError
from controller.allocation.busy import KEYS
from controller.allocation.selection import Wish, select
from controller.config.settings import Allocation, PortParameters

HOUR_MS = 3_600_000
HOURLY = PortParameters(days_to_average_utilization=10060)
SETTINGS = Allocation(openflow=HOURLY, vmax=HOURLY, hds=HOURLY)


def measured(settings: Allocation = SETTINGS, family: str = "openflow", **percent: float) -> PortBook:
    """A book whose ports and their CPU were busy as given for more than a period, CPU 20 %."""
    book = PortBook(settings)
    for name, busy in percent.items():
        row = book.add(name, family, "cpu")
        assert row is not None
        for at_ms in (0, HOUR_MS + 1):
            book.ports.observe_percent(np.array([row]), np.array([at_ms]), np.array([busy]))
    for at_ms in (0, HOUR_MS + 1):
        book.cpus.observe_percent(np.array([0]), np.array([at_ms]), np.array([20.0]))
    return book


NOW = HOUR_MS + 1


def test_the_report_has_the_six_published_fields():
    book = measured(a=50.0)
    book.count(book.row("a"), 3, 1024)
    assert book.reports(NOW) == {
        "a": {
            "port_allocation_metric": 35.0,
            "port_percent_busy": 50.0,
            "cpu_percent_busy": 20.0,
            "initiator_load": 3,
            "volume_load": 1024,
            "allocation_disqualified": False,
        }
    }
    assert book.assess("a", NOW).usage == 85


def test_what_is_not_measured_has_no_metric_and_0_percent():
    book = PortBook(SETTINGS)
    book.add("a", "openflow")
    (report,) = book.reports(NOW).values()
    assert report["port_allocation_metric"] is None
    assert (report["port_percent_busy"], report["cpu_percent_busy"]) == (0, 0)


def test_hds_ports_have_no_cpu():
    assert measured(family="hds", a=50.0).reports(NOW)["a"]["port_allocation_metric"] == 50


def test_a_stale_metric_is_not_valid():
    book = measured(a=50.0)
    assert book.assess("a", NOW + 48 * HOUR_MS).port_metric is not None
    assert book.assess("a", NOW + 48 * HOUR_MS + 1).port_metric is None


def test_columns_and_single_ports_agree():
    book = measured(a=50.0, b=2.0, c=99.0)
    book.count(book.row("b"), 1, 100)
    book.add("d", "vmax")
    columns = book.metrics(NOW)
    for name, metric, usage, over in zip(
        book.names, columns.metric_pct, columns.usage_pct, columns.disqualified, strict=True
    ):
        single = book.assess(name, NOW)
        assert (single.port_metric is None) == np.isnan(metric)
        assert single.disqualified == over
        if single.port_metric is not None:
            assert (single.port_metric, single.usage) == (metric, usage)


def test_ports_over_a_ceiling_are_no_candidates():
    settings = Allocation(openflow=PortParameters(days_to_average_utilization=10060, port_utilization_ceiling=80))
    book = measured(settings, a=85.0, b=79.0, c=10.0)
    pods = {"a": {"pod": "1"}, "b": {"pod": "1"}, "c": {"pod": "2"}}
    candidates = book.candidates(NOW, ["pod"], pods)
    assert candidates.ids == ["b", "c"]
    assert select(candidates, Wish(2)).ports == ("c", "b")
    assert select(book.candidates(NOW, ["pod"], pods, frozenset("c")), Wish(1)).ports == ("b",)


def test_the_book_is_bounded():
    book = PortBook(Allocation(ports=2))
    assert [book.add(name, "vmax") for name in "abc"] == [0, 1, None]
    assert book.refused == 1
    assert book.add("a", "vmax") == 0


def test_a_port_that_went_makes_room():
    book = measured(a=50.0, b=60.0)
    book.add("lone", "vmax", "other")
    before = book.reports(NOW)
    book.forget(["a", "lone", "never"])
    assert book.names == ["b"]
    assert book.cpu_names == ["cpu"]
    assert book.reports(NOW) == {"b": before["b"]}
    assert book.add("c", "openflow", "cpu") == 1


def test_other_parameters_take_effect_on_what_was_measured():
    book = measured(a=50.0)
    book.configure(Allocation(openflow=PortParameters(port_utilization_floor=60)))
    assert book.assess("a", NOW).port_metric == 10


def test_the_state_survives_a_restart():
    book = measured(a=50.0, b=60.0)
    book.count(0, 1, 2)
    other = PortBook(SETTINGS)
    other.restore(json.loads(json.dumps(book.state())))
    assert other.state() == book.state()
    assert other.reports(NOW) == book.reports(NOW)
    assert set(book.state()["ports"]["a"]["metrics"]) == set(KEYS)
    for each in (book, other):
        each.ports.observe_percent(np.array([0]), np.array([NOW + 5]), np.array([80.0]))
    assert other.reports(NOW + 5) == book.reports(NOW + 5)


@pytest.mark.parametrize(
    ("damage", "field"),
    [
        (lambda state: state.update(version=9), "version"),
        (lambda state: state.pop("ports"), "ports"),
        (lambda state: state["ports"]["a"].update(family="tape"), "ports.a.family"),
        (lambda state: state["ports"]["a"].update(cpu="none"), "ports.a.cpu"),
        (lambda state: state["ports"]["a"].update(volumes=-1), "ports.a.volumes"),
        (lambda state: state["ports"]["a"]["metrics"].pop("avgCount"), "ports.a.metrics.avgCount"),
        (lambda state: state["ports"]["a"].update(metrics=None), "ports.a.metrics"),
        (lambda state: state["cpus"].update(lost={}), "cpus.lost"),
        (lambda state: state["cpus"]["cpu"].update(emaPercentBusy=1e9), "cpus.cpu.emaPercentBusy"),
    ],
)
def test_a_damaged_state_is_refused_whole_and_names_the_field(damage, field: str):
    book = measured(a=50.0)
    state = book.state()
    damage(state)
    with pytest.raises(PortStateError) as caught:
        book.restore(state)
    assert str(caught.value).startswith(field)
    assert len(book) == 0


def test_a_state_of_anything_else_is_refused():
    for state in (None, [], "x", 3):
        with pytest.raises(PortStateError):
            PortBook(SETTINGS).restore(state)


def test_an_unknown_family_is_our_own_misuse():
    with pytest.raises(KeyError):
        PortBook(SETTINGS).add("a", "tape")
