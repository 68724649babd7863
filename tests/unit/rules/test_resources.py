"""Groups and meters: there before the entries that name them, gone after these, changed in place, put right."""

from __future__ import annotations

import pytest

from controller.config.edit_settings import Edits
from controller.datapath.lanes import Urgency
from controller.effects import ApplyEdits, Define, Put, Remove, RequestFlows, RequestResources, Undefine
from controller.events import CheckRequested, EditFailed, SurveyOrder
from controller.rules.installer import Installer
from controller.rules.model import Bucket, GroupEntry, GroupKey, GroupType, MeterEntry, MeterKey, Output
from resource_entries import at, entry, group, meter, through

FOREIGN = GroupEntry(GroupKey(0x77770001), GroupType.ALL, (Bucket((Output(9),)),))


def batches(world, dpid=2):
    return [
        [type(edit).__name__ for edit in sent.edits]
        for sent in world.sent
        if isinstance(sent, ApplyEdits) and sent.dpid == dpid
    ]


@pytest.fixture
def world(make_world):
    return make_world(keeps_resources=True)


def test_an_entry_is_sent_once_what_it_names_is_confirmed(world):
    world.change(at(Put(through(1, meter_number=1)), Define(group(1, 3)), Define(meter(1)), Put(entry(2, Output(1)))))
    world.deliver()
    assert batches(world) == [["Define", "Define", "Put"], ["Put"]]
    assert world.switches[2].refused == []
    world.assert_in_sync()


def test_what_an_entry_names_is_deleted_once_no_entry_names_it(world):
    world.change(at(Define(group(1, 3)), Put(through(1)), Put(through(2))))
    world.deliver()
    world.sent.clear()
    world.change(at(Undefine(group(1).key), Remove(through(1).key), Remove(through(2).key)))
    assert world.installer.pending(2) == 3 and not world.installer.in_sync(2)
    world.deliver()
    assert batches(world) == [["Remove", "Remove"], ["Undefine"]]
    world.assert_in_sync()


def test_an_entry_changes_over_from_one_group_to_another_without_a_gap(world):
    world.change(at(Define(group(1, 3)), Put(through(1))))
    world.deliver()
    world.sent.clear()
    gaps = []
    world.check = lambda: gaps.append(through(1).key not in world.switches[2].rules)
    world.change(at(Undefine(group(1).key), Put(through(1, 2)), Define(group(2, 4))))
    world.deliver()
    assert batches(world) == [["Define"], ["Put"], ["Undefine"]]
    assert not any(gaps)
    world.assert_in_sync()


@pytest.mark.parametrize("is_told_in_parts", [False, True])
def test_a_plan_does_not_wait_for_itself_whatever_stage_has_what_its_entries_name(world, is_told_in_parts):
    world.change(at(Define(group(1, 3)), Put(through(1)), Put(through(2))))
    world.deliver()
    world.sent.clear()
    stages = [
        at(Undefine(group(1).key), Put(through(3, 2))),
        at(Put(entry(1, Output(4)))),
        at(Remove(through(2).key), Define(group(2, 5))),
    ]
    before = world.now
    if is_told_in_parts:
        plan = world.installer.open_plan(len(stages), world.now)
        world.perform(world.installer.extend_plan(plan, stages, world.now))
        world.perform(world.installer.close_plan(plan, world.now))
    else:
        world.change(*stages)
    world.deliver()
    assert world.now == before
    assert world.installer.plan_count == 0
    assert [name for batch in batches(world) for name in batch] == ["Define", "Put", "Put", "Remove", "Undefine"]
    assert world.notices == [] and world.switches[2].refused == []
    world.assert_in_sync()


def test_what_a_plan_ends_and_gives_anew_keeps_its_stages(world):
    world.change(at(Define(group(1, 3)), Put(through(1))))
    world.deliver()
    world.sent.clear()
    world.change(at(Remove(through(1).key)), at(Undefine(group(1).key)), at(Define(group(1, 4))), at(Put(through(1))))
    world.deliver()
    assert [name for batch in batches(world) for name in batch] == ["Remove", "Undefine", "Define", "Put"]
    world.assert_in_sync()


def test_a_group_and_a_meter_change_in_place(world):
    world.change(at(Define(group(1, 3)), Define(meter(1)), Put(through(1, meter_number=1))))
    world.deliver()
    world.sent.clear()
    world.change(at(Define(group(1, 3, 4)), Define(meter(1, 5000))))
    world.deliver()
    (sent,) = world.sent
    assert sent.edits == (Define(group(1, 3, 4), True), Define(meter(1, 5000), True))
    world.assert_in_sync()


def test_an_entry_waits_for_the_change_of_its_group_too(world):
    world.change(at(Define(group(1, 3))))
    world.deliver()
    world.sent.clear()
    world.change(at(Define(group(1, 4))))
    world.change(at(Put(through(1))))
    world.deliver()
    assert batches(world) == [["Define"], ["Put"]]
    world.assert_in_sync()


def test_a_switch_is_asked_for_groups_and_meters_before_flow_entries_and_1_0_for_neither(make_world):
    world = make_world(connect=False, keeps_resources=True)
    for dpid in (1, 2):
        world.connect(dpid)
    assert [type(sent) for sent in world.to_switch[1]] == [RequestFlows]
    kinds = [(type(sent), getattr(sent, "kind", None)) for sent in world.to_switch[2]]
    assert kinds == [(RequestResources, "meter"), (RequestResources, "group"), (RequestFlows, None)]
    world.deliver()
    assert world.installer.in_sync(1) and world.installer.in_sync(2)


def test_an_app_that_keeps_none_asks_for_none_and_may_not_want_any(make_world):
    world = make_world(connect=False)
    world.connect(2)
    assert [type(sent) for sent in world.to_switch[2]] == [RequestFlows]
    for edit in (Define(group(1, 3)), Undefine(group(1).key)):
        with pytest.raises(ValueError, match="keeps no groups"):
            world.installer.change([at(edit)], 0.0)


def test_a_restart_interrupts_nothing(make_world, world):
    world.change(at(Define(group(1, 3)), Define(group(2, 3)), Define(meter(1)), Put(through(1, meter_number=1))))
    world.deliver()
    switch = world.switches[2]
    switch.apply(Define(FOREIGN))
    again = make_world(connect=False, keeps_resources=True, hold_unknown=True)
    again.switches[2] = switch
    for dpid in again.switches:
        again.connect(dpid)
    again.deliver()
    again.sent.clear()
    again.change(at(Define(group(1, 3)), Define(meter(1)), Put(through(1, meter_number=1))))
    again.deliver()
    assert batches(again) == [] and again.installer.in_sync(2)
    again.perform(again.installer.release_unknown(again.now))
    again.deliver()
    assert batches(again) == [["Undefine"]]
    assert FOREIGN.key in switch.resources
    again.assert_in_sync()


def test_what_was_left_by_a_former_run_and_is_not_right_is_changed_before_entries_name_it(make_world):
    world = make_world(connect=False, keeps_resources=True)
    for edit in (Define(group(1, 7)), Put(through(5))):
        world.switches[2].apply(edit)
    world.change(at(Define(group(1, 3)), Put(through(1))))
    for dpid in world.switches:
        world.connect(dpid)
    world.deliver()
    assert batches(world)[0] == ["Define", "Remove"] and "Put" in batches(world)[1]
    world.assert_in_sync()


def test_openflow_1_0_is_refused_what_it_cannot_do(world):
    there = at(Define(group(1, 3)), Put(through(1, origin=1)), dpid=1)
    world.change([*there, *at(Define(group(1, 3)), Put(through(1, origin=2)))])
    world.deliver()
    texts = [notice.text for notice in world.notices]
    assert any("OpenFlow 1.0 has no groups" in text and "Switch 1 " in text for text in texts)
    assert world.installer.resources_desired(1) == {} and not world.installer.desired(1)
    assert world.switches[2].resources and world.switches[2].rules
    world.assert_in_sync()


def test_a_switch_that_turns_out_to_speak_1_0_is_given_up_what_it_cannot_do(make_world):
    world = make_world(connect=False, keeps_resources=True)
    world.change(at(Define(group(1, 3)), Put(through(1)), Put(entry(2, Output(1))), dpid=1))
    for dpid in world.switches:
        world.connect(dpid)
    world.deliver()
    assert list(world.installer.desired(1)) == [entry(2).key]
    world.assert_in_sync()


def test_an_entry_that_names_what_is_not_to_be_there_is_refused(world):
    world.change(at(Put(through(1)), Put(entry(2, Output(1), origin=7))))
    (notice,) = world.notices
    assert notice.kind == "rule-refused" and "is not to be there" in notice.text
    world.deliver()
    assert list(world.installer.desired(2)) == [entry(2).key]


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (Define(GroupEntry(GroupKey(0x56030001), GroupType.ALL, ())), "another app's"),
        (Define(MeterEntry(MeterKey(3 * 256), 1, 1)), "another app's"),
        (Undefine(GroupKey(0x56030001)), "another app's"),
        (Undefine(group(1).key), "while"),
    ],
)
def test_misuse_raises_and_changes_nothing(world, edit, reason):
    world.change(at(Define(group(1, 3)), Put(through(1))))
    world.deliver()
    with pytest.raises(ValueError, match=reason):
        world.installer.change([at(edit)], world.now)
    world.deliver()
    world.assert_in_sync()


def test_full_tables_are_told_and_tried_again_when_there_is_room(make_world):
    world = make_world(keeps_resources=True, resource_capacity=1)
    world.change(at(Define(group(1, 3)), Define(group(2, 3)), Put(through(1, 2)), Define(meter(1)), Define(meter(2))))
    world.deliver()
    kinds = {notice.kind for notice in world.notices}
    assert kinds == {"group-table-full", "meter-table-full"}
    assert not world.installer.in_sync(2) and world.switches[2].rules == {}
    world.change(at(Undefine(group(1).key), Undefine(meter(1).key)))
    world.settle()
    world.assert_in_sync()


@pytest.mark.parametrize("vandalise", ["missing", "altered", "extra", "all"])
def test_the_check_puts_groups_and_meters_right_in_order(world, vandalise):
    world.installer.check_every(60.0)
    world.change(at(Define(group(1, 3)), Define(meter(1)), Put(through(1, meter_number=1)), Put(through(2))))
    world.deliver()
    world.sent.clear()
    switch = world.switches[2]
    if vandalise in ("missing", "all"):
        switch.apply(Undefine(group(1).key))
    if vandalise == "altered":
        switch.apply(Define(group(1, 9), True))
        switch.apply(Define(meter(1, 77), True))
    if vandalise in ("extra", "all"):
        switch.apply(Define(group(8, 3)))
        switch.apply(Define(meter(8)))
    world.pass_time(61.0)
    world.deliver()
    world.pass_time(61.0)
    world.deliver()
    assert switch.refused == []
    counters = world.installer.counters
    found = {kind: counters[f"entries-{kind}"] for kind in ("missing", "altered", "extra")}
    assert (
        found
        == {
            "missing": {"missing": 3, "altered": 0, "extra": 0},
            "altered": {"missing": 0, "altered": 2, "extra": 0},
            "extra": {"missing": 0, "altered": 0, "extra": 2},
            "all": {"missing": 3, "altered": 0, "extra": 2},
        }[vandalise]
    )
    world.assert_in_sync()


@pytest.mark.parametrize("repair", [False, True])
def test_a_report_has_groups_and_meters_too(world, repair):
    world.change(at(Define(group(1, 3)), Define(group(2, 4)), Define(meter(1)), Put(through(1))))
    world.deliver()
    switch = world.switches[2]
    switch.apply(Undefine(group(2).key))
    switch.apply(Define(meter(1, 5), True))
    switch.apply(Define(group(8, 3)))
    event = CheckRequested(2, SurveyOrder(1, repair=repair, force=True))
    world.perform(world.installer.handle(event, world.now))
    world.deliver()
    (document,) = world.surveyed
    assert [document[kind]["count"] for kind in ("missing", "altered", "extra")] == [1, 1, 1]
    assert document["missing"]["entries"] == [
        {"group": "0x56020002", "type": "select", "buckets": ["weight:1, output:4"]}
    ]
    (altered,) = document["altered"]["entries"]
    assert (altered["meter"], altered["rate"], altered["holds"]["rate"]) == (513, 1000, 5)
    if repair:
        world.assert_in_sync()
    else:
        assert group(2).key not in switch.resources


def test_a_refusal_that_says_that_the_group_is_gone_is_learnt_from_at_once(world):
    world.change(at(Define(group(1, 3)), Put(through(1))))
    world.deliver()
    world.switches[2].apply(Undefine(group(1).key))
    world.change(at(Put(through(2))))
    world.settle()
    world.assert_in_sync()


def test_a_group_that_is_there_already_or_no_more_is_learnt_from_the_refusal(world):
    switch = world.switches[2]
    switch.apply(Define(group(1, 9)))
    world.change(at(Define(group(1, 3)), Put(through(1)), Define(meter(1))))
    world.settle()
    world.assert_in_sync()
    switch.apply(Undefine(group(1).key))
    switch.apply(Undefine(meter(1).key))
    world.change(at(Define(group(1, 3, 4)), Define(meter(1, 7))))
    world.settle()
    world.assert_in_sync()


def test_a_switch_that_does_not_tell_of_meters_has_none(make_world):
    world = make_world(connect=False, keeps_resources=True)
    world.connect(2)
    first = world.to_switch[2].popleft()
    world.to_controller[2].append(EditFailed(2, first.xid, 1, 2))
    world.deliver()
    assert world.installer.in_sync(2)
    world.change(at(Define(group(1, 3)), Put(through(1))))
    world.installer.check_every(60.0)
    world.deliver()
    world.pass_time(61.0)
    for dpid in (2, 3):
        asked = list(world.to_switch[dpid])
        if asked:
            world.to_switch[dpid].remove(asked[0])
            world.to_controller[dpid].append(EditFailed(dpid, asked[0].xid, 1, 2))
    world.deliver()
    assert world.installer.counters["checks"] >= 1 and world.installer.in_sync(2)


def test_a_switch_may_send_by_a_group_until_that_is_confirmed_otherwise(world):
    world.change(at(Define(group(1, 3)), Put(through(1))))
    world.deliver()
    assert not world.installer.may_send(2, 3)
    world.change(at(Define(group(1, 4))))
    assert world.installer.may_send(2, 3)
    world.deliver()
    assert not world.installer.may_send(2, 3)
    world.change(at(Remove(through(1).key), Undefine(group(1).key)))
    assert world.installer.may_send(2, 4)
    world.deliver()
    assert not world.installer.may_send(2, 4)


def test_who_waits_is_not_kept_by_the_bulk_before_its_group(world):
    world.installer.use_edits(Edits(window="fixed", at_once=4))
    bulk = [Put(entry(number, Output(1))) for number in range(100, 400)]
    world.perform(world.installer.change([at(*bulk, Define(group(1, 3)))], world.now, 0.0, Urgency.BULK))
    world.change(at(Put(through(1))))
    for _ in range(6):
        world.step_switch(2)
        world.step_controller(2)
    assert through(1).key in world.switches[2].rules
    world.settle()
    world.assert_in_sync()


def test_an_installer_without_resources_has_none(make_world):
    world = make_world()
    installer = world.installer
    assert isinstance(installer, Installer)
    assert all(state.resources is None for state in installer._switches.values())
