"""What the switches of a simulated fabric saw of their controller, counted as it happens."""

from __future__ import annotations

from collections import Counter, defaultdict

from controller.rules.pipeline import DISCOVERY_TAG, MULTICAST_TAG, UNICAST_TAG

APPS = {"discovery": DISCOVERY_TAG, "multicast": MULTICAST_TAG, "unicast": UNICAST_TAG}
"""The apps that keep flow entries, with the tag of their cookies."""


_IPV4_DST, _IPV6_DST = b"\x80\x00\x18\x04", b"\x80\x00\x36\x10"
"""OXM headers of ipv4_dst and ipv6_dst without a mask."""


class SeenEdits:
    """The edits of one app, or of one multicast group alone, since a moment; times are of the monotonic clock."""

    def __init__(self) -> None:
        self.count = 0
        self.switches: Counter[int] = Counter()
        self.unconfirmed: set[int] = set()
        self.first_s = self.last_s = self.confirmed_s = 0.0

    def edited(self, dpid: int, now: float) -> None:
        """Count an edit."""
        if not self.count:
            self.first_s = now
        self.count += 1
        self.switches[dpid] += 1
        self.unconfirmed.add(dpid)
        self.last_s = now

    def confirmed(self, dpid: int, now: float) -> None:
        """Take in that a barrier has been answered."""
        if dpid in self.unconfirmed:
            self.unconfirmed.discard(dpid)
            self.confirmed_s = now

    @property
    def settled(self) -> bool:
        """Whether a barrier has been answered after the last edit of every switch."""
        return not self.unconfirmed


class SwitchWatch:
    """Counts of messages by type, and of the edits by app."""

    def __init__(self) -> None:
        self.received: Counter[int] = Counter()
        self.edits: defaultdict[int, SeenEdits] = defaultdict(SeenEdits)
        self.followed: dict[bytes, SeenEdits] = {}
        self.readings = self.port_readings = 0
        self.packet_ins = self.lldp_frames = self.circles = 0

    def edited(self, cookie: int, dpid: int, match: bytes, now: float) -> None:
        """Count an edit of an entry with this cookie."""
        self.edits[cookie >> 48].edited(dpid, now)
        if self.followed:
            edits = self.followed.get(destination(match))
            if edits is not None:
                edits.edited(dpid, now)

    def confirmed(self, dpid: int, now: float) -> None:
        """Take in that a barrier has been answered: all edits before it are done, whosever they are."""
        for edits in (*self.edits.values(), *self.followed.values()):
            edits.confirmed(dpid, now)

    def follow(self, group: bytes) -> SeenEdits:
        """Count the edits whose match names a group apart, from now on and until `unfollow`."""
        edits = self.followed[group] = SeenEdits()
        return edits

    def unfollow(self, group: bytes) -> None:
        """Count the edits of a group apart no more."""
        self.followed.pop(group, None)

    def forget(self, dpid: int) -> None:
        """Wait no longer for the barriers of a switch: its connection has ended."""
        for edits in (*self.edits.values(), *self.followed.values()):
            edits.unconfirmed.discard(dpid)

    def of(self, app: str) -> SeenEdits:
        """Return the edits of an app; KeyError for one that makes none."""
        return self.edits[APPS[app]]

    def edit_count(self) -> int:
        """Return the edits of all apps."""
        return sum(edits.count for edits in self.edits.values())

    def last_edit_s(self) -> float:
        """Return when the last edit of any app arrived, 0 for never."""
        return max((edits.last_s for edits in self.edits.values()), default=0.0)

    @property
    def settled(self) -> bool:
        """Whether every app's edits have been confirmed."""
        return all(edits.settled for edits in self.edits.values())

    def start_anew(self) -> None:
        """Forget the edits counted so far; those that are not confirmed yet stay awaited."""
        for tag, edits in list(self.edits.items()):
            self.edits[tag] = SeenEdits()
            self.edits[tag].unconfirmed |= edits.unconfirmed


def destination(match: bytes) -> bytes:
    """Return the IP address that a match asks its packets to go to, nothing where it asks for none."""
    at = match.find(_IPV4_DST)
    if at >= 0:
        return match[at + 4 : at + 8]
    at = match.find(_IPV6_DST)
    return match[at + 4 : at + 20] if at >= 0 else b""
