"""Secrets and stable pseudo-random numbers: what proves an LLDP frame to be ours, and what spreads timers."""

from __future__ import annotations

from hashlib import blake2b

TOKEN_BYTES = 16
_ROUNDING = 1e-9


def lldp_token(secret: bytes, dpid: int, port_no: int) -> bytes:
    """Return the 16 bytes that only a holder of `secret` can put into an LLDP frame for this port.

    Keyed BLAKE2b (RFC 7693) over the datapath id and port number; `secret` has at most 64 bytes (ValueError beyond).
    """
    message = dpid.to_bytes(8, "big") + port_no.to_bytes(4, "big")
    return blake2b(message, digest_size=TOKEN_BYTES, key=secret, person=b"vsrt-lldp").digest()


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

    def take(self, now: float, count: int = 1) -> bool:
        """Take `count` tokens, or none where there are fewer, and tell whether there were enough."""
        if now > self._updated:
            self._level = min(self._burst, self._level + (now - self._updated) * self._rate_per_s)
            self._updated = now
        if self._level < count - _ROUNDING:
            return False
        self._level -= count
        return True

    def wait_s(self, now: float) -> float:
        """Return the time until there is a token, 0 where there is one."""
        level = min(self._burst, self._level + max(0.0, now - self._updated) * self._rate_per_s)
        return max(0.0, (1.0 - level) / self._rate_per_s)
