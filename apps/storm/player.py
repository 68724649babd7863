"""Plays a storm: hosts at simulated switches join and leave, and how long they wait is seen at their own switches."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from struct import Struct
from typing import NamedTuple

from apps.simulated_fabric.fabric import SimulatedFabric
from apps.simulated_fabric.hosts import SimulatedHost, SimulatedHosts
from apps.simulated_fabric.watch import destination
from controller.storm.attempts import HostVerb, RequestState, StormRequests
from controller.storm.plan import PlannedJoin
from controller.wire.addresses import format_ip, format_mac

QUIET_S = 2.0
"""No edit for so long, and all confirmed: the controller has taken all switches in."""

NOBODY_S = 10.0
"""Without any switch that was answered for so long there is no controller."""

LEAVES_PER_S = 2000.0
"""How fast hosts leave between two storms."""

LEAVES_AGAIN_S = 5.0
"""A controller that asks for other members first takes seconds over a leave (RFC 9776, 8.9)."""

LONGEST_TURN_S = 0.01
FIRST_GROUP = 239 << 24 | 192 << 16 | 1 << 8
"""The organisation-local groups (RFC 2365, 6.2), beyond the MAC addresses of link-scope ones."""

_OUTPUT = Struct("!HHI")
"""Of an output action (OpenFlow 1.3.5, 7.2.5): type 0, length 16, port."""

Progress = Callable[[str, int, int], None]


class StormFailed(Exception):  # noqa: N818
    """A storm that could not be played; the text says why."""


class AskedJoin(NamedTuple):
    """A join as it was asked for: at which port, by whom (``00:00:00:00:00:00``), of which group (``239.1.1.1``)."""

    dpid: int
    port_no: int
    mac: str
    group: str


class _Request(NamedTuple):
    host: SimulatedHost
    group: bytes


def group_of(number: int) -> bytes:
    """Return the address of the group of a number."""
    return (FIRST_GROUP + number).to_bytes(4, "big")


class StormPlayer:
    """Has hosts join and leave so many groups as planned; one is served when its switch outputs the group to it."""

    def __init__(self, fabric: SimulatedFabric, hosts: SimulatedHosts, groups: int, progress: Progress) -> None:
        self._fabric = fabric
        self._groups = groups
        self._hosts = hosts
        self._progress = progress
        self._pending: dict[tuple[int, bytes], dict[int, int]] = {}
        self._requests = StormRequests((), 1, 1.0)
        self._began_s = 0.0
        self._joins = True
        self._members: list[_Request] = []
        fabric.entry_changed = self._entry_changed

    def settle(self, timeout_s: float) -> None:
        """Connect all switches, and go on until the controller has taken them in; StormFailed where it does not."""
        fabric = self._fabric
        fabric.connect()
        began_s, edits = time.monotonic(), -1
        while True:
            fabric.run_for(QUIET_S)
            count, connected = fabric.watch.edit_count(), fabric.connected_count
            self._progress("switches that are connected", connected, len(fabric.switches))
            if connected == len(fabric.switches) and count == edits and count and fabric.watch.settled:
                self._check_nobody_is_served()
                return
            past_s, edits = time.monotonic() - began_s, count
            if not connected and past_s > NOBODY_S:
                raise StormFailed("no controller answers at {}:{}".format(*fabric.address))
            if past_s > timeout_s:
                told = f"{connected} of {len(fabric.switches)} switches are connected, {count} edits came"
                raise StormFailed(f"the controller is not done with the switches after {timeout_s:g} s: {told}")

    def _check_nobody_is_served(self) -> None:
        """Raise StormFailed where a switch was given entries of the storm's groups before anybody joined."""
        groups = {group_of(number) for number in range(self._groups)}
        held = (key for switch in self._fabric.switches.values() for key in switch.table.held)
        count = len({found for _, _, match in held if (found := destination(match)) in groups})
        if count:
            told = f"the controller has members of {count} of the storm's groups, as after one that was interrupted"
            raise StormFailed(f"{told}: it forgets them after some minutes, or when it is started anew")

    def turn_off(self, planned: Sequence[PlannedJoin]) -> None:
        """Take the ports down that have to come up first; before their switches are connected, or while they are."""
        for join in planned:
            if join.is_off:
                dpid, port_no = self._hosts.all[join.host].end
                self._fabric.switches[dpid].set_carrier(port_no, False)

    def join(self, planned: Sequence[PlannedJoin], attempts: int, again_s: float) -> list[RequestState]:
        """Play the joins of a storm, and return what became of each."""
        asked = [_Request(self._hosts.all[join.host], group_of(join.group)) for join in planned]
        self._joins = True
        states = self._play("joins", asked, [(join.at_s, join.is_off) for join in planned], attempts, again_s)
        self._members += [each for each, state in zip(asked, states, strict=True) if state.done_s is not None]
        return states

    def asked(self, join: PlannedJoin) -> AskedJoin:
        """Return a planned join as the controller knows it."""
        host = self._hosts.all[join.host]
        return AskedJoin(*host.end, format_mac(host.mac), format_ip(group_of(join.group)))

    def leave(self, times_s: Sequence[float], attempts: int, again_s: float) -> list[RequestState]:
        """Have those leave that were served, at these times, as many as there are, and return what became of each."""
        asked, self._members = self._members, []
        self._joins = False
        due = [(at_s, False) for at_s, _ in zip(times_s, asked, strict=False)]
        states = self._play("leaves", asked[: len(due)], due, attempts, again_s)
        self._members = asked[len(due) :]
        return states

    def leave_all(self) -> None:
        """Have all hosts leave all groups soon."""
        members = set(self._members)
        for host in self._hosts.all:
            for group in list(host.groups):
                if _Request(host, group) not in members:
                    self._hosts.leave(host, group)
        self.leave([number / LEAVES_PER_S for number in range(len(self._members))], 5, LEAVES_AGAIN_S)

    def _play(
        self,
        what: str,
        asked: Sequence[_Request],
        due: Sequence[tuple[float, bool]],
        attempts: int,
        again_s: float,
    ) -> list[RequestState]:
        requests = self._requests = StormRequests(due, attempts, again_s)
        self._pending.clear()
        for number, (host, group) in enumerate(asked):
            dpid, port_no = host.end
            self._pending.setdefault((dpid, group), {})[port_no] = number
        self._began_s = time.monotonic()
        while not requests.is_over:
            for verb, number in requests.turns(self._now_s()):
                host, group = asked[number]
                if verb is HostVerb.COME_UP:
                    self._fabric.switches[host.end[0]].set_carrier(host.end[1], True)
                elif self._joins:
                    self._hosts.join(host, group)
                else:
                    self._hosts.leave(host, group, again=requests.states[number].attempts > 1)
            next_s = requests.next_s()
            wait_s = LONGEST_TURN_S if next_s is None else min(LONGEST_TURN_S, next_s - self._now_s())
            self._fabric.turn(max(0.0, wait_s))
            self._progress(what, len(asked) - requests.left, len(asked))
            if lost := self._fabric.lost_connections:
                raise StormFailed(f"{lost} connections were lost: hosts there are not served")
        return requests.states

    def _now_s(self) -> float:
        return time.monotonic() - self._began_s

    def _entry_changed(self, dpid: int, match: bytes, instructions: bytes) -> None:
        """Take it that a switch has an entry now, or (no instructions) none any more."""
        pending = self._pending.get((dpid, destination(match)))
        if not pending:
            return
        now_s = self._now_s()
        for port_no, number in list(pending.items()):
            is_output = _OUTPUT.pack(0, 16, port_no) in instructions
            if is_output is self._joins and self._requests.states[number].attempts:
                self._requests.done(number, now_s)
                del pending[port_no]
