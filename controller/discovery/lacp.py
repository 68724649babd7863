"""LACP for the legs of link aggregation groups (IEEE 802.1AX, 6.4): the controller is the actor at every leg.

One instance of the receive, periodic and mux machines per leg, with what a controller needs of them: it always
aggregates, is active, wants the short timeout, and couples collecting with distributing. All legs of a group are
ports of one system, which no other group is of, so that a host whose legs lead to two switches sees one partner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b
from typing import NamedTuple, Protocol

from controller.config.policy import LinkAggregation
from controller.kernel.ports import End
from controller.kernel.token_bucket import TokenBucket
from controller.wire.addresses import format_mac
from controller.wire.lacp import (
    ACTIVITY,
    AGGREGATION,
    COLLECTING,
    DISTRIBUTING,
    EXPIRED,
    SYNCHRONIZATION,
    TIMEOUT,
    encode_lacpdu,
)
from controller.wire.lacp import DEFAULTED as DEFAULTED_BIT
from controller.wire.packets import Lacpdu, LacpEnd

SHORT_TIMEOUT_S, FAST_PERIODIC_S, SLOW_PERIODIC_S = 3.0, 1.0, 30.0
"""Times of 6.4.4: how long a partner may be silent that is told each second, and how often the other end is told."""

LISTEN_S = 1.5
"""How long a leg that comes up only listens: a partner that goes on as before, while the controller was away, is
answered with what it knows of the controller, and never learns that it was away."""

SENT_AT_ONCE, SENT_WITHIN_S = 3, 1.0
"""Data units that one leg may send in a time (6.4.16), those beyond are sent after it."""

RETURNS_AT_ONCE, RETURNS_PER_S = 5, 0.2
"""How often a leg may come into step while its port is up: so often at first, and then so often a second."""

SYSTEM_PRIORITY = PORT_PRIORITY = 0x8000
KEY = 1
_NOBODY = LacpEnd(0, bytes(6), 0, 0, 0, 0)
_SAME = ACTIVITY | TIMEOUT | SYNCHRONIZATION | AGGREGATION
"""The bits of ours that a partner must have right of us (NTT, 6.4.7)."""


class Receive(IntEnum):
    """The states of the receive machine in which a port that is up may be."""

    EXPIRED = 1
    DEFAULTED = 2
    CURRENT = 3


class _Place(NamedTuple):
    """Of which group a leg is, and as which port of its system."""

    group: str
    system: bytes
    port: int
    legs: tuple[End, ...]


@dataclass(slots=True)
class LacpLeg:
    """What is known of a leg that is up; `partner` is what the other end said last, `until_s` when the state ends.

    `knows_us`: the other end named us rightly. `selected`: it is the system that the group leads to. `works`: it is
    in step with us too, for which it takes one of `returns`. Of the data units that were sent since `window_s` there
    were `sent_count`.
    """

    returns: TokenBucket
    partner: LacpEnd = _NOBODY
    state: Receive = Receive.EXPIRED
    until_s: float = 0.0
    knows_us: bool = False
    selected: bool = False
    works: bool = False
    send_s: float = 0.0
    window_s: float = float("-inf")
    sent_count: int = 0

    @property
    def is_impatient(self) -> bool:
        """Whether the other end gives the leg up when it hears nothing for `SHORT_TIMEOUT_S`, as it chose itself."""
        return bool(self.partner.state & TIMEOUT)

    @property
    def may_be_selected(self) -> bool:
        """Whether the other end spoke of late, and aggregates."""
        return self.state is Receive.CURRENT and bool(self.partner.state & AGGREGATION)


class LacpOwner(Protocol):
    """What the machines ask the core around them."""

    def send_lacpdu(self, end: End, frame: bytes) -> None:
        """Send a frame out of a port."""

    def wake_lacp(self, end: End, due_s: float) -> None:
        """Have `Lacp.due` called for a port at a time, and at no other."""

    def leg_works(self, end: End, works: bool, now: float) -> None:
        """Act on a leg that may be used from now on, or no longer."""

    def counted(self, kind: str, end: End, does: str, now: float) -> None:
        """Count something odd, and tell of it now and then."""


class Lacp:
    """The machines of all legs of groups in mode `lacp`."""

    def __init__(self, groups: tuple[LinkAggregation, ...], owner: LacpOwner) -> None:
        self._owner = owner
        self._legs: dict[End, LacpLeg] = {}
        self.is_barred: Callable[[End], bool] = lambda _end: False
        """Tells whether a leg is refused, whatever the other end says: it is never in step there."""
        self.places: Mapping[End, _Place] = _places(groups)

    def use(self, groups: tuple[LinkAggregation, ...]) -> list[End]:
        """Go by other groups, and return the ports of which other things are said; at those all is to begin anew."""
        before, self.places = self.places, _places(groups)
        changed = sorted(end for end in before.keys() | self.places.keys() if before.get(end) != self.places.get(end))
        for end in changed:
            self.down(end)
        return changed

    def leg(self, end: End) -> LacpLeg | None:
        """Return what is known of a leg that is up."""
        return self._legs.get(end)

    def group_of(self, system: bytes, key: int) -> str | None:
        """Return the group whose legs lead to a system (6 bytes) with a key, None where none does."""
        legs = ((end, leg) for end, leg in self._legs.items() if leg.selected)
        return next((self.places[end].group for end, leg in legs if leg.partner[1:3] == (system, key)), None)

    def up(self, end: End, now: float) -> None:
        """Begin at a leg that has come up."""
        if end in self.places and end not in self._legs:
            leg = self._legs[end] = LacpLeg(
                TokenBucket(RETURNS_AT_ONCE, RETURNS_PER_S, now), until_s=now + SHORT_TIMEOUT_S, send_s=now + LISTEN_S
            )
            self._wake(end, leg)

    def down(self, end: End) -> None:
        """Forget a leg that is down, or none any more."""
        self._legs.pop(end, None)

    def received(self, end: End, pdu: Lacpdu, now: float) -> None:
        """Take in what the other end of a leg says of itself, and of us."""
        leg = self._legs.get(end)
        if leg is None:
            return
        if pdu.actor.system == self.places[end].system:
            self._owner.counted("lacp-returned", end, "receives LACP that it sent itself: it leads back here", now)
            return
        leg.partner, leg.state, leg.until_s = pdu.actor, Receive.CURRENT, now + SHORT_TIMEOUT_S
        leg.knows_us = pdu.partner[:5] == self._actor(end, leg)[:5] and bool(pdu.partner.state & AGGREGATION)
        self._select(end, now)
        is_told = leg.knows_us and not (pdu.partner.state ^ self._actor(end, leg).state) & _SAME
        leg.send_s = min(leg.send_s, now + self._period_s(leg)) if is_told else now
        self._send_due(end, leg, now)

    def due(self, end: End, now: float) -> None:
        """Send what is due, and give up an other end that is silent."""
        leg = self._legs.get(end)
        if leg is None:
            return
        if now >= leg.until_s:
            if leg.state is Receive.CURRENT:
                leg.state, leg.until_s, leg.send_s = Receive.EXPIRED, now + SHORT_TIMEOUT_S, now
                text = "hears no LACP any more: it is no working leg of its link aggregation group until it does"
                self._owner.counted("lacp-expired", end, text, now)
            elif leg.state is Receive.EXPIRED:
                leg.state, leg.until_s, leg.partner = Receive.DEFAULTED, float("inf"), _NOBODY
            self._select(end, now)
        self._send_due(end, leg, now)

    def reconsider(self, end: End, now: float) -> None:
        """Look again at a leg that is refused from now on, or no longer."""
        if end in self._legs:
            self._select(end, now)
            self._send_due(end, self._legs[end], now)

    def _select(self, end: End, now: float) -> None:
        """Have the legs of a group work whose other ends are one system: that of those which work already, if any."""
        place = self.places[end]
        legs = [(at, leg) for at in place.legs if (leg := self._legs.get(at)) is not None]
        spoken = [leg for at, leg in legs if leg.may_be_selected and not self.is_barred(at)]
        spoken.sort(key=lambda leg: (not leg.works, not leg.selected))
        for at, leg in legs:
            may_be = leg.may_be_selected and not self.is_barred(at)
            selected = may_be and leg.partner[1:3] == spoken[0].partner[1:3]
            works = selected and leg.knows_us and bool(leg.partner.state & SYNCHRONIZATION)
            if works and not leg.works and not leg.returns.take(now):
                works = False
                text = "goes into step and out of it by LACP too often: it is no working leg for some seconds"
                self._owner.counted("lacp-flapping", at, text, now)
            if may_be and not selected and (leg.selected or at == end):
                text = (
                    f"leads to the system {format_mac(leg.partner.system)} (key {leg.partner.key}) by LACP, and"
                    f" another leg of {place.group} to another: it is no leg"
                )
                self._owner.counted("lacp-partner-differs", at, text, now)
            is_news = (selected, works) != (leg.selected, leg.works)
            was_working, leg.selected, leg.works = leg.works, selected, works
            if works is not was_working:
                self._owner.leg_works(at, works, now)
            if is_news:
                leg.send_s = now
                if at != end:
                    self._send_due(at, leg, now)

    def _actor(self, end: End, leg: LacpLeg) -> LacpEnd:
        """Return what is said of us at a leg."""
        place = self.places[end]
        state = ACTIVITY | TIMEOUT | AGGREGATION
        if leg.selected:
            state |= SYNCHRONIZATION
        if leg.works:
            state |= COLLECTING | DISTRIBUTING
        if leg.state is Receive.EXPIRED:
            state |= EXPIRED
        elif leg.state is Receive.DEFAULTED:
            state |= DEFAULTED_BIT
        return LacpEnd(SYSTEM_PRIORITY, place.system, KEY, PORT_PRIORITY, place.port, state)

    def _period_s(self, leg: LacpLeg) -> float:
        is_fast = leg.state is Receive.EXPIRED or bool(leg.partner.state & TIMEOUT)
        return FAST_PERIODIC_S if is_fast else SLOW_PERIODIC_S

    def _send_due(self, end: End, leg: LacpLeg, now: float) -> None:
        if now >= leg.send_s:
            if now >= leg.window_s + SENT_WITHIN_S:
                leg.window_s, leg.sent_count = now, 0
            if leg.sent_count < SENT_AT_ONCE:
                leg.sent_count += 1
                leg.send_s = now + self._period_s(leg)
                system = self.places[end].system
                self._owner.send_lacpdu(end, encode_lacpdu(Lacpdu(system, self._actor(end, leg), leg.partner)))
            else:
                leg.send_s = leg.window_s + SENT_WITHIN_S
        self._wake(end, leg)

    def _wake(self, end: End, leg: LacpLeg) -> None:
        self._owner.wake_lacp(end, min(leg.send_s, leg.until_s))


def _places(groups: tuple[LinkAggregation, ...]) -> dict[End, _Place]:
    places: dict[End, _Place] = {}
    for group in groups:
        if group.mode == "lacp":
            system = b"\x02V" + blake2b(group.name.encode(), digest_size=4).digest()
            legs = tuple([(port.dpid, port.port_no) for port in group.ports])
            for number, end in enumerate(legs, 1):
                places[end] = _Place(group.name, system, number, legs)
    return places
