"""What the switches of a simulated fabric saw of their controller, counted as it happens."""

from __future__ import annotations

from collections import Counter, defaultdict

from controller.rules.installer import Installer
from controller.rules.pipeline import DISCOVERY_TAG, MULTICAST_TAG, UNICAST_TAG

APPS = {"discovery": DISCOVERY_TAG, "multicast": MULTICAST_TAG, "unicast": UNICAST_TAG}
"""The apps that keep flow entries, with the tag of their cookies."""

XID_TAGS = {app: Installer(tag).xid_tag for app, tag in APPS.items()}
"""The upper 8 bits of the transaction ids of their messages."""


class Edits:
    """The edits of one app, or of one multicast group alone, since a moment; times are of the monotonic clock."""

    def __init__(self, group: bytes | None = None) -> None:
        self.group = group
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


class Watch:
    """Counts of messages by type, and of the edits by app."""

    def __init__(self) -> None:
        self.received: Counter[int] = Counter()
        self.edits: defaultdict[int, Edits] = defaultdict(Edits)
        self.group: Edits | None = None
        self.readings = self.port_readings = 0
        self.packet_ins = self.lldp_frames = self.circles = 0

    def edited(self, tag: int, dpid: int, match: bytes, now: float) -> None:
        """Count an edit."""
        self.edits[tag].edited(dpid, now)
        group = self.group
        if group is not None and group.group in match:  # type: ignore[operator]
            group.edited(dpid, now)

    def confirmed(self, tag: int, dpid: int, now: float) -> None:
        """Take in that a barrier has been answered."""
        self.edits[tag].confirmed(dpid, now)
        if self.group is not None and tag == XID_TAGS["multicast"]:
            self.group.confirmed(dpid, now)

    def follow(self, group: bytes) -> Edits:
        """Count the edits of a group apart from now on, of no other any more: those whose match names its address."""
        self.group = Edits(group)
        return self.group

    def forget(self, dpid: int) -> None:
        """Wait no longer for the barriers of a switch: its connection has ended."""
        for edits in (*self.edits.values(), *(() if self.group is None else (self.group,))):
            edits.unconfirmed.discard(dpid)

    def of(self, app: str) -> Edits:
        """Return the edits of an app; KeyError for one that makes none."""
        return self.edits[XID_TAGS[app]]

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
            self.edits[tag] = Edits()
            self.edits[tag].unconfirmed |= edits.unconfirmed
