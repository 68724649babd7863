"""Legs of a link aggregation group that are in another fabric than its others: they are refused until links join."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from controller.config.policy import LinkAggregation
from controller.discovery.lacp import Lacp
from controller.discovery.ports import PortState
from controller.discovery.timers import Timer, TimerKind
from controller.kernel.deadlines import Deadlines
from controller.kernel.ports import End
from topology.fabrics import Fabrics

SETTLE_S = 3.0
"""Legs are refused when fabrics have been as they are for so long: while a fabric is found it is in parts."""


class LegFabricsOwner(Protocol):
    """What the core around has done."""

    def counted(self, kind: str, end: End, does: str, now: float) -> None:
        """Count something, and tell of it now and then."""

    def role_may_differ(self, port: PortState, now: float) -> None:
        """Announce the role of a port, if it has changed."""


class LegFabrics:
    """Refuses legs (`PortState.is_barred`), so that no host is in two fabrics at once.

    Of each group the fabric counts of the first leg, in the operator's order, that is up. `fabrics_changed` is called
    when links have joined fabrics, or one fell into parts, once what switches told in that turn is taken in, and
    `taken_back` with a leg that is refused no longer.
    """

    def __init__(
        self,
        fabrics: Fabrics,
        groups: Iterable[LinkAggregation],
        ports: Mapping[End, PortState],
        deadlines: Deadlines[Timer],
        owner: LegFabricsOwner,
        lacp: Lacp,
        fabrics_changed: Callable[[float], None],
        taken_back: Callable[[PortState, float], None],
    ) -> None:
        self._fabrics = fabrics
        self._ports = ports
        self._deadlines = deadlines
        self._owner = owner
        self._lacp = lacp
        lacp.is_barred = self._is_barred
        self._fabrics_changed = fabrics_changed
        self._taken_back = taken_back
        self._version = 0
        self._groups: dict[End, tuple[str, tuple[End, ...]]] = {}
        self._read(groups)

    def look(self, now: float) -> None:
        """Follow fabrics that are others than when this was called last."""
        if self._version == self._fabrics.version:
            return
        self._version = self._fabrics.version
        self._fabrics_changed(now)
        if self._groups:
            self._deadlines.set(Timer(TimerKind.LEG_FABRICS, None), now + SETTLE_S)

    def use(self, groups: Iterable[LinkAggregation], now: float) -> None:
        """Go by other groups."""
        before = self._groups
        self._read(groups)
        for end in sorted(before.keys() - self._groups.keys()):
            self._bar(end, False, now)
        self.due(None, now)

    def due(self, _subject: None, now: float) -> None:
        """Refuse legs that are in other fabrics than those of their groups, and take those back that are not."""
        for name, legs in list(dict.fromkeys(self._groups.values())):
            first = self._first(legs)
            for end in legs:
                is_elsewhere = first is not None and self._is_up(end) and not self._fabrics.is_one(first[0], end[0])
                if first is not None and is_elsewhere and not self._is_barred(end):
                    text = f"is in another fabric than port {first[0]}:{first[1]}, and both are legs of {name}"
                    text += ": it is not used until a link joins them"
                    self._owner.counted("aggregation-leg-elsewhere", end, text, now)
                self._bar(end, is_elsewhere, now)

    def role_left(self, end: End, now: float) -> None:
        """Look soon at a group of which a leg came or went; take legs back at once where no others are left."""
        if end not in self._groups or len(self._fabrics) < 2:
            return
        self._deadlines.set(Timer(TimerKind.LEG_FABRICS, None), now + SETTLE_S)
        _, legs = self._groups[end]
        first = self._first(tuple([leg for leg in legs if leg != end]))
        for leg in legs:
            if self._is_barred(leg) and (first is None or self._fabrics.is_one(first[0], leg[0])):
                self._bar(leg, False, now)

    def _first(self, legs: tuple[End, ...]) -> End | None:
        return next((leg for leg in legs if self._is_up(leg)), None)

    def _is_up(self, end: End) -> bool:
        port = self._ports.get(end)
        return port is not None and port.up and not port.peers()

    def _is_barred(self, end: End) -> bool:
        port = self._ports.get(end)
        return port is not None and port.is_barred

    def _bar(self, end: End, is_barred: bool, now: float) -> None:
        port = self._ports.get(end)
        if port is not None and port.is_barred is not is_barred:
            port.is_barred = is_barred
            self._lacp.reconsider(end, now)
            self._owner.role_may_differ(port, now)
            if not is_barred:
                self._taken_back(port, now)

    def _read(self, groups: Iterable[LinkAggregation]) -> None:
        self._groups = {}
        for group in groups:
            legs = tuple([(port.dpid, port.port_no) for port in group.ports])
            self._groups.update(dict.fromkeys(legs, (group.name, legs)))
