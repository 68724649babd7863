"""How many frames discovery sends in a second, and whose turn it is where more would be due."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from enum import IntEnum
from math import ceil
from typing import Any, TypeAlias

from controller.discovery.timers import Timer, TimerKind
from controller.kernel.deadlines import Deadlines

SLOTS_PER_S = 16
"""Regular frames leave in slots, so that the controller wakes so many times a second and not once for each."""

GRANTS_AT_ONCE = 64
"""Frames that leave in one turn of the loop, between which the controller does what else there is to do."""

_BURST_S = 0.5
_LEAST_BURST = 32.0
_IDLE_BURST_S = 0.25
_LEAST_IDLE_BURST = 4.0
PROMPT_ANSWER_S = 0.25
"""Where answers take longer they wait for the controller, and as many fewer frames leave as they take longer."""

LEAST_SHARE = 1 / 16
"""Part of the frames that leave however long answers take."""

_SILENCE_S = 2 * PROMPT_ANSWER_S
"""Where none came for so long, none is on its way, however long the last ones took: twice as many frames leave."""

_QUICK_TURNS = 4
QUICK_SHARE = (_QUICK_TURNS - 1) / _QUICK_TURNS
"""Part of what tours leave of the frames at rest that goes to ports which are asked every interval."""
_ROUNDING = 1e-9


class FrameUrgency(IntEnum):
    """Whose turn comes first. From `QUICK` on, and for `TOUR`, the budget of a fabric at rest holds as well."""

    SUSPECT = 0  # what was missed
    TOUR = 1  # frames that ask many links at once
    NEW = 2  # the first frame of a port that came up, and the answer to a frame from a new neighbour
    AGAIN = 3  # further frames of what is new
    ECHO = 4  # whether the other end of a new link sends echo frames back
    QUICK = 5  # ports that are asked every interval
    SLOW = 6  # ports that need it rarely: hosts are there, or a tour asks their link


class FramePurpose(IntEnum):
    """What a frame is for; an ask is known by its purpose and subject, and waits once."""

    CHECK = 1  # end: it is suspect
    SINGLE = 2  # end: its tour was missed
    TOUR = 3  # number of the tour
    REPLY = 4  # end: say who is here
    ECHO = 5  # end: does the other end send echo frames back?
    PROBE = 6  # end: its regular frame
    SEGMENT = 7  # end: does it lead to the segment of another port?


Ask: TypeAlias = tuple[FramePurpose, Any]
_IDLE = (FrameUrgency.TOUR, FrameUrgency.QUICK, FrameUrgency.SLOW)
_FIRM = tuple(urgency for urgency in FrameUrgency if urgency not in _IDLE)
_TURN = Timer(TimerKind.FRAMES, None)
_FIRST = (FrameUrgency.SUSPECT, FrameUrgency.TOUR, FrameUrgency.NEW, FrameUrgency.AGAIN, FrameUrgency.ECHO)


class Allowance:
    """Frames that may be sent: `rate_per_s` on average, `burst` at once. Debts are made up for before the next."""

    def __init__(self) -> None:
        self.rate_per_s = self.burst = self._level = 0.0
        self._updated = float("-inf")

    def change(self, rate_per_s: float, burst: float) -> None:
        """Go by another rate and burst from now on."""
        self.rate_per_s, self.burst = rate_per_s, burst

    def level(self, now: float) -> float:
        """Return how many frames there are."""
        if now > self._updated:
            self._level = min(self.burst, self._level + (now - self._updated) * self.rate_per_s)
            self._updated = now
        return self._level

    def charge(self, count: int) -> None:
        """Take frames that have been sent."""
        self._level -= count

    def wait_s(self, now: float) -> float:
        """Return the time until there is a frame, 0 where there is one."""
        return max(0.0, (1.0 - self.level(now)) / self.rate_per_s)


class FrameBudget:
    """Lets frames go at once while there are any, else in the order of their urgency, then of their coming.

    Parameters
    ----------
    frames_per_s, idle_frames_per_s : float
        Frames in a second on average: of all urgencies, and of those that a fabric at rest has, which are never more.
    deadlines : Deadlines
        Where the next turn is set; the owner calls `on_deadline` for it.

    `granted` is to hold, by purpose, who sends: it is told the subject and the time, and returns how many frames it
    sent, 0 where there is no need for them any more.
    """

    def __init__(self, frames_per_s: float, idle_frames_per_s: float, deadlines: Deadlines[Timer]) -> None:
        self._all, self._idle = Allowance(), Allowance()
        self.share = 1.0
        """Part of the frames that may leave as answers come now."""
        self._answered_s = 0.0
        self.change(frames_per_s, idle_frames_per_s)
        self._deadlines = deadlines
        self._waiting: tuple[OrderedDict[Ask, float], ...] = tuple(OrderedDict() for _ in FrameUrgency)
        self._turn = 0
        self.granted: dict[FramePurpose, Callable[[Any, float], int]] = {}
        self.sent_counts = [0] * len(FrameUrgency)
        self.waited_s = [0.0] * len(FrameUrgency)
        """By urgency, how long what was sent last had waited."""

    @property
    def idle_frames_per_s(self) -> float:
        """Return how many frames a fabric at rest may have in a second where answers come promptly."""
        return self._idle_frames_per_s

    @property
    def waiting_count(self) -> int:
        """Return how many asks wait."""
        return sum(map(len, self._waiting))

    def change(self, frames_per_s: float, idle_frames_per_s: float) -> None:
        """Go by other rates from now on."""
        self._frames_per_s, self._idle_frames_per_s = frames_per_s, min(frames_per_s, idle_frames_per_s)
        self._use_share(self.share)

    def answers_take(self, answer_s: float, now: float) -> None:
        """Take in how long answers take of late: a controller that is behind with them asks less."""
        share = 1.0
        if answer_s > PROMPT_ANSWER_S:
            share = max(1, round(PROMPT_ANSWER_S / answer_s / LEAST_SHARE)) * LEAST_SHARE
        self._answered_s = now
        if share != self.share:
            self._use_share(share)
            self._set_timer(now)

    def _heed_silence(self, now: float) -> None:
        """Let more frames go where those that leave, as to ports that lead to hosts, are never answered."""
        if self.share < 1.0 and now - self._answered_s >= _SILENCE_S:
            self._answered_s = now
            self._use_share(min(1.0, 2 * self.share))

    def _use_share(self, share: float) -> None:
        self.share = share
        per_s, idle_per_s = share * self._frames_per_s, share * self._idle_frames_per_s
        self._all.change(per_s, max(_LEAST_BURST, per_s * _BURST_S))
        self._idle.change(idle_per_s, max(_LEAST_IDLE_BURST, idle_per_s * _IDLE_BURST_S))

    def waits(self, urgency: FrameUrgency, purpose: FramePurpose, subject: Any) -> bool:
        """Tell whether an ask waits for its turn."""
        return (purpose, subject) in self._waiting[urgency]

    def ask(self, urgency: FrameUrgency, purpose: FramePurpose, subject: Any, now: float) -> None:
        """Let the sender of a purpose have its turn: now, or as soon as there are frames. One that waits goes on."""
        ask = (purpose, subject)
        if ask in self._waiting[urgency]:
            return
        self._waiting[urgency][ask] = now
        if self._next(now) is urgency and len(self._waiting[urgency]) == 1:
            self._grant(urgency, now)
        else:
            self._set_timer(now)

    def on_deadline(self, _subject: Any, now: float) -> None:
        """Give some of those their turns whose time has come; the others have theirs at once after that."""
        self._heed_silence(now)
        for _ in range(GRANTS_AT_ONCE):
            urgency = self._next(now)
            if urgency is None:
                self._set_timer(now)
                return
            self._grant(urgency, now)
        self._deadlines.set(_TURN, now)

    def _next(self, now: float) -> FrameUrgency | None:
        """Return the urgency of who is next, None where nobody may send now."""
        if self._all.level(now) < 1 - _ROUNDING:
            return None
        may_idle = self._idle.level(now) >= 1 - _ROUNDING
        for urgency in _FIRST:
            if self._waiting[urgency] and (may_idle or urgency is not FrameUrgency.TOUR):
                return urgency
        if not may_idle:
            return None
        slow_first = self._turn % _QUICK_TURNS == _QUICK_TURNS - 1
        for urgency in (
            (FrameUrgency.SLOW, FrameUrgency.QUICK) if slow_first else (FrameUrgency.QUICK, FrameUrgency.SLOW)
        ):
            if self._waiting[urgency]:
                return urgency
        return None

    def _grant(self, urgency: FrameUrgency, now: float) -> None:
        (purpose, subject), since_s = self._waiting[urgency].popitem(last=False)
        self.waited_s[urgency] = now - since_s
        self._turn += urgency >= FrameUrgency.QUICK
        count = self.granted[purpose](subject, now)
        self.sent_counts[urgency] += count
        self._all.charge(count)
        if urgency in _IDLE:
            self._idle.charge(count)

    def _set_timer(self, now: float) -> None:
        waiting = self._waiting
        if any(waiting[urgency] for urgency in _FIRM):
            wait_s = self._all.wait_s(now)
        elif any(waiting[urgency] for urgency in _IDLE):
            wait_s = max(self._all.wait_s(now), self._idle.wait_s(now))
        else:
            return
        self._deadlines.set_sooner(_TURN, slot_after(now + wait_s))


def slot_after(at: float) -> float:
    """Return the beginning of the first slot that begins at `at` or later."""
    return ceil(at * SLOTS_PER_S) / SLOTS_PER_S


def slots_later(now: float, after_s: float) -> float:
    """Return the beginning of a slot, about `after_s` after that of `now`: who goes by it each time is regular."""
    return (int(now * SLOTS_PER_S) + max(1, round(after_s * SLOTS_PER_S))) / SLOTS_PER_S
