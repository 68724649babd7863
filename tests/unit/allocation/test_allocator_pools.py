"""Which pod, plane or switch of the live fabric has room, and is loaded least."""

from __future__ import annotations

from typing import Any

import pytest

from controller.allocation.fields import RequestError
from controller.config.settings import Allocation, PortParameters
from controller.events import PortChanged, SwitchDisconnected

from .allocator_bench import UPLINKS, Bench, port


@pytest.fixture
def bench() -> Bench:
    return Bench().connect()


def ask(bench: Bench, **asked: Any) -> dict[str, Any]:
    return bench.console.pool({"ports": UPLINKS, **asked})


def by_name(answer: dict[str, Any]) -> dict[str, Any]:
    return {each["id"]: each for each in answer["pools"]}


def test_the_least_loaded_pod_with_the_ports_is_taken(bench: Bench):
    bench.measure({"1:1": 40, "1:2": 20, "2:1": 10, "2:2": 30})
    answer = ask(bench)
    assert (answer["by"], answer["pool"], answer["ports"]) == ("pod", "2", ["2:1", "2:2"])
    pods = by_name(answer)
    assert {name: pod["metric"] for name, pod in pods.items()} == pytest.approx({"1": 30, "2": 20})
    assert {name: pod["free_pct"] for name, pod in pods.items()} == pytest.approx({"1": 140, "2": 160})
    assert answer["measured"]["valid"] == 4
    assert ask(bench, by="plane", ports={"type": "core"})["pools"] == []
    assert ask(bench, by="neighbour")["pool"] == "11"


def test_what_is_reserved_counts_until_ports_are_measured(bench: Bench):
    bench.measure({"1:1": 20, "1:2": 20, "2:1": 10, "2:2": 10})
    bench.allocate(ports=["2:1", "2:2"], count=2, size_pct=20)
    assert ask(bench)["pool"] == "1"


def test_paths_need_two_failure_domains(bench: Bench):
    bench.measure({"1:1": 10, "1:2": 10, "2:1": 30, "2:2": 30})
    bench.tell(PortChanged(1, port(2, up=False), False))
    answer = ask(bench, by="switch", count=2)
    assert answer["pool"] == "2"
    assert by_name(answer)["1"]["reason"] == "1 usable ports, 2 needed"
    assert ask(bench, by="switch", count=2, allow_down=True)["pool"] == "1"
    answer = ask(bench, by="pod", count=2)
    assert (answer["pool"], by_name(answer)["2"]["reason"]) == (None, "all usable ports are in one switch")


def test_a_pool_without_room_or_only_with_ports_over_a_ceiling_does_not_fit():
    ceiling = PortParameters(days_to_average_utilization=10001, port_utilization_ceiling=50)
    bench = Bench(Allocation(openflow=ceiling)).connect().measure({"1:1": 60, "1:2": 60, "2:1": 45, "2:2": 45})
    answer = ask(bench, size_pct=100)
    assert (answer["pool"], answer["ports"]) == ("2", ["2:1", "2:2"])
    full = by_name(answer)["1"]
    assert (full["fits"], full["usable"], full["metric"]) == (False, 0, pytest.approx(60))
    answer = ask(bench, by="switch", count=2, size_pct=60)
    assert (answer["pool"], answer["ports"]) == (None, [])
    assert by_name(answer)["2"]["reason"] == "110 % free, 120 needed"


def test_switches_that_are_gone_are_in_no_pool(bench: Bench):
    bench.measure({"1:1": 40, "1:2": 40, "2:1": 50, "2:2": 50})
    bench.tell(SwitchDisconnected(1))
    assert list(by_name(ask(bench))) == ["2"]
    assert ask(bench, by="line_card") | {"measured": None} == {
        "by": "line_card",
        "pool": None,
        "ports": [],
        "pools": [],
        "without": 2,
        "measured": None,
    }


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"by": "rack"}, "by: 'rack' is none of plane, pod, switch, line_card, neighbour"),
        ({"count": 0}, "count: 0 is below 1"),
        ({"size_pct": 101}, "size_pct: 101 is not within 0 and 100"),
        ({"ports": {"type": "spine"}}, "ports.type: 'spine' is none of"),
        ({"wanted": 1}, "request.wanted: unknown field"),
    ],
)
def test_a_faulty_question_is_refused_with_its_field(bench: Bench, asked: dict[str, Any], message: str):
    with pytest.raises(RequestError) as error:
        ask(bench, **asked)
    assert message in str(error.value)
