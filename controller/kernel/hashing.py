"""Hashes that decide between equals: the same in every process, unlike Python's own."""

from __future__ import annotations

from hashlib import blake2b


def stable_hash(*parts: object) -> int:
    """Return an odd 64-bit hash of `parts` that is the same in every process."""
    data = b"\x1f".join(part if isinstance(part, bytes) else repr(part).encode() for part in parts)
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big") | 1
