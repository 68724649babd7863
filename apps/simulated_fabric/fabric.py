"""A fabric of simulated switches, each with a connection of its own to one controller, driven by one loop.

Whoever uses it calls `run_until`, `run_for` or `turn`; between these calls nothing happens. Nothing waits: what is to
happen later is in one queue of timers.
"""

from __future__ import annotations

import heapq
import itertools
import resource
import select
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from apps.simulated_fabric.switch import Service, SimulatedSwitch
from apps.simulated_fabric.watch import SwitchWatch
from topology.graph import Graph, NodeKind

READ_BYTES = 1 << 18
CONNECTING = 32
"""Connections that wait for the controller's first word at a time: more would overflow what its system lets wait."""

RECONNECT_S = 1.0
LONGEST_WAIT_S = 0.1
SPARE_FILES = 200

End = tuple[int, int]
"""Datapath id and port number."""


class SimulatedFabric:
    """The switches of a graph, their cables, and the ports that lead to hosts.

    Parameters
    ----------
    graph
        Switches have the attribute ``dpid``, links their ports, as generators and files of `topology` make them.
    address
        Where the controller listens: an address of IPv4 or IPv6, and a port.
    capacity
        Flow entries that fit into a switch, any number where None.
    reconnect
        Whether switches that lose their connection connect again.
    """

    def __init__(
        self, graph: Graph, address: tuple[str, int], *, capacity: int | None = None, reconnect: bool = True
    ) -> None:
        self.graph = graph
        self.address = address
        self.watch = SwitchWatch()
        self.interned: dict[Any, Any] = {}
        self.links: dict[End, End] = {}
        self.host_ports: list[End] = []
        self.reached_host: Callable[[int, int, bytes], None] = lambda dpid, port_no, frame: None
        self.entry_changed: Callable[[int, bytes, bytes], None] | None = None
        self.lost_connections = 0
        self.reconnect_s = RECONNECT_S
        self.late_s: dict[int, float] = {}
        self._reconnect = reconnect
        self._silent: set[End] = set()
        self._timers: list[tuple[float, int, Callable[[float], None]]] = []
        self._numbers = itertools.count()
        self._epoll = select.epoll()
        self._connected: dict[int, SimulatedSwitch] = {}
        self._opening: dict[int, SimulatedSwitch] = {}
        self._waiting: deque[SimulatedSwitch] = deque()
        self._unsent: dict[SimulatedSwitch, None] = {}
        self.switches = self._make(capacity)
        _allow_files(len(self.switches) + SPARE_FILES)

    def _make(self, capacity: int | None) -> dict[int, SimulatedSwitch]:
        graph = self.graph
        dpids = {node: int(graph.attributes(node)["dpid"]) for node in graph.switches()}
        ports: dict[int, dict[int, int]] = {dpid: {} for dpid in dpids.values()}
        for link in graph.links():
            for node, port_no, other, far_port in (
                (link.u, link.u_port, link.v, link.v_port),
                (link.v, link.v_port, link.u, link.u_port),
            ):
                if graph.kind(node) is NodeKind.HOST:
                    continue
                if port_no is None:
                    raise ValueError(f"link {link.u!r} - {link.v!r}: no port number at {node!r}")
                end = (dpids[node], port_no)
                ports[end[0]][port_no] = int(link.capacity_bps / 1000)
                if graph.kind(other) is NodeKind.HOST:
                    self.host_ports.append(end)
                elif far_port is not None:
                    self.links[end] = (dpids[other], far_port)
        self.host_ports.sort()
        switches = {
            dpid: SimulatedSwitch(self, dpid, dict(sorted(numbers.items())), capacity)
            for dpid, numbers in sorted(ports.items())
        }
        for end, far in self.links.items():
            switches[end[0]].far[end[1]] = (switches[far[0]], far[1])
        return switches

    @property
    def link_count(self) -> int:
        """Cables between switches."""
        return len(self.links) // 2

    @property
    def connected_count(self) -> int:
        """Switches with a connection that stands and was answered."""
        return len(self._connected)

    def edge_switches(self) -> list[int]:
        """Return the switches that have ports for hosts."""
        return sorted({dpid for dpid, _ in self.host_ports})

    # Connections

    def connect(self, dpids: Iterable[int] | None = None) -> None:
        """Have switches, all where none are named, connect as soon as they can, and again whenever they lose it."""
        for dpid in self.switches if dpids is None else dpids:
            self.switches[dpid].wanted = True
            self._waiting.append(self.switches[dpid])

    def _open(self, switch: SimulatedSwitch) -> None:
        if switch.socket is not None or not (switch.alive and switch.wanted):
            return
        family = socket.AF_INET6 if ":" in self.address[0] else socket.AF_INET
        stream = socket.socket(family, socket.SOCK_STREAM)
        stream.setblocking(False)
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(BlockingIOError):
            stream.connect(self.address)
        switch.socket = stream
        switch.begin()
        switch.watching_writes = True
        self._opening[stream.fileno()] = switch
        self._epoll.register(stream.fileno(), select.EPOLLIN | select.EPOLLOUT)

    def drop(self, switch: SimulatedSwitch) -> None:
        """End a switch's connection; it connects again in a while, if it still is to."""
        stream, switch.socket = switch.socket, None
        if stream is None:
            return
        number = stream.fileno()
        self._epoll.unregister(number)
        self._connected.pop(number, None)
        self._opening.pop(number, None)
        self._unsent.pop(switch, None)
        stream.close()
        switch.end()
        if switch.alive and switch.wanted:
            self.lost_connections += 1
            if not self._reconnect:
                return
            again_s = time.monotonic() + self.reconnect_s + self.late_s.get(switch.dpid, 0.0)
            self.at(again_s, lambda _now: self._waiting.append(switch))

    def disconnect(self, dpid: int) -> None:
        """End a switch's connection for good; it goes on forwarding."""
        self.switches[dpid].wanted = False
        self.drop(self.switches[dpid])

    def blink(self, dpid: int, *, empty: bool = False) -> None:
        """End a switch's connection; it connects again, with an `empty` table perhaps."""
        switch = self.switches[dpid]
        if empty:
            switch.table.clear()
        self.drop(switch)

    def close(self) -> None:
        """End all connections."""
        for switch in self.switches.values():
            switch.wanted = False
            self.drop(switch)
        if not self._epoll.closed:
            self._epoll.close()

    # Failures

    def set_link(self, end: End, up: bool, *, silent: bool = False) -> None:
        """Take the cable at a switch port down or up, told at both ends, or with frames that vanish and no word."""
        for near, far in ((end, self.links[end]), (self.links[end], end)):
            switch = self.switches[near[0]]
            switch.far[near[1]] = (self.switches[far[0]], far[1]) if up else None
            told_down = near[1] in switch.down
            if told_down == up and not (silent and not up):
                switch.set_carrier(near[1], up)

    def kill(self, dpid: int, *, silent: bool = False) -> None:
        """Have a switch die: its connection ends, it forwards nothing, and its neighbours see it unless `silent`."""
        switch = self.switches[dpid]
        switch.alive = False
        self.drop(switch)
        for port_no in switch.far:
            self.set_link((dpid, port_no), False, silent=silent)

    def revive(self, dpid: int, *, empty: bool = True) -> None:
        """Have a dead switch come back, with the table it had unless `empty`."""
        switch = self.switches[dpid]
        switch.alive = True
        if empty:
            switch.table.clear()
        for port_no in switch.far:
            self.set_link((dpid, port_no), True)
        self.connect([dpid])

    def set_service(self, service: Service, dpids: Iterable[int] | None = None) -> None:
        """Have switches, all where none are named, take their time from now on."""
        for dpid in self.switches if dpids is None else dpids:
            self.switches[dpid].service = service

    def set_reading(self, dpid: int, reading: bool) -> None:
        """Have a switch stop reading what it is sent, or go on."""
        switch = self.switches[dpid]
        switch.reading = reading
        self._watch_events(switch)

    # The loop

    @staticmethod
    def now() -> float:
        """Return the time by the clock of the timers."""
        return time.monotonic()

    def at(self, time_s: float, action: Callable[[float], None]) -> None:
        """Have `action` called with the time when it has come."""
        heapq.heappush(self._timers, (time_s, next(self._numbers), action))

    def flush_soon(self, switch: SimulatedSwitch) -> None:
        """Send what a switch has to say at the end of this turn."""
        self._unsent[switch] = None

    def run_until(self, condition: Callable[[], object], timeout_s: float) -> bool:
        """Go on until `condition` holds; tell whether it did within `timeout_s`."""
        end_s = time.monotonic() + timeout_s
        while not condition():
            left_s = end_s - time.monotonic()
            if left_s <= 0:
                return False
            self.turn(left_s)
        return True

    def wait_taken(self, timeout_s: float) -> bool:
        """Go on until the controller has taken all that switches said, of those that read; tell whether it did."""
        asked = [switch for switch in self._connected.values() if switch.reading]
        for switch in asked:
            switch.ask()
            self._unsent[switch] = None
        return self.run_until(lambda: all(switch.is_answered for switch in asked), timeout_s)

    def run_for(self, duration_s: float) -> None:
        """Go on for a time."""
        self.run_until(lambda: False, duration_s)

    def turn(self, longest_s: float = LONGEST_WAIT_S) -> None:
        """Do what is due, and wait for more, at most `longest_s` and `LONGEST_WAIT_S`."""
        now = time.monotonic()
        timers = self._timers
        while timers and timers[0][0] <= now:
            heapq.heappop(timers)[2](now)
        while self._waiting and len(self._opening) < CONNECTING:
            self._open(self._waiting.popleft())
        self._flush()
        wait_s = min(longest_s, LONGEST_WAIT_S)
        if timers:
            wait_s = min(wait_s, max(0.0, timers[0][0] - now))
        for number, events in self._epoll.poll(wait_s):
            switch = self._connected.get(number) or self._opening.get(number)
            if switch is None:
                continue
            if events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
                self._read(switch, number)
            if events & select.EPOLLOUT:
                self._unsent[switch] = None
        self._flush()

    def _read(self, switch: SimulatedSwitch, number: int) -> None:
        stream = switch.socket
        if stream is None:
            return
        try:
            data = stream.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.drop(switch)
            return
        if number in self._opening:
            self._connected[number] = self._opening.pop(number)
        switch.take(data, time.monotonic())
        if switch.out:
            self._unsent[switch] = None

    def _flush(self) -> None:
        unsent, self._unsent = self._unsent, {}
        for switch in unsent:
            stream, out = switch.socket, switch.out
            if stream is None:
                continue
            try:
                while out:
                    del out[: stream.send(out)]
            except (BlockingIOError, InterruptedError):
                pass
            except OSError:
                self.drop(switch)
                continue
            if switch.watching_writes != bool(out):
                switch.watching_writes = bool(out)
                self._watch_events(switch)

    def _watch_events(self, switch: SimulatedSwitch) -> None:
        if switch.socket is not None:
            events = (select.EPOLLIN if switch.reading else 0) | (select.EPOLLOUT if switch.watching_writes else 0)
            self._epoll.modify(switch.socket.fileno(), events)


def _allow_files(count: int) -> None:
    """Let this process, and those that it starts, have so many files open, as far as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard), hard))
