"""A monitor's part in advice about their number: over the store's twin or etcd, with real programs and no loop."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from apps.cluster.etcd import Access, EtcdEngine
from apps.cluster.scaling_feed import ScalingFeed
from apps.cluster.scaling_orders import ScalingOrders
from apps.cluster.scaling_shown import KEPT, ScalingSection
from apps.cluster.scaling_thread import BEGUN_S, Busyness, ScalingHeard, ScalingPlace, ScalingThread
from apps.cluster.store_reading import read_below
from apps.monitor_scaling import MonitorScaling, paced
from controller.cluster.engine import Engine, PutKey, Reply, Request, Silent
from controller.cluster.engine import Transaction as StoreTransaction
from controller.cluster.keys import Keys, Leader, Present
from controller.cluster.memory_engine import MemoryEngine, MemoryStore
from controller.cluster.monitor_states import MonitorsSeen, MonitorState
from controller.cluster.share_records import Manager
from controller.config.scaling_settings import ScalingSettings
from controller.config.settings import ClassIntervals, Monitor
from controller.performance.poll_load import PollLoadReading
from controller.scaling.advised import Advised, read_advised
from controller.scaling.loads import MemberLoad
from patience import wait_until

FABRIC = "scaled"
KEYS = Keys(FABRIC)
PATIENCE_S = 20.0


def waited(reached: Callable[[], Any]) -> None:
    """Wait until something is so, for what this process and those it began have to do."""
    wait_until(reached, os.getpid(), PATIENCE_S)


def state(*, divides: bool = False, drained: bool = False, leaving: int = 0, switches: int = 10) -> MonitorState:
    # A switch that nobody is connected to stays whose it was.
    polled = (1, 0) if drained else (switches, 100)
    return MonitorState(divides, drained, "", 30, *polled, leaving, 33.3)


class Pool:
    """Monitors as the first of them, which divides, sees them; the others' loads are put by the test."""

    def __init__(self, engine: Engine | None = None, **settings: Any) -> None:
        self.engine = MemoryEngine(MemoryStore()) if engine is None else engine
        self.states: dict[str, MonitorState] = {"m1": state(divides=True), "m2": state(), "m3": state()}
        self.unowned = 0
        self.heard: list[ScalingHeard] = []
        self.done: list[Advised] = []
        self.settings = ScalingSettings(mode="apply", interval_s=300, **settings)
        self.put(KEYS.manager, Manager("m1", "run-1").text())
        self.thread = self.made()

    def made(self) -> ScalingThread:
        orders = ScalingOrders(lambda order, name: {}, lambda: self.states, ())
        orders.prepare = lambda advised, chosen: self.done.append(advised) or (False, [])  # type: ignore[method-assign]
        return ScalingThread(
            *(self.settings, ScalingPlace("m1", "run-1", FABRIC), self.ask),
            lambda: MonitorsSeen(self.states, self.unowned),
            *(lambda: Busyness(PollLoadReading(), 0.0, 64, 0.0), orders, self.heard.append),
            logging.getLogger("test"),
        )

    def ask(self, request: Request) -> Reply:
        return self.engine.ask(request)

    def put(self, key: str, value: str) -> None:
        self.engine.ask(StoreTransaction((), (PutKey(key, value),)))

    def held(self) -> Mapping[str, str]:
        return {each.key: each.value for each in read_below(self.ask, KEYS.scaling)[1]}

    def goes(self, number: int, usage: float, pace: int = 1, *, is_waited_for: bool = True) -> Advised:
        """Have an interval pass in which each is so busy, and wait for what is done; return what is said of it."""
        for name in self.states:
            load = MemberLoad(number, 300, f"run-{name[1:]}", True, pace, usage, 0.1, 0.0, 1000, 0, 0, {20: 1000})
            self.put(f"{KEYS.scaling_loads}{name}", load.text())
        self.heard.clear()
        self.thread._look(number)
        waited(lambda: not is_waited_for or self.thread._work.waiting is None)
        return self.heard[0].said[-1]

    def events(self) -> list[str]:
        return [told.kind for heard in self.heard for told in heard.events]


@pytest.fixture(params=["memory", "etcd"])
def pool_of(request: pytest.FixtureRequest) -> Iterator[Callable[..., Pool]]:
    """Make pools over the twin, and over a server of etcd."""
    with ExitStack() as stack:

        def made(**settings: Any) -> Pool:
            if request.param == "memory":
                return Pool(**settings)
            engine = EtcdEngine(Access((request.getfixturevalue("own_etcd").endpoint,)), PATIENCE_S)
            stack.callback(engine.close)
            return Pool(engine, **settings)

        yield made


def test_what_is_advised_is_in_the_store_told_and_done() -> None:
    pool = Pool()
    said = pool.goes(7, 0.95)
    assert (said.wanted, said.is_ordered) == (4, True)
    assert [each.wanted for each in pool.done] == [4]
    assert pool.events() == ["scaling-advice", "scaling-done"]
    assert [heard.actions for heard in pool.heard] == [(), ("start",)]
    assert json.loads(pool.held()[f"{KEYS.scaling_said}007"])["wanted"] == 4
    assert pool.goes(8, 0.95).withheld and len(pool.done) == 1, "not twice within two intervals"
    assert pool.heard[0].said[0] == said._replace(begun_s=None, outcome="It was done.")


def test_one_that_does_not_divide_reads_what_is_said() -> None:
    pool = Pool()
    said = pool.goes(7, 0.95)
    pool.states = {"m1": state(), "m2": state(divides=True), "m3": state()}
    pool.heard.clear()
    pool.thread._follow()
    assert pool.heard == [ScalingHeard((said._replace(begun_s=None, outcome="It was done."),), (), 1)]


def test_one_that_was_replaced_says_nothing() -> None:
    pool = Pool()
    pool.put(KEYS.manager, Manager("m2", "run-2").text())
    pool.thread._look(7)
    assert pool.heard == [] and pool.held() == {}


@pytest.mark.parametrize(
    ("put", "why"),
    [
        ({"unowned": 3}, "3 switches have no monitor yet."),
        ({"unowned": 1}, "1 switch has no monitor yet."),
        ({"leaving": 2}, "2 switches are on their way from one monitor to another."),
        ({"leader": 5, "taken_over": 4}, "c1 is taking over."),
        ({"taken_over": 4}, "No controller leads."),
    ],
)
def test_nothing_is_advised_while_switches_or_the_lead_change_hands(put: dict[str, int], why: str) -> None:
    pool = Pool()
    pool.unowned = put.get("unowned", 0)
    if "leaving" in put:
        pool.states["m2"] = state(leaving=put["leaving"])
    if "taken_over" in put:
        pool.put(f"{KEYS.members}c1", Present("c1", "run-c", "", 3).text())
        pool.put(KEYS.taken_over, str(put["taken_over"]))
    if "leader" in put:
        pool.put(KEYS.leader, Leader("c1", "run-c", put["leader"], "").text())
    assert pool.goes(7, 0.95).gap == why
    assert pool.done == []


def test_where_the_lead_was_taken_over_advice_goes_on() -> None:
    pool = Pool()
    pool.put(f"{KEYS.members}c1", Present("c1", "run-c", "", 3).text())
    pool.put(KEYS.leader, Leader("c1", "run-c", 5, "").text())
    pool.put(KEYS.taken_over, "5")
    assert pool.goes(7, 0.95).is_ordered


@pytest.mark.parametrize(
    ("metrics", "peer", "is_beside"),
    [
        ("10.0.1.2:9471", "10.0.1.2:6700", True),
        ("[2001:db8::2]:9471", "[2001:db8::2]:6700", True),
        ("10.0.1.2:9471", "10.0.1.3:6700", False),
        ("127.0.0.1:9471", "127.0.0.1:6700", False),
        ("", "", False),
    ],
)
def test_a_monitor_on_the_machine_of_who_leads_is_told_by_both_addresses(
    metrics: str, peer: str, is_beside: bool
) -> None:
    pool = Pool()
    pool.states["m2"] = pool.states["m2"]._replace(metrics=metrics)
    pool.put(f"{KEYS.members}c1", Present("c1", "run-c", peer, 3).text())
    pool.put(KEYS.leader, Leader("c1", "run-c", 5, peer).text())
    pool.put(KEYS.taken_over, "5")
    assert pool.goes(7, 0.95).placement.startswith("m2 runs on") is is_beside


def test_a_table_that_makes_no_sense_is_left_aside_and_said(pool_of: Callable[..., Pool]) -> None:
    pool = pool_of()
    pool.put(KEYS.scaling_table, "torn {")
    assert pool.goes(7, 0.5).gap == ""
    assert "scaling-table-broken" in pool.events()
    held = pool.held()
    assert held[KEYS.scaling_broken] == "torn {"
    assert json.loads(held[KEYS.scaling_table])["loads"] == [[7, 1.5]]


def test_the_next_one_that_divides_goes_on_with_what_was_learnt(pool_of: Callable[..., Pool]) -> None:
    pool = pool_of()
    pool.goes(7, 0.95)
    pool.thread = pool.made()
    assert pool.goes(8, 0.95).withheld == "Something was done in the interval before already."
    assert json.loads(pool.held()[KEYS.scaling_table])["loads"] == [[7, 2.85], [8, 2.85]]


def test_loads_of_those_that_are_gone_go_too_and_others_polls_become_rarer_where_none_is_left(
    pool_of: Callable[..., Pool],
) -> None:
    pool = pool_of(limit=3)
    pool.put(f"{KEYS.scaling_loads}m9", "{}")
    said = pool.goes(7, 0.95)
    held = pool.held()
    assert f"{KEYS.scaling_loads}m9" not in held and held[KEYS.scaling_pace] == "2"
    assert (said.wanted_pace, pool.heard[-1].pace, pool.heard[-1].actions) == (2, 2, ("rarer",))
    pool.thread = pool.made()
    assert (pool.goes(8, 0.5, pace=2).pace, pool.heard[0].pace) == (2, 2), "the next one that divides keeps the pace"


def test_who_says_before_an_interval_ends_that_it_has_ended_is_early(pool_of: Callable[..., Pool]) -> None:
    pool = pool_of()
    number = int(time.time() // 300) - 1
    for name, told in (("m1", number - 1), ("m2", number), ("m3", number - 1)):
        load = MemberLoad(told, 300, f"run-{name[1:]}", True, 1, 0.5, 0.1, 0.0, 1000, 0, 0, {20: 1000})
        pool.put(f"{KEYS.scaling_loads}{name}", load.text())
    assert pool.thread._waited_for_end((number + 1) * 300, number)
    assert pool.goes(number, 0.5).gap.startswith("The clock of m2 is ahead of that of the monitor that divides")


def test_a_store_that_is_silent_costs_an_interval_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Pool()
    pool.goes(6, 0.7)
    real = pool.engine.ask
    transactions: list[Request] = []

    def silent(request: Request) -> Reply:
        if type(request) is StoreTransaction and request.conditions:
            transactions.append(request)
            return Silent("It says nothing.")
        return real(request)

    monkeypatch.setattr(pool, "ask", silent)
    pool.thread = pool.made()
    pool.heard.clear()
    pool.thread._advise(7, True)
    assert len(transactions) == 1 and pool.done == [] and pool.heard == []


def test_which_run_was_drained_for_advice_is_in_the_store_until_it_has_its_part_again(
    pool_of: Callable[..., Pool],
) -> None:
    pool = pool_of()
    assert pool.goes(7, 0.4).wanted == 2
    assert pool.held()[f"{KEYS.scaling_drained}m3"] == "run-3"
    pool.states["m3"] = state(drained=True)
    chosen: list[tuple[str, ...]] = []
    pool.thread = pool.made()
    pool.thread._orders.prepare = lambda _, names: chosen.append(names) or (False, [])  # type: ignore[method-assign]
    assert pool.goes(9, 0.95).wanted == 3
    assert chosen == [("m3",)]
    pool.states["m3"] = state()
    pool.goes(10, 0.7)
    assert f"{KEYS.scaling_drained}m3" not in pool.held()


def test_what_the_program_fails_at_is_on_every_page_until_it_does_not(pool_of: Callable[..., Pool]) -> None:
    pool, why = pool_of(), "No host is free."
    orders = pool.thread._orders
    orders.prepare = lambda advised, chosen: (True, [])  # type: ignore[method-assign]
    orders.run = lambda wanted, drained: why  # type: ignore[method-assign]
    pool.thread._work._waits_s = (600.0, 600.0)
    pool.goes(7, 0.95, is_waited_for=False)
    waited(lambda: "scaling-failed" in pool.events())
    tried = "Try 1 failed: No host is free. It is tried again in 600 s, unless other advice comes."
    shown = read_advised(pool.held()[f"{KEYS.scaling_said}007"])
    assert shown is not None and (shown.outcome, shown.begun_s) == (tried, None)
    following = pool.goes(8, 0.95, is_waited_for=False)
    assert (following.outcome, following.withheld) == (tried, ""), "the page shows the latest interval first"
    assert pool.goes(9, 0.95, is_waited_for=False).outcome == tried and pool.thread._work.waiting is not None
    assert pool.goes(10, 0.7, is_waited_for=False).outcome == ""
    assert pool.thread._work.waiting is None, "as many as are there are enough now"


def test_one_that_divides_after_another_was_killed_waits_for_what_that_one_began_and_then_does_it(
    pool_of: Callable[..., Pool],
) -> None:
    pool = pool_of()
    pool.thread._work.begin = lambda *_: None  # type: ignore[method-assign]
    assert pool.goes(7, 0.95).begun_s is not None
    pool.thread = pool.made()
    assert pool.goes(8, 0.95).gap == "What was advised before is still being done."
    begun = read_advised(pool.held()[f"{KEYS.scaling_said}007"])
    assert begun is not None and begun.begun_s is not None
    pool.put(f"{KEYS.scaling_said}007", begun._replace(begun_s=begun.begun_s - BEGUN_S).text())
    assert pool.goes(9, 0.95).is_ordered and [each.number for each in pool.done] == [9]


def test_monitors_that_were_drained_and_never_ended_are_ended_by_the_next_one_that_divides(
    pool_of: Callable[..., Pool],
) -> None:
    pool, ran = pool_of(), list[tuple[int, tuple[str, ...]]]()
    pool.goes(7, 0.4)
    pool.states["m3"] = state(drained=True)
    pool.settings = replace(pool.settings, command=("scale",))
    pool.thread = pool.made()
    pool.thread._orders.run = lambda wanted, drained: ran.append((wanted, tuple(drained))) or ""  # type: ignore[method-assign]
    pool.goes(8, 0.6)
    assert ran == [], "not twice within two intervals"
    assert pool.goes(9, 0.6).is_ordered is False and ran == [(2, ("m3",))]
    pool.goes(11, 0.6)
    assert len(ran) == 1, "the program was told, and did not fail"


def test_limits_are_others_from_the_end_of_the_interval_on_and_what_was_learnt_stays() -> None:
    pool = Pool(limit=3)
    assert pool.goes(7, 0.8).wanted == 3
    pool.thread.configure(replace(pool.settings, limit=2, mode="advise"))
    assert pool.thread._renewed() and not pool.thread._renewed()
    said = pool.goes(8, 0.6)
    assert (said.wanted, said.rule, said.is_ordered) == (2, "there are to be at most 2 monitors", False)
    pool.thread.configure(replace(pool.settings, interval_s=60))
    assert pool.thread._renewed()
    assert json.loads(pool.held()[KEYS.scaling_table])["loads"] == [[7, 2.4], [8, 1.8]]


def test_a_try_that_waits_is_dropped_as_soon_as_nothing_is_to_be_done_any_more() -> None:
    pool = Pool()
    orders = pool.thread._orders
    orders.prepare = lambda advised, chosen: (True, [])  # type: ignore[method-assign]
    orders.run = lambda wanted, drained: "No host is free."  # type: ignore[method-assign]
    pool.goes(7, 0.95, is_waited_for=False)
    waited(lambda: "scaling-failed" in pool.events())
    pool.thread.configure(replace(pool.settings, command=("other",)))
    assert orders.command == ("other",) and pool.thread._work.waiting is not None
    pool.thread.configure(replace(pool.settings, mode="off"))
    assert pool.thread._work.waiting is None


def test_the_latest_intervals_are_shown_and_no_more() -> None:
    section = ScalingSection()
    section.see(Advised(number, 300, 2, 0, 1, gap="m2 told nothing.") for number in range(KEPT + 5))
    assert section.latest is not None and section.latest.number == KEPT + 4
    assert len(section.section.changes(0, 1000)["put"]) == KEPT


def test_intervals_between_polls_change_by_a_factor_and_come_back() -> None:
    monitor = Monitor(interval_s=10, intervals=ClassIntervals(tor=5, core=30))
    twice = paced(monitor, 1, 2)
    assert (twice.interval_s, twice.intervals.tor, twice.intervals.core) == (20, 10, 60)
    assert twice.intervals.aggregation is None and paced(twice, 2, 1) == monitor
    scaling = MonitorScaling()
    assert scaling.heard(ScalingHeard((), (), 1), monitor) is None
    assert scaling.heard(ScalingHeard((), (), 2, 0.5, ("rarer",)), monitor) == twice
    assert scaling.paced(replace(monitor, interval_s=30)).interval_s == 60, "a policy that is read keeps the factor"
    assert scaling.state().actions["rarer"] == 1 and scaling.state().met_ratio == 0.5


class WatchedLink:
    """The link of a controller, over the store's twin."""

    def __init__(self, engine: MemoryEngine) -> None:
        self.ask = engine.ask
        self._engine = engine

    def watch(self, prefix: str, revision: int) -> Any:
        return self._engine.watch(prefix, revision)


def test_a_controller_follows_what_is_said() -> None:
    pool, told = Pool(), list[Advised]()
    pool.goes(7, 0.5)
    feed = ScalingFeed(WatchedLink(pool.engine), FABRIC, told.extend)  # type: ignore[arg-type]
    feed.start()
    waited(lambda: [each.number for each in told] == [7])
    pool.goes(8, 0.5)
    waited(lambda: [each.number for each in told] == [7, 8])
    feed.close()
