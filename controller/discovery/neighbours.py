"""Which switch each trunk leads to, over a restart of the controller too."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from controller.discovery.ports import PortState
from controller.discovery.timers import RESTART_GRACE_S, Timer, TimerKind
from controller.kernel.deadlines import Deadlines
from controller.kernel.ports import End


class Neighbours:
    """Knows the switch that each trunk leads to, and has ports wait for the one that they led to before a restart.

    Without that a port whose neighbour connects later than its own switch would count as edge, and hosts that are
    heard there, by packets on their way through the fabric, would be looked for behind it.

    Parameters
    ----------
    deadlines
        Where timers are set; the owner calls `waited` and `forget` for them.
    changed
        Called with a port that leads to another switch than before, or to none.

    Attributes
    ----------
    known : dict
        The datapath id of the switch that each port leads to that is a trunk.
    awaited : dict
        Likewise, of ports that were trunks before a restart and are not found again yet.
    """

    def __init__(self, deadlines: Deadlines[Timer], changed: Callable[[End, float], None]) -> None:
        self._deadlines = deadlines
        self._changed = changed
        self.known: dict[End, int] = {}
        self.awaited: dict[End, int] = {}
        self._until_s, self._bound_s = 0.0, float("inf")

    def restore(self, former: Mapping[End, int], until_s: float) -> None:
        """Take in which switches ports led to before a restart; those not back by `until_s` are forgotten."""
        self.awaited.update(former)
        self._deadlines.set(Timer(TimerKind.FORMER, None), until_s)

    def forget(self, _subject: object, _now: float) -> None:
        """Forget ports that are not back."""
        self.awaited.clear()

    def found(self, port: PortState, is_up: bool, until_s: float) -> None:
        """Let a port that its switch tells of for the first time be the trunk that it was, up to `until_s`."""
        self._until_s, self._bound_s = until_s, min(self._bound_s, until_s + RESTART_GRACE_S)
        neighbour = self.awaited.pop(port.end, None)
        if neighbour is not None and is_up:
            port.was_trunk = self.known[port.end] = neighbour
            self._deadlines.set(Timer(TimerKind.AWAITED, port.end), until_s)

    def awaits_on(self, end: End, now: float) -> bool:
        """Have a port that waits for its switch do so as long as others that connected last, unless it has already.

        Where a fabric takes long to come back its last switches are no more gone than those before them; it has
        `RESTART_GRACE_S` more for that.
        """
        until_s = min(self._until_s, self._bound_s)
        if now < until_s:
            self._deadlines.set(Timer(TimerKind.AWAITED, end), until_s)
        return now < until_s

    def review(self, port: PortState, now: float) -> None:
        """See which switch a port leads to after a change."""
        dpids = [dpid for dpid, _ in port.peers()] or ([] if port.was_trunk is None else [port.was_trunk])
        neighbour = min((dpid for dpid in dpids if dpid != port.end[0]), default=None)
        if neighbour == self.known.get(port.end):
            return
        if neighbour is None:
            del self.known[port.end]
        else:
            self.known[port.end] = neighbour
        self._changed(port.end, now)
