"""What proves an LLDP frame to be ours."""

from __future__ import annotations

from hashlib import blake2b
from hmac import compare_digest

_TIME_BYTES = 8
_MAC_BYTES = 16


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
