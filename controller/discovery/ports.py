"""What discovery knows of one port."""

from __future__ import annotations

from dataclasses import dataclass, field

from controller.kernel.ports import End
from controller.kernel.token_bucket import TokenBucket
from topology.events import PortRole

MAX_PORT_NO = {1: 0xFF00, 4: 0xFFFFFF00}
"""The highest number of a physical port (OFPP_MAX) by OpenFlow version; reserved ports lie above it."""


@dataclass(slots=True)
class PortState:
    """A port, what was heard at it, and where its own frames were heard.

    `up` is false while a flapping port is held down, whatever `carrier` says. `heard` is the port whose LLDP frames
    arrive here, `heard_by` the one where this port's arrive. `silent` is set when the first probes went unanswered;
    `was_trunk` is the switch at the other end while that is not connected. `described_bps` is the speed that the
    switch tells, `speed_bps` the one to go by. `sent_us` is when the last LLDP frame left; of all that arrived
    anywhere, `arrived_us` is when the latest had left, and no frame counts that left before it. `echoes` tells
    whether the switch at the other end sends echo frames back, which was tried `echo_tries` times; `echoed_us` is
    when the last that came back had left. `lower` are the lower ports that lead to the same segment behind somebody
    else's switch, with the time when a frame last crossed it; a port with such ones is `held`. A leg of a group that
    speaks LACP, or whose host uses one leg at a time, is no port to hosts while it is not bundled (`is_bundled`), nor
    is one in another fabric than its group (`is_barred`). Until `guarded_until_s` its switch drops LLDP, ARP and ND
    that arrive at the port.
    """

    end: End
    flaps: TokenBucket
    guard: TokenBucket
    described_bps: float = 0.0
    speed_bps: float = 0.0
    carrier: bool = False
    up: bool = False
    probing_since: float = 0.0
    role: PortRole = PortRole.UNKNOWN
    heard: End | None = None
    heard_by: End | None = None
    silent: bool = False
    was_trunk: int | None = None
    sent_us: int = 0
    arrived_us: int = 0
    echoes: bool = False
    echo_tries: int = 0
    echoed_us: int = 0
    lower: dict[End, float] = field(default_factory=dict)
    held: bool = False
    is_bundled: bool = True
    is_barred: bool = False
    segment_asked_s: float = float("-inf")
    segment_seen: tuple[End, int] | None = None
    guarded_until_s: float = float("-inf")
    probe_count: int = 0
    unanswered_count: int = 0
    early: dict[tuple[bytes, bytes], float] = field(default_factory=dict)

    def peers(self) -> tuple[End, ...]:
        """Return the ports that this one hears or that hear it."""
        return tuple({end for end in (self.heard, self.heard_by) if end is not None})

    def looped(self) -> bool:
        """Tell whether a cable leads back to this switch."""
        return any(end[0] == self.end[0] for end in self.peers())

    def current_role(self) -> PortRole:
        """Return the role that follows from what was heard."""
        if not self.up:
            return PortRole.DOWN
        if self.looped():
            return PortRole.UNKNOWN
        if self.heard is not None or self.heard_by is not None or self.was_trunk is not None:
            return PortRole.TRUNK
        is_leg = self.is_bundled and not self.is_barred
        return PortRole.EDGE if self.silent and not self.held and is_leg else PortRole.UNKNOWN
