"""Whether the controllers that share a fabric's name are connected to one fabric: two may have it by mistake."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from apps.cluster.messages import Seen
from controller.cluster.effects import TellOperators
from controller.cluster.place import Course
from controller.cluster.strangers import REFUSED_S, Strangers
from controller.snapshot.events import Severity, State


class FabricCheck:
    """Looks which members have no switch in common with this controller, and whether it follows another fabric's, or
    is to take over the log of another.

    Parameters
    ----------
    fabric, member
        The fabric's name, and this controller's.
    is_known
        Tells whether the log of who leads has a switch.

    Attributes
    ----------
    other_fabric
        Why this controller can take no part, '' where it can.
    logged
        The switches of the log that this controller is to take over, none before.
    """

    def __init__(self, fabric: str, member: str, is_known: Callable[[int], bool]) -> None:
        self.other_fabric = ""
        self.logged: frozenset[int] = frozenset()
        self._foreign_since_s: float | None = None
        self._fabric = fabric
        self._member = member
        self._is_known = is_known
        self._strangers = Strangers()

    def look(self, own: frozenset[int], seen: Seen, course: Course, now: float) -> Iterator[TellOperators]:
        """Take note of what this controller is connected to, and the others; yield what operators are to be told."""
        if seen.is_store_silent or self.other_fabric:
            return
        others = {name: switches for name, switches in seen.dpids.items() if name != self._member}
        for name in self._strangers.look(own, others, now):
            yield TellOperators("member-apart", self._apart_text(name), Severity.WARNING)
        leader = seen.leader
        if course is Course.TAKING_OVER:
            yield from self._look_at_log(own, now)
        if leader is None or course is not Course.FOLLOWING or any(map(self._is_known, own)):
            return
        if self._strangers.apart_s(leader.member, now) >= REFUSED_S:
            yield self._refuse(f"{leader.member} leads it", own)

    def is_log_of(self, own: Collection[int]) -> bool:
        """Tell whether the log that is to be taken over has one of these switches, or none at all."""
        return not self.logged or not self.logged.isdisjoint(own)

    def _look_at_log(self, own: frozenset[int], now: float) -> Iterator[TellOperators]:
        """Lead no fabric by the log of another, whose controllers may be the next to start."""
        if not own or self.is_log_of(own):
            self._foreign_since_s = None
            return
        if self._foreign_since_s is None:
            self._foreign_since_s = now
        if now >= self._foreign_since_s + REFUSED_S:
            yield self._refuse(f"its log has {len(self.logged)} switches", own)

    def _refuse(self, why: str, own: frozenset[int]) -> TellOperators:
        """Take no part any more; return what operators are told."""
        self.other_fabric = (
            f"Fabric {self._fabric} of the store is another one: {why}, and none of the "
            f"{len(own)} switches of this controller is of it. This controller takes no part until it is started "
            "anew, with a name for its fabric that no other has (cluster.fabric)."
        )
        return TellOperators("fabric-is-another", self.other_fabric, Severity.CRITICAL, State.RAISED)

    def problems(self) -> Iterator[str]:
        """Yield what is wrong, as sentences."""
        yield from map(self._apart_text, self._strangers.told)

    def _apart_text(self, name: str) -> str:
        return (
            f"{name} is connected to switches, and to none that this controller is connected to: if it is of another "
            "fabric, that needs a name of its own (cluster.fabric)."
        )
