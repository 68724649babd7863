"""Unicast flows large enough to be given a path of their own: the least loaded of equal ones."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Generic, TypeVar

SHARE = 0.1
"""Part of its link above which a flow counts as large in a poll."""

POLLS = 2
"""Polls one after the other in which it must be so."""

Flow = TypeVar("Flow", bound=Hashable)
Link = TypeVar("Link", bound=Hashable)


class LargeFlows(Generic[Flow]):
    """Tells flows that were large in `POLLS` polls one after the other; remembers those of the last poll alone."""

    def __init__(self) -> None:
        self._polls: dict[Flow, int] = {}

    def polled(self, rates_bps: Mapping[Flow, float], capacity_bps: Mapping[Flow, float]) -> list[Flow]:
        """Take a poll, each flow's rate and its first link's capacity; return the large flows, largest first."""
        seen = {
            flow: self._polls.get(flow, 0) + 1
            for flow, rate in rates_bps.items()
            if rate > SHARE * capacity_bps[flow]
        }
        self._polls = seen
        found = [flow for flow, polls in seen.items() if polls >= POLLS]
        return sorted(found, key=lambda flow: -rates_bps[flow])


def least_loaded(
    paths: Sequence[Sequence[Link]], load_bps: Mapping[Link, float], capacity_bps: Mapping[Link, float], draw: int = 0
) -> int:
    """Return the number of the path whose fullest link is least full, then whose links are least full together.

    The loads are those without the flow that is looked for a path. Of paths alike `draw`, any number from 0 on, takes
    one: a hash of flow and poll, so that flows that share a link do not stay for ever where they are.
    """

    def fullness(path: Sequence[Link]) -> tuple[float, float]:
        parts = [load_bps.get(link, 0.0) / capacity_bps[link] for link in path]
        return max(parts, default=0.0), sum(parts)

    found = [fullness(path) for path in paths]
    least = min(found)
    alike = [number for number, each in enumerate(found) if each == least]
    return alike[draw % len(alike)]
