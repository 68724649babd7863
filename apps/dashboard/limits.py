"""What one client, and all together, may take of the server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Bounds of connections, requests and streams."""

    connections: int = 256
    streams: int = 64
    handshake_s: float = 5.0
    """Time for a TLS handshake."""
    head_s: float = 10.0
    """Time from a connection's or a request's first moment to the end of its head."""
    head_bytes: int = 16384
    body_s: float = 10.0
    body_bytes: int = 65536
    request_bytes: int = 1 << 19
    """Head, body and the frames of its chunks together."""
    unread_s: float = 5.0
    """How long a client may read next to nothing while its buffer stands full."""
    unread_bytes: int = 4096
    """What it must have read in that time."""
    idle_s: int = 15
    """How long a connection stays open after an answer."""
    heartbeat_s: float = 10.0
    """Time after which a stream without changes says that it is there."""
    guesses: int = 10
    """Different wrong tokens that a client may send at once, before any token of it is refused for a while."""
    guess_s: float = 6.0
    """Time after which it may send one more."""
    guessers: int = 1024
    """Clients of which this is known; beyond, those whose last wrong token is the oldest are forgotten."""
