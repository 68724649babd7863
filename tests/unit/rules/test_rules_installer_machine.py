"""The installer against strict fake switches, with messages late, lost, refused and switches coming and going."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.effects import ApplyEdits, Put, Remove
from controller.rules.model import FlowEntry, FlowKey, Match, Output
from controller.rules.plans import PLAN_PATIENCE_S

TAG = 0x5602
DPIDS = (1, 2, 3)
KEYS = tuple(FlowKey(0, 1, Match(in_port=number)) for number in range(1, 7))


def value(key, variant):
    return FlowEntry(key, (Output(100 + variant),), TAG << 48)


entries = st.tuples(st.sampled_from(DPIDS), st.sampled_from(KEYS), st.integers(0, 3))
stages = st.lists(st.lists(entries, min_size=1, max_size=4), min_size=1, max_size=3)


def edit(key, variant):
    return Remove(key) if variant == 0 else Put(value(key, variant))


dpids = st.sampled_from(DPIDS)
CHAOS = st.one_of(
    st.tuples(st.just("change"), stages, st.sampled_from([0.0, 0.0, 0.05])),
    st.tuples(st.just("step_switch"), dpids),
    st.tuples(st.just("step_controller"), dpids),
    st.tuples(st.just("disconnect"), dpids),
    st.tuples(st.just("connect"), dpids),
    st.tuples(st.just("wipe"), dpids),
    st.tuples(st.just("meddle"), dpids, entries),
    st.tuples(st.just("lose"), dpids),
    st.tuples(st.just("refuse"), dpids, st.sampled_from([None, (4, 9)])),
    st.tuples(st.just("capacity"), dpids, st.integers(0, 5)),
    st.tuples(st.just("time"), st.sampled_from([0.01, 1.0, 12.0])),
    st.tuples(st.just("release")),
)


class Chaos:
    """Runs the actions that CHAOS draws."""

    def __init__(self, world):
        self.world = world

    def run(self, action):
        name, *arguments = action
        getattr(self, name)(*arguments)

    def change(self, drawn, drain_s):
        self.world.change(*[[(dpid, edit(key, n)) for dpid, key, n in stage] for stage in drawn], drain_s=drain_s)

    def step_switch(self, dpid):
        if self.world.to_switch[dpid]:
            self.world.step_switch(dpid)

    def step_controller(self, dpid):
        if self.world.to_controller[dpid]:
            self.world.step_controller(dpid)

    def disconnect(self, dpid):
        if dpid in self.world.connected:
            self.world.disconnect(dpid)

    def connect(self, dpid):
        self.world.to_switch[dpid].clear()
        self.world.to_controller[dpid].clear()
        self.world.connect(dpid)

    def wipe(self, dpid):
        if dpid not in self.world.connected:
            for key in list(self.world.switches[dpid].rules):
                self.world.switches[dpid].apply(Remove(key))

    def meddle(self, dpid, entry):
        if dpid not in self.world.connected:
            self.world.switches[dpid].apply(edit(*entry[1:]))

    def lose(self, dpid):
        """The switch is stuck: what was sent to it is never answered."""
        self.world.to_switch[dpid].clear()

    def refuse(self, dpid, error):
        self.world.refuse[dpid] = error

    def capacity(self, dpid, count):
        self.world.switches[dpid].capacity = count

    def time(self, seconds):
        self.world.pass_time(seconds)

    def release(self):
        self.world.perform(self.world.installer.release_unknown(self.world.now))


@pytest.mark.parametrize("hold_unknown", [False, True])
@settings(max_examples=200, deadline=None)
@given(actions=st.lists(CHAOS, max_size=40))
def test_whatever_happens_all_switches_come_to_hold_what_is_desired(make_world, hold_unknown, actions):
    world = make_world(connect=False, hold_unknown=hold_unknown)
    chaos = Chaos(world)
    wanted = {dpid: {} for dpid in DPIDS}
    for action in actions:
        chaos.run(action)
        if action[0] == "change":
            for stage in action[1]:
                for dpid, key, variant in stage:
                    wanted[dpid].pop(key, None)
                    if variant:
                        wanted[dpid][key] = value(key, variant)
        for dpid in DPIDS:
            assert dict(world.installer.desired(dpid)) == wanted[dpid]
    world.refuse.clear()
    for dpid in DPIDS:
        world.switches[dpid].capacity = 1000
        chaos.disconnect(dpid)
        chaos.connect(dpid)
    chaos.release()
    world.settle()
    world.assert_in_sync()


PATHS = 3
ENTRY = FlowKey(0, 2, Match(in_port=50))
PATH_KEYS = {path: ((2, KEYS[path]), (3, KEYS[path]), (1, KEYS[path + 3])) for path in range(PATHS)}
"""The entries that a stream needs on each of its possible paths; ENTRY at switch 1 picks the path."""


def entry(path):
    return FlowEntry(ENTRY, (Output(path + 1),), TAG << 48)


moves = st.tuples(st.just("move"), st.integers(0, PATHS - 1), st.integers(1, 3), st.sampled_from([0.0, 0.05]))
STREAM = st.one_of(
    moves,
    moves,
    moves,
    st.tuples(st.just("touch"), st.integers(1, 3)),
    st.tuples(st.just("other"), dpids, st.integers(0, 3)),
    st.tuples(st.just("step_switch"), dpids),
    st.tuples(st.just("step_switch"), dpids),
    st.tuples(st.just("step_controller"), dpids),
    st.tuples(st.just("step_controller"), dpids),
    st.tuples(st.just("time"), st.sampled_from([0.01, 0.06])),
)


@settings(max_examples=200, deadline=None)
@given(actions=st.lists(STREAM, max_size=60))
def test_a_stream_that_is_moved_about_is_never_interrupted(make_world, actions):
    world = make_world()
    chaos = Chaos(world)
    path = 0
    world.change([(dpid, Put(value(key, 1))) for dpid, key in PATH_KEYS[0]], [(1, Put(entry(0)))])
    world.deliver()

    def served():
        taken = world.switches[1].rules[ENTRY].actions[0].port_no - 1
        for dpid, key in PATH_KEYS[taken]:
            assert key in world.switches[dpid].rules, f"path {taken} has a gap at switch {dpid}"

    world.check = served
    for name, *arguments in actions:
        if name == "move":
            to, variant, drain_s = arguments
            if to != path:
                world.change(
                    [(dpid, Put(value(key, variant))) for dpid, key in PATH_KEYS[to]],
                    [(1, Put(entry(to)))],
                    [(dpid, Remove(key)) for dpid, key in PATH_KEYS[path]],
                    drain_s=drain_s,
                )
                path = to
        elif name == "touch":
            world.change([(dpid, Put(value(key, arguments[0]))) for dpid, key in PATH_KEYS[path]])
        elif name == "other":
            world.change([(arguments[0], edit(FlowKey(0, 3, Match(in_port=60)), arguments[1]))])
        else:
            chaos.run((name, *arguments))
        assert world.installer.next_deadline() is None or world.now < world.installer.next_deadline()
    world.settle(limit=400)
    world.assert_in_sync()
    assert world.now < 100.0 + PLAN_PATIENCE_S + 60
    assert not world.notices


@settings(max_examples=100, deadline=None)
@given(changes=st.lists(stages, min_size=1, max_size=8), data=st.data())
def test_messages_sent_are_bounded_by_changes(make_world, changes, data):
    """No edit is sent that nobody asked for: at most one per entry of a change."""
    world = make_world()
    for drawn in changes:
        Chaos(world).change(drawn, 0.0)
        for _ in range(data.draw(st.integers(0, 4))):
            dpid = data.draw(dpids)
            Chaos(world).step_switch(dpid)
            Chaos(world).step_controller(dpid)
    world.settle()
    world.assert_in_sync()
    sent = sum(len(effect.edits) for effect in world.sent if isinstance(effect, ApplyEdits))
    assert sent <= sum(len(stage) for drawn in changes for stage in drawn)
