"""Ports that were proposed count as attached until they are seen in use."""

from __future__ import annotations

from collections import Counter

import pytest

from controller.allocation import proposals
from controller.events import PortChanged
from topology.events import HostLearnt

from .allocator_bench import UPLINKS, Bench, port


@pytest.fixture
def bench() -> Bench:
    return Bench().connect()


def test_on_an_idle_fabric_every_port_is_proposed_before_any_is_again(bench: Bench):
    idle = dict.fromkeys(("1:1", "1:2", "2:1", "2:2"), 0.0)
    bench.measure(idle)
    taken: Counter[str] = Counter()
    for request in range(12):
        taken.update(bench.allocate(ports=UPLINKS, count=1)["ports"])
        assert max(taken.values()) - min(taken[name] for name in idle) <= 1
        if request % 3 == 2:
            bench.now_s += 10
            bench.rate(idle)
    assert set(taken.values()) == {3}
    assert bench.watch()["1:1"]["proposals"] == 3
    assert bench.watch()["1:1"]["volume_load"] == 3


def test_a_proposal_is_over_when_a_host_comes_load_comes_time_passes_or_the_port_goes(bench: Bench):
    bench.measure({"1:3": 0.0, "1:1": 10.0})

    def proposals(name: str) -> tuple[int, int]:
        found = bench.watch()[name]
        return found["proposals"], found["volume_load"]

    for _ in range(3):
        bench.allocate(ports=["1:3"], count=1, size_pct=5)
    assert proposals("1:3") == (3, 4)
    bench.tell(HostLearnt(bytes([2, 0, 0, 0, 9, 9]), 1, 3, ()))
    assert proposals("1:3") == (2, 4)
    bench.tell(HostLearnt(bytes([2, 0, 0, 0, 9, 9]), 1, 3, (bytes([10, 0, 0, 9]),)))
    assert proposals("1:3") == (2, 4)
    for _ in range(2):
        bench.allocate(ports=["1:1"], count=1, size_pct=5)
    for busy_pct, left in ((14.9, 2), (15.0, 1), (19.9, 1), (20.0, 0)):
        bench.now_s += 10
        bench.rate({"1:1": busy_pct})
        assert proposals("1:1") == (left, left)
    bench.now_s += 3600
    bench.allocate(ports=["1:1"], count=1)
    assert proposals("1:3") == (0, 2)
    bench.tell(PortChanged(1, port(1), deleted=True))
    assert len(bench.core.proposals) == 0


def test_proposals_are_bounded_and_the_oldest_ends(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(proposals, "MOST_PROPOSALS", 2)
    bench.measure({"1:1": 0.0, "1:2": 0.0})
    for name in ("1:1", "1:2", "1:2"):
        bench.allocate(ports=[name], count=1)
    assert [bench.watch()[name]["proposals"] for name in ("1:1", "1:2")] == [0, 2]
    assert bench.core.proposals.overflowed == 1


def test_a_request_that_reserves_nothing_proposes_nothing(bench: Bench):
    bench.allocate(ports=["1:1"], count=1, reserve=False)
    assert bench.watch()["1:1"]["proposals"] == 0
