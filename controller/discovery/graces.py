"""How long switches without a connection count as there."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from controller.discovery.port_table import SwitchPresence
from controller.discovery.timers import Timer, TimerKind
from controller.effects import Notice
from controller.kernel.deadlines import Deadlines

ALL_SWITCHES_LOST = "all-switches-lost"
"""No switch is connected any more; it is told every time."""


class Graces:
    """Sets when switches that lost their connection are given up.

    While none is connected none is given up: it is the controller that is cut off. Nothing can be repaired then, and
    what is known of the fabric is what the switches go on doing. When one is back the others have their time anew.
    """

    def __init__(
        self, switches: Mapping[int, SwitchPresence], deadlines: Deadlines[Timer], tell: Callable[[Notice], None]
    ) -> None:
        self._switches = switches
        self._deadlines = deadlines
        self._tell = tell

    def lost(self, dpid: int, grace_s: float, now: float) -> None:
        """Take in that a switch has no connection any more."""
        self._deadlines.set(Timer(TimerKind.GRACE, dpid), now + grace_s)
        if grace_s == 0 or self._is_any_connected():
            return
        for other in self._switches:
            self._deadlines.cancel(Timer(TimerKind.GRACE, other))
        count = len(self._switches)
        text = (
            f"No switch of {count} is connected any more. They forward as they did, and none is given up before "
            "one is back; links that fail meanwhile are not repaired, and hosts that join are not served."
        )
        self._tell(Notice(ALL_SWITCHES_LOST, text, (("switches", count),)))

    def connects(self, dpid: int, grace_s: float, now: float) -> None:
        """Take in that a switch is about to count as connected."""
        if not self._is_any_connected():
            for other in self._switches.keys() - {dpid}:
                self._deadlines.set(Timer(TimerKind.GRACE, other), now + grace_s)

    def over(self, dpid: int) -> None:
        """Give a switch no more time: it is back, or given up."""
        self._deadlines.cancel(Timer(TimerKind.GRACE, dpid))

    def _is_any_connected(self) -> bool:
        return any(switch.connected for switch in self._switches.values())
