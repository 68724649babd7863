"""What discovery can be woken for."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

RESTART_GRACE_S = 30.0
"""From the first connection on, how long entries stay on switches that let VLANs in at ports not yet known, and those
of the tours of an earlier run: by then the same tours are laid anew, mostly."""


class TimerKind(IntEnum):
    """The kinds of timer, with what each is about."""

    READY = 1  # dpid: begin with LLDP though the switch has not confirmed its first entries
    CARRIER = 2  # end: a flapping port may come up
    CABLE = 3  # end: a flapping cable may come into service
    PROBE = 4  # end: the next LLDP frame
    EDGE = 5  # end: nothing was heard; decide
    REMEMBERED = 6  # end: forget the hosts that were here when the switch went
    HOST = 7  # MAC address: see whether the host is still there
    CHALLENGE = 8  # claimed address: ask its holder again, or settle
    GRACE = 9  # dpid: the switch was not connected for too long
    CHECK = 10  # end: its frame should have been heard by now
    SEGMENT = 11  # end: see whether its segment is still reached by a lower port
    FRAMES = 12  # None: there are frames again for what waits
    TOUR = 13  # number of the tour: ask its links
    TOUR_CHECK = 14  # number of the tour: its frame should have returned by now
    HUB = 15  # dpid: see which links its tours should ask
    DETECTION = 16  # None: tell how long silent failures go unnoticed
    MOVED = 17  # end: tell its segment's bridges again where hosts are, now that it is held
    AWAITED = 18  # end: it waits no longer for the switch that it led to before a restart
    FORMER = 19  # None: forget which switches ports led to before a restart that are not back
    RELEASE = 20  # None: remove what an earlier run left on switches and nobody wants
    LACP = 21  # end: tell its other end of it, or give that up
    LEG_FABRICS = 22  # None: see which legs are in other fabrics than those of their groups


class Timer(NamedTuple):
    """The key of a deadline."""

    kind: TimerKind
    subject: Any
