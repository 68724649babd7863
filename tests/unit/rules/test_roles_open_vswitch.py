"""Two controllers at a real Open vSwitch, by OpenFlow 1.0 and 1.3: who is master, and how the other hears of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.emulation.processes import run
from controller.datapath.core import DatapathCore, OwnerTold
from controller.effects import ApplyEdits, Notice, Put, RequestFlows, RequestRole, RoleDenied
from controller.events import (
    BarrierReplied,
    ControllerRole,
    DeadlineReached,
    EditFailed,
    FlowStatsReceived,
    RoleReplied,
    RoleWanted,
    SwitchConnected,
)
from controller.rules import of10_roles
from controller.rules.installer import Installer
from controller.rules.lowering import LOWERINGS
from controller.rules.model import FlowEntry, FlowKey, Match, Output
from controller.rules.of13_resources import decode_role_reply
from controller.rules.openflow import HEADER, decode_error
from openflow_client import Client
from private_bridge import private_bridge

pytestmark = pytest.mark.emulation

BRIDGE = "vsrtroles0"
DPID = 1
TAG = 0x5603
ECHO_REQUEST, ECHO_REPLY = 2, 3
STATS_REPLIES = {1: 17, 4: 19}
DEADLINE_S = 20.0


def put(number: int) -> list[list[tuple[int, Put]]]:
    rule = FlowEntry(FlowKey(0, 10, Match(in_port=number)), (Output(number + 1),), TAG << 48 | number)
    return [[(DPID, Put(rule))]]


class Controller:
    """A datapath core and an app, with a connection of their own to the bridge."""

    def __init__(self, path: Path, version: int) -> None:
        self.client = Client(path, version)
        self.lowering = LOWERINGS[version]
        self.core = DatapathCore(0xA0)
        self.app = Installer(TAG, datapath=self.core)
        self.denied: list[RoleDenied] = []
        self.kinds: list[str] = []

    def begin(self, role: ControllerRole, generation_id: int) -> None:
        self.want(role, generation_id)
        self.perform(self.app.handle(SwitchConnected(DPID, self.client.version, ()), time.monotonic()))

    def want(self, role: ControllerRole, generation_id: int) -> None:
        self.perform(self.core.handle(RoleWanted(role, generation_id), time.monotonic()))

    def put(self, number: int) -> None:
        self.perform(self.app.change(put(number), time.monotonic()))

    def perform(self, effects: Any) -> None:
        for effect in effects:
            if isinstance(effect, OwnerTold):
                self.perform(effect.effects)
            elif isinstance(effect, ApplyEdits):
                self.client.send(self.lowering.encode_batch(effect))
            elif isinstance(effect, RequestFlows):
                asked = self.lowering.encode_flow_stats_request(effect.xid, effect.cookie, effect.cookie_mask)
                self.client.send(asked)
            elif isinstance(effect, RequestRole):
                self.client.send(
                    self.lowering.encode_role_request(effect.role or 0, effect.generation_id, effect.xid)
                )
            elif isinstance(effect, RoleDenied):
                self.denied.append(effect)
            elif isinstance(effect, Notice):
                self.kinds.append(effect.kind)

    def take(self) -> None:
        message, version = self.client.receive(), self.client.version
        xid = int.from_bytes(message[4:8], "big")
        error = decode_error(message)
        role = decode_role_reply(message) if version == 4 else None
        nicira = of10_roles.decode_role_reply(message)
        event: Any = None
        if message[1] == ECHO_REQUEST:
            self.client.send(HEADER.pack(version, ECHO_REPLY, len(message), xid) + message[8:])
        elif message[1] == self.lowering.barrier_reply:
            event = BarrierReplied(DPID, xid)
        elif error is not None:
            event = EditFailed(DPID, *error)
        elif role is not None:
            event = RoleReplied(DPID, xid, role.role, role.generation_id)
        elif nicira is not None:
            event = RoleReplied(DPID, xid, nicira.role, None)
        elif message[1] == STATS_REPLIES[version]:
            event = FlowStatsReceived(DPID, version, xid, message)
        if event is not None:
            self.perform(self.core.handle(event, time.monotonic()))

    def settle(self, done: Callable[[], bool]) -> None:
        """Take messages, and do what is due, until `done`."""
        ends_s = time.monotonic() + DEADLINE_S
        while not done():
            assert time.monotonic() < ends_s, (self.kinds, self.denied, self.core.role(DPID))
            due = [s for s in (self.core.next_deadline(), self.app.next_deadline()) if s is not None]
            self.client.wait(max(min([*due, ends_s]) - time.monotonic(), 0.0), self.take)
            for holder in (self.core, self.app):
                due_s = holder.next_deadline()
                if due_s is not None and due_s <= time.monotonic():
                    self.perform(holder.handle(DeadlineReached(), time.monotonic()))

    def is_in_sync(self) -> bool:
        return self.app.in_sync(DPID)

    def has(self, role: ControllerRole) -> bool:
        return self.core.role(DPID)[0] == role


@pytest.fixture
def path() -> Iterator[Path]:
    with private_bridge(BRIDGE) as path:
        yield path


def in_ports() -> set[str]:
    listed = run("ovs-ofctl", "-O", "OpenFlow13", "dump-flows", BRIDGE)
    return {part.split(",")[0].split()[0] for part in listed.split("in_port=")[1:]}


def test_openflow_1_0_by_the_extension(path: Path) -> None:
    first, second = Controller(path, 1), Controller(path, 1)
    first.put(1)
    second.put(2)
    first.begin(ControllerRole.MASTER, 1)
    first.settle(first.is_in_sync)
    second.begin(ControllerRole.SLAVE, 1)
    second.settle(lambda: second.has(ControllerRole.SLAVE))
    assert in_ports() == {"1"}
    second.want(ControllerRole.MASTER, 2)
    second.settle(second.is_in_sync)
    assert first.has(ControllerRole.MASTER), "nobody told it"
    first.put(3)
    first.settle(lambda: bool(first.denied))
    assert first.denied == [RoleDenied(DPID, None)] and first.kinds == ["role-lost"]
    assert in_ports() == {"2"}, "what the second wants, and nothing of the first any more"
    first.client.close()
    second.client.close()


def test_openflow_1_3_tells_an_idle_master_that_asks(path: Path) -> None:
    first, second = Controller(path, 4), Controller(path, 4)
    first.put(1)
    first.begin(ControllerRole.MASTER, 5)
    first.settle(first.is_in_sync)
    second.begin(ControllerRole.SLAVE, 0)
    second.settle(lambda: second.has(ControllerRole.SLAVE))
    assert second.denied == [RoleDenied(DPID, 5)], "it is a slave in the generation of the switch"
    second.want(ControllerRole.MASTER, 6)
    second.settle(lambda: second.has(ControllerRole.MASTER))
    first.settle(lambda: bool(first.denied))
    assert first.denied == [RoleDenied(DPID, 6)] and first.kinds == ["role-lost"]
    first.want(ControllerRole.MASTER, 5)
    first.settle(lambda: len(first.denied) == 2)
    assert first.denied[1] == RoleDenied(DPID, 6) and first.kinds == ["role-lost", "role-refused"]
    first.client.close()
    second.client.close()
