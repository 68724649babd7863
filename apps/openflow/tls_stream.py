"""TLS over a socket that never waits, as a socket that never waits."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any, Protocol

RECORD_BYTES = 1 << 14
"""What one TLS record holds at most."""


NO_TLS = frozenset(("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNEXPECTED_MESSAGE", "BAD_RECORD_TYPE"))
"""What OpenSSL calls it where a peer speaks something else."""

NO_CERTIFICATE = "PEER_DID_NOT_RETURN_A_CERTIFICATE"
ALERT = "ALERT_"


class PeerJudge(Protocol):
    """Says why peers are refused whose certificates, as `getpeercert` has them, are sound; None: they are not."""

    def refusal(self, certificate: Mapping[str, Any] | None) -> str | None:
        """Return why a peer is not let in."""

    def dpid_refusal(self, certificate: Mapping[str, Any] | None, dpid: int) -> str | None:
        """Return why a peer may not speak for a datapath id."""


class NotLetInError(OSError):
    """A peer's certificate is sound, and its own name is not one that is let in; the text says so."""


def refusal(error: OSError) -> str:
    """Return in words why a handshake failed."""
    if isinstance(error, NotLetInError):
        return str(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return "it ended the connection during the TLS handshake"
    if not isinstance(error, ssl.SSLError):
        return f"the TLS handshake failed: {error.strerror or error}"
    reason = error.reason or "unknown reason"
    if reason in NO_TLS:
        return "it does not speak TLS"
    if reason == NO_CERTIFICATE:
        return "it showed no certificate"
    if ALERT in reason:
        return f"it does not accept the controller's certificate or offer: {_spelled(reason.partition(ALERT)[2])}"
    return f"the TLS handshake failed: {_spelled(reason)}"


def _spelled(reason: str) -> str:
    return reason.lower().replace("_", " ")


class TlsStream:
    """What a connection asks of a socket, with TLS between.

    `send` and `recv` raise BlockingIOError where they would wait. A message that `send` raised it for is to be given
    to it again: its bytes are on their way already.

    Parameters
    ----------
    raw
        A connected socket that never waits.
    context
        What the server speaks TLS by.
    judge
        Says who is let in; None where whoever has a sound certificate is.
    """

    def __init__(self, raw: Any, context: ssl.SSLContext, judge: PeerJudge | None = None) -> None:
        self._raw = raw
        self._judge = judge
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._unsent = b""
        self._owed_bytes = 0

    @property
    def has_unsent(self) -> bool:
        """Whether the peer has yet to take what TLS itself has for it."""
        return bool(self._unsent) or self._outgoing.pending > 0

    def shake_hands(self) -> bool:
        """Go on with the handshake and tell whether it is done; OSError where the peer is refused, or refuses."""
        self._fill()
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._push()
            return False
        except ssl.SSLError:
            self._push()  # the alert, which tells the peer why
            raise
        why = None if self._judge is None else self._judge.refusal(self._tls.getpeercert())
        if why is not None:
            raise NotLetInError(why)
        self._push()
        return True

    def dpid_refusal(self, dpid: int) -> str | None:
        """Return why the peer, whose handshake is done, may not speak for a datapath id; None where it may."""
        return None if self._judge is None else self._judge.dpid_refusal(self._tls.getpeercert(), dpid)

    def recv(self, size_bytes: int) -> bytes:
        """Return what the peer sent, taking in so much of it with what TLS adds; nothing where it has ended."""
        self._fill(size_bytes)
        found: list[bytes] = []
        while data := self._read():
            found.append(data)
        if not found and data is None:
            raise BlockingIOError
        return b"".join(found)

    def send(self, message: bytes | memoryview) -> int:
        """Send the beginning of a message, and return how many bytes of it."""
        if not self._owed_bytes:
            self._owed_bytes = self._tls.write(message[:RECORD_BYTES])
        if not self._push():
            raise BlockingIOError
        sent_bytes, self._owed_bytes = self._owed_bytes, 0
        return sent_bytes

    def fileno(self) -> int:
        """Return the descriptor of the socket."""
        return int(self._raw.fileno())

    def setblocking(self, flag: bool) -> None:
        """Have the socket wait or not; TLS over it never does."""
        self._raw.setblocking(flag)

    def settimeout(self, timeout_s: float | None) -> None:
        """Take no notice: nothing here waits."""

    def setsockopt(self, *arguments: Any) -> None:
        """Set an option of the socket."""
        self._raw.setsockopt(*arguments)

    def getsockname(self) -> Any:
        """Return the address of this end."""
        return self._raw.getsockname()

    def getpeername(self) -> Any:
        """Return the address of the other end."""
        return self._raw.getpeername()

    def close(self) -> None:
        """End the connection."""
        self._raw.close()

    def _fill(self, size_bytes: int = RECORD_BYTES) -> None:
        """Take in what the socket has."""
        try:
            data = self._raw.recv(size_bytes)
        except (BlockingIOError, InterruptedError):
            return
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()

    def _read(self) -> bytes | None:
        """Return some of what has been taken in, None where that is not a whole record, nothing at the peer's end."""
        try:
            return self._tls.read(RECORD_BYTES)
        except ssl.SSLWantReadError:
            return None
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""

    def _push(self) -> bool:
        """Hand the socket what TLS has for the peer, and tell whether it took all."""
        while self.has_unsent:
            if not self._unsent:
                self._unsent = self._outgoing.read()
            try:
                sent_bytes = self._raw.send(self._unsent)
            except (BlockingIOError, InterruptedError):
                return False
            self._unsent = self._unsent[sent_bytes:]
        return True
