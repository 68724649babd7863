"""The frames that discovery sends out of ports, each with a token of its purpose, and what a token tells."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from controller.discovery.ports import PortState
from controller.discovery.settings import SecretGiven
from controller.discovery.tokens import FrameTokens
from controller.effects import SendPacket
from controller.wire.lldp import ECHO_MAC, NEAREST_BRIDGE_MAC, SEGMENT_MAC, TOUR_MAC, encode_lldp
from controller.wire.packets import Lldp

MICROSECONDS = 1e6
MIN_SECRET_BYTES, MAX_SECRET_BYTES = 16, 64


class FrameKind(IntEnum):
    """What a frame is to find out."""

    LLDP = 1  # which port is at the other end
    ECHO = 2  # whether the switch at the other end forwards
    SEGMENT = 3  # which other ports lead to the same segment
    TOUR = 4  # whether all links of a tour, and the switches at their other ends, forward


_PURPOSES = {
    FrameKind.LLDP: (b"vsrt-lldp", NEAREST_BRIDGE_MAC),
    FrameKind.ECHO: (b"vsrt-echo", ECHO_MAC),
    FrameKind.SEGMENT: (b"vsrt-segment", SEGMENT_MAC),
    FrameKind.TOUR: (b"vsrt-tour", TOUR_MAC),
}


class Frames:
    """Makes frames and knows them again.

    Parameters
    ----------
    secret : bytes
        The key of all tokens, 16 to 64 bytes; ValueError for another length.
    emit : Callable
        Takes each frame to be sent.
    """

    def __init__(self, secret: bytes, emit: Callable[[SendPacket], None]) -> None:
        self._emit = emit
        self.use_secret(secret)

    def use_secret(self, secret: bytes) -> None:
        """Make frames with another key from here on, and know those alone; ValueError for one of another length."""
        if not MIN_SECRET_BYTES <= len(secret) <= MAX_SECRET_BYTES:
            raise ValueError(f"the secret has {len(secret)} bytes, not {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES}")
        self._kinds = [
            (kind, FrameTokens(secret, purpose), eth_dst) for kind, (purpose, eth_dst) in _PURPOSES.items()
        ]

    def secret_given(self, event: SecretGiven, _now: float) -> tuple[()]:
        """Go by the key that the controllers of the fabric have."""
        self.use_secret(event.secret)
        return ()

    def send(self, kind: FrameKind, port: PortState, now: float) -> int:
        """Send a frame out of a port; return when it left by its token, in microseconds: later than any other."""
        port.sent_us = max(int(now * MICROSECONDS), port.sent_us + 1, port.arrived_us + 1)
        _kind, tokens, eth_dst = self._kinds[kind - 1]
        dpid, port_no = port.end
        data = encode_lldp(dpid, port_no, tokens.token(dpid, port_no, port.sent_us), eth_dst=eth_dst)
        self._emit(SendPacket(dpid, (port_no,), data))
        return port.sent_us

    def read(self, packet: Lldp) -> tuple[FrameKind, int] | None:
        """Return what a frame is and when it left, in microseconds; None for one that we did not make."""
        for kind, tokens, _eth_dst in self._kinds:
            sent_us = tokens.sent_us(packet.dpid, packet.port_no, packet.token)
            if sent_us is not None:
                return kind, sent_us
        return None
