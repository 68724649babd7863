"""Groups and meters under random wishes, failures, deletions and connections."""

from __future__ import annotations

import random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from controller.config.edit_settings import Edits
from controller.datapath.lanes import Urgency
from controller.effects import Define, Put, Remove, Undefine
from controller.events import CheckRequested, SurveyOrder
from controller.rules.model import resources_of
from resource_entries import at, group, meter, through


class ResourceMachine(RuleBasedStateMachine):
    """Whatever is wanted, breaks or is lost, no edit ever names what is not there, and all is right in the end.

    A switch carries out the edits of a batch in any order; it deletes with a group or meter the entries that name it,
    which is never to happen.
    """

    world_of = None

    def __init__(self):
        super().__init__()
        self.random = random.Random(7)
        self.world = ResourceMachine.world_of(
            keeps_resources=True, connect=False, switches=3, resource_capacity=4, capacity=9
        )
        self.world.installer.use_edits(Edits(window="fixed", at_once=3))
        self.world.in_order = lambda edits: self.random.sample(edits, len(edits))
        self.vandalised = self.may_vandalise = False
        self.watched = {}
        for switch in self.world.switches.values():
            self.watch(switch)

    def watch(self, switch):
        apply = switch.apply

        def watched(edit, now=0.0):
            if isinstance(edit, Undefine) and not self.vandalised:
                named = [rule for rule in switch.rules.values() if edit.key in resources_of(rule)]
                assert not named, f"{edit} takes entries with it"
            error = apply(edit, now)
            if not self.vandalised:
                assert error not in ((2, 9), (12, 3), (6, 8), (6, 0), (12, 1)), f"{edit} is refused with {error}"
            return error

        switch.apply = watched

    @rule(
        dpid=st.integers(1, 3),
        named=st.dictionaries(
            st.integers(1, 4), st.tuples(st.integers(1, 3), st.none() | st.integers(1, 2)), max_size=4
        ),
        ports=st.integers(1, 3),
        spare=st.booleans(),
        staged=st.booleans(),
        shuffle=st.randoms(use_true_random=False),
        urgency=st.sampled_from(Urgency),
    )
    def want(self, dpid, named, ports, spare, staged, shuffle, urgency):
        installer = self.world.installer
        groups = {number for number, _ in named.values()} | ({3} if spare else set())
        puts = [Put(through(number, one, meter_number=other)) for number, (one, other) in named.items()]
        puts += [Define(group(number, ports)) for number in groups]
        puts += [Define(meter(other, 100 * ports)) for _, other in named.values() if other is not None]
        kept = {edit.rule.key if isinstance(edit, Put) else edit.resource.key for edit in puts}
        ends = [Remove(key) for key in installer.desired(dpid) if key not in kept]
        ends += [Undefine(key) for key in installer.resources_desired(dpid) if key not in kept]
        shuffle.shuffle(puts)
        shuffle.shuffle(ends)
        if staged:
            stages = [at(*(edit for edit in puts if isinstance(edit, Define)), dpid=dpid)]
            stages.append(at(*(edit for edit in puts if isinstance(edit, Put)), dpid=dpid))
            stages.append(at(*(edit for edit in ends if isinstance(edit, Remove)), dpid=dpid))
            stages.append(at(*(edit for edit in ends if isinstance(edit, Undefine)), dpid=dpid))
        else:
            stages = [at(*puts, *ends, dpid=dpid)]
        self.world.perform(installer.change(stages, self.world.now, 0.0, urgency))

    @rule(dpid=st.integers(1, 3))
    def connect(self, dpid):
        self.world.to_switch[dpid].clear()
        self.world.to_controller[dpid].clear()
        self.world.connect(dpid)

    @precondition(lambda self: self.world.connected)
    @rule(data=st.data())
    def disconnect(self, data):
        self.world.disconnect(data.draw(st.sampled_from(sorted(self.world.connected))))

    @precondition(lambda self: any(self.world.to_switch.values()))
    @rule(data=st.data())
    def step(self, data):
        waiting = [dpid for dpid, messages in self.world.to_switch.items() if messages]
        self.world.step_switch(data.draw(st.sampled_from(waiting)))

    @precondition(lambda self: any(self.world.to_controller.values()))
    @rule(data=st.data(), lost=st.integers(0, 9))
    def answer(self, data, lost):
        dpid = data.draw(st.sampled_from([dpid for dpid, messages in self.world.to_controller.items() if messages]))
        if lost == 0:
            self.world.to_controller[dpid].popleft()
        else:
            self.world.step_controller(dpid)

    @rule(dpid=st.integers(2, 3), error=st.none() | st.sampled_from([(5, 0), (6, 12), (5, 1)]))
    def break_or_mend(self, dpid, error):
        if error is None:
            self.world.refuse.pop(dpid, None)
        else:
            self.world.refuse[dpid] = error

    @initialize(may_vandalise=st.booleans())
    def begin(self, may_vandalise):
        self.may_vandalise = may_vandalise
        for dpid in self.world.switches:
            self.world.connect(dpid)
        self.world.deliver()

    @rule()
    def deliver(self):
        self.world.deliver()

    @precondition(lambda self: self.may_vandalise)
    @rule(dpid=st.integers(2, 3), data=st.data())
    def vandalise(self, dpid, data):
        held = list(self.world.switches[dpid].resources)
        if held:
            self.vandalised = True
            self.world.switches[dpid].apply(Undefine(data.draw(st.sampled_from(held))))

    @rule(seconds=st.sampled_from([0.1, 0.6, 3.0, 12.0, 35.0]))
    def wait(self, seconds):
        self.world.pass_time(seconds)

    def teardown(self):
        self.world.refuse.clear()
        for switch in self.world.switches.values():
            switch.resource_capacity = switch.capacity = 100
        for dpid in self.world.switches:
            if dpid not in self.world.connected:
                self.world.connect(dpid)
        self.world.settle()
        if self.vandalised:
            for dpid in self.world.switches:
                event = CheckRequested(dpid, SurveyOrder(1, repair=True, force=True))
                self.world.perform(self.world.installer.handle(event, self.world.now))
            self.world.settle()
        self.world.assert_in_sync()
        held = self.world.installer._switches.values()
        assert not any(state.held_back() for state in held)


@pytest.mark.parametrize("examples", [60])
def test_whatever_is_wanted_breaks_or_is_lost_comes_right_in_order(make_world, examples):
    ResourceMachine.world_of = staticmethod(make_world)
    run_state_machine_as_test(
        ResourceMachine, settings=settings(max_examples=examples, stateful_step_count=40, deadline=None)
    )
