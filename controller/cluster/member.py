"""One controller among those of a fabric: when it leads, when another one does, and what follows at the switches.

Who leads is one transaction of the store: it compares the revisions seen of `leader` and `epoch` and puts both. What
makes that safe is the epoch, which only rises: each write to the store compares it, and it is the generation by which
switches know their master. The lease only says when a leader may be given up.

`MemberCore` is told by events and answers with effects; it decides anew, after each event, by all that it knows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

from controller.cluster.asking import Leasing
from controller.cluster.calm import Calm
from controller.cluster.effects import Effect, FollowPeer, Leading, TellOperators
from controller.cluster.engine import (
    Committed,
    ConditionFailed,
    KeyCondition,
    KeyPage,
    LeaseGone,
    LeaseGranted,
    LeaseKept,
    PutKey,
    ReadPage,
    Reply,
    RevokeLease,
    Silent,
)
from controller.cluster.events import (
    Answered,
    ConfirmWanted,
    ControllerBeat,
    ControllerGone,
    ControllerStopped,
    FenceRefused,
    HandOverWanted,
    KeysChanged,
    PeerGone,
    PeerHeard,
    RoleLost,
    WatchEnded,
)
from controller.cluster.heard import FRESH_S, HeardLeader
from controller.cluster.keys import EPOCH_BOUND, FIRST_EPOCHS, Keys, Leader, Present
from controller.cluster.lead_transactions import answer, challenge, election, hand_over, registration, restoration
from controller.cluster.member_settings import MemberSettings, Standing
from controller.cluster.reach import Reach
from controller.cluster.requests import Pending, Purpose
from controller.cluster.view import LeadView
from controller.events import ControllerRole, DeadlineReached, RoleWanted
from controller.snapshot.events import Severity, State

SUCCESSION_S = 1.0
"""How long others leave the lead to the member that was named."""

RENEWAL_S = 2.0
"""How long others leave the store to a leader whom they hear, after its key went with the whole store, or after the
store was silent for longer than the lease lasts."""

_OF_THE_LEAD = {Purpose.ELECTION, Purpose.ANSWER, Purpose.RESTORATION, Purpose.HAND_OVER}

_SILENT = TellOperators(
    "engine-unreachable",
    "The cluster's store does not answer: nobody can be elected meanwhile.",
    Severity.CRITICAL,
    State.RAISED,
)


class MemberCore(Leasing):
    """A member.

    Attributes
    ----------
    standing
        What it is.
    epoch
        The epoch in which it leads, None where it does not.
    view
        What it knows of the store.
    """

    def __init__(self, settings: MemberSettings, now: float) -> None:
        super().__init__(settings.lease_s, settings.lease, _SILENT, "The cluster's store answers again.", now)
        self.standing = Standing.FOLLOWER
        self.epoch: int | None = None
        self._settings = settings
        self._keys = Keys(settings.fabric)
        if not settings.lease:
            self._effects += [RoleWanted(ControllerRole.SLAVE, 0), Leading(None, None, False, 0.0)]
        self._fresh_until_s = 0.0
        self._is_to_confirm = False
        self._is_registered = False
        self.view = LeadView(self._keys)
        self._fence: KeyCondition | None = None
        self._highest = settings.highest_epoch
        self._left_epoch = settings.led_epoch
        self._is_renewing = False
        self._renews: int | None = None
        self._calm = Calm()
        self._heard = HeardLeader(settings.silence_s, now)
        self._barred_until_s = now
        self._beat_s: float | None = now if settings.lease else None
        self._idle_s = 0.0
        self._told = (False, False, 0.0)
        self._reach = Reach(settings.member, now)
        self._handlers: dict[type, Callable[[Any, float], None]] = {
            Answered: self._answered,
            KeysChanged: self._keys_changed,
            WatchEnded: self._watch_ended,
            PeerHeard: self._peer_heard,
            PeerGone: self._peer_gone,
            ControllerBeat: self._controller_beat,
            ControllerGone: self._controller_gone,
            ControllerStopped: self._controller_gone,
            RoleLost: self._role_lost,
            FenceRefused: self._fence_refused,
            HandOverWanted: self._hand_over,
            ConfirmWanted: self._confirm,
            DeadlineReached: lambda _event, _now: None,
        }

    def handle(self, event: object, now: float) -> list[Effect]:
        """Take an event and return what follows; KeyError for one of another kind."""
        self._handlers[type(event)](event, now)
        self._decide(now)
        effects, self._effects = self._effects, []
        return effects

    def next_deadline(self) -> float | None:
        """Return when `DeadlineReached` is due."""
        due = [*self._lease_deadlines(), *self._heard.deadlines()]
        due += [self._barred_until_s, self._calm.not_before_s(self._decided_s)]
        if self._beat_s is not None:
            due += [self._beat_s + count * self._settings.silence_s for count in (1, 2)]
            due.append(self._beat_s + self._settings.stall_s - self._idle_s)
        later = [at_s for at_s in (*due, *self._reach.deadlines()) if at_s > self._decided_s]
        return min(later, default=None)

    @property
    def lease(self) -> int:
        """The lease that its key and those of its lead end with, 0 for none."""
        return self._lease

    @property
    def has_left(self) -> bool:
        """Whether no key of it is left in the store, as far as it knows."""
        return not self._lease and Purpose.REVOKE not in self._pending

    # What it hears

    def _controller_beat(self, event: ControllerBeat, now: float) -> None:
        self._beat_s, self._idle_s = now, event.idle_s
        self._reach.take(event.switches)

    def _controller_gone(self, _event: ControllerGone | ControllerStopped, _now: float) -> None:
        self._beat_s = None

    def _peer_heard(self, event: PeerHeard, now: float) -> None:
        self._heard.take(event.incarnation, now)

    def _peer_gone(self, event: PeerGone, _now: float) -> None:
        self._heard.end(event.incarnation)

    def _role_lost(self, event: RoleLost, now: float) -> None:
        generation_id = event.generation_id or 0
        if generation_id < EPOCH_BOUND:
            self._highest = max(self._highest, generation_id)
        if self.epoch is not None:
            self._step_down(f"switch {event.dpid} goes by another master", now)

    def _fence_refused(self, event: FenceRefused, now: float) -> None:
        if event.epoch == self.epoch:
            self._step_down("the store took no write of it", now)

    def _hand_over(self, event: HandOverWanted, now: float) -> None:
        fence, me = self._fence, self._settings.member
        present = self.view.present()
        to = event.to or self._reach.best(present)
        if fence is None or to not in present or to == me:
            why = "it does not lead" if fence is None else f"{to or 'another'} is not a member at the moment"
            self._tell("hand-over-refused", f"{me} hands nothing over: {why}.", Severity.WARNING)
        elif Purpose.HAND_OVER not in self._pending:
            self._ask(Purpose.HAND_OVER, hand_over(self._keys, fence, to), now, to)
            self._fresh_until_s = now

    def _confirm(self, _event: ConfirmWanted, _now: float) -> None:
        self._is_to_confirm = self.epoch is not None

    def _keys_changed(self, event: KeysChanged, now: float) -> None:
        self._store_answered(now)
        if event.watch != self._watch or not self._is_known:
            return
        self.view.follow(event.changes)
        self._look_at_leader(now)

    # What the store answers

    def _answered(self, event: Answered, now: float) -> None:
        asked = self._asked(event)
        if asked is None:
            return
        purpose, pending = asked
        if type(reply := event.reply) is Silent:
            self._silence(purpose, now)
            return
        self._store_answered(now)
        if type(reply) is LeaseGone:
            has_lease = purpose in (Purpose.REGISTER, Purpose.RESTORATION)
            about = pending.about[0] if has_lease else pending.about
            is_of_lease = (purpose is not Purpose.KEEP and not has_lease) or about == self._lease
            if purpose is not Purpose.REVOKE and is_of_lease:
                self._lose_lease(now)
        elif type(reply) is LeaseGranted:
            self._lease, self._is_registered = reply.lease, False
            self._confirm_lease(pending.asked_s, reply.ttl_s)
        elif type(reply) is LeaseKept and reply.lease == self._lease:
            self._confirm_lease(pending.asked_s, reply.ttl_s)
        elif type(reply) is KeyPage:
            self._read(reply, now)
        elif purpose is Purpose.REGISTER:
            self._is_registered = type(reply) is Committed and pending.about[0] == self._lease
            self._reach.told(pending.about[1], pending.asked_s)
        elif purpose is Purpose.CHALLENGE:
            self._challenge_is_put(pending.about, now)
        elif purpose is Purpose.ELECTION:
            self._elected(pending, reply, now)
        elif purpose is Purpose.RESTORATION:
            self._restored(pending, reply, now)
        elif purpose in (Purpose.ANSWER, Purpose.HAND_OVER):
            self._fenced(purpose, pending, reply, now)

    def _challenge_is_put(self, revision: int, now: float) -> None:
        if self.view.revision(self._keys.leader) > revision:
            self._heard.answered(now)  # it was quicker than the store's answer
        else:
            self._heard.challenged = (revision, now)

    def _silence(self, purpose: Purpose, now: float) -> None:
        """Take it that nobody knows whether something was done."""
        self._store_was_silent(now)
        if purpose in (Purpose.ELECTION, Purpose.RESTORATION, Purpose.HAND_OVER):
            self._is_known = False
            if self.standing is Standing.CANDIDATE:
                self.standing = Standing.FOLLOWER

    def _lose_lease(self, now: float) -> None:
        """Be without a lease; whether another leads, or the store has lost all, is seen by what is read next."""
        self._lease, self._is_registered, self._lease_until_s = 0, False, now
        if self.epoch is not None:
            self._is_known = False
        elif self.standing is Standing.CANDIDATE:
            self.standing = Standing.FOLLOWER

    def _read(self, page: KeyPage, now: float) -> None:
        self.view.replace(page.held)
        if self.epoch is not None and not self.view.epoch and self.view.leader is None:
            self._begin_renewal()
        self._follow_keys(self._keys.lead, page.revision)
        self._look_at_leader(now)

    def _begin_renewal(self) -> None:
        """Lead on where the store has lost all, as soon as it knows of an epoch again."""
        if not self._is_renewing:
            self._is_renewing = True
            text = f"The cluster's store has lost all that it had: {self._settings.member} writes it anew."
            self._tell("store-emptied", text, Severity.CRITICAL)

    def _elected(self, pending: Pending, reply: Reply, now: float) -> None:
        leader: Leader = pending.about
        if self.standing is Standing.CANDIDATE:
            self.standing = Standing.FOLLOWER
        if type(reply) is ConditionFailed:
            self.view.told(reply.held, (self._keys.leader, self._keys.epoch), reply.revision)
        elif type(reply) is Committed:
            self._fresh_until_s = pending.asked_s + FRESH_S
            epoch = PutKey(self._keys.epoch, str(leader.epoch))
            self.view.done((epoch, PutKey(self._keys.leader, leader.text(), self._lease)), reply.revision)
        self._look_at_leader(now)

    def _fenced(self, purpose: Purpose, pending: Pending, reply: Reply, now: float) -> None:
        if type(reply) is ConditionFailed:
            self._is_known = False
            if any(held.key == self._keys.epoch for held in reply.held):
                self._step_down("the store has a later epoch", now)
        elif purpose is Purpose.ANSWER and type(reply) is Committed:
            self.view.done((PutKey(self._keys.leader, pending.about, self._lease),), reply.revision)
            if Purpose.HAND_OVER not in self._pending:
                self._fresh_until_s = pending.asked_s + FRESH_S
        elif purpose is Purpose.HAND_OVER:
            self._barred_until_s = now + SUCCESSION_S
            self.view.see((), (self._keys.leader,))
            self._step_down(f"it handed over to {pending.about}", now)

    def _restored(self, pending: Pending, reply: Reply, now: float) -> None:
        """Take in whether its key is there again; where it is not, another one's may be."""
        if type(reply) is ConditionFailed:
            self._is_known = False
        elif type(reply) is Committed:
            lease, text = pending.about
            self._fresh_until_s = pending.asked_s + FRESH_S
            self.view.done((PutKey(self._keys.leader, text, lease),), reply.revision)
            self._look_at_leader(now)

    # Who leads

    def _look_at_leader(self, now: float) -> None:
        """Take in what the store says of leader and epoch."""
        leader = self.view.leader
        self._highest = max(self._highest, self.view.epoch, 0 if leader is None else leader.epoch)
        if self.epoch is not None and not self._leads_on(leader):
            self._step_down(self._why_over(leader), now)
        former = self._heard.leader
        if leader is None:
            self._miss_leader(former, now)
            return
        if leader == former:
            self._heard.awaited_until_s = None
            challenged = self._heard.challenged
            if challenged is not None and self.view.revision(self._keys.leader) > challenged[0]:
                self._heard.answered(now)
            return
        self._heard.follow(leader, now)
        self._calm.changed(now)
        self._tell("leader-elected", f"{leader.member} leads fabric {self._settings.fabric} in epoch {leader.epoch}.")
        if self._is_mine(leader):
            self._effects.append(FollowPeer(None))
            is_new = leader.epoch > self._left_epoch and self.view.epoch == leader.epoch
            if is_new and self._lease and self._is_fit(now):
                self._lead(leader, self.view.condition(self._keys.epoch))
        else:
            self._effects += [FollowPeer(leader), RoleWanted(ControllerRole.SLAVE, leader.epoch)]

    def _miss_leader(self, former: Leader | None, now: float) -> None:
        """Take it that the leader's key is gone."""
        if self.epoch is not None:
            self._fresh_until_s = min(self._fresh_until_s, now)
        elif former is not None and not self._awaits(former, now):
            if self.view.successor not in (None, self._settings.member):
                self._barred_until_s = max(self._barred_until_s, now + SUCCESSION_S)
            self._heard.follow(None, now)
            self._effects.append(FollowPeer(None))

    def _awaits(self, former: Leader, now: float) -> bool:
        """Tell whether a leader whose key is gone is left the time to put it again.

        It is where the key went with the whole store, or with a lease that could not be kept.
        """
        if self._heard.awaited_until_s is None and self._heard.is_heard(now):
            is_in_epoch = self.view.epoch == former.epoch and self._was_silent_of_late(now, RENEWAL_S)
            if is_in_epoch or not self.view.epoch:
                self._heard.awaited_until_s = now + RENEWAL_S
        return self._heard.is_awaited(now) and self.view.successor is None

    def _leads_on(self, leader: Leader | None) -> bool:
        """Tell whether what the store says of the leader is that this member leads, or may put its key again.

        While the epoch is its own nobody else was elected, whatever became of the lease.
        """
        if leader is None:
            if self._is_renewing and not self.view.epoch:
                return True
            return self._fence == self.view.condition(self._keys.epoch) and self.view.successor is None
        return self._is_mine(leader) and (leader.epoch == self.epoch or self._is_renewing)

    def _why_over(self, leader: Leader | None) -> str:
        to = self.view.successor if leader is None else leader.member
        if (handing := self._pending.get(Purpose.HAND_OVER)) is not None and handing.about == to:
            return f"it handed over to {to}"  # seen before the store's answer
        return "another leads" if leader is not None else "the store has no leader any more"

    def _is_mine(self, leader: Leader | None) -> bool:
        return leader is not None and leader.incarnation == self._settings.incarnation

    def _lead(self, leader: Leader, fence: KeyCondition) -> None:
        self._renews = self.epoch if self._is_renewing else None
        self._is_renewing = False
        self.standing, self.epoch, self._fence = Standing.LEADER, leader.epoch, fence
        self._effects.append(RoleWanted(ControllerRole.MASTER, leader.epoch))

    def _step_down(self, why: str, _now: float) -> None:
        if (epoch := self.epoch) is None:
            return
        self._left_epoch = max(self._left_epoch, epoch)
        self._reach.leads_no_more()
        self._is_renewing = False
        self.standing, self.epoch, self._fence = Standing.FOLLOWER, None, None
        self._is_known = False
        self._effects.append(RoleWanted(ControllerRole.SLAVE, epoch))
        self._tell(
            "stepped-down", f"{self._settings.member} leads no more in epoch {epoch}: {why}.", Severity.WARNING
        )

    # What is to be done

    def _decide(self, now: float) -> None:
        """Do what is to be done by all that is known."""
        self._decided_s = now
        self._tell_silence(now)
        if not self._is_fit(now):
            self._stand_aside(now)
        elif now >= self._retry_s:
            self._be_registered(now)
            if self._is_known:
                self._decide_lead(now)
            elif not self._pending.keys() & _OF_THE_LEAD:
                self._ask(Purpose.READ, ReadPage(self._keys.lead), now, None)
        has_lease = self.epoch is not None and now < self._lease_until_s
        told = (self.epoch is not None, has_lease, 0.0 if self.epoch is None else self._fresh_until_s)
        if told != self._told or any(type(effect) is RoleWanted for effect in self._effects):
            self._told = told
            self._effects.append(Leading(self.epoch, self._fence, *told[1:], self._renews))

    def _is_fit(self, now: float) -> bool:
        """Tell whether the controller is there and goes on; others who challenge it have less patience."""
        patience = 1 if self.epoch is not None and self.view.is_challenged else 2
        if self._beat_s is None or now >= self._beat_s + patience * self._settings.silence_s:
            return False
        return self._idle_s + now - self._beat_s < self._settings.stall_s

    def _stand_aside(self, now: float) -> None:
        """Leave the lead to others, who hear of it by the end of the lease."""
        self._step_down("its controller is gone, or stands still", now)
        if self._lease and Purpose.REVOKE not in self._pending:
            self._ask(Purpose.REVOKE, RevokeLease(self._lease), now, None)
            self._lease, self._is_registered, self._lease_until_s = 0, False, now

    def _be_registered(self, now: float) -> None:
        """Have a lease, and be known by it."""
        if not self._keep_lease(now):
            return
        if not self._is_registered or self._reach.is_untold(now):
            me, dpids = self._settings, self._reach.switches
            this = Present(me.member, me.incarnation, me.peer, len(dpids), metrics=me.metrics, dpids=dpids)
            self._ask(Purpose.REGISTER, registration(self._keys, this, self._lease), now, (self._lease, dpids))

    def _decide_lead(self, now: float) -> None:
        leader = self.view.leader
        # No switch refuses who leads in the epoch of the master that it had.
        is_set_back = leader and leader.member != self._settings.member and leader.epoch <= self._left_epoch
        if self._is_renewing:
            if self._lease and self._is_registered and Purpose.ELECTION not in self._pending:
                self._stand(now)
        elif self._fence is not None:
            if Purpose.HAND_OVER not in self._pending:
                self._keep_key(leader, self._fence, now)
            self._look_at_reach(now)
        elif not self._lease or not self._is_registered or Purpose.ELECTION in self._pending:
            return
        elif leader is None or self._is_mine(leader) or self._heard.is_gone or is_set_back:
            self._stand(now)
        elif self._heard.is_silent(now):
            self._challenge(now)

    def _keep_key(self, leader: Leader | None, fence: KeyCondition, now: float) -> None:
        """Put its key again where it was asked to, or where it is gone with the lease."""
        if leader is None and self._lease and self._heard.leader is not None:
            leader = self._heard.leader
            request = restoration(self._keys, fence, leader, self._lease)
            self._ask(Purpose.RESTORATION, request, now, (self._lease, leader.text()))
        elif leader is not None and (self.view.is_challenged or self._is_to_confirm):
            self._is_to_confirm = False
            self._ask(Purpose.ANSWER, answer(self._keys, fence, leader, self._lease), now, leader.text())

    def _look_at_reach(self, now: float) -> None:
        """Hand over to who is connected to more switches, unless the lead changed often of late."""
        present, me = self.view.present(), self._settings.member
        better = self._reach.better(present, now)
        if better and Purpose.HAND_OVER not in self._pending and self._calm.not_before_s(now) == float("-inf"):
            count = present[better].switches
            own = len(self._reach.switches)
            text = f"{me} is connected to {own} switches, {better} to {count}: {better} is to lead."
            self._tell("switches-unreached", text, Severity.WARNING)
            self._hand_over(HandOverWanted(better), now)

    def _challenge(self, now: float) -> None:
        """Have a silent leader say that it is there; where it does not, it is one no more."""
        revision = self.view.revision(self._keys.leader)
        if self._heard.challenged is None or self._heard.challenged[0] != revision:
            self._ask(Purpose.CHALLENGE, challenge(self._keys, self._settings.member), now, revision)
        elif self._heard.has_not_answered(now):
            self._stand(now)

    def _stand(self, now: float) -> None:
        """Stand for election."""
        is_named = self.view.successor == self._settings.member
        is_barred = now < max(self._barred_until_s, self._calm.not_before_s(now)) or self._heard.is_awaited(now)
        is_barred |= self._reach.yields(self.view.present(), self._heard.leader, self._highest, now)
        if is_barred and not (is_named or self._is_renewing):
            return
        conditions = tuple(map(self.view.condition, (self._keys.leader, self._keys.epoch)))
        step = 1 if self.view.epoch else 1 + crc32(self._settings.incarnation.encode()) % FIRST_EPOCHS
        leader = Leader(self._settings.member, self._settings.incarnation, self._highest + step, self._settings.peer)
        if not self._is_renewing:
            self.standing = Standing.CANDIDATE
        self._ask(Purpose.ELECTION, election(self._keys, conditions, leader, self._lease), now, leader)
