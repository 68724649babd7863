"""A leader that ends or stops while a stream runs and a host joins: how long that took, and what was lost."""

from __future__ import annotations

import os
import signal
import time
from enum import StrEnum
from typing import Any, NamedTuple

from apps.emulation.cluster import EmulatedCluster, StoreServer
from apps.emulation.controller import ControllerProcess
from apps.emulation.network import EmulatedFabric
from apps.emulation.processes import EmulationError
from topology.graph import NodeId

SERVED_TIMEOUT_S = 15.0
SETTLED_TIMEOUT_S = 40.0
POLL_S = 0.01


class Ending(StrEnum):
    """What befalls a leader."""

    KILL = "kill"
    """It is gone at once."""
    STOP = "stop"
    """It stands still, and goes on when another one leads."""
    END = "end"
    """It ends as it should, and hands over."""


class TakeOverOutcome(NamedTuple):
    """What came of it.

    Attributes
    ----------
    former, leader
        Who led, and who leads.
    served_s
        Time from the end of the leader until a host that joined right then received its first packet, in seconds.
    sent, lost, duplicated
        Packets that were sent meanwhile, and those of them that a member of before lacks, or has twice.
    """

    former: str
    leader: str
    served_s: float
    sent: int
    lost: int
    duplicated: int


class TakeOverBench:
    """One group with a sender and a member, and another host that joins when the leader ends."""

    def __init__(
        self,
        cluster: EmulatedCluster,
        fabric: EmulatedFabric,
        group: str,
        hosts: tuple[NodeId, NodeId, NodeId],
        rate_bps: float,
    ) -> None:
        self._cluster = cluster
        self._fabric = fabric
        self._group = group
        self._source, self._member, self._joining = hosts
        self._rate_bps = rate_bps
        self._phase = 0

    def begin(self) -> str:
        """Have all switches found, and the stream reach the member; return who leads."""
        leader = self._cluster.wait_leader()
        controller = self._cluster.members[leader.member]
        controller.wait_discovered(self._fabric, SETTLED_TIMEOUT_S)
        self._fabric.announce()
        self._fabric.join(self._member, self._group)
        self._wait_group(controller, "members")
        self._fabric.open_stream(1, self._source, self._group, self._rate_bps, pattern="constant")
        self._fabric.send(0)
        self._wait_group(controller, "senders")
        return leader.member

    def run(self, ending: Ending, server: StoreServer | None = None) -> TakeOverOutcome:
        """Have the leader end, and wait until another one has all switches as it wants them.

        A `server` of the store ends at the same moment, as one that runs on the leader's machine.
        """
        former = self._cluster.wait_leader()
        controller = self._cluster.members[former.member]
        self._wait_left(controller)
        self._wait_in_sync(controller)
        self._phase += 1
        self._fabric.send(self._phase)
        self._wait_received(self._member)
        pid, began_ns = controller.pid, time.monotonic_ns()
        if server is not None:
            server.kill()
        if ending is Ending.KILL:
            controller.kill()
        elif ending is Ending.STOP:
            os.kill(pid, signal.SIGSTOP)
        else:
            os.kill(pid, signal.SIGTERM)
        self._fabric.join(self._joining, self._group)
        try:
            served_ns = self._wait_received(self._joining)
            leader = self._cluster.wait_leader(former.epoch)
            self._wait_in_sync(self._cluster.members[leader.member])
        finally:
            if ending is Ending.STOP:
                os.kill(pid, signal.SIGCONT)
        return self._outcome(former.member, leader.member, (served_ns - began_ns) / 1e9)

    def _outcome(self, former: str, leader: str, served_s: float) -> TakeOverOutcome:
        phase = str(self._phase)
        self._fabric.sender.ask("halt")
        sent = int(self._fabric.sent()["1"]["phases"][phase]["sent"])
        tally = self._fabric.settled()[f"{self._member} {self._group}"]["streams"][f"1:{phase}"]
        self._fabric.leave(self._joining, self._group)
        return TakeOverOutcome(
            former, leader, served_s, sent, sent - int(tally["received"]), int(tally["duplicates"])
        )

    def recover(self, former: str) -> None:
        """Have who ended take part again, and wait until it follows."""
        controller = self._cluster.members[former]
        if not controller.running:
            controller.stop()
            controller.start()
        deadline_s = time.monotonic() + SETTLED_TIMEOUT_S
        while former not in self._cluster.registered():
            if time.monotonic() > deadline_s:
                raise EmulationError(f"{former} takes no part again")
            time.sleep(POLL_S)

    def _wait_received(self, host: NodeId) -> int:
        """Wait until a host has a packet of the present phase; return when the first one came (monotonic, ns)."""
        deadline_s = time.monotonic() + SERVED_TIMEOUT_S
        while time.monotonic() < deadline_s:
            found = self._fabric.received()[f"{host} {self._group}"]["streams"].get(f"1:{self._phase}", {})
            if found.get("received"):
                return int(found["first_ns"])
            time.sleep(POLL_S)
        raise EmulationError(f"{host} received nothing within {SERVED_TIMEOUT_S:g} s")

    def _wait_group(self, controller: ControllerProcess, what: str) -> None:
        def known(groups: list[dict[str, Any]]) -> bool:
            return any(found["group"] == self._group and found[what] for found in groups)

        controller.wait_until("groups", known)

    def _wait_left(self, controller: ControllerProcess) -> None:
        """Wait until the host that joined in the run before is served no more."""

        def left(groups: list[dict[str, Any]]) -> bool:
            return [len(found["members"]) for found in groups if found["group"] == self._group] == [1]

        controller.wait_until("groups", left, SETTLED_TIMEOUT_S)

    def _wait_in_sync(self, controller: ControllerProcess) -> None:
        count = len(self._fabric.graph.switches())

        def reached(status: dict[str, Any]) -> bool:
            return bool(status["in_sync"]) and status["switches"] == count

        controller.wait_until("status", reached, SETTLED_TIMEOUT_S)
