"""Code points and queues of service classes, and which classes code points do not tell apart (RFC 2474)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from controller.config.service_classes import ServiceClass
from controller.service_classes.goals import DISCRETIONARY, queue_of

UNMARKED_DSCP = 0
"""The code point of who is in no class, or in one without a code point: best effort (RFC 2474, 4.1)."""


class Demotion(NamedTuple):
    """A class whose packets to one host lose their queue behind the switch where they enter.

    There they wait in `queue_id_onward`, since packets of `other`, or of no class where that is None, have its code
    point as well. `place` is that of the class among all.
    """

    place: int
    service_class: ServiceClass
    queue_id_onward: int
    other: ServiceClass | None

    def text(self) -> str:
        """Return it as a sentence, for operators."""
        name, queue_id, dscp = (
            self.service_class.name,
            queue_of_class(self.service_class),
            dscp_of(self.service_class),
        )
        other = "packets of no class have" if self.other is None else f"class {self.other.name} has"
        return (
            f"Packets of class {name} to one host wait in queue {queue_id} only at the switch where they enter, and "
            f"behind it in queue {self.queue_id_onward}, since {other} the code point {dscp} as well; a dscp of its "
            "own tells it apart"
        )


def dscp_of(service_class: ServiceClass | None) -> int:
    """Return the code point of a class, None being that of who is in none."""
    if service_class is None or service_class.dscp is None:
        return UNMARKED_DSCP
    return service_class.dscp


def queue_of_class(service_class: ServiceClass | None) -> int:
    """Return the queue of a class, None being that of who is in none."""
    return queue_of(DISCRETIONARY if service_class is None else service_class.importance)


def least_important(classes: Iterable[ServiceClass]) -> dict[int, ServiceClass | None]:
    """Return by code point the least important class whose packets to one host have it: those cannot be told apart.

    None is best effort, of what is in no class, which counts as one of its own.
    """
    found: dict[int, ServiceClass | None] = {UNMARKED_DSCP: None}
    for each in classes:
        dscp = dscp_of(each)
        if not each.groups and (dscp not in found or queue_of_class(each) < queue_of_class(found[dscp])):
            found[dscp] = each
    return found


def demotions(classes: Sequence[ServiceClass]) -> Iterator[Demotion]:
    """Yield the classes that code points do not tell from less important ones, in their order."""
    least = least_important(classes)
    for place, each in enumerate(classes):
        other = least.get(dscp_of(each))
        if not each.groups and queue_of_class(other) < queue_of_class(each):
            yield Demotion(place, each, queue_of_class(other), other)
