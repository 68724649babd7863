"""What a controller does by its place in the cluster: which switches its other apps know, and when they may begin.

A controller that follows is slave at all switches, and its apps know of none: they are as after a start, before the
first switch connects. When it is to lead, it asks all switches to have it as master, has the apps given what the one
before it has left in the store, and then lets each switch in that has confirmed it. Who leads no more lets all go and
begins anew, for nothing that it knows is certain any longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, NamedTuple

from controller.cluster.effects import Leading
from controller.cluster.engine import KeyCondition
from controller.cluster.reports import Reports
from controller.datapath.core import DatapathCore
from controller.effects import Notice
from controller.events import (
    CheckRequested,
    ControllerRole,
    DeadlineReached,
    PacketReceived,
    PortChanged,
    RoleWanted,
    SwitchConnected,
    SwitchDisconnected,
    TableChanged,
)
from controller.rules.installer import Installer
from controller.rules.pipeline import CLUSTER_TAG, DATAPATH_XID_TAG, OPENFLOW_1_0

CONFIRM_S = 0.2
"""How often the member is asked whether it leads for sure, while a switch without generations is to be asked."""

ANSWERS_S = 0.2
"""How long switches with generations have to say whether they know of a later epoch, in seconds, before those without
are asked to have this controller as master."""

TOGETHER_S = 0.25
"""How long switches that have confirmed their new master wait for those that have not."""


class Course(StrEnum):
    """What a controller is about."""

    FOLLOWING = "following"
    TAKING_OVER = "taking-over"
    LEADING = "leading"
    LEAVING = "leaving"


class SidecarLost(NamedTuple):
    """The process beside the controller has ended, or says nothing; another one goes on under its lease."""


class TakenOver(NamedTuple):
    """The apps know what the leader before has left, and may be let at switches; in this epoch."""

    epoch: int


class TakeOver(NamedTuple):
    """Have the apps given what is in the store, where writes have `fence` as a condition; `TakenOver` follows."""

    epoch: int
    fence: KeyCondition


class Renew(NamedTuple):
    """Have the store given anew what the apps know, which it has lost, where writes have `fence` as a condition."""

    epoch: int
    fence: KeyCondition


class ConfirmLead(NamedTuple):
    """Have the member say whether it leads for sure, by `Leading`."""


class LetIn(NamedTuple):
    """Tell the apps of switches, then what their hosts reported meanwhile, in the order in which they did."""

    dpids: tuple[int, ...]
    reports: tuple[PacketReceived, ...]


class HearReports(NamedTuple):
    """Have a switch send this slave what its flow entries send to controllers."""

    dpid: int


class BeginAnew(NamedTuple):
    """Let all go, and begin anew as one who follows."""

    why: str


class _Switch:
    """A connected switch."""

    def __init__(self, ofp_version: int) -> None:
        self.ofp_version = ofp_version
        self.is_in = False
        self.hears_reports = False
        self.wanted = ControllerRole.SLAVE


class PlaceCore:
    """The core of the app that keeps a controller's place.

    Attributes
    ----------
    course
        What the controller is about.
    epoch
        The epoch in which it leads or begins to.
    began_s, led_s
        When it was last elected, and when the apps knew all switches for the first time then; None before.
    """

    def __init__(self, lease_s: float, datapath: DatapathCore | None = None) -> None:
        self.course = Course.FOLLOWING
        self.epoch: int | None = None
        self.began_s: float | None = None
        self.led_s: float | None = None
        self.reports = Reports()
        self._lease_s = lease_s
        self._datapath = datapath = datapath or DatapathCore(DATAPATH_XID_TAG)
        self._installer = Installer(CLUSTER_TAG, datapath=datapath)
        self._switches: dict[int, _Switch] = {}
        self._wanted = RoleWanted(ControllerRole.SLAVE, 0)
        self._has_lease = False
        self._fresh_until_s = float("-inf")
        self._confirm_s: float | None = None
        self._unconfirmed: set[int] = set()
        self._answers_until_s: float | None = None
        self._is_ready = False
        self._lost_until_s: float | None = None
        self._waits_until_s: float | None = None
        self._effects: list[Any] = []
        self.handlers: dict[type, Callable[[Any, float], None]] = {
            RoleWanted: self._role_wanted,
            Leading: self._leading,
            SidecarLost: self._sidecar_lost,
            TakenOver: self._taken_over,
            SwitchConnected: self._switch_connected,
            SwitchDisconnected: self._switch_disconnected,
            TableChanged: lambda event, now: self._look(event.dpid, now),
            PacketReceived: lambda event, now: self.reports.take(event, now),
            PortChanged: lambda _event, _now: None,
            CheckRequested: lambda _event, _now: None,
            DeadlineReached: self._deadline_reached,
        }

    @property
    def xid_tag(self) -> int:
        """The upper 8 bits of the transaction ids of this core's messages."""
        return self._installer.xid_tag

    def handle(self, event: Any, now: float) -> list[Any]:
        """Take an event, return what follows; KeyError for one of another kind."""
        handle = self.handlers.get(type(event))
        if handle is None:
            return [*self._installer.handle(event, now)]
        handle(event, now)
        effects, self._effects = self._effects, []
        return effects

    def next_deadline(self) -> float | None:
        """Return when `DeadlineReached` is due, None for never."""
        due = (self._lost_until_s, self._waits_until_s, self._confirm_s, self._answers_until_s)
        return min((at_s for at_s in (self._installer.next_deadline(), *due) if at_s is not None), default=None)

    @property
    def switches(self) -> dict[int, bool]:
        """Which switches are connected, and whether the apps know of each."""
        return {dpid: switch.is_in for dpid, switch in sorted(self._switches.items())}

    def role_at(self, dpid: int, ofp_version: int, now: float) -> RoleWanted | None:
        """Return what is wanted at a switch before it is taken in; None where it is what is wanted at all."""
        if self._wanted.role is not ControllerRole.MASTER:
            return None
        return self._wanted._replace(role=self._role_by_version(ofp_version, now), dpid=dpid)

    def _role_by_version(self, ofp_version: int, now: float) -> ControllerRole:
        """Return the role to ask for where this controller leads.

        Where switches know no generations the last one who asks is master: only who is sure to lead asks, and only
        when all others have confirmed it, for a store that was emptied knows less of epochs than they do.
        """
        is_sure = self._has_lease and now < self._fresh_until_s and not self._unconfirmed
        return ControllerRole.MASTER if ofp_version != OPENFLOW_1_0 or is_sure else ControllerRole.SLAVE

    def _role_wanted(self, wanted: RoleWanted, now: float) -> None:
        if wanted.role is ControllerRole.SLAVE and self.course in (Course.TAKING_OVER, Course.LEADING):
            self._leave("it leads no more")
        before, self._wanted = self._wanted, wanted
        self._unconfirmed, self._answers_until_s = set(), None
        if wanted.role is not ControllerRole.MASTER:
            self._effects.append(wanted)
            for switch in self._switches.values():
                switch.wanted = wanted.role
            return
        for dpid, switch in self._switches.items():
            if switch.ofp_version != OPENFLOW_1_0:
                switch.wanted = ControllerRole.MASTER
                self._effects.append(wanted._replace(dpid=dpid))
                if wanted != before or not self._has_master(dpid):
                    self._await_answer(dpid, now)

    def _await_answer(self, dpid: int, now: float) -> None:
        """Ask no switch without generations before this one has answered, or has had its time to."""
        if not self._unconfirmed:
            self._answers_until_s = now + ANSWERS_S
        self._unconfirmed.add(dpid)

    def _await_no_more(self, dpids: Iterable[int], now: float) -> None:
        """Wait for these switches no more; when none is left, ask those without generations."""
        if self._unconfirmed:
            self._unconfirmed.difference_update(dpids)
            if not self._unconfirmed:
                self._answers_until_s = None
                self._ask_old_switches(now)

    def _answers_are_due(self, now: float) -> None:
        """Wait no more for switches that do not answer; one that refused leads to an election anew."""
        self._answers_until_s = now + ANSWERS_S
        self._await_no_more([dpid for dpid in self._unconfirmed if not self._datapath.has_refused(dpid)], now)

    def _leading(self, leading: Leading, now: float) -> None:
        self._lost_until_s = None
        former, self._has_lease = self._has_lease, leading.has_lease
        self._fresh_until_s = leading.fresh_until_s
        if leading.epoch is None or leading.fence is None:
            if self.course in (Course.TAKING_OVER, Course.LEADING):
                self._leave("it leads no more")
        elif self.course is Course.FOLLOWING:
            self.course, self.epoch, self._is_ready = Course.TAKING_OVER, leading.epoch, False
            self.began_s, self.led_s = now, None
            self._effects.append(TakeOver(leading.epoch, leading.fence))
        elif leading.epoch != self.epoch and leading.renews == self.epoch and self.course is Course.LEADING:
            self.epoch = leading.epoch
            self._effects.append(Renew(leading.epoch, leading.fence))
        elif leading.epoch != self.epoch:
            self._leave(f"it was elected anew, in epoch {leading.epoch}")
        else:
            if former and not leading.has_lease:
                text = "The lease is not confirmed: switches of OpenFlow 1.0 are not written until it is again."
                self._effects.append(Notice("lease-unconfirmed", text))
        self._ask_old_switches(now)

    def _ask_old_switches(self, now: float) -> None:
        """Have switches without generations written by who has a lease alone, and asked by who leads for sure."""
        self._confirm_s = None
        if self.course not in (Course.TAKING_OVER, Course.LEADING) or self._wanted.role is not ControllerRole.MASTER:
            return
        for dpid, switch in self._switches.items():
            if switch.ofp_version != OPENFLOW_1_0:
                continue
            role = self._role_by_version(switch.ofp_version, now)
            if role is switch.wanted:
                continue
            if role is ControllerRole.MASTER or not self._has_lease:
                switch.wanted = role
                self._effects.append(self._wanted._replace(role=role, dpid=dpid))
        self._confirm_old_switches(now)

    def _confirm_old_switches(self, now: float) -> None:
        """Ask whether this controller leads for sure, while a switch without generations waits for that."""
        waits = any(
            switch.ofp_version == OPENFLOW_1_0 and switch.wanted is not ControllerRole.MASTER
            for switch in self._switches.values()
        )
        if waits and self._has_lease and not self._unconfirmed:
            self._confirm_s = now + CONFIRM_S
            self._effects.append(ConfirmLead())

    def _sidecar_lost(self, _event: SidecarLost, now: float) -> None:
        if self.course in (Course.TAKING_OVER, Course.LEADING):
            self._lost_until_s = now + self._lease_s

    def _taken_over(self, event: TakenOver, now: float) -> None:
        if self.course is not Course.TAKING_OVER or event.epoch != self.epoch:
            return
        self.course, self._is_ready = Course.LEADING, True
        self._waits_until_s = now + TOGETHER_S
        self._let_in((), now)

    def _leave(self, why: str) -> None:
        if self.course is Course.LEAVING:
            return
        self.course = Course.LEAVING
        self._effects.append(BeginAnew(why))

    def _switch_connected(self, event: SwitchConnected, now: float) -> None:
        self._switches[event.dpid] = switch = _Switch(event.ofp_version)
        if self._wanted.role is ControllerRole.MASTER:
            switch.wanted = self._role_by_version(event.ofp_version, now)
        self._effects += self._installer.switch_connected(event.dpid, event.ofp_version, now)
        if event.ofp_version == OPENFLOW_1_0:
            self._ask_old_switches(now)
        elif switch.wanted is ControllerRole.MASTER and not self._has_master(event.dpid):
            self._await_answer(event.dpid, now)

    def _switch_disconnected(self, event: SwitchDisconnected, now: float) -> None:
        self._switches.pop(event.dpid, None)
        self._effects += self._installer.switch_disconnected(event.dpid, now)
        self._await_no_more((event.dpid,), now)
        self._let_in((), now)

    def _look(self, dpid: int, now: float) -> None:
        """Let a switch in that has confirmed its master, and hear the reports of one that is a follower's."""
        switch = self._switches.get(dpid)
        if switch is None:
            return
        role, _ = self._datapath.role(dpid)
        if role == ControllerRole.SLAVE and not switch.hears_reports:
            switch.hears_reports = True
            self._effects.append(HearReports(dpid))
        if role == ControllerRole.MASTER:
            self._await_no_more((dpid,), now)
        self._let_in((dpid,), now)

    def _let_in(self, dpids: Iterable[int], now: float) -> None:
        """Let those of some switches in that have confirmed their master: at first all at once, or who has in a time.

        So a member whose report the leader before took, and did not write down, is known before a later report of
        somebody else changes its group.
        """
        if not self._is_ready or self.course is not Course.LEADING:
            return
        if self._waits_until_s is not None:
            if now < self._waits_until_s and not all(map(self._has_master, self._switches)):
                return
            self._waits_until_s, dpids = None, tuple(self._switches)
        found = tuple([dpid for dpid in dpids if not self._switches[dpid].is_in and self._has_master(dpid)])
        if not found:
            return
        for dpid in found:
            self._switches[dpid].is_in = True
        if self.led_s is None and all(each.is_in for each in self._switches.values()):
            self.led_s = now
        self._effects.append(LetIn(found, self.reports.hand_out(found, now)))

    def _has_master(self, dpid: int) -> bool:
        return self._datapath.role(dpid)[0] == ControllerRole.MASTER

    def _deadline_reached(self, _event: DeadlineReached, now: float) -> None:
        if self._answers_until_s is not None and now >= self._answers_until_s:
            self._answers_are_due(now)
        if self._confirm_s is not None and now >= self._confirm_s:
            self._ask_old_switches(now)
        self._effects += self._installer.on_deadline(now)
        if self._waits_until_s is not None and now >= self._waits_until_s:
            self._let_in((), now)
        if self._lost_until_s is not None and now >= self._lost_until_s:
            self._lost_until_s = None
            self._leave("the process beside it did not come back in time")
