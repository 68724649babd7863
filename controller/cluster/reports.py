"""What hosts last told their leader of groups, as those keep it who may have to lead next."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

from controller.events import PacketReceived
from controller.rules.pipeline import ETH_TYPE_IPV4, ETH_TYPE_IPV6, IPPROTO_ICMPV6, IPPROTO_IGMP, MLD_TYPES

KEPT_S = 5.0
"""How long a report is kept: longer than a leader is missed."""

REPORTS_BOUND = 16384
"""Reports that are kept; beyond it the oldest goes, which the leader has most likely taken."""

_ETHERNET_BYTES = 14
_TAG_BYTES, _TAGGED = 4, 0x8100
_HOP_BY_HOP = 0


class Reports:
    """Membership reports of the last seconds, from all switches, in their order."""

    def __init__(self) -> None:
        self._kept: deque[tuple[float, PacketReceived]] = deque(maxlen=REPORTS_BOUND)

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, event: PacketReceived, now: float) -> None:
        """Keep a frame where it is a report."""
        kept = self._kept
        while kept and kept[0][0] < now - KEPT_S:
            kept.popleft()
        if is_report(event.data):
            kept.append((now, event))

    def hand_out(self, dpids: Collection[int], now: float) -> tuple[PacketReceived, ...]:
        """Return the reports of some switches in the order in which they came; they are kept no more."""
        found = tuple(event for at_s, event in self._kept if event.dpid in dpids and at_s >= now - KEPT_S)
        self._kept = deque((entry for entry in self._kept if entry[1].dpid not in dpids), maxlen=REPORTS_BOUND)
        return found


def is_report(frame: bytes) -> bool:
    """Tell whether an Ethernet frame is one of IGMP or MLD."""
    at = _ETHERNET_BYTES
    kind = int.from_bytes(frame[12:14], "big")
    if kind == _TAGGED:
        kind = int.from_bytes(frame[16:18], "big")
        at += _TAG_BYTES
    if kind == ETH_TYPE_IPV4:
        return frame[at + 9 : at + 10] == bytes((IPPROTO_IGMP,))
    if kind != ETH_TYPE_IPV6:
        return False
    following, at = frame[at + 6 : at + 7], at + 40
    if following == bytes((_HOP_BY_HOP,)) and len(frame) > at + 1:
        following, at = frame[at : at + 1], at + 8 * (frame[at + 1] + 1)
    return following == bytes((IPPROTO_ICMPV6,)) and frame[at : at + 1] in _MLD


_MLD = frozenset(bytes((kind,)) for kind in MLD_TYPES)
