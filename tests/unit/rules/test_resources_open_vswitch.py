"""Groups, meters and roles at a real Open vSwitch: installed, put right when deleted by hand, kept over a restart."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.emulation.processes import run
from controller.datapath.core import DatapathCore, OwnerTold
from controller.effects import ApplyEdits, Define, Notice, Put, Remove, RequestFlows, RequestResources, Undefine
from controller.events import (
    BarrierReplied,
    ControllerRole,
    DeadlineReached,
    EditFailed,
    FlowStatsReceived,
    ResourcesReceived,
    RoleReplied,
    RoleWanted,
    SwitchConnected,
)
from controller.rules.installer import Installer
from controller.rules.lowering import LOWERINGS
from controller.rules.model import Bucket, GroupEntry, GroupKey, GroupType, Output, SetQueue
from controller.rules.of13_resources import (
    NO_CHANGE,
    decode_role_reply,
    encode_resource_request,
    encode_role_request,
)
from controller.rules.openflow import HEADER, decode_error
from openflow_client import Client
from private_bridge import private_bridge
from resource_entries import TAG, at, entry, group, meter, through

pytestmark = pytest.mark.emulation

BRIDGE = "vsrtgroups0"
DPID = 1
LOWERING = LOWERINGS[4]
ECHO_REQUEST, ECHO_REPLY, MULTIPART_REPLY, FLOW_STATS = 2, 3, 19, 1
DEADLINE_S = 20.0
CHECK_INTERVAL_S = 0.5
WANTED = (Define(group(1, 3, 4)), Define(meter(1)), Put(through(1)), Put(through(2, meter_number=1)))


class Controller:
    """A datapath core and an app that keeps groups and meters, with a connection of their own to the bridge."""

    def __init__(self, path: Path, *, hold_unknown: bool = False) -> None:
        self.client = Client(path, 4)
        self.core = DatapathCore(0xA0)
        self.app = Installer(TAG, datapath=self.core, hold_unknown=hold_unknown, keeps_resources=True)
        self.sent: list[ApplyEdits] = []
        self.notices: list[Notice] = []

    def connect(self) -> None:
        self.perform(self.app.handle(SwitchConnected(DPID, 4, ()), time.monotonic()))

    def change(self, *edits: Any) -> None:
        self.perform(self.app.change([at(*edits, dpid=DPID)], time.monotonic()))

    def want(self, role: ControllerRole, generation_id: int) -> None:
        self.perform(self.core.handle(RoleWanted(role, generation_id), time.monotonic()))

    def perform(self, effects: Any) -> None:
        for effect in effects:
            if isinstance(effect, OwnerTold):
                self.perform(effect.effects)
            elif isinstance(effect, ApplyEdits):
                self.sent.append(effect)
                self.client.send(LOWERING.encode_batch(effect))
            elif isinstance(effect, RequestFlows):
                self.client.send(LOWERING.encode_flow_stats_request(effect.xid, effect.cookie, effect.cookie_mask))
            elif isinstance(effect, RequestResources):
                self.client.send(encode_resource_request(effect.kind, effect.xid))
            elif isinstance(effect, Notice):
                self.notices.append(effect)
            elif hasattr(effect, "role"):
                self.client.send(encode_role_request(effect.role or NO_CHANGE, effect.generation_id, effect.xid))

    def take(self) -> None:
        """Take one message of the switch, whose barrier replies end what is waited for here."""
        message = self.client.receive()
        xid = int.from_bytes(message[4:8], "big")
        error, role = decode_error(message), decode_role_reply(message)
        event: Any = None
        if message[1] == ECHO_REQUEST:
            self.client.send(HEADER.pack(4, ECHO_REPLY, len(message), xid) + message[8:])
        elif message[1] == LOWERING.barrier_reply:
            event = BarrierReplied(DPID, xid)
        elif error is not None:
            event = EditFailed(DPID, *error)
        elif role is not None:
            event = RoleReplied(DPID, xid, role.role, role.generation_id)
        elif message[1] == MULTIPART_REPLY:
            kind = FlowStatsReceived if message[9] == FLOW_STATS else ResourcesReceived
            event = kind(DPID, 4, xid, message)
        if event is not None:
            core: Any = self.core if xid >> 24 == self.core.xids.tag else self.app
            self.perform(core.handle(event, time.monotonic()))

    def settle(self, done: Callable[[], bool] | None = None) -> None:
        """Take messages, and do what is due, until all is in sync, or `done`."""
        ends_s = time.monotonic() + DEADLINE_S
        while not (done or (lambda: self.app.in_sync(DPID)))():
            assert time.monotonic() < ends_s, (self.sent[-3:], self.notices[-3:])
            due = [s for s in (self.core.next_deadline(), self.app.next_deadline()) if s is not None]
            self.client.wait(max(min([*due, ends_s]) - time.monotonic(), 0.0), self.take)
            for holder in (self.core, self.app):
                due_s = holder.next_deadline()
                if due_s is not None and due_s <= time.monotonic():
                    self.perform(holder.handle(DeadlineReached(), time.monotonic()))

    def kinds(self) -> list[list[str]]:
        return [[type(edit).__name__ for edit in sent.edits] for sent in self.sent]


@pytest.fixture(scope="module")
def bridge() -> Iterator[Path]:
    with private_bridge(BRIDGE) as path:
        yield path


@pytest.fixture
def path(bridge: Path) -> Path:
    for command in ("del-flows", "del-groups", "del-meters"):
        ofctl(command)
    return bridge


def ofctl(command: str, *arguments: str) -> str:
    return run("ovs-ofctl", "-O", "OpenFlow13", command, BRIDGE, *arguments)


def dump(what: str) -> list[str]:
    """What a dump lists, without what changes by itself."""
    text = re.sub(r"(duration|n_packets|n_bytes|idle_age|hard_age)=[^,]*, ?", "", ofctl(f"dump-{what}"))
    return sorted(line.strip() for line in text.splitlines() if "=" in line and "reply" not in line)


def everything() -> tuple[list[str], ...]:
    return dump("groups"), [" ".join(ofctl("dump-meters").split()[3:])], dump("flows")


def test_groups_and_meters_are_there_before_what_names_them(path: Path) -> None:
    controller = Controller(path)
    controller.connect()
    controller.change(*reversed(WANTED))
    controller.settle()
    assert controller.kinds() == [["Define", "Define"], ["Put", "Put"]]
    (listed,) = dump("groups")
    assert f"group_id={0x56020001},type=select" in listed
    assert listed.count("bucket=") == 2 and "actions=output:4" in listed
    meters = ofctl("dump-meters")
    assert "meter=513 kbps burst" in meters and "rate=1000 burst_size=100" in meters
    assert [f"group:{0x56020001}" in line for line in dump("flows")] == [True, True]
    assert "meter:513" in "".join(dump("flows"))
    assert controller.notices == []

    controller.sent.clear()
    controller.change(Define(group(1, 5)), Define(meter(1, 2000)))
    controller.settle()
    assert controller.kinds() == [["Define", "Define"]] and len(dump("flows")) == 2
    assert "actions=output:5" in dump("groups")[0] and "rate=2000" in ofctl("dump-meters")

    controller.sent.clear()
    controller.change(Undefine(group(1).key), Undefine(meter(1).key), Remove(through(1).key), Remove(through(2).key))
    controller.settle()
    assert controller.kinds() == [["Remove", "Remove"], ["Undefine", "Undefine"]]
    assert (dump("groups"), "meter=" in ofctl("dump-meters"), dump("flows")) == ([], False, [])


@pytest.mark.parametrize("deleted", ["groups", "meters", "both", "altered"])
def test_what_is_deleted_or_altered_by_hand_comes_back_in_order(path: Path, deleted: str) -> None:
    controller = Controller(path)
    controller.connect()
    controller.change(*WANTED)
    controller.settle()
    before = everything()
    if deleted == "altered":
        ofctl("mod-group", f"group_id={0x56020001},type=all,bucket=output:9")
        ofctl("mod-meter", "meter=513,pktps,burst,band=type=drop,rate=7,burst_size=7")
    for what in {"groups": ["groups"], "meters": ["meters"], "both": ["groups", "meters"]}.get(deleted, []):
        ofctl(f"del-{what}")
    assert everything() != before
    controller.sent.clear()
    controller.app.check_every(CHECK_INTERVAL_S)
    controller.settle(lambda: everything() == before and controller.app.in_sync(DPID))
    kinds = controller.kinds()
    if deleted == "altered":
        assert kinds == [["Define", "Define"]]
    else:
        assert "Put" not in kinds[0] and "Define" not in kinds[1]
    assert {notice.kind for notice in controller.notices} == {"entries-repaired"}


def test_a_controller_that_is_started_again_interrupts_nothing(path: Path) -> None:
    controller = Controller(path)
    controller.connect()
    controller.change(*WANTED)
    controller.settle()
    ofctl("add-group", "group_id=77,type=all,bucket=output:9")
    controller.client.close()
    before = everything()
    again = Controller(path, hold_unknown=True)
    again.connect()
    again.settle()
    assert everything() == before
    again.change(*WANTED)
    again.settle()
    again.perform(again.app.release_unknown(time.monotonic()))
    again.settle()
    assert again.sent == [] and everything() == before
    again.change(Undefine(group(1).key), Remove(through(1).key), Remove(through(2).key))
    again.settle()
    assert len(dump("groups")) == 1, "the group of somebody else's stays"


def test_every_kind_of_group_comes_back_as_it_was_put(path: Path) -> None:
    controller = Controller(path)
    controller.connect()
    bucket = (SetQueue(3), Output(2))
    kept = (
        GroupEntry(GroupKey(0x56020002), GroupType.ALL, (Bucket(bucket), Bucket((Output(0xFFFFFFFD),)), Bucket(()))),
        GroupEntry(GroupKey(0x56020003), GroupType.SELECT, (Bucket(bucket, 1), Bucket((Output(4),), 65535))),
        GroupEntry(GroupKey(0x56020004), GroupType.FAST_FAILOVER, (Bucket(bucket, 0, 2), Bucket((Output(4),), 0, 4))),
        GroupEntry(GroupKey(0x5602FFFF), GroupType.ALL, ()),
        meter(0, 2**32 - 1)._replace(burst=2**32 - 1),
        meter(255)._replace(is_packets=True),
    )
    controller.change(*map(Define, kept))
    controller.settle()
    assert controller.notices == []
    again = Controller(path, hold_unknown=True)
    again.connect()
    again.settle()
    assert again.app.resources_installed(DPID) == {resource.key: resource for resource in kept}


def test_two_controllers_of_which_the_one_with_the_later_term_writes(path: Path) -> None:
    first, second = Controller(path), Controller(path)
    for controller in (first, second):
        controller.want(ControllerRole.SLAVE, 4)
        controller.connect()
        controller.settle(lambda controller=controller: controller.core.role(DPID)[0] is not None)
        controller.change(Put(entry(1, Output(1))))
    assert first.core.role(DPID) == second.core.role(DPID) == (ControllerRole.SLAVE, 4)
    assert dump("flows") == [] and not first.sent and not second.sent
    first.want(ControllerRole.MASTER, 5)
    first.settle()
    assert first.core.role(DPID) == (ControllerRole.MASTER, 5) and len(dump("flows")) == 1

    second.want(ControllerRole.MASTER, 6)
    second.settle()
    assert second.sent == [], "what the one before it left is read and kept"
    first.change(Put(entry(2, Output(1))))
    first.settle(lambda: bool(first.notices))
    assert [notice.kind for notice in first.notices] == ["role-lost"] and not first.app.in_sync(DPID)
    assert len(dump("flows")) == 1

    first.want(ControllerRole.MASTER, 5)
    first.settle(lambda: first.core.role(DPID)[1] == 6)
    assert "role-refused" in [notice.kind for notice in first.notices]
    assert first.core.role(DPID) == (ControllerRole.SLAVE, 6) and len(dump("flows")) == 1
    first.want(ControllerRole.MASTER, 7)
    first.settle()
    assert len(dump("flows")) == 2
