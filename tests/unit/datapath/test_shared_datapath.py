"""Apps that share switches: one reading, one batch at a time, and each is told of what is its own."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from controller.datapath.batches import BARRIER_TIMEOUT_S
from controller.datapath.lanes import Urgency
from controller.effects import Put, Remove, RequestFlows
from controller.events import (
    CheckRequested,
    EditFailed,
    FlowStatsReceived,
    OwnerLeft,
    SwitchConnected,
    SwitchDisconnected,
)
from controller.rules.check import CHECK_TIMEOUT_S
from controller.rules.installer import Installer

from .conftest import SHARED_TAG, TAGS, SharedWorld, entry, numbered


def test_a_connection_is_read_once_for_all():
    world = SharedWorld()
    for tag in TAGS:
        world.switches[1].apply(Put(entry(tag, 1)))
        numbered(world, tag, 2)
    world.connect()
    (reading,) = world.deliver()[:1]
    assert (reading.cookie, reading.cookie_mask) == (0x5600 << 48, 0xFFFC << 48)
    world.settle()
    world.assert_right()
    assert [read for *_, read in world.told].count(True) == len(TAGS)
    assert sorted(tag for tag, _, read in world.told if read) == sorted(TAGS)


def checked(switches=1, interval_s=60.0):
    """Return a world of some switches that hold what they shall and are checked in turn."""
    world = SharedWorld(switches)
    for app in world.apps.values():
        app.check_every(interval_s)
    for dpid in world.switches:
        world.connect(dpid)
        for tag in TAGS:
            numbered(world, tag, 2, dpid=dpid)
    world.deliver()
    world.told.clear()
    return world


def checks_in(world, seconds):
    """Let time pass, with every answer at once, and return the readings that switches were asked for."""
    end, asked = world.now + seconds, []
    while (due := world.deadlines()) is not None and due <= end:
        world.pass_time(max(0.0, due - world.now))
        asked += [effect for effect in world.deliver() if isinstance(effect, RequestFlows)]
    world.now = end
    return asked


def test_a_switch_is_read_once_an_interval_for_all_apps():
    world = checked(switches=4)
    asked = checks_in(world, 240.0)
    assert 14 <= len(asked) <= 18
    assert {request.dpid for request in asked} == {1, 2, 3, 4}
    assert {(request.cookie, request.cookie_mask) for request in asked} == {(0x5600 << 48, 0xFFFC << 48)}
    assert [app.counters["checks"] for app in world.apps.values()] == [len(asked)] * len(TAGS)
    assert world.told == [], "nothing was amiss"


def test_each_app_puts_its_own_right_and_says_so():
    world = checked()
    world.switches[1].apply(Remove(entry(TAGS[1], 1).key))
    world.switches[1].apply(Put(entry(TAGS[2], 1, port=9)))
    assert len(checks_in(world, 61.0)) == 1
    world.assert_right()
    assert world.notices == [(TAGS[1], "entries-repaired"), (TAGS[2], "entries-repaired")]
    assert world.lost == [(TAGS[1], 1)]


def test_what_is_edited_while_the_switch_tells_counts_for_no_app():
    world = checked()
    world.pass_time(world.deadlines() - world.now)
    assert isinstance(world.to_switch[1][0], RequestFlows)
    world.step()
    world.change(TAGS[1], Put(entry(TAGS[1], 7)))
    world.change(TAGS[0], Remove(entry(TAGS[0], 1).key))
    world.deliver()
    world.assert_right()
    assert world.notices == []


def test_an_app_that_waits_for_another_switch_is_not_kept_from_its_own_check():
    world = checked(switches=2)
    waiting, others = TAGS[0], TAGS[1:]
    world.perform(world.apps[waiting].handle(CheckRequested(2), world.now), waiting)
    world.pass_time(0.0)
    (own,) = world.to_switch[2]
    assert own.cookie == waiting << 48
    world.pass_time(5.0)
    for tag in others:
        world.perform(world.apps[tag].handle(CheckRequested(1), world.now), tag)
    world.deliver()
    before = {tag: app.counters["checks"] for tag, app in world.apps.items()}
    checks_in(world, 120.0)
    assert all(app.counters["checks"] >= before[tag] + 3 for tag, app in world.apps.items())


def test_a_switch_that_does_not_tell_is_asked_later_and_every_app_says_so():
    world = checked()
    world.pass_time(world.deadlines() - world.now)
    world.to_switch[1].clear()
    world.pass_time(CHECK_TIMEOUT_S + 0.1)
    assert world.notices == [(tag, "check-timeout") for tag in TAGS]
    world.deliver()
    assert [app.counters["checks"] for app in world.apps.values()] == [1] * len(TAGS)
    assert len(checks_in(world, 120.0)) == 2, "they ask together again"


def test_a_batch_has_edits_of_all_and_one_barrier_tells_each_of_its_own():
    world = SharedWorld()
    world.connect()
    world.deliver()
    world.change(TAGS[0], Put(entry(TAGS[0], 9)))
    world.told.clear()
    numbered(world, TAGS[1], 3)
    numbered(world, TAGS[2], 2)
    first, second = world.deliver()
    assert [len(first.edits), len(second.edits)] == [1, 5]
    assert world.told == [(TAGS[0], 1, False), (TAGS[1], 1, False), (TAGS[2], 1, False)]
    world.assert_right()


def test_who_waits_is_served_beside_the_bulk_of_another():
    world = SharedWorld(window=16)
    world.connect()
    world.deliver()
    numbered(world, TAGS[2], 400, urgency=Urgency.BULK)
    world.step()
    world.change(TAGS[1], Put(entry(TAGS[1], 1)))
    world.answer()
    (batch,) = world.to_switch[1]
    assert Put(entry(TAGS[1], 1)) in batch.edits and len(batch.edits) == 16
    world.settle()
    world.assert_right()


def test_a_refused_edit_concerns_its_app_alone():
    world = SharedWorld(capacity=4)
    world.connect()
    world.deliver()
    numbered(world, TAGS[0], 2)
    numbered(world, TAGS[1], 4)
    numbered(world, TAGS[2], 0)
    world.deliver()
    assert world.notices == [(TAGS[1], "table-full")]
    assert [world.apps[tag].in_sync(1) for tag in TAGS] == [True, False, True]
    world.change(TAGS[0], Remove(entry(TAGS[0], 1).key), Remove(entry(TAGS[0], 2).key))
    world.settle()
    world.assert_right()


def test_a_barrier_that_stays_away_has_the_switch_read_for_all():
    world = SharedWorld()
    world.connect()
    world.deliver()
    numbered(world, TAGS[0], 1)
    numbered(world, TAGS[1], 1)
    world.step()
    world.to_controller[1].clear()
    world.pass_time(BARRIER_TIMEOUT_S)
    assert world.notices == [(TAGS[0], "barrier-timeout")]
    assert [type(sent) for sent in world.to_switch[1]] == [RequestFlows]
    assert not any(app.in_sync(1) for app in world.apps.values())
    world.settle()
    world.assert_right()


def test_a_reading_that_makes_no_sense_counts_for_nobody():
    world = SharedWorld()
    world.switches[1].apply(Put(entry(TAGS[0], 1)))
    world.connect()
    world.step()
    good = world.to_controller[1].popleft()
    world.perform(world.core.handle(good._replace(message=good.message[:-3]), world.now))
    assert not any(app.in_sync(1) for app in world.apps.values())
    assert {kind for _, kind in world.notices} == {"read-faulty"}
    world.settle()
    world.assert_right()


def test_an_app_that_hears_of_the_connection_later_has_the_switch_read_again():
    world = SharedWorld()
    world.switches[1].apply(Put(entry(TAGS[2], 1)))
    world.connect(tags=TAGS[:2])
    world.deliver()
    assert [world.apps[tag].in_sync(1) for tag in TAGS] == [True, True, False]
    world.connect(tags=TAGS[2:])
    world.settle()
    world.assert_right()


def test_a_connection_of_which_nobody_heard_the_end_begins_anew():
    world = SharedWorld()
    world.connect()
    world.deliver()
    for tag in TAGS:
        numbered(world, tag, 3)
    world.to_switch[1].clear()
    world.connect()
    assert [type(sent) for sent in world.to_switch[1]] == [RequestFlows]
    world.settle()
    world.assert_right()


def test_the_end_of_a_connection_that_one_hears_of_late_ends_no_other():
    world = SharedWorld()
    world.connect()
    world.deliver()
    world.disconnect(tags=TAGS[:1])
    world.connect(tags=TAGS[:1])
    for tag in TAGS[1:]:
        world.perform(world.apps[tag].handle(SwitchDisconnected(1), world.now), tag)
    numbered(world, TAGS[0], 2)
    world.connect(tags=TAGS[1:])
    world.settle()
    world.assert_right()


def test_an_app_that_ends_leaves_the_others_their_switches():
    world = SharedWorld()
    world.connect()
    world.deliver()
    numbered(world, TAGS[0], 2)
    numbered(world, TAGS[1], 2)
    world.core.remove(TAGS[0])
    del world.apps[TAGS[0]]
    world.settle()
    assert dict(world.apps[TAGS[1]].installed(1)) == dict(world.apps[TAGS[1]].desired(1)) != {}
    world.disconnect(tags=TAGS[1:])
    world.connect(tags=TAGS[1:])
    (reading,) = world.to_switch[1]
    assert reading.cookie_mask == 0xFFFE << 48
    world.settle()


def test_an_app_whose_end_is_told_by_its_tag_is_an_owner_no_more():
    world = SharedWorld()
    world.connect()
    world.deliver()
    numbered(world, TAGS[0], 2)
    numbered(world, TAGS[1], 2)
    assert world.core.handle(OwnerLeft(world.apps.pop(TAGS[0]).xid_tag), world.now) == []
    assert world.core.handle(OwnerLeft(0x77), world.now) == []
    world.settle()
    assert world.apps[TAGS[1]].in_sync(1)
    world.disconnect(tags=TAGS[1:])
    world.connect(tags=TAGS[1:])
    assert world.to_switch[1][0].cookie_mask == 0xFFFE << 48
    world.settle()


def test_when_the_last_app_has_left_its_switches_are_nobodys_and_the_next_one_begins_anew():
    world = SharedWorld()
    world.connect(tags=TAGS[:1])
    world.deliver()
    numbered(world, TAGS[0], 2)
    world.step()
    world.core.handle(OwnerLeft(world.apps[TAGS[0]].xid_tag), world.now)
    for app in world.apps.values():
        world.core.remove(app.app_tag)
    assert world.core.next_deadline() is None
    world.to_controller[1].clear()
    world.apps = {TAGS[2]: Installer(TAGS[2], datapath=world.core)}
    world.connect(tags=TAGS[2:])
    assert [type(sent) for sent in world.to_switch[1]] == [RequestFlows]
    numbered(world, TAGS[2], 2)
    world.settle()
    world.assert_right()


def test_answers_that_nobody_waits_for_change_nothing():
    world = SharedWorld()
    world.connect()
    world.deliver()
    for event in (EditFailed(7, SHARED_TAG << 24 | 1, 3, 2), FlowStatsReceived(1, 4, SHARED_TAG << 24 | 999, b"")):
        assert world.core.handle(event, world.now) == []
    world.perform(world.core.handle(EditFailed(1, SHARED_TAG << 24 | 999, 3, 2), world.now))
    assert [kind for _, kind in world.notices] == ["error-unmatched"]
    assert all(app.in_sync(1) for app in world.apps.values())
    with pytest.raises(KeyError):
        world.core.handle(SwitchConnected(1, 4, ()), world.now)


def test_what_a_turn_brings_for_a_switch_goes_out_in_one_batch_at_its_end():
    world = SharedWorld(switches=2, gathers=True)
    world.connect()
    world.connect(2)
    world.settle()
    for tag in TAGS:
        numbered(world, tag, 2)
    world.change(TAGS[1], Put(entry(TAGS[1], 1, port=7)))
    numbered(world, TAGS[0], 1, dpid=2)
    assert not any(world.to_switch.values()) and not any(app.in_sync(1) for app in world.apps.values())
    assert world.core.next_deadline() == world.now
    world.pass_time(0.0)
    assert [len(batch.edits) for sent in world.to_switch.values() for batch in sent] == [6, 1]
    assert Put(entry(TAGS[1], 1, port=7)) in world.to_switch[1][0].edits
    numbered(world, TAGS[2], 3)
    world.deliver()
    assert not world.apps[TAGS[2]].in_sync(1), "what came up beside a batch waits for the end of the next turn"
    world.pass_time(0.0)
    assert [len(batch.edits) for batch in world.deliver()] == [1]
    world.assert_right()
    world.assert_right(2)
    assert world.core.next_deadline() is None


def test_an_app_hears_that_a_turn_left_nothing_to_be_sent():
    world = SharedWorld(gathers=True)
    world.connect()
    numbered(world, TAGS[0], 1)
    world.settle()
    world.told.clear()
    world.change(TAGS[0], Put(entry(TAGS[0], 1, port=2)))
    world.change(TAGS[0], Put(entry(TAGS[0], 1)))
    world.pass_time(0.0)
    assert not world.to_switch[1]
    assert world.told == [(TAGS[0], 1, False)]
    world.assert_right()


def test_an_app_that_does_not_listen_hears_of_readings_alone():
    world = SharedWorld()
    asked = []
    world.apps[TAGS[0]].listens = lambda dpid: bool(asked.append(dpid))
    world.connect()
    world.settle()
    assert [(tag, was_read) for tag, _, was_read in world.told] == [(tag, True) for tag in TAGS]
    world.told.clear()
    for tag in TAGS:
        numbered(world, tag, 1)
        world.deliver()
    assert world.told == [(TAGS[1], 1, False), (TAGS[2], 1, False)]
    assert asked == [1]
    world.assert_right()


class SharedMachine(RuleBasedStateMachine):
    """Whatever apps want and connections do, switches hold in the end what each app wants, and apps know it."""

    gathers = False

    def __init__(self):
        super().__init__()
        self.world = SharedWorld(switches=2, capacity=40, window=4, gathers=self.gathers)

    @rule(tag=st.sampled_from(TAGS), number=st.integers(1, 12), port=st.integers(0, 3), dpid=st.integers(1, 2))
    def want(self, tag, number, port, dpid):
        made = entry(tag, number, port)
        self.world.change(tag, Put(made) if port else Remove(made.key), dpid=dpid)

    @rule(tag=st.sampled_from(TAGS), count=st.integers(1, 12), dpid=st.integers(1, 2))
    def program(self, tag, count, dpid):
        numbered(self.world, tag, count, dpid=dpid, urgency=Urgency.BULK)

    @rule(dpid=st.integers(1, 2))
    def connect(self, dpid):
        self.world.to_switch[dpid].clear()
        self.world.to_controller[dpid].clear()
        self.world.connect(dpid)

    @precondition(lambda self: self.world.connected)
    @rule(data=st.data())
    def disconnect(self, data):
        self.world.disconnect(data.draw(st.sampled_from(sorted(self.world.connected))))

    @precondition(lambda self: any(self.world.to_switch.values()))
    @rule()
    def step(self):
        self.world.step(next(dpid for dpid, waiting in self.world.to_switch.items() if waiting))

    @precondition(lambda self: any(self.world.to_controller.values()))
    @rule(lost=st.booleans())
    def answer(self, lost):
        dpid = next(dpid for dpid, waiting in self.world.to_controller.items() if waiting)
        if lost:
            self.world.to_controller[dpid].popleft()
        else:
            self.world.answer(dpid)

    @rule(seconds=st.sampled_from([0.1, 3.0, 12.0]))
    def wait(self, seconds):
        self.world.pass_time(seconds)

    @invariant()
    def nothing_is_thought_to_be_there_that_is_not_wanted_or_was(self):
        for tag, app in self.world.apps.items():
            for dpid in self.world.switches:
                assert all(rule.cookie >> 48 == tag for rule in app.installed(dpid).values())

    def teardown(self):
        for dpid in self.world.switches:
            if dpid not in self.world.connected:
                self.world.connect(dpid)
        self.world.settle()
        for dpid in self.world.switches:
            self.world.assert_right(dpid)


TestSharedMachine = SharedMachine.TestCase
TestSharedMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


class GatheringMachine(SharedMachine):
    """The same where what a turn brings is gathered."""

    gathers = True

    @rule()
    def turn_ends(self):
        self.world.pass_time(0.0)


TestGatheringMachine = GatheringMachine.TestCase
TestGatheringMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
