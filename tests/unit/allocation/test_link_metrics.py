"""Which port metrics of links are told, to whom and when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.allocation.events import AllocationChanged
from controller.config.load import load_policy
from controller.config.settings import Allocation
from controller.multicast.events import LoadsMeasured
from controller.performance.app import APP
from controller.unicast.weights import PortsWeighed
from topology.events import LinkDown

from .allocator_bench import MINUTE, Bench


class Listening(Bench):
    """Remembers what is told, and lets the core answer every sample."""

    def __init__(self, **wanted: bool) -> None:
        self.told: list[LoadsMeasured | PortsWeighed] = []
        super().__init__(Allocation(openflow=MINUTE, **wanted))
        self.connect()

    def tell(self, *events: object) -> None:
        for event in events:
            self.told += self.core.handle(event, 0.0)

    def heard(self) -> dict[type, dict[tuple[int, int], float]]:
        """What was told since the last call, by kind and port."""
        told, self.told = self.told, []
        found: dict[type, dict[tuple[int, int], float]] = {}
        for each in told:
            entries = each.loads if isinstance(each, LoadsMeasured) else each.ports
            found.setdefault(type(each), {}).update({(entry[0], entry[1]): entry[-1] for entry in entries})
        return found


BUSY = {"1:1": 42.0, "1:2": 0.0, "11:1": 42.0, "1:3": 90.0}


def test_nothing_is_told_where_the_policy_wants_nothing():
    bench = Listening()
    bench.measure(BUSY)
    assert bench.heard() == {}


def test_trees_and_paths_hear_the_metrics_of_ports_between_switches():
    bench = Listening(trees=True, paths=True)
    bench.measure(BUSY)
    assert bench.heard() == {
        LoadsMeasured: {(1, 1): 0.42e9, (11, 1): 0.42e9},
        PortsWeighed: {(1, 1): 4, (11, 1): 4},
    }
    loads = Listening(trees=True)
    loads.measure(BUSY)
    assert set(loads.heard()) == {LoadsMeasured}


def test_what_is_as_it_was_is_not_told_again_and_noise_changes_no_level():
    bench = Listening(paths=True)
    bench.measure(BUSY)
    bench.heard()
    bench.measure(BUSY)
    assert bench.heard() == {}
    bench.measure({"1:1": 46.0})
    assert bench.heard() == {}
    bench.measure({"1:1": 95.0})
    bench.measure({"1:1": 95.0})
    assert bench.heard()[PortsWeighed][1, 1] >= 7


def test_many_samples_in_little_time_are_told_once():
    bench = Listening(trees=True)
    bench.measure(BUSY)
    bench.heard()
    for _ in range(14):
        bench.now_s += 1
        bench.rate({"1:1": 99.0})
    assert len(bench.told) <= 1


def test_the_console_says_which_metric_was_told():
    bench = Listening(trees=True)
    bench.measure(BUSY)
    told = {name: port["told_pct"] for name, port in bench.watch().items()}
    assert (told["1:1"], told["1:2"], told["1:3"]) == (42, 0, None)


@pytest.mark.parametrize("which", ["trees", "paths"])
def test_who_is_to_hear_no_more_is_told_0_and_the_other_goes_on(which: str):
    bench = Listening(trees=True, paths=True)
    bench.measure(BUSY)
    bench.heard()
    bench.tell(AllocationChanged(replace(bench.core.settings, **{which: False})))
    bench.measure(BUSY)
    kind = LoadsMeasured if which == "trees" else PortsWeighed
    assert bench.heard() == {kind: {(1, 1): 0.0, (11, 1): 0.0}}
    bench.tell(AllocationChanged(replace(bench.core.settings, **{which: True})))
    bench.measure(BUSY)
    assert {key for key, load in bench.heard()[kind].items() if load} == {(1, 1), (11, 1)}


def test_a_cable_that_is_gone_is_told_as_idle():
    bench = Listening(paths=True)
    bench.measure(BUSY)
    bench.heard()
    bench.tell(LinkDown(1, 1, 11, 1))
    bench.measure(BUSY)
    assert bench.heard() == {PortsWeighed: {(1, 1): 0, (11, 1): 0}}


@pytest.mark.parametrize(("section", "feeds"), [("", True), ("allocation: {trees: true}", False)])
def test_the_monitor_leaves_trees_to_the_metrics(section: str, feeds: bool):
    policy = load_policy(f"version: 1\ndefault: allow\n{section}\n")
    assert APP.core().start(policy, 0.0)["monitor"].feed_trees is feeds
