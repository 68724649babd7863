"""Groups that found no room when they came in after all: how soon each is tried again."""

from __future__ import annotations

from math import inf

from controller.effects import Effect, Notice
from controller.kernel.notices import NoticeLimiter
from controller.wire.addresses import format_ip

RETRY_FIRST_S, RETRY_LAST_S = 0.5, 30.0
"""How soon a group that found no room after all is tried again, first and at last."""


class FailedSwaps:
    """Remembers of each such group until when it waits, and how often it was tried."""

    def __init__(self) -> None:
        self._retries: dict[bytes, tuple[float, int]] = {}
        self._limiter = NoticeLimiter()

    def waits(self, address: bytes, now: float) -> bool:
        """Tell whether a group is not to be tried again yet."""
        return self._retries.get(address, (-inf, 0))[0] > now

    def failed(self, address: bytes, dpid: int, carried_per_second: float, now: float) -> list[Effect]:
        """Have a group wait that a switch had no room for; return a notice where none was given lately."""
        until_s, tries = self._retries.get(address, (now, 0))
        if now - until_s > RETRY_LAST_S:
            tries = 0
        wait_s = min(RETRY_FIRST_S * 2**tries, RETRY_LAST_S)
        self._retries[address] = (now + wait_s, min(tries + 1, 16))
        if not self._limiter.passes(("swap-in-failed", dpid), now):
            return []
        name = format_ip(address)
        text = (
            f"Group {name} found no room at switch {dpid} after all and is out: the controller hands its packets on, "
            f"{carried_per_second:g} a second at most, and tries again in {wait_s:g} s."
        )
        return [Notice("swap-in-failed", text, (("group", name), ("dpid", dpid)))]

    def forget(self, address: bytes) -> None:
        """Drop what is known of a group."""
        self._retries.pop(address, None)

    def clear(self) -> None:
        """Drop all that is known."""
        self._retries.clear()
