"""The switches as the apps of a process share them, on the loop of the connections: `controller.datapath.core`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeAlias
from weakref import WeakValueDictionary

from apps.environment import environment_path
from apps.openflow.reactor import Reactor
from apps.openflow.recorder import Recorder
from apps.openflow.southbound import Answer, Southbound
from controller.datapath.core import DatapathCore, OwnerTold
from controller.effects import ApplyEdits, RequestFlows, RequestResources, RequestRole, RoleDenied
from controller.events import DeadlineReached, OwnerLeft, RoleWanted
from controller.rules.pipeline import DATAPATH_XID_TAG

RECORDED_AS = "datapath"

Sent: TypeAlias = ApplyEdits | RequestFlows | RequestResources | RequestRole
"""What goes to a switch."""


class Sharer(Protocol):
    """An app that keeps flow entries."""

    def has_connection(self, dpid: int) -> bool:
        """Tell whether it knows of a switch's connection."""

    def perform(self, effects: Any) -> None:
        """Carry out effects."""

    def told(self, told: OwnerTold) -> None:
        """Take what concerns it of what a switch confirmed."""

    def measured(self, work: Callable[[Any], None], event: Any) -> None:
        """Do work on the loop as a turn of its own: measured, and counted where it fails."""


class Datapaths:
    """The `core` of the apps that keep flow entries, each known by the tag of its transaction ids."""

    takes_events = True

    def __init__(self, reactor: Reactor, southbound: Southbound) -> None:
        self._reactor = reactor
        self._southbound = southbound
        self._core = DatapathCore(DATAPATH_XID_TAG, gathers=True)
        self._recorder: Recorder | None = None
        self._made: WeakValueDictionary[str, Any] = WeakValueDictionary()
        self._sharers: dict[int, Sharer] = {}
        self._logger = logging.getLogger("vsrt")
        self.role_denied: Callable[[RoleDenied], None] | None = None
        """Takes it that a switch has this controller in another role than wanted; set by who wants roles."""

    def core_for(self, app: Any) -> DatapathCore:
        """Return the core for an app that is made: a new one for the first of a process, or of a new set of apps."""
        if not self._made or app.name in self._made:
            self._made.clear()
            self._core = DatapathCore(DATAPATH_XID_TAG, gathers=True)
            path = environment_path("VSRT_RECORD")
            self._recorder = Recorder(path, RECORDED_AS, self._logger) if path is not None else None
            if self._recorder is not None:
                self._recorder.write(time.monotonic(), "start", {"gathers": self._core.gathers})
        self._made[app.name] = app
        return self._core

    def add(self, sharer: Sharer, xid_tag: int) -> None:
        """Tell an app from here on; on the loop."""
        if not self._sharers:
            self._southbound.add_asker(self, DATAPATH_XID_TAG)
            # What a turn has for switches goes out before apps go on with what they left for later.
            self._reactor.add(self, is_first=True)
        self._sharers[xid_tag] = sharer

    def remove(self, sharer: Sharer) -> None:
        """Have an app own nothing and be told nothing more; on the loop."""
        if sharer not in self._sharers.values():
            return
        for tag, other in self._sharers.items():
            if other is sharer:
                self._turn(OwnerLeft(tag))
        self._sharers = {tag: other for tag, other in self._sharers.items() if other is not sharer}
        if not self._sharers:
            self._southbound.remove_asker(self)
            self._reactor.remove(self)

    @property
    def core(self) -> DatapathCore:
        """The core of the apps that run."""
        return self._core

    @property
    def deadline_s(self) -> float | None:
        """When `due` is to be called, None for never."""
        return self._core.next_deadline()

    def recording_fault(self, sharer: Sharer) -> str | None:
        """Return why the core is not recorded, to the app that answers for it; None where it is, or need not be."""
        if self._recorder is None or sharer is not next(iter(self._sharers.values()), None):
            return None
        return self._recorder.fault

    def due(self) -> None:
        """Do what has come due."""
        self._turn(DeadlineReached())

    def answered(self, event: Answer) -> None:
        """Take the answer to a message that the apps share."""
        self._turn(event)

    def want_role(self, wanted: RoleWanted) -> None:
        """Ask switches for a role from here on; on the loop, while there are apps."""
        self._turn(wanted)

    def _turn(self, event: Any) -> None:
        """Feed the core, as work of the app that shared first: its figures have what that takes, and failures."""
        next(iter(self._sharers.values())).measured(self.feed, event)

    def feed(self, event: Any) -> None:
        """Give the core one event, and carry out what it asks for."""
        now = time.monotonic()
        if self._recorder is not None:
            self._recorder.write(now, "event", event)
        effects = self._core.handle(event, now)
        if effects:
            self.perform(effects)

    def perform(self, effects: Iterable[Any]) -> None:
        """Carry out effects in order."""
        for effect in effects:
            if type(effect) is OwnerTold:
                sharer = self._sharers.get(effect.xid_tag)
                if sharer is not None:
                    sharer.told(effect)
            elif isinstance(effect, Sent):
                self._send(effect)
            elif type(effect) is RoleDenied and self.role_denied is not None:
                self.role_denied(effect)

    def _send(self, effect: Sent) -> None:
        for sharer in self._sharers.values():
            if sharer.has_connection(effect.dpid):
                sharer.perform((effect,))
                return
