"""Secrets and stable pseudo-random numbers: what proves an LLDP frame to be ours, and what spreads timers."""

from __future__ import annotations

from hashlib import blake2b
from hmac import compare_digest

_TIME_BYTES = 8
_MAC_BYTES = 16
_ROUNDING = 1e-9


class FrameTokens:
    """Makes and checks what proves a frame of one purpose to be ours: when it was sent, and a code over that.

    The code is keyed BLAKE2b (RFC 7693) over datapath id, port number and time. `secret` has at most 64 bytes,
    `purpose` 16 (ValueError beyond). The secret belongs to one run of the controller: frames of others prove nothing.
    """

    def __init__(self, secret: bytes, purpose: bytes) -> None:
        self._keyed = blake2b(digest_size=_MAC_BYTES, key=secret, person=purpose)

    def token(self, dpid: int, port_no: int, sent_us: int) -> bytes:
        """Return the token of the frame that leaves a port at a time in microseconds."""
        return self._token(dpid, port_no, sent_us.to_bytes(_TIME_BYTES, "big"))

    def sent_us(self, dpid: int, port_no: int, token: bytes) -> int | None:
        """Return when a frame with this token was sent, in microseconds; None where the token is false."""
        sent = token[:_TIME_BYTES]
        if not compare_digest(token, self._token(dpid, port_no, sent)):
            return None
        return int.from_bytes(sent, "big")

    def _token(self, dpid: int, port_no: int, sent: bytes) -> bytes:
        code = self._keyed.copy()
        code.update(dpid.to_bytes(8, "big") + port_no.to_bytes(4, "big") + sent)
        return sent + code.digest()


def fraction(*parts: int) -> float:
    """Return a number in [0, 1) that depends on `parts` (non-negative, below 2^64) alone, evenly spread."""
    message = b"".join(part.to_bytes(8, "big") for part in parts)
    return int.from_bytes(blake2b(message, digest_size=6).digest(), "big") / (1 << 48)


class TokenBucket:
    """At most `burst` events at once and `rate_per_s` on average."""

    __slots__ = ("_burst", "_level", "_rate_per_s", "_updated")

    def __init__(self, burst: float, rate_per_s: float, now: float) -> None:
        self._burst = burst
        self._rate_per_s = rate_per_s
        self._level = burst
        self._updated = now

    def take(self, now: float, count: int = 1, leave: float = 0.0) -> bool:
        """Take `count` tokens, or none where so many and `leave` others are not there; tell whether they were."""
        if now > self._updated:
            self._level = min(self._burst, self._level + (now - self._updated) * self._rate_per_s)
            self._updated = now
        if self._level < count + leave - _ROUNDING:
            return False
        self._level -= count
        return True

    def wait_s(self, now: float) -> float:
        """Return the time until there is a token, 0 where there is one."""
        level = min(self._burst, self._level + max(0.0, now - self._updated) * self._rate_per_s)
        return max(0.0, (1.0 - level) / self._rate_per_s)
