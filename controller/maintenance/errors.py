"""What of the errors at ports a campaign goes by: how many there were before a switch was upgraded, and are since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

Place = tuple[int, int]
"""A port: its switch's datapath id, and its number."""

REMEMBERED_S = 300.0
"""For once or twice so long the highest rate of a port is remembered."""

PORTS_BOUND = 65_536
"""Ports with errors that are remembered at a time; those beyond are counted."""


class ErrorsMeasured(NamedTuple):
    """What the monitor saw of errors since it last told.

    `switches` were polled. `errors` are (datapath id, port, errors in a second), received and sent together, of
    their ports that have some, or had some when this was last told.
    """

    switches: tuple[int, ...]
    errors: tuple[tuple[int, int, float], ...]


class _Rates:
    """The errors of a port in a second: now, and the highest of this and the former time."""

    __slots__ = ("former", "highest", "now")

    def __init__(self) -> None:
        self.now = self.highest = self.former = 0.0


class PortErrors:
    """The errors at ports, as the monitor tells of them; all times are seconds of a clock that only goes on.

    Attributes
    ----------
    missed_count
        How often a port had errors that found no room.
    """

    def __init__(self) -> None:
        self.missed_count = 0
        self._ports: dict[int, dict[int, _Rates]] = {}
        self._count = 0
        self._polled_s: dict[int, tuple[float, float]] = {}
        self._turned_s = 0.0

    def measured(self, event: ErrorsMeasured, now: float) -> None:
        """Take what the monitor tells."""
        if now >= self._turned_s + REMEMBERED_S:
            self._turn(now)
        for dpid in event.switches:
            last_s = self._polled_s.get(dpid, (now, now))[1]
            self._polled_s[dpid] = (last_s, now)
        for dpid, port_no, per_s in event.errors:
            self._put(dpid, port_no, per_s)

    def _put(self, dpid: int, port_no: int, per_s: float) -> None:
        ports = self._ports.setdefault(dpid, {})
        rates = ports.get(port_no)
        if rates is None:
            if self._count >= PORTS_BOUND:
                self.missed_count += 1
                return
            self._count += 1
            rates = ports[port_no] = _Rates()
        rates.now = per_s
        rates.highest = max(rates.highest, per_s)

    def _turn(self, now: float) -> None:
        """Begin another time; what had no errors in the last two is forgotten, as are switches that left."""
        self._turned_s = now
        for dpid, ports in list(self._ports.items()):
            for port_no, rates in list(ports.items()):
                rates.former, rates.highest = rates.highest, rates.now
                if rates.former == rates.highest == 0:
                    del ports[port_no]
                    self._count -= 1
            if not ports:
                del self._ports[dpid]

    def forget(self, dpid: int) -> None:
        """Forget when a switch was polled: it went away, and what it counts may begin anew."""
        self._polled_s.pop(dpid, None)

    def is_measured(self, dpid: int) -> bool:
        """Tell whether a switch was polled since it was last away."""
        return dpid in self._polled_s

    def before(self, dpid: int, far_ends: Iterable[Place]) -> dict[Place, float]:
        """Return the highest errors in a second lately, of the ports of a switch and of the other ends, if any."""
        return {place: max(rates.highest, rates.former) for place, rates in self._at(dpid, far_ends)}

    def since(self, dpid: int, far_ends: Iterable[Place], since_s: float) -> dict[Place, float] | None:
        """Return the errors in a second now, of the ports of a switch and of the other ends, if any.

        None as long as these switches were not polled twice since `since_s`: what the first poll counted began
        before.
        """
        ends = list(far_ends)
        if any(self._polled_s.get(each, (-1.0, 0.0))[0] < since_s for each in {dpid, *(end[0] for end in ends)}):
            return None
        return {place: rates.now for place, rates in self._at(dpid, ends)}

    def _at(self, dpid: int, far_ends: Iterable[Place]) -> list[tuple[Place, _Rates]]:
        found = [((dpid, port_no), rates) for port_no, rates in self._ports.get(dpid, {}).items()]
        for far, port_no in far_ends:
            rates = self._ports.get(far, {}).get(port_no)
            if rates is not None:
                found.append(((far, port_no), rates))
        return found


def risen(
    before: Mapping[Place, float], since: Mapping[Place, float], tolerated_per_s: float
) -> tuple[Place, float, float] | None:
    """Return the port whose errors rose most, by more than is tolerated, with those now and those before; or None."""
    worst = max(since.items(), key=lambda each: each[1] - before.get(each[0], 0.0), default=None)
    if worst is None or worst[1] - before.get(worst[0], 0.0) <= tolerated_per_s:
        return None
    return worst[0], worst[1], before.get(worst[0], 0.0)
