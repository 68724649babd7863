"""What a capture holds, by group: how its frames arrive, who sends them, and who joins and leaves."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from controller.captures.arrivals import ArrivalTally
from controller.captures.capture_file import CapturedFrame
from controller.captures.interests import CapturedInterest, CapturedInterests, InterestKind
from controller.kernel.domains import in_domain
from controller.wire.addresses import format_ip, format_mac
from controller.wire.ethernet import ETHERTYPE_QINQ, ETHERTYPE_VLAN
from controller.wire.frame import decode
from controller.wire.packets import Data, Malformed, Packet, Query, Report

GROUPS_BOUND = 65_536
SENDERS_BOUND = 262_144
"""Groups, and pairs of group and sender, that are told apart at most; frames of those beyond are counted."""

CHANGES_BOUND = 262_144
"""Joins and leaves that are kept at most; those beyond are counted."""

_TAGS = (ETHERTYPE_VLAN.to_bytes(2, "big"), ETHERTYPE_QINQ.to_bytes(2, "big"))
_MOST_TAGS = 2


def packet_of(data: bytes) -> tuple[Packet, int]:
    """Return what a frame holds, and the id of its innermost VLAN, 0 where it has no tag."""
    vlan_id = 0
    for _ in range(_MOST_TAGS):
        if data[12:14] not in _TAGS or len(data) < 18:
            break
        vlan_id = int.from_bytes(data[14:16], "big") & 0xFFF
        data = data[:12] + data[16:]
    return decode(data), vlan_id


class SenderFigures:
    """What one sender sent to one group; `mac` is the address of its first frame."""

    __slots__ = ("first_ns", "frame_count", "last_ns", "mac", "size_bytes")

    def __init__(self, mac: bytes, at_ns: int) -> None:
        self.mac = mac
        self.first_ns = self.last_ns = at_ns
        self.frame_count = self.size_bytes = 0

    def rate_bps(self) -> float | None:
        """Return the mean rate from the first to the last frame, None of fewer than two or of no time."""
        lasted_ns = self.last_ns - self.first_ns
        if self.frame_count < 2 or lasted_ns <= 0:
            return None
        return self.size_bytes * 8e9 * (self.frame_count - 1) / self.frame_count / lasted_ns


class GroupSender(NamedTuple):
    """A sender of a group, as bytes; a group in a VLAN has its id behind it."""

    group: bytes
    source: bytes


class CaptureFigures:
    """Counts a capture's frames as they come.

    Attributes
    ----------
    frame_count, other_count
        Frames in all, and those that are neither data of groups nor reports or queries.
    malformed
        Frames that break their protocol, by reason.
    uncounted
        Frames of groups or senders that found no room.
    first_ns, last_ns
        The earliest and the latest time.
    arrivals, senders
        By group; by group and sender.
    interests
        Joins and leaves, and members that were there before, in their order.
    """

    def __init__(self) -> None:
        self.frame_count = self.other_count = self.uncounted = self.missed_interests = 0
        self.query_count = self.report_count = 0
        self.first_ns = self.last_ns = 0
        self.malformed: Counter[str] = Counter()
        self.arrivals: dict[bytes, ArrivalTally] = {}
        self.senders: dict[GroupSender, SenderFigures] = {}
        self.interests: list[CapturedInterest] = []
        self._follower = CapturedInterests()

    def count(self, frame: CapturedFrame) -> None:
        """Count one frame."""
        at_ns = frame.at_ns
        if not self.frame_count:
            self.first_ns = self.last_ns = at_ns
        elif at_ns > self.last_ns:
            self.last_ns = at_ns
        elif at_ns < self.first_ns:
            self.first_ns = at_ns
        self.frame_count += 1
        packet, vlan_id = packet_of(frame.data)
        if isinstance(packet, Data):
            self._data(packet, in_domain(packet.group, vlan_id), at_ns, frame.wire_bytes)
        elif isinstance(packet, Report):
            self.report_count += 1
            self._interests(self._follower.report_seen(packet, at_ns, vlan_id))
        elif isinstance(packet, Query):
            self.query_count += 1
            self._follower.query_seen(packet, at_ns)
        elif isinstance(packet, Malformed):
            self.malformed[packet.reason] += 1
        else:
            self.other_count += 1

    def _data(self, packet: Data, group: bytes, at_ns: int, wire_bytes: int) -> None:
        arrivals = self.arrivals.get(group)
        if arrivals is None:
            if len(self.arrivals) >= GROUPS_BOUND:
                self.uncounted += 1
                return
            arrivals = self.arrivals[group] = ArrivalTally()
        arrivals.count(at_ns, wire_bytes)
        key = GroupSender(group, packet.source)
        sender = self.senders.get(key)
        if sender is None:
            if len(self.senders) >= SENDERS_BOUND:
                self.uncounted += 1
                return
            sender = self.senders[key] = SenderFigures(packet.eth_src, at_ns)
        sender.frame_count += 1
        sender.size_bytes += wire_bytes
        if at_ns > sender.last_ns:
            sender.last_ns = at_ns

    def _interests(self, found: list[CapturedInterest]) -> None:
        room = max(0, CHANGES_BOUND - len(self.interests))
        self.interests += found[:room]
        self.missed_interests += len(found[room:])

    @property
    def missed_count(self) -> int:
        """Return how many joins and leaves found no room."""
        return self.missed_interests + self._follower.missed_count

    def document(self) -> dict[str, Any]:
        """Return everything as JSON has it; groups by their bytes, the busiest first."""
        order = sorted(self.groups(), key=lambda group: (-self._bytes(group), group))
        senders: dict[bytes, list[dict[str, Any]]] = {}
        for (group, source), each in self.senders.items():
            rate_bps = each.rate_bps()
            senders.setdefault(group, []).append(
                {
                    "address": format_ip(source),
                    "mac": format_mac(each.mac),
                    "frames": each.frame_count,
                    "bytes": each.size_bytes,
                    "rate_bps": None if rate_bps is None else round(rate_bps, 1),
                }
            )
        joins = self._joins()
        return {
            "frames": self.frame_count,
            "first_s": self.first_ns / 1e9,
            "lasted_s": round((self.last_ns - self.first_ns) / 1e9, 9),
            "reports": self.report_count,
            "queries": self.query_count,
            "other": self.other_count,
            "malformed": dict(sorted(self.malformed.items())),
            "uncounted": self.uncounted,
            "missed_joins": self.missed_count,
            "groups": [
                {
                    "group": format_ip(group),
                    **self.arrivals.get(group, ArrivalTally()).document(),
                    "senders": sorted(senders.get(group, ()), key=lambda each: -each["bytes"]),
                    **joins.get(group, _NO_JOINS),
                }
                for group in order
            ],
        }

    def groups(self) -> set[bytes]:
        """Return every group that somebody sent to or wanted."""
        return self.arrivals.keys() | {each.group for each in self.interests}

    def _bytes(self, group: bytes) -> int:
        found = self.arrivals.get(group)
        return 0 if found is None else found.size_bytes

    def _joins(self) -> dict[bytes, dict[str, int]]:
        found: dict[bytes, dict[str, int]] = {}
        hosts: dict[bytes, set[bytes]] = {}
        for each in self.interests:
            told = found.setdefault(each.group, dict(_NO_JOINS))
            told[_NAMES[each.kind]] += 1
            hosts.setdefault(each.group, set()).add(each.mac)
        for group, of_group in hosts.items():
            found[group]["hosts"] = len(of_group)
        return found


_NAMES = {InterestKind.JOIN: "joins", InterestKind.LEAVE: "leaves", InterestKind.STANDING: "standing"}
_NO_JOINS = {"joins": 0, "leaves": 0, "standing": 0, "hosts": 0}
