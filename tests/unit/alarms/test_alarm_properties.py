"""Whatever fails, in whatever order: each missing thing has one cause, and with all put back nothing is wrong."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from alarm_bench import Bench, port_event
from controller.alarms.causes import LINK_FAILED, SWITCH_DOWN, subject_of
from controller.alarms.known import cable_of
from controller.events import SwitchDisconnected
from topology.events import LinkDown, LinkUp, SwitchDown

SQUARE = ((1, 1, 2, 1), (2, 2, 3, 1), (3, 2, 4, 1), (1, 2, 4, 2), (1, 3, 3, 3))
DPIDS = (1, 2, 3, 4)


class Fabric:
    """A fabric that fails in parts, and tells what discovery and switches would tell of it."""

    def __init__(self) -> None:
        self.bench = Bench(SQUARE)
        self.pulled: set[int] = set()
        self.dead: set[int] = set()
        self.up = set(range(len(SQUARE)))

    def settle(self) -> None:
        """Tell of each link that went or came."""
        for index, link in enumerate(SQUARE):
            is_up = index not in self.pulled and not self.dead & set(link[::2])
            if not is_up and index in self.up:
                for end in (link[:2], link[2:]):
                    if end[0] not in self.dead:
                        self.bench.give(port_event(*end, False))
                self.bench.give(LinkDown(*link))
                self.up.discard(index)
            elif is_up and index not in self.up:
                self.bench.give(port_event(*link[:2], True), port_event(*link[2:], True), LinkUp(*link, 1e9))
                self.up.add(index)

    def cable(self, index: int) -> None:
        """Pull a cable, or put it back."""
        self.pulled ^= {index}
        self.settle()

    def switch(self, dpid: int, connection_first: bool) -> None:
        """Let a switch die, its connection before or after its links; or bring it back."""
        if dpid in self.dead:
            self.dead.discard(dpid)
            down = [end[1] for i in self.pulled for end in (SQUARE[i][:2], SQUARE[i][2:]) if end[0] == dpid]
            self.bench.connect(dpid, down=down)
            self.settle()
            return
        if connection_first:
            self.bench.give(SwitchDisconnected(dpid))
        self.dead.add(dpid)
        self.settle()
        if not connection_first:
            self.bench.give(SwitchDisconnected(dpid))
        self.bench.give(SwitchDown(dpid))


steps = st.lists(
    st.one_of(
        st.tuples(st.just("cable"), st.integers(0, len(SQUARE) - 1)),
        st.tuples(st.just("switch"), st.sampled_from(DPIDS), st.booleans()),
        st.tuples(st.just("wait"), st.sampled_from((0.1, 2.0, 30.0))),
    ),
    max_size=14,
)


@settings(max_examples=300, deadline=None)
@given(steps)
def test_each_missing_thing_has_one_cause_and_nothing_is_wrong_with_all_put_back(sequence: list[tuple]) -> None:
    fabric = Fabric()
    bench = fabric.bench
    for step in sequence:
        if step[0] == "cable":
            fabric.cable(step[1])
        elif step[0] == "switch":
            fabric.switch(step[1], step[2])
        else:
            bench.wait(step[1])
    bench.wait(1000)
    conditions = [alarm.condition for alarm in bench.core.register]
    subjects = [subject_of(condition) for condition in conditions]
    down = {what for kind, what in filter(None, subjects) if kind == "switch"}
    assert {condition.kind for condition in conditions} <= {SWITCH_DOWN, LINK_FAILED}
    assert fabric.dead <= down
    for index in set(range(len(SQUARE))) - fabric.up:
        cable = cable_of(*SQUARE[index])
        explained = bool(down & set(cable.pair))
        assert explained != (("link", cable) in subjects), "either of a switch's alarm or one of its own"
    assert not {what for kind, what in filter(None, subjects) if kind == "link"} & {
        cable_of(*SQUARE[index]) for index in fabric.up
    }
    for dpid in tuple(fabric.dead):
        fabric.switch(dpid, False)
    for index in tuple(fabric.pulled):
        fabric.cable(index)
    bench.wait(1000)
    assert bench.open == {}
    assert not bench.status["degraded"]
    assert bench.status["fabric"] == "4 of 4 switches, 5 of 5 links"
