"""How long frames take from switch to switch: by frames of discovery, and by echoes of the switches at both ends.

A frame that discovery sends out of a port comes back from the switch at the other end, so it takes the controller's
way to the one switch, the hop between them, and the way from the other switch back. An echo takes the way to a switch
and back, so half of it stands for one way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

Hop = tuple[int, int, int, int]
"""From which switch and port to which: datapath id, port, datapath id, port."""

HOPS_BOUND = 131_072
"""Hops that are timed at a time; those beyond are counted."""

FRAMES_BOUND = 131_072
"""Frames under way at a time; of more the oldest are not timed: most of these are lost."""

KEPT = 64
"""Times of a hop, and of a switch's echoes, of which the median is taken: the latest."""

_Place = tuple[int, int]


class HopTimes:
    """Times of frames between switches; all given in seconds of a clock that is never set.

    Attributes
    ----------
    missed_count
        Times of hops that found no room.
    """

    def __init__(self) -> None:
        self.missed_count = 0
        self._echoes: dict[int, deque[float]] = {}
        self._sent: dict[tuple[int, int, bytes], float] = {}
        self._took: dict[Hop, deque[float]] = {}

    def echo_took(self, dpid: int, seconds: float) -> None:
        """Take how long an echo took to a switch and back."""
        self._echoes.setdefault(dpid, deque(maxlen=KEPT)).append(seconds)

    def sent(self, dpid: int, port_no: int, token: bytes, now: float) -> None:
        """Take it that a frame of discovery leaves a port; its token is no other one's."""
        if len(self._sent) >= FRAMES_BOUND:
            del self._sent[next(iter(self._sent))]
        self._sent[dpid, port_no, token] = now

    def heard(self, dpid: int, port_no: int, token: bytes, at: _Place, now: float) -> None:
        """Take it that the frame of a token that left a port came in `at` another."""
        sent_s = self._sent.pop((dpid, port_no, token), None)
        if sent_s is None:
            return
        hop = (dpid, port_no, *at)
        if hop not in self._took and len(self._took) >= HOPS_BOUND:
            self.missed_count += 1
        else:
            self._took.setdefault(hop, deque(maxlen=KEPT)).append(max(0.0, now - sent_s))

    def disconnected(self, dpid: int) -> None:
        """Forget the frames that a switch was to send, and how long its echoes took."""
        self._echoes.pop(dpid, None)
        for frame in [frame for frame in self._sent if frame[0] == dpid]:
            del self._sent[frame]

    def document(self) -> list[dict[str, Any]]:
        """Return the hops, as JSON has them.

        `frame_ms` is the median of the whole way of a frame; `to_ms` (half an echo of the first switch), `hop_ms`
        and `from_ms` (half one of the other) add up to it. Where the halves are more than the whole the hop is too
        short to be seen: it is 0, and the halves are as much less. Hops between switches without echoes are left out.
        """
        return list(self._told())

    def _told(self) -> Iterator[dict[str, Any]]:
        half_ms = {dpid: 500 * median(times) for dpid, times in self._echoes.items()}
        for hop, times in sorted(self._took.items()):
            dpid_a, port_a, dpid_b, port_b = hop
            to_ms, from_ms = half_ms.get(dpid_a), half_ms.get(dpid_b)
            if to_ms is None or from_ms is None:
                continue
            frame_ms = 1000 * median(times)
            ways_ms = to_ms + from_ms
            if ways_ms > frame_ms:
                to_ms, from_ms = (each * frame_ms / ways_ms for each in (to_ms, from_ms))
            yield {
                **{"dpid_a": dpid_a, "port_a": port_a, "dpid_b": dpid_b, "port_b": port_b, "frames": len(times)},
                "frame_ms": round(frame_ms, 6),
                "to_ms": round(to_ms, 6),
                "hop_ms": round(frame_ms - to_ms - from_ms, 6),
                "from_ms": round(from_ms, 6),
            }


class TreeWay(NamedTuple):
    """The way of a group's packets from the switch of a sender to that of a receiver.

    `hops` are (datapath id, datapath id, milliseconds), None where the hop was not timed; `total_ms` is their sum,
    None where one is missing.
    """

    hops: tuple[tuple[int, int, float | None], ...]

    @property
    def total_ms(self) -> float | None:
        """The sum of the hops."""
        times = [took_ms for _, _, took_ms in self.hops]
        return None if None in times else sum(each for each in times if each is not None)


def tree_way(
    links: Iterable[tuple[int, int]], sender: int, receiver: int, hops_ms: Mapping[tuple[int, int], float]
) -> TreeWay | None:
    """Return the way between two switches of a tree; None where the tree does not join them.

    Parameters
    ----------
    links
        The links of the tree: the datapath ids at both ends.
    sender, receiver
        The datapath ids of the switches at which the packets come in and go out.
    hops_ms
        What hops take from one switch to a neighbour, in milliseconds.
    """
    neighbours: dict[int, list[int]] = {}
    for one, other in links:
        neighbours.setdefault(one, []).append(other)
        neighbours.setdefault(other, []).append(one)
    before = {sender: sender}
    waiting = deque([sender])
    while waiting and receiver not in before:
        here = waiting.popleft()
        for there in neighbours.get(here, ()):
            if there not in before:
                before[there] = here
                waiting.append(there)
    if receiver not in before:
        return None
    path = [receiver]
    while path[-1] != sender:
        path.append(before[path[-1]])
    path.reverse()
    return TreeWay(tuple((one, other, hops_ms.get((one, other))) for one, other in pairwise(path)))
