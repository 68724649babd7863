"""The installer: order, differences, refusals, full tables, restarts."""

from __future__ import annotations

import struct

import pytest

from controller.datapath.batches import BARRIER_TIMEOUT_S
from controller.datapath.core import READ_TIMEOUT_S
from controller.effects import ApplyEdits, Put, Remove, RequestFlows
from controller.events import BarrierReplied, EditFailed, FlowStatsReceived
from controller.rules import plans as plans_module
from controller.rules.installer import Installer
from controller.rules.model import FlowEntry, FlowKey, Goto, Match, Output
from controller.rules.refusals import FULL_RETRY_COUNT
from controller.rules.switch_state import OwnerState, StagedPlan, Turn

TAG = 0x5602


def rule(number, *ports, tag=TAG, origin=0):
    return FlowEntry(FlowKey(0, 1, Match(in_port=number)), tuple(map(Output, ports)), tag << 48 | origin)


def edits(world, dpid):
    """The edits sent to a switch, in order."""
    return [e for sent in world.sent if isinstance(sent, ApplyEdits) and sent.dpid == dpid for e in sent.edits]


def kinds(world):
    return [notice.kind for notice in world.notices]


def test_a_put_goes_out_at_once_and_counts_when_confirmed(make_world):
    world = make_world()
    world.change([(2, Put(rule(1, 5)))])
    assert edits(world, 2) == [Put(rule(1, 5))]
    assert dict(world.installer.desired(2)) == {rule(1).key: rule(1, 5)}
    assert dict(world.installer.installed(2)) == {}
    world.step_switch(2)
    assert dict(world.installer.installed(2)) == {}
    world.step_controller(2)
    world.assert_in_sync()
    assert world.installer.next_deadline() is None


def test_what_is_there_already_is_not_sent(make_world):
    world = make_world()
    world.change([(2, Put(rule(1, 5))), (2, Remove(rule(9).key))])
    world.deliver()
    world.sent.clear()
    world.change([(2, Put(rule(1, 5)))])
    world.change([(2, Remove(rule(9).key))])
    assert world.sent == []


def test_changes_while_a_batch_is_under_way_go_out_together_as_they_are_then(make_world):
    world = make_world()
    world.change([(2, Put(rule(1, 5)))])
    world.change([(2, Put(rule(2, 5)))])
    world.change([(2, Put(rule(1, 6)))])
    world.change([(2, Put(rule(3, 5)))])
    world.change([(2, Remove(rule(3).key))])
    assert len(world.sent) == 1
    world.deliver()
    assert [sent.edits for sent in world.sent] == [(Put(rule(1, 5)),), (Put(rule(2, 5)), Put(rule(1, 6)))]
    world.assert_in_sync()


def test_a_stage_waits_for_every_switch_of_the_stage_before(make_world):
    world = make_world()
    world.change([(3, Put(rule(7, 1)))])
    world.deliver()
    world.sent.clear()
    world.change([(1, Put(rule(1, 5))), (2, Put(rule(1, 5)))], [(1, Put(rule(2, 5)))], [(3, Remove(rule(7).key))])
    world.deliver(1)
    assert edits(world, 1) == [Put(rule(1, 5))]
    world.deliver(2)
    assert edits(world, 1) == [Put(rule(1, 5)), Put(rule(2, 5))]
    assert edits(world, 3) == []
    world.deliver(1)
    assert edits(world, 3) == [Remove(rule(7).key)]
    world.deliver()
    world.assert_in_sync()


def test_all_stages_are_desired_at_once(make_world):
    world = make_world()
    world.change([(1, Put(rule(1, 5)))])
    world.deliver()
    world.change([(2, Put(rule(1, 5)))], [(1, Remove(rule(1).key))])
    assert dict(world.installer.desired(1)) == {}
    assert dict(world.installer.installed(1)) == {rule(1).key: rule(1, 5)}


def test_the_last_stage_waits_for_the_drain(make_world):
    world = make_world()
    world.change([(1, Put(rule(1, 5)))])
    world.deliver()
    world.sent.clear()
    world.change([(2, Put(rule(1, 5)))], [(3, Put(rule(1, 5)))], [(1, Remove(rule(1).key))], drain_s=0.05)
    world.deliver()
    assert edits(world, 3) == [Put(rule(1, 5))]
    assert edits(world, 1) == []
    assert world.installer.next_deadline() == pytest.approx(world.now + 0.05)
    world.pass_time(0.049)
    assert edits(world, 1) == []
    world.pass_time(0.002)
    assert edits(world, 1) == [Remove(rule(1).key)]
    world.deliver()
    world.assert_in_sync()


def test_a_switch_without_connection_holds_nobody_up(make_world):
    world = make_world()
    world.disconnect(2)
    world.change([(1, Put(rule(9, 5)))])
    world.deliver()
    world.change([(2, Put(rule(1, 5)))], [(1, Remove(rule(9).key))])
    world.deliver()
    assert edits(world, 1)[-1] == Remove(rule(9).key)
    world.change([(3, Put(rule(1, 5)))], [(1, Put(rule(8, 5)))])
    world.disconnect(3)
    world.deliver()
    assert edits(world, 1)[-1] == Put(rule(8, 5))


def test_a_key_that_waits_for_its_stage_is_not_sent_early_by_others(make_world):
    world = make_world()
    world.change([(1, Put(rule(1, 5)))])
    world.deliver()
    world.sent.clear()
    world.change([(2, Put(rule(1, 5)))], [(1, Put(rule(1, 6)))])
    world.change([(1, Put(rule(1, 7)))])
    world.change([(1, Put(rule(2, 7)))])
    world.deliver(1)
    assert edits(world, 1) == [Put(rule(2, 7))]
    world.deliver()
    assert edits(world, 1) == [Put(rule(2, 7)), Put(rule(1, 7))]
    world.assert_in_sync()


def test_values_of_a_key_take_their_turns_in_the_order_of_the_changes(make_world):
    world = make_world()
    world.change([(2, Put(rule(1, 5)))], [(1, Put(rule(1, 6)))])
    world.change([(1, Put(rule(1, 7)))])
    world.change([(3, Put(rule(1, 5)))], [(1, Remove(rule(1).key))])
    world.deliver(1, 2)
    assert world.switches[1].rules == {rule(1).key: rule(1, 7)}
    world.deliver()
    assert world.switches[1].rules == {}
    world.assert_in_sync()


def test_a_plan_waits_for_keys_that_wait_for_an_earlier_plan(make_world):
    world = make_world()
    world.change([(2, Put(rule(1, 5)))], [(1, Put(rule(1, 6)))])
    world.change([(1, Put(rule(1, 7)))], [(3, Put(rule(9, 5)))])
    world.deliver(1, 3)
    assert edits(world, 1) == edits(world, 3) == []
    world.deliver(2)
    assert edits(world, 1) == [Put(rule(1, 7))]
    assert edits(world, 3) == []
    world.deliver(1)
    assert edits(world, 3) == [Put(rule(9, 5))]


def test_what_waits_for_its_turn_does_not_grow_with_each_change():
    state = OwnerState(1, Installer(TAG)._datapath.datapath(1), None)
    key = rule(1).key
    state.enter_turn(key, Turn(StagedPlan(0.0), 0, rule(1, 5)))
    for port_no in range(1, 100):
        assert not state.enter(key, rule(1, port_no))
    assert len(state.turns[key]) == 2
    assert state.desired[key] == rule(1, 99)
    assert state.target(key) is None


def test_plans_that_go_back_and_forth_do_not_wait_for_each_other_for_ever(make_world):
    world = make_world()
    a, b = (1, rule(1, 5)), (2, rule(2, 5))

    def move(to, away):
        world.change([(to[0], Put(to[1]))], [(away[0], Remove(away[1].key))], drain_s=0.01)

    world.change([(1, Put(a[1]))])
    world.deliver()
    for _ in range(3):
        move(b, a)
        move(a, b)
    world.settle()
    world.assert_in_sync()
    assert dict(world.installer.installed(1)) == {a[1].key: a[1]}
    assert kinds(world) == []


def test_a_refused_edit_is_tried_again_ever_more_rarely(make_world):
    world = make_world()
    world.refuse[2] = (4, 9)
    world.change([(2, Put(rule(1, 5)))])
    world.deliver()
    tries = len(edits(world, 2))
    assert tries == 1
    for _ in range(40):
        world.pass_time(1.0)
        world.deliver()
    assert 4 <= len(edits(world, 2)) <= 8
    assert world.installer.counters["edit-failed"] == len(edits(world, 2))
    assert kinds(world).count("edit-failed") <= 5
    assert dict(world.installer.installed(2)) == {}
    del world.refuse[2]
    world.settle()
    world.assert_in_sync()


def test_a_plan_does_not_take_away_before_a_refused_put_is_there_unless_it_waits_too_long(make_world):
    world = make_world()
    world.change([(1, Put(rule(1, 5)))])
    world.deliver()
    world.refuse[2] = (4, 9)
    world.change([(2, Put(rule(1, 5)))], [(1, Remove(rule(1).key))])
    for _ in range(29):
        world.deliver()
        world.pass_time(1.0)
    assert world.switches[1].rules
    for _ in range(2):
        world.pass_time(1.0)
        world.deliver()
    assert not world.switches[1].rules
    (overdue,) = [notice for notice in world.notices if notice.kind == "plan-overdue"]
    assert ("interrupts", True) in overdue.fields


def test_entries_that_find_no_room_wait_for_a_removal(make_world):
    world = make_world(capacity=2)
    world.change([(2, Put(rule(n, 5))) for n in range(1, 5)])
    world.deliver()
    assert set(world.switches[2].rules) == {rule(1).key, rule(2).key}
    assert kinds(world) == ["table-full"]
    assert world.installer.counters["table-full"] == 2
    assert not world.installer.in_sync(2)
    sent = len(world.sent)
    world.deliver()
    assert len(world.sent) == sent
    world.change([(2, Remove(rule(1).key))])
    world.deliver()
    assert set(world.switches[2].rules) == {rule(2).key, rule(3).key}
    world.switches[2].capacity = 10
    world.settle()
    world.assert_in_sync()


def test_a_full_table_is_not_asked_again_and_again(make_world):
    world = make_world(capacity=2)
    world.change([(2, Put(rule(n, 5))) for n in range(1, 101)])
    for _ in range(20):
        world.deliver()
        world.pass_time(1.0)
    tries = len(edits(world, 2)) - 100
    assert 0 < tries <= 5 * FULL_RETRY_COUNT


def test_what_no_longer_needs_room_is_not_tried(make_world):
    world = make_world(capacity=1)
    world.change([(2, Put(rule(1, 5))), (2, Put(rule(2, 5)))])
    world.deliver()
    world.change([(2, Remove(rule(2).key))])
    world.deliver()
    world.assert_in_sync()


def test_a_plan_without_room_removes_first_and_says_that_it_interrupts(make_world):
    world = make_world(capacity=1)
    world.change([(2, Put(rule(1, 5)))])
    world.deliver()
    world.sent.clear()
    world.change([(2, Put(rule(2, 5)))], [(2, Remove(rule(1).key))])
    world.deliver()
    assert edits(world, 2) == [Put(rule(2, 5)), Remove(rule(1).key), Put(rule(2, 5))]
    (full,) = [notice for notice in world.notices if notice.kind == "table-full"]
    assert ("interrupts", True) in full.fields
    world.assert_in_sync()


def test_a_switch_that_comes_back_is_read_and_gets_the_difference_only(make_world):
    world = make_world()
    kept, changed, missing, stale = rule(1, 5), rule(2, 5), rule(3, 5), rule(4, 5)
    world.change([(2, Put(r)) for r in (kept, changed, missing, stale)])
    world.deliver()
    world.disconnect(2)
    world.change([(2, Remove(stale.key)), (2, Put(rule(5, 5)))])
    switch = world.switches[2]
    switch.apply(Remove(missing.key))
    switch.apply(Put(rule(2, 6)))
    switch.apply(Put(rule(6, 6, tag=0x5603)))
    switch.apply(Put(rule(7, 7)._replace(hard_timeout_s=5)))
    world.sent.clear()
    world.connect(2)
    assert isinstance(world.sent[0], RequestFlows)
    assert (world.sent[0].cookie, world.sent[0].cookie_mask) == (TAG << 48, 0xFFFF << 48)
    world.deliver()
    assert set(edits(world, 2)[:3]) == {Put(changed), Put(missing), Put(rule(5, 5))}
    assert edits(world, 2)[3:] == [Remove(stale.key)]
    assert rule(6).key in switch.rules and rule(7).key in switch.rules


def test_nothing_is_sent_before_the_switch_has_been_read(make_world):
    world = make_world(connect=False)
    world.switches[2].apply(Put(rule(1, 5)))
    world.connect(2)
    world.change([(2, Put(rule(1, 5)))])
    world.change([(2, Put(rule(2, 5)))])
    assert [type(sent) for sent in world.sent] == [RequestFlows]
    world.deliver(2)
    assert edits(world, 2) == [Put(rule(2, 5))]


def test_after_a_restart_unknown_entries_stay_until_released(make_world):
    world = make_world(connect=False, hold_unknown=True)
    for number in (1, 2, 3):
        world.switches[2].apply(Put(rule(number, 5)))
    world.connect(2)
    world.change([(2, Put(rule(1, 6))), (2, Remove(rule(3).key))])
    world.deliver(2)
    assert edits(world, 2) == [Put(rule(1, 6)), Remove(rule(3).key)]
    world.disconnect(2)
    world.connect(2)
    world.deliver(2)
    assert rule(2).key in world.switches[2].rules
    world.perform(world.installer.release_unknown(world.now))
    world.deliver(2)
    assert dict(world.switches[2].rules) == {rule(1).key: rule(1, 6)}
    assert world.installer.in_sync(2)


def test_a_barrier_that_stays_away_leads_to_a_reading(make_world):
    world = make_world()
    world.change([(2, Put(rule(1, 5)))])
    plan = ([(2, Put(rule(2, 5)))], [(1, Put(rule(9, 5)))])
    world.change(*plan)
    world.to_switch[2].clear()
    world.sent.clear()
    world.pass_time(BARRIER_TIMEOUT_S)
    assert [type(sent) for sent in world.sent] == [RequestFlows]
    assert kinds(world) == ["barrier-timeout"]
    assert edits(world, 1) == []
    world.to_switch[2].clear()
    world.pass_time(READ_TIMEOUT_S)
    assert kinds(world) == ["barrier-timeout", "read-timeout"]
    world.deliver()
    world.assert_in_sync()


def test_a_plan_goes_on_when_a_reading_shows_what_a_lost_barrier_would_have(make_world):
    world = make_world()
    world.change([(2, Put(rule(2, 5)))], [(1, Put(rule(9, 5)))])
    world.step_switch(2)
    world.to_controller[2].clear()
    world.pass_time(BARRIER_TIMEOUT_S)
    assert edits(world, 1) == []
    world.deliver()
    assert edits(world, 2) == [Put(rule(2, 5))]
    assert edits(world, 1) == [Put(rule(9, 5))]
    world.assert_in_sync()


def test_replies_that_nobody_waits_for_change_nothing(make_world):
    world = make_world()
    world.change([(2, Put(rule(1, 5)))])
    under_way = world.sent[-1]
    for event in (
        BarrierReplied(2, under_way.first_xid),
        BarrierReplied(2, under_way.first_xid + 5),
        BarrierReplied(77, under_way.first_xid + 1),
        FlowStatsReceived(2, 4, under_way.first_xid, b""),
        FlowStatsReceived(77, 4, 1, b"noise"),
    ):
        assert world.installer.handle(event, world.now) == []
    world.perform(world.installer.handle(EditFailed(2, 0xA2FFFFFF, 1, 1), world.now))
    assert kinds(world) == ["error-unmatched"]
    assert dict(world.installer.installed(2)) == {}
    world.deliver()
    world.assert_in_sync()


def test_flow_statistics_that_make_no_sense_are_asked_for_again(make_world):
    world = make_world(connect=False)
    world.switches[2].apply(Put(rule(1, 5)))
    world.connect(2)
    (request,) = world.to_switch[2]
    world.to_switch[2].clear()
    (good,) = world.switches[2].respond(request)
    world.perform(world.installer.handle(good._replace(message=good.message[:-3]), world.now))
    assert kinds(world) == ["read-faulty"]
    assert not world.installer.in_sync(2)
    world.pass_time(READ_TIMEOUT_S)
    world.deliver()
    assert world.installer.in_sync(2)
    assert world.switches[2].rules == {}


def test_a_switch_cannot_report_more_entries_than_the_bound(make_world, monkeypatch):
    monkeypatch.setattr("controller.rules.reading.READ_ENTRIES_BOUND", 10)
    world = make_world(connect=False)
    for number in range(1, 12):
        world.switches[2].apply(Put(rule(number, 5)))
    world.connect(2)
    world.deliver(2)
    assert kinds(world) == ["read-faulty"]
    assert not world.installer.in_sync(2)


def test_rules_that_a_switch_cannot_hold_are_refused_with_their_whole_origin(make_world):
    world = make_world()
    mine = FlowEntry(FlowKey(0, 1, Match(in_port=1)), (Goto(1),), TAG << 48 | 7)
    world.change([(2, Put(rule(5, 1, origin=7)))])
    world.deliver()
    before = {dpid: dict(world.installer.desired(dpid)) for dpid in (1, 2)}
    world.sent.clear()
    world.change([(1, Put(mine)), (2, Put(mine)), (2, Put(rule(3, 1, origin=8)))], [(2, Remove(rule(5).key))])
    (refusal,) = world.notices
    assert refusal.kind == "rule-refused" and "goto" in refusal.text
    assert dict(world.installer.desired(1)) == before[1]
    assert dict(world.installer.desired(2)) == {**before[2], rule(3).key: rule(3, 1, origin=8)}
    world.deliver()
    world.assert_in_sync()


def test_rules_of_another_version_are_refused_when_the_switch_says_its_version(make_world):
    world = make_world(connect=False)
    world.change([(1, Put(FlowEntry(FlowKey(0, 1, Match()), (Goto(1),), TAG << 48))), (1, Put(rule(1, 5)))])
    for dpid in world.switches:
        world.connect(dpid)
    world.deliver()
    assert kinds(world) == ["rule-refused"]
    assert dict(world.switches[1].rules) == {rule(1).key: rule(1, 5)}
    world.assert_in_sync()


@pytest.mark.parametrize("wrong", [rule(1, tag=0x5603), rule(1)._replace(hard_timeout_s=1)])
def test_misuse_raises(make_world, wrong):
    with pytest.raises(ValueError, match="timeout or another"):
        make_world().change([(1, Put(wrong))])


def test_transient_rules_are_sent_and_forgotten(make_world):
    world = make_world()
    drop = rule(1)._replace(hard_timeout_s=2)
    world.perform(world.installer.transient(2, drop))
    assert edits(world, 2) == [Put(drop)]
    world.deliver()
    assert rule(1).key in world.switches[2].rules
    assert world.installer.pending(2) == 0 and not world.installer.desired(2)
    assert world.installer.transient(77, drop) == []
    with pytest.raises(ValueError, match="timeout"):
        world.installer.transient(2, rule(1))


def test_flows_can_be_read_for_others(make_world):
    world = make_world()
    request = world.installer.read_flows(2, 1, 3)
    assert (request.dpid, request.cookie, request.cookie_mask) == (2, 1, 3)
    assert world.installer.owns_xid(request.xid)
    assert world.installer.read_flows(77, 1, 3) is None


def test_transaction_ids_stay_in_their_space_and_batches_never_wrap():
    installer = Installer(TAG, 0xA2)
    installer.switch_connected(1, 4, 0.0)
    installer._xids.next = (1 << 24) - 2
    told = struct.pack("!BBHIHH4x", 4, 19, 16, 0xA2000001, 1, 0)
    installer.handle(FlowStatsReceived(1, 4, 0xA2000001, told), 0.0)
    (batch,) = installer.change([[(1, Put(rule(n, 5))) for n in (1, 2)]], 0.0)
    assert batch.first_xid == 0xA2000001
    assert not installer.owns_xid(0xA3000001)


def test_plans_beyond_the_bound_are_made_an_end_of(make_world, monkeypatch):
    monkeypatch.setattr(plans_module, "PLANS_BOUND", 8)
    world = make_world()
    for number in range(1, 30):
        world.change([(2, Put(rule(number, 5)))], [(3, Put(rule(number, 5)))], [(1, Put(rule(number, 5)))])
        assert world.installer.plan_count <= 8
    assert "plans-bound" in kinds(world)
    assert world.installer.counters["plans-bound"] == 29 - 8
    world.settle()
    world.assert_in_sync()
