"""What the log says of the topology: each switch with its ports, and each link, as they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.config.policy import Policy
from controller.events import DeadlineReached
from controller.log import LogEntry, LogEntryKind, LogPart, MemoryLog
from controller.multicast import pending_writes
from controller.multicast.core import MulticastCore
from controller.multicast.former_journal import read_records
from controller.multicast.journal import CHANGES_PER_WRITE, MulticastJournal
from restored_log import read_entries
from topology.events import LinkDown, LinkUp, PortRole, PortRoleChanged, SwitchDown, SwitchUp
from topology.live import LiveFabric

DPIDS = st.integers(1, 4)
PORTS = st.integers(1, 3)
CHANGES = st.lists(
    st.one_of(
        st.builds(SwitchUp, DPIDS, st.sampled_from((1, 4))),
        st.builds(SwitchDown, DPIDS),
        st.builds(LinkUp, st.just(1), PORTS, st.integers(2, 4), PORTS, st.sampled_from((1e9, 1e10))),
        st.builds(LinkDown, st.just(1), st.integers(2, 4)),
        st.builds(PortRoleChanged, DPIDS, PORTS, st.sampled_from(PortRole)),
    ),
    max_size=60,
)


class Written:
    """A core, what it wrote to its journal, and the fabric that it was told of."""

    def __init__(self) -> None:
        self.core = MulticastCore(Policy(), 0.0)
        self.fabric = LiveFabric()
        self.now = 0.0
        self.log = MemoryLog()
        self.parts: list[LogPart] = []

    def feed(self, *events) -> None:
        for event in events:
            self.fabric.apply(event)
            self.core.topology.follow(event, self.now)

    def write(self, seconds: float = 1.0) -> list[str]:
        """Let time pass; return the keys that were written meanwhile, but for that of routers."""
        written: list[str] = []
        until_s = self.now + seconds
        while (due_s := self.core.pending_writes.due_s) is not None and due_s <= until_s:
            self.now = due_s
            for effect in self.core.journal.on_deadline(due_s):
                self.parts.append(effect.part)
                self.log.write(effect)
                written += (entry.key for entry in effect.entries if entry.key != "routers")
        self.now = until_s
        return written

    def restored(self):
        return read_entries(self.log.read())


def lasting(fabric: LiveFabric) -> tuple:
    """What a restarted controller is to know of a fabric: no ports that lead nowhere."""
    return tuple(e for e in fabric.structure() if getattr(e, "role", None) not in (PortRole.DOWN, PortRole.UNKNOWN))


def started(switches: int = 40) -> Written:
    world = Written()
    for dpid in range(1, switches + 1):
        world.feed(SwitchUp(dpid, 4))
        world.feed(*(PortRoleChanged(dpid, port_no, PortRole.EDGE) for port_no in range(1, 9)))
    world.feed(*(LinkUp(dpid, 9, dpid + 1, 10, 1e10) for dpid in range(1, switches)))
    world.write()
    return world


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        (LinkDown(3, 9, 4, 10), ["link/3:9-4:10"]),
        (PortRoleChanged(7, 2, PortRole.DOWN), ["switch/7"]),
        (SwitchDown(40), ["switch/40", "link/39:9-40:10"]),
        (SwitchUp(41, 4), ["switch/41"]),
    ],
)
def test_a_change_costs_the_entry_of_what_changed_whatever_the_fabric(change, keys):
    world = started()
    world.feed(change)
    assert world.write() == keys
    assert world.restored().topology == lasting(world.fabric)


@given(CHANGES, st.sets(st.integers(0, 60)))
def test_the_entries_lead_to_the_fabric_that_was_there(changes, writes):
    world = Written()
    for number, change in enumerate(changes):
        world.feed(change)
        if number in writes:
            world.write()
    world.write()
    restored = world.restored()
    assert restored.faults == 0
    assert restored.topology == lasting(world.core.fabric)


@given(CHANGES, CHANGES, CHANGES)
def test_so_do_those_of_a_log_that_was_begun_anew_meanwhile(before, waiting, after):
    world = Written()
    world.feed(*before)
    world.write()
    world.feed(*waiting)
    stale = [
        LogEntry.of_record(
            LogEntryKind.OBSERVATION, "switch/99", {"dpid": 99, "ofp_version": 4, "edge_ports": [], "trunk_ports": []}
        )
    ]
    world.log = MemoryLog(stale)
    world.core.pending_writes.begin_anew(world.now)
    world.feed(*after)
    world.write()
    assert world.parts[-1] is LogPart.END
    assert world.restored().topology == lasting(world.core.fabric)


def test_a_fabric_that_comes_up_is_written_in_steps():
    world = Written()
    world.feed(*(SwitchUp(dpid, 4) for dpid in range(1, 2 * CHANGES_PER_WRITE)))
    assert len(world.write(pending_writes.JOURNAL_INTERVAL_S)) == CHANGES_PER_WRITE
    assert len(world.write()) == CHANGES_PER_WRITE - 1
    assert world.restored().topology == lasting(world.fabric)


def test_more_changes_than_may_wait_lead_to_a_log_written_anew(monkeypatch):
    monkeypatch.setattr(pending_writes, "CHANGES_BOUND", 8)
    world = Written()
    world.feed(*(SwitchUp(dpid, 4) for dpid in range(1, 12)))
    world.write()
    assert (world.parts[0], world.parts[-1]) == (LogPart.BEGIN, LogPart.END)
    assert world.restored().topology == lasting(world.fabric)


def test_coming_and_going_costs_no_room():
    world = started(10)
    before = len(world.log.read())
    for _ in range(400):
        world.feed(*(LinkDown(dpid, 9, dpid + 1, 10) for dpid in range(1, 10)))
        world.feed(*(LinkUp(dpid, 9, dpid + 1, 10, 1e10) for dpid in range(1, 10)))
        world.write(0.1)
    world.feed(*(PortRoleChanged(1, 1, role) for _ in range(20_000) for role in (PortRole.DOWN, PortRole.EDGE)))
    assert world.write(10.0) == ["switch/1"]
    assert len(world.log.read()) == before and LogPart.BEGIN not in world.parts


SWITCH = {"dpid": 9, "ofp_version": 4, "edge_ports": [1], "trunk_ports": []}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("switch/9", {**SWITCH, "ofp_version": 7}),
        ("switch/9", {"dpid": 9, "ofp_version": 4}),
        ("switch/9", {**SWITCH, "edge_ports": ["one"]}),
        ("switch/9", {**SWITCH, "trunk_ports": 7}),
        ("link/1-1", {"ends": [1, 1, 1, 2], "capacity_bps": 1e9}),
        ("link/1-2", {"ends": [1, 1, 2, 2], "capacity_bps": 0.0}),
        ("link/1-2", {"ends": [1, 1, 2], "capacity_bps": 1e9}),
        ("link/1-2", {}),
    ],
)
def test_entries_that_cannot_be_read_are_counted_and_change_nothing(key, value):
    world = started(3)
    before = world.restored().topology
    restored = read_entries([*world.log.read(), LogEntry.of_record(LogEntryKind.OBSERVATION, key, value)])
    assert restored.faults == 1
    assert restored.topology == before


@pytest.mark.parametrize(("key", "value"), [("switched/9", SWITCH), ("", {})])
def test_entries_by_keys_of_another_version_are_no_faults_and_change_nothing(key, value):
    world = started(3)
    before = world.restored()
    assert read_entries([*world.log.read(), LogEntry.of_record(LogEntryKind.OBSERVATION, key, value)]) == before


WHOLE = {"kind": "topology", "switches": [[1, 4], [2, 4]], "edge_ports": [[1, 1]], "trunk_ports": [], "links": []}


@pytest.mark.parametrize(
    "fault",
    [
        ["switch-up", 9, 7],
        ["switch-up", 9],
        ["switch-gone", 9],
        ["link-up", 1, 1, 1, 2, 1e9],
        ["link-up", 1, 1, 2, 2, 0.0],
        ["link-down", "a", 2],
        ["port", 1, 1, "elsewhere"],
        ["port", 1, 1],
        [],
        7,
    ],
)
def test_changes_of_a_former_journal_that_cannot_be_read_are_counted_and_change_nothing(fault):
    restored = read_records([WHOLE, {"kind": "topology-changes", "changes": [["switch-up", 8, 4], fault]}])
    assert restored.faults == 1
    assert restored.topology == (SwitchUp(1, 4), SwitchUp(2, 4), PortRoleChanged(1, 1, PortRole.EDGE))


def test_what_waits_is_written_when_it_is_due():
    world = Written()
    world.feed(SwitchUp(1, 4))
    assert world.core.pending_writes.due_s == pytest.approx(pending_writes.JOURNAL_INTERVAL_S)
    assert world.core.next_deadline() <= pending_writes.JOURNAL_INTERVAL_S
    world.core.handle(DeadlineReached(), pending_writes.JOURNAL_INTERVAL_S)
    assert isinstance(world.core.journal, MulticastJournal)
    assert world.core.pending_writes.due_s is None
