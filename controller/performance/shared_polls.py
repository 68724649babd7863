"""The monitor's core where several monitors share the switches: it polls those that it was told to, for as long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.config.settings import Monitor
from controller.events import PortChanged, SwitchConnected, SwitchDisconnected
from controller.performance import inputs
from controller.performance.poller import SwitchTaken
from controller.performance.poller_core import MonitorCore, last_port_no
from controller.performance.poller_settings import poll_settings

TELL_S = 0.2
"""Time between two tellings of the switches that are connected, while they change."""


class SharesTaken(NamedTuple):
    """Poll switches: each with the epoch of its share, and in how many seconds it is to be polled first."""

    switches: tuple[tuple[int, int, float], ...]


class SharesLeft(NamedTuple):
    """Poll these switches no more: `PollsStopped` follows."""

    dpids: tuple[int, ...]


class SharesConfirmed(NamedTuple):
    """Poll nothing from `until_s` on, seconds of the clock of all events, unless a later time is told before."""

    until_s: float


class PollsStopped(NamedTuple):
    """Switches are polled no more; each with the seconds after which it would have been polled next."""

    due_in_s: tuple[tuple[int, float], ...]


class SwitchesHeld(NamedTuple):
    """Switches that are connected: each with its number of ports, and the time between two polls in seconds."""

    switches: tuple[tuple[int, int, int], ...]


class SharedMonitorCore(MonitorCore):
    """A core that knows every switch which is connected, and polls some.

    Attributes
    ----------
    epochs
        The epoch of the share of each switch that was ever its own while the switch was connected.
    """

    def __init__(self, monitor: Monitor, now: float, at_s: float) -> None:
        super().__init__(monitor, now, at_s)
        self.epochs: dict[int, int] = {}
        self._connected: dict[int, SwitchConnected] = {}
        self._own: set[int] = set()
        self._polled: set[int] = set()
        self._until_s = now
        self._stopped: list[PollsStopped] = []
        self._is_told = True
        self._tell_s = now
        handlers: dict[type, Callable[[Any, float], None]] = {
            SharesTaken: self._taken,
            SharesLeft: self._left,
            SharesConfirmed: self._confirmed,
        }
        self.handlers |= handlers

    def handle(self, event: Any, now: float) -> list[Any]:
        """Take one event and return what is to be done, in order; KeyError for an event of unknown type."""
        if self._polled and now >= self._until_s:
            for dpid in tuple(self._polled):
                self._end(dpid, now)
        out: list[Any] = super().handle(event, now)
        if not self._is_told and now >= self._tell_s:
            self._is_told, self._tell_s = True, now + TELL_S
            settings = poll_settings(self.settings)
            held = tuple(
                (dpid, len(event.ports), round(settings.interval_of(self.poller.kind_of(dpid))))
                for dpid, event in self._connected.items()
            )
            out.append(SwitchesHeld(held))
        out += self._stopped
        self._stopped = []
        return out

    def next_deadline(self) -> float | None:
        """Return when `DeadlineReached` is due."""
        due = [
            super().next_deadline(),
            self._until_s if self._polled else None,
            None if self._is_told else self._tell_s,
        ]
        return min((at_s for at_s in due if at_s is not None), default=None)

    def epochs_of(self, rows: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the epoch of the share of each row's switch."""
        nodes, first, back = np.unique(self.ports.node[rows], return_index=True, return_inverse=True)
        dpids = (self.ports.name(int(rows[place])).dpid for place in first)
        epochs = np.fromiter((self.epochs.get(dpid, 0) for dpid in dpids), np.int64, len(nodes))
        return epochs[back.reshape(-1)]

    # Switches

    def _switch_connected(self, event: SwitchConnected, now: float) -> None:
        ports = tuple(port for port in event.ports if port.port_no <= last_port_no(event.ofp_version))
        self._connected[event.dpid] = event._replace(ports=ports)
        self._is_told = False
        self._begin(event.dpid, 0.0, now)

    def _switch_disconnected(self, event: SwitchDisconnected, now: float) -> None:
        self._connected.pop(event.dpid, None)
        self._is_told = False
        if event.dpid in self._polled:
            self._polled.discard(event.dpid)
            super()._switch_disconnected(event, now)

    def _port_changed(self, event: PortChanged, now: float) -> None:
        dpid, port, deleted = event
        switch = self._connected.get(dpid)
        if switch is None or port.port_no > last_port_no(switch.ofp_version):
            return
        others = tuple(each for each in switch.ports if each.port_no != port.port_no)
        self._connected[dpid] = switch._replace(ports=others if deleted else (*others, port))
        self._is_told = False
        if dpid in self._polled:
            super()._port_changed(event, now)

    # Shares

    def _taken(self, event: SharesTaken, now: float) -> None:
        for dpid, epoch, due_in_s in event.switches:
            self._own.add(dpid)
            self.epochs[dpid] = epoch
            self._begin(dpid, due_in_s, now)

    def _left(self, event: SharesLeft, now: float) -> None:
        self._own.difference_update(event.dpids)
        stopped = tuple((dpid, self._end(dpid, now) if dpid in self._polled else 0.0) for dpid in event.dpids)
        self._stopped.append(PollsStopped(stopped))

    def _confirmed(self, event: SharesConfirmed, now: float) -> None:
        self._until_s = event.until_s
        for dpid in self._own - self._polled:
            self._begin(dpid, 0.0, now)

    def _begin(self, dpid: int, due_in_s: float, now: float) -> None:
        switch = self._connected.get(dpid)
        if switch is not None and dpid in self._own and now < self._until_s:
            self._polled.add(dpid)
            self._begin_switch(switch, SwitchTaken(dpid, switch.ofp_version, due_in_s), now)

    def _end(self, dpid: int, now: float) -> float:
        """Poll a switch no more; return in how many seconds it would have been."""
        self._polled.discard(dpid)
        self._flush(now)
        self.entries.forget(dpid)
        self._kinds.pop(dpid, None)
        due_in_s = self.poller.schedule.left(dpid, now)
        self._judge(inputs.SwitchLeft(dpid), now)
        return due_in_s
