"""Stable pseudo-random numbers, which spread what would come due at once."""

from __future__ import annotations

from hashlib import blake2b


def fraction(*parts: int) -> float:
    """Return a number in [0, 1) that depends on `parts` (non-negative, below 2^64) alone, evenly spread."""
    message = b"".join(part.to_bytes(8, "big") for part in parts)
    return int.from_bytes(blake2b(message, digest_size=6).digest(), "big") / (1 << 48)
