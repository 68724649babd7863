"""Roles: nothing is sent where nobody asks for one; edits are held while a switch is not ours to write."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from controller.datapath.core import DatapathCore, OwnerTold
from controller.datapath.roles import CONFIRM_S, ROLE_TIMEOUT_S
from controller.effects import ApplyEdits, Notice, Put, RequestFlows, RequestRole, RoleDenied
from controller.events import (
    ControllerRole,
    DeadlineReached,
    EditFailed,
    RoleReplied,
    RoleWanted,
    SwitchConnected,
    SwitchDisconnected,
)
from controller.rules.fake import FakeSwitch
from controller.rules.installer import Installer
from controller.rules.model import FlowEntry, FlowKey, Match, Output

TAGS = (0x5601, 0x5602)
LATEST = 2**64 - 1


def entry(tag, number):
    return FlowEntry(FlowKey(0, tag & 0xF, Match(in_port=number)), (Output(1),), tag << 48 | number)


class Controller:
    """Two apps that share a switch, with what is on the way to it and from it."""

    def __init__(self, switch):
        self.switch = switch
        self.core = DatapathCore(0xA0)
        self.apps = {tag: Installer(tag, datapath=self.core) for tag in TAGS}
        self.to_switch, self.to_controller, self.sent, self.notices, self.denied = deque(), deque(), [], [], []
        self.role = ControllerRole.EQUAL
        self.now = 100.0

    def perform(self, effects):
        for effect in effects:
            if isinstance(effect, OwnerTold):
                self.perform(effect.effects)
            elif isinstance(effect, Notice):
                self.notices.append(effect)
            elif isinstance(effect, RoleDenied):
                self.denied.append(effect)
            else:
                self.to_switch.append(effect)
                self.sent.append(effect)

    def give(self, event):
        self.perform(self.core.handle(event, self.now))

    def connect(self, version=4):
        self.role = ControllerRole.EQUAL
        for app in self.apps.values():
            self.perform(app.handle(SwitchConnected(1, version, ()), self.now))

    def disconnect(self):
        self.to_switch.clear()
        self.to_controller.clear()
        for app in self.apps.values():
            self.perform(app.handle(SwitchDisconnected(1), self.now))

    def want(self, role, generation=0, dpid=None):
        self.give(RoleWanted(role, generation, dpid))

    def put(self, tag, number):
        self.perform(self.apps[tag].change([[(1, Put(entry(tag, number)))]], self.now))

    def step(self):
        """Let the switch, to which this connection has its own role, take one message."""
        self.switch.role = self.role
        effect = self.to_switch.popleft()
        answers = self.switch.respond(effect, self.now)
        if isinstance(effect, ApplyEdits) and effect.edits:
            assert self.core.role(1)[0] is None or self.core.role(1)[0] in (
                ControllerRole.EQUAL,
                ControllerRole.MASTER,
            )
        self.role = self.switch.role
        self.to_controller.extend(answers)
        return answers

    def answer(self):
        self.give(self.to_controller.popleft())

    def deliver(self):
        while self.to_switch or self.to_controller:
            while self.to_switch:
                self.step()
            while self.to_controller:
                self.answer()

    def pass_time(self, seconds):
        end = self.now + seconds
        holders = [self.core, *self.apps.values()]
        while (due := min((s for h in holders if (s := h.next_deadline()) is not None), default=end + 1)) <= end:
            self.now = max(due, self.now)
            for holder in holders:
                self.perform(holder.handle(DeadlineReached(), self.now))
        self.now = end

    def kinds(self):
        return [type(sent) for sent in self.sent]

    def is_right(self):
        return all(
            app.in_sync(1)
            and dict(app.desired(1))
            == dict(app.installed(1))
            == {key: held for key, held in self.switch.rules.items() if held.cookie >> 48 == tag}
            for tag, app in self.apps.items()
        )


@pytest.fixture
def controller():
    return Controller(FakeSwitch(1, 4))


def test_where_nobody_asks_for_a_role_no_message_is_sent_for_one(controller):
    controller.connect()
    controller.put(TAGS[0], 1)
    controller.deliver()
    controller.disconnect()
    controller.connect()
    controller.deliver()
    assert controller.kinds() == [RequestFlows, ApplyEdits, RequestFlows]
    assert controller.is_right() and controller.core.role(1) == (None, None)


def test_a_master_asks_first_and_reads_and_writes_when_that_is_confirmed(controller):
    controller.want(ControllerRole.MASTER, 7)
    controller.put(TAGS[0], 1)
    controller.connect()
    assert controller.sent == [RequestRole(1, controller.sent[0].xid, ControllerRole.MASTER, 7)]
    controller.put(TAGS[1], 2)
    assert not any(app.is_read(1) or app.in_sync(1) for app in controller.apps.values())
    controller.deliver()
    assert controller.kinds()[1:] == [RequestFlows, ApplyEdits]
    assert controller.is_right() and controller.core.role(1) == (ControllerRole.MASTER, 7)
    assert controller.switch.generation_id == 7


def test_a_slave_reads_and_writes_nothing_until_it_is_master(controller):
    controller.want(ControllerRole.SLAVE, 3)
    controller.connect()
    controller.put(TAGS[0], 1)
    controller.deliver()
    assert controller.kinds() == [RequestRole] and controller.core.role(1) == (ControllerRole.SLAVE, 3)
    assert controller.switch.rules == {}
    controller.want(ControllerRole.MASTER, 3)
    controller.deliver()
    assert controller.is_right() and controller.kinds()[-2:] == [RequestFlows, ApplyEdits]


def test_nobody_waits_for_a_switch_that_is_not_ours(controller):
    controller.want(ControllerRole.SLAVE, 3)
    controller.connect()
    app = controller.apps[TAGS[0]]
    stages = [[(1, Put(entry(TAGS[0], number)))] for number in (1, 2)]
    controller.perform(app.change(stages, controller.now))
    assert app.plan_count == 0 and app.read_flows(1, 0, 0) is None
    controller.want(ControllerRole.MASTER, 4)
    controller.deliver()
    assert controller.is_right()


def test_edits_that_wait_or_are_under_way_when_the_role_goes_are_sent_by_the_next_term(controller):
    controller.want(ControllerRole.MASTER, 1)
    controller.connect()
    controller.deliver()
    controller.put(TAGS[0], 1)
    controller.put(TAGS[1], 2)
    controller.want(ControllerRole.SLAVE, 2)
    controller.deliver()
    assert controller.core.role(1) == (ControllerRole.SLAVE, 2)
    assert not any(app.is_read(1) for app in controller.apps.values())
    controller.want(ControllerRole.MASTER, 3)
    controller.deliver()
    assert controller.is_right()


def test_two_controllers_the_one_that_is_master_later_demotes_the_other(controller):
    first, second = controller, Controller(controller.switch)
    first.want(ControllerRole.MASTER, 1)
    first.connect()
    first.deliver()
    second.want(ControllerRole.MASTER, 2)
    second.connect()
    second.put(TAGS[1], 5)
    second.deliver()
    first.role = ControllerRole.SLAVE  # what the switch makes of the other masters
    assert first.core.role(1) == (ControllerRole.MASTER, 1), "the one that was demoted hears nothing of it"
    first.put(TAGS[0], 1)
    first.deliver()
    assert [notice.kind for notice in first.notices] == ["role-lost"]
    assert first.core.role(1)[0] == ControllerRole.SLAVE and not first.apps[TAGS[0]].in_sync(1)
    count = len(first.sent)
    first.put(TAGS[0], 2)
    assert len(first.sent) == count, "edits are held"
    assert entry(TAGS[0], 1).key not in controller.switch.rules
    first.want(ControllerRole.MASTER, 3)
    first.deliver()
    assert first.apps[TAGS[0]].in_sync(1) and entry(TAGS[0], 2).key in controller.switch.rules


@pytest.mark.parametrize("generation", [5, LATEST])
def test_a_stale_generation_is_told_and_the_later_one_is_learnt(controller, generation):
    controller.switch.generation_id = generation
    controller.want(ControllerRole.MASTER, generation - 1)
    controller.connect()
    controller.deliver()
    (notice,) = controller.notices
    assert notice.kind == "role-refused" and dict(notice.fields)["stale"] is True
    asked = [sent for sent in controller.sent if isinstance(sent, RequestRole)]
    assert [sent.role for sent in asked] == [ControllerRole.MASTER, None] and controller.kinds() == [RequestRole] * 2
    if generation != LATEST:  # the number that a switch uses for none
        assert controller.core.role(1) == (ControllerRole.EQUAL, generation)
    controller.want(ControllerRole.MASTER, generation)
    controller.deliver()
    assert controller.is_right()


def test_a_master_whose_next_term_is_refused_writes_no_more(controller):
    controller.want(ControllerRole.MASTER, 5)
    controller.connect()
    controller.deliver()
    controller.switch.generation_id = 9
    controller.role = ControllerRole.SLAVE
    controller.want(ControllerRole.MASTER, 6)
    controller.put(TAGS[0], 1)
    controller.deliver()
    assert controller.core.role(1) == (ControllerRole.SLAVE, 9) and controller.switch.rules == {}


def test_the_same_role_again_is_not_asked_for(controller):
    controller.want(ControllerRole.MASTER, 5)
    controller.connect()
    controller.deliver()
    count = len(controller.sent)
    controller.want(ControllerRole.MASTER, 5)
    controller.want(ControllerRole.MASTER, 5, dpid=1)
    assert len(controller.sent) == count and controller.is_right()


def test_a_role_may_be_wanted_of_one_switch_alone(controller):
    controller.want(ControllerRole.SLAVE, 1, dpid=2)
    controller.connect()
    controller.deliver()
    assert controller.kinds() == [RequestFlows]
    controller.want(ControllerRole.SLAVE, 1, dpid=1)
    controller.deliver()
    assert controller.core.role(1) == (ControllerRole.SLAVE, 1)
    controller.want(ControllerRole.EQUAL, 1)
    controller.deliver()
    assert controller.core.role(1)[0] == ControllerRole.EQUAL and controller.is_right()


def test_a_request_without_an_answer_is_made_again(controller):
    controller.want(ControllerRole.MASTER, 1)
    controller.connect()
    controller.to_switch.clear()
    controller.pass_time(ROLE_TIMEOUT_S)
    assert [notice.kind for notice in controller.notices] == ["role-timeout"]
    late = controller.sent[0]
    controller.give(RoleReplied(1, late.xid, ControllerRole.MASTER, 1))
    assert controller.kinds() == [RequestRole] * 2, "the answer to what nobody waits for counts for nothing"
    controller.deliver()
    assert controller.is_right()


@pytest.mark.parametrize("error", [(1, 3), (1, 2)], ids=["no extension", "no vendor messages"])
def test_a_switch_of_openflow_1_0_without_the_extension_is_left_alone(error):
    controller = Controller(FakeSwitch(1, 1))
    controller.want(ControllerRole.MASTER, 1)
    controller.connect(version=1)
    controller.put(TAGS[0], 1)
    (asked,) = controller.sent
    controller.to_switch.clear()
    controller.give(EditFailed(1, asked.xid, *error))
    (notice,) = controller.notices
    assert notice.kind == "role-refused" and f"OpenFlow error {error[0]}/{error[1]}" in notice.text
    assert controller.kinds() == [RequestRole] and controller.denied == [RoleDenied(1, None)]


def test_in_openflow_1_0_the_last_to_ask_is_master_and_the_other_hears_it_by_an_error():
    first = Controller(FakeSwitch(1, 1))
    second = Controller(first.switch)
    for controller in (first, second):
        controller.want(ControllerRole.MASTER, 1)
        controller.connect(version=1)
        controller.deliver()
        assert controller.core.role(1) == (ControllerRole.MASTER, None)
        assert controller.core.next_deadline() is None, "OpenFlow 1.0 cannot be asked for a role"
    first.role = ControllerRole.SLAVE
    first.put(TAGS[0], 1)
    first.deliver()
    assert [notice.kind for notice in first.notices] == ["role-lost"] and first.denied == [RoleDenied(1, None)]
    assert first.core.role(1)[0] == ControllerRole.SLAVE and first.switch.rules == {}


def test_a_master_asks_every_second_whether_it_still_is(controller):
    controller.want(ControllerRole.MASTER, 4)
    controller.connect()
    controller.deliver()
    before = len(controller.sent)
    for _ in range(3):
        controller.pass_time(CONFIRM_S)
        controller.deliver()
    asked = controller.sent[before:]
    assert [(type(sent), sent.role) for sent in asked] == [(RequestRole, None)] * 3
    controller.put(TAGS[0], 1)
    controller.deliver()
    assert controller.is_right() and controller.notices == controller.denied == []


def test_an_idle_master_learns_of_its_successor_by_asking(controller):
    controller.want(ControllerRole.MASTER, 4)
    controller.connect()
    controller.deliver()
    controller.role, controller.switch.generation_id = ControllerRole.SLAVE, 9
    controller.pass_time(CONFIRM_S)
    controller.deliver()
    assert [notice.kind for notice in controller.notices] == ["role-lost"]
    assert controller.denied == [RoleDenied(1, 9)] and controller.core.role(1) == (ControllerRole.SLAVE, 9)
    count = len(controller.sent)
    controller.put(TAGS[0], 1)
    controller.pass_time(5 * CONFIRM_S)
    assert len(controller.sent) == count, "nothing is asked or written any more"


def test_a_slave_asks_for_nothing_more(controller):
    controller.want(ControllerRole.SLAVE, 4)
    controller.connect()
    controller.deliver()
    controller.pass_time(60.0)
    assert controller.kinds() == [RequestRole] and controller.core.next_deadline() is None


def test_a_slave_that_is_behind_becomes_one_in_the_generation_of_the_switch(controller):
    controller.switch.generation_id = 7
    controller.want(ControllerRole.SLAVE, 0)
    controller.connect()
    controller.deliver()
    asked = [(sent.role, sent.generation_id) for sent in controller.sent]
    assert asked == [(ControllerRole.SLAVE, 0), (None, 0), (ControllerRole.SLAVE, 7)]
    assert controller.core.role(1) == (ControllerRole.SLAVE, 7) and controller.denied == [RoleDenied(1, 7)]


def test_a_switch_that_is_back_is_asked_again(controller):
    controller.want(ControllerRole.MASTER, 2)
    controller.connect()
    controller.deliver()
    controller.disconnect()
    assert controller.core.role(1) == (None, None)
    controller.connect()
    assert controller.kinds()[-1] is RequestRole
    controller.deliver()
    assert controller.is_right()


def test_an_error_for_a_slave_where_nobody_asked_for_a_role_is_one_as_any_other(controller):
    controller.connect()
    controller.deliver()
    controller.put(TAGS[0], 1)
    controller.give(EditFailed(1, controller.sent[-1].first_xid, 1, 10))
    controller.to_switch.clear()
    controller.pass_time(6.0)
    controller.deliver()
    assert controller.is_right()


class RoleMachine(RuleBasedStateMachine):
    """Two controllers at a switch: only the one that the switch has confirmed writes, and in the end its entries."""

    def __init__(self):
        super().__init__()
        self.switch = FakeSwitch(1, 4)
        self.controllers = [Controller(self.switch), Controller(self.switch)]
        self.connected = [False, False]
        self.generation = 0
        for controller in self.controllers:
            controller.want(ControllerRole.SLAVE, 0)

    @rule(which=st.integers(0, 1))
    def connect(self, which):
        controller = self.controllers[which]
        controller.to_switch.clear()
        controller.to_controller.clear()
        controller.connect()
        self.connected[which] = True

    @rule(which=st.integers(0, 1))
    def disconnect(self, which):
        self.controllers[which].disconnect()
        self.connected[which] = False

    @rule(
        which=st.integers(0, 1),
        role=st.sampled_from([ControllerRole.MASTER, ControllerRole.SLAVE]),
        older=st.booleans(),
    )
    def want(self, which, role, older):
        self.generation += role is ControllerRole.MASTER and not older
        self.controllers[which].want(role, max(self.generation - older, 0))

    @rule(which=st.integers(0, 1), number=st.integers(1, 5))
    def put(self, which, number):
        self.controllers[which].put(TAGS[0], number)

    @precondition(lambda self: any(controller.to_switch for controller in self.controllers))
    @rule(data=st.data())
    def step(self, data):
        which = data.draw(st.sampled_from([at for at in (0, 1) if self.controllers[at].to_switch]))
        self.step_of(which)

    def step_of(self, which):
        controller, other = self.controllers[which], self.controllers[1 - which]
        before = dict(self.switch.rules)
        controller.step()
        if controller.role is ControllerRole.MASTER and other.role is ControllerRole.MASTER:
            other.role = ControllerRole.SLAVE
        if self.switch.rules != before:
            assert controller.role is ControllerRole.MASTER

    @precondition(lambda self: any(controller.to_controller for controller in self.controllers))
    @rule(data=st.data(), lost=st.integers(0, 9))
    def answer(self, data, lost):
        waiting = [controller for controller in self.controllers if controller.to_controller]
        controller = data.draw(st.sampled_from(waiting))
        if lost:
            controller.answer()
        else:
            controller.to_controller.popleft()

    @rule(seconds=st.sampled_from([0.1, 6.0, 12.0]))
    def wait(self, seconds):
        for controller in self.controllers:
            controller.pass_time(seconds)

    def teardown(self):
        for which in (0, 1):
            if not self.connected[which]:
                self.connect(which)
        first, second = self.controllers
        second.want(ControllerRole.SLAVE, self.generation)
        first.want(ControllerRole.MASTER, self.generation + 1)
        for _ in range(6):
            while first.to_switch or first.to_controller or second.to_switch or second.to_controller:
                for which in (0, 1):
                    while self.controllers[which].to_switch:
                        self.step_of(which)
                    while self.controllers[which].to_controller:
                        self.controllers[which].answer()
            for controller in self.controllers:
                controller.pass_time(15.0)
        assert first.is_right()
        assert second.core.role(1)[0] != ControllerRole.MASTER


TestRoleMachine = RoleMachine.TestCase
TestRoleMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
