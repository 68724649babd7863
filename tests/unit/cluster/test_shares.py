"""Monitors that share switches: who polls what, through faults one at a time and by drawn histories."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import cluster_shares
import pytest
from cluster_shares import PATIENCE_S, calm, history, owners
from simulated_monitors import FABRIC, INTERVAL_S, LEASE_S, MonitoredFabric, MonitorNode, counted_rows

from controller.cluster.draining import DrainRefused
from controller.cluster.effects import StoreRequest
from controller.cluster.engine import Committed, KeyChange, KeyValue, PutKey, Transaction
from controller.cluster.events import Answered, KeysChanged
from controller.cluster.keys import Keys
from controller.cluster.memory_engine import MemoryEngine, RequestFault
from controller.cluster.share_events import LeaveWanted, SwitchesSeen
from controller.cluster.share_records import (
    Load,
    Manager,
    MonitorRecord,
    Share,
    ShareView,
    read_manager,
    read_monitor,
    read_share,
)
from controller.cluster.shares import STEADY_S, ShareCore, ShareSettings
from controller.events import DeadlineReached

PORTS = dict.fromkeys(range(1, 41), 48)


@pytest.fixture
def fabric() -> MonitoredFabric:
    """Four monitors that have divided 40 switches."""
    fabric = MonitoredFabric(3, 4, PORTS)
    until(fabric, fabric.is_divided)
    fabric.run(fabric.now + INTERVAL_S)
    return fabric


def until(fabric: MonitoredFabric, reached: Callable[[], bool], within_s: float = PATIENCE_S) -> None:
    fabric.run(fabric.now + within_s, reached)
    assert reached(), (fabric.now, fabric.shares())


def manager(fabric: MonitoredFabric) -> MonitorNode:
    (found,) = (node for node in fabric.monitors.values() if node.is_up and node.shares.is_manager)
    return found


def another(fabric: MonitoredFabric) -> MonitorNode:
    return next(node for node in fabric.monitors.values() if not node.shares.is_manager)


def longest_gap_s(fabric: MonitoredFabric) -> float:
    """The longest time between two rows that count; no row is one of two."""
    longest_s = 0.0
    for rows in fabric.rows.values():
        counted, twice = counted_rows(rows)
        assert not twice
        longest_s = max(longest_s, *(later.at_s - row.at_s for row, later in itertools.pairwise(counted)))
    return longest_s


def test_a_cold_start_waits_for_all_and_gives_each_the_same(fabric: MonitoredFabric):
    assert {len(epochs) for epochs in fabric.shares().values()} == {10}
    assert {epoch for epochs in fabric.shares().values() for epoch in epochs.values()} == {1}
    fabric.run(fabric.now + 3 * INTERVAL_S)
    assert longest_gap_s(fabric) < INTERVAL_S + 0.1


def test_the_share_of_one_that_is_killed_goes_to_the_others_and_no_other_switch_moves(fabric: MonitoredFabric):
    before, dead = owners(fabric), another(fabric)
    dead.kill()
    until(fabric, fabric.is_divided)
    after = owners(fabric)
    assert {dpid for dpid in after if after[dpid] != before[dpid]} == {
        dpid for dpid, name in before.items() if name == dead.name
    }
    fabric.run(fabric.now + 2 * INTERVAL_S)
    assert longest_gap_s(fabric) < 2 * INTERVAL_S


def test_the_death_of_the_manager_is_as_any_other(fabric: MonitoredFabric):
    dead = manager(fabric)
    dead.kill()
    until(fabric, fabric.is_divided)
    assert manager(fabric) is not dead
    fabric.run(fabric.now + 2 * INTERVAL_S)
    assert longest_gap_s(fabric) < 2 * INTERVAL_S
    dead.start()
    fabric.run(fabric.now + 2 * INTERVAL_S)
    assert fabric.is_divided() and len(dead.epochs) == 10
    assert longest_gap_s(fabric) < 2 * INTERVAL_S


def test_after_a_pause_nothing_is_polled_before_the_share_is_confirmed(fabric: MonitoredFabric):
    paused = another(fabric)
    had = set(paused.epochs)
    paused.is_stopped = True
    fabric.run(fabric.now + 2 * INTERVAL_S)
    assert fabric.is_divided()
    polls = paused.shares.figures().switches
    assert polls == len(had)  # it does not know better yet
    paused.resume()
    assert paused.shares.figures().switches == 0
    fabric.run(fabric.now + 3 * INTERVAL_S)
    assert fabric.is_divided() and longest_gap_s(fabric) < 2 * INTERVAL_S


def test_a_pause_that_is_shorter_than_the_lease_changes_nothing(fabric: MonitoredFabric):
    before, paused = owners(fabric), another(fabric)
    paused.is_stopped = True
    fabric.run(fabric.now + 1.5)
    paused.resume()
    fabric.run(fabric.now + INTERVAL_S)
    assert owners(fabric) == before


def test_a_lease_that_is_lost_while_the_store_is_silent_costs_no_share(fabric: MonitoredFabric):
    before = fabric.shares()
    fabric.store.advance(fabric.now)
    fabric.store.be_silent(INTERVAL_S)
    fabric.run(fabric.now + INTERVAL_S)
    for lease in [*fabric.store._leases]:
        fabric.store.expire(lease)
    fabric.run(fabric.now + 3 * INTERVAL_S)
    assert fabric.shares() == before
    assert longest_gap_s(fabric) < INTERVAL_S + 0.1
    assert fabric.told["engine-unreachable"] == 2 * len(fabric.monitors)


def test_one_that_the_store_does_not_hear_goes_on_until_it_hears_that_another_has_its_switches(
    fabric: MonitoredFabric,
):
    cut = another(fabric)
    had = set(cut.epochs)
    cut.engine.fault = RequestFault.REQUEST_LOST
    fabric.run(fabric.now + 2 * INTERVAL_S)
    assert set(cut.epochs) == had
    cut.engine.fault = None
    until(fabric, fabric.is_divided)
    fabric.run(fabric.now + 2 * INTERVAL_S)
    for dpid in had:
        counted, twice = counted_rows(fabric.rows[dpid])
        assert twice and {row.monitor for row in twice} == {cut.incarnation}
        assert max(b.at_s - a.at_s for a, b in itertools.pairwise(counted)) < 2 * INTERVAL_S


def test_a_switch_moves_to_one_that_is_connected_to_it(fabric: MonitoredFabric):
    node = another(fabric)
    dpid = min(node.epochs)
    node.lose(dpid, 3 * INTERVAL_S)
    until(fabric, lambda: dpid not in node.epochs and fabric.is_divided())
    fabric.run(fabric.now + INTERVAL_S)
    assert longest_gap_s(fabric) < 2 * INTERVAL_S


def test_one_that_is_drained_has_no_switches_until_it_is_started_anew(fabric: MonitoredFabric):
    node = another(fabric)
    fabric.drain(node.name)
    until(fabric, lambda: not node.epochs and fabric.is_divided())
    fabric.run(fabric.now + 2 * INTERVAL_S)
    assert not node.epochs and longest_gap_s(fabric) < INTERVAL_S + 0.2
    node.kill()
    node.start()
    until(fabric, lambda: len(node.epochs) == 10 and fabric.is_divided())


def test_one_that_is_drained_no_longer_has_its_part_again(fabric: MonitoredFabric):
    node = another(fabric)
    fabric.drain(node.name)
    until(fabric, lambda: not node.epochs and fabric.is_divided())
    fabric.undrain(node.name)
    until(fabric, lambda: len(node.epochs) == 10 and fabric.is_divided())
    fabric.run(fabric.now + 2 * INTERVAL_S)
    assert longest_gap_s(fabric) < INTERVAL_S + 0.2


def test_the_last_one_is_not_drained(fabric: MonitoredFabric):
    *others, last = sorted(fabric.monitors)
    for name in others:
        fabric.drain(name)
        fabric.run(fabric.now + INTERVAL_S)
    with pytest.raises(DrainRefused, match=rf"{last} is not drained: .* 40 of its 40 switches .* and 32 others"):
        fabric.drain(last)
    assert fabric.is_divided() and len(fabric.monitors[last].epochs) == 40
    fabric.monitors[last].kill()
    until(fabric, fabric.is_divided)
    assert {len(epochs) for epochs in fabric.shares().values()} <= {13, 14}, "those that are drained are left"


def test_a_switch_that_only_one_is_connected_to_keeps_it_from_being_drained(fabric: MonitoredFabric):
    node, alone = another(fabric), 7
    for each in fabric.monitors.values():
        if each is not node:
            each.lose(alone, 10 * INTERVAL_S)
    until(fabric, lambda: alone in node.epochs)
    with pytest.raises(DrainRefused, match=r"1 of its 40 switches \(0{15}7\)"):
        fabric.drain(node.name)


def test_nobody_of_another_name_is_drained(fabric: MonitoredFabric):
    with pytest.raises(DrainRefused, match="no monitor 'm99': there are m01, m02, m03, m04"):
        fabric.drain("m99")


def test_one_that_leaves_gives_its_lease_back_when_it_polls_no_more(fabric: MonitoredFabric):
    node = another(fabric)
    had = set(node.epochs)
    node.give(LeaveWanted())
    until(fabric, lambda: node.shares.has_left, 1.0)
    until(fabric, lambda: fabric.is_divided() and not had & node.epochs.keys(), 1.0)


def test_in_a_store_that_is_emptied_each_puts_anew_what_it_polls_and_later_owners_have_later_epochs(
    fabric: MonitoredFabric,
):
    before = fabric.shares()
    fabric.store.empty()
    while fabric.now < 2 * INTERVAL_S:
        fabric.run(fabric.now + 0.1)
        assert fabric.shares() == before
    assert longest_gap_s(fabric) < 1.01 * INTERVAL_S
    node = another(fabric)
    had = dict(node.epochs)
    node.kill()
    fabric.run(fabric.now + INTERVAL_S)
    assert fabric.is_divided()
    epochs = {dpid: epoch for each in fabric.shares().values() for dpid, epoch in each.items()}
    assert all(epochs[dpid] > epoch for dpid, epoch in had.items())


def test_in_a_store_that_is_emptied_who_had_a_switch_last_has_it(fabric: MonitoredFabric):
    """Whoever was cut off, and had it before, may be the first to put it anew."""
    former, keys = another(fabric), Keys(FABRIC)
    (dpid, epoch), *_ = former.epochs.items()
    former.engine.fault = RequestFault.REQUEST_LOST
    others = [node for node in fabric.monitors.values() if node is not former]
    until(fabric, lambda: any(dpid in node.epochs for node in others), 2 * INTERVAL_S)
    (owner,) = (node for node in others if dpid in node.epochs)
    had = owner.epochs[dpid]
    assert had > epoch
    fabric.store.empty()
    claim = Share(former.name, former.incarnation, epoch, "", 0.0)
    MemoryEngine(fabric.store).ask(Transaction((), (PutKey(keys.share_of(dpid), claim.text()),)))
    former.engine.fault = None
    until(fabric, lambda: dpid not in owner.epochs, STEADY_S)
    until(fabric, lambda: owner.epochs.get(dpid) == had and fabric.is_divided(), STEADY_S)


def test_a_store_that_is_emptied_waits_for_those_who_are_not_back_yet(fabric: MonitoredFabric):
    late, had = another(fabric), set(another(fabric).epochs)
    late.engine.fault = RequestFault.REQUEST_LOST
    fabric.store.empty()
    fabric.run(fabric.now + STEADY_S / 2)
    assert not any(had & epochs.keys() for name, epochs in fabric.shares().items() if name != late.name)
    late.engine.fault = None
    fabric.run(fabric.now + 2 * INTERVAL_S)
    assert fabric.is_divided() and longest_gap_s(fabric) < 2 * INTERVAL_S


def test_of_two_processes_of_one_name_the_later_one_polls(fabric: MonitoredFabric):
    node = another(fabric)
    former = node.shares
    node.shares = ShareCore(ShareSettings(FABRIC, node.name, "another"), fabric.now)
    node.give(SwitchesSeen({dpid: Load(48, INTERVAL_S) for dpid in PORTS}))
    until(fabric, fabric.is_divided)
    fabric.run(fabric.now + INTERVAL_S)
    incarnations = {share.incarnation for share in node.shares.view.shares().values()}
    assert "another" in incarnations and former._settings.incarnation not in incarnations


def test_figures_are_those_of_the_shares(fabric: MonitoredFabric):
    figures = [node.shares.figures() for node in fabric.monitors.values()]
    assert {(each.switches, each.ports) for each in figures} == {(10, 480)}
    assert sum(each.moves for each in figures) == 0 and {each.unowned for each in figures} == {0}
    another(fabric).kill()
    until(fabric, fabric.is_divided)
    assert manager(fabric).shares.figures().moves == 10


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"owner": 1}', "null", '{"switches": {"x": [1, 2]}}'])
def test_values_that_make_no_sense_say_nothing(text: str):
    assert read_monitor(text) is read_manager(text) is read_share(text) is None


def test_values_are_read_as_they_were_written():
    monitor = MonitorRecord("run", "10.0.0.1:9471", {255: Load(48, 10)}, 7)
    share = Share("m1", "run", 3, "other", 2.5)
    manager = Manager("m1", "run")
    assert read_monitor(monitor.text()) == monitor
    assert read_share(share.text()) == share
    assert read_manager(manager.text()) == manager
    assert read_monitor('{"incarnation":"a","metrics":"","switches":{"1":[1,0]},"epoch":1}') is None


def test_a_key_of_a_store_that_was_emptied_is_read_anew_though_its_revision_is_the_same():
    view, keys = ShareView(Keys(FABRIC)), Keys(FABRIC)
    for epoch in (2, 7):
        share = Share("m1", "run", epoch, "", 0.0)
        view.replace([KeyValue(keys.share_of(31), share.text(), 6, 0)])
        assert view.shares() == {31: share}


def test_what_others_put_among_the_shares_is_left_aside(fabric: MonitoredFabric):
    keys = Keys(FABRIC)
    puts = tuple(PutKey(f"{keys.shares}{name}", value) for name, value in (("x", "{}"), ("0" * 16, "no")))
    fabric.store.answer(Transaction((), (*puts, PutKey(f"{keys.monitors}x", "no"), PutKey(f"{keys.share}odd", "1"))))
    fabric.run(fabric.now + 2 * INTERVAL_S)
    assert fabric.is_divided() and longest_gap_s(fabric) < INTERVAL_S + 0.1


def test_a_large_fabric_is_divided_evenly():
    found = {measurement.name: measurement.samples for measurement in calm(200, 10, 31_600)}
    assert min(found["first division: load of a monitor to the mean"]) > 0.95
    assert max(found["first division: load of a monitor to the mean"]) < 1.05
    assert max(found["a monitor was killed: load of a monitor to the mean"]) < 1.05
    assert max(found["a monitor was killed: its switches not polled for"]) < 2
    assert [*found["a monitor was killed: other switches that moved"]] == [0]


@pytest.mark.parametrize("first", range(1, 13, 4))
def test_what_must_hold_does(first: int):
    for seed in range(first, first + 4):
        history(seed)


def all_hold(seeds: range) -> bool:
    try:
        for seed in seeds:
            history(seed)
    except AssertionError:
        return False
    return True


def test_one_that_does_not_wait_for_the_former_owner_is_found(monkeypatch: pytest.MonkeyPatch):
    def own(shares: ShareCore, _now: float) -> dict[int, Share]:
        me = shares._settings.incarnation
        return {dpid: share for dpid, share in shares.view.shares().items() if share.incarnation == me}

    def never(_shares: ShareCore, _now: float) -> None:
        """Acknowledge nothing."""

    monkeypatch.setattr(ShareCore, "_own", own)
    monkeypatch.setattr(ShareCore, "_acknowledge", never)
    change = MonitorNode.change
    monkeypatch.setattr(
        MonitorNode,
        "change",
        lambda node, wanted: (
            change(node, wanted) if not wanted.left else node.at("slow", lambda: change(node, wanted), INTERVAL_S)
        ),
    )
    assert not all_hold(range(1, 12))


def test_one_that_polls_after_a_pause_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(MonitorNode, "confirm", lambda node, _until_s: setattr(node, "until_s", float("inf")))
    assert not all_hold(range(1, 12))


def test_a_manager_that_takes_nobody_for_gone_is_found(monkeypatch: pytest.MonkeyPatch):
    monitors, gone = ShareView.monitors, {}

    def all_that_ever_were(view: ShareView) -> dict[str, MonitorRecord]:
        known = gone.setdefault(id(view), {})
        known |= monitors(view)
        return dict(known)

    monkeypatch.setattr(cluster_shares, "LONGEST_FAULT_S", 3.0 * INTERVAL_S)
    assert all_hold(range(4, 7))
    monkeypatch.setattr(ShareView, "monitors", all_that_ever_were)
    assert not all_hold(range(4, 7))


def test_it_is_due_while_something_is(fabric: MonitoredFabric):
    shares = ShareCore(ShareSettings(FABRIC, "m9", "m9-1"), 5.0)
    assert shares.handle(DeadlineReached(), 5.0)
    due_s = shares.next_deadline()
    assert due_s is not None and due_s > 5.0


def test_in_a_store_that_was_emptied_nothing_is_divided_before_monitors_are_steady(fabric: MonitoredFabric):
    """Whoever comes back first is the manager, and alone."""
    fabric.run(fabric.now + INTERVAL_S)
    gone = another(fabric)
    gone.kill()
    fabric.store.empty()
    emptied_s = fabric.now
    until(fabric, lambda: fabric.is_divided())
    assert fabric.now >= emptied_s + STEADY_S
    fabric.run(fabric.now + 2 * INTERVAL_S)
    assert fabric.is_divided() and longest_gap_s(fabric) < 2 * INTERVAL_S
    assert not any(counted_rows(rows)[1] for rows in fabric.rows.values())


def test_a_run_that_another_of_its_name_has_followed_is_not_waited_for(fabric: MonitoredFabric):
    """After the store was silent nobody is gone for a while, but of a name one run alone is there."""
    node = another(fabric)
    had = set(node.epochs)
    fabric.store.advance(fabric.now)
    fabric.store.be_silent(4.0)
    node.kill()
    node.start()
    fabric.run(fabric.now + 4.0)
    until(fabric, lambda: had <= {dpid for epochs in fabric.shares().values() for dpid in epochs}, STEADY_S)


def test_who_has_a_switch_next_begins_when_the_lease_of_the_former_one_would_be_over_in_a_store_that_is_silent(
    fabric: MonitoredFabric,
):
    gone = another(fabric)
    had = set(gone.epochs)
    gone.engine.fault = RequestFault.REQUEST_LOST
    fabric.drain(gone.name)
    keys = [Keys(FABRIC).share_of(dpid) for dpid in had]
    until(fabric, lambda: all(held is not None and read_share(held).former for held in _held(fabric, keys)))
    gone.kill()
    given_s = fabric.now
    fabric.store.advance(fabric.now)
    fabric.store.be_silent(2 * INTERVAL_S)
    until(fabric, fabric.is_divided, 2 * INTERVAL_S)
    assert given_s + LEASE_S - 0.1 < fabric.now < given_s + LEASE_S + 1.5
    fabric.run(given_s + 2 * INTERVAL_S + STEADY_S)
    assert fabric.is_divided()
    assert not any(read_share(held).former for held in _held(fabric, keys) if held is not None)
    assert longest_gap_s(fabric) < 2 * INTERVAL_S


def test_who_has_a_switch_next_waits_for_the_store_to_say_that_the_lease_of_the_former_one_is_over(
    fabric: MonitoredFabric,
):
    """One whose lease goes on may poll still."""
    slow = another(fabric)
    had = set(slow.epochs)
    slow.change = lambda _change: None  # type: ignore[method-assign]
    fabric.drain(slow.name)
    fabric.run(fabric.now + 3 * LEASE_S)
    assert not had & {dpid for name, epochs in fabric.shares().items() for dpid in epochs if name != slow.name}


def test_an_answer_that_comes_after_later_news_of_the_watch_takes_nothing_back(fabric: MonitoredFabric):
    """Who had a switch may say that it polls it no more before the manager hears that its own word was taken."""
    node, keys = manager(fabric), Keys(FABRIC)
    core, revision = node.shares, fabric.store.revision
    mine = next(dpid for dpid, share in core.view.shares().items() if share.owner == node.name)
    drained = KeyChange(f"{keys.drained}{node.name}", node.incarnation, revision + 1)
    effects = core.handle(KeysChanged(node.watch_number, (drained,)), fabric.now)
    (asked,) = (each for each in effects if type(each) is StoreRequest and type(each.request) is Transaction)
    (given,) = (edit.value for edit in asked.request.edits if edit.key == keys.share_of(mine))
    share = read_share(given)
    assert share is not None and (share.former, share.owner == node.name) == (node.incarnation, False)
    polled = share._replace(former="")
    news = (
        KeyChange(keys.share_of(mine), given, revision + 2),
        KeyChange(keys.share_of(mine), polled.text(), revision + 3),
    )
    core.handle(KeysChanged(node.watch_number, news), fabric.now)
    core.handle(Answered(asked.number, Committed(revision + 2)), fabric.now)
    assert core.view.shares()[mine] == polled


def test_of_an_answer_about_keys_that_failed_what_the_watch_has_told_since_stays():
    view, key = ShareView(Keys(FABRIC)), Keys(FABRIC).share_of(1)
    view.follow((KeyChange(key, "later", 5),))
    view.told((KeyValue(key, "earlier", 3),), (key,), 4)
    assert view.held(key) == KeyValue(key, "later", 5)
    view.told((), (key,), 4)
    assert view.held(key) == KeyValue(key, "later", 5)
    view.told((KeyValue(key, "latest", 6),), (key,), 6)
    assert view.held(key) == KeyValue(key, "latest", 6)
    view.told((), (key,), 7)
    assert view.held(key) is None


def _held(fabric: MonitoredFabric, keys: list[str]) -> list[str | None]:
    """What the store has for some keys."""
    return [versions[-1].value if (versions := fabric.store._versions.get(key)) else None for key in keys]
