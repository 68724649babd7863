"""Link aggregation groups as a policy has them, for the fabric that a core knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from controller.config.policy import LinkAggregation
from controller.kernel.ports import End
from topology.aggregations import Aggregations


def aggregations_of(groups: Iterable[LinkAggregation]) -> Aggregations:
    """Return what a policy says of link aggregation groups."""
    return Aggregations(group.ports for group in groups)


def concerned(before: Aggregations, after: Aggregations) -> Iterator[End]:
    """Yield the ports that are in another group than before, or in one with other ports."""
    for end in sorted(before.homes.keys() | after.homes.keys()):
        if before.legs(end) != after.legs(end):
            yield end
