"""What operators ask of monitors, and the list of targets for Prometheus, over the store's twin and etcd."""

from __future__ import annotations

import json
import logging
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("os_ken")

from apps.cluster.metric_targets import MetricTargets
from apps.cluster.monitor_orders import TRIES, MonitorOrders, carry_out
from apps.openflow.questions import Deferred
from apps.state_dir import ActionLog
from apps.status_server import QuestionRefused
from controller.cluster.draining import draining, undraining
from controller.cluster.engine import ConditionFailed, Engine, KeyPage, PutKey, ReadPage, Reply, Request, Silent
from controller.cluster.engine import Transaction as StoreTransaction
from controller.cluster.keys import Keys, Present
from controller.cluster.memory_engine import MemoryEngine, MemoryStore
from controller.cluster.monitor_states import monitor_states, seen_of
from controller.cluster.share_records import Load, Manager, MonitorRecord, Share, ShareView

FABRIC = "hall"
KEYS = Keys(FABRIC)
SWITCHES = {1: Load(24, 10), 2: Load(48, 10), 3: Load(24, 5)}


class Stored:
    """Two monitors that share three switches, in a store."""

    def __init__(self, engine: Engine, directory: Path) -> None:
        self.engine = engine
        self.put(f"{KEYS.manager}", Manager("m1", "run-1").text())
        for name, number in (("m1", 1), ("m2", 2)):
            record = MonitorRecord(f"run-{number}", f"10.0.1.{number}:9471", SWITCHES, 0)
            self.put(f"{KEYS.monitors}{name}", record.text())
        for dpid, owner in ((1, "m1"), (2, "m1"), (3, "m2")):
            self.put(KEYS.share_of(dpid), Share(owner, owner.replace("m", "run-"), 1, "", 0.0).text())
        log = ActionLog(directory / "actions.jsonl", logging.getLogger("test"))
        self.orders = MonitorOrders(self.ask, FABRIC, lambda work: work(), log)
        self.replies: list[Reply] = []

    def ask(self, request: Request) -> Reply:
        if type(request) is StoreTransaction and self.replies:
            return self.replies.pop(0)
        return self.engine.ask(request)

    def put(self, key: str, value: str) -> None:
        self.engine.ask(StoreTransaction((), (PutKey(key, value),)))

    def view(self) -> ShareView:
        view, page = ShareView(KEYS), self.engine.ask(ReadPage(KEYS.share))
        assert isinstance(page, KeyPage)
        view.replace(page.held)
        return view

    def drain(self, monitor: str) -> dict[str, Any]:
        return carry_out(self.ask, KEYS, draining, monitor)

    def undrain(self, monitor: str) -> dict[str, Any]:
        return carry_out(self.ask, KEYS, undraining, monitor)


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    return Stored(MemoryEngine(MemoryStore()), tmp_path)


def test_one_is_drained_and_drained_no_longer(stored: Stored):
    assert stored.drain("m1") == {"monitor": "m1", "switches": 2, "changed": True}
    assert stored.view().drained() == {"m1"}
    assert stored.drain("m1")["changed"] is False
    assert stored.undrain("m1") == {"monitor": "m1", "switches": 2, "changed": True}
    assert stored.view().drained() == frozenset()
    assert stored.undrain("m1")["changed"] is False


def test_the_other_one_is_refused_then(stored: Stored):
    stored.drain("m1")
    refused = stored.drain("m2")
    assert (refused["refused"], refused["field"]) == (True, "monitor")
    assert refused["error"].startswith("m2 is not drained: no other monitor that is not drained is connected to 3 of")
    assert stored.view().drained() == {"m1"}


def test_a_monitor_that_was_started_anew_is_not_drained(stored: Stored):
    stored.drain("m1")
    stored.put(f"{KEYS.monitors}m1", MonitorRecord("run-9", "", SWITCHES, 0).text())
    assert stored.view().drained() == frozenset()
    assert stored.drain("m2")["changed"] is True


def test_of_two_orders_at_once_the_later_one_is_looked_at_anew(stored: Stored):
    view = stored.view()
    first, second = draining(KEYS, view, "m1"), draining(KEYS, view, "m2")
    assert first is not None and second is not None
    stored.engine.ask(first)
    assert type(stored.engine.ask(second)) is ConditionFailed
    assert stored.drain("m2")["refused"] is True


def test_an_answer_that_was_lost_is_asked_for_again(stored: Stored):
    stored.replies = [Silent("lost")]
    assert stored.drain("m1")["changed"] is True
    stored.replies = [Silent("lost")] * TRIES
    refused = stored.undrain("m1")
    assert (refused["reason"], "nobody knows whether" in refused["error"]) == ("engine-unconfirmed", True)
    stored.replies = [ConditionFailed(1, ())] * TRIES
    assert "Ask again" in stored.undrain("m1")["error"]


def test_while_the_store_is_silent_nothing_is_done(stored: Stored):
    stored.engine.store.be_silent(9.0)  # type: ignore[attr-defined]
    assert stored.drain("m1")["reason"] == "engine-unreachable"


@pytest.mark.parametrize("asked", [{}, {"monitor": ""}, {"monitor": 7}])
def test_no_name_is_refused_before_the_store_is_asked(stored: Stored, asked: dict[str, Any]):
    with pytest.raises(QuestionRefused, match="must be the name"):
        stored.orders.actions()["drain-monitor"](asked)


def test_who_asked_is_written_down(stored: Stored, tmp_path: Path):
    answer = stored.orders.actions()["drain-monitor"]({"monitor": "m1", "by": "ann"})
    assert isinstance(answer, Deferred)
    stored.orders._log.flush()
    (line,) = (tmp_path / "actions.jsonl").read_text().splitlines()
    assert (json.loads(line)["action"], json.loads(line)["by"]) == ("drain-monitor", "ann")


def test_what_monitors_are_about(stored: Stored):
    states = monitor_states(stored.view())
    assert (states["m1"].divides, states["m1"].switches, states["m1"].ports, states["m1"].load_pct) == (
        *(True, 2, 72),
        60.0,
    )
    assert (states["m2"].divides, states["m2"].connected, states["m2"].load_pct) == (False, 3, 40.0)
    stored.put(KEYS.share_of(1), Share("m2", "run-2", 2, "run-1", 0.0).text())
    assert monitor_states(stored.view())["m1"].leaving == 1
    stored.put(KEYS.share_of(2), Share("m9", "run-9", 2, "", 0.0).text())
    assert seen_of(stored.view()).unowned == 1


def test_a_switch_that_nobody_is_connected_to_is_none_of_a_monitors_switches(stored: Stored):
    """Its last share stays in the store, and would make a drained monitor look as if it polled something."""
    before = monitor_states(stored.view())["m1"]
    stored.put(KEYS.share_of(77), Share("m1", "run-1", 2, "", 0.0).text())
    assert monitor_states(stored.view())["m1"] == before


def test_targets_are_those_who_say_where_their_metrics_are(stored: Stored):
    stored.put(f"{KEYS.members}c1", Present("c1", "run", "10.0.0.1:6700", 3, metrics="10.0.0.1:9471").text())
    stored.put(f"{KEYS.members}c2", Present("c2", "run", "10.0.0.2:6700", 3).text())
    targets = MetricTargets(stored.ask, FABRIC)
    page = targets.page("")
    found = json.loads(b"".join(page.pieces))
    assert page.media_type == "application/json"
    assert [(each["labels"]["__meta_vsrt_role"], *each["targets"]) for each in found] == [
        ("controller", "10.0.0.1:9471"),
        ("monitor", "10.0.1.1:9471"),
        ("monitor", "10.0.1.2:9471"),
    ]
    assert found[0]["labels"] == {
        **{"__meta_vsrt_fabric": FABRIC, "__meta_vsrt_role": "controller", "__meta_vsrt_member": "c1"}
    }
    stored.engine.store.be_silent(9.0)  # type: ignore[attr-defined]
    assert json.loads(b"".join(targets.page("").pieces)) == found, "as it was while the store is silent"


def test_an_unread_list_is_no_empty_one(stored: Stored):
    stored.engine.store.be_silent(9.0)  # type: ignore[attr-defined]
    page = MetricTargets(stored.ask, FABRIC).page("")
    assert page.status is HTTPStatus.SERVICE_UNAVAILABLE
