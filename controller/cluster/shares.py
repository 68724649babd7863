"""Monitors that share the switches: one of them, the manager, divides; each polls what the store says is its own.

A share is the key of a switch: its owner, an epoch that rises with each owner, and the former owner for as long as it
has not said that it polls no more. The manager alone gives a share another owner, by a transaction that has its own
key's revision as a condition. It gives away at once what a monitor had that is gone, which is when its lease is over.
While the store is silent the next owner takes a former one for gone when such a lease would be over.

A monitor polls while its lease is confirmed, and while the store gives no answer, for then nobody can be given its
share but where this monitor alone is cut off; rows of the history have the epoch, by which what two polled is told
apart. After a pause of its own nothing is polled before the store has confirmed the share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, NamedTuple

from controller.cluster.asking import Leasing
from controller.cluster.division import divide
from controller.cluster.effects import TellOperators
from controller.cluster.engine import (
    Committed,
    ConditionFailed,
    Delete,
    KeyCondition,
    KeyPage,
    LeaseGone,
    LeaseGranted,
    LeaseKept,
    PutKey,
    ReadPage,
    RevokeLease,
    Silent,
    Transaction,
)
from controller.cluster.events import Answered, KeysChanged, WatchEnded
from controller.cluster.keys import Keys
from controller.cluster.requests import Pending, Purpose
from controller.cluster.share_events import (
    LeaveWanted,
    PollsEnded,
    ShareChanged,
    ShareConfirmed,
    ShareEffect,
    SwitchesSeen,
    Taken,
)
from controller.cluster.share_records import Load, Manager, MonitorRecord, Share, ShareView, read_share
from controller.events import DeadlineReached
from controller.snapshot.events import Severity, State

STEADY_S = 2.0
"""After a start, and after the store was silent, nobody is gone until monitors were the same for so long."""

STEADY_BOUND_S = 10.0
"""The same where they never are."""

BUNDLE = 100
"""Shares in one transaction."""

SHARES_BOUND = 65536
"""Shares in the store from which on those are removed whose switch no monitor is connected to."""


class ShareSettings(NamedTuple):
    """What a monitor's part is made of.

    Attributes
    ----------
    fabric, monitor
        Names of both.
    incarnation
        A text that no other run of a monitor has.
    metrics
        Where its metrics are scraped, ``HOST:PORT``; '' for nowhere.
    lease_s
        As in the policy file.
    first_epoch
        Shares that the store knows nothing of have later epochs than this: seconds of the time of day, so that rows
        from before a store was emptied are those of earlier epochs.
    """

    fabric: str
    monitor: str
    incarnation: str
    metrics: str = ""
    lease_s: int = 3
    first_epoch: int = 0


class ShareFigures(NamedTuple):
    """What is told of shares: this monitor's switches and ports; and as the manager has them, 0 for others, switches
    that were given to another monitor, and those that a monitor is connected to and none polls."""

    switches: int
    ports: int
    moves: int
    unowned: int


_SILENT = TellOperators(
    "engine-unreachable",
    "The store of the monitors does not answer: each goes on with the switches that it has.",
    Severity.WARNING,
    State.RAISED,
)


class ShareCore(Leasing):
    """A monitor's part in the division of the switches, and all of it where it is the manager.

    Attributes
    ----------
    view
        What it knows of the store.
    """

    def __init__(self, settings: ShareSettings, now: float) -> None:
        super().__init__(settings.lease_s, 0, _SILENT, "The store of the monitors answers again.", now)
        self._settings = settings
        self._keys = Keys(settings.fabric)
        self.view = ShareView(self._keys)
        self._registered_lease = 0
        self._registered: Mapping[int, Load] = {}
        # What the store says
        self._highest = settings.first_epoch
        # Its own part
        self._switches: Mapping[int, Load] = {}
        self._until_s = self._told_until_s = now
        self._held: dict[int, int] = {}
        self._owned: dict[int, Share] = {}
        self._overtaken_epochs: dict[int, int] = {}
        self._awaited_since_s: dict[tuple[int, int], float] = {}
        self._ending: set[int] = set()
        self._due_s: dict[int, float] = {}
        self._is_leaving = False
        # The manager's
        self._waits_since_s: float | None = now
        self._steady_since_s = now
        self._seen: object = None
        self._divided = -1
        self._moves = 0
        self._handlers: dict[type, Callable[[Any, float], None]] = {
            Answered: self._answered,
            KeysChanged: self._keys_changed,
            WatchEnded: self._watch_ended,
            SwitchesSeen: self._switches_seen,
            PollsEnded: self._polls_ended,
            LeaveWanted: self._leave,
            DeadlineReached: lambda _event, _now: None,
        }

    def handle(self, event: object, now: float) -> list[ShareEffect]:
        """Take an event and return what follows; KeyError for one of another kind."""
        if self._held and now >= self._until_s:
            self._is_known = False
            self._change({})
        self._handlers[type(event)](event, now)
        self._decide(now)
        effects, self._effects = self._effects, []
        return effects

    def next_deadline(self) -> float | None:
        """Return when `DeadlineReached` is due."""
        due = [*self._lease_deadlines(), self._until_s]
        if self._waits_since_s is not None:
            due += [self._steady_since_s + STEADY_S, self._waits_since_s + STEADY_BOUND_S]
        due += [since_s + self._lease_s for since_s in self._awaited_since_s.values()]
        return min((at_s for at_s in due if at_s > self._decided_s), default=None)

    @property
    def is_manager(self) -> bool:
        """Whether this monitor divides."""
        manager = self.view.manager
        return self._lease != 0 and manager is not None and manager.incarnation == self._settings.incarnation

    @property
    def has_left(self) -> bool:
        """Whether the lease is given back after `LeaveWanted`."""
        return self._is_leaving and not self._lease and Purpose.REVOKE not in self._pending

    def figures(self) -> ShareFigures:
        """Return what is told of shares."""
        ports = sum(self._switches[dpid].ports for dpid in self._held if dpid in self._switches)
        unowned = len(self.view.unowned()) if self.is_manager else 0
        return ShareFigures(len(self._held), ports, self._moves, unowned)

    # What it hears

    def _switches_seen(self, event: SwitchesSeen, _now: float) -> None:
        self._switches = dict(event.switches)

    def _polls_ended(self, event: PollsEnded, now: float) -> None:
        for dpid, due_in_s in event.due_in_s:
            if dpid in self._ending:
                self._ending.discard(dpid)
                self._due_s[dpid] = now + due_in_s

    def _leave(self, _event: LeaveWanted, _now: float) -> None:
        self._is_leaving = True
        self._change({})

    def _keys_changed(self, event: KeysChanged, now: float) -> None:
        self._store_answered(now)
        if event.watch == self._watch and self._is_known:
            self.view.follow(event.changes)

    def _answered(self, event: Answered, now: float) -> None:
        asked = self._asked(event)
        if asked is None:
            return
        purpose, pending = asked
        reply = event.reply
        if type(reply) is Silent:
            self._silence(purpose, now)
            return
        self._store_answered(now)
        if type(reply) is LeaseGone:
            is_kept = purpose is Purpose.KEEP and pending.about == self._lease
            if is_kept or purpose in (Purpose.REGISTER, Purpose.ELECTION):
                self._lease, self._is_known = 0, False
                self._wait(now)
        elif type(reply) is LeaseGranted:
            self._lease = reply.lease
            self._confirm_lease(pending.asked_s, reply.ttl_s)
        elif type(reply) is LeaseKept and reply.lease == self._lease:
            self._confirm_lease(pending.asked_s, reply.ttl_s)
        elif type(reply) is KeyPage:
            self._read(pending, reply)
        elif purpose is Purpose.REGISTER:
            if type(reply) is Committed:
                self._registered_lease, self._registered = pending.about
        elif type(reply) is Committed or type(reply) is ConditionFailed:
            self._put(purpose, pending, reply)

    def _silence(self, purpose: Purpose, now: float) -> None:
        """Take it that nobody knows whether something was done; shares stay as they are."""
        self._store_was_silent(now)
        if purpose is not Purpose.READ:
            self._is_known = self._is_known and purpose in (Purpose.KEEP, Purpose.REGISTER)
        if now < self._until_s:
            self._until_s = max(self._until_s, now + self._settings.lease_s)
        self._wait(now)

    def _wait(self, now: float) -> None:
        """Take nobody for gone until monitors are steady."""
        self._waits_since_s = self._steady_since_s = now

    def _read(self, pending: Pending, page: KeyPage) -> None:
        """Take a page of the keys; the last one says all."""
        lease, held = pending.about
        held = (*held, *page.held)
        if lease != self._lease:
            return
        if page.has_more:
            request = ReadPage(self._keys.share, page.held[-1].key, page.revision)
            self._ask(Purpose.READ, request, pending.asked_s, (lease, held))
            return
        self.view.replace(held)
        self._follow_keys(self._keys.share, page.revision)

    def _put(self, purpose: Purpose, pending: Pending, reply: Committed | ConditionFailed) -> None:
        """Take in what became of keys that this monitor put."""
        edits: tuple[PutKey | Delete, ...] = pending.about
        if type(reply) is ConditionFailed:
            self.view.told(reply.held, [edit.key for edit in edits], reply.revision)
            self._is_known = self._is_known and purpose is not Purpose.DIVISION
            return
        if purpose is Purpose.DIVISION:
            self._moves += sum(map(self._moves_switch, edits))
        elif purpose is Purpose.ELECTION:
            text = f"{self._settings.monitor} divides the switches of fabric {self._settings.fabric}."
            self._tell("share-manager-elected", text)
        self.view.done(edits, reply.revision)

    def _moves_switch(self, edit: PutKey | Delete) -> bool:
        """Tell whether an edit gave a switch to another monitor than had it."""
        held = self.view.held(edit.key)
        former = None if held is None else read_share(held.value)
        share = read_share(edit.value) if type(edit) is PutKey else None
        return former is not None and share is not None and former.owner != share.owner

    # What is to be done

    def _decide(self, now: float) -> None:
        """Do what is to be done by all that is known."""
        self._decided_s = now
        self._tell_silence(now)
        if self._is_leaving:
            if self._lease and not self._ending and Purpose.REVOKE not in self._pending:
                self._ask(Purpose.REVOKE, RevokeLease(self._lease), now, ())
                self._lease = 0
            return
        if now >= self._retry_s:
            self._register(now)
        is_current = self._is_known and self._lease != 0 and self._lease == self._registered_lease
        if is_current and self._lease_until_s > now:
            self._until_s = max(self._until_s, self._lease_until_s)
        if is_current and now < self._until_s:
            lost, overtaken, own = self._lost(), self._overtaken(), self._own(now)
            self._change(own | lost)
            unheard = {dpid: share._replace(former="", due_in_s=0.0) for dpid, share in own.items() if share.former}
            if now >= self._retry_s:
                self._acknowledge(now)
                self._put_shares(Purpose.CLAIM, lost | overtaken | unheard, (), now)
                self._manage(now)
        if self._until_s != self._told_until_s:
            self._told_until_s = self._until_s
            self._effects.insert(0, ShareConfirmed(self._until_s))

    def _register(self, now: float) -> None:
        """Have a lease, be known by it, and know the keys."""
        if not self._keep_lease(now):
            return
        me = self._settings
        if (self._registered_lease, self._registered) != (self._lease, self._switches):
            text = MonitorRecord(me.incarnation, me.metrics, self._switches, self._highest).text()
            put = PutKey(f"{self._keys.monitors}{me.monitor}", text, self._lease)
            self._ask(Purpose.REGISTER, Transaction((), (put,), True), now, (self._lease, self._switches))
        if self._registered_lease == self._lease and not self._is_known:
            self._ask(Purpose.READ, ReadPage(self._keys.share), now, (self._lease, ()))

    def _own(self, now: float) -> dict[int, Share]:
        """Return the shares that are this monitor's to poll.

        A former owner is waited for until it says that it polls no more, or the manager that it is gone; while
        neither can be heard, for the store is silent, for as long as a lease lasts.
        """
        me, awaited = self._settings.incarnation, self._awaited_since_s
        own = {dpid: share for dpid, share in self.view.shares().items() if share.incarnation == me}
        self._awaited_since_s = {
            (dpid, share.epoch): awaited.get((dpid, share.epoch), now) for dpid, share in own.items() if share.former
        }
        is_unheard = self._was_silent_of_late(now, self._lease_s)
        return {
            dpid: share
            for dpid, share in own.items()
            if not share.former
            or self._held.get(dpid) == share.epoch
            or (is_unheard and now >= self._awaited_since_s[dpid, share.epoch] + self._lease_s)
        }

    def _lost(self) -> dict[int, Share]:
        """Return the shares that are polled here and that the store, which was emptied, knows nothing of."""
        shares, (_, me, incarnation, *_) = self.view.shares(), self._settings
        return {
            dpid: Share(me, incarnation, epoch, "", 0.0)
            for dpid, epoch in self._held.items()
            if dpid not in shares and dpid in self._switches
        }

    def _overtaken(self) -> dict[int, Share]:
        """Return the shares that somebody who had them before this monitor was first to put into an emptied store."""
        shares, (_, me, incarnation, *_) = self.view.shares(), self._settings
        there = {monitor.incarnation for monitor in self.view.monitors().values()}
        epochs = self._overtaken_epochs | self._held
        found = {
            dpid: shares[dpid] for dpid, epoch in epochs.items() if dpid in shares and shares[dpid].epoch < epoch
        }
        self._overtaken_epochs = {dpid: epochs[dpid] for dpid in found}
        return {
            dpid: Share(me, incarnation, epochs[dpid], share.incarnation if share.incarnation in there else "", 0.0)
            for dpid, share in found.items()
        }

    def _change(self, own: Mapping[int, Share]) -> None:
        """Poll these switches and no others."""
        left = tuple(dpid for dpid, epoch in self._held.items() if dpid not in own or own[dpid].epoch != epoch)
        taken = tuple(
            Taken(dpid, share.epoch, share.due_in_s)
            for dpid, share in own.items()
            if self._held.get(dpid) != share.epoch
        )
        if left or taken:
            self._held = {dpid: share.epoch for dpid, share in own.items()}
            self._highest = max((self._highest, *self._held.values()))
            self._ending.update(left)
            for taken_now in taken:
                self._due_s.pop(taken_now.dpid, None)
            self._effects.append(ShareChanged(left, taken))

    def _acknowledge(self, now: float) -> None:
        """Say of what another is to have that it is polled here no more."""
        me = self._settings.incarnation
        left = {
            dpid: share._replace(former="", due_in_s=round(max(self._due_s.get(dpid, now) - now, 0.0), 3))
            for dpid, share in self.view.shares().items()
            if share.former == me and dpid not in self._held and dpid not in self._ending
        }
        self._put_shares(Purpose.ACKNOWLEDGEMENT, left, (), now)

    # The manager

    def _manage(self, now: float) -> None:
        """Divide, where nobody else does."""
        held = self.view.held(self._keys.manager)
        if held is None:
            put = PutKey(self._keys.manager, Manager(*self._settings[1:3]).text(), self._lease)
            self._ask(Purpose.ELECTION, Transaction((KeyCondition(put.key, 0),), (put,)), now, (put,))
            return
        may_divide = self._is_steady(now) or self._none_may_return()
        if not may_divide or not self.is_manager or Purpose.DIVISION in self._pending:
            return
        if self._divided != self.view.version:
            self._divided = self.view.version
            fence = KeyCondition(held.key, held.revision)
            self._put_shares(Purpose.DIVISION, self._division(), (fence,), now)

    def _is_steady(self, now: float) -> bool:
        """Tell whether who is not there is gone, rather than not there yet."""
        waits_since_s = self._waits_since_s
        if waits_since_s is None:
            return True
        seen = {name: (each.incarnation, each.switches.keys()) for name, each in self.view.monitors().items()}
        if seen != self._seen:
            self._seen, self._steady_since_s = seen, now
        if now < self._steady_since_s + STEADY_S and now < waits_since_s + STEADY_BOUND_S:
            return False
        self._waits_since_s = self._seen = None
        return True

    def _none_may_return(self) -> bool:
        """Tell whether each switch has a share, of a monitor that is there or that another run of it has followed."""
        monitors, shares = self.view.monitors(), self.view.shares()
        there = {monitor.incarnation for monitor in monitors.values()}
        if not all(share.incarnation in there or share.owner in monitors for share in shares.values()):
            return False
        return all(dpid in shares for monitor in monitors.values() for dpid in monitor.switches)

    def _division(self) -> dict[int, Share | None]:
        """Return the shares that are to be otherwise than they are, None for those that are to be no more."""
        monitors, shares = self.view.monitors(), self.view.shares()
        there = {monitor.incarnation for monitor in monitors.values()}
        loads = {
            name: {dpid: load.ports_per_s for dpid, load in monitor.switches.items()}
            for name, monitor in monitors.items()
        }
        owners = {dpid: share.owner for dpid, share in shares.items() if share.incarnation in there}
        self._highest = max(
            (self._highest, *(each.epoch for each in monitors.values()), *(share.epoch for share in shares.values()))
        )
        changed: dict[int, Share | None] = {}
        division = divide(loads, owners, self.view.drained())
        for dpid, owner in division.items():
            share = shares.get(dpid)
            incarnation = monitors[owner].incarnation
            if share is None:
                changed[dpid] = Share(owner, incarnation, self._highest + 1, "", 0.0)
            elif share.incarnation != incarnation:
                former = share.former or share.incarnation
                former = former if former in there else ""
                changed[dpid] = Share(owner, incarnation, share.epoch + 1, former, 0.0)
            elif share.former and share.former not in there:
                changed[dpid] = share._replace(former="")
        if len(shares) > SHARES_BOUND:
            changed |= dict.fromkeys(shares.keys() - division.keys())
        return changed

    # Requests

    def _put_shares(
        self, purpose: Purpose, shares: Mapping[int, Share | None], fence: tuple[KeyCondition, ...], now: float
    ) -> None:
        """Put shares, as many as go into one transaction; the others follow when this one is done."""
        some = [(self._keys.share_of(dpid), share) for dpid, share in islice(shares.items(), BUNDLE)]
        if some:
            edits = tuple(Delete(key) if share is None else PutKey(key, share.text()) for key, share in some)
            conditions = (*fence, *(self.view.condition(key) for key, _ in some))
            self._ask(purpose, Transaction(conditions, edits), now, edits)
