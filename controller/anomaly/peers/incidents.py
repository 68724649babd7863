"""Which faults are the same one: both ends of a cable told once, and in which order to look at those of one time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from controller.anomaly.peers.combination import Verdict

SILENT_SHARE = 0.1
"""A member that carries less than this share of what its peers do fell silent."""


class PeerMember(NamedTuple):
    """A member of a peer group."""

    name: str
    peer_group: str


class Faulty(NamedTuple):
    """A member that was faulty for a time, and what its metrics make of it."""

    member: PeerMember
    first_s: float
    last_s: float
    verdict: Verdict
    metrics: dict[str, float]
    """The metrics above their thresholds, with the highest score of each; highest first."""
    score: float
    """The highest over all metrics in that time."""
    is_silent: bool = False
    """Whether it carried less than `SILENT_SHARE` of what its peers did, of something that was out."""
    other_end: str = ""
    """The other end of its cable, where that was faulty with it."""
    incident: int = 0
    """Number of the time in which it was faulty together with others, the first is 1."""
    rank: int = 0
    """Which to look at first of those in one incident: 1 first."""


def join_ends(far: dict[str, str], one: str, other: str) -> None:
    """Note in `far` that two members are the ends of a cable; ValueError where either is at another one already."""
    if one == other:
        raise ValueError(f"{one!r} is at both ends of a cable")
    for near, end in ((one, other), (other, one)):
        if far.setdefault(near, end) != end:
            raise ValueError(f"{near!r} is at two cables, to {far[near]!r} and to {end!r}")


def told_once(faulty: Sequence[Faulty], far: Mapping[str, str]) -> list[Faulty]:
    """Return each fault once, by incident and rank.

    Faults whose times touch are of one incident. In it faults of components come first, then who fell silent, before
    those who may have taken over its traffic, then who differs most. Of the two ends of a cable that are faulty at
    the same time the one that comes first is told, for the time of both, and names the other.

    Parameters
    ----------
    faulty : sequence of Faulty
        In any order.
    far : mapping
        The other end of each member's cable, for those that have one.
    """
    found: list[Faulty] = []
    for number, incident in enumerate(_incidents(faulty), 1):
        told: list[Faulty] = []
        for one in sorted(incident, key=_order):
            main = next((place for place, main in enumerate(told) if _same_fault(main, one, far)), None)
            if main is None:
                told.append(one)
            else:
                told[main] = told[main]._replace(
                    first_s=min(told[main].first_s, one.first_s),
                    last_s=max(told[main].last_s, one.last_s),
                    other_end=one.member.name,
                )
        found += [one._replace(incident=number, rank=rank) for rank, one in enumerate(told, 1)]
    return found


def _incidents(faulty: Sequence[Faulty]) -> list[list[Faulty]]:
    incidents: list[list[Faulty]] = []
    last_s = float("-inf")
    for one in sorted(faulty, key=lambda each: (each.first_s, each.member)):
        if one.first_s > last_s:
            incidents.append([])
        incidents[-1].append(one)
        last_s = max(last_s, one.last_s)
    return incidents


def _same_fault(main: Faulty, one: Faulty, far: Mapping[str, str]) -> bool:
    overlap = main.first_s <= one.last_s and one.first_s <= main.last_s
    return overlap and far.get(main.member.name) == one.member.name


def _order(one: Faulty) -> tuple[bool, bool, float, PeerMember]:
    return one.verdict != "component fault", not one.is_silent, -one.score, one.member
