"""What discovery can be woken for."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple


class TimerKind(IntEnum):
    """The kinds of timer, with what each is about."""

    READY = 1  # dpid: begin with LLDP though the switch has not confirmed its first entries
    CARRIER = 2  # end: a flapping port may come up
    CABLE = 3  # end: a flapping cable may come into service
    PROBE = 4  # end: the next LLDP frame
    EDGE = 5  # end: nothing was heard; decide
    GUARD = 6  # end: let its packets through to the controller again
    REMEMBERED = 7  # end: forget the hosts that were here when the switch went
    HOST = 8  # MAC address: see whether the host is still there
    CHALLENGE = 9  # claimed address: ask its holder again, or settle
    GRACE = 10  # dpid: the switch was not connected for too long


class Timer(NamedTuple):
    """The key of a deadline."""

    kind: TimerKind
    subject: Any
